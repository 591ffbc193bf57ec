"""SHA-256 digests as a type of their own, so that a checked digest is never confused with a string.

Invariant: a Digest always holds 64 lower-case hexadecimal characters.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NewType

Digest = NewType("Digest", str)
"""The lower-case hexadecimal SHA-256 of some bytes."""

_HEX64 = re.compile(r"[0-9a-f]{64}\Z")


def parse_digest(text: str) -> Digest:
    """Return `text` as a Digest.

    Raises:
        ValueError: `text` is not 64 lower-case hexadecimal characters.
    """
    if not _HEX64.match(text):
        raise ValueError(f"not a SHA-256 digest in lower-case hexadecimal: {text[:80]!r}")
    return Digest(text)


def digest_bytes(data: bytes | bytearray | memoryview) -> Digest:
    """Return the digest of `data`."""
    return Digest(hashlib.sha256(data).hexdigest())


def digest_file(path: Path) -> Digest:
    """Return the digest of the file at `path`."""
    with path.open("rb") as stream:
        return Digest(hashlib.file_digest(stream, "sha256").hexdigest())
