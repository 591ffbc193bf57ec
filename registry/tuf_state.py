"""What a client remembers of each registry: its root of trust, and the newest state that it has seen.

Layout below the store's ``trust/``::

    at/<digest of location>.json    which registry lies at a location, and how its root came to be trusted
    <identity>/pinned.json          the root that was trusted first
    <identity>/root.json            the newest root that was verified from it
    <identity>/seen.json            when metadata was verified last
    <identity>/tuf/                 python-tuf's verified metadata
    <identity>/t/                   small targets, for working without network

The identity of a registry is the digest of its first root, so that one registry is the same one behind every
address. Invariant: everything here is either durable before it is relied upon, or is fetched and verified again
when it is lost. The spec is docs/spec/registry.md, section "Client state".
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from visget.cache.content import guard_directory, guard_lock, replace_file
from visget.digest import Digest, digest_bytes, parse_digest
from visget.errors import FormatError, TrustError
from visget.failpoint import failpoint
from visget.files import translated
from visget.format.strictjson import Reader, dumps, loads
from visget.registry.local import read_local
from visget.registry.tuf_names import check_target_name
from visget.registry.tuf_rules import ROOT_LIMIT

Clock = Callable[[], float]
"""Returns the time in seconds since the epoch."""

How = Literal["first use", "fingerprint", "root file", "made here"]
"""How the root of a registry came to be trusted."""

_FORMAT = 1
_SMALL = 64 << 10
_DAY = 86400.0
_SLACK = _DAY
_ABSURD = 366 * _DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """That a registry lies at a location."""

    location: str
    """The location, without credentials."""
    identity: Digest
    """Which registry it is."""
    how: How
    """How its root came to be trusted."""
    mirrors: tuple[str, ...] = ()
    """Other locations with copies of it."""


class TrustRoom:
    """The directory ``trust/`` of a store."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def registration(self, location: str) -> Registration | None:
        """Return what is known about `location`.

        Raises:
            TrustError: the record is damaged.
        """
        path = self._record(location)
        with translated("read what is known about a registry", path):
            data = read_local(path, _SMALL)
            if data is None and path.exists():
                data = b""
        if data is None:
            return None
        try:
            found = _parse_record(data)
            if found.location != location:
                raise FormatError("record.location is another one")
            return found
        except (FormatError, ValueError) as error:
            raise TrustError(
                f"what is known about the registry at {location} is damaged: {error}",
                where=str(path),
                hint="tell visget again whom to trust: visget registry add NAME LOCATION --fingerprint SHA256",
            ) from error

    def registration_of(self, identity: Digest) -> Registration | None:
        """Return one of the places at which the registry `identity` was met, if a root of it is still trusted."""
        for path in sorted((self.directory / "at").glob("*.json")):
            with contextlib.suppress(FormatError, ValueError, TrustError, OSError):
                found = _parse_record(read_local(path, _SMALL) or b"")
                if found.identity == identity and self.state(identity).roots():
                    return found
        return None

    def register(self, registration: Registration, pinned: bytes | None) -> TrustState:
        """Remember `registration`, and `pinned` as the root that is trusted; return the state of the registry.

        Args:
            registration: where the registry lies.
            pinned: the root; None means that what is trusted already stays.

        Raises:
            CacheError, ResourceError: it cannot be written.
        """
        state = self.state(registration.identity)
        if pinned is not None:
            state.pin(pinned)
        path = self._record(registration.location)
        guard_directory(path.parent)
        body = {
            "format": _FORMAT,
            "location": registration.location,
            "identity": registration.identity,
            "how": registration.how,
            "mirrors": registration.mirrors,
        }
        with translated("remember a registry", path):
            replace_file(self.directory.parent, path, dumps(body), 0o600)
        return state

    def files(self, location: str, identity: Digest) -> list[Path]:
        """Return the files that say what is trusted about the registry at `location`."""
        state = self.directory / identity
        return [self._record(location), state / "pinned.json", state / "root.json"]

    def state(self, identity: Digest) -> TrustState:
        """Return the state of a registry; its directories are made when they are missing."""
        return TrustState(self.directory, identity)

    def _record(self, location: str) -> Path:
        return self.directory / "at" / f"{digest_bytes(location.encode())[:32]}.json"


def _parse_record(data: bytes) -> Registration:
    reader = Reader(loads(data, what="the record of a registry", limit=_SMALL), "record")
    reader.integer("format", _FORMAT, _FORMAT)
    how = reader.choice("how", ("first use", "fingerprint", "root file", "made here"))
    return Registration(
        location=reader.string("location"),
        identity=parse_digest(reader.string("identity")),
        how=how,  # type: ignore[arg-type]  # choice() has checked it
        mirrors=reader.lines("mirrors"),
    )


class TrustState:
    """What is remembered of one registry."""

    def __init__(self, trust: Path, identity: Digest) -> None:
        self.identity = identity
        self.directory = trust / identity
        self.metadata = self.directory / "tuf"
        self._targets = self.directory / "t"
        self.lock = trust.parent / "locks" / f"registry-{identity[:16]}"
        self._store = trust.parent
        for path in (trust, self.directory, self.metadata, self._targets, self.lock.parent, self._store / "tmp"):
            guard_directory(path)
        guard_lock(self.lock)

    # ---- roots ---------------------------------------------------------------------------------------
    def pin(self, root: bytes) -> None:
        """Trust `root` as the user decided; what was verified from an earlier one stays when it was the same."""
        with translated("remember the root of a registry", self.directory):
            if read_local(self.directory / "pinned.json", ROOT_LIMIT) != root:
                self._write(self.directory / "pinned.json", root)

    def roots(self) -> Sequence[bytes]:
        """Return the trusted roots to start from, the best first.

        Raises:
            TrustError: none is left.
        """
        with translated("read the root of a registry", self.directory):
            found = [read_local(self.directory / name, ROOT_LIMIT) for name in ("root.json", "pinned.json")]
        roots = [data for data in found if data]
        if not roots:
            raise TrustError(
                "the root of this registry, which was trusted before, is lost",
                where=str(self.directory),
                hint="tell visget again whom to trust: visget registry add NAME LOCATION --fingerprint SHA256",
            )
        return roots

    def remember_root(self, version: int) -> None:
        """Make the verified root of that version the one to start from."""
        root = read_local(self.metadata / "root_history" / f"{version}.root.json", ROOT_LIMIT)
        path = self.directory / "root.json"
        if root is not None and read_local(path, ROOT_LIMIT) != root:
            with translated("remember the root of a registry", path):
                failpoint("client.before-root")
                self._write(path, root)

    # ---- the clock -----------------------------------------------------------------------------------
    def seen(self) -> float | None:
        """Return when metadata was verified last."""
        data = read_local(self.directory / "seen.json", _SMALL)
        try:
            return float(Reader(loads(data or b"", what="seen", limit=_SMALL), "seen").integer("at"))
        except FormatError:
            return None

    def remember_seen(self, now: float) -> None:
        """Remember that metadata was verified at `now`."""
        with translated("remember the state of a registry", self.directory):
            failpoint("client.before-seen")
            self._write(self.directory / "seen.json", dumps({"at": int(now)}))

    def times(self, clock: Clock = time.time) -> tuple[float, ...]:
        """Return the times to judge expiry by, the best first; more than one when the clock was set back.

        A clock that was set back makes old metadata look fresh, so the last time that was seen counts. Only when
        that is more than a year away may it have been the wrong one.
        """
        now, last = clock(), self.seen()
        if last is None or now >= last - _SLACK:
            return (now,)
        return (last,) if last - now <= _ABSURD else (last, now)

    # ---- small targets -------------------------------------------------------------------------------
    def target(self, name: str, digest: Digest, size: int) -> bytes | None:
        """Return the kept file of a target, when it is the one with that digest."""
        data = read_local(self._targets / check_target_name(name), size)
        return data if data is not None and digest_bytes(data) == digest else None

    def keep_target(self, name: str, data: bytes) -> None:
        """Keep the file of a target for the next time, and for working without network."""
        path = self._targets / check_target_name(name)
        with translated("keep a file of a registry", path):
            self._write(path, data)

    # ---- files ---------------------------------------------------------------------------------------
    def sweep(self) -> None:
        """Remove what killed processes left in the directory of python-tuf; the caller holds the lock."""
        with translated("look after the state of a registry", self.metadata):
            for path in self.metadata.glob("tmp*"):
                path.unlink(missing_ok=True)

    def _write(self, path: Path, data: bytes) -> None:
        replace_file(self._store, path, data, 0o600)
