"""What the tests in tests/upstream share: upstream's test programs, linked with a native library and with ours.

Both sides get the same programs from the same source package. On one side they are linked with the library that gcc
made of those sources, on the other with the library that visget installed, through its pkg-config file. Each test
hands over what it found on both sides (`Suite.report`), which fails unless they agree.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from e2ekit import RECIPES, Shelf

from visget.digest import parse_digest
from visget.errors import NetworkError, NotFoundError, UnsupportedError
from visget.progress import SILENT
from visget.toolchain.extract import extract
from visget.toolchain.fetch import fetch_archives
from visget.toolchain.origin import PypiSource
from visget.toolchain.project import Project, read_project
from visget.toolchain.sources import source_tree
from visget.wiring import network_of

NATIVE, OURS = "native", "visget"
PASSED, FAILED = "passed", "failed"
CC = "gcc"
QUIET = ("-w", "-O1")
"""Test programs are not what is tested: their warnings are upstream's, and they need not be fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A library to link test programs with."""

    name: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Suite:
    """The sources of a library, unpacked, and both libraries."""

    library: str
    tree: Path
    work: Path
    installed: Path
    """The directory of the artifact that visget made."""
    sides: dict[str, Side]
    native_objects: list[Path]
    taken: set[str] = field(default_factory=set)
    """What programs on our side took from the native objects, because the installed library does not export it."""
    request: pytest.FixtureRequest | None = None

    def objects(self, name: str, sources: Iterable[str | Path], flags: Sequence[str] = QUIET) -> list[Path]:
        """Compile sources of the tree with gcc."""
        place = self.work / "objects" / name
        place.mkdir(parents=True, exist_ok=True)
        return compile_all(self.tree, sources, place, flags)

    def program(
        self,
        side: str,
        name: str,
        sources: Iterable[str | Path],
        flags: Sequence[str] = (),
        extra: Sequence[str | Path] = (),
        libraries: Sequence[str] = ("-lm",),
    ) -> Path:
        """Compile sources of the tree, link them with the library of a side, and return the program.

        Args:
            side: NATIVE or OURS.
            name: of the program.
            sources: relative to the tree.
            flags: for the compiler. The headers of the side's library come first.
            extra: objects and archives that are linked before the library.
            libraries: flags that follow it.
        """
        chosen = self.sides[side]
        place = self.work / side
        place.mkdir(exist_ok=True)
        made = place / name
        parts = place / f"{name}.parts"
        parts.mkdir(exist_ok=True)
        objects = [*compile_all(self.tree, sources, parts, [*QUIET, *chosen.flags, *flags]), *map(Path, extra)]
        if side == OURS:
            objects += self.rest(objects, parts)
        run([CC, *objects, *chosen.libraries, *libraries, "-o", made], cwd=self.tree)
        if side == OURS and any(word.startswith("-l") for word in chosen.libraries):
            needed = run(["readelf", "-d", made], cwd=self.tree).stdout
            assert f"[lib{json.loads((self.installed / 'receipt.json').read_text())['name']}-" in needed, (
                f"{made} does not use the installed library"
            )
        return made

    def rest(self, objects: Sequence[Path], place: Path) -> list[Path]:
        """Return an object with what programs need from inside the library: native code, and no other name is visible.

        It works on the installed library's data; the libraries are configured alike.
        """
        offered = symbols(sorted((self.installed / "lib").glob("*.so")), "-D", "--defined-only")
        wanted = symbols(objects, "-u") - symbols(objects, "--defined-only") - offered
        wanted &= symbols(self.native_objects, "--defined-only", "-g")
        if not wanted:
            return []
        self.taken |= wanted
        whole = place / "rest.o"
        run(["ld", "-r", *self.native_objects, "-o", whole], cwd=place)
        run(["objcopy", *(f"--keep-global-symbol={name}" for name in sorted(wanted)), whole], cwd=place)
        return [whole]

    def ran(self, side: str, program: Path, *words: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        """Run a program of a side."""
        environment = {**os.environ, "LC_ALL": "C", **self.sides[side].environment}
        return run([program, *words], check=False, env=environment, **options)  # type: ignore[arg-type]

    def report(
        self, suite: str, found: Mapping[str, Mapping[str, str]], *, expected: int | None = None,
        known: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Compare what the sides found, and note it for docs/upstream-tests.md.

        Args:
            suite: what to call these tests.
            found: side -> test -> PASSED, or in what way it did not pass.
            expected: how many tests there are at least.
            known: test -> why it fails on both sides.
        """
        native, ours = found[NATIVE], found[OURS]
        assert native
        numbers = {side: sum(result == PASSED for result in found[side].values()) for side in (NATIVE, OURS)}
        note = {"library": self.library, "suite": suite, "tests": len(native), "known": dict(known or {}), **numbers}
        assert self.request is not None
        self.request.node.user_properties.append(("upstream", json.dumps(note)))
        assert ours == native, {name: (native.get(name), ours.get(name)) for name in native.keys() | ours.keys()
                                if native.get(name) != ours.get(name)}  # fmt: skip
        assert expected is None or len(native) >= expected, sorted(native)
        failed = {name: result for name, result in native.items() if result != PASSED}
        assert failed.keys() == (known or {}).keys(), failed

    def note_taken(self, why: str) -> None:
        """Note which functions came from native objects."""
        if self.taken:
            self.not_run("in the programs: " + ", ".join(f"`{name}`" for name in sorted(self.taken)), why)

    def not_run(self, what: str, why: str) -> None:
        """Note what cannot be run against an installed library."""
        assert self.request is not None
        note = {"library": self.library, "what": what, "why": why}
        self.request.node.user_properties.append(("upstream-not-run", json.dumps(note)))


def run(
    words: Sequence[str | Path],
    *,
    cwd: Path,
    check: bool = True,
    env: Mapping[str, str] | None = None,
    timeout: float = 900,
    input: str | None = None,  # noqa: A002 - as subprocess calls it
) -> subprocess.CompletedProcess[str]:
    """Run a command; with `check`, what it says when it fails is the assertion's text."""
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=env, text=True, encoding="utf-8", errors="replace",
        capture_output=True, check=False, timeout=timeout,
        **({"stdin": subprocess.DEVNULL} if input is None else {"input": input}),  # type: ignore[arg-type]
    )  # fmt: skip
    assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stderr[-4000:]}{done.stdout[-4000:]}"
    return done


def symbols(files: Sequence[Path], *flags: str) -> set[str]:
    """Return the names that nm lists."""
    lines = run(["nm", "-P", *flags, *files], cwd=Path("/")).stdout.splitlines()
    return {line.split()[0] for line in lines if len(line.split()) > 1}


def compile_all(tree: Path, sources: Iterable[str | Path], place: Path, flags: Sequence[str]) -> list[Path]:
    """Compile each source; return the objects."""
    made = []
    for source in sources:
        target = place / (re.sub(r"[^A-Za-z0-9_.-]", "_", str(source)) + ".o")
        run([CC, "-c", *flags, "-o", target, tree / source], cwd=tree)
        made.append(target)
    return made


class Workbench:
    """Makes suites: a recipe's sources, its native library and its installed one, each once for a session."""

    def __init__(self, shelf: Shelf, directory: Path) -> None:
        self.shelf = shelf
        self._directory = directory

    def suite(
        self, recipe: str, *, sources: Iterable[str], exclude: Iterable[str] = (),
        flags: Sequence[str] = (), include: Sequence[str] = (), files: Mapping[str, str] | None = None,
        variant: Mapping[str, str] | None = None, prepare: Callable[[Path], None] | None = None,
        archive: bool = False,
    ) -> Suite:  # fmt: skip
        """Return the suite of a recipe.

        Args:
            recipe: its name in examples/recipes.
            sources: globs in the tree, of the native library.
            exclude: globs of what is none of it.
            flags: for the native library.
            include: directories of the tree where tests find headers that are not installed.
            files: what configure would have written: path in the tree -> text.
            variant: texts of visget.toml and what stands there instead, for a package with more exports.
            prepare: told the tree, before anything is compiled.
            archive: link with the static library that visget made.
        """
        if shutil.which(CC) is None or shutil.which("pkg-config") is None:
            pytest.skip("needs gcc and pkg-config")
        if variant is None:
            installed = self.shelf.install(recipe)
            project = read_project(RECIPES / recipe)
        else:
            installed, project = self._variant(recipe, variant)
        library = project.package.library or recipe
        work = self._directory / recipe
        tree = work / "tree"
        settings = self.shelf.user.settings()
        with source_tree(project, cache=settings.cache, network=network_of(settings)) as found:
            shutil.copytree(found.root, tree, symlinks=True)
        for name, text in (files or {}).items():
            (tree / name).write_text(text, encoding="utf-8")
        if prepare is not None:
            prepare(tree)
        wanted = {path for pattern in sources for path in tree.glob(pattern)}
        wanted -= {path for pattern in exclude for path in tree.glob(pattern)}
        (work / "native-objects").mkdir()
        more = [f"-I{tree / name}" for name in include]
        names = sorted(str(path.relative_to(tree)) for path in wanted)
        objects = compile_all(tree, names, work / "native-objects", ["-w", "-O2", *more, *flags])
        native = work / f"lib{library}-native.a"
        run(["ar", "rcs", native, *objects], cwd=tree)
        words = self._pkg_config(installed, library, static=archive)
        if archive:
            libraries: tuple[str, ...] = (str(installed / "lib" / f"lib{library}.a"),)
        else:
            libraries = (*(word for word in words if not word.startswith("-I")), f"-Wl,-rpath,{installed / 'lib'}")
        headers = [word for word in words if word.startswith("-I")]
        ours = Side(name=OURS, flags=(*headers, *more), libraries=libraries)
        return Suite(
            library=recipe, tree=tree, work=work, installed=installed,
            native_objects=objects,
            sides={NATIVE: Side(name=NATIVE, flags=tuple(more), libraries=(str(native),)), OURS: ours},
        )  # fmt: skip

    def _variant(self, recipe: str, changes: Mapping[str, str]) -> tuple[Path, Project]:
        """Build and install a recipe with another text."""
        self.shelf.package(recipe)  # skips when its sources are out of reach
        place = self._directory / f"{recipe}-variant"
        place.mkdir()
        text = (RECIPES / recipe / "visget.toml").read_text(encoding="utf-8")
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new, 1)
        (place / "visget.toml").write_text(text, encoding="utf-8")
        project, user = read_project(place), self.shelf.user
        user.visget("publish", "--no-check", user.json("build", place, "--output", place)["file"])
        user.visget("install", str(project.package.name))
        return user.entry(str(project.package.name)), project

    def _pkg_config(self, installed: Path, library: str, *, static: bool) -> list[str]:
        """Return what the installed pkg-config file says."""
        environment = {**os.environ, "PKG_CONFIG_PATH": "", "PKG_CONFIG_LIBDIR": str(installed / "lib" / "pkgconfig")}
        name = f"lib{library}" if (installed / "lib" / "pkgconfig" / f"lib{library}.pc").exists() else library
        words = ["pkg-config", "--cflags", "--libs", *(["--static"] if static else []), name]
        return run(words, cwd=installed, env=environment).stdout.split()

    def pypi(self, name: str, version: str, sha256: str, directory: str) -> Path:
        """Return a source distribution, unpacked; skip the test when it is out of reach."""
        settings = self.shelf.user.settings()
        source = PypiSource(name=name, version=version, sha256=parse_digest(sha256))
        try:
            archives = fetch_archives(source, cache=settings.cache, network=network_of(settings), progress=SILENT)
        except (NetworkError, UnsupportedError, NotFoundError) as error:
            pytest.skip(f"cannot fetch {name}: {error}")
        target = self._directory / f"{name}-{version}"
        if not target.exists():
            extract(archives[0].path, target)
        return target / directory
