"""libc++ and libc++abi in neutral form: which sources they have, how each is compiled, and where the result lies.

Invariant: a unit's code depends on its source, ziglang's version, the compiler's and visget's own files alone, and
all of these are in the name of the directory that caches it; a damaged or half-written entry is made again. Nothing is
compiled before it is asked for. What the run-time library is, and why so, is docs/adr/0007-cxx-run-time.md.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import zstandard

from visget.digest import digest_bytes
from visget.errors import BuildError
from visget.files import atomic_write, translated
from visget.format.lines import strip_debug
from visget.format.module import BITCODE_EPOCH, parse_text, text_of
from visget.progress import Progress
from visget.toolchain.clang import (
    CXX_HEADERS,
    OVERLAY,
    CompileOptions,
    Frontend,
    package_flags,
    path_flags,
    system_flags,
)
from visget.toolchain.frontend import Compilers
from visget.toolchain.irnames import Names, names_of
from visget.toolchain.normalise import neutral_text

OWN = CXX_HEADERS.parent
"""Our own sources and headers of the run-time library."""

_ABI, _STD = "libcxxabi/src", "libcxx/src"
_FORMAT = 2


def _sources(directory: str, names: str) -> tuple[str, ...]:
    return tuple(f"{directory}/{name}.cpp" for name in names.split())


SETS: tuple[tuple[str, ...], ...] = (
    # What the language itself needs: exceptions, type information, new, static variables.
    (
        "statics.cpp",
        "locals.cpp",
        *_sources(
            _ABI,
            "abort_message cxa_aux_runtime cxa_default_handlers cxa_exception cxa_exception_storage cxa_guard"
            " cxa_handlers cxa_personality cxa_vector cxa_virtual fallback_malloc private_typeinfo stdlib_exception"
            " stdlib_new_delete stdlib_stdexcept stdlib_typeinfo",
        ),
    ),
    # Containers, strings, numbers.
    _sources(
        _STD,
        "algorithm any bind charconv error_category exception expected functional hash memory memory_resource new"
        " new_handler new_helpers optional ryu/d2fixed ryu/d2s ryu/f2s stdexcept string system_error typeinfo valarray"
        " variant vector verbose_abort",
    ),
    # Threads, time, chance.
    (
        "futex.cpp",
        *_sources(
            _STD,
            "atomic barrier call_once chrono condition_variable condition_variable_destructor future mutex"
            " mutex_destructor random random_shuffle shared_mutex thread",
        ),
    ),
    # Streams and locales.
    _sources(_STD, "fstream ios ios.instantiations iostream locale ostream print regex strstream"),
    _sources(
        _STD,
        "filesystem/directory_entry filesystem/directory_iterator filesystem/filesystem_clock"
        " filesystem/filesystem_error filesystem/int128_builtins filesystem/operations filesystem/path",
    ),
    _sources(_ABI, "cxa_demangle"),
)
"""The sources, in sets: a set is compiled when something is missing that those before it do not define."""

_FOR_SIZE = frozenset(source for sources in SETS[3:] for source in sources)
"""Much code, little of which is ever busy: every machine that installs a package compiles it."""

_OPTIONS = CompileOptions(
    cxx_standard="c++23",
    floating_point="strict",
    defines=(
        "NDEBUG", "_LIBCPP_BUILDING_LIBRARY", "_LIBCXXABI_BUILDING_LIBRARY", "LIBCXX_BUILDING_LIBCXXABI",
        "_LIBCPP_REMOVE_TRANSITIVE_INCLUDES", "LIBC_NAMESPACE=__llvm_libc_common_utils",
        # The demangler is larger than all the rest that an uncaught exception needs.
        "LIBCXXABI_NON_DEMANGLING_TERMINATE",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryUnit:
    """One compiled source of the run-time library."""

    source: str
    """Its name in SETS."""
    path: Path
    """The file of its code."""
    names: Names
    """What it defines and what each of that refers to."""

    def text(self) -> str:
        """Return its code in neutral form."""
        return zstandard.ZstdDecompressor().decompress(self.path.read_bytes()).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class CxxLibrary:
    """The run-time library of one compiler, in one cache directory."""

    frontend: Frontend
    directory: Path
    jobs: int

    def units(self, number: int, progress: Progress) -> list[LibraryUnit]:
        """Return the units of SETS[number]; compile those that are not there yet.

        Raises:
            BuildError: the compiler refuses a source, as it does when ziglang is another than visget was made for.
            ResourceError: the cache cannot be written.
        """
        sources = [source for source in SETS[number] if _path_of(self.frontend, source).is_file()]
        found = {source: unit for source in sources if (unit := self._cached(source)) is not None}
        missing = [source for source in sources if source not in found]
        if missing:
            with translated("keep the C++ run-time library", self.directory):
                self.directory.mkdir(parents=True, exist_ok=True)
            progress.step("compiling the C++ library", done=0, total=len(missing))
            compilers = Compilers()
            with ThreadPoolExecutor(max_workers=max(1, self.jobs), thread_name_prefix="libcxx") as pool:
                try:
                    compiled = pool.map(lambda source: (source, self._compile(compilers, source)), missing)
                    for count, (source, text) in enumerate(compiled, 1):
                        found[source] = self._keep(source, text)
                        progress.step("compiling the C++ library", Path(source).stem, count, len(missing))
                except BaseException:
                    compilers.stop()
                    raise
        return [found[source] for source in sources]

    def _files(self, source: str) -> tuple[Path, Path]:
        stem = source.removesuffix(".cpp").replace("/", "-")
        return self.directory / f"{stem}.ll.zst", self.directory / f"{stem}.json"

    def _cached(self, source: str) -> LibraryUnit | None:
        code, index = self._files(source)
        try:
            kept = json.loads(index.read_bytes())
            if str(digest_bytes(code.read_bytes())) != kept["sha256"]:
                return None
            return LibraryUnit(source=source, path=code, names=Names.from_json(kept["names"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or damaged: it is compiled again

    def _compile(self, compilers: Compilers, source: str) -> str:
        path = _path_of(self.frontend, source)
        size = ["-Os"] if source in _FOR_SIZE else []
        command = [*self.frontend.command, *_flags(self.frontend), *size, "-S", "-emit-llvm", "-o", "-", str(path)]
        with tempfile.TemporaryDirectory(prefix="visget-cxx-") as scratch:
            ran = compilers.run(command, cwd=Path(scratch))
        if ran.returncode != 0:
            raise BuildError(
                f"the C++ run-time library does not compile: {source}",
                hint="install the ziglang that this visget asks for: pip install 'visget[author]'",
                details={"stderr": ran.stderr},
            )
        return ran.stdout

    def _keep(self, source: str, text: str) -> LibraryUnit:
        neutral = text_of(parse_text(strip_debug(_for_modules(neutral_text(text)))))
        data = zstandard.ZstdCompressor(level=3).compress(neutral.encode())
        names = names_of(neutral)
        code, index = self._files(source)
        record = {"sha256": str(digest_bytes(data)), "names": names.as_json()}
        with translated("keep the C++ run-time library", code):
            atomic_write(code, data)
            atomic_write(index, json.dumps(record, separators=(",", ":")).encode())
        return LibraryUnit(source=source, path=code, names=names)


def open_library(frontend: Frontend, *, cache: Path, jobs: int = 1) -> CxxLibrary:
    """Return the run-time library for `frontend`, kept below the directory `cache`; this compiles nothing."""
    return CxxLibrary(frontend=frontend, directory=cache / "cxx" / _identity(frontend), jobs=jobs)


_OVERRIDABLE = re.compile(r'^(define .*) section "__lcxx_override"', re.M)
_EARLY = re.compile(r"^(@llvm\.global_ctors = .*)\{ i32 100, ", re.M)


def _for_modules(text: str) -> str:
    """Return `text` without what only an archive of object files has a use for."""
    # The streams are made ready before everything else; priorities up to 100 are not for packages.
    return _EARLY.sub(r"\1{ i32 101, ", _OVERRIDABLE.sub(r"\1", text))


def _path_of(frontend: Frontend, source: str) -> Path:
    return (frontend.library if "/" in source else OWN) / source


def _flags(frontend: Frontend) -> list[str]:
    # Ours come before libc++'s own.
    own = ["-isystem", str(OWN / "library"), "-include", str(OWN / "library" / "library.h")]
    private = [f"-I{frontend.library / _STD}", f"-I{frontend.library / 'libcxx' / 'libc'}"]
    return [
        *own[:2],
        *system_flags(frontend, cxx=True),
        *own[2:],
        *private,
        *path_flags(frontend, OWN),
        *package_flags(_OPTIONS, cxx=True),
        # It has conversions and declarations of its own that a package could be wrong with.
        "-Wno-error", "-w",
    ]


def _identity(frontend: Frontend) -> str:
    """Return a name for all that decides what the units are."""
    try:
        ziglang = importlib.metadata.version("ziglang")
    except importlib.metadata.PackageNotFoundError:
        ziglang = "unknown"
    known = (str(frontend.library), str(OWN), str(OVERLAY))
    flags = [re.sub("|".join(map(re.escape, known)), "", flag) for flag in _flags(frontend)]
    own = {
        path.relative_to(OWN.parent).as_posix(): path
        for root in (OWN, OVERLAY)
        for path in root.rglob("*")
        if path.is_file()
    }
    facts: Mapping[str, object] = {
        "format": _FORMAT,
        "epoch": BITCODE_EPOCH,
        "clang": frontend.version,
        "ziglang": ziglang,
        "flags": flags,
        "files": {name: str(digest_bytes(path.read_bytes())) for name, path in sorted(own.items())},
    }
    return str(digest_bytes(json.dumps(facts, sort_keys=True).encode()))[:32]
