"""What the tests of recipes share: a recipe's library on every machine, and its vectors carried out there."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2ekit import RECIPES, Shelf
from machines import FOREIGN, Far, Here, Machine, Memory, build_runner

from visget.format.elements import compare_buffer, compare_result, element_bytes, parse_float
from visget.format.package import open_package
from visget.format.prototypes import Api, FunctionType
from visget.format.vectors import (
    Arg,
    ArrayArg,
    BufferArg,
    BytesArg,
    ExpectText,
    FloatArg,
    IntArg,
    OutArg,
    TextArg,
    VarArg,
    Vector,
)

NAMES = sorted(path.parent.name for path in RECIPES.glob("*/visget.toml"))
QUICK = ("cjson", "libdeflate", "md4c", "utf8proc", "zopfli")
"""The recipes that every run of the tests builds, for all machines; those of the rest are marked long."""
HERE = "x86-64"
GUARD = b"\xa5" * 32


def machines() -> list[object]:
    """Return the parameters of a test that runs on every machine."""
    return [HERE, *(pytest.param(name, marks=pytest.mark.cross) for name in FOREIGN)]


class Workshop:
    """The libraries of the recipes on this machine and on others, each made once."""

    def __init__(self, shelf: Shelf, directory: Path) -> None:
        self.shelf = shelf
        self._directory = directory
        self._runners: dict[str, Path] = {}

    def api(self, entry: Path) -> Api:
        """Return the interface of an installed package."""
        return Api.parse((entry / "api.json").read_bytes())

    def libraries(self, entry: Path, name: str) -> list[Path]:
        """Return the shared library of an entry."""
        return [entry / "lib" / f"lib{name}.so"]

    @contextmanager
    def opened(self, name: str, machine: str) -> Iterator[Machine]:
        """Provide the library of a recipe on a machine."""
        if machine == HERE:
            library = self.shelf.load(name)
            yield Here(self.api(self.shelf.install(name)), library.cdll, HERE)
            return
        if machine not in self._runners:
            self._runners[machine] = build_runner(machine, self._directory)
        entry = self.shelf.install(name, FOREIGN[machine][0])
        far = Far(self.api(entry), machine, self._runners[machine], self.libraries(entry, name))
        try:
            yield far
        finally:
            far.close()

    def distribution(self, name: str, *sonames: str) -> Machine:
        """Return the distribution's own build of a library; skip the test where it is not installed."""
        api = self.api(self.shelf.install(name))
        for number, soname in enumerate(sonames):
            try:
                mode = ctypes.RTLD_GLOBAL if number + 1 < len(sonames) else ctypes.DEFAULT_MODE
                made = ctypes.CDLL(soname, mode=mode)
            except OSError:
                pytest.skip(f"the distribution's {soname} is not installed")
        return Here(api, made, "distribution")


def vectors_of(package: Path) -> tuple[Vector, ...]:
    """Return the vectors of a package file."""
    found = open_package(package.read_bytes()).vectors()
    return () if found is None else found.vectors


def run_vector(machine: Machine, vector: Vector) -> None:
    """Carry out a vector on a machine and compare every answer."""
    buffers: dict[str, tuple[Memory, str]] = {}
    saved: dict[str, int] = {}
    made: list[tuple[Memory, int, str]] = []

    def guarded(data: bytes, where: str) -> Memory:
        whole = machine.buffer(GUARD + data + GUARD)
        made.append((whole, len(data), where))
        return Memory(machine, whole.address + len(GUARD), len(data))

    for number, step in enumerate(vector.steps):
        where = f"{machine.name}: {vector.name!r}, step {number + 1}, {step.call}()"
        function = machine.api.function(step.call)
        assert function is not None, where
        values: list[object] = []
        after = []
        for arg in step.args:
            values.append(_argument(arg, guarded, buffers, saved, where))
            if isinstance(arg, ArrayArg | OutArg):
                if arg.id is not None:
                    buffers[arg.id] = values[-1], arg.type  # type: ignore[assignment]
                after.append((values[-1], arg.type, arg.after))
            elif isinstance(arg, BufferArg):
                after.append((*buffers[arg.name], arg.after))
        type_ = FunctionType(function.result, tuple(p.type for p in function.parameters), function.variadic)
        got = machine.invoke(machine.address_of(step.call), type_, values, where)
        got = 0 if got is None else got
        assert got or not step.nonnull, f"{where} returned null"
        if step.save is not None:
            saved[step.save] = got
        if step.returns is not None:
            answer = (machine.text(got) if got else None) if isinstance(step.returns, ExpectText) else got
            wrong = compare_result(step.returns, answer)
            assert wrong is None, f"{where}: {wrong}"
        for memory, element, expected in after:
            if expected is not None:
                wrong = compare_buffer(element, expected, memory.read())
                assert wrong is None, f"{where}: {wrong}"
    for whole, size, where in made:
        data = whole.read()
        assert data[: len(GUARD)] == data[len(GUARD) + size :] == GUARD, f"{where} wrote outside of a buffer"
        machine.free(whole.address)


def _argument(arg: Arg, guarded, buffers, saved, where: str) -> object:  # type: ignore[no-untyped-def]
    if isinstance(arg, IntArg):
        return arg.value
    if isinstance(arg, FloatArg):
        return parse_float(arg.text)
    if isinstance(arg, BytesArg):
        return guarded(arg.data, where)
    if isinstance(arg, TextArg):
        return guarded(arg.text.encode() + b"\0", where)
    if isinstance(arg, VarArg):
        return saved[arg.name]
    if isinstance(arg, BufferArg):
        return buffers[arg.name][0]
    if isinstance(arg, ArrayArg):
        return guarded(element_bytes(arg.type, arg.values), where)
    if isinstance(arg, OutArg):
        return guarded(bytes(arg.length * len(element_bytes(arg.type, (0,)))), where)
    return None
