"""Which clang compiles, and with which command line: the front end of VIS-1.

Invariant: the command depends on the package's own settings and on nothing else of the machine: no environment, no
configuration file of clang, no header that does not come with ziglang or visget, and no path that ends up in the
output. The reasons for each flag are in docs/spec/front-end.md.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from visget.errors import UnsupportedError

OVERLAY = Path(__file__).resolve().parent / "include"
"""Headers of our own, which take the place of the C library's where those would be wrong somewhere."""

CXX_HEADERS = OVERLAY.parent / "libcxx" / "include"
"""Headers of our own that take the place of libc++'s."""

ENVIRONMENT: Mapping[str, str] = {
    "PATH": os.defpath,
    "LC_ALL": "C",
    # 1980-01-01: __DATE__ and __TIME__ must not tell when the package was built.
    "SOURCE_DATE_EPOCH": "315532800",
}
"""The whole environment of the compiler."""

CXX_SUFFIXES = frozenset([".cc", ".cpp", ".cxx", ".c++", ".C"])
"""File name endings of C++ sources."""

_INSTALL_HINT = "install it with: pip install 'visget[author]'"

# Neutral data model; no middle-end passes (they belong to the installer, who knows the machine), yet not -O0, which
# would mark every function optnone.
_NEUTRAL = (
    "--target=riscv64-unknown-linux-musl", "-march=rv64gc", "-mabi=lp64d", "-O2", "-Xclang", "-disable-llvm-passes",
    "-fsigned-char", "-fPIC", "-fno-stack-protector", "-fno-sanitize=all", "-fno-math-errno", "-fno-ident",
    "-fdiscard-value-names",
)  # fmt: skip

# Code that asks for the processor must take its portable branch: no macro may name the neutral one.
_RISCV_MACROS = tuple(
    f"__riscv{suffix}"
    for suffix in (
        "", "_32e", "_64e", "_a", "_abi_rve", "_arch_test", "_atomic", "_c", "_cmodel_large", "_cmodel_medany",
        "_cmodel_medlow", "_compressed", "_d", "_div", "_f", "_fdiv", "_flen", "_float_abi_double",
        "_float_abi_single", "_float_abi_soft", "_fsqrt", "_i", "_m", "_misaligned_avoid", "_misaligned_fast",
        "_misaligned_slow", "_mul", "_muldiv", "_v_intrinsic", "_xlen", "_zaamo", "_zalrsc", "_zca", "_zcd",
        "_zicsr", "_zifencei", "_zmmul",
    )
)  # fmt: skip

# What C compilers used to let pass and what then is wrong on some machine. Last on the command line: a package cannot
# switch them off.
_MANDATORY_ERRORS = (
    "implicit-function-declaration", "implicit-int", "int-conversion", "incompatible-function-pointer-types",
    "ignored-attributes", "return-type-c-linkage",
)  # fmt: skip

_FP_CONTRACT = {"strict": "off", "contract": "on", "fast": "fast"}

# ziglang ships libc++'s headers without the __config_site that its build would make.
_LIBCXX_CONFIG = (
    "_LIBCPP_ABI_NAMESPACE=__1", "_LIBCPP_ABI_VERSION=1",
    "_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
    "_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS", "_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE",
    "_LIBCPP_HAS_FILESYSTEM=1", "_LIBCPP_HAS_LOCALIZATION=1", "_LIBCPP_HAS_MONOTONIC_CLOCK=1",
    "_LIBCPP_HAS_MUSL_LIBC=1", "_LIBCPP_HAS_NO_STD_MODULES", "_LIBCPP_HAS_RANDOM_DEVICE=1",
    "_LIBCPP_HAS_TERMINAL=1", "_LIBCPP_HAS_THREADS=1", "_LIBCPP_HAS_THREAD_API_PTHREAD=1",
    "_LIBCPP_HAS_TIME_ZONE_DATABASE=1", "_LIBCPP_HAS_UNICODE=1",
    "_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0", "_LIBCPP_HAS_WIDE_CHARACTERS=1",
    "_LIBCPP_PSTL_BACKEND_SERIAL", "_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS",
)  # fmt: skip



@dataclass(frozen=True, slots=True, kw_only=True)
class Frontend:
    """A clang that can compile packages."""

    command: tuple[str, ...]
    """How it is called."""
    version: str
    """Its version, such as ``22.1.8``."""
    library: Path
    """The directory of ziglang's headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    """What the package's author decides about compilation."""

    c_standard: str = "gnu17"
    """The dialect of C sources."""
    cxx_standard: str = "gnu++17"
    """The dialect of C++ sources."""
    include: tuple[str, ...] = ()
    """Directories of headers, relative to the root of the sources."""
    defines: tuple[str, ...] = ()
    """Macros: ``NAME`` or ``NAME=VALUE``."""
    flags: tuple[str, ...] = ()
    """Further flags, already allow-listed."""
    floating_point: Literal["contract", "strict", "fast"] = "contract"
    """Whether a multiplication and an addition may become one fused operation."""
    float_cast: Literal["saturate", "native"] = "saturate"
    """Whether a number too large for the integer it is converted to becomes the largest integer on every machine."""
    language: Literal["auto", "c", "c++"] = "auto"
    """The language of the sources; "auto" goes by the suffix."""
    exceptions: bool = True
    """Whether C++ may throw."""
    rtti: bool = True
    """Whether C++ has typeid and dynamic_cast."""
    foreign: tuple[str, ...] = ()
    """Directories of headers that come from other packages."""

    def is_cxx(self, source: str) -> bool:
        """Say whether `source` is compiled as C++."""
        return self.language == "c++" or (self.language == "auto" and Path(source).suffix in CXX_SUFFIXES)


def find_frontend(cc: str | None, *, epoch: int) -> Frontend:
    """Return ziglang's clang, or the clang `cc` if it writes the same bitcode.

    Raises:
        UnsupportedError: ziglang is not installed (its headers are always needed), or the compiler does not run or
            has another major version than `epoch`.
    """
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise UnsupportedError("building packages needs ziglang (its clang and C headers)", hint=_INSTALL_HINT)
    home = Path(next(iter(spec.submodule_search_locations)))
    library = home / "lib"
    command = (str(home / "zig"), "clang") if cc is None else (cc,)
    if not (library / "libc" / "include" / "generic-musl").is_dir():
        raise UnsupportedError("ziglang is installed without its C headers", where=str(home), hint=_INSTALL_HINT)
    version = _version(command)
    if int(version.split(".", 1)[0]) != epoch:
        raise UnsupportedError(
            f"{command[0]} is clang {version}, but packages of this visget are LLVM {epoch} bitcode",
            hint=f"give --cc the path of a clang {epoch}, or leave it out to use ziglang's",
        )
    return Frontend(command=command, version=version, library=library)


def _version(command: tuple[str, ...]) -> str:
    try:
        ran = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, errors="replace", env=ENVIRONMENT,
            stdin=subprocess.DEVNULL, timeout=60, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(
            f"the compiler {command[0]} does not run: {getattr(error, 'strerror', None) or error}",
            hint="give --cc the path of a clang, or leave it out to use ziglang's",
        ) from error
    found = re.search(r"^(?!Apple ).*\bclang version (\d+(?:\.\d+)+)", ran.stdout, re.MULTILINE)
    if ran.returncode != 0 or found is None:
        said = (ran.stdout or ran.stderr).strip().splitlines()
        raise UnsupportedError(
            f"{command[0]} is not a clang of the LLVM project (it says: {said[0] if said else 'nothing'})",
            hint="give --cc the path of a clang, or leave it out to use ziglang's",
        )
    return found[1]


def language_flags(options: CompileOptions, *, cxx: bool) -> list[str]:
    """Return the flags that choose what of its language a source may use."""
    if not cxx:
        return []
    return [
        "-fexceptions" if options.exceptions else "-fno-exceptions",
        "-frtti" if options.rtti else "-fno-rtti",
    ]


def system_flags(frontend: Frontend, *, cxx: bool) -> list[str]:
    """Return the flags that make the neutral target and its headers."""
    library = frontend.library
    directories = [
        OVERLAY,
        library / "include",
        library / "libc" / "include" / "riscv64-linux-musl",
        library / "libc" / "include" / "generic-musl",
        library / "libc" / "include" / "riscv-linux-any",
        library / "libc" / "include" / "any-linux-any",
    ]
    flags = ["--no-default-config", *_NEUTRAL, "-nostdinc"]
    if cxx:
        # libc++'s C headers expect to be found first and pass on to the C library's.
        directories[:0] = [CXX_HEADERS, library / "libcxx" / "include", library / "libcxxabi" / "include"]
        flags += ["-nostdinc++", *(f"-D{name}" for name in _LIBCXX_CONFIG)]
    for directory in directories:
        flags += ["-isystem", str(directory)]
    flags += [f"-U{name}" for name in _RISCV_MACROS]
    return [*flags, "-include", str(OVERLAY / "vis_prefix.h")]


def foreign_flags(frontend: Frontend, triple: str, directories: Sequence[str]) -> list[str]:
    """Return the flags that compile for another machine, with that machine's own C library (`directories`)."""
    library = frontend.library
    flags = ["--no-default-config", f"--target={triple}", "-fsigned-char", "-nostdinc", "-D__GLIBC_MINOR__=34"]
    for directory in (library / "include", *(library / "libc" / "include" / name for name in directories)):
        flags += ["-isystem", str(directory)]
    return flags


def path_flags(frontend: Frontend, root: Path) -> list[str]:
    """Return the flags that keep the paths of this machine out of the module."""
    return [
        f"-ffile-prefix-map={frontend.library}=visget/lib",
        f"-ffile-prefix-map={OVERLAY}=visget/include",
        f"-ffile-prefix-map={CXX_HEADERS}=visget/libcxx",
        f"-ffile-prefix-map={root}/=",
        "-fdebug-compilation-dir=.",
    ]


def foreign_headers(options: CompileOptions) -> list[str]:
    """Return the flags for headers of other packages: where they are, without a trace of that in the module."""
    flags = []
    for directory in options.foreign:
        flags += ["-isystem", directory, f"-ffile-prefix-map={directory}=visget/dependencies"]
    return flags


def package_flags(options: CompileOptions, *, cxx: bool) -> list[str]:
    """Return the flags that the package chooses, then those that it cannot switch off."""
    flags = [
        f"-std={options.cxx_standard if cxx else options.c_standard}",
        f"-ffp-contract={_FP_CONTRACT[options.floating_point]}",
        *language_flags(options, cxx=cxx),
    ]
    if options.float_cast == "saturate":
        flags.append("-fno-strict-float-cast-overflow")
    for directory in options.include:
        flags += ["-I", directory]
    flags += [f"-D{define}" for define in options.defines]
    # Warnings are the author's own affair (flags may ask for them), except those that mean a wrong answer.
    flags += ["-Wno-everything", *options.flags, "-Wdeprecated-non-prototype"]
    return [*flags, *(f"-Werror={name}" for name in _MANDATORY_ERRORS)]


def recorded_flags(options: CompileOptions, *, cxx: bool) -> tuple[str, ...]:
    """Return the flags that the package's provenance names: all that shape its code, and no path of this machine."""
    chosen = (flag for flag in package_flags(options, cxx=cxx) if not flag.startswith("-W"))
    return (*_NEUTRAL, *chosen)
