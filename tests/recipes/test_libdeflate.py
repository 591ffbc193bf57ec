"""libdeflate against Python's zlib and the distribution's build, on every machine."""

from __future__ import annotations

import gzip
import zlib

import pytest
from e2ekit import noise, prose
from machines import Machine

RECIPE = "libdeflate"
DISTRIBUTION = ("libdeflate.so.0",)
INPUTS = {
    "empty": b"", "one byte": b"\xff", "zeros": bytes(300_000), "noise": noise(70_001, 1), "prose": prose(150_000, 2),
    "mixed": prose(50_000, 3) + noise(5000, 4) + bytes(range(256)) * 30,
}  # fmt: skip
KINDS = {"deflate": -15, "zlib": 15, "gzip": 31}
LEVELS = [0, 1, 2, 4, 6, 8, 9, 10, 12]


def compress(machine: Machine, data: bytes, kind: str, level: int) -> bytes:
    compressor = machine.libdeflate_alloc_compressor(level)
    assert compressor
    room = getattr(machine, f"libdeflate_{kind}_compress_bound")(compressor, len(data))
    out = machine.buffer(room)
    size = getattr(machine, f"libdeflate_{kind}_compress")(compressor, data, len(data), out, room)
    assert 0 < size <= room
    packed = out.read(size)
    machine.libdeflate_free_compressor(compressor)
    machine.free(out.address)
    return packed


def decompress(machine: Machine, packed: bytes, kind: str, room: int) -> tuple[int, bytes]:
    decompressor = machine.libdeflate_alloc_decompressor()
    out, size = machine.buffer(room), machine.buffer(8)
    code = getattr(machine, f"libdeflate_{kind}_decompress")(decompressor, packed, len(packed), out, room, size)
    data = out.read(size.u64()) if code == 0 else b""
    machine.libdeflate_free_decompressor(decompressor)
    machine.free(out.address)
    return code, data


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_both_directions(machine: Machine, name: str, kind: str) -> None:
    data = INPUTS[name]
    for level in LEVELS:
        packed = compress(machine, data, kind, level)
        assert zlib.decompress(packed, KINDS[kind]) == data
        compressor = zlib.compressobj(min(level, 9), zlib.DEFLATED, KINDS[kind])
        theirs = compressor.compress(data) + compressor.flush()
        assert decompress(machine, theirs, kind, len(data)) == (machine.LIBDEFLATE_SUCCESS, data)


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_bytes_as_the_distribution(machine: Machine, theirs: Machine, level: int) -> None:
    for data in INPUTS.values():
        assert compress(machine, data, "deflate", level) == compress(theirs, data, "deflate", level)


def test_checksums(machine: Machine) -> None:
    for data in INPUTS.values():
        for start, end in ((0, len(data)), (1, len(data) // 2), (3, len(data))):
            part = data[start:end]
            assert machine.libdeflate_crc32(17, part, len(part)) == zlib.crc32(part, 17)
            assert machine.libdeflate_adler32(1, part, len(part)) == zlib.adler32(part)


def test_damage_is_noticed(machine: Machine) -> None:
    data = INPUTS["mixed"]
    packed = gzip.compress(data)
    assert decompress(machine, packed, "gzip", len(data) - 1)[0] == machine.LIBDEFLATE_INSUFFICIENT_SPACE
    for place in range(20, len(packed) - 4, len(packed) // 50):
        broken = bytearray(packed)
        broken[place] ^= 0x10
        assert decompress(machine, bytes(broken), "gzip", len(data))[0] != machine.LIBDEFLATE_SUCCESS, place
    for size in range(0, len(packed), 997):
        assert decompress(machine, packed[:size], "gzip", len(data))[0] == machine.LIBDEFLATE_BAD_DATA


def test_more_than_one_member(machine: Machine) -> None:
    both = gzip.compress(b"first") + gzip.compress(b"second")
    decompressor = machine.libdeflate_alloc_decompressor()
    out, read, made = machine.buffer(16), machine.buffer(8), machine.buffer(8)
    source = machine.buffer(both)
    code = machine.libdeflate_gzip_decompress_ex(decompressor, source, len(both), out, 16, read, made)
    assert (code, out.read(made.u64())) == (0, b"first")
    rest = source.address + read.u64()
    code = machine.libdeflate_gzip_decompress_ex(decompressor, rest, len(both) - read.u64(), out, 16, None, made)
    assert (code, out.read(made.u64())) == (0, b"second")
