"""Unpacking an archive of sources, whoever made it, into a directory that was not there before.

Invariant: nothing is written outside the new directory, and nothing but plain files and directories is ever created:
no link, device, or odd mode. A link to a file of the archive becomes a copy of it; other links are left out and
reported. The directory appears complete or not at all.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import posixpath
import secrets
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from visget.errors import FormatError, ResourceError
from visget.files import translated

_CHUNK = 1 << 20
_PATH_LIMIT = 1024
_PART_LIMIT = 255
_DEPTH_LIMIT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractLimits:
    """How much an archive may unfold to."""

    size: int = 2 << 30
    """Bytes of all files together, and of the unpacked tar stream."""
    members: int = 200_000
    """Files, directories and links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What came out of an archive."""

    files: int
    """How many files were written."""
    skipped: tuple[str, ...]
    """Links that lead nowhere inside, and other things that are no files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """One entry of an archive, its name not yet checked."""

    name: str
    kind: str
    """"file", "directory", "symlink", "hardlink" or "other"."""
    size: int = 0
    target: str = ""
    stream: IO[bytes] | None = None


def extract(archive: Path, destination: Path, *, limits: ExtractLimits | None = None) -> Extracted:
    """Unpack `archive` (tar, plain or packed with gzip, bzip2, xz or zstd, or zip) to `destination`.

    When everything in it lies in one directory, that directory becomes `destination`.

    Raises:
        FormatError: it is no such archive, is damaged, or wants to write where it must not.
        ResourceError: it unfolds to more than `limits`, or the disk is full.
    """
    limits = limits or ExtractLimits()
    temporary = destination.with_name(f".{destination.name}.{secrets.token_hex(8)}.tmp")
    with translated("unpack an archive", destination):
        if os.path.lexists(destination):
            raise FileExistsError(17, "the directory exists", str(destination))
        destination.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir(mode=0o700)
    try:
        with translated("unpack an archive", destination):
            writer = _Writer(temporary, archive.name, limits)
            # Damage shows wherever a member is read, so the translation spans the whole loop.
            with _damage_translated(archive.name):
                for member in _members(archive, limits):
                    writer.add(member)
            result = writer.finish()
            _top(temporary).replace(destination)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return result


def _top(directory: Path) -> Path:
    """Return the single directory in `directory`, or itself."""
    entries = list(directory.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else directory


class _Writer:
    """Writes members below one directory."""

    def __init__(self, root: Path, archive: str, limits: ExtractLimits) -> None:
        self._root = root
        self._archive = archive
        self._limits = limits
        self._files: set[str] = set()
        self._directories: set[str] = {"."}
        self._links: list[tuple[str, str]] = []  # name and the name it stands for, both inside
        self._skipped: list[str] = []
        self._members = 0
        self._size = 0

    def add(self, member: _Member) -> None:
        self._members += 1
        if self._members > self._limits.members:
            raise ResourceError(f"the archive holds more than {self._limits.members} entries", where=self._archive)
        name = self._checked(member.name)
        if member.kind == "directory":
            self._make_directory(name)
        elif member.kind == "file":
            self._write(name, member)
        elif member.kind == "symlink":
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.target))
            self._link(name, member.target, target)
        elif member.kind == "hardlink":
            self._link(name, member.target, posixpath.normpath(member.target))
        else:
            self._skipped.append(name)

    def finish(self) -> Extracted:
        """Turn links to files into copies, also through chains of links."""
        links = dict(self._links)
        for name, target in self._links:
            seen = {name}
            while target in links and target not in seen:
                seen.add(target)
                target = links[target]
            if target not in self._files or name in self._files or name in self._directories:
                self._skipped.append(name)
                continue
            self._make_directory(posixpath.dirname(name) or ".")
            with (self._root / target).open("rb") as source:
                self._copy(name, source, (self._root / target).stat().st_size)
        if not self._files:
            raise FormatError("the archive holds no files", where=self._archive)
        return Extracted(files=len(self._files), skipped=tuple(sorted(self._skipped)))

    def _link(self, name: str, raw: str, target: str) -> None:
        if raw.startswith("/") or target.startswith("../") or target == "..":
            self._skipped.append(name)
        else:
            self._links.append((name, target))

    def _checked(self, name: str) -> str:
        """Return `name` without "./" and doubled slashes, once it is known to stay inside."""
        shown = name[:80].encode("unicode_escape", "replace").decode("ascii")
        if not name or name.startswith("/") or "\0" in name or "\\" in name:
            raise FormatError(f"the archive holds an entry with the name {shown!r}", where=self._archive)
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise FormatError(f"the archive wants to write outside its directory: {shown!r}", where=self._archive)
        sizes = [len(os.fsencode(part)) for part in parts]
        if len(parts) > _DEPTH_LIMIT or sum(sizes) > _PATH_LIMIT or max(sizes, default=0) > _PART_LIMIT:
            raise FormatError(f"the archive holds an entry whose name is too long: {shown!r}...", where=self._archive)
        if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
            raise FormatError(f"the archive holds an entry with control characters: {shown!r}", where=self._archive)
        return "/".join(parts) or "."

    def _make_directory(self, name: str) -> None:
        if name in self._directories:
            return
        parent = posixpath.dirname(name) or "."
        self._make_directory(parent)
        if name in self._files:
            raise FormatError(f"the archive uses {name!r} as a file and as a directory", where=self._archive)
        (self._root / name).mkdir(mode=0o755)
        self._directories.add(name)

    def _write(self, name: str, member: _Member) -> None:
        if member.stream is None:
            raise FormatError(f"the archive has no content for {name!r}", where=self._archive)
        self._make_directory(posixpath.dirname(name) or ".")
        with member.stream:
            self._copy(name, member.stream, member.size)

    def _copy(self, name: str, stream: IO[bytes], size: int) -> None:
        if name in self._files or name in self._directories:
            raise FormatError(f"the archive holds {name!r} twice", where=self._archive)
        self._files.add(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        written = 0
        with os.fdopen(os.open(self._root / name, flags, 0o644), "wb") as output:
            while chunk := stream.read(_CHUNK):
                written += len(chunk)
                self._size += len(chunk)
                if self._size > self._limits.size:
                    raise ResourceError(
                        f"the archive unfolds to more than {self._limits.size} bytes", where=self._archive
                    )
                output.write(chunk)
        if written != size:
            raise FormatError(f"{name!r} has {written} bytes where the archive says {size}", where=self._archive)


@contextlib.contextmanager
def _damage_translated(name: str) -> Iterator[None]:
    import zstandard

    try:
        yield
    except (
        tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError,
        EOFError, NotImplementedError,
    ) as error:  # fmt: skip
        raise FormatError(f"the archive is damaged: {error}", where=name) from error
    except OSError as error:
        # bz2 reports damage as an OSError without a number; the others are the machine's.
        if error.errno is not None:
            raise
        raise FormatError(f"the archive is damaged: {error}", where=name) from error


def _members(archive: Path, limits: ExtractLimits) -> Iterator[_Member]:
    with archive.open("rb") as stream:
        magic = stream.read(262)
        stream.seek(0)
        if magic.startswith(b"PK\x03\x04"):
            yield from _zip_members(stream)
        else:
            with _unpacked(stream, magic, archive.name) as plain:
                yield from _tar_members(_Capped(plain, limits.size, archive.name), archive.name)


@contextlib.contextmanager
def _unpacked(stream: IO[bytes], magic: bytes, name: str) -> Iterator[IO[bytes]]:
    if magic.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=stream) as plain:
            yield cast("IO[bytes]", plain)
    elif magic.startswith(b"BZh"):
        with bz2.BZ2File(stream) as plain_bz2:
            yield plain_bz2
    elif magic.startswith((b"\xfd7zXZ\0", b"\x5d\x00\x00")):
        with lzma.LZMAFile(stream) as plain_xz:
            yield plain_xz
    elif magic.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard

        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(stream) as plain_zstd:
            yield cast("IO[bytes]", plain_zstd)
    elif magic[257:262] == b"ustar":
        yield stream
    else:
        raise FormatError(
            "this is no archive that visget can unpack",
            where=name,
            hint="it must be a zip, or a tar that is plain or packed with gzip, bzip2, xz or zstd",
        )


class _Capped(io.RawIOBase):
    """A stream that ends in an error after so many bytes: tar headers and holes cost time too."""

    def __init__(self, stream: IO[bytes], limit: int, name: str) -> None:
        super().__init__()
        self._stream = stream
        self._left = limit
        self._limit = limit
        self._name = name

    def read(self, size: int = -1, /) -> bytes:
        data = self._stream.read(size if size >= 0 else _CHUNK)
        self._left -= len(data)
        if self._left < 0:
            raise ResourceError(f"the archive unfolds to more than {self._limit} bytes", where=self._name)
        return data


def _tar_members(stream: _Capped, archive: str) -> Iterator[_Member]:
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|") as tar:
        for info in tar:
            # Names are checked by the writer; the filter (Python 3.11.4) is a second opinion on everything else.
            if (info.isreg() or info.isdir()) and hasattr(tarfile, "data_filter"):
                try:
                    tarfile.data_filter(info, "/nonexistent")
                except tarfile.FilterError as error:
                    raise FormatError(f"the archive is refused: {error}", where=archive) from error
            yield _tar_member(tar, info)


def _tar_member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> _Member:
    if info.isdir():
        return _Member(name=info.name, kind="directory")
    if info.isreg():
        return _Member(name=info.name, kind="file", size=info.size, stream=tar.extractfile(info))
    if info.issym():
        return _Member(name=info.name, kind="symlink", target=info.linkname)
    if info.islnk():
        return _Member(name=info.name, kind="hardlink", target=info.linkname)
    return _Member(name=info.name, kind="other")


def _zip_members(stream: IO[bytes]) -> Iterator[_Member]:
    with zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            if info.flag_bits & 1:
                raise zipfile.BadZipFile(f"{info.filename[:80]!r} is encrypted")
            if info.is_dir():
                yield _Member(name=info.filename, kind="directory")
            elif stat.S_ISLNK(mode):
                if info.file_size > _PATH_LIMIT:
                    raise zipfile.BadZipFile("a link has too long a target")
                target = archive.read(info).decode("utf-8", "replace")
                yield _Member(name=info.filename, kind="symlink", target=target)
            elif mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
                yield _Member(name=info.filename, kind="other")
            else:
                yield _Member(name=info.filename, kind="file", size=info.file_size, stream=archive.open(info))
