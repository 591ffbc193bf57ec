"""Small packages and frames for tests of format/."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import zstandard
from packaging.version import Version

from visget.digest import digest_bytes
from visget.format.container import MAGIC, write_container
from visget.format.manifest import Manifest, Provenance, SectionEntry
from visget.format.package import Package, open_package
from visget.format.prototypes import BASE_TYPES, Api, Function, Parameter
from visget.names import PackageName

BITCODE = b"BC\xc0\xde" + bytes(range(64)) * 4


def manifest(**changes: Any) -> Manifest:
    """A manifest without sections."""
    values: dict[str, Any] = {
        "name": PackageName("adder"),
        "version": Version("1.2.3"),
        "summary": "Adds two integers",
        "license": "MIT",
        "exports": ("add",),
        "provenance": Provenance(
            compiler="clang 22.1.8", flags=("-O2",), source_digest=digest_bytes(b"sources"), source=None
        ),
    }
    return Manifest(**(values | changes))


def api() -> Api:
    """The interface of `int add(int a, int b)`."""
    number = BASE_TYPES["int"]
    return Api(
        functions=(
            Function(
                name="add",
                prototype="int add(int a, int b)",
                doc="Add two integers.",
                result_c="int",
                result=number,
                parameters=tuple(Parameter(name=name, c="int", type=number) for name in "ab"),
                line=3,
                header="adder.h",
            ),
        )
    )


def sections(**changes: bytes) -> dict[str, bytes]:
    """The sections of the sample package."""
    return {"bitcode": BITCODE, "api": api().encode(), "license": b"MIT licence text\n"} | changes


def package_bytes(manifest_: Manifest | None = None, **changes: bytes) -> bytes:
    """A whole container."""
    return write_container(manifest_ or manifest(), sections(**changes))


def package(manifest_: Manifest | None = None, **changes: bytes) -> Package:
    """The same, opened."""
    return open_package(package_bytes(manifest_, **changes))


def frame(content: bytes, **options: Any) -> bytes:
    """A zstd frame as the container wants it, unless `options` say otherwise."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        3, **({"write_content_size": True, "write_checksum": True, "write_dict_id": False} | options)
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(content)


def entry(kind: str, content: bytes, stored: bytes, **changes: Any) -> SectionEntry:
    """The manifest's entry for a section, right unless `changes` say otherwise."""
    values: dict[str, Any] = {
        "kind": kind,
        "critical": kind in ("bitcode", "api"),
        "size": len(content),
        "sha256": digest_bytes(content),
        "stored_size": len(stored),
        "stored_sha256": digest_bytes(stored),
    }
    return SectionEntry(**(values | changes))


def assemble(manifest_json: bytes, *frames: bytes, magic: bytes = MAGIC, length: int | None = None) -> bytes:
    """A container of given parts; nothing is checked."""
    size = len(manifest_json) if length is None else length
    return magic + struct.pack("<I", size) + manifest_json + b"".join(frames)


def forge(*parts: tuple[SectionEntry, bytes], manifest_: Manifest | None = None, tail: bytes = b"") -> bytes:
    """A container with exactly these entries and stored bytes; nothing is checked."""
    described = replace(manifest_ or manifest(), sections=tuple(part[0] for part in parts))
    return assemble(described.encode(), *(part[1] for part in parts), tail)


def part(kind: str, content: bytes, stored: bytes | None = None, **changes: Any) -> tuple[SectionEntry, bytes]:
    """One part for forge()."""
    stored = frame(content) if stored is None else stored
    return entry(kind, content, stored, **changes), stored
