"""From the library that a build made to the units of a package: exactly the members that went into it.

Invariant: every member becomes one unit or the reason of an error that names it, the object and the call that made it.
Nothing is left out, but for a second copy of the same module. The spec is docs/spec/front-end.md, section 9.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from visget.errors import BuildError, FormatError
from visget.format.findings import Finding
from visget.nearest import nearest
from visget.toolchain.archives import read_archive
from visget.toolchain.bitcode_units import kind_of, read_unit, sorted_units
from visget.toolchain.calls import CallLog
from visget.toolchain.frontend import Unit
from visget.toolchain.project import Project

_ASSEMBLY = (".s", ".S", ".asm", ".sx")
_LIBRARIES = re.compile(r".*\.(?:a|so(?:\.\d+)*)")
_SHOWN = 12
# What makes a name mean something else, or code run, and is nowhere in the bitcode.
_LINKER_MAGIC = re.compile(r"--?(?:wrap|defsym|init|fini|just-symbols|script)(?:=.*)?|-T.*")
_MACHINE_HINT = (
    "the library has to be built without it: look for a switch such as --disable-asm, -DWITH_SIMD=OFF or NO_ASM=1; "
    "a compiler that is called by its path (/usr/bin/gcc) must be given by its name"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What was found in the libraries."""

    units: list[Unit]
    findings: list[Finding]
    files: tuple[str, ...]
    """The libraries, relative to the root."""


def find_libraries(project: Project, root: Path, places: Sequence[Path]) -> list[Path]:
    """Return the files that [build] library names, links resolved.

    Args:
        project: the project.
        root: the root of the sources, in which everything lies.
        places: the directories that a path may be relative to.

    Raises:
        UsageError: there is none, or a name fits several different files.
    """
    found: dict[Path, None] = {}
    for index, pattern in enumerate(project.build.library):
        matches = _matches(pattern, root, places)
        foreign = None if matches else _leading_out(pattern, root)
        if foreign is not None:
            raise project.wrong(
                ("build", "library"), f"{foreign.name} is a link to {foreign.resolve()}, outside of the build",
                "a library of this machine cannot be a package; build it from its sources",
            )  # fmt: skip
        if not matches:
            raise project.wrong(
                ("build", "library", index) if len(project.build.library) > 1 else ("build", "library"),
                f"the build made no {pattern!r}", _made(pattern, root),
            )  # fmt: skip
        if len(matches) > 1 and not any(sign in pattern for sign in "*?["):
            listed = ", ".join(path.relative_to(root).as_posix() for path in matches)
            raise project.wrong(
                ("build", "library"), f"the build made several files {pattern!r}: {listed}", "write the path of one"
            )
        found |= dict.fromkeys(matches)
    return list(found)


def _matches(pattern: str, root: Path, places: Sequence[Path]) -> list[Path]:
    for place in places:
        found = sorted(path for path in place.glob(pattern) if path.is_file())
        if found:
            return _distinct(found, root)
    if "/" in pattern:
        return []
    return _distinct(sorted(path for path in root.rglob(pattern) if path.is_file()), root)


def _distinct(paths: Sequence[Path], root: Path) -> list[Path]:
    """Return the real files of `paths` that lie inside `root`, of equal ones the first."""
    real = {path.resolve() for path in paths}
    once: dict[bytes, Path] = {}
    for path in sorted(path for path in real if path.is_relative_to(root)):
        bitcode = path.with_name(f"{path.name}.bc")
        once.setdefault((bitcode if bitcode.is_file() else path).read_bytes(), path)
    return list(once.values())


def _leading_out(pattern: str, root: Path) -> Path | None:
    """Return the first link of that name that leads out of the build."""
    found = (path for path in sorted(root.rglob(Path(pattern).name)) if path.is_symlink() and path.exists())
    return next((path for path in found if not path.resolve().is_relative_to(root)), None)


def _made(pattern: str, root: Path) -> str:
    """Say which libraries the build did make."""
    made = sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if _LIBRARIES.fullmatch(path.name) and path.is_file() and "CMakeFiles" not in path.parts
    )
    if not made:
        return "it made no library at all; see targets and configure"
    near = nearest(Path(pattern).name, [Path(name).name for name in made])
    meant = next((name for name in made if near and Path(name).name == near[0]), None)
    if meant:
        return f"did you mean {meant!r}?" + (f" It made: {', '.join(made[:_SHOWN])}" if len(made) > 1 else "")
    return f"it made: {', '.join(made[:_SHOWN])}{' ...' if len(made) > _SHOWN else ''}"


def collect(libraries: Sequence[Path], log: CallLog) -> Collected:
    """Return the units of `libraries`.

    Raises:
        BuildError: a member is machine code, or is not bitcode of visget's compiler.
    """
    units: list[Unit] = []
    findings: list[Finding] = []
    for library in libraries:
        name = library.relative_to(log.root).as_posix()
        for member, data in _members(library, name, log):
            unit, producer = read_unit(data, origin=member)
            units.append(replace(unit, inputs=read_inputs(producer.sources, unit, log)))
            unknown = [source for source in producer.sources if not log.of_source(source)]
            if unknown or not producer.sources:
                findings.append(_unknown(member, unknown))
    return Collected(
        units=sorted_units(units),
        findings=findings,
        files=tuple(library.relative_to(log.root).as_posix() for library in libraries),
    )


def _members(library: Path, name: str, log: CallLog) -> Iterator[tuple[str, bytes]]:
    """Yield the bitcode in a library: (``libz.a(adler32.o)``, data)."""
    data = library.read_bytes()
    kind = kind_of(data)
    if kind in ("archive", "thin archive"):
        try:
            members = read_archive(library)
        except FormatError as error:
            message = error.message.replace(f"{log.root}/", "")
            raise BuildError(message, where=name, hint="build it again from clean sources") from error
        if not members:
            raise BuildError(f"{name} is empty", where=name, hint="it has no members; see targets")
        for member in members:
            place = f"{library.name}({member.name})"
            if kind_of(member.data) != "bitcode":
                raise _native(place, member.name, kind_of(member.data), log)
            yield place, member.data
    elif kind == "bitcode":
        yield library.name, data
    elif kind.startswith("machine code"):
        beside = library.with_name(f"{library.name}.bc")
        if not beside.is_file():
            raise _native(library.name, library.name, kind, log)
        _refuse_foreign(library, log)
        _refuse_magic(library)
        yield library.name, beside.read_bytes()
    else:
        raise BuildError(
            f"{name} is neither an archive nor a shared library nor bitcode",
            where=name,
            hint="name the .a or .so file itself; a libtool .la file and a linker script only point to it",
        )


def _native(place: str, name: str, kind: str, log: CallLog) -> BuildError:
    """Return the error for what is not bitcode, with all that is known of its making."""
    calls = log.of_object(name)
    sources = sorted(
        path.relative_to(log.root).as_posix()
        for path in log.root.rglob(f"{Path(name).name.partition('.')[0]}.*")
        if path.suffix in _ASSEMBLY
    )
    if calls:
        made = f"it was made by `{calls[-1].shown(log.root)}`"
    elif sources:
        made = f"it seems to come from {sources[0]}"
    else:
        made = "none of visget's tools made it: the build called another compiler, or it lay in the sources"
    return BuildError(f"{place} is {kind or 'no bitcode'}: {made}", where=place, hint=_MACHINE_HINT)


def _refuse_foreign(library: Path, log: CallLog) -> None:
    """Refuse a shared library into which something from outside of the build was linked."""
    for call in log.of_object(library.name):
        if call.kind == "shared":
            for name in call.inputs:
                if log.relative(name).startswith("/") and not log.known(name):
                    raise BuildError(
                        f"{library.name} was linked with {name}, which is outside of the sources",
                        where=library.name,
                        hint="a library of this machine cannot travel: declare the package that has it in "
                        "[dependencies], or configure without it",
                        details={"call": call.shown(log.root)},
                    )


def _refuse_magic(library: Path) -> None:
    """Refuse a shared library whose link made something of it that its bitcode does not say."""
    try:
        facts = json.loads(library.with_name(f"{library.name}.bc.json").read_bytes())
        flags = [str(flag) for flag in facts["flags"]]
    except (OSError, ValueError, LookupError, TypeError):
        return
    words = [word for flag in flags for word in (flag.split(",")[1:] if flag.startswith("-Wl,") else [flag])]
    found = next((word for word in words if _LINKER_MAGIC.fullmatch(word)), None)
    if found is not None:
        raise BuildError(
            f"{library.name} was linked with {found}, which changes what is linked, and is lost in a package",
            where=library.name,
            hint="say the same in C (alias and constructor attributes, #define), or take the static library",
        )


def read_inputs(sources: Sequence[str], unit: Unit, log: CallLog) -> tuple[str, ...]:
    """Return every file that was read for a unit, relative to the root.

    Raises:
        BuildError: one of them lies outside of the sources and of what visget brings.
    """
    names: dict[str, None] = {}
    for source in sources:
        for name, call in log.inputs(source):
            if log.known(name):
                continue
            if name.startswith("/"):
                raise BuildError(
                    f"{source} was compiled with {name}, which is outside of the sources",
                    where=f"{source} ({unit.origin})",
                    hint="a header of this machine cannot be what others build with: take it into the sources, declare "
                    "the package that has it in [dependencies], or configure without it",
                    details={"call": call.shown(log.root)},
                )
            names[name] = None
    return tuple(names)


def _unknown(member: str, sources: Sequence[str]) -> Finding:
    made = f" ({', '.join(sources[:3])})" if sources else ""
    return Finding(
        rule="BLD-003", severity="warning", function=None, file=None, line=None,
        message=f"{member}{made} was not compiled in this build, so nobody knows from what",
        remedy="build it from its sources, and remove objects and archives that lie in them",
    )  # fmt: skip
