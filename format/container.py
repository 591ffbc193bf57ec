"""The container ``.vis``: magic, manifest, and one zstd frame for each section, with nothing between or behind them.

Invariant: read_container() has checked the place, the size and the stored digest of every section before anybody
may decompress one, and Container.section() never makes more bytes than the manifest and the kind's cap allow. The
spec is docs/spec/container.md.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from visget.digest import digest_bytes
from visget.errors import FormatError, UnsupportedError
from visget.format.manifest import MANIFEST_LIMIT, Manifest, SectionEntry

MAGIC = b"VISPKG1\n"
_MAGIC_FAMILY = b"VISPKG"
_LENGTH = struct.Struct("<I")
_HEAD = len(MAGIC) + _LENGTH.size

WINDOW_LOG = 23
"""The largest zstd window, 8 MiB: what a reader must keep in memory."""
LEVEL = 19
"""The compression level of the writer; part of "same input, same bytes"."""
_FRAME_MAGIC = b"\x28\xb5\x2f\xfd"
# A block of 4 stored bytes can stand for 128 KiB (RLE), so one step makes at most 8 MiB more than was allowed.
_STEP = 256


@dataclass(frozen=True, slots=True)
class SectionKind:
    """A kind of section that this version knows."""

    name: str
    """Its name in the manifest."""
    critical: bool
    """Whether a reader that does not know it must refuse the package."""
    limit: int
    """The most bytes it may have when decompressed."""
    required: bool = False
    """Whether every package has it."""


KINDS: dict[str, SectionKind] = {
    kind.name: kind
    for kind in (
        SectionKind("bitcode", True, 64 << 20, required=True),
        SectionKind("api", True, 8 << 20, required=True),
        SectionKind("headers", False, 8 << 20),
        SectionKind("license", False, 1 << 20),
        SectionKind("readme", False, 1 << 20),
        SectionKind("vectors", False, 8 << 20),
        SectionKind("lines", False, 32 << 20),
    )
}
"""The kinds in the order in which the writer lays them out."""
UNKNOWN_LIMIT = 64 << 20
"""The most bytes an unknown optional section may say that it has; it is never decompressed."""
FILE_LIMIT = 96 << 20
"""The most bytes of a whole package: what whoever reads one must be able to keep in memory."""


def stored_limit(size: int) -> int:
    """Return the most bytes that a frame of `size` decompressed bytes may take."""
    return size + size // 128 + 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container whose structure and stored digests were found right."""

    manifest: Manifest
    """What it says about itself."""
    stored: Mapping[str, memoryview]
    """The compressed bytes of each section, by kind, of unknown optional kinds too."""
    unknown: tuple[str, ...]
    """The optional kinds that this version does not know; it ignores them."""

    def section(self, kind: str) -> bytes | None:
        """Return the decompressed section `kind`, or None when the package has none.

        Raises:
            FormatError: the frame is malformed or its content is not what the manifest says.
        """
        if kind not in KINDS or kind not in self.stored:
            return None
        content = io.BytesIO()
        content.writelines(self.pieces(kind))
        # A BytesIO that nobody writes to again gives up its buffer without a copy.
        return content.getvalue()

    def pieces(self, kind: str) -> Iterator[bytes]:
        """Yield the decompressed section `kind`, which is there, in pieces of at most 8 MiB.

        The pieces are right only when no error follows the last one.

        Raises:
            FormatError: the frame is malformed or its content is not what the manifest says.
        """
        return _decompress(self.stored[kind], self.entry(kind))

    def check(self, kind: str) -> None:
        """Check the section `kind`, whose content is not kept; one of an unknown kind is left alone.

        Raises:
            FormatError: the frame is malformed or its content is not what the manifest says.
        """
        if kind in KINDS:
            for _ in self.pieces(kind):
                pass

    def entry(self, kind: str) -> SectionEntry:
        """Return what the manifest says about the section `kind`, which is there."""
        return next(entry for entry in self.manifest.sections if entry.kind == kind)


def read_container(data: bytes | memoryview) -> Container:
    """Take the container `data` apart; nothing is decompressed.

    Raises:
        FormatError: it is malformed.
        UnsupportedError: it has a later format, or a critical section of an unknown kind.
    """
    view = memoryview(data)
    if len(view) > FILE_LIMIT:
        raise FormatError(f"the package has more than the {FILE_LIMIT} bytes that are allowed")
    magic = bytes(view[: len(MAGIC)])
    if magic != MAGIC:
        if magic.startswith(_MAGIC_FAMILY) and magic[6:7].isdigit() and magic[7:] == b"\n":
            raise UnsupportedError(
                f"the package has the container format {magic[6:7].decode()}; this visget knows 1",
                hint="a newer visget can use it: pip install -U visget",
            )
        raise FormatError("not a visget package: it does not begin with VISPKG1")
    if len(view) < _HEAD:
        raise FormatError("the package ends within its header")
    (length,) = _LENGTH.unpack(view[len(MAGIC) : _HEAD])
    if length > MANIFEST_LIMIT:
        raise FormatError(f"the manifest claims {length} bytes; at most {MANIFEST_LIMIT} are allowed")
    if len(view) < _HEAD + length:
        raise FormatError("the package ends within its manifest")
    manifest = Manifest.parse(view[_HEAD : _HEAD + length])
    _check_kinds(manifest)
    stored: dict[str, memoryview] = {}
    at = _HEAD + length
    for entry in manifest.sections:
        part = view[at : at + entry.stored_size]
        if len(part) != entry.stored_size:
            raise FormatError(f"the package ends within the section {entry.kind}")
        if digest_bytes(part) != entry.stored_sha256:
            raise FormatError(
                f"the section {entry.kind} is damaged: its stored bytes do not have the digest of the manifest",
                details={"section": entry.kind, "expected": entry.stored_sha256},
            )
        stored[entry.kind] = part
        at += entry.stored_size
    if at != len(view):
        raise FormatError(f"the package goes on behind its last section (by {len(view) - at} bytes)")
    unknown = tuple(entry.kind for entry in manifest.sections if entry.kind not in KINDS)
    return Container(manifest=manifest, stored=stored, unknown=unknown)


def _check_kinds(manifest: Manifest) -> None:
    for entry in manifest.sections:
        kind = KINDS.get(entry.kind)
        if kind is None and entry.critical:
            raise UnsupportedError(
                f"{manifest.name} {manifest.version} cannot be used without its section {entry.kind!r}, "
                "which this visget does not know",
                hint="a newer visget can use it: pip install -U visget",
            )
        if kind is not None and entry.critical != kind.critical:
            raise FormatError(f"the section {entry.kind} must be {'critical' if kind.critical else 'optional'}")
        limit = UNKNOWN_LIMIT if kind is None else kind.limit
        if entry.size > limit:
            raise FormatError(f"the section {entry.kind} claims {entry.size} bytes; at most {limit} are allowed")
        if entry.stored_size > stored_limit(entry.size):
            raise FormatError(f"the section {entry.kind} takes more stored bytes than any good frame would")
    present = {entry.kind for entry in manifest.sections}
    for kind in KINDS.values():
        if kind.required and kind.name not in present:
            raise FormatError(f"the package has no section {kind.name}")


def write_container(manifest: Manifest, sections: Mapping[str, bytes]) -> bytes:
    """Return the container that holds `sections`; the same input gives the same bytes.

    Args:
        manifest: what the package says about itself; its own `sections` are replaced.
        sections: the bytes of each section by kind.

    Raises:
        FormatError: a reader would refuse the result.
    """
    if odd := sorted(sections.keys() - KINDS.keys()):
        raise ValueError(f"unknown kinds of section: {odd}")
    entries = []
    frames = []
    for kind in KINDS.values():
        if (content := sections.get(kind.name)) is None:
            continue
        frame = _compress(content)
        frames.append(frame)
        entries.append(
            SectionEntry(
                kind=kind.name,
                critical=kind.critical,
                size=len(content),
                sha256=digest_bytes(content),
                stored_size=len(frame),
                stored_sha256=digest_bytes(frame),
            )
        )
    encoded = replace(manifest, sections=tuple(entries)).encode()
    data = b"".join((MAGIC, _LENGTH.pack(len(encoded)), encoded, *frames))
    # What is written can be read: a wrong summary or symbol is found here and not on a user's machine.
    read_container(data)
    return data


def _compress(content: bytes) -> bytes:
    import zstandard

    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL,
        source_size=len(content),
        window_log=min(WINDOW_LOG, max(10, (len(content) - 1).bit_length())),
        write_content_size=True,
        write_checksum=True,
        write_dict_id=False,
        threads=0,
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(content)


def _decompress(stored: memoryview, entry: SectionEntry) -> Iterator[bytes]:
    """Yield the content of one frame, believing nothing that the frame says about itself.

    zstandard's one-shot decompress() is not used: it allocates what the frame claims whatever limit it is given,
    drops what follows the first frame, and its stream reader gives a short read for a truncated one.
    """
    import zstandard

    name = entry.kind
    if bytes(stored[:4]) != _FRAME_MAGIC:
        raise FormatError(f"the section {name} is not a zstd frame")
    try:
        parameters = zstandard.get_frame_parameters(bytes(stored[:18]))
        if parameters.content_size != entry.size:
            raise FormatError(f"the frame of the section {name} does not have the size that the manifest says")
        if parameters.window_size > 1 << WINDOW_LOG:
            raise FormatError(f"the frame of the section {name} needs a window of more than 8 MiB")
        if not parameters.has_checksum or parameters.dict_id != 0:
            raise FormatError(f"the frame of the section {name} must have a checksum and no dictionary")
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG).decompressobj()
        digest = hashlib.sha256()
        total = 0
        at = 0
        while at < len(stored) and not decompressor.eof:
            part = decompressor.decompress(stored[at : at + _STEP])
            at += _STEP
            total += len(part)
            if total > entry.size:
                raise FormatError(f"the section {name} is larger than the manifest says")
            digest.update(part)
            yield part
    except zstandard.ZstdError as error:
        raise FormatError(f"the frame of the section {name} cannot be decompressed: {error}") from error
    if not decompressor.eof:
        raise FormatError(f"the frame of the section {name} is not complete")
    if decompressor.unused_data or at < len(stored):
        raise FormatError(f"bytes follow the frame of the section {name}")
    if total != entry.size or digest.hexdigest() != entry.sha256:
        raise FormatError(
            f"the section {name} is damaged: its content does not have the digest of the manifest",
            details={"section": name, "expected": entry.sha256},
        )
