"""A recipe's own build system, run for this machine with an ordinary compiler, for comparison.

Invariant: the build system, its arguments and its targets are those of the recipe; only the compiler differs, whose
options come last on every command line and so override those of the build system. What is made is the static library
of which the package consists, linked to one shared object like all other rivals.
"""

from __future__ import annotations

import shlex
import subprocess
import sysconfig
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.native import Compiler, link
from visget.toolchain.buildsystem import copy_tree
from visget.toolchain.buildtools import Programs, Workplace, plan_steps
from visget.toolchain.members import find_libraries
from visget.toolchain.project import Project

CONFIGURING = ("preparing", "configuring")
"""The phases that are not compilation."""
_C_NAMES, _CXX_NAMES = ("cc", "gcc", "clang"), ("c++", "g++", "clang++")
_BINUTILS = ("ar", "ranlib", "nm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """How long a build took."""

    configuring: float
    making: float
    """Compiling and linking."""


def build_with_system(
    compiler: Compiler, project: Project, sources: Path, scratch: Path, output: Path, *,
    soname: str, prefix: Path | None, jobs: int,
) -> Seconds:  # fmt: skip
    """Build the library in a copy of `sources` below `scratch` and link it to the shared object `output`.

    Args:
        compiler: the compiler.
        project: the recipe.
        sources: its sources.
        scratch: an empty directory.
        output: the shared object.
        soname: the name that other libraries find it by.
        prefix: where the dependencies are: headers in include, shared objects in lib.
        jobs: how many compilers may run at once.

    Raises:
        SystemExit: a step failed; the text has its last lines.
    """
    place = _place(project, sources, scratch, prefix)
    _write_tools(compiler, project, place)
    environment = _environment(place)
    programs = Programs(environment["PATH"])
    spent = {True: 0.0, False: 0.0}
    for step in plan_steps(project.build, place, programs, jobs=jobs):
        begun = time.perf_counter()
        _run(step.command, step.cwd, {**environment, **step.environment})
        spent[step.phase in CONFIGURING] += time.perf_counter() - begun
    places = [place.build, place.directory, place.stage / "usr" / "lib", place.root]
    archives = find_libraries(project, place.root, [one for one in places if one.is_dir()])
    output.parent.mkdir(parents=True, exist_ok=True)
    words = ["-Wl,--whole-archive", *map(str, archives), "-Wl,--no-whole-archive", "-lpthread"]
    if prefix is not None:
        libraries = sorted((prefix / "lib").glob("*.so"))
        words += [*map(str, libraries), f"-Wl,-rpath,{prefix / 'lib'}"]
    begun = time.perf_counter()
    link(words, output, place.root, soname=soname, cxx=True)
    return Seconds(configuring=spent[True], making=spent[False] + time.perf_counter() - begun)


def _place(project: Project, sources: Path, scratch: Path, prefix: Path | None) -> Workplace:
    root = scratch / "source"
    for name in ("home", "tmp", "tools", "calls", "platform"):
        (scratch / name).mkdir(parents=True)
    copy_tree(sources, root)
    directory = root / project.build.directory if project.build.directory else root
    return Workplace(root=root.resolve(), scratch=scratch.resolve(), directory=directory.resolve(), prefix=prefix)


def wrapper_script(command: Sequence[str], before: Sequence[str], after: Sequence[str]) -> str:
    """Return the text of a program that calls a compiler with further words around its own."""
    words = " ".join(map(shlex.quote, [*command, *before]))
    return f'#!/bin/sh\nexec {words} "$@" {" ".join(map(shlex.quote, after))}\n'


def _write_tools(compiler: Compiler, project: Project, place: Workplace) -> None:
    build = project.build
    chosen = [
        *compiler.options, compiler.contract(build.floating_point), *(f"-D{define}" for define in build.defines),
        *build.flags,
        # A build of a static library may hide all functions; here they are called from outside, as in a shared one.
        "-fvisibility=default",
    ]  # fmt: skip
    foreign = [] if place.prefix is None else ["-isystem", str(place.prefix / "include")]
    texts = {name: wrapper_script(compiler.command, foreign, chosen) for name in _C_NAMES}
    if compiler.cxx:
        before = [*foreign, *compiler.cxx_options]
        texts |= {name: wrapper_script(compiler.cxx, before, chosen) for name in _CXX_NAMES}
    for name, text in texts.items():
        path = place.tools / name
        path.write_text(text)
        path.chmod(0o755)
    known = {"C_COMPILER": "cc", **({"CXX_COMPILER": "c++"} if compiler.cxx else {})}
    lines = [f'set(CMAKE_{key} "{place.tools / name}" CACHE FILEPATH "" FORCE)' for key, name in known.items()]
    place.toolchain.write_text("\n".join(lines) + "\n")
    names = {"c": "cc", **({"cpp": "c++"} if compiler.cxx else {})}
    place.native.write_text(
        "[binaries]\n" + "".join(f"{key} = '{place.tools / name}'\n" for key, name in names.items())
    )


def _environment(place: Workplace) -> Mapping[str, str]:
    beside = Path(sysconfig.get_path("scripts"))
    return {
        "PATH": place.path(beside), "HOME": str(place.scratch / "home"), "TMPDIR": str(place.scratch / "tmp"),
        "LC_ALL": "C", "SOURCE_DATE_EPOCH": "315532800", "CC": "cc", "CXX": "c++",
        **{name.upper(): name for name in _BINUTILS},
    }  # fmt: skip


def _run(command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-25:])
        raise SystemExit(f"bench: {' '.join(command)} failed:\n{tail}")
