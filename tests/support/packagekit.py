"""Small packages and fixed keys for tests; the module inside is no real bitcode."""

import hashlib

from packaging.version import Version

from visget.digest import digest_bytes
from visget.format.container import write_container
from visget.format.keys import SecretKey
from visget.format.manifest import Manifest, Provenance
from visget.format.owner import first_record
from visget.format.package import Package, open_package
from visget.format.prototypes import Api


def key(name: str = "author") -> SecretKey:
    """Return the same key for the same name every time."""
    return SecretKey(hashlib.sha256(name.encode()).digest())


def claim(item: Package, *keys: SecretKey) -> bytes:
    """Return the owner record with which the first of `keys` claims the name of `item`."""
    return first_record(item.manifest.name, keys[0]).encode()


def package(
    name: str = "xxhash", version: str = "1.0", *, exports: tuple[str, ...] = ("xxh32",), summary: str = "A fast hash",
    filling: bytes = b"", dependencies: tuple[str, ...] = (),
) -> Package:  # fmt: skip
    manifest = Manifest(
        name=name,  # type: ignore[arg-type]
        version=Version(version),
        summary=summary,
        license="BSD-2-Clause",
        exports=exports,
        dependencies=dependencies,
        provenance=Provenance(compiler="clang 22.1.8", flags=(), source_digest=digest_bytes(b"source")),
    )
    api = Api(functions=(), records=(), enums=(), constants=())
    data = write_container(manifest, {"bitcode": b"BC\xc0\xde" + filling, "api": api.encode()})
    return open_package(data)
