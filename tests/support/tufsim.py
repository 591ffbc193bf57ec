"""Any TUF repository in a directory, for a web server: free names, keys of several kinds, delegations."""

from __future__ import annotations

import datetime
import functools
import urllib.parse
from pathlib import Path
from typing import Any

from securesystemslib.signer import CryptoSigner
from tuf.api.metadata import (
    DelegatedRole,
    Delegations,
    Metadata,
    MetaFile,
    Root,
    Snapshot,
    TargetFile,
    Targets,
    Timestamp,
)

TOP = ("root", "timestamp", "snapshot", "targets")


@functools.cache
def signer(name: str) -> CryptoSigner:
    """The same key for the same name; names that begin with ``rsa`` or ``ecdsa`` have such keys."""
    if name.startswith("rsa"):
        return CryptoSigner.generate_rsa(scheme="rsa-pkcs1v15-sha256")
    if name.startswith("ecdsa"):
        return CryptoSigner.generate_ecdsa()
    return CryptoSigner.generate_ed25519()


def days(count: float) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0) + datetime.timedelta(days=count)


class TufSim:
    def __init__(self, directory: Path, *, kind: str = "ed25519", hashes: bool = False) -> None:
        self.directory = directory
        self.hashes = hashes
        for name in ("metadata", "targets"):
            (directory / name).mkdir(parents=True)
        self.signed: dict[str, Any] = {
            "root": Root(expires=days(30)), "timestamp": Timestamp(expires=days(30)),
            "snapshot": Snapshot(expires=days(30)), "targets": Targets(expires=days(30)),
        }  # fmt: skip
        self.signers: dict[str, list[CryptoSigner]] = {}
        for role in TOP:
            self.signers[role] = [signer(f"{kind}-{role}")]
            self.root.add_key(self.signers[role][0].public_key, role)
        for role in ("root", "targets"):
            self.sign(role)
        self.update(snapshot=False)

    root = property(lambda self: self.signed["root"])
    timestamp = property(lambda self: self.signed["timestamp"])
    snapshot = property(lambda self: self.signed["snapshot"])
    targets = property(lambda self: self.signed["targets"])

    def path(self, role: str, version: int | None = None) -> Path:
        name = urllib.parse.quote(role, "")
        prefix = "" if version is None else f"{version}."
        return self.directory / "metadata" / f"{prefix}{name}.json"

    def sign(self, role: str, *signers: CryptoSigner) -> bytes:
        """Serve the present content of a role."""
        metadata: Metadata[Any] = Metadata(self.signed[role])
        for item in signers or self.signers[role]:
            metadata.sign(item, append=True)
        version = None if role == "timestamp" else self.signed[role].version
        path = self.path(role, version)
        path.write_bytes(data := metadata.to_bytes())
        return data

    def publish(self, *roles: str) -> None:
        """Sign the next version of each role, then of snapshot and timestamp."""
        for role in roles:
            self.signed[role].version += 1
            self.sign(role)
        if set(roles) - {"root", "timestamp"}:
            self.update("snapshot" not in roles)
        elif "root" not in roles and "timestamp" not in roles:
            self.update()

    def update(self, snapshot: bool = True) -> None:
        """Make the snapshot agree with the roles below it, and the timestamp with the snapshot."""
        first = not self.path("timestamp").exists()
        for role in self.signed:
            if role not in ("root", "timestamp", "snapshot"):
                data = self.path(role, self.signed[role].version).read_bytes()
                self.snapshot.meta[f"{role}.json"] = self._meta(self.signed[role].version, data)
        if not first and snapshot:
            self.snapshot.version += 1
        self.stamp(self.sign("snapshot"), bump=not first)

    def stamp(self, data: bytes, *, bump: bool = True) -> None:
        self.timestamp.snapshot_meta = self._meta(self.snapshot.version, data)
        self.timestamp.version += bump
        self.sign("timestamp")

    def _meta(self, version: int, data: bytes) -> MetaFile:
        return MetaFile.from_data(version, data, ["sha256"]) if self.hashes else MetaFile(version)

    def rotate(self, role: str, *names: str, threshold: int = 1) -> None:
        """Give a role other keys; the root is not published."""
        self.root.roles[role].keyids.clear()
        self.root.roles[role].threshold = threshold
        self.signers[role] = [signer(name) for name in names]
        for item in self.signers[role]:
            self.root.add_key(item.public_key, role)

    def delegate(self, parent: str, child: str, paths: list[str] | None = None, *, terminating: bool = False) -> None:
        if child not in self.signed:
            self.signed[child] = Targets(expires=days(30))
            self.signers[child] = [signer(f"ecdsa-{child}")]
        if self.signed[parent].delegations is None:
            self.signed[parent].delegations = Delegations({}, roles={})
        self.signed[parent].delegations.roles[child] = DelegatedRole(child, [], 1, terminating, paths or ["*"])
        self.signed[parent].add_key(self.signers[child][0].public_key, child)

    def add(self, name: str, data: bytes, role: str = "targets") -> Path:
        """Make `data` a target; the role is not published."""
        target = TargetFile.from_data(name, data, ["sha256"])
        self.signed[role].targets[name] = target
        (path,) = target.get_prefixed_paths()
        file = self.directory / "targets" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return file
