"""The signed metadata of a registry in a directory: reading it, changing it, renewing it.

A Change collects new targets and commits them together: files of targets first, then the bins that name them, the
snapshot, and the timestamp last, each durable before the next. Every file but the timestamp has a version or a
digest in its name, so that a crash leaves the old state or the new one, and a client never sees a mixture.
Invariants: nothing is signed that was not signed by this registry before or put in by the caller, and versions only
grow. The caller holds the registry's lock. The spec is docs/spec/registry.md, section "Publishing".
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuf.api.metadata import (  # type: ignore[attr-defined]  # re-exported, not marked so
    Metadata,
    MetaFile,
    Root,
    Snapshot,
    TargetFile,
    Targets,
    Timestamp,
)

from visget.cache.content import DamagedError, read_file
from visget.digest import digest_bytes, parse_digest
from visget.errors import RegistryError, TrustError
from visget.failpoint import failpoint
from visget.files import atomic_write, translated
from visget.registry.tuf_client import Target, check_delegated
from visget.registry.tuf_keys import KeySigner
from visget.registry.tuf_names import BINS, bin_of, metadata_path, stored_path
from visget.registry.tuf_rules import ROLE_FIELD, limit_of
from visget.registry.writing import missing_files, write_batch

_DUE_FIELD = "x-visget-bins-expire"
"""When the first bin expires, in the signed snapshot: so that nobody has to read all of them to know."""
_DAY = 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """For how many days signatures hold. Each is renewed when half of it is over."""

    timestamp: int = 14
    """The timestamp: how long an old state can be passed off as the current one."""
    snapshot: int = 28
    """The snapshot."""
    bins: int = 90
    """The bins."""
    offline: int = 365
    """Root and targets, whose keys are offline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The versions that were signed last: what lies in the directory must not be older."""

    timestamp: int = 0
    snapshot: int = 0


class Repository:
    """The current, verified state of the registry in the directory `root`.

    Args:
        root: the registry's directory.
        trusted: the root metadata that the operator trusts.
    """

    def __init__(self, root: Path, trusted: bytes) -> None:
        self.root = root
        self.signed_root: Root = Metadata[Root].from_bytes(trusted).signed
        self._bins: dict[str, Metadata[Targets]] = {}
        timestamp_data = self._read("timestamp", None)
        self.timestamp: Metadata[Timestamp] = self._checked(timestamp_data, "timestamp", None, self.signed_root)
        version = self.timestamp.signed.snapshot_meta.version
        self.snapshot: Metadata[Snapshot] = self._load("snapshot", version, self.signed_root)
        self.targets: Metadata[Targets] = self._load("targets", self._version_of("targets"), self.signed_root)

    def _version_of(self, role: str) -> int:
        return int(self.snapshot.signed.meta[f"{role}.json"].version)

    def _read(self, role: str, version: int | None) -> bytes:
        path = self.root / metadata_path(role, version)
        try:
            with translated("read the registry's metadata", path):
                data = read_file(path, limit_of(role))
        except DamagedError as error:
            raise RegistryError(f"the registry's metadata is damaged: {error}", where=str(path)) from error
        if data is None:
            raise RegistryError("the registry has lost a file of its metadata", where=str(path))
        return data

    def _checked(self, data: bytes, role: str, version: int | None, delegator: Root | Targets) -> Metadata[Any]:
        where = str(self.root / metadata_path(role, version))
        found = check_delegated(data, role, delegator, where=where)
        if version is not None and found.signed.version != version:
            raise TrustError(f"the metadata of {role!r} has another version than its name says", where=where)
        return found

    def _load(self, role: str, version: int, delegator: Root | Targets) -> Metadata[Any]:
        return self._checked(self._read(role, version), role, version, delegator)

    def bin(self, role: str) -> Metadata[Targets]:
        """Return the metadata of a bin.

        Raises:
            TrustError, RegistryError: it is not in order.
        """
        if role not in self._bins:
            self._bins[role] = self._load(role, self._version_of(role), self.targets.signed)
        return self._bins[role]

    def find(self, name: str) -> Target | None:
        """Return the target `name`, if there is one.

        Raises:
            TrustError, RegistryError: the metadata is not in order.
        """
        found = self.bin(bin_of(name)).signed.targets.get(name)
        return None if found is None else _target(found)

    def all_targets(self) -> Iterator[Target]:
        """Yield every target.

        Raises:
            TrustError, RegistryError: the metadata is not in order.
        """
        for role in BINS:
            for found in self.bin(role).signed.targets.values():
                yield _target(found)

    def read(self, target: Target) -> bytes:
        """Return the file of a target.

        Raises:
            RegistryError: it is lost or damaged.
        """
        path = self.root / stored_path(target.name, target.digest)
        try:
            with translated("read a file of the registry", path):
                data = read_file(path, target.size)
        except DamagedError as error:
            raise RegistryError(f"a file of the registry is damaged: {error}", where=str(path)) from error
        if data is None or digest_bytes(data) != target.digest:
            raise RegistryError(
                "a file of the registry is lost" if data is None else "a file of the registry is damaged",
                where=str(path),
                hint="restore it from a copy of the registry",
            )
        return data

    def seen(self) -> Seen:
        """Return the versions of this state."""
        return Seen(timestamp=self.timestamp.signed.version, snapshot=self.snapshot.signed.version)

    def expiries(self) -> Mapping[str, float]:
        """Return when each kind of signature expires first, in seconds since the epoch."""
        bins = datetime.datetime.fromisoformat(str(self.snapshot.signed.unrecognized_fields[_DUE_FIELD]))
        return {
            "root": self.signed_root.expires.timestamp(),
            "targets": self.targets.signed.expires.timestamp(),
            "bins": bins.timestamp(),
            "snapshot": self.snapshot.signed.expires.timestamp(),
            "timestamp": self.timestamp.signed.expires.timestamp(),
        }


class Change:
    """New targets for a registry, to be signed with its online key.

    Args:
        repository: the state that is changed.
        online: the online key.
        periods: for how long the new signatures hold.
        now: the time, in seconds since the epoch.
        seen: the versions that were signed last.
    """

    def __init__(
        self, repository: Repository, online: KeySigner, *, periods: Periods, now: float, seen: Seen | None = None
    ) -> None:
        self._repository = repository
        self._online = online
        self._periods = periods
        self._now = now
        self._seen = seen or Seen()
        self._new: dict[str, Target] = {}
        self._files: dict[str, bytes] = {}
        self._renewed: set[str] = set()
        self._targets = repository.targets

    def put(self, name: str, data: bytes) -> Target:
        """Make `data` the file of the target `name`."""
        target = self.write(name, data)
        old = self._repository.find(name)
        if old != target:
            self._new[name] = target
        return target

    def write(self, name: str, data: bytes) -> Target:
        """Take a file that an index will name by its digest; commit() writes it unless it is there."""
        target = Target(name=name, digest=digest_bytes(data), size=len(data))
        self._files[stored_path(name, target.digest)] = data
        return target

    def find(self, name: str) -> Target | None:
        """Return the target `name` as it will be."""
        return self._new.get(name) or self._repository.find(name)

    def renew(self, roles: Mapping[str, bool], targets: Metadata[Targets] | None = None) -> None:
        """Sign the kinds of metadata anew whose value in `roles` is true: "bins", "snapshot", "timestamp".

        Args:
            roles: what to renew.
            targets: the new top role, signed by its own keys; its version must be one higher.
        """
        self._renewed |= {role for role, wanted in roles.items() if wanted}
        if targets is not None:
            self._targets = targets

    @property
    def empty(self) -> bool:
        """Whether commit() has nothing to sign."""
        return not self._new and not self._renewed and self._targets is self._repository.targets

    def commit(self) -> Seen:
        """Sign and write everything; afterwards readers see the new state. Return its versions.

        Raises:
            ResourceError, RegistryError: something cannot be written; readers see the old state.
        """
        old = self._repository
        write_batch(old.root, missing_files(old.root, self._files), 0o444)
        with translated("write the registry", old.root):
            failpoint("registry.commit.targets-written")
        if self.empty:
            return old.seen()
        snapshot = old.snapshot.signed
        files = self._bins(snapshot)
        if self._targets is not old.targets:
            files[_path_of("targets", self._targets)] = self._targets.to_bytes()
            snapshot.meta["targets.json"] = MetaFile(self._targets.signed.version)
        snapshot.version = max(snapshot.version, self._seen.snapshot) + 1
        snapshot.expires = self._until(self._periods.snapshot)
        metadata = sign(snapshot, self._online)
        files[_path_of("snapshot", metadata)] = data = metadata.to_bytes()
        write_batch(old.root, files)
        with translated("write the registry", old.root):
            failpoint("registry.commit.before-timestamp")
        timestamp = old.timestamp.signed
        timestamp.version = max(timestamp.version, self._seen.timestamp) + 1
        timestamp.expires = self._until(self._periods.timestamp)
        timestamp.snapshot_meta = MetaFile(snapshot.version, len(data), {"sha256": digest_bytes(data)})
        write_timestamp(old.root, timestamp, self._online)
        with translated("write the registry", old.root):
            failpoint("registry.commit.done")
        return Seen(timestamp=timestamp.version, snapshot=snapshot.version)

    def _bins(self, snapshot: Snapshot) -> dict[str, bytes]:
        changed: dict[str, dict[str, TargetFile]] = {role: {} for role in BINS} if "bins" in self._renewed else {}
        for name, target in self._new.items():
            entries = changed.setdefault(bin_of(name), {})
            entries[name] = TargetFile(target.size, {"sha256": target.digest}, name)
        end = self._until(self._periods.bins)
        files = {}
        for role, entries in changed.items():
            signed = self._repository.bin(role).signed
            signed.targets.update(entries)
            signed.version += 1
            signed.expires = end
            metadata = sign(signed, self._online)
            files[_path_of(role, metadata)] = metadata.to_bytes()
            snapshot.meta[f"{role}.json"] = MetaFile(signed.version)
        if "bins" in self._renewed:
            snapshot.unrecognized_fields[_DUE_FIELD] = end.isoformat()
        return files

    def _until(self, days: int) -> datetime.datetime:
        return until(self._now, days)


def _path_of(role: str, metadata: Metadata[Any]) -> str:
    return metadata_path(role, metadata.signed.version)


def until(now: float, days: int) -> datetime.datetime:
    """Return the end of a period of `days` that begins `now`."""
    return datetime.datetime.fromtimestamp(int(now) + days * _DAY, datetime.UTC)


def sign(signed: Any, *signers: KeySigner) -> Metadata[Any]:
    """Return `signed` with the signatures of `signers`."""
    metadata: Metadata[Any] = Metadata(signed)
    for signer in signers:
        metadata.sign(signer, append=True)  # type: ignore[arg-type]  # sign() needs no more than a KeySigner has
    return metadata


def write_first(root: Path, targets: Metadata[Targets], online: KeySigner, *, periods: Periods, now: float) -> Seen:
    """Write the first bins, snapshot and timestamp of a registry that has its root and nothing else.

    Raises:
        ResourceError, RegistryError: something cannot be written; the timestamp, without which there is no
            registry, comes last.
    """
    end = until(now, periods.bins)
    files: dict[str, Metadata[Any]] = {
        role: sign(Targets(expires=end, unrecognized_fields={ROLE_FIELD: role}), online) for role in BINS
    }
    files["targets"] = targets
    meta = {f"{role}.json": MetaFile(item.signed.version) for role, item in files.items()}
    fields = {_DUE_FIELD: end.isoformat()}
    files["snapshot"] = sign(
        Snapshot(expires=until(now, periods.snapshot), meta=meta, unrecognized_fields=fields), online
    )
    contents = {_path_of(role, item): item.to_bytes() for role, item in files.items()}
    write_batch(root, contents)
    data = contents[metadata_path("snapshot", 1)]
    snapshot_meta = MetaFile(1, len(data), {"sha256": digest_bytes(data)})
    write_timestamp(root, Timestamp(expires=until(now, periods.timestamp), snapshot_meta=snapshot_meta), online)
    return Seen(timestamp=1, snapshot=1)


def write_timestamp(root: Path, timestamp: Timestamp, online: KeySigner) -> None:
    """Sign and write the timestamp: the moment at which a new state becomes the current one.

    Raises:
        ResourceError, CacheError: it cannot be written.
    """
    path = root / metadata_path("timestamp", None)
    with translated("write the registry's metadata", path):
        atomic_write(path, sign(timestamp, online).to_bytes())


def _target(found: TargetFile) -> Target:
    return Target(name=found.path, digest=parse_digest(found.hashes["sha256"]), size=found.length)
