"""Looking up and fetching a registry's verified files: mirrors, the clock, and work without network.

Invariant: every answer comes from metadata that visget/registry/tuf_client.py verified, under the lock of the
registry's state; a mirror that fails in any way is passed over with a note, and only when all fail is that an
error. The spec is docs/spec/registry.md, section "Reading".
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from visget.digest import Digest
from visget.download import HttpError
from visget.errors import RegistryError, TrustError
from visget.files import locked
from visget.progress import SILENT, Progress
from visget.registry.local import read_local
from visget.registry.transport import Transport
from visget.registry.tuf_client import (
    ExpiredError,
    Fetcher,
    Session,
    Target,
    View,
    check_root,
    expiry_of,
    open_session,
)
from visget.registry.tuf_names import METADATA, bin_of, check_target_name, stored_path
from visget.registry.tuf_rules import limit_of
from visget.registry.tuf_state import Clock, TrustState

_DAY = 86400.0
STALE_AFTER = _DAY
"""Offline, seconds after which the user is told how old the state is."""
OFFLINE_GRACE = 7 * _DAY
"""Offline, seconds after its expiry for which a state is still used."""
_SETTLED = 60.0
_SMALL_TARGET = 16 << 20
_T = TypeVar("_T")


class TufReader:
    """Verified access to one registry.

    Args:
        state: what is remembered of it.
        sources: where it can be read, the best first.
        offline: use only what was fetched before.
        clock: gives the time.
        progress: told what the user should know.
    """

    def __init__(
        self,
        state: TrustState,
        sources: Sequence[Transport],
        *,
        offline: bool = False,
        clock: Clock = time.time,
        progress: Progress = SILENT,
    ) -> None:
        self._state = state
        self._sources = tuple(sources)
        self._offline = offline
        self._clock = clock
        self._progress = progress
        self._noted: set[str] = set()
        self._fresh: tuple[Transport, float] | None = None
        self.view: View | None = None

    # ---- metadata ------------------------------------------------------------------------------------
    def find(self, *names: str) -> list[Target | None]:
        """Return the targets `names`, with None for each that the registry says it does not have.

        Raises:
            TrustError: no source has metadata that is in order.
            RegistryError, NetworkError: no source can be read.
        """
        for name in names:
            check_target_name(name)
        with locked(self._state.lock):
            self._state.sweep()
            return self._from_any("the registry's metadata", lambda source: self._find_at(source, names))

    def _from_any(self, what: str, attempt: Callable[[Transport], _T]) -> _T:
        failures: list[TrustError | RegistryError] = []
        for source in self._sources:
            try:
                found = attempt(source)
            except (TrustError, RegistryError) as error:
                failures.append(error)
                continue
            for failure in failures:
                self._note(f"{what}: passed over {failure.where or 'a source'}: {failure.message}")
            return found
        raise failures[0]

    def _find_at(self, source: Transport, names: Sequence[str]) -> list[Target | None]:
        times = self._state.times(self._clock)
        if times[0] > self._clock():
            self._note(
                f"the clock of this machine was set back: it says {_date(self._clock())}, but registries were read on "
                f"{_date(times[0])}; that date decides what has expired"
            )
        for number, now in enumerate(times):
            try:
                return self._find_then(source, names, now)
            except ExpiredError:
                if number + 1 == len(times):
                    raise
                self._note("that date is far away and nothing is valid then: believing the clock")
        raise AssertionError("times() is never empty")

    def _find_then(self, source: Transport, names: Sequence[str], now: float) -> list[Target | None]:
        settled = self._fresh is not None and self._fresh[0] is source and time.monotonic() < self._fresh[1]
        live = not self._offline or not source.remote
        judged = now if live else self._offline_time(now, names)
        fetcher = Fetcher(
            (lambda name, limit: _read_metadata(source, name, limit)) if live else None,
            self._state.metadata,
            settled=settled,
            strict=True,
            where=source.location,
        )
        with open_session(
            self._state.metadata, fetcher, bootstrap=self._root(), where=source.location, now=judged
        ) as session:
            try:
                found = self._look_up(session, names)
            finally:
                self._state.remember_root(session.root_version)
        if live and not settled:
            self._state.remember_seen(now)
            self._fresh = (source, time.monotonic() + _SETTLED)
        return found

    def _look_up(self, session: Session, names: Sequence[str]) -> list[Target | None]:
        session.refresh()
        found = [session.find(name) for name in names]
        self.view = session.view()
        return found

    def _root(self) -> bytes:
        *better, last = self._state.roots()
        for root in better:
            try:
                check_root(root, None, where="the trusted root")
            except TrustError:
                continue
            return root
        return last

    def _offline_time(self, now: float, names: Sequence[str]) -> float:
        """Return the time to judge by without network: a state that expired lately is still used, and said so."""
        roles = ("root", "timestamp", "snapshot", "targets", *(bin_of(name) for name in names))
        kept = [expiry_of(read_local(self._state.metadata / f"{role}.json", limit_of(role))) for role in roles]
        first = min((expiry for expiry in kept if expiry is not None), default=None)
        if first is not None and now >= first:
            if now >= first + OFFLINE_GRACE:
                raise ExpiredError(
                    f"what is known about this registry expired on {_date(first)}, more than "
                    f"{OFFLINE_GRACE / _DAY:.0f} days ago",
                    where=self._sources[0].location,
                    hint="run the command once without --offline",
                )
            self._note(f"offline: what is known about the registry expired on {_date(first)}")
            return first - 1
        seen = self._state.seen()
        if seen is not None and now - seen > STALE_AFTER:
            self._note(f"offline: what is known about the registry is from {_date(seen)}")
        return now

    def _note(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._progress.note(text)

    # ---- files ---------------------------------------------------------------------------------------
    def small(self, target: Target, what: str) -> bytes:
        """Return the file of a small target, which is kept for the next time.

        Raises:
            TrustError, RegistryError, NetworkError: as fetch().
        """
        if target.size > _SMALL_TARGET:
            raise RegistryError(f"{what} has {target.size} bytes; at most {_SMALL_TARGET} are allowed")
        kept = self._state.target(target.name, target.digest, target.size)
        if kept is not None:
            return kept
        data = self.fetch(target.name, target.digest, target.size, what)
        self._state.keep_target(target.name, data)
        return data

    def fetch(self, name: str, digest: Digest, size: int, what: str, *, progress: Progress = SILENT) -> bytes:
        """Return the file `name`, which must have exactly this size and digest.

        Raises:
            TrustError: every source has other bytes.
            RegistryError, NetworkError: no source has it.
        """
        path = stored_path(name, digest)
        return self._from_any(
            what, lambda source: source.fetch(path, size=size, digest=digest, what=what, progress=progress)
        )


def _read_metadata(source: Transport, name: str, limit: int) -> bytes | None:
    try:
        return source.read(f"{METADATA}/{name}", limit=limit, what=f"the registry's {name}")
    except HttpError as error:
        # Buckets that may not be listed answer 403 for what they do not have. For the next root that is no harm:
        # it is the end of the chain, as 404 is, and expiry bounds what hiding a root can do.
        if error.status == 403 and name.endswith(".root.json"):
            return None
        raise


def _date(when: float) -> str:
    try:
        return datetime.datetime.fromtimestamp(when, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return f"{when:.0f} s after 1970"
