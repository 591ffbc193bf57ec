"""``visget configure``, ``cmake``, ``meson`` and ``make``: the real program, told to use visget's tools.

Invariant: nothing of the user's environment is lost; what is added makes the build see visget's compiler and none of
this machine's packages. The files that CMake and Meson are given lie in the cache and stay there, for a build
directory remembers them. Guide: docs/guides/building.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from visget.config import process_environment, read_settings
from visget.errors import UnsupportedError, UsageError
from visget.toolchain.wrappers import (
    TOOL_NAMES,
    cmake_toolchain,
    config_site,
    meson_native,
    tool_variables,
    write_once,
    write_platform,
    write_tools,
)
from visget.version import __version__

# What CMake does when it is not asked to configure a build directory.
_NOT_CONFIGURING = (
    "--build", "--install", "--open", "-E", "-P", "--find-package", "--help", "--version", "-h", "-H", "/V", "--system",
    "--workflow", "--list-presets",
)  # fmt: skip
_PACKAGE_HINT = {
    "cmake": "pip install cmake", "meson": "pip install meson ninja", "make": "install your distribution's make",
}  # fmt: skip


def run_build_tool(name: str, arguments: Sequence[str]) -> int:
    """Run the build tool `name` and return its exit status.

    Raises:
        UnsupportedError: it, or visget's tools, are not installed.
        UsageError: there is no configure script, or a toolchain of the user's own is asked for.
    """
    place = read_settings().cache / "wrappers" / __version__
    tools = _tools()
    environment = build_environment(place, tools)
    command = [*_program(name, arguments), *_arguments(name, arguments, place, tools)]
    try:
        return subprocess.run(command, env=environment, check=False).returncode
    except OSError as error:
        raise UnsupportedError(f"{command[0]} cannot be started: {error.strerror}") from error


def _tools() -> dict[str, str]:
    scripts = Path(sysconfig.get_path("scripts"))
    found = {tool: shutil.which(f"visget-{tool}", path=str(scripts)) or shutil.which(f"visget-{tool}")
             for tool in TOOL_NAMES}  # fmt: skip
    missing = [tool for tool, path in found.items() if path is None]
    if missing:
        raise UnsupportedError(
            f"visget-{missing[0]} is not installed beside {scripts / 'python'}",
            hint="install visget again: pip install 'visget[author]'",
        )
    return {tool: str(path) for tool, path in found.items()}


def build_environment(place: Path, tools: dict[str, str]) -> dict[str, str]:
    """Return the environment for a build; what it names is written to `place`."""
    write_platform(place)
    write_tools(place / "bin", tools)
    write_once(place / "config.site", config_site())
    environment = process_environment()
    packages = environment.get("PKG_CONFIG_PATH", "")
    environment |= tool_variables(tools)
    environment |= {
        "PATH": f"{place / 'bin'}:{environment.get('PATH', '')}",
        "CONFIG_SITE": str(place / "config.site"),
        # pkg-config must not answer with this machine's libraries; what PKG_CONFIG_PATH names is still found.
        "PKG_CONFIG_LIBDIR": str(place / "lib" / "pkgconfig"),
        "PKG_CONFIG_PATH": packages,
        "SOURCE_DATE_EPOCH": environment.get("SOURCE_DATE_EPOCH", "315532800"),
    }
    return environment


def _program(name: str, arguments: Sequence[str]) -> list[str]:
    if name == "configure":
        script = arguments[0] if arguments and Path(arguments[0]).name == "configure" else "configure"
        path = Path(script)
        if not path.is_file():
            raise UsageError(
                f"there is no configure script {script!r}",
                hint="run it where the script is, or name it first: visget configure ../source/configure ...",
            )
        shown = str(path) if "/" in script else f"./{script}"
        # Archives do not always keep the permission to run it.
        return [shown] if os.access(path, os.X_OK) else ["/bin/sh", shown]
    beside = str(Path(sysconfig.get_path("scripts")))
    found = shutil.which(name, path=beside) or shutil.which(name)
    if found is None:
        raise UnsupportedError(f"{name} is not installed", hint=_PACKAGE_HINT[name])
    return [found]


def _arguments(name: str, arguments: Sequence[str], place: Path, tools: dict[str, str]) -> list[str]:
    given = list(arguments)
    if name == "configure" and given and Path(given[0]).name == "configure":
        return given[1:]
    if name == "cmake" and not any(word in _NOT_CONFIGURING for word in given):
        if any(word.startswith(("-DCMAKE_TOOLCHAIN_FILE", "--toolchain")) for word in given):
            raise UsageError("visget cmake brings its own toolchain file", hint="leave CMAKE_TOOLCHAIN_FILE out")
        path = place / "toolchain.cmake"
        write_once(path, cmake_toolchain(tools, [str(place), *_prefixes(given)]))
        return [f"-DCMAKE_TOOLCHAIN_FILE={path}", *given]
    if name == "meson" and (not given or given[0] == "setup" or (given[0] not in _MESON and given[0][0] != "-")):
        path, toolchain = place / "native.ini", place / "toolchain-meson.cmake"
        write_once(toolchain, cmake_toolchain(tools, [str(place)]))
        write_once(path, meson_native(tools, str(toolchain)))
        rest = given[1:] if given[:1] == ["setup"] else given
        return ["setup", "--native-file", str(path), *rest]
    return given


_MESON = frozenset(
    ["configure", "dist", "install", "introspect", "init", "test", "wrap", "subprojects", "rewrite", "compile",
     "devenv", "env2mfile", "help", "format", "fmt", "reprotest"]
)  # fmt: skip


def _prefixes(arguments: Sequence[str]) -> list[str]:
    """Return what the caller names as places of packages; they are found, for they are not this machine's."""
    found = []
    for word in arguments:
        key, _, value = word.partition("=")
        if key.partition(":")[0] in ("-DCMAKE_PREFIX_PATH", "-DCMAKE_FIND_ROOT_PATH"):
            found += [place for place in value.split(";") if place]
    return found
