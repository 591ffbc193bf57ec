"""C-Blosc, which needs the packages lz4 and zstd and starts threads, against the distribution's build."""

from __future__ import annotations

import struct

import pytest
from e2ekit import noise, prose
from machines import Machine

RECIPE = "c-blosc"
DISTRIBUTION = ("libblosc.so.1",)
INPUTS = {
    "numbers": struct.pack("<40000d", *(n * 0.25 for n in range(40_000))),
    "prose": prose(100_000, 1),
    "noise": noise(50_000, 2),
    "small": b"too small to compress",
    "zeros": bytes(200_000),
}
COMPRESSORS = [b"blosclz", b"lz4", b"lz4hc", b"zstd"]


@pytest.fixture(autouse=True)
def started(machine: Machine) -> None:
    machine.blosc_init()


def compress(m: Machine, data: bytes, name: bytes, level: int, shuffle: int, size: int, threads: int) -> bytes:
    out = m.buffer(len(data) + m.BLOSC_MAX_OVERHEAD)
    made = m.blosc_compress_ctx(level, shuffle, size, len(data), data, out, out.size, name, 0, threads)
    assert made > 0
    packed = out.read(made)
    m.free(out.address)
    return packed


def decompress(m: Machine, packed: bytes, size: int, threads: int) -> bytes:
    out = m.buffer(size)
    assert m.blosc_decompress_ctx(packed, out, size, threads) == size
    data = out.read()
    m.free(out.address)
    return data


@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize("threads", [1, 4])
def test_both_directions(machine: Machine, theirs: Machine, name: bytes, threads: int) -> None:
    theirs.blosc_init()
    for data in INPUTS.values():
        for level, shuffle, size in ((1, 1, 8), (5, 1, 4), (9, 2, 8), (5, 0, 1)):
            packed = compress(machine, data, name, level, shuffle, size, threads)
            assert decompress(machine, packed, len(data), threads) == data
            assert decompress(theirs, packed, len(data), 1) == data
            assert decompress(machine, compress(theirs, data, name, level, shuffle, size, 1), len(data), 1) == data


def test_global_threads(machine: Machine) -> None:
    """The pool of threads that outlives a call."""
    data = INPUTS["numbers"]
    machine.blosc_set_nthreads(3)
    assert machine.blosc_get_nthreads() == 3
    for name in COMPRESSORS:
        assert machine.blosc_set_compressor(name) >= 0
        out = machine.buffer(len(data) + 16)
        size = machine.blosc_compress(5, 1, 8, len(data), data, out, out.size)
        assert 0 < size < len(data) // 4
        back = machine.buffer(len(data))
        assert machine.blosc_decompress(out, back, len(data)) == len(data)
        assert back.read() == data
        part = machine.buffer(80)
        assert machine.blosc_getitem(out, 1000, 10, part) == 80
        assert part.read() == data[8000:8080]
    assert machine.blosc_set_compressor(b"none") == -1
    machine.blosc_destroy()
    machine.blosc_init()


def test_damage_is_noticed(machine: Machine) -> None:
    data = INPUTS["prose"]
    packed = compress(machine, data, b"lz4", 5, 1, 1, 1)
    out = machine.buffer(len(data))
    assert machine.blosc_decompress_ctx(packed, out, len(data) - 1, 1) < 0
    for place in range(16, 400, 7):
        broken = bytearray(packed)
        broken[place] ^= 0x80
        size = machine.blosc_decompress_ctx(bytes(broken), out, len(data), 1)
        assert size <= 0 or out.read(size) != data
    sizes = [machine.buffer(8) for _ in range(3)]
    machine.blosc_cbuffer_sizes(packed, *sizes)
    assert (sizes[0].u64(), sizes[1].u64()) == (len(data), len(packed))
    assert machine.blosc_cbuffer_validate(packed, len(packed), sizes[0]) == 0
