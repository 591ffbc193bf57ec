"""The list of all names, in parts: what search reads, and what keeps look-alike names out.

The target ``names.json`` says into how many parts the names are distributed and gives the digest of each; a part
is fetched by its digest. A name belongs to the part that the digest of its plain form names, so that names which
look alike are always in the same one, and a publisher reads and writes one part only. Invariant: the list holds
nothing that the indexes do not hold, and can be made from them at any time. The spec is docs/spec/registry.md,
section "The list of names".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from visget.digest import Digest, parse_digest
from visget.errors import RegistryError
from visget.format.strictjson import Reader, dumps
from visget.names import PackageName, parse_name
from visget.registry.protocol import (
    FORMAT,
    NAMES_LIMIT,
    NameEntry,
    Releases,
    answer_of,
    encode_names,
    entry_of,
    open_document,
    parse_names,
    parse_releases,
)
from visget.registry.tuf_client import Target
from visget.registry.tuf_names import NAMES_TARGET, shard_target
from visget.registry.tuf_repository import Change, Repository

LIST_LIMIT = 1 << 20
_BITS_LIMIT = 8
_FULL = 512
"""Names in a part above which, on average, there will be twice as many parts."""
# Characters that are hard to tell apart are the same one here (the rule of PyPI's "ultranormalize").
_ALIKE = str.maketrans({"l": "1", "i": "1", "o": "0", "-": None, ".": None, "_": None})

ReadTarget = Callable[[Target, str], bytes]
"""Returns the file of a target; the text says what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesList:
    """Into how many parts the names are distributed, and which files those are."""

    bits: int = 0
    """There are 2 to the power of this many parts."""
    count: int = 0
    """How many names there are in all."""
    shards: Mapping[int, Target]
    """The file of each part that is not empty."""

    @property
    def size(self) -> int:
        """The bytes of all parts."""
        return sum(target.size for target in self.shards.values())

    def shard_of(self, name: PackageName) -> int:
        """Return the part to which `name` belongs."""
        first = hashlib.sha256(plain(name).encode("ascii")).digest()[0]
        return first >> (8 - self.bits)

    def encode(self) -> bytes:
        """Return the target names.json."""
        shards = [
            {"part": number, "sha256": target.digest, "size": target.size}
            for number, target in sorted(self.shards.items())
        ]
        return dumps({"format": FORMAT, "bits": self.bits, "count": self.count, "parts": shards})

    @classmethod
    def parse(cls, data: bytes, where: str) -> NamesList:
        """Parse the target names.json.

        Raises:
            RegistryError: it is malformed.
        """
        with answer_of(where):
            reader = open_document(data, "the list of names", LIST_LIMIT)
            bits = reader.integer("bits", 0, _BITS_LIMIT)
            shards = {}
            for item in reader.objects("parts"):
                number = item.integer("part", 0, (1 << bits) - 1)
                size = item.integer("size", 1, NAMES_LIMIT)
                shards[number] = Target(name=shard_target(bits, number), digest=_digest(item), size=size)
            return cls(bits=bits, count=reader.integer("count"), shards=shards)


def plain(name: PackageName) -> str:
    """Return `name` with the characters that are hard to tell apart made the same."""
    return name.translate(_ALIKE)


def read_all(names: NamesList, read: ReadTarget, where: str) -> tuple[NameEntry, ...]:
    """Return every entry of the list, sorted by name.

    Raises:
        RegistryError: a part is malformed.
    """
    found = [
        entry
        for target in names.shards.values()
        for entry in parse_names(read(target, "a part of the list of names"), where)
    ]
    return tuple(sorted(found, key=lambda entry: entry.name))


class NamesEditor:
    """The list of names of a registry that is being changed; a damaged one is made anew from the indexes."""

    def __init__(self, repository: Repository, change: Change) -> None:
        self._repository = repository
        self._change = change
        self._where = str(repository.root)
        self._parts: dict[int, dict[PackageName, NameEntry]] = {}
        self._touched: set[int] = set()
        self._mine: dict[PackageName, NameEntry] = {}
        self._added = 0
        self._list = NamesList(shards={})
        target = repository.find(NAMES_TARGET)
        if target is not None:
            try:
                self._list = NamesList.parse(repository.read(target), self._where)
            except RegistryError:
                self._rebuild()

    def all(self) -> list[PackageName]:
        """Return every name, sorted."""
        return sorted(name for entries in self._all_parts() for name in entries)

    def similar(self, name: PackageName) -> PackageName | None:
        """Return another name that looks like `name`, if there is one."""
        wanted = plain(name)
        return next((other for other in self._part_of(name) if other != name and plain(other) == wanted), None)

    def update(self, releases: Releases) -> None:
        """Make the list agree with an index."""
        entry = entry_of(releases)
        entries = self._part_of(entry.name)
        if entries.get(entry.name) != entry:
            self._added += entry.name not in entries
            entries[entry.name] = self._mine[entry.name] = entry
            self._touched.add(self._list.shard_of(entry.name))

    def finish(self) -> None:
        """Hand the changed parts, and the list of all parts, to the change."""
        if not self._touched:
            return
        if _bits_for(self._list.count + self._added) > self._list.bits:
            everything = [entry for part in self._all_parts() for entry in part.values()]
            self._distribute(everything, max(self._list.bits, _bits_for(len(everything))))
        bits = self._list.bits
        shards = dict(self._list.shards)
        for number in self._touched:
            data = encode_names(self._parts[number].values())
            shards[number] = self._change.write(shard_target(bits, number), data)
        names = NamesList(bits=bits, count=self._list.count + self._added, shards=shards)
        self._change.put(NAMES_TARGET, names.encode())

    def _rebuild(self) -> None:
        """Take everything from the indexes, and what was changed since."""
        entries: dict[PackageName, NameEntry] = {}
        for target in self._repository.all_targets():
            if target.name.startswith("idx__"):
                name = parse_name(target.name.removeprefix("idx__").removesuffix(".json"))
                releases = parse_releases(self._repository.read(target), name, self._where)
                if releases.versions:
                    entries[name] = entry_of(releases)
        entries |= self._mine
        self._list = NamesList(count=len(entries), shards={})
        self._added = 0
        self._distribute(entries.values(), _bits_for(len(entries)))

    def _distribute(self, entries: Iterable[NameEntry], bits: int) -> None:
        """Put all entries into 2 to the power of `bits` parts, none of which is written yet."""
        self._list = NamesList(bits=bits, count=self._list.count, shards={})
        self._parts = {}
        for entry in entries:
            self._parts.setdefault(self._list.shard_of(entry.name), {})[entry.name] = entry
        self._touched = set(self._parts)

    def _all_parts(self) -> list[dict[PackageName, NameEntry]]:
        try:
            return [self._part(number) for number in range(1 << self._list.bits)]
        except RegistryError:
            self._rebuild()
            return list(self._parts.values())

    def _part_of(self, name: PackageName) -> dict[PackageName, NameEntry]:
        try:
            return self._part(self._list.shard_of(name))
        except RegistryError:
            self._rebuild()
            return self._part(self._list.shard_of(name))

    def _part(self, number: int) -> dict[PackageName, NameEntry]:
        if number not in self._parts:
            target = self._list.shards.get(number)
            found = parse_names(self._repository.read(target), self._where) if target else ()
            self._parts[number] = {entry.name: entry for entry in found}
        return self._parts[number]


def _bits_for(count: int) -> int:
    return next(bits for bits in range(_BITS_LIMIT + 1) if bits == _BITS_LIMIT or count <= _FULL << bits)


def _digest(reader: Reader) -> Digest:
    try:
        return parse_digest(reader.line("sha256", 64))
    except ValueError as error:
        raise reader.fail("sha256", f"is {error}") from error

