"""Snappy (C++ inside) against the Python package cramjam and the distribution's build, on every machine."""

from __future__ import annotations

import pytest
from e2ekit import noise, prose
from machines import Machine

RECIPE = "snappy"
DISTRIBUTION = ("libsnappy.so.1",)
OK, INVALID, TOO_SMALL = 0, 1, 2
INPUTS = {
    "empty": b"", "one byte": b"x", "zeros": bytes(100_000), "noise": noise(70_000, 1), "prose": prose(200_000, 2),
    "ramp": bytes(range(256)) * 400,
}  # fmt: skip


def compress(machine: Machine, data: bytes) -> bytes:
    room = machine.snappy_max_compressed_length(len(data))
    out, size = machine.buffer(max(room, 1)), machine.buffer(8)
    size.write(room.to_bytes(8, "little"))
    assert machine.snappy_compress(data, len(data), out, size) == OK
    return out.read(size.u64())


def uncompress(machine: Machine, packed: bytes, room: int | None = None) -> tuple[int, bytes]:
    size = machine.buffer(8)
    if room is None:
        assert machine.snappy_uncompressed_length(packed, len(packed), size) == OK
        room = size.u64()
    out = machine.buffer(max(room, 1))
    size.write(room.to_bytes(8, "little"))
    status = machine.snappy_uncompress(packed, len(packed), out, size)
    return status, out.read(size.u64()) if status == OK else b""


@pytest.mark.parametrize("name", INPUTS)
def test_what_is_made_can_be_read(machine: Machine, name: str) -> None:
    cramjam = pytest.importorskip("cramjam")
    data = INPUTS[name]
    packed = compress(machine, data)
    assert bytes(cramjam.snappy.decompress_raw(packed)) == data
    assert uncompress(machine, packed) == (OK, data)
    assert uncompress(machine, bytes(cramjam.snappy.compress_raw(data))) == (OK, data)


@pytest.mark.parametrize("name", INPUTS)
def test_the_same_bytes_as_the_distribution(machine: Machine, theirs: Machine, name: str) -> None:
    data = INPUTS[name]
    packed = compress(machine, data)
    assert packed == compress(theirs, data)
    assert uncompress(machine, packed) == (OK, data)


def test_damaged_input_is_told(machine: Machine, theirs: Machine) -> None:
    packed = compress(theirs, INPUTS["prose"][:3000])
    assert uncompress(machine, packed, 2999)[0] == TOO_SMALL
    assert machine.snappy_validate_compressed_buffer(packed, len(packed)) == OK
    for at in range(0, len(packed), 97):
        for damaged in (packed[:at], packed[:at] + bytes([packed[at] ^ 0x5A]) + packed[at + 1 :]):
            expected = theirs.snappy_validate_compressed_buffer(damaged, len(damaged))
            assert machine.snappy_validate_compressed_buffer(damaged, len(damaged)) == expected, at
            if expected == INVALID and len(damaged) < len(packed):
                assert uncompress(machine, damaged, 3000)[0] == INVALID, at
