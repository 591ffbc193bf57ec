"""A TUF repository in memory that can be made to say anything, and a client of it.

``sim.publish("timestamp")`` signs the next version of a role with whatever keys ``sim.keys`` has for it;
``sim.files["tuf/timestamp.json"] = ...`` serves any bytes. Bins are signed when they are first asked for.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import hashlib
from pathlib import Path
from typing import Any

from packagekit import key
from tuf.api.metadata import Metadata, MetaFile, Root, Signature, Snapshot, TargetFile, Targets, Timestamp

from visget.digest import digest_bytes
from visget.errors import RegistryError, TrustError
from visget.format.keys import SecretKey
from visget.registry.roots import Holders, make_root, make_targets
from visget.registry.tuf_keys import KeySigner, key_id, tuf_key
from visget.registry.tuf_names import BINS, bin_of, metadata_path, stored_path
from visget.registry.tuf_reader import TufReader
from visget.registry.tuf_repository import Periods
from visget.registry.tuf_rules import ROLE_FIELD
from visget.registry.tuf_state import Registration, TrustRoom

DAY = 86400.0
NOW = 1_800_000_000.0
NAME = "idx__xxhash.json"
OTHER = "idx__zlib.json"
ROLE = bin_of(NAME)
PERIODS = Periods(timestamp=10, snapshot=20, bins=30, offline=365)


def date(when: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(when, datetime.UTC)


class RepoSim:
    def __init__(self, *, root_keys: int = 1, root_threshold: int = 1) -> None:
        self.now = NOW
        self.location = "sim"
        self.remote = True
        self.asked: list[str] = []
        self.keys: dict[str, list[SecretKey]] = {
            "root": [key(f"root-{n}") for n in range(root_keys)],
            "targets": [key("targets")],
            "online": [key("online")],
        }
        self.files: dict[str, bytes] = {}
        online = [self.keys["online"][0].public]
        self.root: Root = make_root(
            version=1,
            root=Holders(keys=tuple(item.public for item in self.keys["root"]), threshold=root_threshold),
            targets=Holders(keys=(self.keys["targets"][0].public,)),
            online=online, periods=PERIODS, now=NOW,
        )  # fmt: skip
        self.targets: Targets = make_targets(version=1, online=online, periods=PERIODS, now=NOW)
        self.bins = {
            role: Targets(expires=date(NOW + PERIODS.bins * DAY), unrecognized_fields={ROLE_FIELD: role})
            for role in BINS
        }
        meta = {"targets.json": MetaFile(1), **{f"{role}.json": MetaFile(1) for role in BINS}}
        self.snapshot = Snapshot(expires=date(NOW + PERIODS.snapshot * DAY), meta=meta)
        self.timestamp = Timestamp(expires=date(NOW + PERIODS.timestamp * DAY))
        for role in ("root", "targets", "snapshot", "timestamp"):
            self.sign(role)

    # ---- signing -------------------------------------------------------------------------------------
    def signed(self, role: str) -> Any:
        return self.bins[role] if role in self.bins else getattr(self, role)

    def metadata(self, role: str, *signers: SecretKey) -> Metadata[Any]:
        """The present content of a role, signed by its keys or by others."""
        made: Metadata[Any] = Metadata(copy.deepcopy(self.signed(role)))
        for secret in signers or self.keys[role if role in ("root", "targets") else "online"]:
            made.sign(KeySigner(secret), append=True)  # type: ignore[arg-type]
        return made

    def sign(self, role: str, *signers: SecretKey) -> None:
        """Serve the present content of a role under its version."""
        self.serve(role, self.metadata(role, *signers))

    def serve(self, role: str, metadata: Metadata[Any]) -> None:
        if role == "snapshot":
            data = metadata.to_bytes()
            self.timestamp.snapshot_meta = MetaFile(self.snapshot.version, len(data), {"sha256": digest_bytes(data)})
        self.files[self.path(role, metadata.signed.version)] = metadata.to_bytes()

    @staticmethod
    def path(role: str, version: int) -> str:
        return metadata_path(role, None if role == "timestamp" else version)

    def publish(self, *roles: str) -> None:
        """Sign the next version of each role, and everything above it."""
        for role in roles:
            self.signed(role).version += 1
            self.sign(role)
            if role not in ("root", "snapshot", "timestamp"):
                self.snapshot.meta[f"{role}.json"] = MetaFile(self.signed(role).version)
        if "root" in roles and len(roles) == 1:
            return
        for role in ("snapshot", "timestamp"):
            if role not in roles:
                self.signed(role).version += 1
                self.sign(role)

    def add(self, name: str, data: bytes, *, role: str | None = None) -> None:
        """Publish a target."""
        self.put(name, data, role=role)
        self.publish(role or bin_of(name))

    def put(self, name: str, data: bytes, *, role: str | None = None) -> None:
        entry = TargetFile(len(data), {"sha256": digest_bytes(data)}, name)
        self.bins[role or bin_of(name)].targets[name] = entry
        with contextlib.suppress(TrustError):
            self.files[stored_path(name, digest_bytes(data))] = data

    # ---- the transport -------------------------------------------------------------------------------
    def shown(self, path: str) -> str:
        return f"sim/{path}"

    def read(self, path: str, *, limit: int, what: str) -> bytes | None:
        self.asked.append(path)
        data = self.files.get(path)
        name = path.removeprefix("tuf/").removeprefix("1.").removesuffix(".json")
        if data is None and name in self.bins and self.bins[name].version >= 1 and path.startswith("tuf/1."):
            first = copy.deepcopy(self.bins[name])
            first.version = 1
            first.targets.clear()
            made: Metadata[Any] = Metadata(first)
            made.sign(KeySigner(key("online")), append=True)  # type: ignore[arg-type]
            data = made.to_bytes()
        if data is not None and len(data) > limit:
            raise RegistryError(f"{what} is too large", where=path)
        return data

    def fetch(self, path: str, *, size: int, digest: str, what: str, progress: object) -> bytes:
        data = self.read(path, limit=size, what=what)
        if data is None:
            raise RegistryError(f"{what} is not there", where=path)
        if digest_bytes(data) != digest:
            raise TrustError(f"{what} is another file", where=path)
        return data

    def close(self) -> None:
        pass


class Told:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def step(self, *args: object, **options: object) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


class Client:
    """A client with a store of its own, whose clock is that of the repository."""

    def __init__(self, store: Path, sim: RepoSim, *others: RepoSim) -> None:
        store.mkdir(parents=True, exist_ok=True, mode=0o700)
        root = sim.files["tuf/1.root.json"]
        registration = Registration(location="sim", identity=digest_bytes(root), how="fingerprint")
        self.state = TrustRoom(store / "trust").register(registration, root)
        self.sims = (sim, *others)
        self.told = Told()

    def reader(self, *, offline: bool = False) -> TufReader:
        return TufReader(
            self.state, self.sims, offline=offline, clock=lambda: self.sims[0].now, progress=self.told
        )  # type: ignore[arg-type]

    def get(self, name: str = NAME, *, offline: bool = False) -> bytes | None:
        """The file of a target, looked up afresh; None when there is none."""
        reader = self.reader(offline=offline)
        (target,) = reader.find(name)
        return None if target is None else reader.small(target, name)


def resigned(metadata: Metadata[Any], *, by: SecretKey, under: SecretKey) -> Metadata[Any]:
    """Return the metadata with a signature that `by` made, labelled as one of `under`."""
    signature = by.sign(metadata.signed_bytes).hex()
    metadata.signatures = {key_id(under.public): Signature(key_id(under.public), signature)}
    return metadata


def second_id(root: Root, secret: SecretKey, role: str) -> str:
    """List the key of `secret` in a role under a second id, and return that."""
    other = hashlib.sha256(b"another").hexdigest()
    entry = tuf_key(secret.public).to_dict()
    root.keys[other] = type(tuf_key(secret.public)).from_dict(other, entry)
    root.roles[role].keyids.append(other)
    return other
