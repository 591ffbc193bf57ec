"""The documents of a registry, shared by the side that writes them and the side that reads them.

Invariant: what a parse function returns is in normal form, and every path is made of parsed names and digests
only, so that no registry can point outside itself. Keys that a reader does not know are ignored: later versions
add some. The spec is docs/spec/registry.md.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from packaging.version import Version

from visget.digest import Digest, parse_digest
from visget.errors import FormatError, RegistryError, TrustError, UnsupportedError, UsageError
from visget.format.container import FILE_LIMIT
from visget.format.keys import PublicKey, parse_key_id
from visget.format.manifest import SUMMARY_LIMIT, Manifest
from visget.format.signing import ENVELOPE_LIMIT
from visget.format.strictjson import Reader, dumps, loads
from visget.names import PackageName, parse_name, parse_version

FORMAT = 1
TREE_FORMAT = 2
ROOT_PATH = "visget.json"
ROOT_LIMIT = 64 << 10
NAMES_LIMIT = 64 << 20
INDEX_LIMIT = 16 << 20
PACKAGE_LIMIT = FILE_LIMIT
"""The largest package file that a registry takes or a client fetches."""
RECORD_LIMIT = 64 << 10
"""The largest record of owners."""
_RECORDS_LIMIT = 4096
_OWNERS_LIMIT = 64
YANKED_LIMIT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One published version of a package."""

    name: PackageName
    """The package."""
    version: Version
    """Its version."""
    vis: Digest
    """The digest of the package file."""
    size: int
    """The bytes of the package file."""
    dsse: Digest
    """The digest of the signature file."""
    dsse_size: int
    """The bytes of the signature file."""
    summary: str
    """One line that says what it is."""
    license: str
    """An SPDX licence expression."""
    profile: str
    """The VIS profile of the module."""
    epoch: int
    """The LLVM major version whose bitcode writer made the module."""
    dependencies: tuple[str, ...]
    """Other packages it needs, as requirements."""
    functions: tuple[str, ...]
    """The symbols that it exports."""
    yanked: str | None = None
    """Why its owner asks not to choose it any more; None for a version in good standing."""

    @classmethod
    def of(cls, manifest: Manifest, *, vis: Digest, size: int, dsse: Digest, dsse_size: int) -> Release:
        """Return the release that `manifest` describes."""
        return cls(
            name=manifest.name,
            version=manifest.version,
            vis=vis,
            size=size,
            dsse=dsse,
            dsse_size=dsse_size,
            summary=manifest.summary,
            license=manifest.license,
            profile=manifest.profile,
            epoch=manifest.epoch,
            dependencies=manifest.dependencies,
            functions=manifest.exports,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerFile:
    """What an index says about one record of the owners of its package."""

    digest: Digest
    """The digest of the record."""
    size: int
    """Its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """Everything that a registry says about one name."""

    name: PackageName
    """The package."""
    owners: tuple[PublicKey, ...]
    """The keys that may publish under this name, as the registry says; visget.registry.trust decides."""
    versions: tuple[Release, ...]
    """All published versions, the lowest first."""
    records: tuple[OwnerFile, ...] = ()
    """The records of its owners, the first first."""
    owner_records: tuple[bytes, ...] = field(default=(), compare=False)
    """Their contents, where they were read."""

    @property
    def latest(self) -> Release | None:
        """The highest version in good standing, a final one if there is any."""
        good = [release for release in self.versions if release.yanked is None]
        final = [release for release in good if not release.version.is_prerelease]
        return max(final or good, key=lambda release: release.version, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameEntry:
    """What the list of all names says about one package."""

    name: PackageName
    """The package."""
    latest: str | None
    """Its newest version in good standing, if it has one."""
    summary: str
    """One line that says what it is."""
    functions: tuple[str, ...]
    """The symbols that the newest version exports."""


def encode_root() -> bytes:
    """Return the document that makes a directory a registry; it is not signed, and only a help for messages."""
    return dumps({"format": TREE_FORMAT}) + b"\n"


def parse_root(data: bytes, where: str) -> None:
    """Check the document that makes a directory a registry.

    Raises:
        RegistryError: it is something else.
        UnsupportedError: it is of a later format.
    """
    with answer_of(where):
        number = Reader(loads(data, what=ROOT_PATH, limit=ROOT_LIMIT), ROOT_PATH).integer("format", 1)
    if number != TREE_FORMAT:
        raise UnsupportedError(
            f"the registry has format {number}; this version of visget reads format {TREE_FORMAT}",
            where=where,
            hint="pip install -U visget",
        )


def encode_releases(releases: Releases) -> bytes:
    """Return the index of one name."""
    return dumps(
        {
            "format": FORMAT,
            "name": releases.name,
            "owners": [owner.id for owner in releases.owners],
            "records": [{"sha256": record.digest, "size": record.size} for record in releases.records],
            "versions": [_release_object(release) for release in releases.versions],
        }
    )


def parse_releases(data: bytes, name: PackageName, where: str) -> Releases:
    """Parse the index of `name`.

    Raises:
        RegistryError: it is malformed, or the index of another name.
        TrustError: an owner's key is malformed or weak.
    """
    with answer_of(where):
        reader = open_document(data, f"the index of {name}", INDEX_LIMIT)
        if (found := reader.line("name")) != name:
            raise reader.fail("name", f"is {found[:80]!r}, not {name!r}")
        texts = reader.lines("owners", 64)
        if len(texts) > _OWNERS_LIMIT or len(set(texts)) != len(texts):
            raise reader.fail("owners", f"has more than {_OWNERS_LIMIT} keys, or one twice")
        versions = [_release(item, name) for item in reader.objects("versions")]
        versions.sort(key=lambda release: release.version)
        for one, other in itertools.pairwise(versions):
            if one.version == other.version:
                raise reader.fail("versions", f"holds {one.version} twice")
        records = tuple(
            OwnerFile(digest=_digest(item, "sha256"), size=item.integer("size", 1, RECORD_LIMIT))
            for item in reader.objects("records")
        )
        if len(records) > _RECORDS_LIMIT:
            raise reader.fail("records", f"has more than {_RECORDS_LIMIT} entries")
        return Releases(
            name=name, owners=tuple(map(parse_key_id, texts)), versions=tuple(versions), records=records
        )


def encode_names(entries: Iterable[NameEntry]) -> bytes:
    """Return the list of all names."""
    packages = [
        {"name": entry.name, "latest": entry.latest, "summary": entry.summary, "functions": entry.functions}
        for entry in sorted(entries, key=lambda entry: entry.name)
    ]
    return dumps({"format": FORMAT, "packages": packages})


def parse_names(data: bytes, where: str) -> tuple[NameEntry, ...]:
    """Parse the list of all names.

    Raises:
        RegistryError: it is malformed.
    """
    with answer_of(where):
        reader = open_document(data, "the list of names", NAMES_LIMIT)
        return tuple(
            NameEntry(
                name=parse_name(item.line("name")),
                latest=None if (latest := item.nullable_line("latest", 128)) is None else str(parse_version(latest)),
                summary=item.line("summary", SUMMARY_LIMIT),
                functions=item.lines("functions", 256),
            )
            for item in reader.objects("packages")
        )


def entry_of(releases: Releases) -> NameEntry:
    """Return what the list of all names says about `releases`."""
    shown = releases.latest or releases.versions[-1]
    return NameEntry(
        name=releases.name,
        latest=str(releases.latest.version) if releases.latest else None,
        summary=shown.summary,
        functions=shown.functions,
    )


def open_document(data: bytes, what: str, limit: int) -> Reader:
    """Parse a document of a registry and check its format; call it within answer_of()."""
    reader = Reader(loads(data, what=what, limit=limit), what)
    reader.integer("format", FORMAT, FORMAT)
    return reader


def _release_object(release: Release) -> dict[str, Any]:
    return {
        "version": str(release.version),
        "vis": release.vis,
        "size": release.size,
        "dsse": release.dsse,
        "dsse_size": release.dsse_size,
        "summary": release.summary,
        "license": release.license,
        "profile": release.profile,
        "epoch": release.epoch,
        "dependencies": release.dependencies,
        "functions": release.functions,
        "yanked": release.yanked,
    }


def _release(reader: Reader, name: PackageName) -> Release:
    return Release(
        name=name,
        version=parse_version(reader.line("version", 128)),
        vis=_digest(reader, "vis"),
        size=reader.integer("size", 1, PACKAGE_LIMIT),
        dsse=_digest(reader, "dsse"),
        dsse_size=reader.integer("dsse_size", 1, ENVELOPE_LIMIT),
        summary=reader.line("summary", SUMMARY_LIMIT),
        license=reader.line("license", 256),
        profile=reader.line("profile", 16),
        epoch=reader.integer("epoch", 1, 999),
        dependencies=reader.lines("dependencies", 256),
        functions=reader.lines("functions", 256),
        yanked=reader.nullable_line("yanked", YANKED_LIMIT),
    )


def _digest(reader: Reader, name: str) -> Digest:
    try:
        return parse_digest(reader.line(name, 64))
    except ValueError as error:
        raise reader.fail(name, f"is {error}") from error


@contextlib.contextmanager
def answer_of(where: str) -> Iterator[None]:
    """Turn a malformed document into the error of a registry that does not answer as one.

    Raises:
        RegistryError: the document is malformed.
        TrustError: it names a key that is refused.
    """
    try:
        yield
    except (FormatError, UsageError) as error:
        raise RegistryError(
            f"the registry's answer is malformed: {error.message}",
            where=where,
            hint="nothing of it was used; tell the registry's operator",
        ) from error
    except TrustError as error:
        raise TrustError(f"the registry names an owner whose key is refused: {error.message}", where=where) from error
