"""compile_commands.json: the compilations that another build system would make, made with visget's compiler.

Invariant: the commands decide about macros, directories and dialects, the compiler wrappers about everything else,
exactly as when a build system calls them. The spec is docs/spec/front-end.md, section 10.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sysconfig
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from visget.errors import BuildError, UnsupportedError, UsageError
from visget.nearest import nearest
from visget.progress import Progress
from visget.toolchain.bitcode_units import read_unit, sorted_units
from visget.toolchain.buildrun import stop_group
from visget.toolchain.buildsystem import own_places, shared_flags, wrapper_flags
from visget.toolchain.buildtools import Workplace, environment
from visget.toolchain.calls import CallLog, read_calls
from visget.toolchain.clang import CXX_SUFFIXES, Frontend
from visget.toolchain.frontend import Unit
from visget.toolchain.inputs import Given, Inputs, compile_options, given_headers, public_headers
from visget.toolchain.members import read_inputs
from visget.toolchain.project import Project

_LIMIT = 256 << 20
_NOWHERE = re.compile("[\0\ud800-\udfff]")  # what JSON can say, and no name of a file and no argument can have
_SKIPPED = frozenset([".s", ".S", ".asm", ".rc", ".f", ".f90", ".F", ".F90", ".cu", ".m", ".mm", ".swift"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One compilation."""

    directory: Path
    file: str
    """The source, absolute."""
    arguments: tuple[str, ...]
    """Of the compiler, without the compiler's name, the source and the output."""
    output: str
    """What the build calls the object; empty when it does not say."""

    @property
    def cxx(self) -> bool:
        """Whether it is C++."""
        return Path(self.file).suffix in CXX_SUFFIXES


def read_database(path: Path) -> tuple[Entry, ...]:
    """Return the compilations in the file `path`, equal ones once.

    Raises:
        UsageError: it cannot be read, or is no such file.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the compilation database: {error.strerror}", where=str(path)) from error
    hint = "CMake writes it with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON, Meson always, others with the tool bear"
    try:
        listed = json.loads(data[:_LIMIT])
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the compilation database is not JSON: {error}", where=str(path), hint=hint) from error
    if not isinstance(listed, list) or not listed:
        raise UsageError("the compilation database is not a list of commands", where=str(path), hint=hint)
    entries: dict[Entry, None] = {}
    for number, item in enumerate(listed, 1):
        entries[_entry(item, path, number)] = None
    return tuple(entries)


def _entry(item: object, path: Path, number: int) -> Entry:
    wrong = UsageError(f"entry {number} of the compilation database has another form", where=str(path))
    if not isinstance(item, dict):
        raise wrong
    directory, file, output = item.get("directory"), item.get("file"), item.get("output", "")
    words = item.get("arguments")
    if words is None and isinstance(item.get("command"), str):
        try:
            words = shlex.split(item["command"])
        except ValueError:
            raise wrong from None
    if (
        not isinstance(directory, str) or not isinstance(file, str) or not isinstance(output, str)
        or not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words)
        or any(_NOWHERE.search(text) for text in (directory, file, output, *words))
    ):  # fmt: skip
        raise wrong
    base = path.parent / directory
    arguments: list[str] = []
    rest = iter(_without_launcher(words))
    for word in rest:
        if word == "-o":
            output = output or next(rest, "")
        elif word.startswith("-o") and len(word) > 2:
            output = output or word[2:]
        elif word != "-c" and word != file and (base / word).resolve() != (base / file).resolve():
            arguments.append(word)
    return Entry(
        directory=base, file=str((base / file).resolve()), arguments=tuple(arguments), output=output
    )


def _without_launcher(words: Sequence[str]) -> Sequence[str]:
    """Return the arguments behind the compiler, which may have a launcher such as ccache before it."""
    count = 2 if Path(words[0]).name in ("ccache", "sccache", "distcc", "icecc") else 1
    return words[count:]


def chosen(project: Project, entries: Sequence[Entry], path: Path) -> list[Entry]:
    """Return the entries whose output or source [build] library names; all when it names none.

    Raises:
        UsageError: a pattern matches nothing.
    """
    patterns = project.build.library
    known = [entry for entry in entries if Path(entry.file).suffix not in _SKIPPED]
    if not patterns:
        return known
    names = {entry: (entry.output, Path(entry.file).name) for entry in known}
    found: dict[Entry, None] = {}
    for pattern in patterns:
        matching = [entry for entry in known if any(fnmatchcase(name, pattern) for name in names[entry])]
        if not matching:
            outputs = [entry.output or Path(entry.file).name for entry in known]
            near = nearest(pattern, outputs)
            raise project.wrong(
                ("build", "library"), f"{pattern!r} matches no output and no source of {path.name}",
                f"did you mean {near[0]!r}?" if near else f"it has {', '.join(outputs[:6])} ...",
            )  # fmt: skip
        found |= dict.fromkeys(matching)
    return list(found)


def from_database(
    project: Project,
    frontend: Frontend,
    root: Path,
    *,
    given: Given,
    cc: str | None,
    jobs: int,
    cache: Path,
    prefix: Path | None,
    progress: Progress,
) -> Inputs:
    """Compile what the compilation database of `given` lists.

    Raises:
        BuildError: a source does not compile, or reads a file outside of `root`.
        UsageError: the database or a public header is not what it should be.
        UnsupportedError: the compiler wrappers are not installed.
    """
    path = (given.database or Path("compile_commands.json")).resolve()
    entries = chosen(project, read_database(path), path)
    outside = next((entry.file for entry in entries if not entry.file.startswith(f"{root}/")), None)
    if outside is not None:
        raise UsageError(
            f"{outside} is outside of the project", where=str(path),
            hint=f"the sources have to lie in {root}, the directory of visget.toml",
        )  # fmt: skip
    options = compile_options(project.build)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="visget-entries-", dir=cache) as name:
        scratch = Path(name).resolve()
        place = Workplace(root=root, scratch=scratch, directory=root, prefix=prefix)
        for made in ("home", "tmp", "tools", "calls"):
            (scratch / made).mkdir()
        beside = Path(sysconfig.get_path("scripts"))
        surroundings = environment(place, beside, wrapper_flags(options, root, prefix), cc=cc, cache=cache)
        objects = _compile(entries, scratch, beside, surroundings, jobs, progress)
        log = CallLog(read_calls(place.log), root, own_places(frontend, place))
        units = [_unit(entry, objects[entry], root, log) for entry in entries]
    header_root, public = given_headers(given, root) if given.headers else (root, None)
    include = tuple(dict.fromkeys([*project.build.include, *_directories(entries, root)]))
    if header_root != root:
        raise UsageError("the public headers are outside of the project", where=str(given.headers[0]))
    return Inputs(
        root=root,
        units=sorted_units(units),
        options=replace(options, include=include),
        public=public_headers(project, root, include) if public is None else public,
        producer=f"clang {frontend.version}",
        flags=("system=compile_commands.json", *shared_flags(options, units)),
        hidden=(str(root), str(scratch)),
    )


def _directories(entries: Sequence[Entry], root: Path) -> list[str]:
    """Return the directories of headers that the commands name, inside of `root`."""
    found: dict[str, None] = {}
    for entry in entries:
        words = iter(entry.arguments)
        for word in words:
            if word.startswith("-I"):
                real = (entry.directory / (word[2:] or next(words, "."))).resolve()
                if real.is_relative_to(root) and real.is_dir():
                    found[real.relative_to(root).as_posix()] = None
    return list(found)


def _unit(entry: Entry, data: bytes, root: Path, log: CallLog) -> Unit:
    source = Path(entry.file).relative_to(root).as_posix()
    unit, producer = read_unit(data, origin=entry.output or source)
    return replace(unit, inputs=read_inputs(producer.sources, unit, log))


def _compile(
    entries: Sequence[Entry],
    scratch: Path,
    beside: Path,
    surroundings: dict[str, str],
    jobs: int,
    progress: Progress,
) -> dict[Entry, bytes]:
    """Return the object of each entry."""
    done: dict[Entry, bytes | str] = {}
    running = _Running()
    pool = ThreadPoolExecutor(max_workers=max(1, jobs), thread_name_prefix="entry")
    try:
        pending: dict[Future[bytes | str], Entry] = {}
        for number, entry in enumerate(entries):
            tool = beside / ("visget-c++" if entry.cxx else "visget-cc")
            target = scratch / f"{number}.o"
            command = [str(tool), *entry.arguments, "-c", entry.file, "-o", str(target)]
            pending[pool.submit(running.run, command, entry, surroundings, target)] = entry
        progress.step("compiling", done=0, total=len(entries))
        for future in as_completed(pending):
            done[pending[future]] = future.result()
            progress.step("compiling", Path(pending[future].file).name, len(done), len(entries))
    except BaseException:
        running.stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    failed = {entry.file: said for entry in entries if isinstance(said := done[entry], str)}
    if failed:
        stderr = "".join(failed.values())
        raise BuildError(
            f"{len(failed)} files do not compile" if len(failed) > 1 else "the file does not compile",
            where=", ".join(list(failed)[:3]), details={"stderr": stderr, "files": list(failed)},
        )  # fmt: skip
    return {entry: data for entry, data in done.items() if isinstance(data, bytes)}


class _Running:
    """The compilers that run, so that all can be stopped at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, command: Sequence[str], entry: Entry, surroundings: dict[str, str], target: Path) -> bytes | str:
        """Return the object, or what the compiler said when it refused."""
        try:
            with self._lock:
                if self._stopped:
                    raise UnsupportedError("compilation was stopped")
                process = subprocess.Popen(
                    command, cwd=entry.directory, env=surroundings, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
                self._processes.add(process)
        except FileNotFoundError as error:
            if not entry.directory.is_dir():
                raise UsageError(
                    "the compilation database names a directory that is not there", where=str(entry.directory),
                    hint="run its build system first: sources that it generates are needed, too",
                ) from error  # fmt: skip
            raise UnsupportedError(
                f"{command[0]} is not installed", hint="install visget again: pip install 'visget[author]'"
            ) from error
        said, _ = process.communicate()
        with self._lock:
            self._processes.discard(process)
        text = said.decode("utf-8", "replace")
        if process.returncode != 0 or not target.is_file():
            return text or f"{entry.file}: the compiler ended with status {process.returncode} and said nothing\n"
        return target.read_bytes()

    def stop(self) -> None:
        """End all compilers and start no more."""
        with self._lock:
            self._stopped = True
            running = list(self._processes)
        for process in running:
            stop_group(process)
