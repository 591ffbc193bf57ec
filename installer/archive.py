"""Static libraries: the Unix ``ar`` format with GNU's symbol index.

Invariant: the bytes depend on the arguments alone (no times, owners or modes), so equal objects give equal
archives; ``ar t`` and every linker read them. Layout: the eight bytes ``!<arch>`` and newline, then members, each a
60-byte header and data padded to an even length; the first member, ``/``, is the index, the second, ``//``, holds
long member names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_MAGIC = b"!<arch>\n"


def write_archive(member: str, content: bytes, symbols: Iterable[str]) -> bytes:
    """Return an archive with one member.

    Args:
        member: the file name of the member, such as ``xxhash.o``.
        content: the object file.
        symbols: the global names that it defines.
    """
    encoded = member.encode("ascii")
    if not encoded or b"/" in encoded or b"\n" in encoded:
        raise ValueError(f"not a member's file name: {member!r}")
    long_names = b""
    short = encoded + b"/"
    if len(short) > 16:
        long_names = encoded + b"/\n"
        short = b"/0"
    names = sorted(set(symbols))
    strings = b"".join(name.encode("ascii") + b"\0" for name in names)
    index_size = 4 + 4 * len(names) + len(strings)
    before = len(_MAGIC) + 60 + _even(index_size) + (60 + _even(len(long_names)) if long_names else 0)
    # The index is big-endian on every machine; each symbol points to the header of the member that defines it.
    index = struct.pack(f">I{len(names)}I", len(names), *[before] * len(names)) + strings
    parts = [_MAGIC, _member(b"/", index)]
    if long_names:
        parts.append(_member(b"//", long_names))
    parts.append(_member(short, content, b"644"))
    return b"".join(parts)


def _even(size: int) -> int:
    return size + size % 2


def _member(name: bytes, data: bytes, mode: bytes = b"0") -> bytes:
    header = b"%-16s%-12s%-6s%-6s%-8s%-10d`\n" % (name, b"0", b"0", b"0", mode, len(data))
    return header + data + b"\n" * (len(data) % 2)
