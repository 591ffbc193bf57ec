"""Brotli against the Python package brotli and the distribution's build, on every machine."""

from __future__ import annotations

import pytest
from e2ekit import noise, prose
from machines import Machine

RECIPE = "brotli"
DISTRIBUTION = ("libbrotlicommon.so.1", "libbrotlidec.so.1", "libbrotlienc.so.1")
INPUTS = {
    "empty": b"", "one byte": b"x", "zeros": bytes(100_000), "noise": noise(40_000, 1), "prose": prose(60_000, 2),
    "web": b"<html><body><p>The quick brown fox, and some <a href='https://example.org'>link</a></p></body></html>" * 9,
}  # fmt: skip
QUALITIES = [0, 1, 2, 4, 5, 7, 9, 10, 11]


def compress(machine: Machine, data: bytes, quality: int, window: int = 22) -> bytes:
    room = machine.BrotliEncoderMaxCompressedSize(len(data)) or 1000
    out, size = machine.buffer(room), machine.buffer(room.to_bytes(8, "little"))
    assert machine.BrotliEncoderCompress(quality, window, machine.BROTLI_MODE_GENERIC, len(data), data, size, out)
    packed = out.read(size.u64())
    machine.free(out.address)
    return packed


def decompress(machine: Machine, packed: bytes, room: int) -> tuple[int, bytes]:
    out, size = machine.buffer(room), machine.buffer(room.to_bytes(8, "little"))
    code = machine.BrotliDecoderDecompress(len(packed), packed, size, out)
    data = out.read(size.u64())
    machine.free(out.address)
    return code, data


@pytest.mark.parametrize("quality", QUALITIES)
def test_both_directions(machine: Machine, quality: int) -> None:
    brotli = pytest.importorskip("brotli")
    for data in INPUTS.values():
        assert brotli.decompress(compress(machine, data, quality)) == data
        theirs = brotli.compress(data, quality=quality)
        assert decompress(machine, theirs, len(data)) == (machine.BROTLI_DECODER_RESULT_SUCCESS, data)


@pytest.mark.parametrize("quality", QUALITIES)
def test_the_same_bytes_as_the_distribution(machine: Machine, quality: int, workshop) -> None:  # type: ignore[no-untyped-def]
    theirs = workshop.distribution(RECIPE, "libbrotlicommon.so.1", "libbrotlienc.so.1")
    assert theirs.BrotliEncoderVersion() == machine.BrotliEncoderVersion() == 0x1000009
    for name, data in INPUTS.items():
        if quality < 10 or name != "prose" or machine.name == "x86-64":
            assert compress(machine, data, quality) == compress(theirs, data, quality), name


def test_streams(machine: Machine) -> None:
    brotli = pytest.importorskip("brotli")
    data = INPUTS["prose"]
    encoder = machine.BrotliEncoderCreateInstance(None, None, None)
    machine.BrotliEncoderSetParameter(encoder, machine.BROTLI_PARAM_QUALITY, 5)
    source, out = machine.buffer(data), machine.buffer(500)
    next_in, left, next_out, room = (machine.buffer(8) for _ in range(4))
    packed = b""
    for start in range(0, len(data), 7001):
        next_in.write((source.address + start).to_bytes(8, "little"))
        left.write(min(7001, len(data) - start).to_bytes(8, "little"))
        last = start + 7001 >= len(data)
        while True:
            next_out.write(out.address.to_bytes(8, "little"))
            room.write((500).to_bytes(8, "little"))
            action = machine.BROTLI_OPERATION_FINISH if last else machine.BROTLI_OPERATION_PROCESS
            assert machine.BrotliEncoderCompressStream(encoder, action, left, next_in, room, next_out, None)
            packed += out.read(500 - room.u64())
            if left.u64() == 0 and not machine.BrotliEncoderHasMoreOutput(encoder):
                break
    assert machine.BrotliEncoderIsFinished(encoder)
    machine.BrotliEncoderDestroyInstance(encoder)
    assert brotli.decompress(packed) == data
    assert decompress(machine, packed, len(data)) == (1, data)


def test_damage_is_noticed(machine: Machine) -> None:
    packed = compress(machine, INPUTS["prose"], 5)
    for place in range(0, len(packed), len(packed) // 30):
        broken = bytearray(packed)
        broken[place] ^= 0x40
        code, data = decompress(machine, bytes(broken), len(INPUTS["prose"]))
        assert code != 1 or data != INPUTS["prose"]
    assert decompress(machine, packed[:-5], len(INPUTS["prose"]))[0] == machine.BROTLI_DECODER_RESULT_ERROR
    decoder = machine.BrotliDecoderCreateInstance(None, None, None)
    bad = machine.buffer(b"\x91\xff\xff\xff\xff\xff\xff\xff")
    next_in, left = machine.buffer(bad.address.to_bytes(8, "little")), machine.buffer((8).to_bytes(8, "little"))
    out = machine.buffer(100)
    next_out, room = machine.buffer(out.address.to_bytes(8, "little")), machine.buffer((100).to_bytes(8, "little"))
    assert machine.BrotliDecoderDecompressStream(decoder, left, next_in, room, next_out, None) == 0
    code = machine.BrotliDecoderGetErrorCode(decoder)
    assert machine.text(machine.BrotliDecoderErrorString(code)) == b"WINDOW_BITS"
    machine.BrotliDecoderDestroyInstance(decoder)
