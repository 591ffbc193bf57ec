"""The pkg-config file of an installed library.

Invariant: the text holds no absolute path: it finds its library from where it lies itself, so an entry of the
store may be moved or mounted elsewhere. Programs linked through it find the library when they run, because its
directory goes into their run path. Syntax: pc(5); ``$`` and ``#`` in values are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable

from visget.format.manifest import Manifest
from visget.installer.systems import CONVENTIONS, LINUX, WINDOWS

OWN_PREFIX = "${pcfiledir}/../.."
"""Where the files of an artifact are, seen from its pkg-config file."""


def pkgconfig_text(manifest: Manifest, *, shared: bool, requires: Iterable[str] = (), system: str = LINUX) -> str:
    """Return the text of ``lib/pkgconfig/NAME.pc``.

    Args:
        manifest: the package.
        shared: whether there is a shared library; with only the archive, programs need the maths library too.
        requires: the packages whose headers its headers may include, and whose archives go with its archive.
        system: the operating system (visget.installer.systems).
    """
    private = " ".join(sorted(requires))
    run_path = "-Wl,-rpath,${libdir} " if shared and system != WINDOWS else ""
    libs = f"-L${{libdir}} {run_path}-l{manifest.name}{'' if shared else ' -lm'}"
    lines = [
        f"prefix={OWN_PREFIX}",
        "libdir=${prefix}/lib",
        "includedir=${prefix}/include",
        "",
        f"Name: {manifest.name}",
        f"Description: {_escaped(manifest.summary)}",
        *([f"URL: {_escaped(manifest.homepage)}"] if manifest.homepage else []),
        f"Version: {manifest.version}",
        *([f"Requires.private: {private}"] if private else []),
        f"Libs: {libs}",
        *(["Libs.private: -lm"] if shared and CONVENTIONS[system].archive else []),
        "Cflags: -I${includedir}",
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("$", "$$").replace("#", "\\#")
