"""The compiler wrappers: ``visget-cc``, ``visget-c++``, ``visget-ar``, ``visget-ranlib``, ``visget-nm``.

Objects are neutral bitcode, programs are native: with these in the place of the system's tools, any build system
yields what a package is made of, while its configure tests, code generators and test programs run.

Invariant: a call that only compiles loads neither LLVM's library nor the command line's (tests hold it to that), for
a build makes thousands of them. Guide: docs/guides/building.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from visget.errors import BuildError, VisgetError
from visget.toolchain.clang import ENVIRONMENT, Frontend, find_frontend
from visget.toolchain.driver_args import Command, Input, parse
from visget.toolchain.driver_compile import Setting, compile_source, pass_through, run, ziglang
from visget.version import __version__
from visget.wrap_log import Call, append
from visget.wrap_settings import WrapSettings, read_wrap_settings

FAILED = 1
"""The exit status for every refusal, as compilers have it."""

_KINDS = {"compile": "object", "ir": "ir", "check": "check", "preprocess": "preprocess", "query": "query"}
_TARGET_QUERIES = frozenset(["-dumpmachine", "-print-target-triple", "-print-multiarch", "--print-target-triple",
                             "--print-multiarch", "-print-effective-triple"])  # fmt: skip


def cc() -> None:
    """Run ``visget-cc``."""
    _exit("cc")


def cxx() -> None:
    """Run ``visget-c++``."""
    _exit("c++")


def ar() -> None:
    """Run ``visget-ar``."""
    _exit("ar")


def ranlib() -> None:
    """Run ``visget-ranlib``."""
    _exit("ranlib")


def nm() -> None:
    """Run ``visget-nm``."""
    _exit("nm")


def _exit(tool: str) -> None:
    sys.exit(main(tool, sys.argv[1:]))


def main(tool: str, arguments: Sequence[str]) -> int:
    """Run `tool` and return its exit status."""
    settings = read_wrap_settings()
    runner: Callable[[str, Sequence[str], WrapSettings], Call] = _compiler if tool in ("cc", "c++") else _archiver
    if tool == "nm":
        from visget.wrap_nm import list_symbols

        runner = list_symbols
    try:
        call = runner(tool, arguments, settings)
    except VisgetError as error:
        text = "\n".join(f"visget-{tool}: error: {line}" for line in error.message.split("\n"))
        sys.stderr.write(f"{text}\n" + (f"visget-{tool}: hint: {error.hint}\n" if error.hint else ""))
        call = Call(tool=tool, argv=tuple(arguments), kind="refused", status=FAILED)
    except BrokenPipeError:
        return FAILED
    except KeyboardInterrupt:
        return 130
    append(settings.log, call)
    return call.status


def _frontend(settings: WrapSettings) -> Frontend:
    """Return the compiler; ziglang's own is not asked for its version each time, the package pins it."""
    if settings.cc is not None:
        from visget.format.profile import BITCODE_EPOCH

        return find_frontend(settings.cc, epoch=BITCODE_EPOCH)
    return ziglang()


def _compiler(tool: str, arguments: Sequence[str], settings: WrapSettings) -> Call:
    command = parse(arguments, cxx=tool == "c++")
    for note in command.notes:
        _note(tool, note, settings)
    if command.mode == "query" or not command.inputs:
        status = _query(command, settings)
        return Call(tool=tool, argv=tuple(arguments), kind="query", status=status)
    scratch = _scratch(settings)
    try:
        setting = Setting(
            frontend=_frontend(settings),
            root=settings.root or str(Path.cwd()),
            extra=settings.flags,
            scratch=str(scratch),
            colour=sys.stderr.isatty(),
        )
        return _run(tool, arguments, command, setting, settings)
    finally:
        _remove(scratch)


def _run(tool: str, arguments: Sequence[str], command: Command, setting: Setting, settings: WrapSettings) -> Call:
    sources = [(place, item) for place, item in enumerate(command.items) if item.kind == "input"]
    files = [(place, Input(item.text, item.language)) for place, item in sources if item.language != "object"]
    inputs = tuple(source.path for _, source in files)
    if command.mode == "preprocess":
        # Every file counts as a source: configure scripts preprocess files without any ending.
        for _, item in sources:
            source = Input(item.text, _source_language(tool, item.language))
            status = pass_through(setting, command, source, command.output)
            if status != 0:
                break
        return Call(tool=tool, argv=tuple(arguments), kind="preprocess", inputs=inputs, status=status)
    if command.mode in ("compile", "ir", "check"):
        return _compile(tool, arguments, command, setting, [source for _, source in files])
    compiled: dict[int, str] = {}
    headers: tuple[str, ...] = ()
    for number, (place, source) in enumerate(files):
        output = f"{setting.scratch}/{number}-{Path(source.path).stem}.o"
        done = compile_source(setting, command, source, output)
        sys.stderr.buffer.write(done.said)
        headers += done.headers
        if done.status != 0:
            return Call(tool=tool, argv=tuple(arguments), kind="refused", inputs=inputs, status=done.status)
        compiled[place] = output
    sys.stderr.flush()
    from visget.wrap_link import link  # only a link needs more than clang

    status = link(command, settings, compiled, Path(setting.scratch))
    kind = "relocatable" if command.has("-r") else "shared" if command.has("-shared") else "program"
    return Call(
        tool=tool, argv=tuple(arguments), kind=kind, inputs=tuple(item.text for _, item in sources),
        output=command.output or "a.out", status=status, dropped=command.dropped, headers=headers,
    )  # fmt: skip


def _source_language(tool: str, language: str) -> str:
    return {"object": "c++" if tool == "c++" else "c"}.get(language, language)


def _compile(
    tool: str, arguments: Sequence[str], command: Command, setting: Setting, sources: Sequence[Input]
) -> Call:
    if command.output is not None and len(sources) > 1:
        raise BuildError("cannot specify -o when generating multiple output files")
    if not sources:
        raise BuildError("no input files")
    status, output = 0, command.output
    headers: tuple[str, ...] = ()
    for source in sources:
        if command.mode == "check":
            status = pass_through(setting, command, source, None) or status
            continue
        if command.output is None:
            # A compiler writes x.o into the current directory; autoconf learns the ending of objects from it.
            stem = "-" if source.path == "-" else Path(source.path).stem
            output = f"{stem}{'.s' if command.mode == 'ir' else '.o'}"
        done = compile_source(setting, command, source, output or "-", text=command.mode == "ir")
        sys.stderr.buffer.write(done.said)
        headers += done.headers
        status = done.status or status
    return Call(
        tool=tool, argv=tuple(arguments), kind=_KINDS[command.mode], inputs=tuple(source.path for source in sources),
        output=output, status=status, dropped=command.dropped, headers=headers,
    )  # fmt: skip


def _query(command: Command, settings: WrapSettings) -> int:
    """Answer a question about the compiler, or pass it to the program that knows the answer."""
    asked = command.query
    if any(query in _TARGET_QUERIES for query in asked):
        from visget.wrap_lower import build_target

        print(build_target(command.target or settings.target).triple)  # noqa: T201 - a compiler's answer
        return 0
    words = [item.text for item in command.items if item.kind == "flag"]
    if not asked and words:
        # -Wl,--version: Meson and libtool ask which linker there is.
        from visget.wrap_link import native_linker, run_linker
        from visget.wrap_lower import build_target

        linker, environment = native_linker(build_target(command.target or settings.target), settings)
        return run_linker([*linker, *words, *["-v"] * ("-v" in command.flags)], environment)
    if not asked and "-v" not in command.flags:
        raise BuildError("no input files")
    frontend = _frontend(settings)
    if "--version" in asked or "-v" in command.flags:
        return _version(frontend, command, settings, sys.stdout if "--version" in asked else sys.stderr)
    known = [query for query in asked if query not in ("-V", "-qversion", "-version")]
    if len(known) < len(asked):
        raise BuildError(f"unknown argument: '{asked[0]}'")
    ran = run([*frontend.command, "--no-default-config", *known], None, capture=False)
    return ran.returncode


def _version(frontend: Frontend, command: Command, settings: WrapSettings, stream: object) -> int:
    import subprocess

    from visget.wrap_lower import build_target

    done = subprocess.run(
        [*frontend.command, "--version"], env=ENVIRONMENT, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    first = done.stdout.partition("\n")[0]
    target = build_target(command.target or settings.target)
    stream.write(  # type: ignore[attr-defined]
        f"{first} (visget {__version__})\nTarget: {target.triple}\nThread model: posix\n"
        "Objects: neutral bitcode, programs: native\n"
    )
    return done.returncode


def _archiver(tool: str, arguments: Sequence[str], settings: WrapSettings) -> Call:
    """Run LLVM's ar or ranlib, which know how to index bitcode."""
    frontend = ziglang()
    status = run([frontend.command[0], tool, *arguments], None, capture=False).returncode
    files = [word for word in arguments if not word.startswith("-")]
    output, inputs = (files[1], files[2:]) if tool == "ar" and len(files) > 1 else (files[0] if files else None, [])
    if tool == "ar" and arguments and arguments[0].startswith("-") and files:
        output, inputs = files[0], files[1:]
    return Call(
        tool=tool, argv=tuple(arguments), kind="archive", inputs=tuple(inputs), output=output, status=status
    )


def _note(tool: str, note: str, settings: WrapSettings) -> None:
    """Write `note` to standard error; where there is a log, once in a build and not once in a file."""
    if settings.log is not None:
        import hashlib

        name = hashlib.sha256(note.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        try:
            os.close(os.open(f"{settings.log}/note-{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        except OSError:
            return
    sys.stderr.write(f"visget-{tool}: note: {note}\n")


def _scratch(settings: WrapSettings) -> Path:
    """Make a directory that only this user can enter; without tempfile, which takes long to load."""
    path = Path(settings.scratch, f"visget-cc-{os.urandom(12).hex()}")
    try:
        path.mkdir(mode=0o700)
    except OSError as error:
        raise BuildError(
            f"cannot make a temporary directory in {settings.scratch}: {error.strerror}", hint="set TMPDIR"
        ) from error
    return path


def _remove(directory: Path) -> None:
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            _remove(entry)
        else:
            entry.unlink()
    directory.rmdir()
