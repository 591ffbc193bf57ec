"""Compiling source files, several at once, to LLVM IR text.

Invariant: the result is in the order of the sources, whatever order the compilers finish in; when files fail, all of
them have been tried and all their errors are in the BuildError, as clang wrote them. No compiler outlives the call.
The command line is visget.toolchain.clang's.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from visget.errors import BuildError, UnsupportedError
from visget.progress import Progress
from visget.toolchain.clang import (
    ENVIRONMENT,
    CompileOptions,
    Frontend,
    foreign_headers,
    package_flags,
    path_flags,
    system_flags,
)
from visget.toolchain.diagnostics import advice, has_unprototyped_call, plain, without_old_definitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One compiled source file."""

    source: str
    """Its path relative to the root."""
    text: str
    """The LLVM IR, as clang wrote it."""
    warnings: str
    """What clang said, though it succeeded."""
    inputs: tuple[str, ...]
    """The source and every header it read that is not clang's or visget's; as the compiler spelled them."""
    origin: str = ""
    """Where it was found when a build system made it: ``libz.a(adler32.o)``."""
    cxx: bool = False
    """Whether it is C++."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a compiler that ran to its end said."""

    returncode: int
    stdout: str
    stderr: str


class Compilers:
    """The running compilers, so that all of them can be stopped at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(self, command: Sequence[str], *, cwd: Path, stdin: str = "") -> Ran:
        """Run `command` to its end.

        Raises:
            UnsupportedError: it cannot be started, or stop() was called.
        """
        try:
            with self._lock:
                if self._stopped:
                    raise UnsupportedError("compilation was stopped")
                process = subprocess.Popen(
                    command, cwd=cwd, env=ENVIRONMENT, text=True, encoding="utf-8", errors="replace",
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                )  # fmt: skip
                self._running.add(process)
        except OSError as error:
            raise UnsupportedError(f"the compiler {command[0]} cannot be started: {error.strerror}") from error
        try:
            stdout, stderr = process.communicate(stdin)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            with self._lock:
                self._running.discard(process)
        return Ran(returncode=process.returncode, stdout=stdout, stderr=stderr)

    def stop(self) -> None:
        """Kill every running compiler and start no more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()


def clang_command(frontend: Frontend, options: CompileOptions, root: Path, *, cxx: bool) -> list[str]:
    """Return the command line that all uses of clang have in common."""
    return [
        *frontend.command,
        *system_flags(frontend, cxx=cxx),
        *path_flags(frontend, root),
        *package_flags(options, cxx=cxx),
        *foreign_headers(options),
    ]


def compile_units(
    frontend: Frontend,
    options: CompileOptions,
    sources: Sequence[str],
    *,
    root: Path,
    jobs: int,
    progress: Progress,
    colour: bool = False,
) -> list[Unit]:
    """Compile `sources` (relative to `root`), at most `jobs` at once.

    Raises:
        BuildError: clang found errors; details has "stderr" with all of them and "files" with the failing sources.
        UnsupportedError: the compiler cannot be started.
    """
    compilers = Compilers()
    results: dict[str, Unit | str] = {}
    with tempfile.TemporaryDirectory(prefix="visget-build-") as scratch:
        pool = ThreadPoolExecutor(max_workers=max(1, jobs), thread_name_prefix="clang")
        try:
            pending: dict[Future[Unit | str], str] = {}
            for number, source in enumerate(sources):
                dependencies = Path(scratch) / f"{number}.d"
                pending[
                    pool.submit(_compile, compilers, frontend, options, source, root, dependencies, colour=colour)
                ] = source
            progress.step("compiling", done=0, total=len(sources))
            for future in as_completed(pending):
                source = pending[future]
                results[source] = future.result()
                progress.step("compiling", source, len(results), len(sources))
        except BaseException:
            compilers.stop()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    failed = {source: result for source in sources if isinstance(result := results[source], str)}
    if failed:
        raise _failure(failed)
    return [result for source in sources if isinstance(result := results[source], Unit)]


def compile_unit(frontend: Frontend, options: CompileOptions, source: str, *, root: Path) -> Unit:
    """Compile one file; the errors are those of compile_units()."""
    from visget.progress import SILENT

    return compile_units(frontend, options, [source], root=root, jobs=1, progress=SILENT)[0]


def _compile(
    compilers: Compilers,
    frontend: Frontend,
    options: CompileOptions,
    source: str,
    root: Path,
    dependencies: Path,
    *,
    colour: bool,
) -> Unit | str:
    """Return the compiled unit, or what clang said when it refused."""
    cxx = options.is_cxx(source)
    command = [
        *clang_command(frontend, options, root, cxx=cxx),
        "-fcolor-diagnostics" if colour else "-fno-color-diagnostics",
        "-gline-tables-only", "-S", "-emit-llvm", "-MD", "-MF", str(dependencies), "-MT", "unit",
        "-x", "c++" if cxx else "c", "-o", "-", f"./{source}" if source.startswith("-") else source,
    ]  # fmt: skip
    ran = compilers.run(command, cwd=root)
    if ran.returncode != 0:
        silent = f"{source}: the compiler ended with status {ran.returncode} and said nothing\n"
        return without_old_definitions(ran.stderr) or silent
    said = without_old_definitions(ran.stderr)
    if has_unprototyped_call(said):
        # For clang it is a warning, for VIS it is an error.
        return said.replace("warning: ", "error: ")
    skip = (str(frontend.library), str(Path(__file__).resolve().parent), *options.foreign)
    names = parse_dependencies(dependencies.read_text(encoding="utf-8", errors="surrogateescape"))
    inputs = tuple(name for name in names if not name.startswith(skip))
    return Unit(source=source, text=ran.stdout, warnings=said, inputs=inputs, cxx=cxx)


def parse_dependencies(text: str) -> list[str]:
    """Return the prerequisites of the one rule in `text`, which is in the syntax of make."""
    _, _, listed = text.replace("\\\n", " ").partition(": ")
    names = re.findall(r"(?:\\.|[^\s\\])+", listed)
    return [re.sub(r"\\(.)", r"\1", name).replace("$$", "$") for name in names]


def _failure(failed: dict[str, str]) -> BuildError:
    stderr = "".join(text if text.endswith("\n") else text + "\n" for text in failed.values())
    files = list(failed)
    hint = None
    if has_unprototyped_call(stderr):
        hint = "declare the called function with its parameter types: an unchecked call goes wrong on some machines"
    elif "outside VIS-1" in plain(stderr):
        hint = "packages must suit every processor: use the library's portable C code"
    elif found := advice(stderr):
        hint = found[0]
    count = f"{len(files)} files do" if len(files) > 1 else "the file does"
    where = ", ".join(files[:3]) + (" ..." if len(files) > 3 else "")
    return BuildError(f"{count} not compile", where=where, hint=hint, details={"stderr": stderr, "files": files})
