"""Does a freshly built library give the answers that its author's did? The parent's side.

Invariant: the library is loaded by a child process only; a crash of it is an error that names the vector, the
step, the function and the signal. The vectors are docs/spec/vectors.md, the protocol is docs/spec/worker.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from visget.errors import CompileError, ResourceError
from visget.format.plaintext import clean_line
from visget.format.prototypes import Api
from visget.format.vectors import VectorSet
from visget.installer.child import ChildError, Reply, run_child
from visget.installer.frames import Frame
from visget.installer.limits import ANSWER_LIMITS, Limits
from visget.installer.sandbox import Level
from visget.progress import SILENT, Progress

_WORKER = "visget.installer.answer_worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReport:
    """What was compared."""

    vectors: int
    """How many vectors the library answered as expected."""
    steps: int
    """How many calls they made."""
    seconds: float
    """How long the calls took, with the comparison."""
    sandbox: Level
    """What confined the library."""


def check_answers(
    library: Path,
    api: Api,
    vectors: VectorSet,
    *,
    label: str = "the library",
    limits: Limits = ANSWER_LIMITS,
    progress: Progress = SILENT,
    companions: Sequence[Path] = (),
) -> AnswerReport:
    """Call the shared library (or object file) `library` as `vectors` say and compare every answer.

    Args:
        library: the file; one that ends in .o is linked in memory.
        api: the types of its functions.
        vectors: the calls.
        label: the package's name and version, for messages.
        limits: what the child process may use.
        progress: told about each vector.
        companions: the libraries of other packages that the loader finds for it.

    Raises:
        CompileError: an answer is wrong, or the library crashed, hung or could not be loaded.
    """
    names = {vector.name: number for number, vector in enumerate(vectors.vectors)}

    def on_stage(frame: Frame) -> None:
        name = str(frame.head.get("vector", ""))
        if name in names:
            progress.step("checking answers", name, names[name], len(names))

    head = {"op": "answer", "companions": [str(path.absolute()) for path in companions]}
    reply = _ask(head, library, api, vectors, label, limits, on_stage)
    told = reply.head
    if told.get("vectors") != len(names):
        raise CompileError(f"{label}: the answer worker did not run all test vectors", hint="run `visget doctor`")
    return AnswerReport(
        vectors=len(names), steps=_int(told.get("steps")), seconds=_float(told.get("seconds")), sandbox=reply.sandbox
    )


def time_bench(
    library: Path,
    api: Api,
    bench: VectorSet,
    *,
    label: str = "the library",
    seconds_each: float = 0.3,
    limits: Limits = ANSWER_LIMITS,
) -> dict[str, float]:
    """Return the median seconds of each vector of `bench`: all its calls together, without setting buffers back.

    Raises:
        CompileError: an answer is wrong, or the library crashed, hung or could not be loaded.
    """
    head = {"op": "bench", "seconds_each": seconds_each}
    medians = _ask(head, library, api, bench, label, limits, lambda frame: None).head.get("medians")
    if not isinstance(medians, dict) or set(medians) != {vector.name for vector in bench.vectors}:
        raise CompileError(f"{label}: the answer worker did not time all vectors", hint="run `visget doctor`")
    return {vector.name: _float(medians[vector.name]) for vector in bench.vectors}


def _ask(
    head: Mapping[str, object],
    library: Path,
    api: Api,
    vectors: VectorSet,
    label: str,
    limits: Limits,
    on_stage: Any,
) -> Reply:
    request = {**head, "library": str(library.absolute())}
    try:
        reply = run_child(_WORKER, request, (api.encode(), vectors.encode()), limits, on_stage)
    except ChildError as error:
        raise _explain(error, label) from error
    told = reply.head
    if told["status"] != "ok":
        message = clean_line(str(told.get("message", "")))[:2000]
        if told.get("error") == "MemoryError":
            raise ResourceError(f"{label}: its test vectors need more memory than allowed")
        hint = told.get("hint")
        raise CompileError(
            f"{label}: {message}", where=label, hint=clean_line(hint)[:500] if isinstance(hint, str) else None
        )
    failure = told.get("failure")
    if isinstance(failure, dict):
        raise CompileError(
            f"{label} gives a wrong answer {_place(failure)}: {clean_line(str(failure.get('message')))[:2000]}",
            where=label,
            hint="the library was not installed. Its code misbehaves on this target: please tell its author",
            details={key: failure.get(key) for key in ("vector", "step", "function")},
        )
    return reply


def _explain(died: ChildError, label: str) -> CompileError:
    place = died.stage.head if died.stage is not None else {}
    if died.stage_name == "call":
        doing = _place(place)
    elif died.stage_name == "load":
        doing = "while it was being loaded (its constructors run then)"
    else:
        doing = "before the library was loaded"
    what = {
        "time": "took too long",
        "memory": "needed too much memory",
        "forbidden": "was stopped by the sandbox",
    }.get(died.cause, "crashed")
    return CompileError(
        f"{label} {what} {doing}: {died.message.replace('it was', 'the process was', 1)}",
        where=label,
        hint="the library was not installed. Its code misbehaves on this target: please tell its author",
        details={
            "cause": died.cause,
            **{key: place.get(key) for key in ("vector", "step", "function") if key in place},
            "stderr": died.errors[-2000:],
        },
    )


def _place(facts: Mapping[str, Any]) -> str:
    vector = clean_line(str(facts.get("vector")))[:200]
    function = clean_line(str(facts.get("function")))[:200]
    return f"in test vector {vector!r}, step {facts.get('step')}, {function}()"


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _float(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
