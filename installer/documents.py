"""Everything in a native artifact that is not code: headers, what build systems read, interface, licence.

Invariant: no text holds an absolute path: each file finds its library, and the artifacts of its dependencies, from
where it lies itself. The files are docs/spec/native-artifact.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from visget.digest import Digest
from visget.errors import FormatError, RefusedError
from visget.format.package import Package
from visget.format.strictjson import Reader, dumps, loads
from visget.installer.pkgconfig import OWN_PREFIX, pkgconfig_text
from visget.installer.systems import CONVENTIONS, LINUX, MACOS, WINDOWS

EXPORTS_FILE = "exports.json"
EXPORTS_FORMAT = "visget-exports-1"
_EXPORTS_LIMIT = 16 << 20
_HOME = re.compile(r"^prefix=\$\{pcfiledir\}/\.\./\.\./\.\./([0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A dependency of the package, and where its artifact lies."""

    package: Package
    """The dependency."""
    key: Digest | None
    """The action key of its artifact; None when its code is in the package's own."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """The pkg-config files in that artifact by their names: its own, and those of what it depends on itself."""


def documents(
    package: Package, *, shared: bool, soname: str, types: Mapping[str, str], beside: Sequence[Beside] = (),
    system: str = LINUX,
) -> dict[str, bytes]:
    """Return path and content of each document of an artifact.

    Args:
        package: the package.
        shared: whether there is a shared library.
        soname: what that calls itself.
        types: the LLVM type of each export.
        beside: the packages that it depends on: those that it names, or, when they are merged, all.
        system: the operating system (visget.installer.systems).

    Raises:
        RefusedError: the package does not describe its functions.
    """
    manifest = package.manifest
    api = package.section("api")
    if api is None:
        label = f"{manifest.name} {manifest.version}"
        raise RefusedError(f"{label} does not describe its functions", where=label)
    files = {f"include/{name}": text.encode() for name, text in package.headers().items()}
    for other in beside:
        if other.key is None:
            # Its headers have no other home, and those of the package may include them.
            files = {f"include/{name}": text.encode() for name, text in other.package.headers().items()} | files
    separate = [other for other in beside if other.key is not None]
    requires = [other.package.manifest.name for other in separate]
    text = pkgconfig_text(manifest, shared=shared, requires=requires, system=system).encode()
    for name in _module_names(package):
        files[f"lib/pkgconfig/{name}.pc"] = text
    homes: list[str] = []
    for other in separate:
        for name, about in sorted(other.modules.items()):
            # So that pkg-config finds what this package requires, whatever its search path is. Those of what a
            # dependency requires itself lead to their artifacts already.
            own = f"prefix=${{pcfiledir}}/../../../{other.key}\n"
            moved = about.replace(f"prefix={OWN_PREFIX}\n", own, 1)
            files.setdefault(f"lib/pkgconfig/{name}", moved.encode())
            homes += _HOME.findall(moved)
    folder = f"lib/cmake/{manifest.name}/{manifest.name}"
    includes = [f"${{_visget_prefix}}/../{key}/include" for key in dict.fromkeys(homes)]
    files[f"{folder}Config.cmake"] = _cmake_config(manifest.name, soname if shared else None, includes, system).encode()
    files[f"{folder}ConfigVersion.cmake"] = _cmake_version(str(manifest.version)).encode()
    files["api.json"] = api
    files[EXPORTS_FILE] = dumps({"format": EXPORTS_FORMAT, "exports": dict(types)})
    license_text = package.section("license")
    if license_text is not None:
        files["LICENSE"] = license_text
    return files


def read_exports(data: bytes) -> dict[str, str]:
    """Return the LLVM type of each export, from an artifact's exports.json.

    Raises:
        FormatError: it is malformed.
    """
    reader = Reader(loads(data, what=EXPORTS_FILE, limit=_EXPORTS_LIMIT), EXPORTS_FILE)
    if reader.line("format") != EXPORTS_FORMAT:
        raise FormatError(f"{EXPORTS_FILE} has a format that this version of visget does not know")
    inner = reader.object("exports")
    return {name: inner.line(name) for name in inner.names()}


def _module_names(package: Package) -> list[str]:
    """Return the names under which pkg-config finds the package: its own, and the usual one of its link name."""
    manifest = package.manifest
    usual = f"lib{manifest.library.removeprefix('lib')}" if manifest.library else manifest.name
    return list(dict.fromkeys([manifest.name, usual]))


def _cmake_config(name: str, soname: str | None, includes: Sequence[str], system: str) -> str:
    folders = ";".join(["${_visget_prefix}/include", *includes])
    static = ""
    if CONVENTIONS[system].archive:
        static = (
            f"  add_library({name}::static STATIC IMPORTED)\n"
            f"  set_target_properties({name}::static PROPERTIES\n"
            f'    IMPORTED_LOCATION "${{_visget_prefix}}/lib/lib{name}.a" INTERFACE_LINK_LIBRARIES m\n'
            f'    INTERFACE_INCLUDE_DIRECTORIES "{folders}")\n'
        )
    if soname is None:
        main = f"  add_library({name}::{name} ALIAS {name}::static)"
    else:
        calls_itself = f"@rpath/{soname}" if system == MACOS else soname
        by = f' IMPORTED_IMPLIB "${{_visget_prefix}}/lib/lib{name}.dll.a"' if system == WINDOWS else (
            f' IMPORTED_SONAME "{calls_itself}"'
        )
        main = (
            f"  add_library({name}::{name} SHARED IMPORTED)\n"
            f"  set_target_properties({name}::{name} PROPERTIES\n"
            f'    IMPORTED_LOCATION "${{_visget_prefix}}/lib/{soname}"{by}\n'
            f'    INTERFACE_INCLUDE_DIRECTORIES "{folders}")'
        )
    return (
        "# Finds the library from where this file lies.\n"
        'get_filename_component(_visget_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)\n'
        f"if(NOT TARGET {name}::{name})\n"
        f"{static}"
        f"{main}\n"
        "endif()\n"
        "unset(_visget_prefix)\n"
    )


def _cmake_version(version: str) -> str:
    return (
        f'set(PACKAGE_VERSION "{version}")\n'
        "if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)\n"
        "  set(PACKAGE_VERSION_COMPATIBLE FALSE)\n"
        "else()\n"
        "  set(PACKAGE_VERSION_COMPATIBLE TRUE)\n"
        "  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)\n"
        "    set(PACKAGE_VERSION_EXACT TRUE)\n"
        "  endif()\n"
        "endif()\n"
    )
