"""Pointer arguments: how bytes, buffers, NumPy arrays and ctypes objects become C pointers without a copy.

Invariant: C gets the address of memory that holds elements of the declared type, contiguous, aligned, writable
unless the parameter is a pointer to const, and alive until the call returns; anything else is a TypeError that says
what to do. NumPy is never imported: arrays are met through the buffer protocol, like everything else.

What a pointer parameter accepts:

* None, the null pointer;
* for a number type, buffers of exactly that type; for one-byte types any buffer of one-byte elements; for ``void *``
  any buffer at all; bytes only where the parameter is const;
* ctypes objects, arrays, pointers and ``byref()`` of the same type; for ``T **``, a pointer to T is such an object;
* for a struct, an instance or an array of it, and for a struct of two floats (a complex number) complex arrays;
* for ``void *`` an `Address` or ``ctypes.c_void_p``, but no plain integer: a length in the wrong place must not
  become an address.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from visget.runtime.scalars import Converter, article

_Byref: Any = type(ctypes.byref(ctypes.c_int()))
_Pointer: Any = ctypes._Pointer
_Simple: Any = ctypes._SimpleCData

_CODES = dict.fromkeys("bhilqn", "int") | dict.fromkeys("BHILQN", "uint") | dict.fromkeys("efd", "float")
_CODES |= {"?": "bool", "c": "int", "P": "pointer"}


class Address(ctypes.c_void_p):
    """An untyped address, as functions that return ``void *`` give it; null is false.

    It can be passed on where C wants a ``void *``, and cast: ``ctypes.cast(address, ctypes.POINTER(...))``.
    """

    def __repr__(self) -> str:
        return f"Address({self.value or 0:#x})"

    def __eq__(self, other: object) -> bool:
        return self.value == other.value if isinstance(other, ctypes.c_void_p) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)


class Element(NamedTuple):
    """What a pointer parameter points to, as far as buffers are concerned."""

    kind: str
    """``int``, ``uint``, ``float``, ``bool``, ``complex``; or ``any`` (void) or ``none`` (no buffer will do)."""
    size: int
    """Bytes of one element."""
    align: int
    """Its alignment in bytes."""
    made: Any
    """The ctypes type of one element; None for void."""

    def label(self) -> str:
        """Return the name that NumPy users know the element by."""
        return f"{self.kind}{8 * self.size}" if self.kind != "bool" else "bool"


def pointer_argument(element: Element, const: bool, c: str) -> Converter:
    """Return the converter for a pointer parameter.

    Args:
        element: what it points to.
        const: whether that is const, so that read-only memory will do.
        c: the parameter's type as the header spells it, for messages.
    """
    anything = element.kind == "any"
    bytewise = anything or (element.size == 1 and element.kind in ("int", "uint"))
    takes_bytes = bytewise and const
    # ctypes' way to point into a buffer: an array of no elements, which still holds on to the buffer.
    borrow: Any = ((ctypes.c_ubyte if element.kind in ("any", "none") else element.made) * 0).from_buffer
    mask = element.align - 1
    untyped = ((ctypes.c_void_p,) if anything else ()) + ((ctypes.c_char_p,) if takes_bytes else ())
    known: set[Any] = set()
    """The NumPy types found good so far: looking one up is much cheaper than describing it."""

    def from_param(x: Any) -> Any:
        if bytewise:
            if takes_bytes and x.__class__ is bytes:
                return x
            if x.__class__ is bytearray:
                return borrow(x)
        try:
            if getattr(x, "dtype", None) in known:
                # Refuses what is not contiguous or not writable; the slow way then says why, or lets it pass.
                held = borrow(x)
                if not ctypes.addressof(held) & mask:
                    return held
        except (TypeError, ValueError, BufferError):
            pass
        return slow(x)

    def slow(x: Any) -> Any:
        if x is None:
            return None
        if isinstance(x, _Byref | _Pointer | _Simple | ctypes.Structure | ctypes.Union | ctypes.Array):
            return from_ctypes(x)
        try:
            view = memoryview(x)
        except (TypeError, ValueError, BufferError) as error:
            raise TypeError(_no_buffer(x, element, c, str(error))) from None
        found = _kind_of(view)
        if not (anything or found == (element.kind, element.size) or (bytewise and view.itemsize == 1)):
            raise TypeError(_other_type(x, view, element, c))
        if not view.c_contiguous:
            raise TypeError(f"{_describe(x, view)} is not C-contiguous; pass numpy.ascontiguousarray(...) of it")
        if view.readonly:
            if not const:
                raise TypeError(_read_only(x, view, c))
            held: Any = _Held(_address(view))
            held.owner = view
            address = held.value or 0
        else:
            held = borrow(view)
            address = ctypes.addressof(held)
        if address & mask:
            raise TypeError(f"{_describe(x, view)} is not aligned to {element.align} bytes; pass a copy of it")
        if not view.readonly and hasattr(x, "dtype"):
            known.add(x.dtype)
        return held

    def from_ctypes(x: Any) -> Any:
        pointee: Any
        if isinstance(x, _Byref):
            pointee, passed = type(x._obj), x
        elif isinstance(x, _Pointer):
            pointee, passed = x._type_, x
            if not anything and not same_type(pointee, element.made) and same_type(type(x), element.made):
                # Where C wants the place of a pointer, a pointer is passed as any other object is.
                pointee, passed = type(x), ctypes.byref(x)
        elif isinstance(x, ctypes.Array):
            pointee, passed = x._type_, x
            while issubclass(pointee, ctypes.Array) and not same_type(pointee, element.made):
                pointee = pointee._type_
        elif isinstance(x, untyped):
            return x
        elif isinstance(x, ctypes.c_void_p) and same_type(type(x), element.made):
            pointee, passed = type(x), ctypes.byref(x)
        elif anything and isinstance(x, (ctypes.c_char_p, ctypes.c_wchar_p)):
            raise TypeError(f"the text of {article(type(x).__name__)} cannot be changed, and {c} may be written to")
        elif isinstance(x, ctypes.c_void_p):
            raise TypeError(
                f"expected {c}, got an untyped address; say what it points to: "
                f"ctypes.cast(address, ctypes.POINTER({getattr(element.made, '__name__', 'type')}))"
            )
        else:
            pointee, passed = type(x), ctypes.byref(x)
        if not anything and not same_type(pointee, element.made):
            raise TypeError(f"expected {c}, got {_ctypes_text(x, pointee)}")
        if isinstance(passed, ctypes.Array | _Byref) and (ctypes.addressof(getattr(x, "_obj", x)) & mask):
            raise TypeError(f"the {pointee.__name__} is not aligned to {element.align} bytes")
        return passed

    return Converter(from_param)


def same_type(one: Any, other: Any) -> bool:
    """Return whether two ctypes types mean the same to C, such as c_long and c_longlong, or c_char and c_ubyte."""
    if one is other:
        return True
    if one is None or other is None:
        return False
    if issubclass(one, ctypes.c_void_p) and issubclass(other, ctypes.c_void_p):
        return True
    first, second = _pointee(one), _pointee(other)
    if first is not None and second is not None:
        return same_type(first, second)
    if issubclass(one, ctypes.Array) and issubclass(other, ctypes.Array):
        return bool(one._length_ == other._length_) and same_type(one._type_, other._type_)
    if issubclass(one, _Simple) and issubclass(other, _Simple):
        kinds = _CODES.get(one._type_), _CODES.get(other._type_)
        if None in kinds or "pointer" in kinds or ctypes.sizeof(one) != ctypes.sizeof(other):
            return False
        return kinds[0] == kinds[1] or (ctypes.sizeof(one) == 1 and "bool" not in kinds)
    return False


def _pointee(made: Any) -> Any:
    """Return what a ctypes pointer type points to, or None if it is no typed pointer."""
    if issubclass(made, ctypes.c_char_p):
        return ctypes.c_char
    return made._type_ if issubclass(made, _Pointer) else None


class _Held(ctypes.c_void_p):
    """An address that keeps what it points into alive."""

    __slots__ = ("owner",)


class _PyBuffer(ctypes.Structure):
    """Py_buffer of the stable ABI: the only way to the address of read-only memory."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


_get_buffer = ctypes.pythonapi["PyObject_GetBuffer"]
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_release_buffer = ctypes.pythonapi["PyBuffer_Release"]
_release_buffer.argtypes = [ctypes.POINTER(_PyBuffer)]
_release_buffer.restype = None


def _address(view: memoryview) -> int:
    """Return where the memory of a contiguous view begins; the caller keeps the view."""
    raw = _PyBuffer()
    _get_buffer(view, ctypes.byref(raw), 0)
    address: int = raw.buf or 0
    _release_buffer(ctypes.byref(raw))
    return address


def _kind_of(view: memoryview) -> tuple[str, int]:
    """Return the kind and size of the elements of `view`; kinds that no parameter has for swapped or odd ones."""
    code = view.format.lstrip("@=<") if view.itemsize > 1 else view.format.lstrip("@=<>!")
    if code in ("Zf", "Zd"):
        return "complex", view.itemsize
    return _CODES.get(code, "other"), view.itemsize


def _name_of(view: memoryview) -> str:
    kind, size = _kind_of(view)
    if view.format[:1] in (">", "!") and view.itemsize > 1:
        return f"big-endian elements (format {view.format!r})"
    if kind == "other":
        return f"elements of format {view.format!r}"
    return "bool" if kind == "bool" else f"{kind}{8 * size}"


def _describe(x: object, view: memoryview) -> str:
    return f"{article(_type_name(x))} of {_name_of(view)} with shape {view.shape}"


def _type_name(x: object) -> str:
    kind = type(x)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _other_type(x: object, view: memoryview, element: Element, c: str) -> str:
    if element.kind == "none":
        return (
            f"expected {c}, got {_describe(x, view)}; make ctypes objects over the same memory: "
            f"(type * count).from_buffer(...)"
        )
    message = f"expected {c}: a buffer of {element.label()}, got {_describe(x, view)}"
    if not hasattr(x, "dtype"):
        return message
    if element.kind in ("int", "uint") and element.size == 1:
        return f"{message}; to pass its bytes: .view(numpy.uint8)"
    numpy_name = "bool_" if element.kind == "bool" else element.label()
    return f"{message}; convert it: .astype(numpy.{numpy_name})"


def _read_only(x: object, view: memoryview, c: str) -> str:
    if isinstance(x, bytes):
        return f"bytes cannot be changed, and {c} may be written to; pass a bytearray"
    remedy = "pass a copy of it, or set .flags.writeable" if hasattr(x, "dtype") else "pass a bytearray or a copy of it"
    return f"{_describe(x, view)} is read-only, and {c} may be written to; {remedy}"


def _no_buffer(x: object, element: Element, c: str, why: str) -> str:
    got = f"expected {c}, got {article(_type_name(x))}"
    if isinstance(x, str) and (element.made is None or element.size == 1):
        return f"{got}; C strings are bytes: pass text.encode()"
    if isinstance(x, list | tuple) and element.kind not in ("any", "none"):
        return f"{got}; make it an array: numpy.asarray(..., dtype=numpy.{element.label()})"
    if isinstance(x, int) and element.made is None:
        return f"{got}; an address is passed as ctypes.c_void_p(...)"
    if element.kind == "none":
        return f"{got}; pass an instance, a ctypes array or pointer of {element.made.__name__}, or None"
    if hasattr(x, "dtype"):
        return f"{got}, which is no buffer ({why}); pass numpy.asarray(...) of it"
    return f"{got}, which is no buffer"


def _ctypes_text(x: object, pointee: Any) -> str:
    if isinstance(x, _Byref | _Pointer):
        return f"a pointer to {pointee.__name__}"
    if isinstance(x, ctypes.Array):
        return f"an array of {pointee.__name__}"
    return article(pointee.__name__)
