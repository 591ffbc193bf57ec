"""visget.lock: which package of which version, from which registry and which owner, down to the digest.

Invariant: a Lock that exists is consistent in itself (every name once, every registry named), and the same Lock has
the same text everywhere. Whether it still fits what is asked for is answered by problems(), which is pure. The spec
is docs/spec/lockfile.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from visget.digest import Digest, parse_digest
from visget.errors import EXIT_LOCK, UnsupportedError, UsageError, VisgetError
from visget.format.keys import PublicKey, parse_key_id
from visget.format.owner import SEQ_LIMIT
from visget.format.owner_chain import OwnerPin
from visget.names import PackageName, Requirement, parse_name, parse_version

if TYPE_CHECKING:
    from visget.toolchain.toml_table import Table

LOCK_NAME = "visget.lock"
_DEPTH = 200
_VERSION = 1
_OWNERS_LIMIT = 64
_HEADER = "# Written by `visget lock`: what `visget sync` installs, to the byte. Keep it under version control.\n"


class LockError(VisgetError):
    """The lock file does not fit what is asked for; `visget lock` makes it fit."""

    exit_code = EXIT_LOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedRegistry:
    """A registry that packages come from."""

    identity: Digest
    """Which registry it is, wherever it lies: the digest of its first root."""
    location: str
    """Where it lay when the file was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedPackage:
    """One package, fixed."""

    name: PackageName
    """Its name."""
    version: Version
    """Its version."""
    digest: Digest
    """The digest of its file."""
    registry: Digest
    """The identity of the registry that it comes from."""
    owners: tuple[PublicKey, ...]
    """The owner's keys when it was locked."""
    threshold: int = 1
    """How many of them had to sign."""
    record: OwnerPin | None = None
    """The newest owner record then; None when only keys are known."""
    dependencies: tuple[Requirement, ...] = ()
    """What it needs, sorted by name; other packages of the file satisfy it."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The content of a lock file."""

    requirements: tuple[Requirement, ...] = ()
    """What was asked for, sorted by name."""
    registries: tuple[LockedRegistry, ...] = ()
    """The registries of the packages, sorted by identity."""
    packages: tuple[LockedPackage, ...] = ()
    """The answer, sorted by name."""

    def package(self, name: str) -> LockedPackage | None:
        """Return the package `name`, or None."""
        return next((item for item in self.packages if item.name == name), None)

    def registry(self, package: LockedPackage) -> LockedRegistry:
        """Return the registry that `package` comes from."""
        return next(item for item in self.registries if item.identity == package.registry)


def make_lock(
    requirements: Iterable[Requirement], registries: Iterable[LockedRegistry], packages: Iterable[LockedPackage]
) -> Lock:
    """Return the lock of these, in order, and without registries that no package comes from."""
    chosen = tuple(sorted(packages, key=lambda item: item.name))
    used = {item.registry for item in chosen}
    known = {item.identity: item for item in registries if item.identity in used}
    return Lock(
        requirements=tuple(sorted(requirements, key=lambda item: item.name)),
        registries=tuple(known[identity] for identity in sorted(known)),
        packages=chosen,
    )


def problems(lock: Lock, wanted: Iterable[Requirement] | None = None) -> list[str]:
    """Return why the lock does not answer its own requirements, or else `wanted`; an empty list when it does."""
    requirements = lock.requirements if wanted is None else tuple(wanted)
    found = []
    names = set()
    pending = [(requirement, "") for requirement in requirements]
    while pending:
        requirement, by = pending.pop(0)
        package = lock.package(requirement.name)
        if package is None:
            found.append(f"{requirement} is wanted{by}, and {requirement.name} is not locked")
        elif not satisfies(package, requirement):
            found.append(f"{requirement} is wanted{by}, and {package} is locked")
            names.add(requirement.name)
        elif requirement.name not in names:
            names.add(requirement.name)
            pending += [(one, f" by {package}") for one in package.dependencies]
    if wanted is None:
        found += [f"{item} is locked, and nothing wants it" for item in lock.packages if item.name not in names]
    return found


def in_order(lock: Lock) -> tuple[LockedPackage, ...]:
    """Return the packages, each after what it needs itself.

    Raises:
        LockError: some need each other in a circle, or need one that is not there.
    """
    done: dict[str, LockedPackage] = {}

    def visit(package: LockedPackage, trail: tuple[str, ...]) -> None:
        if package.name in trail:
            raise LockError(f"packages of the lock file need each other in a circle: {' -> '.join(trail)}")
        if len(trail) >= _DEPTH:
            raise LockError(f"{trail[0]} needs more than {_DEPTH} packages of the lock file through each other")
        for requirement in package.dependencies:
            other = lock.package(requirement.name)
            if other is None:
                raise LockError(f"{package} needs {requirement}, which is not locked", hint="visget lock")
            if other.name not in done:
                visit(other, (*trail, package.name))
        done.setdefault(package.name, package)

    for package in lock.packages:
        visit(package, ())
    return tuple(done.values())


def needed_by(lock: Lock, names: Iterable[str]) -> tuple[LockedPackage, ...]:
    """Return the packages called `names` and all that they need, in the order of the file."""
    kept: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        package = lock.package(name)
        if package is not None and name not in kept:
            kept.add(name)
            pending += [one.name for one in package.dependencies]
    return tuple(item for item in lock.packages if item.name in kept)


def satisfies(package: LockedPackage, requirement: Requirement) -> bool:
    """Return whether `package` is what `requirement` asks for; a locked pre-release was chosen on purpose."""
    return package.name == requirement.name and requirement.specifier.contains(package.version, prereleases=True)


# ---- text ------------------------------------------------------------------------------------------------


def encode_lock(lock: Lock) -> str:
    """Return the text of the lock file."""
    blocks = [f"version = {_VERSION}\n" + _array("requirements", map(str, lock.requirements))]
    blocks += [
        f"[[registry]]\nidentity = {_quoted(_digest_text(item.identity))}\nlocation = {_quoted(item.location)}\n"
        for item in lock.registries
    ]
    blocks += ["".join(_package_lines(item)) for item in lock.packages]
    return _HEADER + "\n".join(blocks)


def _package_lines(package: LockedPackage) -> Iterator[str]:
    yield "[[package]]\n"
    yield f"name = {_quoted(package.name)}\n"
    yield f"version = {_quoted(str(package.version))}\n"
    yield f"digest = {_quoted(_digest_text(package.digest))}\n"
    yield f"registry = {_quoted(_digest_text(package.registry))}\n"
    yield _array("owners", (key.id for key in package.owners))
    if package.threshold != 1:
        yield f"threshold = {package.threshold}\n"
    if package.record is not None:
        yield f"owner-seq = {package.record.seq}\n"
        yield f"owner-record = {_quoted(_digest_text(package.record.sha256))}\n"
    if package.dependencies:
        yield _array("dependencies", map(str, package.dependencies))


def _digest_text(digest: Digest) -> str:
    return f"sha256:{digest}"


def _array(key: str, texts: Iterable[str]) -> str:
    lines = [f"    {_quoted(text)},\n" for text in texts]
    return f"{key} = [\n{''.join(lines)}]\n" if lines else f"{key} = []\n"


def _quoted(text: str) -> str:
    """Return `text` as a basic string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped) + '"'


def read_lock(path: Path) -> Lock:
    """Read the lock file `path`.

    Raises:
        UsageError: there is none, or it is malformed; file, line and key are named.
        UnsupportedError: a newer visget wrote it.
        TrustError: it names a weak key.
    """
    from visget.toolchain.toml_table import read_document

    if not path.exists():
        raise UsageError("there is no lock file here", where=str(path), hint="write one: visget lock NAME...")
    top = read_document(path)
    top.require("version", str(_VERSION))
    version: int = top.get("version", int, str(_VERSION)) or 0
    if version > _VERSION:
        raise UnsupportedError(
            f"the lock file has version {version}; this version of visget reads version {_VERSION}",
            where=top.document.where(("version",)),
            hint="pip install -U visget",
        )
    if version != _VERSION:
        top.fail("version", f"expected {_VERSION}, found {version}")
    lock = Lock(
        requirements=tuple(_requirements(top, "requirements")),
        registries=tuple(_registry(table) for table in _tables(top, "registry")),
        packages=tuple(_package(table) for table in _tables(top, "package")),
    )
    top.done()
    _check(lock, top)
    return make_lock(lock.requirements, lock.registries, lock.packages)


def _requirements(top: Table, key: str) -> Iterator[Requirement]:
    names: set[str] = set()
    for index, text in enumerate(top.texts(key, '["NAME>=1.0"]')):
        place = (*top.place, key, index)
        try:
            requirement = Requirement.parse(text)
        except UsageError as error:
            top.document.fail(place, error.message, error.hint)
        if requirement.name in names:
            top.document.fail(place, f"{requirement.name} is there twice", "join the two with a comma")
        names.add(requirement.name)
        yield requirement


def _tables(top: Table, key: str) -> Iterator[Table]:
    from visget.toolchain.toml_table import Table

    for index, value in enumerate(top.get(key, list, f"[[{key}]]") or []):
        if not isinstance(value, dict):
            top.document.fail((key, index), f"expected a table, written as [[{key}]]")
        yield Table(top.document, (key, index), value)


def _registry(table: Table) -> LockedRegistry:
    identity = _digest(table, "identity")
    table.require("location", '"https://..."')
    # As it is: the path of a directory may hold what no other text here may.
    location: str = table.get("location", str, '"https://..."') or ""
    if not location.strip():
        table.fail("location", "is empty")
    table.done()
    return LockedRegistry(identity=identity, location=location)


def _package(table: Table) -> LockedPackage:
    name, version = table.needed("name", '"zlib"'), table.needed("version", '"1.3"', limit=128)
    try:
        owners = tuple(map(parse_key_id, table.texts("owners", '["vk1..."]')))
    except VisgetError as error:
        error.where = table.document.where((*table.place, "owners"))
        raise
    if not owners or len(owners) > _OWNERS_LIMIT:
        table.fail("owners", f"expected 1 to {_OWNERS_LIMIT} key ids")
    try:
        parsed, number = parse_name(name), parse_version(version)
    except UsageError as error:
        table.fail_here(error.message, error.hint)
    threshold = _integer(table, "threshold", len(owners))
    found = LockedPackage(
        name=parsed,
        version=number,
        digest=_digest(table, "digest"),
        registry=_digest(table, "registry"),
        owners=owners,
        threshold=1 if threshold is None else threshold,
        record=_record(table),
        dependencies=tuple(sorted(_requirements(table, "dependencies"), key=lambda item: item.name)),
    )
    table.done()
    return found


def _record(table: Table) -> OwnerPin | None:
    if "owner-seq" not in table and "owner-record" not in table:
        return None
    table.require("owner-seq", "1")
    seq = _integer(table, "owner-seq", SEQ_LIMIT)
    return OwnerPin(seq=seq or 1, sha256=_digest(table, "owner-record"))


def _integer(table: Table, key: str, high: int) -> int | None:
    value: int | None = table.get(key, int, "1")
    if value is not None and not 1 <= value <= high:
        table.fail(key, f"is {str(value)[:20]}, outside 1 to {high}")
    return value


def _digest(table: Table, key: str) -> Digest:
    text = table.needed(key, '"sha256:..."', limit=71)
    try:
        if not text.startswith("sha256:"):
            raise ValueError("no digest: it begins with sha256:")
        return parse_digest(text.removeprefix("sha256:"))
    except ValueError as error:
        table.fail(key, f"is {error}")


def _check(lock: Lock, top: Table) -> None:
    identities = [item.identity for item in lock.registries]
    for index, identity in enumerate(identities):
        if identity in identities[:index]:
            top.document.fail(("registry", index, "identity"), "this registry is there twice")
    names: set[str] = set()
    for index, package in enumerate(lock.packages):
        if package.name in names:
            top.document.fail(("package", index, "name"), f"{package.name} is there twice")
        names.add(package.name)
        if package.registry not in identities:
            top.document.fail(("package", index, "registry"), "there is no [[registry]] with this identity")
