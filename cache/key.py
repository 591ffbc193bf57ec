"""The name of a native artifact: a digest over everything that shaped it.

An ActionKey is a list of labelled fields. Its digest is the SHA-256 of the fields in the order given, label and
value each preceded by its length, so that no two different lists can give the same bytes. Invariant: what is
not in the key must not influence the artifact. The encoding is docs/spec/store.md, section "Action keys".
"""

from __future__ import annotations

from typing import NamedTuple

from visget.digest import Digest, digest_bytes

_MAGIC = b"visget-key-1\n"


class ActionKey(NamedTuple):
    """A complete description of one compilation; immutable, built field by field with add()."""

    fields: tuple[tuple[str, bytes], ...] = ()
    """Label and value of each field, in the order in which they were added."""

    def add(self, label: str, value: str | bytes | int | bool) -> ActionKey:
        """Return a key with one more field; a label may be used once.

        Numbers and truth values are written as text (``1``, ``true``), so that they read well in a trace.
        """
        if any(label == known for known, _ in self.fields):
            raise ValueError(f"the field {label!r} is already part of the key")
        if isinstance(value, bool):
            value = "true" if value else "false"
        data = value if isinstance(value, bytes) else str(value).encode()
        return ActionKey((*self.fields, (label, data)))

    def encode(self) -> bytes:
        """Return the bytes whose digest is the key."""
        parts = [_MAGIC]
        for label, value in self.fields:
            name = label.encode()
            parts += [len(name).to_bytes(8, "little"), name, len(value).to_bytes(8, "little"), value]
        return b"".join(parts)

    @property
    def digest(self) -> Digest:
        """The key itself."""
        return digest_bytes(self.encode())

    @property
    def trace(self) -> tuple[str, ...]:
        """One line for each field, for receipts and for finding out why two keys differ.

        Long or binary values are shown by their digest.
        """
        return tuple(f"{label} = {_shown(value)}" for label, value in self.fields)


def _shown(value: bytes) -> str:
    text = value.decode("ascii", "replace")
    if len(value) <= 2048 and text.isprintable() and "\ufffd" not in text:
        return text
    return f"sha256:{digest_bytes(value)} ({len(value)} bytes)"
