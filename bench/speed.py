"""Run time of library functions: the installed library against ordinary builds of the same sources.

All builds are loaded into one process, through the same typed layer, and called in turn on the same memory. Before
anything is timed, the answers of all builds are compared.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable

from bench.case import Case, same
from bench.library_cases import CASES
from bench.native import build, compilers, rival, sources
from bench.timing import Prepared, one_core, prepared_in_turn
from bench.workplace import Workplace
from visget.runtime.library import Library, open_library

VISGET = "visget"
"""The label of the installed library."""


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
            rows.append({"library": name, **_row(case, libraries, rounds, quick=quick)})
    return rows


def _row(case: Case, libraries: dict[str, Library], rounds: int, *, quick: bool) -> dict[str, object]:
    answers = {label: _answer(case, library) for label, library in libraries.items()}
    wrong = [label for label, answer in answers.items() if not same(answer, answers[VISGET], case.tolerance)]
    prepared = {
        label: Prepared(begin=lambda lib=library: case.bind(lib), end=lambda lib=library: case.release(lib))
        for label, library in libraries.items()
    }
    with one_core():
        samples = prepared_in_turn(prepared, rounds, least=0.002 if quick else 0.03)
    return {
        "function": case.title, "bytes": case.amount, "differ": wrong,
        "times": {label: sample.as_dict() for label, sample in samples.items()},
    }  # fmt: skip


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
