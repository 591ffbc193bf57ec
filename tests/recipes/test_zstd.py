"""Zstandard against the Python package zstandard and the distribution's build, on every machine."""

from __future__ import annotations

import pytest
import zstandard
from e2ekit import noise, prose
from machines import Machine

RECIPE = "zstd"
DISTRIBUTION = ("libzstd.so.1",)
INPUTS = {
    "empty": b"",
    "one byte": b"\xff",
    "zeros": bytes(300_000),
    "noise": noise(70_000, 1),
    "prose": prose(200_000, 2),
    "mixed": prose(140_000, 3) + noise(5000, 4) + bytes(5000) + prose(20_000, 3),
}
LEVELS = [-5, 1, 3, 6, 9, 13, 19, 22]


def compress(machine: Machine, data: bytes, level: int) -> bytes:
    room = machine.ZSTD_compressBound(len(data))
    out = machine.buffer(room)
    size = machine.ZSTD_compress(out, room, data, len(data), level)
    assert not machine.ZSTD_isError(size), machine.text(machine.ZSTD_getErrorName(size))
    packed = out.read(size)
    machine.free(out.address)
    return packed


def decompress(machine: Machine, packed: bytes, room: int) -> bytes:
    out = machine.buffer(room)
    size = machine.ZSTD_decompress(out, room, packed, len(packed))
    assert not machine.ZSTD_isError(size), machine.text(machine.ZSTD_getErrorName(size))
    data = out.read(size)
    machine.free(out.address)
    return data


@pytest.mark.parametrize("name", INPUTS)
def test_both_directions(machine: Machine, name: str) -> None:
    data = INPUTS[name]
    for level in LEVELS:
        packed = compress(machine, data, level)
        assert zstandard.ZstdDecompressor().decompress(packed, max_output_size=len(data) + 1) == data
        theirs = zstandard.ZstdCompressor(level=level, write_checksum=True).compress(data)
        assert decompress(machine, theirs, len(data)) == data


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_bytes_as_the_distribution(machine: Machine, theirs: Machine, level: int) -> None:
    assert machine.text(machine.ZSTD_versionString()) == b"1.5.4"
    if theirs.ZSTD_versionNumber() != machine.ZSTD_versionNumber():
        pytest.skip("the distribution has another version")
    for data in INPUTS.values():
        assert compress(machine, data, level) == compress(theirs, data, level)


def test_streams(machine: Machine) -> None:
    data = INPUTS["mixed"]
    context = machine.ZSTD_createCCtx()
    machine.ZSTD_CCtx_setParameter(context, machine.ZSTD_c_checksumFlag, 1)
    machine.ZSTD_CCtx_setParameter(context, machine.ZSTD_c_enableLongDistanceMatching, 1)
    packed = bytearray()
    out = machine.buffer(997)
    source = machine.buffer(data)
    given = machine.struct("ZSTD_inBuffer", src=source, size=0)
    for end in [*range(0, len(data), 33_331), len(data)]:
        given["size"] = end
        last = end == len(data)
        while True:
            made = machine.struct("ZSTD_outBuffer", dst=out, size=997)
            left = machine.ZSTD_compressStream2(context, made, given, machine.ZSTD_e_end if last else 0)
            assert not machine.ZSTD_isError(left)
            packed += out.read(made["pos"])
            if (left == 0) if last else (given["pos"] == end):
                break
    assert zstandard.ZstdDecompressor().decompressobj().decompress(bytes(packed)) == data
    machine.ZSTD_freeCCtx(context)
    stream = machine.ZSTD_createDStream()
    found = bytearray()
    given = machine.struct("ZSTD_inBuffer", src=machine.buffer(bytes(packed)), size=len(packed))
    left = 1
    while left:
        made = machine.struct("ZSTD_outBuffer", dst=out, size=991)
        left = machine.ZSTD_decompressStream(stream, made, given)
        assert not machine.ZSTD_isError(left)
        found += out.read(made["pos"])
    assert bytes(found) == data
    machine.ZSTD_freeDStream(stream)


def test_damage_is_noticed(machine: Machine) -> None:
    packed = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(INPUTS["prose"])
    room = machine.buffer(len(INPUTS["prose"]))
    for place in range(0, len(packed), len(packed) // 40):
        broken = bytearray(packed)
        broken[place] ^= 0x55
        size = machine.ZSTD_decompress(room, room.size, bytes(broken), len(broken))
        assert machine.ZSTD_isError(size), place
    size = machine.ZSTD_decompress(room, room.size, packed[:-9], len(packed) - 9)
    assert machine.text(machine.ZSTD_getErrorName(size)) == b"Src size is incorrect"
    size = machine.ZSTD_decompress(room, 100, packed, len(packed))
    assert machine.ZSTD_getErrorCode(size) == machine.ZSTD_error_dstSize_tooSmall


def test_dictionaries(machine: Machine) -> None:
    samples = [prose(400, seed // 4)[seed % 4 :] for seed in range(800)]
    sizes = machine.buffer(b"".join(len(sample).to_bytes(8, "little") for sample in samples))
    room = machine.buffer(10_000)
    size = machine.ZDICT_trainFromBuffer(room, room.size, b"".join(samples), sizes, len(samples))
    assert not machine.ZDICT_isError(size), machine.text(machine.ZDICT_getErrorName(size))
    trained = room.read(size)
    theirs = zstandard.ZstdCompressionDict(trained)
    assert theirs.dict_id() == machine.ZDICT_getDictID(trained, size) != 0
    context, out = machine.ZSTD_createCCtx(), machine.buffer(1000)
    for sample in samples[:40]:
        size = machine.ZSTD_compress_usingDict(context, out, 1000, sample, len(sample), trained, len(trained), 5)
        packed = out.read(size)
        assert zstandard.ZstdDecompressor(dict_data=theirs).decompress(packed, max_output_size=1000) == sample
    machine.ZSTD_freeCCtx(context)
