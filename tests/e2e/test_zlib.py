"""zlib, built from its sources and installed for this machine, against the standard library's zlib, both ways."""

from __future__ import annotations

import ctypes
import random
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from e2ekit import Shelf, noise, pieces, prose

from visget.runtime.library import Library

pytestmark = pytest.mark.network

# Around the window (32 KiB), a stored block (65535) and the checksums' words; the last two exceed 4 MiB.
INPUTS = {
    "empty": b"",
    "one byte": b"\x00",
    "three bytes": b"abc",
    "a match of the longest length": b"x" * 259,
    **{f"noise {size}": noise(size, size) for size in (7, 8, 9, 255, 32_767, 32_768, 32_769, 65_535, 65_536)},
    "zeros": bytes(100_000),
    "prose": prose(200_001, 5),
    "large prose": prose(4_300_003, 6),
    "large noise": noise((4 << 20) + 1, 7),
}
SMALL = [name for name in INPUTS if not name.startswith("large")]
LARGE = [name for name in INPUTS if name.startswith("large")]
SAME_UPSTREAM = zlib.ZLIB_RUNTIME_VERSION == "1.2.13"
RAW, ZLIB, GZIP = -15, 15, 31


@pytest.fixture(scope="module")
def lib(shelf: Shelf) -> Library:
    return shelf.load("zlib")


def compress(lib: Library, data: bytes, level: int) -> bytes:
    room = lib.compressBound(len(data))
    packed, size = bytearray(room), ctypes.c_ulong(room)
    assert lib.compress2(packed, size, data, len(data), level) == lib.Z_OK
    return bytes(packed[: size.value])


def uncompress(lib: Library, packed: bytes, length: int) -> bytes:
    out, size = bytearray(max(length, 1)), ctypes.c_ulong(max(length, 1))
    assert lib.uncompress(out, size, packed, len(packed)) == lib.Z_OK
    return bytes(out[: size.value])


class Stream:
    """A z_stream; what comes out is taken in windows of `room` bytes, as small as one."""

    def __init__(self, lib: Library, verb: str, room: int) -> None:
        self.lib, self.verb = lib, verb
        self.struct = lib.z_stream()
        self._room = (ctypes.c_ubyte * room)()

    def start(self, *settings: int) -> None:
        init = self.lib[f"{self.verb}Init2_"]
        assert init(self.struct, *settings, self.lib.ZLIB_VERSION, ctypes.sizeof(self.struct)) == self.lib.Z_OK

    def feed(self, data: bytes, flush: int) -> tuple[bytes, int]:
        """Return what came out and the last status."""
        held = (ctypes.c_ubyte * max(len(data), 1)).from_buffer_copy(data or b"\0")
        stream, found, step = self.struct, [], self.lib[self.verb]
        stream.next_in, stream.avail_in = ctypes.cast(held, type(stream.next_in)), len(data)
        while True:
            stream.next_out = ctypes.cast(self._room, type(stream.next_out))
            stream.avail_out = len(self._room)
            status = step(stream, flush)
            found.append(bytes(self._room[: len(self._room) - stream.avail_out]))
            if status != self.lib.Z_OK or stream.avail_out:
                return b"".join(found), status

    def run(self, parts: Iterable[bytes], flushes: Iterable[int]) -> bytes:
        found = [self.feed(part, flush)[0] for part, flush in zip(parts, flushes, strict=False)]
        if self.verb == "deflate":
            found.append(self.feed(b"", self.lib.Z_FINISH)[0])
        return b"".join(found)

    def end(self) -> int:
        return int(self.lib[f"{self.verb}End"](self.struct))


def test_version(lib: Library) -> None:
    assert lib.zlibVersion() == lib.ZLIB_VERSION == b"1.2.13"
    flags = lib.zlibCompileFlags()
    # uInt, uLong, voidpf and z_off_t have 4, 8, 8 and 8 bytes on every target of VIS-1.
    assert [flags >> shift & 3 for shift in (0, 2, 4, 6)] == [1, 2, 2, 2]
    assert lib.receipt["answers"] == "passed"


@pytest.mark.parametrize("name", INPUTS)
def test_checksums(lib: Library, name: str) -> None:
    data = INPUTS[name]
    assert lib.crc32(0, data, len(data)) == lib.crc32_z(0, data, len(data)) == zlib.crc32(data)
    assert lib.adler32(1, data, len(data)) == lib.adler32_z(1, data, len(data)) == zlib.adler32(data)
    crc, adler = 0, 1
    for part in pieces(data, 3, 10_000):
        crc, adler = lib.crc32(crc, part, len(part)), lib.adler32(adler, part, len(part))
    assert (crc, adler) == (zlib.crc32(data), zlib.adler32(data))
    cut = random.Random(name).randint(0, len(data))
    head, tail = data[:cut], data[cut:]
    assert lib.crc32_combine(zlib.crc32(head), zlib.crc32(tail), len(tail)) == zlib.crc32(data)
    assert lib.adler32_combine(zlib.adler32(head), zlib.adler32(tail), len(tail)) == zlib.adler32(data)


def test_checksums_of_odd_places(lib: Library) -> None:
    data = np.frombuffer(noise(5000, 1), np.uint8)
    for offset in range(9):
        for size in (0, 1, 7, 8, 15, 16, 17, 40, 1000, 4100):
            part = data[offset : offset + size]
            assert lib.crc32(9, part, size) == zlib.crc32(part, 9), (offset, size)
            assert lib.adler32(9, part, size) == zlib.adler32(part, 9), (offset, size)


@pytest.mark.parametrize("level", range(-1, 10))
def test_levels_in_both_directions(lib: Library, level: int) -> None:
    for name in SMALL:
        data = INPUTS[name]
        packed, theirs = compress(lib, data, level), zlib.compress(data, level)
        assert zlib.decompress(packed) == data, name
        assert uncompress(lib, theirs, len(data)) == data, name
        if SAME_UPSTREAM and level:  # at level 0 the size of the caller's buffer decides where a stored block ends
            assert packed == theirs, name


@pytest.mark.parametrize("name", LARGE)
def test_large_inputs_in_both_directions(lib: Library, name: str) -> None:
    data = INPUTS[name]
    for level in (0, 1, 6):
        assert zlib.decompress(compress(lib, data, level)) == data
        assert uncompress(lib, zlib.compress(data, level), len(data)) == data


@pytest.mark.parametrize("window", [RAW, ZLIB, GZIP, 9])
@pytest.mark.parametrize("room", [1, 100, 70_000])
def test_deflate_streams_are_read_by_the_standard_library(lib: Library, window: int, room: int) -> None:
    rng = random.Random(room)
    data = prose(30_000 if room == 1 else 300_000, 11)
    strategies = (lib.Z_DEFAULT_STRATEGY, lib.Z_FILTERED, lib.Z_HUFFMAN_ONLY, lib.Z_RLE, lib.Z_FIXED)
    flushes = (lib.Z_NO_FLUSH,) * 5
    if room > 6:  # in less room, zlib.h warns, the markers of a flush never end
        flushes += (lib.Z_PARTIAL_FLUSH, lib.Z_SYNC_FLUSH, lib.Z_FULL_FLUSH, lib.Z_BLOCK)
    for strategy in strategies:
        stream = Stream(lib, "deflate", room)
        stream.start(rng.randint(0, 9), lib.Z_DEFLATED, window, rng.randint(1, 9), strategy)
        parts = pieces(data, room, 20_000)
        packed = stream.run(parts, [rng.choice(flushes) for _ in parts])
        assert (stream.struct.total_in, stream.struct.total_out) == (len(data), len(packed))
        assert stream.end() == lib.Z_OK
        reader = zlib.decompressobj(window)
        assert reader.decompress(packed) + reader.flush() == data
        assert reader.eof
        assert reader.unused_data == b""


@pytest.mark.parametrize("window", [RAW, ZLIB, GZIP, 9])
@pytest.mark.parametrize("room", [1, 100, 70_000])
def test_streams_of_the_standard_library_are_inflated(lib: Library, window: int, room: int) -> None:
    data = prose(30_000 if room == 1 else 300_000, 12) + noise(1000, 1)
    for level in (0, 1, 9):
        writer = zlib.compressobj(level, zlib.DEFLATED, window, 8)
        packed = writer.compress(data) + writer.flush()
        stream = Stream(lib, "inflate", room)
        stream.start(window if window != 9 else 47)  # 47: whichever header it has
        parts = pieces(packed, level, 3000)
        assert stream.run(parts, [lib.Z_NO_FLUSH] * len(parts)) == data
        assert stream.struct.total_in == len(packed)
        if window in (ZLIB, 9):
            assert stream.struct.adler == zlib.adler32(data)
        assert stream.end() == lib.Z_OK


def test_level_and_strategy_change_in_the_middle(lib: Library) -> None:
    data = prose(100_000, 13)
    stream = Stream(lib, "deflate", 50)
    stream.start(1, lib.Z_DEFLATED, ZLIB, 8, lib.Z_DEFAULT_STRATEGY)
    packed = stream.feed(data[:50_000], lib.Z_SYNC_FLUSH)[0]
    assert lib.deflateParams(stream.struct, 9, lib.Z_FILTERED) in (lib.Z_OK, lib.Z_BUF_ERROR)
    packed += stream.feed(data[50_000:], lib.Z_FINISH)[0]
    assert zlib.decompress(packed) == data
    assert stream.end() == lib.Z_OK


def test_dictionaries_in_both_directions(lib: Library) -> None:
    words, data = prose(4000, 14), prose(4000, 14)[1000:3000] + b"end"
    stream = Stream(lib, "deflate", 500)
    stream.start(9, lib.Z_DEFLATED, ZLIB, 8, lib.Z_DEFAULT_STRATEGY)
    assert lib.deflateSetDictionary(stream.struct, words, len(words)) == lib.Z_OK
    packed = stream.feed(data, lib.Z_FINISH)[0]
    assert stream.end() == lib.Z_OK
    assert len(packed) < 100
    assert zlib.decompressobj(zdict=words).decompress(packed) == data

    writer = zlib.compressobj(9, zdict=words)
    theirs = writer.compress(data) + writer.flush()
    stream = Stream(lib, "inflate", 5000)
    stream.start(ZLIB)
    assert stream.feed(theirs, lib.Z_NO_FLUSH) == (b"", lib.Z_NEED_DICT)
    assert stream.struct.adler == zlib.adler32(words)
    assert lib.inflateSetDictionary(stream.struct, words, len(words)) == lib.Z_OK
    rest = ctypes.string_at(stream.struct.next_in, stream.struct.avail_in)
    assert stream.feed(rest, lib.Z_NO_FLUSH) == (data, lib.Z_STREAM_END)
    assert stream.end() == lib.Z_OK


def test_a_copied_stream_goes_on_by_itself(lib: Library) -> None:
    one, other = Stream(lib, "deflate", 9000), Stream(lib, "deflate", 9000)
    one.start(6, lib.Z_DEFLATED, RAW, 8, lib.Z_DEFAULT_STRATEGY)
    head = one.feed(b"head " * 50, lib.Z_NO_FLUSH)[0]
    assert lib.deflateCopy(other.struct, one.struct) == lib.Z_OK
    first, second = one.feed(b"first", lib.Z_FINISH)[0], other.feed(b"second", lib.Z_FINISH)[0]
    assert zlib.decompress(head + first, RAW) == b"head " * 50 + b"first"
    assert zlib.decompress(head + second, RAW) == b"head " * 50 + b"second"
    assert one.end() == other.end() == lib.Z_OK


def test_damage_is_found_where_the_standard_library_finds_it(lib: Library) -> None:
    data = prose(3000, 15)
    packed = zlib.compress(data)
    rng = random.Random(16)
    refused = 0
    for _ in range(300):
        damaged = bytearray(packed)
        damaged[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
        out, size = bytearray(len(data)), ctypes.c_ulong(len(data))
        status = lib.uncompress(out, size, bytes(damaged), len(damaged))
        try:
            theirs: bytes | None = zlib.decompress(bytes(damaged))
        except zlib.error:
            theirs = None
        assert (status == lib.Z_OK and bytes(out[: size.value]) == theirs) or (status != lib.Z_OK and theirs is None)
        refused += status != lib.Z_OK
    assert refused > 290
    stream = Stream(lib, "inflate", 100)
    stream.start(ZLIB)
    assert stream.feed(b"no zlib stream", lib.Z_NO_FLUSH)[1] == lib.Z_DATA_ERROR
    assert ctypes.string_at(stream.struct.msg) == b"incorrect header check"
    assert lib.zError(lib.Z_DATA_ERROR) == b"data error"
    assert stream.end() == lib.Z_OK


def test_too_little_room_is_an_error_and_nothing_is_written_behind_it(lib: Library) -> None:
    data = noise(1000, 17)
    packed, size = bytearray(b"\xee" * 600), ctypes.c_ulong(500)
    assert lib.compress2(packed, size, data, len(data), 6) == lib.Z_BUF_ERROR
    assert packed[500:] == b"\xee" * 100
    out, size = bytearray(b"\xee" * 1000), ctypes.c_ulong(900)
    assert lib.uncompress(out, size, zlib.compress(data), len(zlib.compress(data))) == lib.Z_BUF_ERROR
    assert out[900:] == b"\xee" * 100


def test_callbacks_into_python(lib: Library) -> None:
    """inflateBack() takes its input from one Python function and hands its output to another."""
    data = prose(100_000, 18)
    writer = zlib.compressobj(9, zlib.DEFLATED, RAW)
    packed = writer.compress(data) + writer.flush()
    held = [(ctypes.c_ubyte * len(part)).from_buffer_copy(part) for part in pieces(packed, 4, 2000) if part]
    waiting, found = list(held), []

    def give(_: Any, place: Any) -> int:
        if not waiting:
            return 0
        part = waiting.pop(0)
        place[0] = ctypes.cast(part, type(place[0]))
        return len(part)

    def take(_: Any, buffer: Any, length: int) -> int:
        found.append(ctypes.string_at(buffer, length))
        return 0

    window = bytearray(1 << 15)
    stream = lib.z_stream_s()
    size = ctypes.sizeof(stream)
    assert lib.inflateBackInit_(stream, 15, window, lib.ZLIB_VERSION, size) == lib.Z_OK
    assert lib.inflateBack(stream, give, None, take, None) == lib.Z_STREAM_END
    assert b"".join(found) == data
    assert lib.inflateBackEnd(stream) == lib.Z_OK

    def fail(*_: Any) -> int:
        raise ValueError("no more room")

    waiting[:] = held
    assert lib.inflateBackInit_(stream, 15, window, lib.ZLIB_VERSION, size) == lib.Z_OK
    with pytest.raises(ValueError, match="no more room"):
        lib.inflateBack(stream, give, None, fail, None)
    assert lib.inflateBackEnd(stream) == lib.Z_OK


def test_a_struct_of_another_size_is_refused_by_the_library_itself(lib: Library) -> None:
    stream = lib.z_stream_s()
    assert lib.inflateInit_(stream, lib.ZLIB_VERSION, ctypes.sizeof(stream) - 8) == lib.Z_VERSION_ERROR
    assert lib.inflateInit_(stream, b"2.0", ctypes.sizeof(stream)) == lib.Z_VERSION_ERROR


def test_the_table_of_the_crc_is_data_of_the_library(lib: Library) -> None:
    table = lib.get_crc_table()
    reference = [zlib.crc32(bytes([n ^ 0xFF]), 0) ^ 0xFFFFFFFF ^ 0x00FFFFFF for n in range(256)]
    assert [table[n] for n in range(256)] == [value & 0xFFFFFFFF for value in reference]
