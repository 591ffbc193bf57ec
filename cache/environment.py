"""What is installed, and which version of each package is the selected one.

Invariants: versions live side by side, and at most one of a package is selected; every change is one atomic
replacement of ``current.json`` under a lock; a damaged file is replaced by its newest generation, and a line in the
log says so. Reading imports nothing heavy, for it is on the path of ``visget.load``. The format is
docs/spec/store.md, section "Environments".
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from visget.cache.content import guard_directory, move_aside
from visget.cache.document import Content, read_document, write_document
from visget.cache.store import Store
from visget.digest import Digest, parse_digest
from visget.errors import CacheError, NotFoundError, UsageError, VisgetError

_HISTORY = 20

_T = TypeVar("_T")


class Installed(NamedTuple):
    """One installed version of a package."""

    name: str
    """The package."""
    version: str
    """Its version."""
    package: Digest
    """The digest of the package file."""
    signers: tuple[str, ...]
    """Ids of the keys that signed it."""
    selected: bool
    """Whether this is the version that a load without a version takes."""
    natives: Mapping[str, Digest]
    """The action key of its artifact for each machine id, or for "target:KEY" when compiled for another machine."""
    source: str
    """Where the package came from: a registry's location, or empty."""
    requires: Mapping[str, str] = {}
    """The version of each package that it was linked with."""
    static: bool = False
    """Whether the code of those packages is inside its own."""
    automatic: bool = False
    """Whether it came only because another package needs it."""


class Roots(NamedTuple):
    """What garbage collection must keep."""

    packages: frozenset[Digest]
    """Digests of package files."""
    natives: frozenset[Digest]
    """Action keys."""


class Environment:
    """The list of installed packages of one store."""

    def __init__(self, store: Store, name: str = "default") -> None:
        self.store = store
        self.name = name
        self.directory = store.root / "env" / "v1" / name
        self._path = self.directory / "current.json"

    # ---- reading ----------------------------------------------------------------------------------------

    def installed(self) -> list[Installed]:
        """Return every installed version, sorted by name and version."""
        packages = self._packages()
        return [
            _installed(name, version, packages[name])
            for name in sorted(packages)
            for version in _in_order(packages[name]["versions"])
        ]

    def lookup(self, name: str, version: str | None = None, machine: str | None = None) -> Installed | None:
        """Return the selected version of `name`, or the given one; None when it is not installed.

        Args:
            name: the package.
            version: one of its versions, spelled in any way PEP 440 allows; None means the selected one.
            machine: only an installation that has an artifact for this machine counts; None means any.
        """
        entry = self._packages().get(name)
        if entry is None:
            return None
        wanted = entry["selected"] if version is None else _spelled(entry, version)
        if wanted is None:
            return None
        found = _installed(name, wanted, entry)
        return found if machine is None or machine in found.natives else None

    def history(self, name: str) -> tuple[str, ...]:
        """Return the versions that were selected before, the latest last."""
        entry = self._packages().get(name)
        return tuple(entry["history"]) if entry else ()

    def dependents(self, name: str, version: str) -> list[Installed]:
        """Return what is installed and linked with `version` of `name`, sorted by name and version."""
        return [item for item in self.installed() if not item.static and item.requires.get(name) == version]

    def roots(self) -> Roots:
        """Return the packages and the artifacts that garbage collection must keep."""
        items = self.installed()
        return Roots(
            frozenset(item.package for item in items),
            frozenset(native for item in items for native in item.natives.values()),
        )

    # ---- changing ---------------------------------------------------------------------------------------

    def record(
        self,
        name: str,
        version: str,
        *,
        package: Digest,
        signers: Iterable[str] = (),
        natives: Mapping[str, Digest] | None = None,
        source: str = "",
        select: bool = True,
        requires: Mapping[str, str] | None = None,
        static: bool = False,
        automatic: bool = False,
    ) -> Installed:
        """Add a version, or artifacts to an installed version, and select it.

        Artifacts recorded earlier for other machines are kept as long as the package and what it was linked with are
        the same. What somebody has asked for once is not automatic again.

        Raises:
            CacheError, ResourceError: the list cannot be written; it is as before.
        """

        def change(packages: dict[str, Any]) -> Installed:
            entry = packages.setdefault(name, {"selected": None, "history": [], "versions": {}})
            text = _spelled(entry, version) or version
            old = entry["versions"].get(text)
            same = old is not None and (old["package"], old.get("requires", {}), old.get("static", False)) == (
                package, dict(requires or {}), static,
            )  # fmt: skip
            kept = old["natives"] if same else {}
            entry["versions"][text] = {
                "package": package,
                "signers": sorted(signers),
                "natives": {**kept, **(natives or {})},
                "source": source,
                **({"requires": dict(requires)} if requires else {}),
                **({"static": True} if static else {}),
                **({"automatic": True} if automatic and (old is None or old.get("automatic")) else {}),
            }
            if select or entry["selected"] is None:
                _select(entry, text)
            return _installed(name, text, entry)

        return self._change(change)

    def select(self, name: str, version: str) -> Installed:
        """Make `version` the one that a load without a version takes.

        Raises:
            NotFoundError: it is not installed.
            CacheError, ResourceError: the list cannot be written.
        """

        def change(packages: dict[str, Any]) -> Installed:
            entry = _entry(packages, name)
            text = _spelled(entry, version)
            if text is None:
                raise _no_version(name, version, entry)
            _select(entry, text)
            return _installed(name, text, entry)

        return self._change(change)

    def rollback(self, name: str) -> Installed:
        """Select the version that was selected before the present one; again, the one before that.

        Raises:
            NotFoundError: the package is not installed, or no earlier version is.
            CacheError, ResourceError: the list cannot be written.
        """

        def change(packages: dict[str, Any]) -> Installed:
            entry = _entry(packages, name)
            earlier = [text for text in entry["history"] if text in entry["versions"] and text != entry["selected"]]
            if not earlier:
                raise NotFoundError(
                    f"{name} has no earlier version to go back to",
                    hint=f"installed: {', '.join(entry['versions'])}; select one with `visget use {name}==VERSION`",
                )
            entry["selected"] = earlier.pop()
            entry["history"] = earlier
            return _installed(name, entry["selected"], entry)

        return self._change(change)

    def remove(self, name: str, version: str | None = None, *, force: bool = False) -> list[Installed]:
        """Take `version`, or every version, off the list; the artifacts stay until garbage collection.

        When the selected version goes, the one selected before it takes its place, else the highest one left.

        Args:
            name: the package.
            version: one of its versions; None means all.
            force: also what others are linked with. Their artifacts keep what they need.

        Raises:
            NotFoundError: it is not installed.
            UsageError: another package is linked with it.
            CacheError, ResourceError: the list cannot be written.
        """

        def change(packages: dict[str, Any]) -> list[Installed]:
            entry = _entry(packages, name)
            text = None if version is None else _spelled(entry, version)
            if version is not None and text is None:
                raise _no_version(name, version, entry)
            gone = [_installed(name, item, entry) for item in entry["versions"] if text in (None, item)]
            if not force:
                _refuse_needed(packages, gone)
            for item in gone:
                del entry["versions"][item.version]
            entry["history"] = [item for item in entry["history"] if item in entry["versions"]]
            if not entry["versions"]:
                del packages[name]
            elif entry["selected"] not in entry["versions"]:
                entry["selected"] = entry["history"].pop() if entry["history"] else _in_order(entry["versions"])[-1]
            return gone

        return self._change(change)

    # ---- the file ---------------------------------------------------------------------------------------

    def _packages(self) -> dict[str, Any]:
        content = read_document(self._path)
        if content.problem is not None:
            # Mended at once, unless the store is busy or read-only: then by the next change.
            with contextlib.suppress(VisgetError), self._locked(timeout=0.0):
                content = self._mend()
        return _packages_of(content)

    def _change(self, change: Callable[[dict[str, Any]], _T]) -> _T:
        guard_directory(self.directory)
        with self.store.in_use(), self._locked():
            content = self._mend()
            packages = _packages_of(content)
            result = change(packages)
            write_document(self.store.root, self._path, {"packages": packages}, content.generation)
        return result

    def _locked(self, timeout: float = 600.0) -> contextlib.AbstractContextManager[None]:
        return self.store.lock(f"env-{self.name}", timeout=timeout)

    def _mend(self) -> Content:
        """Return the content after repairing the document, if it needs repair; the lock is held."""
        content = read_document(self._path)
        if content.problem is None:
            return content
        move_aside(self.store.root, self._path)
        write_document(self.store.root, self._path, content.body or {"packages": {}}, content.generation)
        _log(self._path, content)
        return read_document(self._path)


def roots_of(store: Store) -> Roots:
    """Return what the environments of `store` refer to: nothing of it may be collected."""
    packages: set[Digest] = set()
    natives: set[Digest] = set()
    for directory in sorted((store.root / "env" / "v1").iterdir()):
        if directory.is_dir() and not directory.is_symlink():
            found = Environment(store, directory.name).roots()
            packages |= found.packages
            natives |= found.natives
    return Roots(frozenset(packages), frozenset(natives))


def _packages_of(content: Content) -> dict[str, Any]:
    packages = content.body.get("packages", {})
    if not isinstance(packages, dict):
        raise CacheError("the list of installed packages was written by another version of visget")
    return packages


def _installed(name: str, version: str, entry: Mapping[str, Any]) -> Installed:
    facts = entry["versions"][version]
    return Installed(
        name=name,
        version=version,
        package=parse_digest(facts["package"]),
        signers=tuple(facts["signers"]),
        selected=entry["selected"] == version,
        natives={machine: parse_digest(key) for machine, key in facts["natives"].items()},
        source=facts["source"],
        requires=facts.get("requires", {}),
        static=facts.get("static", False),
        automatic=facts.get("automatic", False),
    )


def _refuse_needed(packages: Mapping[str, Any], gone: Iterable[Installed]) -> None:
    going = {(item.name, item.version) for item in gone}
    needed = {
        (other, text): (name, version)
        for other, entry in packages.items()
        for text, facts in entry["versions"].items()
        for name, version in facts.get("requires", {}).items()
        if (name, version) in going and (other, text) not in going and not facts.get("static", False)
    }
    if needed:
        (other, text), (name, version) = min(needed.items())
        more = f" (and {len(needed) - 1} more)" if len(needed) > 1 else ""
        raise UsageError(
            f"{name} {version} is needed by {other} {text}{more}",
            hint=f"uninstall {other} first, or give --force: {other} keeps the artifact that it is linked with",
            details={"dependents": [f"{one} {its}" for one, its in sorted(needed)]},
        )


def _select(entry: dict[str, Any], version: str) -> None:
    if entry["selected"] is not None and entry["selected"] != version:
        entry["history"] = [*entry["history"], entry["selected"]][-_HISTORY:]
    entry["selected"] = version


def _spelled(entry: Mapping[str, Any], version: str) -> str | None:
    """Return how the installed version that equals `version` is spelled in the list, or None."""
    if version in entry["versions"]:
        return version
    from visget.names import parse_version

    try:
        wanted = parse_version(version)
        return next((text for text in entry["versions"] if parse_version(text) == wanted), None)
    except UsageError:
        return None


def _in_order(versions: Iterable[str]) -> list[str]:
    """Return `versions` from the lowest to the highest."""
    from visget.names import parse_version

    return sorted(versions, key=parse_version)


def _entry(packages: Mapping[str, Any], name: str) -> dict[str, Any]:
    if name in packages:
        entry: dict[str, Any] = packages[name]
        return entry
    from visget.nearest import nearest

    close = nearest(name, packages)
    raise NotFoundError(
        f"{name} is not installed",
        hint=f"did you mean {close[0]}?" if close else "`visget list` shows what is",
    )


def _no_version(name: str, version: str, entry: Mapping[str, Any]) -> NotFoundError:
    return NotFoundError(
        f"{name} {version} is not installed", hint=f"installed: {', '.join(_in_order(entry['versions']))}"
    )


def _log(path: Path, content: Content) -> None:
    import logging  # costs 5 ms; damage is rare

    if content.lost:
        text = (
            "the list of installed packages was damaged (%s) and no earlier one can be read, so it is empty now; "
            "packages and compiled code are still in the store: install what you need again"
        )
    else:
        text = "the list of installed packages was damaged (%s); it was recovered from its newest copy"
    logging.getLogger("visget.cache").warning(f"%s: {text}", path, content.problem)
