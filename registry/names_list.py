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
        self._entries: dict[int, dict[PackageName, NameEntry]] = {}
        self._list = NamesList(shards={})
        target = repository.find(NAMES_TARGET)
        if target is not None:
            try:
                self._list = NamesList.parse(repository.read(target), self._where)
            except RegistryError:
                self.rebuild()

    def all(self) -> list[PackageName]:
        """Return every name, sorted."""
        return sorted(name for number in range(1 << self._list.bits) for name in self._shard(number))

    def similar(self, name: PackageName) -> PackageName | None:
        """Return another name that looks like `name`, if there is one."""
        wanted = plain(name)
        entries = self._shard(self._list.shard_of(name))
        return next((other for other in entries if other != name and plain(other) == wanted), None)

    def update(self, releases: Releases) -> None:
        """Make the list agree with an index."""
        entry = entry_of(releases)
        number = self._list.shard_of(entry.name)
        entries = self._shard(number)
        if entries.get(entry.name) == entry and self._list.shards:
            return
        count = self._list.count + (entry.name not in entries)
        entries[entry.name] = entry
        self._entries[number] = entries
        if self._list.bits < _BITS_LIMIT and count > _FULL << self._list.bits:
            everything = [item for part in range(1 << self._list.bits) for item in self._shard(part).values()]
            self._write(everything, self._list.bits + 1)
            return
        shards = {**self._list.shards, number: self._write_shard(self._list.bits, number, entries.values())}
        self._put(NamesList(bits=self._list.bits, count=count, shards=shards))

    def rebuild(self) -> None:
        """Make the whole list from the indexes."""
        entries = []
        for target in self._repository.all_targets():
            if target.name.startswith("idx__"):
                name = parse_name(target.name.removeprefix("idx__").removesuffix(".json"))
                releases = parse_releases(self._repository.read(target), name, self._where)
                if releases.versions:
                    entries.append(entry_of(releases))
        bits = next(n for n in range(_BITS_LIMIT + 1) if n == _BITS_LIMIT or len(entries) <= _FULL << n)
        self._write(entries, bits)

    def _shard(self, number: int) -> dict[PackageName, NameEntry]:
        if number not in self._entries:
            target = self._list.shards.get(number)
            try:
                found = parse_names(self._repository.read(target), self._where) if target else ()
            except RegistryError:
                self.rebuild()
                return self._entries.get(number, {})
            self._entries[number] = {entry.name: entry for entry in found}
        return self._entries[number]

    def _write(self, entries: Iterable[NameEntry], bits: int) -> None:
        empty = NamesList(bits=bits, shards={})
        parts: dict[int, dict[PackageName, NameEntry]] = {}
        count = 0
        for entry in entries:
            parts.setdefault(empty.shard_of(entry.name), {})[entry.name] = entry
            count += 1
        self._entries = parts
        shards = {number: self._write_shard(bits, number, part.values()) for number, part in parts.items()}
        self._put(NamesList(bits=bits, count=count, shards=shards))

    def _write_shard(self, bits: int, number: int, entries: Iterable[NameEntry]) -> Target:
        return self._change.write(shard_target(bits, number), encode_names(entries))

    def _put(self, names: NamesList) -> None:
        self._list = names
        self._change.put(NAMES_TARGET, names.encode())


def _digest(reader: Reader) -> Digest:
    try:
        return parse_digest(reader.line("sha256", 64))
    except ValueError as error:
        raise reader.fail("sha256", f"is {error}") from error

