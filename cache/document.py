"""A small JSON document that must not be lost: replaced atomically, self-checking, with its latest generations.

Every write goes first to ``NAME.d/<generation>.json`` and then to ``NAME.json``, so that the newest generation has
the content of the document itself and damage to one of them loses nothing. Invariant: read() returns a content
that was written whole, and says when it was not the document's own. The format is docs/spec/store.md, section
"Documents".
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from visget.cache.content import DamagedError, move_aside, read_file, replace_file
from visget.digest import digest_bytes
from visget.failpoint import failpoint
from visget.files import fsync_dir, translated

_FORMAT = 1
_LIMIT = 64 << 20
_KEEP = 10


class Content(NamedTuple):
    """What a document holds."""

    generation: int
    """How many writes led to it; 0 when there never was one."""
    body: dict[str, Any]
    """The content; empty when there is none."""
    problem: str | None = None
    """What was wrong with the document, when the content comes from elsewhere."""
    lost: bool = False
    """Whether no generation could be read either."""


def read_document(path: Path) -> Content:
    """Return the content of the document at `path`, from its newest readable generation if need be.

    Raises:
        CacheError, ResourceError: reading failed for a reason outside the files.
    """
    with translated("read a document of the store", path):
        try:
            found = _read(path)
            problem = "it is missing"
        except DamagedError as error:
            found, problem = None, str(error)
        if found is not None:
            return found
        damaged = problem != "it is missing"
        for older in reversed(_generations(path)):
            try:
                found = _read(older)
            except DamagedError:
                damaged = True
                continue
            if found is not None:
                return found._replace(problem=problem)
        return Content(0, {}, problem, lost=True) if damaged else Content(0, {})


def write_document(root: Path, path: Path, body: dict[str, Any], generation: int) -> None:
    """Make `body` the content of the document; the caller holds its lock.

    Args:
        root: the store's directory.
        path: the document.
        body: its new content.
        generation: the number of the content that it replaces.

    Raises:
        CacheError, ResourceError: it cannot be written; the old content stays.
    """
    with translated("write a document of the store", path):
        folder = _folder(path)
        if folder.is_symlink() or not folder.is_dir():
            _make_way(root, folder)
            folder.mkdir(mode=0o700)
            fsync_dir(folder.parent)
        for place in (path.parent, folder):  # early versions wrote their temporary files here
            for leftover in place.glob(".*.tmp"):
                leftover.unlink(missing_ok=True)
        number = max([generation, *(int(old.stem) for old in _generations(path))]) + 1
        data = _encode(number, body)
        failpoint("store.document.before-generation")
        replace_file(root, folder / f"{number:08}.json", data, 0o600)
        failpoint("store.document.before-main")
        with contextlib.suppress(OSError):
            if path.is_symlink() or not path.is_file():
                _make_way(root, path)
        replace_file(root, path, data, 0o600)
        failpoint("store.document.before-cleanup")
        for old in _generations(path)[:-_KEEP]:
            old.unlink(missing_ok=True)


def _make_way(root: Path, path: Path) -> None:
    if os.path.lexists(path):
        move_aside(root, path)


def _folder(path: Path) -> Path:
    return path.with_suffix(".d")


def _generations(path: Path) -> list[Path]:
    return sorted(item for item in _folder(path).glob("*.json") if item.stem.isdecimal() and len(item.stem) == 8)


def _encode(generation: int, body: dict[str, Any]) -> bytes:
    text = _canonical(body)
    document = {"format": _FORMAT, "generation": generation, "sha256": digest_bytes(text), "body": body}
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"


def _canonical(body: object) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def _read(path: Path) -> Content | None:
    data = read_file(path, _LIMIT)
    if data is None:
        return None
    try:
        document = json.loads(data)
        body = document["body"]
        generation = document["generation"]
        known = document["format"] == _FORMAT
        whole = document["sha256"] == digest_bytes(_canonical(body))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedError(f"it is not a document of the store: {error}") from error
    if not known:
        raise DamagedError("it has another format")
    if not whole or not isinstance(body, dict) or type(generation) is not int:
        raise DamagedError("its content does not have the digest that it states")
    return Content(generation, body)
