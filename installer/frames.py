"""How a parent and its child process talk: frames of a JSON object and bytes.

A frame is the length of the JSON text (u32, little-endian), the JSON text, and then, when the object has a member
``parts``, that many bytes for each of its lengths. Invariant: reading never trusts a length beyond the limit that
the caller gives. Written down in docs/spec/worker.md.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HEADER_LIMIT = 8 << 20
"""The longest JSON text of a frame."""

_LENGTH = struct.Struct("<I")


class FrameError(ValueError):
    """Bytes are not a frame; the message says what is wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message."""

    head: dict[str, Any]
    parts: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A part that is made while it is sent, so that nobody has to hold it as a whole."""

    size: int
    """How many bytes it has."""
    chunks: Iterable[bytes]
    """The bytes; what goes wrong while they are made ends the sending."""

    def __len__(self) -> int:
        return self.size


Part = bytes | Flow
"""A part of a frame that is written."""


def encode(head: Mapping[str, object], parts: Sequence[Part] = ()) -> bytes:
    """Return the bytes of one frame."""
    return b"".join(encoding(head, parts))


def encoding(head: Mapping[str, object], parts: Sequence[Part] = ()) -> Iterator[bytes]:
    """Yield the bytes of one frame, piece by piece."""
    obj = dict(head)
    if parts:
        obj["parts"] = [len(part) for part in parts]
    text = json.dumps(obj, separators=(",", ":"), sort_keys=True).encode("ascii")
    yield _LENGTH.pack(len(text)) + text
    for part in parts:
        if isinstance(part, bytes):
            yield part
        else:
            yield from part.chunks


def decode(data: memoryview, limit: int) -> tuple[Frame, int] | None:
    """Return the first frame in `data` and its length, or None when it is not complete yet.

    Raises:
        FrameError: `data` cannot be the beginning of a frame of at most `limit` bytes.
    """
    if len(data) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(data)
    if length > min(limit, HEADER_LIMIT):
        raise FrameError(f"a frame announces {length} bytes of JSON")
    end = _LENGTH.size + length
    if len(data) < end:
        return None
    try:
        head = json.loads(bytes(data[_LENGTH.size : end]))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame holds no JSON: {error}") from None
    if not isinstance(head, dict):
        raise FrameError("a frame holds JSON that is not an object")
    sizes = head.pop("parts", [])
    if not isinstance(sizes, list) or not all(type(size) is int and 0 <= size <= limit for size in sizes):
        raise FrameError("a frame announces parts of impossible sizes")
    if sum(sizes) > limit:
        raise FrameError(f"a frame announces {sum(sizes)} bytes, over the limit of {limit}")
    if len(data) < end + sum(sizes):
        return None
    parts = []
    for size in sizes:
        parts.append(bytes(data[end : end + size]))
        end += size
    return Frame(head=head, parts=tuple(parts)), end


def read_frame(descriptor: int) -> Frame:
    """Read one frame to the end of the stream: the child's side, where the parent is trusted.

    Raises:
        FrameError: the stream ends early or is not a frame.
    """
    chunks = []
    while chunk := os.read(descriptor, 1 << 20):
        chunks.append(chunk)
    data = b"".join(chunks)
    found = decode(memoryview(data), len(data))
    if found is None:
        raise FrameError("the request is incomplete")
    return found[0]


def sender(descriptor: int) -> Callable[..., None]:
    """Return a function that writes one frame to `descriptor`."""

    def send(head: Mapping[str, object], parts: Sequence[bytes] = ()) -> None:
        view = memoryview(encode(head, parts))
        while view:
            view = view[os.write(descriptor, view) :]

    return send
