"""The artifacts of the packages that one package depends on, as far as compiling and linking that package goes.

Invariant: no package is linked with a function of another one whose type is not the one that it was built with. What
goes into names and libraries is visget/installer/binding.py.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from visget.cache.entry import NativeEntry, Need
from visget.cache.store import Store
from visget.digest import Digest
from visget.errors import CacheError, UnsupportedError
from visget.files import translated
from visget.format.package import VerifiedPackage
from visget.installer.binding import Binding, bound_name, check_types, soname_of, tag_of
from visget.installer.documents import EXPORTS_FILE, Beside, read_exports
from visget.installer.plan import Dependency, Plan
from visget.installer.systems import CONVENTIONS

_MODULES = "lib/pkgconfig/"


class Others:
    """The artifacts of the packages that one package depends on."""

    def __init__(self, made: Plan, verified: VerifiedPackage, store: Store) -> None:
        self._store = store
        self._suffix = CONVENTIONS[made.target.system].suffix
        self._uses = {use.package: use.symbols for use in verified.package.manifest.uses}
        self.separate = [one for one in made.dependencies if one.key is not None]
        self.merged = [one for one in made.dependencies if one.key is None]
        self.linked = [one for one in self.separate if one.name in self._uses]
        """Those of which a function is called; of others only the headers matter."""
        if self.linked and made.tools.linker is None:
            raise UnsupportedError(
                f"{made.label} is linked with {self.linked[0].label}, and there is no linker",
                where=made.label,
                hint="install a linker (Debian's lld, or pip install 'visget[author]'), or give --link=static",
            )
        self._tags = {one.name: tag_of(one.key or one.verified.package.digest) for one in made.dependencies}
        for one in self.linked:
            types = read_exports(self.entry(one).content(EXPORTS_FILE))
            check_types(made.label, one.label, self._uses[one.verified.package.manifest.name], types)

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the store has to keep for the sake of the package."""
        return tuple(
            Need(key_of(one), f"lib/{soname_of(one.name, key_of(one), self._suffix)}" if one in self.linked else "")
            for one in self.separate
        )

    @property
    def run_path(self) -> str | None:
        """Where its library finds theirs: beside itself, where somebody may have copied them, or in the store."""
        places = [f"$ORIGIN/../../{key_of(one)}/lib" for one in self.linked]
        return ":".join(["$ORIGIN", *places]) if places else None

    @property
    def libraries(self) -> dict[str, list[str]]:
        """What their libraries call themselves, and the names that are taken from each."""
        return {
            soname_of(one.name, key_of(one), self._suffix): [bound_name(symbol, self._tags[one.name]) for symbol, _ in
                                                self._uses[one.verified.package.manifest.name]]
            for one in self.linked
        }  # fmt: skip

    def entry(self, one: Dependency) -> NativeEntry:
        """Return the artifact of a dependency.

        Raises:
            CacheError: it is not there.
        """
        found = self._store.native(key_of(one))
        if found is None:
            raise CacheError(f"the artifact of {one.label} is gone from the store", hint="run the same command again")
        return found

    def binding(self, verified: VerifiedPackage, tag: str) -> Binding:
        """Return the names under which `verified` takes functions of those here."""
        uses = verified.package.manifest.uses
        return Binding(tag=tag, taken={symbol: self._tags[use.package] for use in uses for symbol, _ in use.symbols})

    def to_merge(self) -> list[tuple[VerifiedPackage, Binding]]:
        """Return the packages whose code becomes part of the package's own."""
        return [(one.verified, self.binding(one.verified, self._tags[one.name])) for one in self.merged]

    def beside(self) -> list[Beside]:
        """Return all of them for documents()."""
        found = []
        for one in self.separate:
            entry = self.entry(one)
            modules = {
                file.path.removeprefix(_MODULES): entry.content(file.path).decode()
                for file in entry.files
                if file.path.startswith(_MODULES)
            }
            found.append(Beside(package=one.verified.package, key=one.key, modules=modules))
        return [*found, *(Beside(package=one.verified.package, key=None) for one in self.merged)]

    def files(self) -> Iterator[Path]:
        """Yield the libraries that are loaded with the package's, those of dependencies of dependencies included."""
        pending = list(self.needs)
        seen = set()
        while pending:
            need = pending.pop()
            if need in seen:
                continue
            seen.add(need)
            if not need.path:
                continue
            entry = self._store.native(need.key)
            if entry is None:
                raise CacheError(f"the artifact {need.key} is gone from the store", hint="run the same command again")
            yield entry.path / need.path
            pending += entry.needs


def key_of(one: Dependency) -> Digest:
    """Return the key of the artifact of a dependency that has one."""
    if one.key is None:
        raise ValueError(f"{one.label} has no artifact of its own")
    return one.key


def same_file(path: Path, other: Path) -> Path:
    """Make `other` a second name of the file `path`, or a copy where the file system has no such names."""
    with translated("write the library", other):
        try:
            os.link(path, other, follow_symlinks=False)
        except OSError:
            shutil.copyfile(path, other)
    return other
