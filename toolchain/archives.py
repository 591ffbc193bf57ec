"""Reading static libraries: the Unix ``ar`` format as GNU, LLVM and BSD write it, thin archives included.

Invariant: read_archive() returns every member, in its order, under its own name (members may share a name), or raises
FormatError; the archive's index is not trusted and not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from visget.errors import FormatError

MAGIC, THIN_MAGIC = b"!<arch>\n", b"!<thin>\n"
"""The first bytes of archives; a thin one names its members' files."""

_INDICES = frozenset(["/", "/SYM64/", "__.SYMDEF", "__.SYMDEF SORTED", "__.SYMDEF_64", "__.SYMDEF_64 SORTED"])


class Member(NamedTuple):
    """One file in an archive."""

    name: str
    """Its name in the archive."""
    data: bytes
    origin: str
    """``libx.a(name)``, for messages."""


def is_archive(data: bytes) -> bool:
    """Tell whether `data` begins as an archive does."""
    return data[:8] in (MAGIC, THIN_MAGIC)


def read_archive(path: Path) -> list[Member]:
    """Return the members of the archive `path`.

    Raises:
        FormatError: it is not an archive, is damaged, or a member of a thin archive has vanished.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read the archive {path}: {error.strerror}", where=str(path)) from error
    return list(_members(data, path))


def _members(data: bytes, path: Path) -> Iterator[Member]:
    if not is_archive(data):
        raise FormatError(f"{path} is not a static library", where=str(path))
    thin = data[:8] == THIN_MAGIC
    long_names = b""
    position = 8
    while position + 60 <= len(data):
        header = data[position : position + 60]
        try:
            size = int(header[48:58])
        except ValueError:
            size = -1
        if header[58:60] != b"`\n" or size < 0:
            raise FormatError(f"{path} is damaged at byte {position}", where=str(path))
        position += 60
        name = header[:16].decode("utf-8", "replace").rstrip(" ")
        inside = not thin or name in _INDICES or name == "//"
        content = data[position : position + size] if inside else b""
        if inside and len(content) != size:
            raise FormatError(f"{path} is cut short in its member {name}", where=str(path))
        position += size + size % 2 if inside else 0
        if name == "//":
            long_names = content
            continue
        if name.startswith("#1/"):
            length = int(name[3:])
            name, content = content[:length].rstrip(b"\0").decode("utf-8", "replace"), content[length:]
        elif name.startswith("/") and name[1:].isdigit():
            name = _long_name(long_names, int(name[1:]), path)
        elif name not in _INDICES:
            name = name.removesuffix("/")
        if name in _INDICES:
            continue
        yield Member(name, _outside(path, name) if thin else content, f"{path}({Path(name).name if thin else name})")


def _long_name(names: bytes, start: int, path: Path) -> str:
    end = names.find(b"\n", start)
    if not 0 <= start < end:
        raise FormatError(f"{path} has a member without a name", where=str(path))
    return names[start:end].decode("utf-8", "replace").removesuffix("/")


def _outside(path: Path, name: str) -> bytes:
    try:
        return (path.parent / name).read_bytes()
    except OSError as error:
        raise FormatError(
            f"the thin archive {path} names {name}, which cannot be read: {error.strerror}", where=str(path)
        ) from error
