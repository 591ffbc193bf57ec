"""What build systems are told so that they use visget's tools and nothing of this machine.

Invariant: pure text, but for write_platform(), which fills a directory; the same visget gives the same texts. CMake
and Meson stay in their native modes: no build is a cross build, for the programs that it makes run here.
Guide: docs/guides/building.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from visget.files import atomic_write, translated

TOOL_NAMES: Mapping[str, tuple[str, ...]] = {
    "cc": ("cc", "gcc", "clang", "c89", "c99"),
    "c++": ("c++", "g++", "clang++"),
    "ar": ("ar", "gcc-ar", "llvm-ar"),
    "ranlib": ("ranlib", "gcc-ranlib", "llvm-ranlib"),
    "nm": ("nm", "gcc-nm", "llvm-nm"),
}
"""The names under which makefiles call the tools that visget replaces."""

PLATFORM_MARK = b"/* visget: platform library "
"""How a file begins that stands for a part of the C library where a build system wants a file."""
PLATFORM_LIBRARIES = ("m", "pthread", "dl", "rt")
"""The parts of the C library that have link names of their own; each platform has them."""

# What configure scripts find out by running programs and what is so on every platform of VIS.
_ANSWERS: Mapping[str, str] = {
    "ac_cv_c_bigendian": "no",
    "ac_cv_func_calloc_0_nonnull": "yes",
    "ac_cv_func_closedir_void": "no",
    "ac_cv_func_getpgrp_void": "yes",
    "ac_cv_func_lstat_dereferences_slashed_symlink": "yes",
    "ac_cv_func_lstat_empty_string_bug": "no",
    "ac_cv_func_malloc_0_nonnull": "yes",
    "ac_cv_func_memcmp_working": "yes",
    "ac_cv_func_realloc_0_nonnull": "yes",
    "ac_cv_func_setvbuf_reversed": "no",
    "ac_cv_func_stat_empty_string_bug": "no",
    "ac_cv_func_strnlen_working": "yes",
    "ac_cv_func_strtod": "yes",
    "lt_cv_sys_max_cmd_len": "1572864",
}


def tool_variables(tools: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which configure scripts and makefiles learn the tools.

    Args:
        tools: the command of each tool of TOOL_NAMES.
    """
    return {
        "CC": tools["cc"],
        "CXX": tools["c++"],
        "AR": tools["ar"],
        "RANLIB": tools["ranlib"],
        "NM": tools["nm"],
    }


def cmake_toolchain(tools: Mapping[str, str], roots: Sequence[str]) -> str:
    """Return the text of a toolchain file for CMake.

    It names no system, so that CMake does not think of cross compilation, and runs what it has linked.

    Args:
        tools: the path of each tool.
        roots: the only directories in which libraries, headers and packages are found.
    """
    lines = [
        f'set(CMAKE_{key} "{_quoted(tools[name])}" CACHE FILEPATH "" FORCE)'
        for key, name in (
            ("C_COMPILER", "cc"), ("CXX_COMPILER", "c++"), ("AR", "ar"), ("RANLIB", "ranlib"), ("NM", "nm"),
            ("C_COMPILER_AR", "ar"), ("CXX_COMPILER_AR", "ar"), ("C_COMPILER_RANLIB", "ranlib"),
            ("CXX_COMPILER_RANLIB", "ranlib"),
        )
    ]  # fmt: skip
    places = ";".join(_quoted(root) for root in roots)
    lines += [
        "# This machine's packages are no part of what is built: another machine need not have them.",
        f'set(CMAKE_FIND_ROOT_PATH "{places};${{CMAKE_SOURCE_DIR}};${{CMAKE_BINARY_DIR}}")',
        "set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)",
        *(f"set(CMAKE_FIND_ROOT_PATH_MODE_{what} ONLY)" for what in ("LIBRARY", "INCLUDE", "PACKAGE")),
        "set(CMAKE_FIND_USE_PACKAGE_REGISTRY OFF)",
        f'list(APPEND CMAKE_LIBRARY_PATH "{_quoted(roots[0])}/lib")',
    ]
    return "\n".join(lines) + "\n"


def meson_native(tools: Mapping[str, str], toolchain: str) -> str:
    """Return the text of a native file for Meson (no cross file: what it builds runs here).

    Args:
        tools: the path of each tool.
        toolchain: the path of the toolchain file for CMake, which Meson asks for packages too.
    """
    names = {"c": "cc", "cpp": "c++", "ar": "ar", "ranlib": "ranlib", "nm": "nm"}
    lines = [f"{key} = '{_quoted(tools[name])}'" for key, name in names.items()]
    lines += ["[properties]", f"cmake_toolchain_file = '{_quoted(toolchain)}'"]
    return "[binaries]\n" + "\n".join(lines) + "\n"


def config_site() -> str:
    """Return the text that CONFIG_SITE names for configure scripts."""
    heading = "# visget: what is the same on every machine on which packages run\n"
    return heading + "".join(f": ${{{name}={value}}}\n" for name, value in _ANSWERS.items())


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'")


def write_platform(directory: Path) -> None:
    """Fill `directory` with what build systems look for in files: parts of the C library, and an empty pkg-config path.

    Raises:
        ResourceError: it cannot be written.
    """
    with translated("prepare the tools of the build", directory):
        for name in ("include", "lib/pkgconfig", "lib/cmake"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        for name in PLATFORM_LIBRARIES:
            write_once(directory / "lib" / f"lib{name}.so", PLATFORM_MARK.decode() + f"{name} */\n")


def write_tools(directory: Path, tools: Mapping[str, str]) -> None:
    """Fill `directory` with links to the tools, under the names that makefiles call.

    Raises:
        ResourceError: it cannot be written.
    """
    with translated("prepare the tools of the build", directory):
        directory.mkdir(parents=True, exist_ok=True)
        for tool, names in TOOL_NAMES.items():
            for name in names:
                link = directory / name
                if link.is_symlink() and str(link.readlink()) == tools[tool]:
                    continue
                fresh = directory / f".{name}.{os.getpid()}"
                fresh.symlink_to(tools[tool])
                fresh.replace(link)


def write_once(path: Path, text: str) -> None:
    """Write `text` unless the file holds it: build systems look at the times of files."""
    data = text.encode()
    if not path.is_file() or path.read_bytes() != data:
        atomic_write(path, data)
