"""The rivals of a recipe's library: the same sources built by gcc and clang, and the distribution's package.

Invariant: what was built is kept below the cache and found again by a stamp of the recipe and the compiler; how long
clang took is measured anew where the kept figure is that of a quick run. A rival that cannot be had is a reason, never
an error of the run.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import distribution
from bench.buildsystems import build_with_system
from bench.native import Compiler, build, compilers, sources
from bench.workplace import PROJECTS, Workplace
from visget.errors import VisgetError
from visget.version import __version__

NATIVE = ("gcc -O3 native", "clang -O3 native")
TIMED = "clang -O3 native"
"""The rival whose build is timed, with one job."""
SHORT, REPEATS = 4.0, 3
"""A build or an installation that takes fewer seconds is timed that often."""
_FILES_LIMIT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another build of the library."""

    library: Path
    facts: dict[str, Any]
    """How long it took to build, or which version of which package it is."""


def stamp(name: str, *more: str) -> str:
    """Return a short digest of a recipe, of those it depends on, and of `more`."""
    digest = hashlib.sha256("\0".join((__version__, *more)).encode())
    for path in sorted(PROJECTS[name].rglob("*"))[:_FILES_LIMIT]:
        if path.is_file() and "dist" not in path.relative_to(PROJECTS[name]).parts:
            digest.update(f"{path.relative_to(PROJECTS[name])}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def rivals(
    place: Workplace, name: str, cache: Path, *, quick: bool, say: Callable[[str], None]
) -> tuple[dict[str, Rival], dict[str, str]]:
    """Return the rivals of the library `name` by their labels, and for those that cannot be had the reason."""
    found: dict[str, Rival] = {}
    missing: dict[str, str] = {}
    for compiler in compilers():
        if compiler.label not in NATIVE:
            continue
        say(f"{name}: building with {compiler.label}")
        try:
            found[compiler.label] = native(place, name, compiler, cache, quick=quick)
        except (SystemExit, VisgetError, OSError) as error:
            missing[compiler.label] = str(error)
    try:
        theirs = distribution.find(name, cache / "distribution")
        output = cache / "distribution" / "joined" / name / "lib" / f"lib{name}.so"
        distribution.join(theirs, output)
    except (distribution.MissingError, SystemExit, OSError) as error:
        missing[distribution.LABEL] = str(error)
    else:
        facts = {"package": theirs.package, "version": theirs.version, "files": [str(path) for path in theirs.files]}
        found[distribution.LABEL] = Rival(library=output, facts=facts)
    return found, missing


def native(place: Workplace, name: str, compiler: Compiler, cache: Path, *, quick: bool) -> Rival:
    """Return the library `name` built with `compiler`, built now unless the cache has it.

    Raises:
        SystemExit: it cannot be built.
        VisgetError: its sources cannot be fetched.
    """
    home = cache / "native" / compiler.family / name / stamp(name, compiler.version, *compiler.options)
    library, facts = home / "lib" / f"lib{name}.so", home / "facts.json"
    timed = compiler.label == TIMED
    kept = json.loads(facts.read_text()) if facts.exists() and library.exists() else None
    if kept is not None and (quick or not timed or not kept["quick"]):
        return Rival(library=library, facts=kept)
    prefix = _prefix(place, name, compiler, cache, home, quick=quick)
    times = [_build(place, name, compiler, library, prefix, jobs=1 if timed else os.cpu_count() or 1)]
    while timed and not quick and times[0]["making"] < SHORT and len(times) < REPEATS:
        times.append(_build(place, name, compiler, library, prefix, jobs=1))
    made = {
        "quick": quick, "configuring": statistics.median(each["configuring"] for each in times),
        "making": statistics.median(each["making"] for each in times), "all": [each["making"] for each in times],
        # What an installation compiles too.
        "needs": sum(_whole(place, each.name, compiler, cache, quick=quick)
                     for each in place.published(name).project.dependencies),
    }  # fmt: skip
    facts.write_text(json.dumps(made))
    return Rival(library=library, facts=made)


def _whole(place: Workplace, name: str, compiler: Compiler, cache: Path, *, quick: bool) -> float:
    facts = native(place, name, compiler, cache, quick=quick).facts
    return float(facts["making"] + facts["needs"])


def soname(name: str, compiler: Compiler) -> str:
    """Return a name that no other build of the library has: the loader takes equal names for the same library."""
    return f"lib{name}-{compiler.family}.so"


def _build(
    place: Workplace, name: str, compiler: Compiler, library: Path, prefix: Path | None, *, jobs: int
) -> dict[str, float]:
    project = place.published(name).project
    own = soname(name, compiler)
    with sources(project, place.settings) as (root, files), tempfile.TemporaryDirectory(prefix="visget-bench-") as work:
        if project.build.system == "sources":
            making = build(compiler, project, root, files, library, soname=own, jobs=jobs)
            return {"configuring": 0.0, "making": making}
        taken = build_with_system(
            compiler, project, root, Path(work), library, soname=own, prefix=prefix, jobs=jobs
        )
        return {"configuring": taken.configuring, "making": taken.making}


def _prefix(
    place: Workplace, name: str, compiler: Compiler, cache: Path, home: Path, *, quick: bool
) -> Path | None:
    """Return a directory with the headers of the dependencies and the same compiler's builds of them."""
    project = place.published(name).project
    if not project.dependencies:
        return None
    # Beside, not inside: what is loaded from a directory must be all that is in it.
    prefix = home.with_name(f"{home.name}-prefix")
    shutil.rmtree(prefix, ignore_errors=True)
    (prefix / "lib").mkdir(parents=True)
    for dependency in project.dependencies:
        entry = place.installed(dependency.name)
        shutil.copytree(entry.path / "include", prefix / "include", dirs_exist_ok=True)
        made = native(place, dependency.name, compiler, cache, quick=quick)
        # Found by configure under the usual name, by the loader under the name that only this build has.
        for link in {f"lib{place.published(dependency.name).project.package.library or dependency.name}.so",
                     f"lib{dependency.name}.so", soname(dependency.name, compiler)}:  # fmt: skip
            (prefix / "lib" / link).symlink_to(made.library)
    return prefix
