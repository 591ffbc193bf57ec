"""One way to call a library wherever it runs: in this process, or on another processor under qemu-user.

A test that is written against `Machine` runs unchanged on all of them, and against the distribution's own build of the
same library. Types come from the package's interface (section "api"), so that a call looks like C:

    with_room = machine.buffer(100)
    size = machine.ZSTD_compress(with_room, 100, b"text", 4, 3)
    assert with_room.read(size) == ...

Arguments: integers, floats, None, bytes (copied in; a NUL follows), bytearrays (copied in and, after the call, back),
`Memory`, and Python functions for function pointers. Pointers that a function returns are integers.

The far side is farcall.c. Its requests are one letter and 64-bit little-endian words: S name -> address; A size ->
address; F address; W address size bytes; R address size -> bytes; L address -> length of the string there; C function,
1 if the result is real, 16 integers, 8 doubles -> "r" and the result, or first "c", number, 8 integers, 4 doubles for a
callback, to which the answer is Y and the result.
"""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from visget.format.prototypes import (
    Api,
    Array,
    Bool,
    CType,
    EnumRef,
    Float,
    Function,
    FunctionType,
    Integer,
    Pointer,
    Record,
    RecordRef,
    Void,
)

_CTYPES: dict[tuple[int, bool], Any] = {
    (1, True): ctypes.c_int8, (1, False): ctypes.c_uint8, (2, True): ctypes.c_int16, (2, False): ctypes.c_uint16,
    (4, True): ctypes.c_int32, (4, False): ctypes.c_uint32, (8, True): ctypes.c_int64, (8, False): ctypes.c_uint64,
}  # fmt: skip
_INTEGERS = 16
_DOUBLES = 8


class Memory:
    """Memory of a machine."""

    def __init__(self, machine: Machine, address: int, size: int) -> None:
        self.machine = machine
        self.address = address
        self.size = size

    def read(self, size: int | None = None, offset: int = 0) -> bytes:
        """Return what lies there."""
        size = self.size - offset if size is None else size
        assert 0 <= offset <= offset + size <= self.size
        return self.machine.read(self.address + offset, size)

    def write(self, data: bytes, offset: int = 0) -> None:
        """Put bytes there."""
        assert 0 <= offset <= offset + len(data) <= self.size
        self.machine.write(self.address + offset, data)

    def u32(self, offset: int = 0) -> int:
        """Return the unsigned int there."""
        return int.from_bytes(self.read(4, offset), "little")

    def u64(self, offset: int = 0) -> int:
        """Return the 64-bit word there: a size_t, a pointer."""
        return int.from_bytes(self.read(8, offset), "little")


def record_named(api: Api, name: str) -> Record:
    """Return the struct or union of a tag, with or without the word, or of a typedef."""
    typedef = next((t.type for t in api.typedefs if t.name == name), None)
    if isinstance(typedef, RecordRef):
        name = typedef.name
    found = next(filter(None, (api.record(prefix + name) for prefix in ("", "struct ", "union "))), None)
    assert found is not None and found.complete, f"the headers do not define {name}"
    return found


class Struct(Memory):
    """A struct or union in a machine's memory; members by name, `data.scalar.length` included."""

    def __init__(self, machine: Machine, name: str, address: int) -> None:
        record = record_named(machine.api, name)
        super().__init__(machine, address, record.size)
        self.name = record.name

    def place(self, path: str) -> tuple[int, CType, tuple[int, int] | None]:
        """Return the offset, the type, and the bits of a member."""
        offset, name, parts = 0, self.name, path.split(".")
        for number, part in enumerate(parts):
            found = _field(self.machine.api, name, part)
            assert found is not None, f"{name} has no member {part}"
            offset += found[0]
            if number == len(parts) - 1:
                return offset, found[1], found[2]
            assert isinstance(found[1], RecordRef), f"{path}: {part} is no struct"
            name = found[1].name
        raise AssertionError(path)

    def at(self, path: str) -> int:
        """Return the address of a member."""
        return self.address + self.place(path)[0]

    def __getitem__(self, path: str) -> Any:
        offset, type_, bits = self.place(path)
        if isinstance(type_, RecordRef):
            return Struct(self.machine, type_.name, self.address + offset)
        raw = self.read(self.machine.size_of(type_), offset)
        if isinstance(type_, Array):
            return raw
        value = self.machine.decode(type_, raw)
        if bits is not None:
            value = value >> bits[0] & (1 << bits[1]) - 1
        return value

    def __setitem__(self, path: str, value: Any) -> None:
        offset, type_, bits = self.place(path)
        if bits is not None:
            old = self.machine.decode(type_, self.read(self.machine.size_of(type_), offset))
            mask = ((1 << bits[1]) - 1) << bits[0]
            value = old & ~mask | value << bits[0] & mask
        if isinstance(type_, Array):
            assert len(value) <= self.machine.size_of(type_)
            self.write(value, offset)
        else:
            self.write(self.machine.encode(type_, value), offset)


def _field(api: Api, name: str, member: str) -> tuple[int, CType, tuple[int, int] | None] | None:
    record = api.record(name)
    assert record is not None, name
    for field in record.fields:
        if field.name == member:
            return field.offset, field.type, field.bits
        if not field.name and isinstance(field.type, RecordRef):
            found = _field(api, field.type.name, member)
            if found is not None:
                return found[0] + field.offset, found[1], found[2]
    return None


class Machine:
    """A library on some processor."""

    name = "?"
    """What tests are called by: x86-64, aarch64, riscv64 ..."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._functions = {function.name: function for function in api.functions}
        self._constants = {constant.name: constant.value for constant in api.constants}
        self._constants |= {name: value for enum in api.enums for name, value in enum.values}
        self._addresses: dict[str, int] = {}
        self._callbacks: dict[tuple[int, str], int] = {}
        self._kept: list[Any] = []
        self.raised: BaseException | None = None
        """What a callback raised; the call during which it did raises it again."""

    # What each kind of machine does in its own way.
    def symbol(self, name: str) -> int:
        raise NotImplementedError

    def allocate(self, size: int) -> int:
        raise NotImplementedError

    def free(self, address: int) -> None:
        raise NotImplementedError

    def read(self, address: int, size: int) -> bytes:
        raise NotImplementedError

    def write(self, address: int, data: bytes) -> None:
        raise NotImplementedError

    def text(self, address: int) -> bytes:
        """Return the string at an address, without its NUL."""
        raise NotImplementedError

    def _invoke(self, address: int, type_: FunctionType, values: Sequence[Any]) -> Any:
        raise NotImplementedError

    def _trampoline(self, type_: FunctionType, function: Callable[..., Any]) -> int:
        raise NotImplementedError

    def close(self) -> None:
        """End it."""

    # What they share.
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._functions:
            function = self._functions[name]
            return lambda *arguments: self.call(function, arguments)
        if name in self._constants:
            value = self._constants[name]
            return value.encode() if isinstance(value, str) else value
        raise AttributeError(f"the library has neither a function nor a constant {name}")

    def address_of(self, name: str) -> int:
        """Return the address of an exported function."""
        if name not in self._addresses:
            self._addresses[name] = self.symbol(name)
            assert self._addresses[name], f"there is no {name}"
        return self._addresses[name]

    def call(self, function: Function, arguments: Sequence[Any]) -> Any:
        """Call an exported function."""
        type_ = FunctionType(function.result, tuple(p.type for p in function.parameters), function.variadic)
        return self.invoke(self.address_of(function.name), type_, arguments, function.name)

    def invoke(self, address: int, type_: FunctionType, arguments: Sequence[Any], name: str = "the function") -> Any:
        """Call what is at an address."""
        wanted = len(type_.parameters)
        assert len(arguments) == wanted or (type_.variadic and len(arguments) > wanted), f"{name} takes {wanted}"
        temporary: list[tuple[int, bytearray | None]] = []
        values: list[Any] = []
        for number, argument in enumerate(arguments):
            parameter = type_.parameters[number] if number < wanted else None
            values.append(self._value(argument, parameter, temporary))
        try:
            result = self._invoke(address, type_, values)
            if self.raised is not None:
                raised, self.raised = self.raised, None
                raise raised
            for place, back in temporary:
                if back is not None:
                    back[:] = self.read(place, len(back))
        finally:
            for place, _ in temporary:
                self.free(place)
        return result

    def _value(self, argument: Any, type_: CType | None, temporary: list[tuple[int, bytearray | None]]) -> Any:
        if argument is None:
            return 0
        if isinstance(argument, Memory):
            return argument.address
        if isinstance(argument, bytes | bytearray):
            place = self.allocate(len(argument) + 1)
            self.write(place, bytes(argument) + b"\0")
            temporary.append((place, argument if isinstance(argument, bytearray) else None))
            return place
        if callable(argument):
            assert isinstance(type_, Pointer) and isinstance(type_.target, FunctionType), type_
            return self.callback(type_.target, argument)
        return argument

    def callback(self, type_: FunctionType, function: Callable[..., Any]) -> int:
        """Return the address of a C function that calls `function`; it stays for good."""
        key = (id(function), repr(type_))
        if key not in self._callbacks:

            def guarded(*arguments: Any) -> Any:
                try:
                    return function(*arguments)
                except BaseException as error:  # noqa: BLE001 - carried to the call during which it happened
                    self.raised = self.raised or error
                    return 0

            self._kept.append(function)
            self._callbacks[key] = self._trampoline(type_, guarded)
        return self._callbacks[key]

    def forget_callbacks(self) -> None:
        """Let the places of all callbacks be used again: nothing may call them any more."""
        self._callbacks.clear()

    def buffer(self, content: int | bytes) -> Memory:
        """Return memory of so many zeros, or with these bytes in it; it stays for good."""
        data = bytes(content)
        made = Memory(self, self.allocate(len(data)), len(data))
        self.write(made.address, data)
        return made

    def struct(self, name: str, /, address: int | None = None, **members: Any) -> Struct:
        """Return a struct of zeros with some members set, or the one at an address."""
        if address is None:
            address = self.buffer(record_named(self.api, name).size).address
        made = Struct(self, name, address)
        for path, value in members.items():
            made[path] = value
        return made

    def plain(self, type_: CType) -> CType:
        """Return the integer type of an enum; any other type as it is."""
        if isinstance(type_, EnumRef):
            enum = self.api.enum(type_.name)
            assert enum is not None
            return enum.type
        return type_

    def size_of(self, type_: CType) -> int:
        """Return the bytes of a type."""
        type_ = self.plain(type_)
        if isinstance(type_, Array):
            return type_.length * self.size_of(type_.element)
        if isinstance(type_, RecordRef):
            record = self.api.record(type_.name)
            assert record is not None
            return record.size
        if isinstance(type_, Bool):
            return 1
        if isinstance(type_, Integer | Float):
            return type_.size
        return 8

    def decode(self, type_: CType, raw: bytes) -> Any:
        """Return the value that bytes in memory stand for."""
        type_ = self.plain(type_)
        if isinstance(type_, Float):
            return struct.unpack("<f" if type_.size == 4 else "<d", raw)[0]
        return int.from_bytes(raw, "little", signed=isinstance(type_, Integer) and type_.signed)

    def encode(self, type_: CType, value: Any) -> bytes:
        """Return a value as it lies in memory."""
        type_ = self.plain(type_)
        if isinstance(type_, Float):
            return struct.pack("<f" if type_.size == 4 else "<d", value)
        if isinstance(type_, Pointer):
            if callable(value):
                assert isinstance(type_.target, FunctionType)
                value = self.callback(type_.target, value)
            elif isinstance(value, Memory):
                value = value.address
            value = value or 0
        size = self.size_of(type_)
        return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")


class Here(Machine):
    """A library in this process: an installed one, or another build with the same interface."""

    def __init__(self, api: Api, cdll: ctypes.CDLL, name: str = "here") -> None:
        super().__init__(api)
        self.name = name
        self._cdll = cdll
        self._c = ctypes.CDLL(None)
        self._c.malloc.restype = ctypes.c_void_p
        self._c.malloc.argtypes = [ctypes.c_size_t]
        self._c.free.argtypes = [ctypes.c_void_p]
        self._bound: dict[tuple[int, str], Any] = {}

    def symbol(self, name: str) -> int:
        try:
            return ctypes.cast(self._cdll[name], ctypes.c_void_p).value or 0
        except AttributeError:
            return 0

    def allocate(self, size: int) -> int:
        return int(self._c.malloc(max(size, 1)))

    def free(self, address: int) -> None:
        self._c.free(address)

    def read(self, address: int, size: int) -> bytes:
        return ctypes.string_at(address, size)

    def write(self, address: int, data: bytes) -> None:
        ctypes.memmove(address, data, len(data))

    def text(self, address: int) -> bytes:
        return ctypes.string_at(address)

    def _ctype(self, type_: CType) -> Any:
        type_ = self.plain(type_)
        if isinstance(type_, Void):
            return None
        if isinstance(type_, Bool):
            return ctypes.c_bool
        if isinstance(type_, Integer):
            return _CTYPES[type_.size, type_.signed]
        if isinstance(type_, Float):
            return ctypes.c_float if type_.size == 4 else ctypes.c_double
        assert isinstance(type_, Pointer | Array), type_
        return ctypes.c_void_p

    def _prototype(self, type_: FunctionType) -> Any:
        return ctypes.CFUNCTYPE(self._ctype(type_.result), *map(self._ctype, type_.parameters))

    def _invoke(self, address: int, type_: FunctionType, values: Sequence[Any]) -> Any:
        key = (address, repr(type_))
        if key not in self._bound:
            self._bound[key] = self._prototype(type_)(address)
        fixed = len(type_.parameters)
        more = [ctypes.c_double(v) if isinstance(v, float) else ctypes.c_int64(v) for v in values[fixed:]]
        result = self._bound[key](*values[:fixed], *more)
        if isinstance(type_.result, Pointer):
            return result or 0
        return result

    def _trampoline(self, type_: FunctionType, function: Callable[..., Any]) -> int:
        pointers = [isinstance(self.plain(p), Pointer) for p in type_.parameters]

        def plain(*arguments: Any) -> Any:
            return function(*((a or 0) if p else a for a, p in zip(arguments, pointers, strict=True)))

        made = self._prototype(type_)(plain)
        self._kept.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value or 0


FOREIGN = {
    "aarch64": ("aarch64-linux-gnu", "qemu-aarch64", "/usr/aarch64-linux-gnu"),
    "riscv64": ("riscv64-linux-gnu", "qemu-riscv64", "/usr/riscv64-linux-gnu"),
}


def emulator(name: str) -> list[str]:
    """Return the command that runs a program for another processor; skip the test where there is none."""
    triple, command, root = FOREIGN[name]
    found = shutil.which(command) or shutil.which(f"{command}-static")
    if found is None:
        pytest.skip(f"no {command} (Debian: qemu-user)")
    if not Path(root, "lib", "libc.so.6").exists():
        pytest.skip(f"no C library for {triple} (Debian: libc6-{'arm64' if name == 'aarch64' else name}-cross)")
    return [found, "-L", root]


def build_runner(name: str, directory: Path) -> Path:
    """Compile farcall.c for another processor."""
    program = directory / f"farcall-{name}"
    source = Path(__file__).with_name("farcall.c")
    words = [sys.executable, "-m", "ziglang", "cc", "-target", FOREIGN[name][0], "-O1", "-Wall", "-Werror"]
    done = subprocess.run([*words, str(source), "-o", str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


class Far(Machine):
    """A library on another processor, in a process under qemu-user."""

    def __init__(self, api: Api, name: str, runner: Path, libraries: Sequence[Path]) -> None:
        super().__init__(api)
        self.name = name
        # Its lifetime is that of the machine: close() closes it.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [*emulator(name), str(runner), *map(str, libraries)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, bufsize=1 << 16,
        )  # fmt: skip
        self._functions_of: list[tuple[FunctionType, Callable[..., Any]]] = []
        assert self._get(8) == b"farcall1"
        self._trampolines = struct.unpack("<100Q", self._get(100 * 8))

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait(timeout=30)
        self._said.close()

    def said(self) -> str:
        """Return what the process wrote to stderr, and the library to stdout."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace")

    def _get(self, size: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if len(data) < size:
            code = self._process.wait(timeout=30)
            raise AssertionError(f"the program on {self.name} ended with {code}: {self.said()[-2000:]}")
        return data

    def _ask(self, letter: bytes, *words: int, data: bytes = b"") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(letter + struct.pack(f"<{len(words)}Q", *words) + data)
        self._process.stdin.flush()

    def _word(self) -> int:
        return int.from_bytes(self._get(8), "little")

    def symbol(self, name: str) -> int:
        self._ask(b"S", len(name), data=name.encode())
        return self._word()

    def allocate(self, size: int) -> int:
        self._ask(b"A", size)
        return self._word()

    def free(self, address: int) -> None:
        self._ask(b"F", address)

    def read(self, address: int, size: int) -> bytes:
        self._ask(b"R", address, size)
        return self._get(size)

    def write(self, address: int, data: bytes) -> None:
        self._ask(b"W", address, len(data), data=data)

    def text(self, address: int) -> bytes:
        self._ask(b"L", address)
        return self.read(address, self._word())

    def _register(self, type_: CType | None, value: Any) -> int:
        """Return an integer argument as its register holds it."""
        type_ = None if type_ is None else self.plain(type_)
        if isinstance(type_, Integer):
            # RISC-V extends the sign of every 32-bit integer, smaller ones by their own signedness; AArch64 looks at
            # the low half only.
            value = int(value) & (1 << 8 * type_.size) - 1
            if (type_.signed or type_.size == 4) and value >> 8 * type_.size - 1:
                value -= 1 << 8 * type_.size
        return int(value) & (1 << 64) - 1

    def _invoke(self, address: int, type_: FunctionType, values: Sequence[Any]) -> Any:
        integers: list[int] = []
        doubles: list[bytes] = []
        fixed = len(type_.parameters)
        for number, value in enumerate(values):
            parameter = self.plain(type_.parameters[number]) if number < fixed else None
            if isinstance(parameter, Float) and parameter.size == 4:
                doubles.append(struct.pack("<f", value) + b"\xff" * 4)  # boxed as RISC-V wants it
            elif isinstance(parameter, Float) or (isinstance(value, float) and self.name != "riscv64"):
                doubles.append(struct.pack("<d", value))
            elif isinstance(value, float):  # a variable argument travels in integer registers on RISC-V
                integers.append(int.from_bytes(struct.pack("<d", value), "little"))
            else:
                integers.append(self._register(parameter, value))
        assert len(integers) <= _INTEGERS and len(doubles) <= _DOUBLES
        integers += [0] * (_INTEGERS - len(integers))
        packed = b"".join(doubles).ljust(8 * _DOUBLES, b"\0")
        result = self.plain(type_.result)
        self._ask(b"C", address, isinstance(result, Float), *integers, data=packed)
        while (kind := self._get(1)) == b"c":
            self._called_back()
        assert kind == b"r"
        raw = self._get(8)
        return None if isinstance(result, Void) else self.decode(result, raw[: self.size_of(result)])

    def _trampoline(self, type_: FunctionType, function: Callable[..., Any]) -> int:
        number = len(self._functions_of)
        assert number < len(self._trampolines), "more callbacks than farcall.c has"
        assert not isinstance(type_.result, Float), "a callback that returns a real number"
        self._functions_of.append((type_, function))
        return int(self._trampolines[number])

    def forget_callbacks(self) -> None:
        super().forget_callbacks()
        self._functions_of.clear()

    def _called_back(self) -> None:
        number, *integers = struct.unpack("<9Q", self._get(72))
        doubles = [self._get(8) for _ in range(4)]
        type_, function = self._functions_of[number]
        arguments = []
        for parameter in type_.parameters:
            if isinstance(parameter, Float):
                arguments.append(self.decode(parameter, doubles.pop(0)[: parameter.size]))
            else:
                raw = integers.pop(0).to_bytes(8, "little")
                arguments.append(self.decode(parameter, raw[: self.size_of(parameter)]))
        result = function(*arguments)
        if isinstance(result, Memory):
            result = result.address
        self._ask(b"Y", self._register(type_.result, 0 if result is None else result))
