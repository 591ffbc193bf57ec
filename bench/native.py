"""The same sources compiled by ordinary compilers, once each, for comparison.

What makes it a fair comparison: the same files, macros and language standard; whole libraries as one shared object,
linked with -Bsymbolic as visget links them; no stack protector, no fortified functions, no branch tracking, no errno
of mathematical functions, because the installed code has none of these; and the package's floating-point contract,
which for gcc is spelled differently. The compilers see the processor's own macros, so that libraries take the
intrinsics that they have for it; the package does not have them.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.workplace import Workplace
from visget.config import Settings
from visget.toolchain.clang import find_frontend
from visget.toolchain.project import Project
from visget.toolchain.sources import find_sources, source_tree
from visget.wiring import network_of

_EPOCH = 22
_PLAIN = (
    "-fPIC", "-w", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-fno-math-errno", "-fno-semantic-interposition"
)  # fmt: skip
# gcc knows "off" and "fast" only; its "fast" fuses within expressions and across them.
_CONTRACT: Mapping[str, Mapping[str, str]] = {
    "gcc": {"strict": "off", "contract": "fast", "fast": "fast"},
    "clang": {"strict": "off", "contract": "on", "fast": "fast"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """A compiler with its optimisation options."""

    label: str
    """How tables name it."""
    family: str
    """"gcc" or "clang"."""
    command: tuple[str, ...]
    options: tuple[str, ...]
    version: str
    cxx: tuple[str, ...] = ()
    """How it is called for C++ sources; empty where it cannot be."""
    cxx_options: tuple[str, ...] = ()
    """What C++ sources are given before the other options."""

    def contract(self, floating_point: str) -> str:
        """Return the option for a package's floating-point contract."""
        return f"-ffp-contract={_CONTRACT[self.family][floating_point]}"


def compilers() -> list[Compiler]:
    """Return the compilers to compare with, as far as this machine has them."""
    x86 = platform.machine() == "x86_64"
    native = ("-march=native",) if x86 else ("-mcpu=native",)
    plain = (*_PLAIN, "-fcf-protection=none") if x86 else _PLAIN
    found = []
    gcc = shutil.which("gcc")
    if gcc is not None:
        gxx = shutil.which("g++")
        cxx = (gxx,) if gxx else ()
        version = _said([gcc, "-dumpfullversion"])
        for label, options in (("gcc -O3 native", ("-O3", *native)), ("gcc -O2", ("-O2",))):
            flags = (*options, *plain)
            found.append(
                Compiler(label=label, family="gcc", command=(gcc,), options=flags, version=f"gcc {version}", cxx=cxx)
            )
    frontend = find_frontend(None, epoch=_EPOCH)
    multiarch = _said([gcc, "-print-multiarch"]) if gcc else ""
    headers = [frontend.library / "include", Path("/usr/include") / multiarch, Path("/usr/include")]
    system = ("-nostdinc", *_isystem(headers))
    target = (f"--target={platform.machine()}-linux-gnu", "--no-default-config")
    found.insert(
        1 if gcc else 0,
        Compiler(
            label="clang -O3 native", family="clang", version=f"clang {frontend.version}",
            command=(*frontend.command, *target), options=("-O3", *native, *plain, *system),
            cxx=(*frontend.command, "--driver-mode=g++", *target) if gcc else (),
            cxx_options=_isystem(_cxx_headers(gcc, multiarch)) if gcc else (),
        ),
    )  # fmt: skip
    return found


def _isystem(headers: Sequence[Path]) -> tuple[str, ...]:
    return tuple(word for path in headers if path.is_dir() for word in ("-isystem", str(path)))


def _cxx_headers(gcc: str, multiarch: str) -> list[Path]:
    """Return where the headers of gcc's C++ library are, which all compilers use."""
    major = _said([gcc, "-dumpversion"]).partition(".")[0]
    return [Path("/usr/include/c++") / major, Path("/usr/include") / multiarch / "c++" / major]


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def sources(project: Project, settings: Settings) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Provide the source tree of `project` and the files to compile in it, none where it has a build system."""
    with source_tree(project, cache=settings.cache, network=network_of(settings)) as tree:
        yield tree.root, find_sources(project, tree.root) if project.build.system == "sources" else ()


def build(
    compiler: Compiler, project: Project, root: Path, files: tuple[str, ...], output: Path, *,
    soname: str | None = None, jobs: int = 1,
) -> float:  # fmt: skip
    """Compile `files`, `jobs` at a time, and link them to the shared object `output`; return the seconds."""
    output.parent.mkdir(parents=True, exist_ok=True)
    # Relative paths and no time stamps: the bytes, and so the layout, are the same wherever this runs.
    chosen = [
        f"-std={project.build.standard or 'gnu17'}",
        compiler.contract(project.build.floating_point),
        *(f"-I{directory}" for directory in project.build.include),
        *(f"-D{define}" for define in project.build.defines),
        *project.build.flags,
    ]
    objects = [output.parent / f"{output.stem}-{number}.o" for number in range(len(files))]

    def compile_one(file: str, target: Path) -> None:
        _run([*compiler.command, *compiler.options, *chosen, "-c", file, "-o", str(target)], root)

    begun = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(compile_one, files, objects))
    link(list(map(str, objects)), output, root, soname=soname)
    taken = time.perf_counter() - begun
    for target in objects:
        target.unlink()
    return taken


def link(inputs: Sequence[str], output: Path, root: Path, *, soname: str | None = None, cxx: bool = False) -> None:
    """Link `inputs`, which may be any words that the linker knows, to the shared object `output`."""
    linker = (shutil.which("g++") if cxx else None) or shutil.which("gcc") or shutil.which("cc") or "cc"
    named = [f"-Wl,-soname,{soname}"] if soname else []
    _run([linker, "-shared", "-Wl,-Bsymbolic", *named, "-o", str(output), *inputs, "-lm"], root)


def rival(place: Workplace, name: str, label: str) -> Path:
    """Return the directory of the build of `name` with the compiler `label`, laid out as a native entry."""
    return place.directory / "native" / label.replace(" ", "") / name


def _run(command: list[str], root: Path) -> None:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command)} failed:\n{done.stderr}")
