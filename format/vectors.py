"""Test vectors: calls that a freshly compiled library must answer as the author's did.

Invariant: a VectorSet that was parsed refers only to buffers and values that an earlier step of the same vector made,
and every number in it can be represented in its element type. The spec is docs/spec/vectors.md; what the bytes of a
buffer are and when an answer is right is in visget/format/elements.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from visget.digest import Digest

ElementType: TypeAlias = Literal["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Numbers made by a rule, so that a large buffer costs no space."""

    kind: Literal["ramp", "lcg"]
    """The rule: counting up, or a linear congruential generator; docs/spec/vectors.md, section "Patterns"."""
    count: int
    """How many elements."""
    seed: int
    """Where the rule begins."""


Elements: TypeAlias = tuple[int, ...] | tuple[str, ...] | Pattern
"""Integers, or texts of floats (for f32 and f64), or the rule that makes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntArg:
    """An integer passed by value; also a size or a flag."""

    value: int
    """The integer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatArg:
    """A float passed by value."""

    text: str
    """Its text, decimal or hexadecimal, or nan, inf, -inf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesArg:
    """A pointer to bytes that the function only reads."""

    data: bytes
    """The bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextArg:
    """A pointer to UTF-8 text with a NUL byte behind it."""

    text: str
    """The text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NullArg:
    """A null pointer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VarArg:
    """A value that an earlier step saved."""

    name: str
    """The name it was saved under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterValues:
    """What the first elements of a buffer must be after the call."""

    values: Elements
    """The elements; a buffer may have more."""
    rel: str = "0"
    """The relative tolerance for floats."""
    abs: str = "0"
    """The absolute tolerance for floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterBytes:
    """What the first bytes of a buffer must be after the call."""

    data: bytes
    """The bytes; a buffer may have more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterDigest:
    """What the digest of the whole buffer must be after the call."""

    sha256: Digest
    """The digest."""


After: TypeAlias = AfterValues | AfterBytes | AfterDigest


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayArg:
    """A pointer to a buffer that holds numbers when the function is called."""

    type: ElementType
    """The type of its elements."""
    values: Elements
    """What it holds before the call."""
    after: After | None = None
    """What it must hold after the call."""
    id: str | None = None
    """A name by which later steps of the same vector can pass it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutArg:
    """A pointer to a buffer of zeros that the function fills."""

    type: ElementType
    """The type of its elements."""
    length: int
    """How many elements."""
    after: After | None = None
    """What it must hold after the call."""
    id: str | None = None
    """A name by which later steps of the same vector can pass it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferArg:
    """A pointer to a buffer that an earlier step made, with what is in it now."""

    name: str
    """The id of the buffer."""
    after: After | None = None
    """What it must hold after the call."""


Arg: TypeAlias = IntArg | FloatArg | BytesArg | TextArg | NullArg | VarArg | BufferArg | ArrayArg | OutArg


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectInt:
    """The function must return this integer."""

    value: int
    """The integer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectFloat:
    """The function must return this float, within a tolerance."""

    text: str
    """Its text."""
    rel: str = "0"
    """The relative tolerance."""
    abs: str = "0"
    """The absolute tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectText:
    """The function must return a pointer to this text."""

    text: str
    """The text, without its NUL byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectNonnull:
    """The function must return a pointer that is not null."""


Expect: TypeAlias = ExpectInt | ExpectFloat | ExpectText | ExpectNonnull


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call."""

    call: str
    """The exported function."""
    args: tuple[Arg, ...] = ()
    """Its arguments, in order."""
    returns: Expect | None = None
    """What it must return; None when that does not matter."""
    save: str | None = None
    """A name under which later steps of the same vector can pass the returned pointer or integer."""
    nonnull: bool = False
    """Whether a null (or zero) result fails; useful together with `save`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """Calls made one after another, with buffers and saved values of their own."""

    name: str
    """What it tests, for messages."""
    steps: tuple[Step, ...]
    """The calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSet:
    """All test vectors of a package."""

    vectors: tuple[Vector, ...] = ()
    """The vectors; each stands on its own."""

    @classmethod
    def parse(cls, data: bytes | memoryview) -> VectorSet:
        """Parse the section "vectors".

        Raises:
            FormatError: it breaks a rule of docs/spec/vectors.md.
        """
        from visget.format.vectorjson import parse_vectors

        return parse_vectors(data)

    @classmethod
    def from_toml(cls, tables: object, *, key: str = "vector") -> VectorSet:
        """Convert the [[vector]] (or [[bench]]) tables of visget.toml, in which floats may be written as such.

        Raises:
            UsageError: a table breaks a rule; the message names the vector, the step and the key.
        """
        from visget.format.vectorjson import vectors_from_toml

        return vectors_from_toml(tables, key=key)

    def encode(self) -> bytes:
        """Return the section "vectors" for this set."""
        from visget.format.vectorjson import encode_vectors

        return encode_vectors(self)


