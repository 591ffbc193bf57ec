"""The three ways to the units of a package: visget's own compiler, a build system's output, bitcode that is there.

Invariant: whichever way they came, what leaves here is the same kind of thing, and everything after it (merging, rules,
interface, packing) does not know the way. The spec is docs/spec/front-end.md, sections 1, 9 and 10.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from visget.digest import Digest, digest_bytes, digest_file
from visget.errors import BuildError, UsageError
from visget.format.findings import Finding
from visget.progress import Progress
from visget.toolchain.bitcode_units import read_unit, sorted_units
from visget.toolchain.build_table import Build
from visget.toolchain.clang import CompileOptions, Frontend, recorded_flags
from visget.toolchain.frontend import Unit, compile_units
from visget.toolchain.project import Project
from visget.toolchain.sources import find_headers, find_sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line names in the place of [build]."""

    database: Path | None = None
    """A compile_commands.json."""
    bitcode: tuple[Path, ...] = ()
    """Modules of any front end."""
    headers: tuple[Path, ...] = ()
    """The public headers, in the place of [exports] headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a package is made of."""

    root: Path
    """The directory that all names are relative to."""
    units: list[Unit]
    """The compiled files, in the order in which they are merged."""
    options: CompileOptions
    """With what the public headers are read."""
    public: dict[str, str]
    """Path of each public header relative to the root, by its include name."""
    producer: str
    """Who compiled, for the provenance."""
    flags: tuple[str, ...]
    """With which flags, for the provenance."""
    findings: list[Finding] = field(default_factory=list)
    """What is doubtful about the way they were made."""
    notes: tuple[str, ...] = ()
    """What the author should know though nothing is wrong."""
    files: tuple[tuple[str, Digest], ...] = ()
    """Files that were taken as they are, with their digests."""
    hidden: tuple[str, ...] = ()
    """Paths of this machine that must not be in the module."""

    @property
    def used(self) -> tuple[tuple[str, Digest], ...]:
        """Every file that was read by a compiler from the source tree or taken, with its digest, sorted by name."""
        names = set(self.public.values()).union(*(unit.inputs for unit in self.units))
        read = [(name, digest_file(self.root / name)) for name in names if (self.root / name).is_file()]
        return tuple(sorted((*read, *self.files)))


def compile_options(build: Build) -> CompileOptions:
    """Return what the table [build] says to the compiler."""
    cxx = build.standard is not None and "++" in build.standard
    return CompileOptions(
        c_standard=build.standard if build.standard and not cxx else "gnu17",
        cxx_standard=build.standard if build.standard and cxx else "gnu++17",
        include=build.include,
        defines=build.defines,
        flags=build.flags,
        floating_point=build.floating_point,
        float_cast=build.float_cast,
        language=build.language,
        exceptions=build.exceptions,
        rtti=build.rtti,
    )


def with_prefix(options: CompileOptions, prefix: Path | None) -> CompileOptions:
    """Return `options` with the headers of the dependencies that are installed in `prefix`."""
    return options if prefix is None else replace(options, foreign=(f"{prefix}/include",))


def public_headers(project: Project, root: Path, include: Sequence[str]) -> dict[str, str]:
    """Return the path of each public header relative to `root`, by its include name.

    Raises:
        UsageError: a header is in none of the directories.
    """
    found = find_headers(project, root, include)
    return {name: path.resolve().relative_to(root).as_posix() for name, path in found.items()}


def flags_of(options: CompileOptions, units: Iterable[Unit]) -> tuple[str, ...]:
    """Return the flags that the provenance names: those of the languages of `units`."""
    languages = sorted({unit.cxx for unit in units}) or [False]
    return tuple(dict.fromkeys(flag for cxx in languages for flag in recorded_flags(options, cxx=cxx)))


def from_sources(
    project: Project,
    frontend: Frontend,
    root: Path,
    *,
    jobs: int,
    prefix: Path | None = None,
    progress: Progress,
    colour: bool,
) -> Inputs:
    """Compile the files that [build] sources names.

    Raises:
        BuildError: clang refused one of them, or one includes a file outside of the tree.
        UsageError: a pattern matches nothing, or a public header is not there.
    """
    options = with_prefix(compile_options(project.build), prefix)
    sources = find_sources(project, root)
    public = public_headers(project, root, project.build.include)
    units = compile_units(frontend, options, sources, root=root, jobs=jobs, progress=progress, colour=colour)
    return Inputs(
        root=root, units=inside_root(units, root), options=options, public=public,
        producer=f"clang {frontend.version}", flags=flags_of(options, units),
    )  # fmt: skip


def inside_root(units: Iterable[Unit], root: Path) -> list[Unit]:
    """Return `units` with the names of their inputs relative to `root`.

    Raises:
        BuildError: a file outside of the tree was read, so that nobody else could build the same package.
    """
    result = []
    for unit in units:
        names = []
        for spelled in unit.inputs:
            name = posixpath.normpath(spelled)
            if name.startswith("/"):
                name = posixpath.relpath(name, str(root))
            if name.startswith("../"):
                raise BuildError(
                    f"{unit.source} includes {spelled}, which is outside of the source tree",
                    where=unit.source,
                    hint="copy the file into the package's sources",
                )
            names.append(name)
        result.append(replace(unit, inputs=tuple(names)))
    return result


def from_bitcode(project: Project, given: Given, root: Path) -> Inputs:
    """Take modules that another front end wrote.

    Raises:
        BuildError: a file is not bitcode of this LLVM.
        UsageError: a file or a public header is not there.
    """
    units, producers, files = [], [], []
    for path in given.bitcode:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read the bitcode: {error.strerror}", where=str(path)) from error
        unit, producer = read_unit(data, origin=path.name, foreign=True)
        # Its sources were read by somebody else, somewhere else.
        units.append(replace(unit, inputs=()))
        producers.append(producer.name or "unknown front end")
        files.append((path.name, digest_bytes(data)))
    root, public = given_headers(given, root) if given.headers else (root, None)
    return Inputs(
        root=root,
        units=sorted_units(units),
        options=compile_options(project.build),
        public=public_headers(project, root, project.build.include) if public is None else public,
        producer=", ".join(sorted(set(producers))),
        flags=(),
        files=tuple(files),
    )


def given_headers(given: Given, root: Path) -> tuple[Path, dict[str, str]]:
    """Return the directory that the headers of the command line have in common, and their paths relative to it.

    Raises:
        UsageError: there is no such header, or two have the same name.
    """
    paths = [path.resolve() for path in given.headers]
    for path, real in zip(given.headers, paths, strict=True):
        if not real.is_file():
            raise UsageError("there is no such header", where=str(path))
    if not all(path.is_relative_to(root) for path in paths):
        root = Path(os.path.commonpath([path.parent for path in paths]))
    public: dict[str, str] = {}
    for path in paths:
        if path.name in public:
            raise UsageError(
                f"two public headers are called {path.name}", where=str(path),
                hint="name them in [exports] headers of visget.toml, with the directories that programs write",
            )  # fmt: skip
        public[path.name] = path.relative_to(root).as_posix()
    return root, public
