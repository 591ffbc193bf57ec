"""A native artifact outside the store: a directory that can be copied to another machine, with all that it needs.

Invariant: the directory is complete or not there: it is made beside its place and renamed. Nothing in it holds a path
of this machine or of the store: libraries find each other beside themselves, and documents from where they lie. What
stands in a directory's place is never removed unless visget wrote it for the same package and nothing was added since,
or the user insists; what visget did not write at all is not removed even then. The spec is docs/spec/targets.md.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from visget.cache.entry import NativeEntry
from visget.cache.store import Store
from visget.digest import Digest, digest_bytes, parse_digest
from visget.errors import CacheError, FormatError, UsageError
from visget.files import fsync_dir, translated, write_new
from visget.format.strictjson import Reader, dumps, loads
from visget.installer.pkgconfig import OWN_PREFIX
from visget.installer.receipt import RECEIPT_FILE, Receipt

LIST_FILE = "visget-artifact.json"
FORMAT = "visget-artifact-1"
_LIMIT = 16 << 20
_OTHER_HOME = re.compile(r"^prefix=\$\{pcfiledir\}/\.\./\.\./\.\./[0-9a-f]{64}$", re.MULTILINE)
_OTHER_INCLUDE = re.compile(r";\$\{_visget_prefix\}/\.\./[0-9a-f]{64}/include")
_LIBRARIES = ("lib/", "bin/")
_OF_ITS_OWN = frozenset(["LICENSE", RECEIPT_FILE, "api.json", "exports.json"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactDirectory:
    """A directory that write_directory() has made."""

    path: Path
    name: str
    version: str
    target: str
    """The key of the target (docs/spec/targets.md)."""
    files: Mapping[str, Digest]
    """Its files and their digests, the list itself left out."""
    packages: tuple[str, ...]
    """The dependencies whose libraries and headers are in it."""

    def as_dict(self) -> dict[str, object]:
        """Return what is in it as a JSON object."""
        return {
            "path": str(self.path), "name": self.name, "version": self.version, "target": self.target,
            "packages": list(self.packages), "files": dict(self.files),
        }  # fmt: skip


def write_directory(entry: NativeEntry, store: Store, place: Path, *, force: bool = False) -> ArtifactDirectory:
    """Write the artifact `entry` and the artifacts that it needs to the directory `place`.

    Args:
        entry: the artifact.
        store: where those that it needs are.
        place: the directory; its parent must be there.
        force: also in the place of another package's artifact, or of one to which files were added.

    Raises:
        UsageError: something else is there.
        CacheError: an artifact that it needs is gone from the store.
        ResourceError: it cannot be written.
    """
    place = place.absolute()
    receipt = Receipt.parse(entry.content(RECEIPT_FILE))
    check_place(place, receipt.name, force=force)
    contents, packages = _contents(entry, receipt, store)
    listed = {path: digest_bytes(data) for path, data in sorted(contents.items())}
    made = ArtifactDirectory(
        path=place, name=receipt.name, version=receipt.version, target=receipt.target.key(), files=listed,
        packages=tuple(packages),
    )  # fmt: skip
    contents[LIST_FILE] = _encode(made)
    aside = place.parent / f".{place.name}.{secrets.token_hex(6)}"
    with translated("write the artifact directory", place):
        try:
            _fill(aside, contents)
            _put_in_place(aside, place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return made


def check_place(place: Path, name: str, *, force: bool = False) -> None:
    """Refuse a place that holds what must not be removed; called before anything is compiled, too.

    Raises:
        UsageError: it does, or there is no directory around it.
    """
    place = place.absolute()
    if not place.parent.is_dir():
        raise UsageError(f"{place.parent} is not a directory", hint=f"make it first: mkdir -p {place.parent}")
    if not place.is_symlink() and place.is_dir() and not any(place.iterdir()):
        return
    if not place.is_symlink() and not place.exists():
        return
    found = read_directory(place)
    if found is None:
        raise UsageError(
            f"{place} is there already, and visget did not write it", hint="name a directory that is not there"
        )
    if force:
        return
    if found.name != name:
        raise UsageError(
            f"{place} holds an artifact of {found.name}, not of {name}",
            hint="name another directory, or give --force to replace it",
        )
    if others := sorted(set(_files_in(place)) - set(found.files) - {LIST_FILE}):
        raise UsageError(
            f"{place} holds files that visget did not write: {', '.join(others[:5])}",
            hint="move them away, or give --force to remove them",
        )


def read_directory(place: Path) -> ArtifactDirectory | None:
    """Return what visget wrote to `place`, or None when it did not write it."""
    try:
        if place.is_symlink():
            return None
        data = (place / LIST_FILE).read_bytes()
        reader = Reader(loads(data, what=LIST_FILE, limit=_LIMIT), LIST_FILE)
        if reader.line("format") != FORMAT:
            return None
        files = reader.object("files")
        found = ArtifactDirectory(
            path=place, name=reader.line("name"), version=reader.line("version"), target=reader.line("target"),
            files={path: parse_digest(files.line(path)) for path in files.names()},
            packages=reader.lines("packages"),
        )  # fmt: skip
        reader.done()
    except (OSError, FormatError, ValueError):
        return None
    return found


def _encode(made: ArtifactDirectory) -> bytes:
    return dumps({"format": FORMAT, **{key: value for key, value in made.as_dict().items() if key != "path"}})


def _contents(entry: NativeEntry, receipt: Receipt, store: Store) -> tuple[dict[str, bytes], list[str]]:
    """Return path and content of each file, and the dependencies that are among them."""
    contents = {file.path: _moved(file.path, entry.content(file.path)) for file in entry.files}
    packages = []
    for other in _needed(entry, store):
        about = Receipt.parse(other.content(RECEIPT_FILE))
        packages.append(f"{about.name} {about.version}")
        for file in other.files:
            path = file.path
            if path in _OF_ITS_OWN:
                path = f"share/visget/{about.name}/{path}"
            data = _moved(path, other.content(file.path))
            if path.startswith(("lib/pkgconfig/", "lib/cmake/")):
                # The package's own copies are the same but for the way to the other artifact, which lies here now.
                contents.setdefault(path, data)
            elif contents.setdefault(path, data) != data:
                raise UsageError(
                    f"{receipt.name} {receipt.version} and what it needs cannot lie in one directory: "
                    f"{path} of {about.name} {about.version} differs from another one's",
                    hint="give --link=static: then what it needs is a part of it",
                )
    return contents, sorted(packages)


def _needed(entry: NativeEntry, store: Store) -> Iterator[NativeEntry]:
    """Yield the artifacts that `entry` needs, those of what it needs included, each once."""
    pending, seen = [need.key for need in entry.needs], set()
    while pending:
        key = pending.pop(0)
        if key in seen:
            continue
        seen.add(key)
        other = store.native(key)
        if other is None:
            raise CacheError(f"the artifact {key} is gone from the store", hint="run the same command again")
        yield other
        pending += [need.key for need in other.needs]


def _moved(path: str, data: bytes) -> bytes:
    """Return a document without the ways that lead to other artifacts of the store."""
    if path.startswith("lib/pkgconfig/"):
        return _OTHER_HOME.sub(f"prefix={OWN_PREFIX}", data.decode()).encode()
    if path.startswith("lib/cmake/"):
        return _OTHER_INCLUDE.sub("", data.decode()).encode()
    return data


def _fill(directory: Path, contents: Mapping[str, bytes]) -> None:
    directory.mkdir()
    homes = {directory}
    for path, data in sorted(contents.items()):
        file = directory.joinpath(*PurePosixPath(path).parts)
        file.parent.mkdir(parents=True, exist_ok=True)
        homes.add(file.parent)
        write_new(file, data, 0o755 if path.startswith(_LIBRARIES) and ".so" in file.name else 0o644)
    for home in sorted(homes):
        fsync_dir(home)


def _put_in_place(made: Path, place: Path) -> None:
    old = None
    if place.exists() and any(place.iterdir()):
        old = place.parent / f"{made.name}.old"
        place.rename(old)
    try:
        made.rename(place)
    except OSError:
        if old is not None:
            old.rename(place)
        raise
    fsync_dir(place.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _files_in(place: Path) -> Iterator[str]:
    for path in place.rglob("*"):
        if path.is_symlink() or not path.is_dir():
            yield path.relative_to(place).as_posix()
