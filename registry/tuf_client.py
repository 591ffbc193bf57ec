"""The one place where visget touches python-tuf's client.

python-tuf does the TUF client workflow: roots in order, then timestamp, snapshot, targets and the bin of a name,
each with its signatures, versions and expiry. This module adds what it lacks: one process at a time, visget's own
download with deadlines and caps, the rules of visget/registry/tuf_rules.py, durable files, an injected clock, a
mode without network, and errors that say what happened. Invariant: what find() returns was signed, for this name,
by roles that the trusted root names, and None means that they say that there is no such target. The spec is
docs/spec/registry.md, section "Reading".
"""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuf.api import exceptions as tuf_errors
from tuf.api.metadata import Metadata, Root, Targets  # type: ignore[attr-defined]  # re-exported, not marked so
from tuf.ngclient import FetcherInterface, Updater, UpdaterConfig  # type: ignore[attr-defined]

from visget.digest import Digest, parse_digest
from visget.errors import FormatError, NetworkError, RegistryError, TrustError, VisgetError
from visget.files import fsync_dir, translated
from visget.format.keys import PublicKey
from visget.format.strictjson import Reader, loads
from visget.registry.local import read_local
from visget.registry.tuf_names import check_target_name
from visget.registry.tuf_rules import (
    ROOT_LIMIT,
    SNAPSHOT_LIMIT,
    TARGETS_LIMIT,
    TIMESTAMP_LIMIT,
    check_metadata,
    limit_of,
)

if TYPE_CHECKING:
    from tuf.api.metadata import TargetFile  # type: ignore[attr-defined]

ROTATIONS = 1024
"""How many new roots one refresh follows; the next refresh follows as many again."""
_BASE = "metadata:/"
_VERSIONED = re.compile(r"([1-9][0-9]{0,15})\.(.+)\.json\Z")
# What python-tuf raises besides its own errors when metadata is well-formed JSON of an unforeseen shape.
_UNFORESEEN = (ValueError, KeyError, TypeError, AttributeError, IndexError, RuntimeError)

Read = Callable[[str, int], bytes | None]
"""Returns the metadata file of that name with at most that many bytes, or None when there certainly is none."""


class ExpiredError(TrustError):
    """Signed metadata is older than its signer allows: it was not renewed, or somebody shows an old state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A file that signed metadata names."""

    name: str
    """Its name."""
    digest: Digest
    """Its digest."""
    size: int
    """Its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The state that was verified."""

    root_version: int
    """Version of the root."""
    timestamp_version: int
    """Version of the timestamp."""
    expires: float
    """When the first of the top-level roles expires, in seconds since the epoch."""
    operators: tuple[PublicKey, ...]
    """The keys of the offline targets role."""
    operators_threshold: int
    """How many of them must sign."""


class Fetcher(FetcherInterface):
    """Gives python-tuf metadata that keeps the rules.

    Args:
        live: reads from the registry; None is the mode without network.
        metadata: where verified metadata is kept.
        settled: take timestamp and root as verified before, without asking the registry again.
        strict: whether the rules of visget's own registries apply.
        where: where the registry is, for messages.
    """

    def __init__(self, live: Read | None, metadata: Path, *, settled: bool, strict: bool, where: str) -> None:
        self._live = live
        self._metadata = metadata
        self._settled = settled or live is None
        self._strict = strict
        self._where = where

    def _fetch(self, url: str) -> Iterator[bytes]:
        raise NotImplementedError("all downloads go through download_bytes()")

    def download_bytes(self, url: str, max_length: int) -> bytes:
        """Return the metadata file that python-tuf asks for.

        Raises:
            DownloadHTTPError: there is none.
            VisgetError: it cannot be had, or breaks a rule.
        """
        name = url.removeprefix(_BASE)
        match = _VERSIONED.match(name)
        role = match[2] if match else name.removesuffix(".json")
        data = self._answer(name, role, min(max_length, limit_of(role)))
        if data is None:
            raise tuf_errors.DownloadHTTPError(name, 404)
        check_metadata(data, role, where=f"{self._where}/{name}", strict=self._strict)
        return data

    def _answer(self, name: str, role: str, limit: int) -> bytes | None:
        if self._settled and role == "root":
            return None
        if self._settled and role == "timestamp":
            data = read_local(self._metadata / "timestamp.json", TIMESTAMP_LIMIT)
            if data is not None:
                return data
        if self._live is None:
            raise NetworkError(
                f"visget is offline, and the registry's {name} was not fetched before",
                where=self._where,
                hint="run the command once without --offline",
            )
        return self._live(name, limit)


class Session:
    """One update of the metadata and what can be looked up in it; made by open_session()."""

    def __init__(self, updater: Updater, where: str, strict: bool) -> None:
        self._updater = updater
        self._where = where
        self._strict = strict

    def refresh(self) -> None:
        """Bring root, timestamp, snapshot and targets up to date.

        Raises:
            ExpiredError, TrustError: something is not signed, old, or refused by a rule.
            RegistryError, NetworkError: something cannot be had.
        """
        with _explained(self._where):
            self._updater.refresh()

    def find(self, name: str) -> Target | None:
        """Return the target `name`, or None when the signed metadata says that there is none.

        Raises:
            TrustError, RegistryError, NetworkError: as refresh().
        """
        if self._strict:
            check_target_name(name)
        with _explained(self._where):
            found = self._updater.get_targetinfo(name)
            return None if found is None else _target(name, found)

    def find_any(self, name: str) -> TargetFile | None:
        """Return what the metadata says about the target `name` of a repository whose names are free.

        Raises:
            TrustError, RegistryError, NetworkError: as refresh().
        """
        with _explained(self._where):
            return self._updater.get_targetinfo(name)

    def place_of(self, target: TargetFile) -> str:
        """Return the path of a target below the repository's targets."""
        if not self._set.root.consistent_snapshot:
            return str(target.path)
        directory, slash, name = target.path.rpartition("/")
        return f"{directory}{slash}{next(iter(target.hashes.values()))}.{name}"

    @staticmethod
    def fits(target: TargetFile, data: bytes) -> bool:
        """Tell whether `data` has the length and every hash of a target."""
        try:
            target.verify_length_and_hashes(data)
        except tuf_errors.LengthOrHashMismatchError:
            return False
        return True

    @property
    def root_version(self) -> int:
        """The version of the newest root that was verified, also when the refresh failed after it."""
        return int(self._set.root.version)

    def view(self) -> View:
        """Return what was verified, after refresh()."""
        trusted = self._set
        root = trusted.root
        expiries = [item.expires for item in (root, trusted.timestamp, trusted.snapshot, trusted["targets"])]
        role = root.roles["targets"]
        return View(
            root_version=root.version,
            timestamp_version=trusted.timestamp.version,
            expires=min(expiries).timestamp(),
            operators=tuple(PublicKey(bytes.fromhex(root.keys[name].keyval["public"])) for name in role.keyids),
            operators_threshold=role.threshold,
        )

    @property
    def _set(self) -> Any:
        # python-tuf offers no other way to what it verified, nor to the clock; a test guards these two names.
        return self._updater._trusted_set


@contextlib.contextmanager
def open_session(
    metadata: Path, fetcher: Fetcher, *, bootstrap: bytes, where: str, now: float | None = None, strict: bool = True
) -> Iterator[Session]:
    """Work on the metadata kept in the directory `metadata`; the caller holds its lock.

    Args:
        metadata: an existing directory; root.json, timestamp.json and so on are kept there.
        fetcher: where new metadata comes from.
        bootstrap: the trusted root.
        where: where the registry is, for messages.
        now: the time to judge expiry by, in seconds since the epoch; None means the machine's clock.
        strict: whether the rules of visget's own registries apply.

    Raises:
        TrustError: the trusted root itself is damaged.
        ResourceError, CacheError: verified metadata cannot be kept.
    """
    check_metadata(bootstrap, "root", where="the trusted root", strict=strict)
    config = UpdaterConfig(
        max_root_rotations=ROTATIONS,
        root_max_length=ROOT_LIMIT,
        timestamp_max_length=TIMESTAMP_LIMIT,
        snapshot_max_length=SNAPSHOT_LIMIT,
        targets_max_length=TARGETS_LIMIT,
    )
    with translated("keep the registry's metadata", metadata):
        before = _facts(metadata)
        try:
            with _explained(where):
                updater = Updater(str(metadata), _BASE, fetcher=fetcher, config=config, bootstrap=bootstrap)
            session = Session(updater, where, strict)
            if now is not None:
                session._set.reference_time = datetime.datetime.fromtimestamp(now, datetime.UTC)
            yield session
        finally:
            # python-tuf syncs nothing. After a power cut a lost timestamp would take with it the memory of which
            # states are old.
            _make_durable(metadata, before)


def _target(name: str, found: TargetFile) -> Target:
    return Target(name=name, digest=parse_digest(found.hashes["sha256"]), size=found.length)


def check_root(data: bytes, before: bytes | None, *, where: str, strict: bool = True) -> int:
    """Check that a root is signed by itself and by the root before it, and return its version.

    Raises:
        TrustError: it is not.
    """
    check_metadata(data, "root", where=where, strict=strict)
    with _explained(where):
        new = Metadata[Root].from_bytes(data)
        old = new if before is None else Metadata[Root].from_bytes(before)
        if before is not None and new.signed.version != old.signed.version + 1:
            raise tuf_errors.BadVersionNumberError(f"root {new.signed.version} cannot follow {old.signed.version}")
        for delegator in (old.signed, new.signed):
            delegator.verify_delegate("root", new.signed_bytes, new.signatures)
    return int(new.signed.version)


def check_delegated(data: bytes, role: str, delegator: Root | Targets, *, where: str) -> Metadata[Any]:
    """Return the metadata of `role` when `delegator` says that its signers may sign it.

    Raises:
        TrustError: they did not sign it, or a rule is broken.
    """
    check_metadata(data, role, where=where)
    with _explained(where):
        found: Metadata[Any] = Metadata.from_bytes(data)
        delegator.verify_delegate(role, found.signed_bytes, found.signatures)
    return found


def expiry_of(data: bytes | None) -> float | None:
    """Return when metadata says that it expires, without checking anything else; None when it does not say."""
    if data is None:
        return None
    try:
        signed = Reader(loads(data, what="metadata", limit=len(data)), "metadata").object("signed")
        return datetime.datetime.fromisoformat(signed.string("expires")).timestamp()
    except (FormatError, ValueError):
        return None


@contextlib.contextmanager
def _explained(where: str) -> Iterator[None]:
    """Turn an error of python-tuf into one that says what it means."""
    try:
        yield
    except VisgetError:
        raise
    except tuf_errors.ExpiredMetadataError as error:
        raise ExpiredError(
            f"the registry's signatures have expired: {error}",
            where=where,
            hint="its operator renews them with `visget registry refresh`; if this machine's clock is wrong, set it",
        ) from error
    except tuf_errors.DownloadHTTPError as error:
        if str(error) == "timestamp.json":
            raise RegistryError(
                "there is no registry here",
                where=where,
                hint="check the location; `visget registry init DIR` makes one",
            ) from error
        raise RegistryError(
            f"the registry has lost its file {error}", where=where, hint="tell the registry's operator"
        ) from error
    except tuf_errors.UnsignedMetadataError as error:
        raise _refused(f"its signatures do not suffice: {error}", where) from error
    except tuf_errors.BadVersionNumberError as error:
        raise _refused(f"it shows an older state than before, or a mixture: {error}", where) from error
    except (tuf_errors.RepositoryError, tuf_errors.DownloadError, *_UNFORESEEN) as error:
        cause = f": {error.__cause__}" if error.__cause__ else ""
        raise _refused(f"{error}{cause}", where) from error


def _refused(why: str, where: str) -> TrustError:
    return TrustError(
        f"the registry's metadata is refused: {why}",
        where=where,
        hint="nothing of it was used; somebody may be interfering, or the registry is broken: ask its operator",
    )


def _facts(directory: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    for path in directory.glob("*.json"):
        with contextlib.suppress(FileNotFoundError):
            facts = path.lstat()
            found[path.name] = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
    return found


def _make_durable(directory: Path, before: dict[str, tuple[int, int, int]]) -> None:
    import os

    changed = [name for name, facts in _facts(directory).items() if before.get(name) != facts and name != "root.json"]
    for name in changed:
        descriptor = os.open(directory / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    if changed:
        fsync_dir(directory)
