"""Reading what this client kept for itself: damage counts as absence, because it can be fetched again."""

from __future__ import annotations

from pathlib import Path

from visget.cache.content import DamagedError, read_file


def read_local(path: Path, limit: int) -> bytes | None:
    """Return the bytes of a file that this client kept, or None when it is missing or damaged.

    Raises:
        OSError: reading failed for a reason outside the file.
    """
    try:
        return read_file(path, limit)
    except DamagedError:
        return None
