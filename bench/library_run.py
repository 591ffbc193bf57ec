"""Everything that is measured of one real library, stage after stage, in a process of its own.

Invariant: the file of the result is written after each stage, so that whatever ends the process leaves what was found,
and what was being done.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import distribution
from bench.installs import install_cold
from bench.library_cases import CASES
from bench.rivals import NATIVE, REPEATS, SHORT, Rival, rivals, stamp
from bench.sizes import stripped
from bench.speed import LEAST, LEAST_QUICK, VISGET, measure_case
from bench.timing import Sample
from bench.workplace import PROJECTS, Workplace
from visget import api
from visget.errors import VisgetError
from visget.files import atomic_write
from visget.runtime.library import Library, open_library

Say = Callable[[str], None]


class Record:
    """The result of one library, on disk after each stage."""

    def __init__(self, path: Path, name: str, *, quick: bool) -> None:
        self._path = path
        self.values: dict[str, Any] = {
            "library": name, "quick": quick, "stamp": stamp(name, str(quick)), "errors": {}, "seconds": {},
            "complete": False,
        }  # fmt: skip

    def stage(self, name: str, do: Callable[[], Any]) -> bool:
        """Carry out a stage, keep what it returns, and tell whether it went well."""
        self.values["doing"] = name
        self.write()
        begun = time.perf_counter()
        try:
            self.values[name] = do()
        except (VisgetError, SystemExit, OSError, ValueError, KeyError) as error:
            self.values["errors"][name] = str(error) or type(error).__name__
        self.values["seconds"][name] = time.perf_counter() - begun
        self.write()
        return name not in self.values["errors"]

    def finish(self) -> None:
        """Say that nothing is missing."""
        self.values.pop("doing", None)
        self.values["complete"] = True
        self.write()

    def write(self) -> None:
        """Write the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(self._path, (json.dumps(self.values, indent=1) + "\n").encode())


def measure_library(name: str, cache: Path, output: Path, *, quick: bool, rounds: int, say: Say) -> None:
    """Measure the library `name` and write the result to `output`."""
    record = Record(output, name, quick=quick)
    with tempfile.TemporaryDirectory(prefix="visget-bench-") as directory:
        place = Workplace(Path(directory), packages=lambda each: cache / "packages" / stamp(each))
        found: dict[str, Rival] = {}

        def build_rivals() -> dict[str, Any]:
            others, missing = rivals(place, name, cache, quick=quick, say=say)
            found.update(others)
            return {"found": {label: rival.facts for label, rival in others.items()}, "missing": missing}

        say(f"{name}: package")
        if record.stage("package", lambda: _package(place, name)):
            say(f"{name}: installing")
            installed = record.stage("install", lambda: _install(place, name, quick=quick))
            record.stage("rivals", build_rivals)
            if installed:
                record.stage("size", lambda: _sizes(place, name, found))
                record.stage("speed", lambda: _speed(place, name, found, quick=quick, rounds=rounds, say=say))
    record.finish()


def _package(place: Workplace, name: str) -> dict[str, Any]:
    begun = time.perf_counter()
    published = place.published(name)
    build = published.project.build
    return {
        "version": str(published.project.package.version), "system": build.system, "bytes": published.size,
        "dependencies": [each.name for each in published.project.dependencies],
        "seconds": time.perf_counter() - begun,
    }  # fmt: skip


def _install(place: Workplace, name: str, *, quick: bool) -> dict[str, Any]:
    """Time cold installations: the first into the store that is used afterwards, if nothing is in there yet."""
    taken: list[float] = []
    home, cold = place.settings.home, place.directory / "cold"
    if not any(home.glob("native/*/*")):
        taken.append(install_cold(place, name, home))
    while not taken or (not quick and taken[0] < SHORT and len(taken) < REPEATS):
        shutil.rmtree(cold, ignore_errors=True)
        taken.append(install_cold(place, name, cold))
    place.installed(name)
    return Sample(seconds=tuple(taken)).as_dict()


def _sizes(place: Workplace, name: str, found: dict[str, Rival]) -> dict[str, int]:
    scratch = place.directory / "sizes" / name
    files = {"installed": [place.installed(name).path / "lib" / f"lib{name}.so"]}
    files |= {label: [rival.library] for label, rival in found.items() if label in NATIVE}
    if distribution.LABEL in found:
        files[distribution.LABEL] = [Path(path) for path in found[distribution.LABEL].facts["files"]]
    sizes = {"vis": place.published(name).size}
    for label, paths in files.items():
        total = 0
        for path in paths:
            total += stripped(path, scratch / f"{label.replace(' ', '')}.so")
        sizes[label] = total
    return sizes


def _speed(
    place: Workplace, name: str, found: dict[str, Rival], *, quick: bool, rounds: int, say: Say
) -> list[dict[str, object]]:
    libraries: dict[str, Library] = {VISGET: api.load(name, settings=place.settings)}
    version = libraries[VISGET].version
    for label, rival in found.items():
        # The interface is that of the package: it describes the same headers.
        shutil.copy(place.installed(name).path / "api.json", rival.library.parent.parent / "api.json")
        libraries[label] = open_library(rival.library.parent.parent, name=name, version=version)
    rows = []
    for case in CASES[name](quick=quick):
        say(f"{name}: {case.title}")
        least = LEAST_QUICK if quick else LEAST
        rows.append(measure_case(case, libraries, rounds, least=least, tolerant=True))
    return rows


def is_done(output: Path, name: str, *, quick: bool) -> bool:
    """Tell whether `output` holds a complete result of the library as it is now."""
    if not output.exists():
        return False
    values = json.loads(output.read_text())
    return bool(values.get("complete")) and values.get("stamp") == stamp(name, str(quick)) and not values["errors"]


def all_names() -> list[str]:
    """Return the names of the recipes that have cases."""
    return sorted(name for name in PROJECTS if name in CASES and PROJECTS[name].parent.name == "recipes")

