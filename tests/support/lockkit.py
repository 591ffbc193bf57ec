"""A registry with packages that are only signed, not compiled, and a user beside it: for the tests of lock files."""

from __future__ import annotations

from pathlib import Path

from badkit import Place
from packagekit import claim, key, package

from visget.format.keys import SecretKey
from visget.format.package import Package
from visget.format.signing import sign_package
from visget.registry.directory import init_registry
from visget.registry.directory import publish as put


def shop(root: Path) -> Path:
    """Make a registry."""
    return init_registry(root)


def sell(registry: Path, name: str = "xxhash", version: str = "1.0", *, signer: SecretKey | None = None,
         filling: bytes = b"") -> Package:  # fmt: skip
    """Publish a package that nobody could compile."""
    made = package(name, version, filling=filling)
    put(registry, made, sign_package(made, signer or key()), claim=claim(made, signer or key()))
    return made


def user(root: Path, registry: Path, name: str = "user") -> Place:
    """Return a new user who knows the registry."""
    (root / name).mkdir(parents=True, exist_ok=True)
    return Place(root=root / name, variables={"VISGET_REGISTRY": str(registry)})
