"""Public suites of C programs: which there are, from where they come, and the programs in them.

The sources are fetched by name, version and digest with the product's own code, and are no part of this repository.
A program is what one compiler command makes: its sources, its flags, its arguments. The directives of DejaGnu in the
comments of gcc's programs are understood as far as they decide that.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from visget.digest import parse_digest
from visget.download import NetworkOptions
from visget.progress import SILENT
from visget.toolchain.fetch import fetch_archives
from visget.toolchain.origin import DebianSource

CACHE = Path(os.environ.get("VISGET_TEST_CACHE", "/tmp")) / f"visget-test-suites-{os.getuid()}"
GCC = DebianSource(
    name="gcc-14",
    version="14.2.0-19",
    sha256=parse_digest("7db1e202cce66617e9134a662c877a3a773de5b612fd52179815877e0ecfb847"),
)
TCC = DebianSource(
    name="tcc",
    version="0.9.27+git20200814.62c30a4a-1",
    sha256=parse_digest("3d211ea8e260e6b846c9a085ea43229c48b20871be7a7ad8f520b2d345587cfd"),
)

_GCC_TESTS = "gcc/testsuite"
_TORTURE = f"{_GCC_TESTS}/gcc.c-torture/execute"
_DG = (f"{_GCC_TESTS}/gcc.dg/torture", f"{_GCC_TESTS}/c-c++-common/torture", f"{_GCC_TESTS}/gcc.dg/atomic")
_TESTS2 = "tests/tests2"

_RUN = re.compile(r"dg-do\s+run\b")
_OPTIONS = re.compile(
    r"dg-(?:additional-)?options\s+(?:\"([^\"]*)\"|\{\s*\"([^\"]*)\"\s*\})\s*(\{\s*target\s+(?P<to>\S+))?"
)
_SOURCES = re.compile(r"dg-additional-sources\s+\"?([^\"}]*)\"?")
# The flags that say something about the program, and not about gcc's optimiser or one processor.
_FLAG = re.compile(
    r"-std=\S+|-[DU]\w+(?:=\S*)?|-pthread|-pedantic-errors|-f(?:no-)?(?:wrapv|gnu89-inline|strict-aliasing|strict-overflow"
    r"|fast-math|common|builtin\S*|trapv|non-call-exceptions|delete-null-pointer-checks|math-errno|rounding-math"
    r"|signaling-nans|permissive|input-charset=\S+|short-enums|gimple|instrument-functions|inline|strub=\S+|openmp)"
)
_ARGUMENTS = {"31_args": ("arg1", "arg2", "arg3", "arg4", "arg5")}


INVALID = {
    "frame-address": "compares the frame addresses of two functions, which inlining changes",
    "pr68264": "expects errno of mathematical functions, though math_errhandling lacks MATH_ERRNO (VIS-511 warns)",
}
"""Programs that do not say what they mean to say, by name, with the reason; they count as skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program of a suite."""

    suite: str
    name: str
    sources: tuple[Path, ...]
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    checks_itself: bool = True
    """Whether it ends with 0 when all is well; otherwise its output tells."""


def tcc_programs(network: NetworkOptions | None = None) -> list[Program]:
    """Return the programs of tcc's own tests, most of which c-testsuite has taken over.

    Raises:
        NetworkError, NotFoundError, UnsupportedError: they cannot be fetched.
    """
    root = _tree(TCC, (_TESTS2,), network) / _TESTS2
    found = []
    for path in sorted(root.glob("[0-9]*_*.c")):
        # 60 and 96 are many programs for tcc's own switch -dt; 104+ belongs to 104.
        if not path.with_suffix(".expect").is_file() or path.stem in ("60_errors_and_warnings", "96_nodata_wanted"):
            continue
        more = tuple(root.glob(f"{path.stem[:3]}+*.c")) if path.stem.startswith("104") else ()
        arguments = _ARGUMENTS.get(path.stem, ())
        if path.stem == "46_grep":
            arguments = (r"[^* ]*[:a:d: ]+\:\*-/: $", str(path))
        found.append(
            Program(suite="tcc tests2", name=path.stem, sources=(path, *more), arguments=arguments,
                    flags=("-fdollars-in-identifiers",) if path.stem.startswith("76") else (), checks_itself=False)
        )  # fmt: skip
    return found


def gcc_programs(network: NetworkOptions | None = None) -> list[Program]:
    """Return the programs of gcc's suites that run: c-torture (with ieee and builtins), and dg's torture and atomic.

    Raises:
        NetworkError, NotFoundError, UnsupportedError: they cannot be fetched.
    """
    root = _tree(GCC, (_TORTURE, *_DG), network)
    execute = root / _TORTURE
    found = [_dg("c-torture execute", path) for path in sorted(execute.glob("*.c"))]
    found += [_dg("c-torture ieee", path, "-fno-inline") for path in sorted((execute / "ieee").glob("*.c"))]
    builtins = execute / "builtins"
    for path in sorted(builtins.glob("*.c")):
        library = path.with_name(f"{path.stem}-lib.c")
        if not path.stem.endswith("-lib"):
            found.append(_dg("c-torture builtins", path, more=(library, builtins / "lib" / "main.c")))
    for place in _DG:
        suite = "dg atomic" if place.endswith("atomic") else "dg torture"
        found += [_dg(suite, path) for path in sorted((root / place).glob("*.c")) if _RUN.search(_text(path))]
    return found


def all_programs(network: NetworkOptions | None = None) -> list[Program]:
    """Return the programs of all suites."""
    return [*tcc_programs(network), *gcc_programs(network)]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _dg(suite: str, path: Path, *flags: str, more: tuple[Path, ...] = ()) -> Program:
    text = _text(path)
    given = list(flags)
    for match in _OPTIONS.finditer(text):
        if match["to"] in (None, "c"):
            given += (match[1] or match[2] or "").split()
    added = [path.parent / name for match in _SOURCES.finditer(text) for name in match[1].split()]
    kept = tuple(dict.fromkeys(flag for flag in given if _FLAG.fullmatch(flag)))
    return Program(suite=suite, name=path.stem, sources=(path, *more, *added), flags=kept)


def _tree(source: DebianSource, wanted: tuple[str, ...], network: NetworkOptions | None) -> Path:
    """Return the directory with the `wanted` parts of the source package, unpacked once."""
    root = CACHE / f"{source.name}-{source.version}-{source.sha256[:12]}"
    if root.is_dir():
        return root
    archive = fetch_archives(source, cache=CACHE, network=network or NetworkOptions(), progress=SILENT)[0]
    part = CACHE / f"{root.name}.{os.getpid()}"
    for name, data in _members(archive.path):
        if name.startswith(tuple(f"{place}/" for place in wanted)):
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    try:
        part.rename(root)
    except OSError:  # somebody else was faster
        shutil.rmtree(part)
    return root


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the C files of an archive under their names below its top; Debian's gcc has an archive in the archive."""
    with tarfile.open(archive, "r|*") as outer:
        for member in outer:
            stream = outer.extractfile(member) if member.isfile() else None
            if stream is None:
                continue
            if member.name.endswith(".tar.xz"):
                if "/gcc-" not in member.name:
                    continue
                with tarfile.open(fileobj=stream, mode="r|xz") as inner:
                    for file in inner:
                        content = inner.extractfile(file) if file.isfile() and _GCC_TESTS in file.name else None
                        if content is not None and _inside(file.name):
                            yield _below(file.name), content.read()
            elif _inside(member.name):
                yield _below(member.name), stream.read()


def _inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return name.endswith((".c", ".h", ".expect")) and ".." not in parts and not name.startswith("/")


def _below(name: str) -> str:
    first, _, rest = name.removeprefix("./").partition("/")
    # tcc's archive has no directory of its own.
    return rest if first not in ("tests", "lib", "include") else f"{first}/{rest}"
