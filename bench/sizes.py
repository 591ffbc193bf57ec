"""Size of each package against the shared libraries made of the same sources.

A .vis file holds more than code: types, headers, licence, line table, test vectors. Its module is therefore given
apart, as it is stored (compressed); the libraries are stripped, and given as they are and compressed the same way.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import zstandard

from bench.native import Compiler, build, compilers, rival, sources
from bench.workplace import Workplace

_LEVEL = 19


def measure_sizes(place: Workplace, names: Iterable[str]) -> list[dict[str, object]]:
    """Return one row for each package: bytes of its .vis file, its module, and stripped libraries."""
    small = next((compiler for compiler in compilers() if compiler.label == "gcc -O2"), None)
    return [_row(place, name, small) for name in names]


def _row(place: Workplace, name: str, small: Compiler | None) -> dict[str, object]:
    published = place.published(name)
    module = next(section for section in published.package.manifest.sections if section.kind == "bitcode")
    installed = place.installed(name).path / "lib" / f"lib{name}.so"
    row: dict[str, object] = {"library": name, "vis": published.size, "module": module.stored_size}
    scratch = place.directory / "sizes" / name
    if small is not None:
        library = rival(place, name, small.label) / "lib" / f"lib{name}.so"
        if not library.exists():
            with sources(published.project, place.settings) as (root, files):
                build(small, published.project, root, files, library)
        row |= _stripped("gcc", library, scratch)
    return row | _stripped("installed", installed, scratch)


def _stripped(label: str, library: Path, scratch: Path) -> dict[str, object]:
    if not library.exists() or shutil.which("strip") is None:
        return {}
    copy = scratch / f"{label}-stripped.so"
    size = stripped(library, copy)
    return {label: size, f"{label}-zstd": len(zstandard.ZstdCompressor(level=_LEVEL).compress(copy.read_bytes()))}


def stripped(library: Path, copy: Path) -> int:
    """Write a stripped copy of a shared object and return its size."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "--strip-unneeded", "-o", copy, library], check=True)
    return copy.stat().st_size
