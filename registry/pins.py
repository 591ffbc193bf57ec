"""The keys that this user has trusted, for each registry and name.

Invariant: a damaged file of pins is recovered from its newest copy, or stops everything: it never counts as "no
pins", which would trust anybody again. What the pins mean is visget/registry/trust.py; the format is
docs/spec/store.md, section "Documents".
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from visget.cache.content import guard_directory, guard_lock
from visget.cache.document import Content, read_document, write_document
from visget.errors import TrustError
from visget.files import locked
from visget.format.keys import PublicKey, parse_key_id


class PinStore:
    """The pins of one store, in its directory trust/."""

    def __init__(self, directory: Path) -> None:
        self._root = directory.parent
        self._path = directory / "pins.json"

    def get(self, registry: str, name: str) -> tuple[PublicKey, ...]:
        """Return the keys pinned for `name` in the registry with that identity; empty when there are none.

        Raises:
            TrustError: the pins are damaged, and so are their copies.
        """
        found = self._read().body.get("registries", {}).get(registry, {}).get(name, [])
        return tuple(parse_key_id(text) for text in found)

    def all(self) -> dict[str, dict[str, tuple[PublicKey, ...]]]:
        """Return every pin: registry, name, keys.

        Raises:
            TrustError: the pins are damaged, and so are their copies.
        """
        registries = self._read().body.get("registries", {})
        return {
            registry: {name: tuple(map(parse_key_id, keys)) for name, keys in sorted(names.items())}
            for registry, names in sorted(registries.items())
        }

    def remember(self, registry: str, name: str, keys: Iterable[PublicKey]) -> None:
        """Pin `keys` for `name`, in place of an earlier pin.

        Raises:
            TrustError: the pins are damaged, and so are their copies.
            CacheError, ResourceError: they cannot be written; the old ones stay.
        """
        texts = [key.id for key in keys]
        if not texts:
            raise ValueError("a pin has at least one key")
        lock = self._root / "locks" / "pins"
        guard_directory(self._path.parent)
        guard_lock(lock)
        with locked(lock):
            content = self._read()
            registries: dict[str, Any] = content.body.get("registries", {})
            registries.setdefault(registry, {})[name] = texts
            write_document(self._root, self._path, {"registries": registries}, content.generation)

    def _read(self) -> Content:
        content = read_document(self._path)
        if content.lost:
            raise TrustError(
                "the list of trusted keys is damaged, and so are its copies: whose packages you have trusted "
                "before is not known",
                where=str(self._path),
                hint=f"restore it from a backup; or, to trust every author anew at the next installation, move "
                f"{self._path.parent} away",
            )
        return content
