"""What this user has trusted, for each registry and name.

Invariants: a damaged file of pins is recovered from its newest copy, or stops everything: it never counts as "no
pins", which would trust anybody again. A pin is never lowered to an older owner record, and never replaced by one
that was decided without knowing it. What pins mean is visget/registry/trust.py; the format is docs/spec/store.md,
section "Pins".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from visget.cache.content import guard_directory, guard_lock
from visget.cache.document import Content, read_document, write_document
from visget.digest import parse_digest
from visget.errors import CacheError, FormatError, TrustError
from visget.files import locked
from visget.format.keys import parse_key_id
from visget.format.owner_chain import OwnerPin
from visget.format.strictjson import Reader
from visget.registry.trust import Pin


class PinStore:
    """The pins of one store, in its directory trust/."""

    def __init__(self, directory: Path) -> None:
        self._root = directory.parent
        self._path = directory / "pins.json"

    def get(self, registry: str, name: str) -> Pin | None:
        """Return the pin of `name` in the registry with that identity, or None.

        Raises:
            TrustError: the pins are damaged, and so are their copies.
        """
        return _pin(_registries(self._read()).get(registry, {}).get(name))

    def all(self) -> dict[str, dict[str, Pin]]:
        """Return every pin: registry, name, pin.

        Raises:
            TrustError: the pins are damaged, and so are their copies.
        """
        return {
            registry: {name: pin for name, value in sorted(names.items()) if (pin := _pin(value)) is not None}
            for registry, names in sorted(_registries(self._read()).items())
        }

    def remember(self, registry: str, name: str, pin: Pin, *, seen: Pin | None) -> None:
        """Pin `name`, in place of the pin `seen`, which the decision was made with.

        Raises:
            TrustError: the pins are damaged, and so are their copies.
            CacheError: somebody else pinned the name meanwhile, or the file cannot be written; the old pins stay.
            ResourceError: the disk is full or fails.
        """
        self._change(registry, name, pin, seen)

    def forget(self, registry: str, name: str) -> Pin | None:
        """Drop the pin of `name` and return it; None when there was none.

        Raises:
            TrustError, CacheError, ResourceError: as remember().
        """
        pin = self.get(registry, name)
        if pin is not None:
            self._change(registry, name, None, pin)
        return pin

    def _change(self, registry: str, name: str, pin: Pin | None, seen: Pin | None) -> None:
        lock = self._root / "locks" / "pins"
        guard_directory(self._path.parent)
        guard_lock(lock)
        with locked(lock):
            content = self._read()
            registries = _registries(content)
            names: dict[str, Any] = registries.setdefault(registry, {})
            found = _pin(names.get(name))
            if found == pin:
                return
            if found != seen:
                raise CacheError(
                    f"another visget process changed what is trusted about {name} at the same moment",
                    where=str(self._path), hint="run the same command again; it will see the new pin",
                )  # fmt: skip
            if pin is None:
                del names[name]
            else:
                _check_not_lowered(name, pin, found)
                names[name] = _as_object(pin)
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


def _registries(content: Content) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = content.body.get("registries", {})
    return found


def _check_not_lowered(name: str, pin: Pin, found: Pin | None) -> None:
    before, after = (found.record if found else None), pin.record
    if before is None:
        return
    if after is None or after.seq < before.seq or (after.seq == before.seq and after.sha256 != before.sha256):
        # No caller asks for this; it is the last line of defence, and cheap.
        raise TrustError(
            f"owner record {before.seq} of {name} was accepted before, and a pin is never lowered or exchanged",
            where=name,
            hint=f"to begin anew: visget trust forget {name}",
        )


def _as_object(pin: Pin) -> dict[str, Any]:
    return {
        "keys": [key.id for key in pin.keys],
        "seq": pin.record.seq if pin.record else None,
        "sha256": pin.record.sha256 if pin.record else None,
        "how": pin.how,
    }


def _pin(value: object) -> Pin | None:
    """Return the pin that a document holds; a bare list of keys is what early versions wrote.

    Raises:
        TrustError: it holds something else.
    """
    if value is None:
        return None
    if isinstance(value, list):
        value = {"keys": value, "seq": None, "sha256": None, "how": "first use"}
    try:
        reader = Reader(value, "pin")
        keys = tuple(map(parse_key_id, reader.lines("keys", 64)))
        how = reader.choice("how", ("first use", "named", "accepted"))
        seq, digest = reader.nullable_int("seq", 1), reader.nullable_line("sha256", 64)
        if not keys or (seq is None) != (digest is None):
            raise reader.fail(None, "is incomplete")
        record = None if seq is None or digest is None else OwnerPin(seq=seq, sha256=parse_digest(digest))
    except (FormatError, ValueError) as error:
        raise TrustError(f"a pin is malformed: {error}", hint="restore trust/pins.json from a backup") from error
    return Pin(keys=keys, record=record, how=how)  # type: ignore[arg-type]  # choice() checked the word
