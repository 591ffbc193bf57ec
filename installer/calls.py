"""Calling the functions of a native library as test vectors say, in this very process.

Invariant: runs only in a child process (visget/installer/answer_worker.py), because a wrong library may do
anything. Every buffer lies between guard bytes, and a buffer that the function may only read is compared with
what was put in, so that a write outside or into a constant is an answer too. What steps mean is
docs/spec/vectors.md.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from visget.format.cnumbers import INTEGERS
from visget.format.elements import ELEMENT_SIZES, compare_buffer, compare_result, element_bytes, parse_float
from visget.format.prototypes import Api, Bool, CType, EnumRef, Float, Function, Integer, Pointer, Void, c_text
from visget.format.vectors import (
    After,
    Arg,
    ArrayArg,
    BufferArg,
    BytesArg,
    ElementType,
    Expect,
    ExpectFloat,
    ExpectText,
    FloatArg,
    IntArg,
    NullArg,
    OutArg,
    Step,
    TextArg,
    VarArg,
    Vector,
)

_GUARD = 64
_GUARD_BYTE = 0xA5
_ALIGNMENT = 64

Resolve = Callable[[str], int | None]
"""Gives the address of a symbol, or None."""


class AnswerError(Exception):
    """A step gave another answer than its vector says; the message says which."""


class Buffer:
    """Memory that a step passes, between guard bytes."""

    def __init__(self, data: bytes, *, constant: bool, type_: ElementType = "u8") -> None:
        self.type = type_
        self.size = len(data)
        self._pristine = data
        self._constant = constant
        self._memory = ctypes.create_string_buffer(_ALIGNMENT + 2 * _GUARD + self.size)
        base = ctypes.addressof(self._memory) + _GUARD
        self.address = base + -base % _ALIGNMENT
        self._guard = bytes([_GUARD_BYTE]) * _GUARD
        self.restore()

    def restore(self) -> None:
        """Make the buffer what it was when it was made."""
        ctypes.memmove(self.address - _GUARD, self._guard, _GUARD)
        ctypes.memmove(self.address, self._pristine, self.size)
        ctypes.memmove(self.address + self.size, self._guard, _GUARD)

    def content(self) -> bytes:
        """Return what is in it now."""
        return ctypes.string_at(self.address, self.size)

    def complaint(self) -> str | None:
        """Say what was written where nothing may be, if anything."""
        if ctypes.string_at(self.address - _GUARD, _GUARD) != self._guard:
            return f"wrote in front of a buffer of {self.size} bytes"
        after = ctypes.string_at(self.address + self.size, _GUARD)
        if after != self._guard:
            place = next(number for number, byte in enumerate(after) if byte != _GUARD_BYTE)
            return f"wrote {place + 1} bytes or more behind the end of a buffer of {self.size} bytes"
        if self._constant and self.content() != self._pristine:
            return f"changed the {self.size} bytes of a buffer that it may only read"
        return None


@dataclass(slots=True)
class Scene:
    """What the steps of one vector share."""

    buffers: dict[str, Buffer]
    saved: dict[str, int]
    made: list[Buffer]

    def restore(self) -> None:
        """Forget what the steps did."""
        self.saved.clear()
        for buffer in self.made:
            buffer.restore()


class Caller:
    """The functions of one library."""

    def __init__(self, api: Api, resolve: Resolve) -> None:
        self._api = api
        self._resolve = resolve
        self._bound: dict[str, tuple[Function, Any, list[Any]]] = {}

    def run(self, vector: Vector, before: Callable[[int, Step], None]) -> None:
        """Carry out `vector` once; `before` is called before each step.

        Raises:
            AnswerError: an answer is wrong; the vector and the step are not named in it.
        """
        scene = Scene(buffers={}, saved={}, made=[])
        for number, step in enumerate(vector.steps):
            before(number, step)
            function, arguments, mine = self.prepare(step, scene)
            self.check(step, function(*arguments), scene, mine)
        for buffer in scene.made:
            complaint = buffer.complaint()
            if complaint:
                raise AnswerError(f"the call {complaint}")

    def prepare(self, step: Step, scene: Scene) -> tuple[Any, list[Any], list[tuple[Buffer, After | None]]]:
        """Return the bound function, its arguments, and the buffers that this step passes."""
        function, bound, types = self._bind(step.call)
        fixed = len(function.parameters)
        if len(step.args) < fixed or (len(step.args) > fixed and not function.variadic):
            raise AnswerError(f"the vector passes {len(step.args)} arguments; it takes {fixed}: {function.prototype}")
        arguments: list[Any] = []
        mine: list[tuple[Buffer, After | None]] = []
        for number, arg in enumerate(step.args):
            type_ = function.parameters[number].type if number < fixed else None
            ctype = types[number] if number < fixed else None
            try:
                arguments.append(self._value(arg, type_, ctype, scene, mine))
            except ValueError as error:
                raise AnswerError(f"argument {number + 1}: {error}") from error
        return bound, arguments, mine

    def refresh(self, step: Step, arguments: list[Any], scene: Scene) -> None:
        """Put what earlier steps saved this time into the arguments of an earlier repetition."""
        types = self._bound[step.call][2]
        for number, arg in enumerate(step.args):
            if isinstance(arg, VarArg):
                arguments[number] = _integer(scene.saved[arg.name], types[number] if number < len(types) else None)

    def check(self, step: Step, got: Any, scene: Scene, mine: list[tuple[Buffer, After | None]]) -> None:
        """Compare what a step gave with what the vector says, and keep what later steps need."""
        result = self._bound[step.call][0].result
        number = 0 if got is None else got
        if step.nonnull and not number:
            raise AnswerError("returned null")
        if step.save is not None:
            scene.saved[step.save] = int(number)
        if step.returns is not None:
            wrong = compare_result(*_comparable(step.returns, number, result))
            if wrong:
                raise AnswerError(wrong)
        for buffer, after in mine:
            wrong = buffer.complaint()
            if wrong is None and after is not None:
                wrong = compare_buffer(buffer.type, after, buffer.content())
            if wrong:
                raise AnswerError(wrong)

    def _bind(self, name: str) -> tuple[Function, Any, list[Any]]:
        if name not in self._bound:
            function = self._api.function(name)
            address = self._resolve(name)
            if function is None or address is None:
                raise AnswerError("the library has no such function")
            types = [self._ctype(parameter.type) for parameter in function.parameters]
            prototype = ctypes.CFUNCTYPE(self._ctype(function.result), *types)
            self._bound[name] = (function, prototype(address), types)
        return self._bound[name]

    def _ctype(self, type_: CType) -> Any:
        if isinstance(type_, EnumRef):
            enum = self._api.enum(type_.name)
            type_ = enum.type if enum is not None else type_
        if isinstance(type_, Void):
            return None
        if isinstance(type_, Bool):
            return ctypes.c_bool
        if isinstance(type_, Integer) and (type_.size, type_.signed) in INTEGERS:
            return INTEGERS[type_.size, type_.signed]
        if isinstance(type_, Float) and type_.size in (4, 8):
            return ctypes.c_float if type_.size == 4 else ctypes.c_double
        if isinstance(type_, Pointer):
            return ctypes.c_void_p
        raise AnswerError(f"test vectors cannot pass the type {c_text(type_)}")

    def _value(
        self, arg: Arg, type_: CType | None, ctype: Any, scene: Scene, mine: list[tuple[Buffer, After | None]]
    ) -> Any:
        if isinstance(arg, IntArg | FloatArg):
            return _number(arg, type_, ctype)
        if isinstance(arg, VarArg):
            if arg.name not in scene.saved:
                raise ValueError(f"no earlier step saved {arg.name!r}")
            return _integer(scene.saved[arg.name], ctype)
        if type_ is not None and not isinstance(type_, Pointer):
            raise ValueError(f"{c_text(type_)} is not a pointer")
        if isinstance(arg, NullArg):
            return ctypes.c_void_p(None)
        after: After | None = None
        if isinstance(arg, BufferArg):
            buffer = scene.buffers[arg.name]
        else:
            buffer, after = _make_buffer(arg), arg.after if isinstance(arg, ArrayArg | OutArg) else None
            scene.made.append(buffer)
            if isinstance(arg, ArrayArg | OutArg) and arg.id is not None:
                scene.buffers[arg.id] = buffer
        mine.append((buffer, after))
        return ctypes.c_void_p(buffer.address)


def _make_buffer(arg: Arg) -> Buffer:
    if isinstance(arg, BytesArg):
        return Buffer(arg.data, constant=True)
    if isinstance(arg, TextArg):
        return Buffer(arg.text.encode() + b"\0", constant=True)
    if isinstance(arg, ArrayArg):
        return Buffer(element_bytes(arg.type, arg.values), constant=False, type_=arg.type)
    assert isinstance(arg, OutArg)  # noqa: S101 - the other kinds hold no memory
    return Buffer(bytes(arg.length * ELEMENT_SIZES[arg.type]), constant=False, type_=arg.type)


def _number(arg: IntArg | FloatArg, type_: CType | None, ctype: Any) -> Any:
    if isinstance(arg, FloatArg):
        if type_ is not None and not isinstance(type_, Float):
            raise ValueError(f"a float cannot be passed as {c_text(type_)}")
        return (ctype or ctypes.c_double)(parse_float(arg.text))
    if isinstance(type_, Float):
        return ctype(float(arg.value))
    if isinstance(type_, Pointer) and arg.value != 0:
        raise ValueError("an integer cannot be passed as a pointer; save the result of an earlier step and pass that")
    return _integer(arg.value, ctype)


def _integer(value: int, ctype: Any) -> Any:
    if ctype is None:  # behind the dots of a variadic function: int, or long when it needs to be
        ctype = ctypes.c_int if -(2**31) <= value < 2**31 else ctypes.c_long
    elif ctype is ctypes.c_void_p or ctype is ctypes.c_bool:
        return ctype(value)
    elif ctype in (ctypes.c_float, ctypes.c_double):
        raise ValueError("an integer cannot be passed as a float")
    bits = 8 * ctypes.sizeof(ctype)
    if not -(2 ** (bits - 1)) <= value < 2**bits:
        raise ValueError(f"{value} does not fit into {bits} bits")
    return ctype(value)


def _comparable(expect: Expect, got: Any, result: CType) -> tuple[Expect, Any]:
    """Bring the expectation and the answer into the form that compare_result() takes."""
    if isinstance(expect, ExpectText):
        return expect, ctypes.string_at(got) if got else None
    if isinstance(expect, ExpectFloat) and isinstance(result, Float) and result.size == 4:
        # The nearest float of 32 bits is the best that a function of that type can return.
        return ExpectFloat(text=repr(_single(parse_float(expect.text))), rel=expect.rel, abs=expect.abs), got
    return expect, int(got) if isinstance(got, bool) else got


def _single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return value


def times(caller: Caller, vector: Vector, clock: Callable[[], int]) -> Iterator[int]:
    """Yield the nanoseconds that all calls of `vector` together take, again and again.

    Buffers are set back between repetitions, outside the measured time.
    """
    scene = Scene(buffers={}, saved={}, made=[])
    plan: list[tuple[Step, Any, list[Any]]] = []
    first = True
    while True:
        spent = 0
        for number, step in enumerate(vector.steps):
            if first:
                function, arguments, _ = caller.prepare(step, scene)
                plan.append((step, function, arguments))
            else:
                _, function, arguments = plan[number]
                caller.refresh(step, arguments, scene)
            begin = clock()
            got = function(*arguments)
            spent += clock() - begin
            if step.save is not None:
                scene.saved[step.save] = 0 if got is None else int(got)
        yield spent
        first = False
        scene.restore()
