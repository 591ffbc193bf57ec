"""One native artifact on disk: a sealed directory and ``entry.json``, which lists every file in it.

Invariant: a NativeEntry is only ever made from a directory that holds exactly the files that its entry.json lists,
plain files of the recorded sizes, under the seal of this store; with check="full" their digests were compared too.
The format is docs/spec/store.md, section "Entries".
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from visget.cache.content import DamagedError, plain_file, read_file
from visget.cache.storekey import same_seal, seal_of
from visget.digest import Digest, digest_bytes, parse_digest
from visget.files import write_new

ENTRY = "entry.json"
FORMAT = 1
_LIMIT = 4 << 20
_BLOCK = 1 << 20

Check = Literal["quick", "full"]
"""quick: names, kinds and sizes. full: digests as well."""


class EntryFile(NamedTuple):
    """One file of an entry."""

    path: str
    """Its path inside the entry, with forward slashes."""
    size: int
    """Its bytes."""
    sha256: Digest
    """Their digest."""


class Need(NamedTuple):
    """A library in another artifact that one artifact's library is linked with."""

    key: Digest
    """The action key of the other artifact."""
    path: str
    """The library's path inside it; empty when nothing of it is loaded, and only its headers matter."""


class NativeEntry(NamedTuple):
    """A complete, undamaged native artifact."""

    path: Path
    """Its directory; nothing in it is ever changed."""
    key: Digest
    """The action key that names it."""
    files: tuple[EntryFile, ...]
    """Its files, entry.json itself left out, sorted by path."""
    needs: tuple[Need, ...] = ()
    """The libraries of other artifacts that must be there when it is loaded."""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    def file(self, path: str) -> EntryFile | None:
        """Return the file of that path, or None when the artifact has none."""
        return next((file for file in self.files if file.path == path), None)

    @contextlib.contextmanager
    def opened(self, path: str) -> Iterator[int]:
        """Open the file `path` and give its descriptor, after comparing what the descriptor reads with the list.

        Raises:
            DamagedError: the file is not what the list says, or somebody else could change it.
            OSError: it could not be read for a reason outside it.
        """
        with plain_file(self.path / path) as descriptor:
            _guard(path, os.fstat(descriptor))
            self._compare(path, _digest(descriptor))
            os.lseek(descriptor, 0, os.SEEK_SET)
            yield descriptor

    def content(self, path: str) -> bytes:
        """Return the bytes of the file `path`, compared with the list.

        Raises:
            DamagedError: the file is not what the list says.
            OSError: it could not be read for a reason outside it.
        """
        listed = self.file(path)
        data = read_file(self.path / path, listed.size) if listed else None
        if data is None:
            raise DamagedError(f"{path} is missing")
        self._compare(path, (len(data), digest_bytes(data)))
        return data

    def _compare(self, path: str, found: tuple[int, Digest]) -> None:
        listed = self.file(path)
        if listed is None or found != (listed.size, listed.sha256):
            raise DamagedError(f"{path} was changed")


def write_entry(directory: Path, key: Digest, secret: bytes, needs: Sequence[Need] = ()) -> None:
    """Describe the finished `directory` in its entry.json, under the seal of the store's key `secret`.

    Args:
        directory: the artifact.
        key: its action key.
        secret: the store's key.
        needs: the libraries of other artifacts that it is linked with.

    Raises:
        ValueError: the directory is empty, holds links or the like, or a name that no entry may have.
    """
    files = [file._asdict() for file in _described(directory)]
    document: dict[str, object] = {"format": FORMAT, "key": key, "files": files}
    if needs:
        document["needs"] = [need._asdict() for need in needs]
    document["seal"] = seal_of(secret, _sealed(document))
    write_new(directory / ENTRY, json.dumps(document, indent=1, sort_keys=True).encode() + b"\n", 0o444)


def unsealed(directory: Path) -> NativeEntry:
    """Return an entry for a directory that no store made, such as one of a benchmark: as it is now, so it counts.

    Raises:
        ValueError: as write_entry().
    """
    return NativeEntry(directory, Digest(""), tuple(_described(directory, ignore=ENTRY)))


def _described(directory: Path, *, ignore: str = "") -> list[EntryFile]:
    files = []
    try:
        paths = [path for path, _ in _walk(directory, "") if path != ignore]
    except DamagedError as error:
        raise ValueError(f"a native artifact cannot hold this: {error}") from error
    for path in paths:
        if path == ENTRY or not path.isprintable():
            raise ValueError(f"a native artifact cannot have a file called {path!r}")
        with plain_file(directory / path) as descriptor:
            size, digest = _digest(descriptor)
        files.append(EntryFile(path, size, digest))
    if not files:
        raise ValueError("a native artifact must have at least one file")
    return sorted(files)


def read_entry(directory: Path, key: Digest, check: Check, secret: bytes | None) -> NativeEntry | None:
    """Return the entry in `directory`, or None when nothing has that name.

    Args:
        directory: where it is.
        key: its action key.
        check: how much is compared.
        secret: the store's key; None when the store has none, so that nothing can be of its making.

    Raises:
        DamagedError: it is incomplete or was changed.
        OSError: it could not be read for a reason outside it, such as too many open files.
    """
    try:
        mode = directory.lstat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(mode):
        raise DamagedError("it is not a directory")
    files, needs = _listed(directory, key, secret)
    found = {path: size for path, size in _walk(directory, "") if path != ENTRY}
    for file in files:
        size = found.pop(file.path, None)
        if size is None:
            raise DamagedError(f"{file.path} is missing")
        if size != file.size:
            raise DamagedError(f"{file.path} has {size} bytes, not {file.size}")
    if found:
        raise DamagedError(f"{min(found)!r} does not belong to it")
    if check == "full":
        for file in files:
            with plain_file(directory / file.path) as descriptor:
                if _digest(descriptor) != (file.size, file.sha256):
                    raise DamagedError(f"{file.path} was changed")
    return NativeEntry(directory, key, files, needs)


def _listed(
    directory: Path, key: Digest, secret: bytes | None
) -> tuple[tuple[EntryFile, ...], tuple[Need, ...]]:
    data = read_file(directory / ENTRY, _LIMIT)
    if data is None:
        raise DamagedError(f"{ENTRY} is missing")
    try:
        document = json.loads(data)
        if document["format"] != FORMAT or document["key"] != key:
            raise DamagedError(f"{ENTRY} belongs to another entry or format")
        files = tuple(
            EntryFile(str(item["path"]), int(item["size"]), parse_digest(item["sha256"]))
            for item in document["files"]
        )
        needs = tuple(Need(parse_digest(item["key"]), str(item["path"])) for item in document.get("needs", ()))
        seal = str(document.pop("seal", ""))
        text = _sealed(document)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedError(f"{ENTRY} cannot be read: {error}") from error
    if not files or len({file.path for file in files}) != len(files):
        raise DamagedError(f"{ENTRY} lists no files, or one twice")
    if secret is None or not same_seal(seal, seal_of(secret, text)):
        raise DamagedError("it does not bear the seal of this store: it was made elsewhere, or its list was changed")
    return files, needs


def _sealed(document: dict[str, object]) -> bytes:
    """Return the text that the seal of an entry is made of: everything but the seal."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _walk(directory: Path, prefix: str) -> list[tuple[str, int]]:
    """Return path and size of each file below `directory`.

    Raises:
        DamagedError: something is neither a plain file nor a directory.
    """
    found = []
    with os.scandir(directory) as items:
        for item in items:
            facts = item.stat(follow_symlinks=False)
            if stat.S_ISDIR(facts.st_mode):
                found += _walk(directory / item.name, f"{prefix}{item.name}/")
            elif stat.S_ISREG(facts.st_mode):
                _guard(prefix + item.name, facts)
                found.append((prefix + item.name, facts.st_size))
            else:
                raise DamagedError(f"{prefix + item.name!r} is neither a plain file nor a directory")
    return found


def _guard(path: str, facts: os.stat_result) -> None:
    if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
        raise DamagedError(f"{path!r} could be changed by others")


def _digest(descriptor: int) -> tuple[int, Digest]:
    import hashlib

    state = hashlib.sha256()
    size = 0
    while part := os.read(descriptor, _BLOCK):
        state.update(part)
        size += len(part)
    return size, Digest(state.hexdigest())
