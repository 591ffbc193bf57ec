"""A registry with packages that are only signed, not compiled, and a user beside it: for the tests of lock files."""

from __future__ import annotations

from pathlib import Path

from badkit import Place
from packagekit import claim, key, package

from visget.digest import digest_bytes
from visget.format.keys import SecretKey
from visget.format.package import Package
from visget.format.signing import sign_package
from visget.registry.directory import init_registry
from visget.registry.directory import publish as put
from visget.registry.editing import editing
from visget.registry.protocol import Release, Releases
from visget.registry.tuf_names import envelope_target, package_target


def shop(root: Path) -> Path:
    """Make a registry."""
    return init_registry(root)


def sell(registry: Path, name: str = "xxhash", version: str = "1.0", *, signer: SecretKey | None = None,
         filling: bytes = b"", keys: Path | None = None) -> Package:  # fmt: skip
    """Publish a package that nobody could compile; `keys` is the operator's room."""
    made, author = package(name, version, filling=filling), signer or key()
    put(registry, made, sign_package(made, author), keys=keys, claim=claim(made, author))
    return made


def seize(registry: Path, name: str, version: str, thief: SecretKey, *, filling: bytes = b"") -> Package:
    """What somebody does who has all the online keys of a registry: another owner, another package."""
    made = package(name, version, filling=filling)
    envelope = sign_package(made, thief)
    release = Release.of(
        made.manifest, vis=made.digest, size=len(made.data), dsse=digest_bytes(envelope), dsse_size=len(envelope)
    )
    with editing(registry) as editor:
        editor.change.write(package_target(release.name, release.version), made.data)
        editor.change.write(envelope_target(release.name, release.version), envelope)
        records = editor.put_records(release.name, [claim(made, thief)])
        editor.put_index(Releases(name=release.name, owners=(thief.public,), versions=(release,), records=records))
    return made


def user(root: Path, registry: Path, name: str = "user") -> Place:
    """Return a new user who knows the registry."""
    (root / name).mkdir(parents=True, exist_ok=True)
    return Place(root=root / name, variables={"VISGET_REGISTRY": str(registry)})
