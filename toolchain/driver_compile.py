"""One source file to one object of neutral bitcode, for build systems: the compiling half of ``visget cc``.

Invariant: an object is written only when the source keeps what docs/spec/front-end.md demands of every unit: the
neutral target, the errors that nobody can switch off, no header of this machine, no assembly. The command line is
visget.toolchain.clang's with the caller's flags in it; clang's own environment is the fixed one.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from visget.errors import BuildError, UnsupportedError
from visget.toolchain.clang import (
    ENVIRONMENT,
    OVERLAY,
    CompileOptions,
    Frontend,
    package_flags,
    path_flags,
    system_flags,
)
from visget.toolchain.driver_args import Command, Input
from visget.toolchain.driver_flags import is_system_header_directory


class Setting(NamedTuple):
    """What a compilation is told besides its command line."""

    frontend: Frontend
    root: str
    """The directory to which paths in objects are relative."""
    extra: tuple[str, ...]
    """Flags that come after the caller's."""
    scratch: str
    """A private directory for this call."""
    colour: bool = False


class Compiled(NamedTuple):
    """What clang did."""

    status: int
    said: bytes
    """What belongs on standard error."""
    headers: tuple[str, ...] = ()
    """The headers that were read and are neither clang's nor visget's; as the compiler spelled them."""


def ziglang() -> Frontend:
    """Return ziglang's clang without running it; which LLVM it is, visget's own requirements say.

    Raises:
        UnsupportedError: it is not installed.
    """
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise UnsupportedError("compiling needs ziglang", hint="install it with: pip install 'visget[author]'")
    home = Path(next(iter(spec.submodule_search_locations)))
    return Frontend(command=(str(home / "zig"), "clang"), version="", library=home / "lib")


def clang_flags(setting: Setting, command: Command, source: Input) -> list[str]:
    """Return clang's command up to the output and the input."""
    cxx = source.language.startswith("c++")
    flags = [
        *setting.frontend.command, *system_flags(setting.frontend, cxx=cxx),
        *path_flags(setting.frontend, Path(setting.root)), *_directory(setting.root),
        "-ffp-contract=on", "-fno-strict-float-cast-overflow",
    ]  # fmt: skip
    # -w would also switch off the warnings that are errors here.
    flags += ["-Wno-everything" if flag == "-w" else flag for flag in command.flags]
    flags += [*setting.extra, "-Wno-unused-command-line-argument", "-Wdeprecated-non-prototype"]
    flags += [flag for flag in package_flags(CompileOptions(), cxx=cxx) if flag.startswith("-Werror=")]
    return [*flags, "-Wno-error=deprecated-non-prototype", *["-fcolor-diagnostics"] * setting.colour]


def _directory(root: str) -> list[str]:
    """Return the flags by which an object tells from where in `root` its sources are named."""
    here = os.getcwd()  # noqa: PTH109 - as the caller sees it
    if not f"{here}/".startswith(f"{root}/"):
        return []
    return [f"-ffile-prefix-map={root}=.", f"-fdebug-compilation-dir={here}"]


def compile_source(setting: Setting, command: Command, source: Input, output: str, *, text: bool = False) -> Compiled:
    """Compile `source` to the object `output`, or to LLVM IR text when `text`.

    Raises:
        BuildError: it is assembly, or in a language that is not C or C++.
        UnsupportedError: clang cannot be started.
    """
    if source.language == "assembly":
        return _compile_assembly(setting, command, source, output, text=text)
    if source.language not in ("c", "c++", "cpp-output", "c++-cpp-output"):
        raise BuildError(f"{source.path} is not C or C++ ({source.language})", where=source.path)
    headers = f"{setting.scratch}/headers"
    flags = clang_flags(setting, command, source)
    given = sys.stdin.buffer.read() if source.path == "-" else None
    form = ["-S" if text else "-c", "-emit-llvm", "-gline-tables-only", "-o", output]
    form += ["-x", source.language, source.path]
    ran = run([*flags, *form], given, headers)
    said = ran.stderr.decode("utf-8", "replace") if ran.stderr else ""
    if "without a prototype" in said:
        from visget.toolchain.diagnostics import has_unprototyped_call, without_old_definitions

        said = without_old_definitions(said)
        if ran.returncode == 0 and has_unprototyped_call(said):
            # For clang it is a warning, for VIS it is an error.
            _remove(output)
            return Compiled(1, said.replace("warning: ", "error: ").encode())
    if ran.returncode != 0:
        from visget.toolchain.driver_asm import tells_of_machine_code

        if tells_of_machine_code(said):
            said += f"visget: hint: {_remedy(source.path, setting.root)}\n"
        said += _leak(user_headers(headers, setting), source.path) or ""
        if " undeclared " in said:
            from visget.toolchain.diagnostics import advice

            said += "".join(f"visget: hint: {line}\n" for line in advice(said))
        return Compiled(ran.returncode, said.encode())
    read = user_headers(headers, setting)
    problem = _leak(read, source.path) or _assembly(setting, [*flags, *form], given, [source.path, *read], source.path)
    if problem is not None:
        _remove(output)
        return Compiled(1, said.encode() + problem.encode(), read)
    return Compiled(0, said.encode(), read)


def _compile_assembly(setting: Setting, command: Command, source: Input, output: str, *, text: bool) -> Compiled:
    """Write an empty object for an assembly file that has nothing to say without a processor; refuse any other."""
    from visget.toolchain.driver_asm import is_empty_assembly

    flags = _without_prefix(clang_flags(setting, command, source))
    ran = subprocess.run(
        [*flags, "-E", "-x", "assembler-with-cpp", source.path], env=dict(ENVIRONMENT), stdin=subprocess.DEVNULL,
        capture_output=True, check=False,
    )  # fmt: skip
    if ran.returncode != 0 or not is_empty_assembly(ran.stdout.decode("utf-8", "replace")):
        raise assembly_error(source.path, setting.root)
    form = ["-S" if text else "-c", "-emit-llvm", "-o", output, "-x", "c", "-"]
    made = run([*_without_dependencies(clang_flags(setting, command, source)), *form], b"")
    return Compiled(made.returncode, made.stderr)


def _without_prefix(flags: list[str]) -> list[str]:
    """Return `flags` without visget's own header, whose declarations mean nothing to an assembler."""
    place = flags.index(str(OVERLAY / "vis_prefix.h"))
    return [*flags[: place - 1], *flags[place + 1 :]]


def pass_through(setting: Setting, command: Command, source: Input, output: str | None) -> int:
    """Preprocess `source`, or only check it; everything goes where clang writes it. Return the exit status."""
    flags = clang_flags(setting, command, source)
    if source.language == "assembly":
        flags = _without_prefix(flags)
    given = sys.stdin.buffer.read() if source.path == "-" else None
    where = ["-o", output] if output is not None else []
    language = "assembler-with-cpp" if source.language == "assembly" else source.language
    known = ["-x", language] if language != "object" else []
    headers = f"{setting.scratch}/headers"
    ran = run([*flags, *where, *known, source.path], given, headers, capture=False)
    problem = _leak(user_headers(headers, setting), source.path)
    if problem is not None:
        sys.stderr.write(problem)
    return ran.returncode if problem is None else 1


def run(
    command: Sequence[str], given: bytes | None, headers: str | None = None, *, capture: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Run clang in the fixed environment; it lists the headers that it reads in the file `headers`."""
    environment = dict(ENVIRONMENT)
    if headers is not None:
        environment |= {"CC_PRINT_HEADERS": "1", "CC_PRINT_HEADERS_FILE": headers}
    source: dict[str, object] = {"stdin": subprocess.DEVNULL} if given is None else {"input": given}
    try:
        return subprocess.run(  # type: ignore[call-overload,no-any-return]
            command, env=environment, check=False, stderr=subprocess.PIPE if capture else None, **source
        )
    except OSError as error:
        raise UnsupportedError(f"the compiler {command[0]} cannot be started: {error.strerror}") from error


def user_headers(listed: str, setting: Setting) -> tuple[str, ...]:
    """Return the headers in clang's list `listed` that are neither clang's nor visget's; each once."""
    try:
        names = Path(listed).read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    except FileNotFoundError:
        return ()
    own = (f"{setting.frontend.library}/", f"{OVERLAY.parent}/")
    return tuple(dict.fromkeys(name for name in names if name and not name.startswith(own)))


def _leak(headers: Iterable[str], source: str) -> str | None:
    """Return the error about the first header of this machine among `headers`."""
    for header in headers:
        if is_system_header_directory(str(_absolute(header).parent)):
            return (
                f"{source}: error: {header} is a header of this machine; objects here are for every machine\n"
                "visget: hint: include it without a path, or declare its library under [dependencies] of visget.toml\n"
            )
    return None


def _assembly(
    setting: Setting, command: list[str], given: bytes | None, files: Iterable[str], source: str
) -> str | None:
    """Return the errors about assembly in `source`; clang is asked again only when one of `files` has the word."""
    contents = (given if name == "-" and given is not None else _content(name) for name in files)
    held = [content for content in contents if b"asm" in content]
    if not held:
        return None
    from visget.toolchain.driver_asm import assembly_sites, may_hold_assembly

    if not any(may_hold_assembly(content) for content in held):
        return None
    listing = f"{setting.scratch}/unit.ll"
    again = list(command)
    again[again.index("-o") + 1] = listing
    again = ["-S" if word == "-c" else word for word in again]
    # The caller's own dependency file has been written by the first run.
    if run(_without_dependencies(again), given).returncode != 0:
        return None
    found = assembly_sites(Path(listing).read_text(encoding="utf-8", errors="surrogateescape"), source)
    if not found:
        return None
    lines = "".join(f"{place}: error: inline assembly {shown!r}\n" for place, shown in found)
    return f"{lines}visget: hint: {_remedy(source, setting.root)}\n"


def _without_dependencies(command: list[str]) -> list[str]:
    unwanted = ("-MD", "-MMD", "-MP", "-MG")
    kept = [
        word
        for word in command
        if word not in unwanted and not (len(word) > 3 and word.startswith(("-MF", "-MT", "-MQ", "-Wp,-M")))
    ]
    for flag in ("-MF", "-MT", "-MQ"):
        while flag in kept:
            place = kept.index(flag)
            del kept[place : place + 2]
    return kept


def assembly_error(source: str, root: str) -> BuildError:
    """Return the error about the assembly file `source`."""
    return BuildError(
        f"{source} is assembly, which is for one kind of CPU; objects here suit every CPU",
        where=f"{source}:1",
        hint=_remedy(source, root),
    )


def _remedy(source: str, root: str) -> str:
    from visget.toolchain.portable_switches import remedy

    return remedy(str(_absolute(source)), root)


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed: the name is what counts


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _remove(path: str) -> None:
    if Path(path).is_file():  # and not /dev/null
        Path(path).unlink()
