"""Holding a registry's directory for writing: one at a time, and nothing half-written of an earlier one left.

Invariant: whoever holds the lock may remove every temporary file, because nobody else can be alive. The spec is
docs/spec/registry.md, section "Publishing".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from visget.cache.content import DamagedError, read_checked
from visget.digest import digest_bytes
from visget.errors import CacheError, RegistryError
from visget.failpoint import failpoint
from visget.files import fsync_dir, locked, remove_leftovers, translated, write_new
from visget.registry.protocol import ROOT_LIMIT, ROOT_PATH, parse_root
from visget.registry.transport import DirectoryTransport
from visget.registry.tuf_names import METADATA, TARGETS

_BATCH = 32
LOCK = ".lock"
NEW = ".new"
"""Where files are written before they get their names: looking through it costs nothing."""
OURS = frozenset([ROOT_PATH, METADATA, TARGETS, LOCK, NEW])
"""What may lie in a registry's directory."""


@contextlib.contextmanager
def writing(root: Path, *, make: bool = False) -> Iterator[None]:
    """Hold the registry's lock and translate what the file system refuses.

    Args:
        root: the registry's directory.
        make: it need not be a registry yet.

    Raises:
        RegistryError: it is none, or cannot be written.
        ResourceError: the disk is full or fails.
    """
    try:
        with translated("write the registry", root):
            if make:
                root.mkdir(parents=True, exist_ok=True)
            else:
                check_registry(root)
            # Everybody who may write in the directory may take the lock: locked() alone would make it private.
            (root / LOCK).touch(mode=0o666)
            with locked(root / LOCK):
                _sweep(root)
                try:
                    yield
                except BaseException:
                    # A full disk must not stay full of what was meant to be written.
                    with contextlib.suppress(OSError):
                        _sweep(root)
                    raise
    except CacheError as error:
        raise RegistryError(
            error.message, where=error.where, hint="publishing needs permission to write in the registry's directory"
        ) from error


def check_registry(root: Path) -> None:
    """Check that the directory is a registry.

    Raises:
        RegistryError: it is none.
        UnsupportedError: it is one of a later version.
    """
    data = DirectoryTransport(root).read(ROOT_PATH, limit=ROOT_LIMIT, what="the registry")
    if data is None:
        raise RegistryError(
            "there is no registry here", where=str(root), hint=f"make one: visget registry init {root}"
        )
    parse_root(data, str(root / ROOT_PATH))


def write_batch(root: Path, files: Mapping[str, bytes], mode: int = 0o644) -> None:
    """Write files of a registry that nobody reads yet: each appears complete, and all are durable at the end.

    Making 260 files durable one after the other takes a second where doing it at once takes a tenth.

    Args:
        root: the registry's directory.
        files: the content of each path.
        mode: the permissions of the files.

    Raises:
        ResourceError, CacheError: one cannot be written; some may have been.
    """
    room = root / NEW
    with translated("write a file of the registry", room):
        room.mkdir(exist_ok=True)
        failpoint("registry.files.before-write")
    pending = list(files.items())
    with ThreadPoolExecutor(_BATCH) as pool:
        for start in range(0, len(pending), _BATCH):
            part = pending[start : start + _BATCH]
            # In the order given, so that the error reported is always the same one.
            failures = pool.map(partial(_write_half, room, mode), part)
            for (path, _), failure in zip(part, failures, strict=True):
                if failure is not None:
                    with translated("write a file of the registry", root / path):
                        raise failure
            with translated("write a file of the registry", room):
                failpoint("registry.files.written")
            for path, _ in part:
                with translated("write a file of the registry", root / path):
                    (room / _half_name(path)).replace(root / path)
    for directory in sorted({(root / path).parent for path in files}):
        with translated("write a file of the registry", directory):
            failpoint("registry.files.named")
            fsync_dir(directory)


def _write_half(room: Path, mode: int, item: tuple[str, bytes]) -> OSError | None:
    path, data = item
    half = room / _half_name(path)
    try:
        half.unlink(missing_ok=True)
        write_new(half, data, mode)
    except OSError as error:
        return error
    return None


def _half_name(path: str) -> str:
    return path.replace("/", "_")


def missing_files(root: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return those of `files` that are not there with that content: never written, or damaged since."""
    lacking = {}
    for path, data in files.items():
        with translated("read a file of the registry", root / path):
            try:
                there = read_checked(root / path, digest_bytes(data), len(data)) is not None
            except DamagedError:
                there = False
        if not there:
            lacking[path] = data
    return lacking


def _sweep(root: Path) -> None:
    """Remove what a killed writer left half-written."""
    for room in (root, root / METADATA):
        remove_leftovers(room)
    for path in (root / NEW).glob("*"):
        path.unlink(missing_ok=True)
