"""Run time of library functions: the installed library against ordinary builds of the same sources.

All builds are loaded into one process, through the same typed layer, and called in turn on the same memory. Before
anything is timed, the answers of all builds are compared.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping

from bench.case import Case, same
from bench.library_cases import CASES
from bench.native import build, compilers, rival, sources
from bench.timing import Prepared, one_core, prepared_in_turn
from bench.workplace import Workplace
from visget.errors import VisgetError
from visget.runtime.library import Library, open_library

VISGET = "visget"
"""The label of the installed library."""
LEAST, LEAST_QUICK = 0.03, 0.002
"""The seconds of one measurement: short calls are repeated."""


def measure_speed(
    place: Workplace, names: Iterable[str], *, rounds: int, quick: bool, say: Callable[[str], None]
) -> list[dict[str, object]]:
    """Return one row for each function: the times of all builds and whether their answers agree."""
    rows: list[dict[str, object]] = []
    for name in names:
        say(f"speed: building {name}")
        libraries = _builds(place, name)
        for case in CASES[name](quick=quick):
            say(f"speed: {case.title}")
            least = LEAST_QUICK if quick else LEAST
            rows.append({"library": name, **measure_case(case, libraries, rounds, least=least)})
    return rows


def measure_case(
    case: Case, libraries: Mapping[str, Library], rounds: int, *, least: float, tolerant: bool = False
) -> dict[str, object]:
    """Return the times of a case for all builds of the library, and whose answers differ from those of VISGET.

    Args:
        case: the case.
        libraries: the builds by their labels, VISGET among them.
        rounds: how often each is measured.
        least: about how many seconds a measurement takes.
        tolerant: whether a build that cannot do it is left out, with the reason, instead of ending everything.
    """
    answers: dict[str, object] = {}
    failed: dict[str, str] = {}
    for label, library in libraries.items():
        try:
            answers[label] = _answer(case, library)
        except (VisgetError, ValueError, KeyError, AttributeError, OSError, TypeError) as error:
            if not tolerant:
                raise
            failed[label] = f"{type(error).__name__}: {error}"
    found: dict[str, object] = {"function": case.title, "bytes": case.amount, "differ": [], "times": {}}
    if VISGET in answers:
        found["differ"] = [
            label for label, answer in answers.items() if not same(answer, answers[VISGET], case.tolerance)
        ]
        prepared = {label: _prepared(case, libraries[label]) for label in answers}
        with one_core():
            samples = prepared_in_turn(prepared, rounds, least=least)
        found["times"] = {label: sample.as_dict() for label, sample in samples.items()}
    return {**found, "failed": failed} if failed else found


def _prepared(case: Case, library: Library) -> Prepared:
    return Prepared(begin=lambda: case.bind(library), end=lambda: case.release(library))


def _answer(case: Case, library: Library) -> object:
    call = case.bind(library)
    try:
        return case.answer(call())
    finally:
        case.release(library)


def _builds(place: Workplace, name: str) -> dict[str, Library]:
    """Return the installed library and its rivals, all loaded."""
    entry = place.installed(name)
    project = place.published(name).project
    version = str(project.package.version)
    libraries = {VISGET: open_library(entry.path, name=name, version=version)}
    with sources(project, place.settings) as (root, files):
        for compiler in compilers():
            directory = rival(place, name, compiler.label)
            build(compiler, project, root, files, directory / "lib" / f"lib{name}.so")
            # The interface is that of the package: it describes the same headers.
            shutil.copy(entry.path / "api.json", directory / "api.json")
            libraries[compiler.label] = open_library(directory, name=name, version=version)
    return libraries
