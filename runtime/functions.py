"""One C function as a Python function: typed, documented, callable by keyword, with errors that name the argument.

Invariant: nothing reaches C that does not fit the declared type. A call costs about 30 ns more than a bare ctypes
call and needs no ``argtypes`` from the caller. The layer is there for its errors: ctypes raises ArgumentError,
which is no TypeError, knows no parameter names, and replaces every exception of a converter. Keywords, missing
arguments and the signature come from Python itself, because each function here has real parameters.
"""

from __future__ import annotations

import ctypes
import inspect
import keyword
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NoReturn, cast

from visget.errors import UnsupportedError
from visget.format import prototypes as c
from visget.runtime.arrays import Address, Element, pointer_argument
from visget.runtime.callbacks import callback_argument
from visget.runtime.scalars import Converter, article, integer_argument, real_argument
from visget.runtime.types import Types


class CText:
    """An annotation that shows as C, such as ``const float *``."""

    # No dataclass: this module is on the load path, and making one takes a millisecond.
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def make_function(
    function: c.Function, native: Callable[[str], Any], types: Types, module: str
) -> Callable[..., Any]:
    """Return the Python function for `function`.

    A function that Python cannot call (a long double, variable arguments) is still returned, with its
    documentation; calling it raises UnsupportedError with the reason.

    Args:
        function: its declaration.
        native: gives a new ctypes function for a symbol.
        types: the types of the library.
        module: what ``__module__`` says.
    """
    names = _parameter_names(function)
    try:
        if function.variadic:
            raise UnsupportedError("it takes a variable number of arguments")
        converters = tuple(_converter(parameter, types) for parameter in function.parameters)
        call = native(function.name)
        call.argtypes = converters
        call.restype, check = _result(function.result, types)
        if check is not None:
            call.errcheck = check
    except UnsupportedError as error:
        return _finish(_uncallable(function, str(error)), function, names, types, module)

    checked = call
    if any(_is_callback(parameter.type) for parameter in function.parameters):
        checked = types.pending.raising(call)

    def explain(arguments: Sequence[object], error: ctypes.ArgumentError) -> Exception:
        for number, (converter, value) in enumerate(zip(converters, arguments, strict=True)):
            try:
                converter.check(value)
            except (TypeError, OverflowError) as found:
                place = f"{function.name}() argument {number + 1} ({names[number]})"
                return type(found)(f"{place}: {found}")
        return TypeError(f"{function.name}(): {error}")

    if len(names) < len(_SHAPES):
        made: Any = _SHAPES[len(names)](checked, explain)
        _rename(made, function.name, names)
    else:
        made = _many(checked, explain, function.name, names)
    made.native = call
    return _finish(made, function, names, types, module)


def _finish(
    made: Any, function: c.Function, names: Sequence[str], types: Types, module: str
) -> Callable[..., Any]:
    made.__name__ = made.__qualname__ = function.name
    made.__module__ = module
    made.__doc__ = f"{function.prototype}\n\n{function.doc}".rstrip()
    notes = {
        name: _annotation(parameter.type, _spelling(parameter), types, result=False)
        for name, parameter in zip(names, function.parameters, strict=True)
    }
    notes["return"] = _annotation(function.result, function.result_c, types, result=True)
    made.__annotations__ = notes
    if made.__code__.co_flags & inspect.CO_VARARGS:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind, annotation=notes[name]) for name in names]
        if function.variadic:
            parameters.append(inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL))
        made.__signature__ = inspect.Signature(parameters, return_annotation=notes["return"])
    return cast("Callable[..., Any]", made)


def _parameter_names(function: c.Function) -> tuple[str, ...]:
    """Return names that Python allows: given where there are none, with an underscore where they are keywords."""
    names: list[str] = []
    for number, parameter in enumerate(function.parameters, 1):
        name = parameter.name or f"argument{number}"
        while keyword.iskeyword(name) or name in names:
            name += "_"
        names.append(name)
    return tuple(names)


def _spelling(parameter: c.Parameter) -> str:
    """Return the type as the header spells it, without a promise that only the compiler needs."""
    return parameter.c.replace("*restrict", "*").replace("* restrict", "*").replace("*__restrict", "*")


def _converter(parameter: c.Parameter, types: Types) -> Any:
    type_, spelling = parameter.type, _spelling(parameter)
    if isinstance(type_, c.EnumRef):
        type_ = types.enum_type(type_.name)
    if isinstance(type_, c.Bool):
        return Converter(ctypes.c_bool.from_param)
    if isinstance(type_, c.Integer) and type_.size <= 8:
        return integer_argument(type_.size, type_.signed, spelling)
    if isinstance(type_, c.Float) and type_.size >= 4:
        return real_argument(type_.size)
    if isinstance(type_, c.RecordRef):
        return _record_argument(types.by_value(type_.name), spelling)
    if isinstance(type_, c.Array):
        type_ = c.Pointer(type_.element)
    if _is_callback(type_):
        return callback_argument(types.storage(type_), types.pending, spelling)
    if isinstance(type_, c.Pointer):
        return pointer_argument(_element(type_.target, types), type_.const, spelling)
    raise UnsupportedError(f"Python cannot pass {c.c_text(type_)}")


def _is_callback(type_: c.CType) -> bool:
    return isinstance(type_, c.Pointer) and isinstance(type_.target, c.FunctionType)


def _element(target: c.CType, types: Types) -> Element:
    """Return what buffers must hold to be passed where a pointer to `target` is wanted."""
    while isinstance(target, c.Array):
        target = target.element
    if isinstance(target, c.EnumRef):
        target = types.enum_type(target.name)
    if isinstance(target, c.Void | c.Opaque):
        return Element("any", 1, 1, None)
    if isinstance(target, c.Bool):
        return Element("bool", 1, 1, ctypes.c_bool)
    if isinstance(target, c.Float):
        made: Any = {2: ctypes.c_uint16, 4: ctypes.c_float, 8: ctypes.c_double}[target.size]
        return Element("float", target.size, target.size, made)
    if isinstance(target, c.Integer):
        if target.size > 8:
            return Element("any", 1, 1, None)
        made = ctypes.c_char if target.name == "char" else types.storage(target)
        return Element("int" if target.signed else "uint", target.size, target.size, made)
    if isinstance(target, c.RecordRef):
        made = types.record(target.name)
        size, align = types.size_and_alignment(target.name)
        return Element("complex" if types.is_complex(target.name) else "none", size, align, made)
    return Element("none", 8, 8, types.storage(target))


def _record_argument(made: Any, spelled: str) -> Converter:
    def from_param(x: Any) -> Any:
        if isinstance(x, made):
            return x
        raise TypeError(f"expected {spelled} (an instance of {made.__name__}), got {article(type(x).__name__)}")

    return Converter(from_param)


def _result(type_: c.CType, types: Types) -> tuple[Any, Callable[..., Any] | None]:
    """Return ctypes' restype, and a function that makes enum members of integers."""
    if isinstance(type_, c.EnumRef):
        members = types.enum(type_.name)._value2member_map_
        return types.storage(type_), lambda value, _function, _arguments: members.get(value, value)
    if isinstance(type_, c.RecordRef):
        return types.by_value(type_.name), None
    return types.storage(type_), None


def _annotation(type_: c.CType, spelled: str, types: Types, *, result: bool) -> Any:
    if isinstance(type_, c.Void):
        return None
    if isinstance(type_, c.Bool):
        return bool
    if isinstance(type_, c.Integer):
        return int
    if isinstance(type_, c.Float):
        return float
    if isinstance(type_, c.EnumRef):
        return types.enum(type_.name)
    if isinstance(type_, c.RecordRef):
        return types.record(type_.name)
    if result and isinstance(type_, c.Pointer):
        try:
            made = types.storage(type_)
        except UnsupportedError:
            made = None
        if made is Address:
            return Address
        if made is ctypes.c_char_p:
            return bytes | None
    return CText(spelled)


def _uncallable(function: c.Function, why: str) -> Callable[..., NoReturn]:
    def call(*_: object, **__: object) -> NoReturn:
        raise UnsupportedError(
            f"{function.name}() cannot be called from Python: {why}",
            hint="call it from C, or ask the package's author for a wrapper",
            where=function.prototype,
        )

    return call


def _rename(made: Any, name: str, parameters: Sequence[str]) -> None:
    """Give a function of _SHAPES its real name and parameter names, for keywords, errors and the signature."""
    code = made.__code__
    made.__code__ = code.replace(
        co_name=name, co_qualname=name, co_varnames=(*parameters, *code.co_varnames[len(parameters) :])
    )


def _many(call: Any, explain: Any, name: str, names: Sequence[str]) -> Any:
    """Return the function for more parameters than _SHAPES has."""
    signature = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])

    def made(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(names):
            try:
                args = signature.bind(*args, **kwargs).args
            except TypeError as error:
                raise TypeError(f"{name}() {error}") from None
        try:
            return call(*args)
        except ctypes.ArgumentError as error:
            raise explain(args, error) from None

    return made


# One shape for each number of parameters. Written out, because code that makes code is harder to trust than this.


def _shape0(call: Any, explain: Any) -> Any:
    def f() -> Any:
        return call()

    return f


def _shape1(call: Any, explain: Any) -> Any:
    def f(a: Any) -> Any:
        try:
            return call(a)
        except ctypes.ArgumentError as error:
            raise explain((a,), error) from None

    return f


def _shape2(call: Any, explain: Any) -> Any:
    def f(a: Any, b: Any) -> Any:
        try:
            return call(a, b)
        except ctypes.ArgumentError as error:
            raise explain((a, b), error) from None

    return f


def _shape3(call: Any, explain: Any) -> Any:
    def f(a: Any, b: Any, c: Any) -> Any:
        try:
            return call(a, b, c)
        except ctypes.ArgumentError as error:
            raise explain((a, b, c), error) from None

    return f


def _shape4(call: Any, explain: Any) -> Any:
    def f(a: Any, b: Any, c: Any, d: Any) -> Any:
        try:
            return call(a, b, c, d)
        except ctypes.ArgumentError as error:
            raise explain((a, b, c, d), error) from None

    return f


def _shape5(call: Any, explain: Any) -> Any:
    def f(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        try:
            return call(a, b, c, d, e)
        except ctypes.ArgumentError as error:
            raise explain((a, b, c, d, e), error) from None

    return f


def _shape6(call: Any, explain: Any) -> Any:
    def f(a: Any, b: Any, c: Any, d: Any, e: Any, g: Any) -> Any:
        try:
            return call(a, b, c, d, e, g)
        except ctypes.ArgumentError as error:
            raise explain((a, b, c, d, e, g), error) from None

    return f


def _shape7(call: Any, explain: Any) -> Any:
    def f(a: Any, b: Any, c: Any, d: Any, e: Any, g: Any, h: Any) -> Any:
        try:
            return call(a, b, c, d, e, g, h)
        except ctypes.ArgumentError as error:
            raise explain((a, b, c, d, e, g, h), error) from None

    return f


def _shape8(call: Any, explain: Any) -> Any:
    def f(a: Any, b: Any, c: Any, d: Any, e: Any, g: Any, h: Any, i: Any) -> Any:
        try:
            return call(a, b, c, d, e, g, h, i)
        except ctypes.ArgumentError as error:
            raise explain((a, b, c, d, e, g, h, i), error) from None

    return f


_SHAPES: tuple[Callable[[Any, Any], FunctionType], ...] = (
    _shape0,
    _shape1,
    _shape2,
    _shape3,
    _shape4,
    _shape5,
    _shape6,
    _shape7,
    _shape8,
)
