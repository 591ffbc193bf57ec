"""Saying again what an installation said a moment ago, when everything that decided it is still as it was.

A repeated `visget install NAME` spends nearly all of its time on starting: the processor is looked at with LLVM,
the registry's signatures are verified with python-tuf. Both give the same answer as long as their inputs are the
same, byte for byte. Invariants: an answer is given only for a registry in a directory, whose timestamp is compared
each time, as is the absence of a next root; never after anything that was verified has expired, and never an hour
after it was verified; only with the artifact whole, and only under the store's seal. Whatever differs, or cannot be
read, leads the long way. The rules are docs/spec/store.md, section "Recollections".
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from visget.cache.content import DamagedError, guard_directory, read_file, replace_file
from visget.cache.store import Store
from visget.cache.storekey import same_seal, seal_of
from visget.config import Settings
from visget.digest import Digest, digest_bytes
from visget.errors import VisgetError
from visget.installing import InstallResult
from visget.machine import machine_id
from visget.version import __version__
from visget.wiring import store_of

if TYPE_CHECKING:
    from visget.progress import Progress
    from visget.requiring import Chain

HOUR = 3600.0
_FORMAT = 1
_LIMIT = 4 << 20
_BOOT = Path("/proc/sys/kernel/random/boot_id")
# What find_linker() may look for; that it looks for others shows in the times of its file.
_LINKERS = ("ld.lld", *(f"ld.lld-{version}" for version in range(24, 12, -1)), "ld", "cc", "gcc", "clang")
_FAILURES = (VisgetError, DamagedError, OSError, ValueError, LookupError, TypeError)

Clock = Callable[[], float]


class Listener:
    """Progress that knows whether the user was told something, which would have to be told again."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.heard = False

    def step(self, phase: str, detail: str = "", done: int = 0, total: int | None = None) -> None:
        """Pass on progress."""
        self._progress.step(phase, detail, done, total)

    def note(self, text: str) -> None:
        """Pass on a note, and remember that there was one."""
        self.heard = True
        self._progress.note(text)


def question(settings: Settings, *asked: object) -> str | None:
    """Return what `install` was asked, as one text; None when no recollection may answer it.

    Args:
        settings: all of them count.
        *asked: the arguments.
    """
    if settings.target not in (None, "host"):
        return None
    return json.dumps([__version__, repr(settings), *asked], default=str)


def recall(asked: str | None, settings: Settings, *, clock: Clock = time.time) -> InstallResult | None:
    """Return what the installation `asked` said, if it would say the same now; else None."""
    if asked is None:
        return None
    try:
        store = store_of(settings)
        data = read_file(_place(store, asked), _LIMIT)
        secret = store.secret()
        if data is None or secret is None:
            return None
        document = json.loads(data)
        body = document["body"]
        if not same_seal(document["seal"], seal_of(secret, _sealed(body))):
            return None
        facts = json.loads(body)
        same = (
            facts["format"] == _FORMAT
            and facts["asked"] == asked
            and facts["at"] <= clock() < min(facts["until"], facts["at"] + HOUR)
            and facts["machine"] == machine_id()
            and all(_content(Path(path)) == digest for path, digest in facts["contents"])
            and facts["tools"] == _tools()
            and all(_stat(path) == state for path, *state in facts["files"])
        )
        return _answer(store, facts["result"]) if same else None
    except _FAILURES:
        return None


def remember(
    asked: str | None, chain: Chain, result: InstallResult, settings: Settings, *, clock: Clock = time.time
) -> None:
    """Keep what an installation said, unless it could not be told that it would say the same again."""
    if asked is None or len({found.identity for found in chain.packages}) != 1:
        return
    with contextlib.suppress(*_FAILURES):
        store = store_of(settings)
        found = _verified_state(store, chain)
        secret = store.secret()
        if found is None or secret is None:
            return
        contents, until = found
        files = [
            path
            for one in chain.packages
            for path in store.package_files(one.verified.package.digest)
        ]  # fmt: skip
        now = clock()
        body = json.dumps(
            {
                "format": _FORMAT, "asked": asked, "at": now, "until": until, "machine": machine_id(),
                "contents": [[str(path), _content(path)] for path in contents],
                "tools": _tools(),
                "files": [[str(path), *_stat(path)] for path in files],
                "result": _written(result),
            }
        )  # fmt: skip
        place = _place(store, asked)
        guard_directory(place.parent)
        for old in place.parent.iterdir():
            if old.stat().st_mtime < now - HOUR:
                old.unlink(missing_ok=True)
        document = {"body": body, "seal": seal_of(secret, _sealed(body))}
        replace_file(store.root, place, json.dumps(document).encode(), 0o600)


def _place(store: Store, asked: str) -> Path:
    return store.root / "trust" / "recall" / f"{digest_bytes(asked.encode())}.json"


def _sealed(body: str) -> bytes:
    return b"visget-recall-1 " + body.encode()


# ---- what decides ----------------------------------------------------------------------------------------


def _verified_state(store: Store, chain: Chain) -> tuple[list[Path], float] | None:
    """Return the files whose content decided the choice, and when the first of the signatures expires.

    None when the registry is not a directory, or its metadata is not what was verified.
    """
    from visget.registry.tuf_client import expiry_of
    from visget.registry.tuf_names import bin_of, index_target, metadata_path
    from visget.registry.tuf_state import TrustRoom

    asked = chain.asked
    source = Path(asked.location)
    if "://" in asked.location or not source.is_dir():
        return None
    room = TrustRoom(store.root / "trust")
    state = room.state(asked.identity)
    names = [one.verified.package.manifest.name for one in chain.packages]
    roles = {"root", "timestamp", "snapshot", "targets", *(bin_of(index_target(name)) for name in names)}
    root = state.roots()[0]
    kept = {role: read_file(state.metadata / f"{role}.json", _LIMIT) for role in sorted(roles - {"root"})}
    timestamp = source / metadata_path("timestamp", None)
    if read_file(timestamp, _LIMIT) != kept["timestamp"]:
        return None
    expiries = [expiry_of(data) for data in (root, *kept.values())]
    if any(expiry is None for expiry in expiries):
        return None
    version = json.loads(root)["signed"]["version"]
    following = source / metadata_path("root", version + 1)
    if os.path.lexists(following):
        return None
    decisive = [
        timestamp, following, *room.files(asked.location, asked.identity), store.root / "trust" / "pins.json",
        store.root / "env" / "v1" / "default" / "current.json", _BOOT,
    ]  # fmt: skip
    return decisive, min(expiry for expiry in expiries if expiry is not None)


def _content(path: Path) -> str | None:
    data = read_file(path, _LIMIT) if path != _BOOT else path.read_bytes()
    return None if data is None else digest_bytes(data)


def _stat(path: str | Path | None) -> list[int]:
    if path is None:
        return []
    try:
        facts = Path(path).stat()
    except OSError:
        return []
    return [facts.st_mtime_ns, facts.st_size, facts.st_ino]


def _tools() -> str:
    """Return a digest of what an action key says about the tools, without loading or running any."""
    seen: list[object] = [[name, path, _stat(path)] for name in _LINKERS for path in [shutil.which(name)]]
    for module in ("llvmlite", "ziglang"):
        spec = importlib.util.find_spec(module)
        origin = spec.origin if spec is not None else None
        seen.append([module, origin, _stat(origin), *(_directory(Path(origin).parent / "binding") if origin else [])])
    for room in ("installer", "format"):
        # Where a room lies, only its package knows: in a checkout, not beside this file.
        home = importlib.util.find_spec(f"visget.{room}")
        seen += [_directory(Path(place)) for place in (home and home.submodule_search_locations) or ()]
    return digest_bytes(json.dumps(seen).encode())


def _directory(path: Path) -> list[object]:
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError:
        return []
    return [[entry.name, _stat(entry.path)] for entry in entries if entry.is_file()]


# ---- the answer ------------------------------------------------------------------------------------------


def _written(result: InstallResult) -> dict[str, object]:
    if result.foreign:
        raise ValueError("an artifact for another machine")
    return {
        "name": result.name, "version": result.version, "target": result.target, "key": result.entry.key,
        "signers": list(result.signers), "linked_with": [list(pair) for pair in result.linked_with],
        "linking": result.linking, "dependencies": [_written(item) for item in result.dependencies],
    }  # fmt: skip


def _answer(store: Store, written: dict[str, Any]) -> InstallResult | None:
    entry = store.native(Digest(written["key"]))
    needed = _all(_answer(store, item) for item in written["dependencies"])
    if entry is None or needed is None:
        return None
    return InstallResult(
        name=written["name"], version=written["version"], target=written["target"], foreign=False, entry=entry,
        reused=True, first_use=False, signers=tuple(written["signers"]),
        linked_with=tuple((name, version) for name, version in written["linked_with"]), linking=written["linking"],
        dependencies=tuple(needed),
    )  # fmt: skip


def _all(items: Iterable[InstallResult | None]) -> Sequence[InstallResult] | None:
    found = list(items)
    return None if None in found else [item for item in found if item is not None]
