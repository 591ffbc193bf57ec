"""The answer worker: loads one freshly linked library and calls it as the package's test vectors say.

It is the second child of an installation, never the one that compiled, and never the user's process: constructors
run when a library is loaded, and a miscompiled function may do anything. The requests and replies are
docs/spec/worker.md. Invariant: before each call the parent is told which it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import statistics
import time
from pathlib import Path
from typing import Any

# Everything is imported before enter(), also what others import late: then, files can no longer be opened.
from visget.errors import CompileError, UnsupportedError, UsageError
from visget.format import apijson, vectorjson  # noqa: F401
from visget.format.prototypes import Api
from visget.format.vectors import Step, Vector, VectorSet
from visget.installer.calls import AnswerError, Caller, Resolve, times
from visget.installer.elf import NEEDS_LINKER
from visget.installer.frames import Frame
from visget.installer.landlock import READ_FILE, Grant
from visget.installer.policies import calling, loading
from visget.installer.sandbox import NOTHING, Level, enter, tighten
from visget.installer.serve import Announce, Reply, serve

_FEWEST, _MOST = 5, 1000
# What a library may need besides itself (docs/spec/native-gates.md). The loader takes what is loaded already without
# looking for it, so the confined process opens one file only. Each is missing on some system.
_COMPANIONS = ("libm.so.6", "libpthread.so.0", "libgcc_s.so.1")


def main(parent: int) -> None:
    """Serve one request for the process `parent`."""
    worker = _Worker()
    serve(parent, worker.enter, worker.work)


class _Worker:
    """One request: confined, then confined further once the library is there."""

    def __init__(self) -> None:
        self._level = NOTHING

    def enter(self, request: Frame) -> Level:
        """Load what libraries need, and give up all but reading this library, and those it needs, and running them."""
        path = str(request.head["library"])
        in_memory = path.endswith(".o")
        if in_memory:
            import llvmlite.binding  # noqa: F401
        else:
            for name in _COMPANIONS:
                with contextlib.suppress(OSError):
                    ctypes.CDLL(name)
        files = [path, *map(str, request.head.get("companions", ()))]
        self._level = enter(
            loading(os.getpid(), in_memory=in_memory), request.head["limits"],
            grants=tuple(Grant(file, READ_FILE) for file in files),
        )  # fmt: skip
        return self._level

    def work(self, request: Frame, announce: Announce) -> Reply:
        """Carry out the request `op` "answer" or "bench"."""
        head = request.head
        if head["op"] not in ("answer", "bench"):
            raise UsageError(f"the answer worker cannot {head['op']!r}")
        api, vectors = Api.parse(request.parts[0]), VectorSet.parse(request.parts[1])
        announce("load")
        caller = Caller(api, _load(head["library"], api))
        tighten(calling(os.getpid()), self._level)
        if head["op"] == "answer":
            return _answer(caller, vectors, announce)
        return _bench(caller, vectors, float(head["seconds_each"]), announce)


def _answer(caller: Caller, vectors: VectorSet, announce: Announce) -> Reply:
    started = time.perf_counter()
    steps = 0
    for vector in vectors.vectors:
        failure = _run(caller, vector, announce)
        if failure is not None:
            return {"failure": failure}, ()
        steps += len(vector.steps)
    return {"vectors": len(vectors.vectors), "steps": steps, "seconds": time.perf_counter() - started}, ()


def _run(caller: Caller, vector: Vector, announce: Announce) -> dict[str, object] | None:
    """Carry out one vector; return what went wrong."""
    place: dict[str, Any] = {}

    def before(number: int, step: Step) -> None:
        place.update(vector=vector.name, step=number + 1, function=step.call)
        announce("call", **place)

    try:
        caller.run(vector, before)
    except AnswerError as error:
        return {**place, "message": str(error)}
    return None


def _bench(caller: Caller, vectors: VectorSet, seconds_each: float, announce: Announce) -> Reply:
    medians: dict[str, float] = {}
    for vector in vectors.vectors:
        failure = _run(caller, vector, announce)  # also the warm-up
        if failure is not None:
            return {"failure": failure}, ()
        taken: list[int] = []
        deadline = time.perf_counter() + seconds_each
        for spent in times(caller, vector, time.perf_counter_ns):
            taken.append(spent)
            if len(taken) >= _MOST or (len(taken) >= _FEWEST and time.perf_counter() >= deadline):
                break
        medians[vector.name] = statistics.median(taken) / 1e9
    return {"medians": medians}, ()


def _load(path: str, api: Api) -> Resolve:
    """Return how to find functions in the library, or in the object file, at `path`."""
    if path.endswith(".o"):
        return _load_object(path, api)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise CompileError(
            f"the system's loader refuses the new library: {error}",
            hint="something that the library needs is missing here; `visget doctor` looks for it",
        ) from error

    def resolve(name: str) -> int | None:
        try:
            return ctypes.cast(library[name], ctypes.c_void_p).value
        except AttributeError:
            return None

    return resolve


def _load_object(path: str, api: Api) -> Resolve:
    """Link the object file in memory, as the runtime does where there is no linker."""
    import llvmlite.binding as llvm

    image = Path(path).read_bytes()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    sections = {
        (section.name() or b"").decode("ascii", "replace") for section in llvm.ObjectFileRef.from_data(image).sections()
    }
    for what, names in NEEDS_LINKER.items():
        if any(section.startswith(names) for section in sections):
            raise UnsupportedError(
                f"the library has {what}, which only work in a linked library",
                hint="install a linker: Debian's lld or binutils, or visget's extra `author` (pip install ziglang)",
            )
    builder = llvm.JITLibraryBuilder()
    builder.add_object_img(image)
    builder.add_current_process()
    for function in api.functions:
        builder.export_symbol(function.name)
    try:
        library = builder.link(llvm.create_lljit_compiler(), "visget_answers")
    except RuntimeError as error:
        raise CompileError(f"the object file cannot be linked in memory: {error}") from error
    addresses = {function.name: int(library[function.name]) for function in api.functions}

    def resolve(name: str) -> int | None:
        # The library goes with its last reference, so the closure keeps it.
        return addresses.get(name) if library is not None else None

    return resolve
