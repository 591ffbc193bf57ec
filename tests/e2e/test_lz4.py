"""LZ4, built from its sources and installed for this machine, against the Python package lz4, both ways."""

from __future__ import annotations

import ctypes
import random

import lz4
import lz4.block
import lz4.frame
import pytest
from e2ekit import Shelf, noise, pieces, prose

from visget.runtime.library import Library

pytestmark = pytest.mark.network

# Around the shortest input that is compressed at all (13), the reach of a match (65535) and the blocks of a frame
# (64 KiB, 4 MiB).
INPUTS = {
    "empty": b"",
    "one byte": b"\xff",
    **{f"{size} zeros": bytes(size) for size in (12, 13, 14, 300_000)},
    **{f"noise {size}": noise(size, size) for size in (15, 255, 270, 65_535, 65_536, 65_537)},
    "prose": prose(150_001, 21),
    "large prose": prose((4 << 20) + 12_345, 22),
    "large noise": noise((4 << 20) + 1, 23),
}
SMALL = [name for name in INPUTS if not name.startswith("large")]
SAME_UPSTREAM = lz4.library_version_number() == 10904


@pytest.fixture(scope="module")
def lib(shelf: Shelf) -> Library:
    return shelf.load("lz4")


def compress(lib: Library, data: bytes, *, function: str = "LZ4_compress_default", level: int | None = None) -> bytes:
    room = lib.LZ4_compressBound(len(data))
    out = bytearray(room)
    size = lib[function](data, out, len(data), room, *([] if level is None else [level]))
    assert 0 < size <= room
    return bytes(out[:size])


def decompress(lib: Library, packed: bytes, length: int) -> bytes:
    out = bytearray(max(length, 1))
    assert lib.LZ4_decompress_safe(packed, out, len(packed), length) == length
    return bytes(out[:length])


def test_version(lib: Library) -> None:
    assert lib.LZ4_versionNumber() == lib.LZ4_VERSION_NUMBER == 10904
    assert lib.LZ4_versionString() == b"1.9.4"
    assert lib.receipt["answers"] == "passed"


@pytest.mark.parametrize("name", INPUTS)
def test_blocks_in_both_directions(lib: Library, name: str) -> None:
    data = INPUTS[name]
    packed, theirs = compress(lib, data), lz4.block.compress(data, store_size=False)
    assert lz4.block.decompress(packed, uncompressed_size=len(data)) == data
    assert decompress(lib, theirs, len(data)) == data
    if SAME_UPSTREAM:
        assert packed == theirs


@pytest.mark.parametrize("acceleration", [1, 2, 17, 1000])
def test_accelerated_blocks(lib: Library, acceleration: int) -> None:
    for name in SMALL:
        data = INPUTS[name]
        packed = compress(lib, data, function="LZ4_compress_fast", level=acceleration)
        assert lz4.block.decompress(packed, uncompressed_size=len(data)) == data, name
        if SAME_UPSTREAM:
            theirs = lz4.block.compress(data, "fast", acceleration=acceleration, store_size=False)
            assert packed == theirs, name


@pytest.mark.parametrize("level", [1, 2, 3, 6, 9, 10, 11, 12])
def test_high_compression_in_both_directions(lib: Library, level: int) -> None:
    for name in [*SMALL, *(["large prose"] if level == 3 else [])]:
        data = INPUTS[name]
        packed = compress(lib, data, function="LZ4_compress_HC", level=level)
        theirs = lz4.block.compress(data, "high_compression", compression=level, store_size=False)
        assert lz4.block.decompress(packed, uncompressed_size=len(data)) == data, name
        assert decompress(lib, theirs, len(data)) == data, name
        if SAME_UPSTREAM:
            assert packed == theirs, name


def test_dictionaries_in_both_directions(lib: Library) -> None:
    words, data = prose(70_000, 24), prose(70_000, 24)[20_000:30_000] + b"the end"
    stream = lib.LZ4_createStream()
    assert lib.LZ4_loadDict(stream, words, len(words)) == 1 << 16
    out = bytearray(lib.LZ4_compressBound(len(data)))
    size = lib.LZ4_compress_fast_continue(stream, data, out, len(data), len(out), 1)
    assert lib.LZ4_freeStream(stream) == 0
    assert size < 200
    assert lz4.block.decompress(bytes(out[:size]), uncompressed_size=len(data), dict=words) == data
    theirs = lz4.block.compress(data, store_size=False, dict=words)
    room = bytearray(len(data))
    length = lib.LZ4_decompress_safe_usingDict(theirs, room, len(theirs), len(room), words, len(words))
    assert (length, bytes(room)) == (len(data), data)


def test_streams_of_blocks(lib: Library) -> None:
    """Blocks that refer to earlier ones; all of them lie in one buffer, as lz4.h allows."""
    data = prose(400_000, 25)
    source, target = bytearray(data), bytearray(len(data))
    writer, reader = lib.LZ4_createStream(), lib.LZ4_createStreamDecode()
    high = lib.LZ4_createStreamHC()
    assert lib.LZ4_setStreamDecode(reader, None, 0) == 1
    at, total, single = 0, 0, 0
    # Windows onto the buffers: slices of a bytearray would be copies, and the blocks would not see each other.
    from_, to = memoryview(source), memoryview(target)
    while at < len(data):
        part = from_[at : at + 30_000]
        out = bytearray(lib.LZ4_compressBound(len(part)))
        size = lib.LZ4_compress_fast_continue(writer, part, out, len(part), len(out), 1)
        window = to[at : at + len(part)]
        assert lib.LZ4_decompress_safe_continue(reader, out, window, size, len(part)) == len(part)
        total += size
        single += len(compress(lib, bytes(part)))
        assert lib.LZ4_compress_HC_continue(high, part, out, len(part), len(out)) > 0
        at += len(part)
    assert target == source
    assert total < single
    assert lib.LZ4_freeStream(writer) == lib.LZ4_freeStreamDecode(reader) == lib.LZ4_freeStreamHC(high) == 0


def test_as_much_as_fits(lib: Library) -> None:
    data = prose(50_000, 26)
    out, taken = bytearray(1000), ctypes.c_int(len(data))
    size = lib.LZ4_compress_destSize(data, out, taken, len(out))
    assert 990 <= size <= 1000
    assert lz4.block.decompress(bytes(out[:size]), uncompressed_size=taken.value) == data[: taken.value]
    part = bytearray(500)
    packed = compress(lib, data)
    assert lib.LZ4_decompress_safe_partial(packed, part, len(packed), 500, 500) == 500
    assert part == data[:500]
    assert lib.LZ4_compress_default(noise(1000, 1), bytearray(900), 1000, 900) == 0


def test_damaged_blocks_never_write_outside(lib: Library) -> None:
    data = prose(3000, 27)
    packed = compress(lib, data)
    rng = random.Random(28)
    failed = 0
    for _ in range(500):
        damaged = bytearray(packed)
        damaged[rng.randrange(len(packed))] = rng.randrange(256)
        out = bytearray(b"\xee" * (len(data) + 64))
        length = lib.LZ4_decompress_safe(damaged, out, len(damaged), len(data))
        assert length <= len(data)
        assert out[len(data) :] == b"\xee" * 64
        try:
            theirs = lz4.block.decompress(bytes(damaged), uncompressed_size=len(data))
        except lz4.block.LZ4BlockError:
            assert length < 0
            failed += 1
        else:
            assert bytes(out[:length]) == theirs
    assert failed > 10


@pytest.mark.parametrize("name", INPUTS)
def test_frames_in_both_directions(lib: Library, name: str) -> None:
    data = INPUTS[name]
    wish = lib.LZ4F_preferences_t()
    wish.frameInfo.contentChecksumFlag = lib.LZ4F_contentChecksumEnabled
    wish.frameInfo.contentSize = len(data)
    room = lib.LZ4F_compressFrameBound(len(data), wish)
    out = bytearray(room)
    size = lib.LZ4F_compressFrame(out, room, data, len(data), wish)
    assert not lib.LZ4F_isError(size)
    frame = bytes(out[:size])
    assert lz4.frame.decompress(frame) == data
    told = lz4.frame.get_frame_info(frame)
    assert (told["content_checksum"], told["content_size"]) == (True, len(data))
    for options in ({}, {"block_size": 4, "block_linked": False, "block_checksum": True}, {"compression_level": 9}):
        if options.get("compression_level") and name.startswith("large"):
            continue
        theirs = lz4.frame.compress(data, content_checksum=True, **options)
        assert read_frame(lib, [theirs], 100_000) == data, options


def read_frame(lib: Library, parts: list[bytes], room: int) -> bytes:
    """Decompress a frame that comes in parts, through a window of `room` bytes."""
    # The C type of LZ4F_dctx is opaque: a pointer to a pointer is all that a program ever holds.
    context = ctypes.POINTER(lib.LZ4F_dctx)()
    assert lib.LZ4F_createDecompressionContext(ctypes.byref(context), lib.LZ4F_VERSION) == 0
    window, found, hint = bytearray(room), [], 1
    try:
        for part in parts:
            at, full = 0, False
            while hint and (at < len(part) or full):
                taken, given = ctypes.c_ulong(len(part) - at), ctypes.c_ulong(room)
                hint = lib.LZ4F_decompress(context, window, given, memoryview(part)[at:], taken, None)
                if lib.LZ4F_isError(hint):
                    raise ValueError(lib.LZ4F_getErrorName(hint).decode())
                at += taken.value
                found.append(bytes(window[: given.value]))
                full = given.value == room
        assert hint == 0, "the frame did not end"
    finally:
        lib.LZ4F_freeDecompressionContext(context)
    return b"".join(found)


@pytest.mark.parametrize("linked", [True, False])
def test_frames_in_pieces(lib: Library, linked: bool) -> None:
    data = prose(150_000, 29)
    wish = lib.LZ4F_preferences_t(compressionLevel=0 if linked else 6, autoFlush=0)
    wish.frameInfo.blockMode = lib.LZ4F_blockLinked if linked else lib.LZ4F_blockIndependent
    wish.frameInfo.blockSizeID = lib.LZ4F_max64KB
    wish.frameInfo.blockChecksumFlag = lib.LZ4F_blockChecksumEnabled
    context = ctypes.POINTER(lib.LZ4F_cctx)()
    assert lib.LZ4F_createCompressionContext(ctypes.byref(context), lib.LZ4F_VERSION) == 0
    out = bytearray(lib.LZ4F_compressBound(20_000, wish))
    sizes = [lib.LZ4F_compressBegin(context, out, len(out), wish)]
    found = [bytes(out[: sizes[0]])]
    for number, part in enumerate(pieces(data, 30, 20_000)):
        sizes.append(lib.LZ4F_compressUpdate(context, out, len(out), part, len(part), None))
        found.append(bytes(out[: sizes[-1]]))
        if number % 7 == 0:
            sizes.append(lib.LZ4F_flush(context, out, len(out), None))
            found.append(bytes(out[: sizes[-1]]))
    sizes.append(lib.LZ4F_compressEnd(context, out, len(out), None))
    found.append(bytes(out[: sizes[-1]]))
    assert lib.LZ4F_freeCompressionContext(context) == 0
    assert not any(lib.LZ4F_isError(size) for size in sizes)
    frame = b"".join(found)
    assert lz4.frame.decompress(frame) == data
    assert lz4.frame.get_frame_info(frame)["block_linked"] == linked
    for room in (7, 1000, 400_000):
        assert read_frame(lib, pieces(frame, room, 5000), room) == data


def test_damaged_frames_are_errors_with_names(lib: Library) -> None:
    frame = bytearray(lz4.frame.compress(prose(5000, 31), content_checksum=True))
    frame[-1] ^= 1
    with pytest.raises(ValueError, match="ERROR_contentChecksum_invalid"):
        read_frame(lib, [bytes(frame)], 1000)
    with pytest.raises(ValueError, match="ERROR_frameType_unknown"):
        read_frame(lib, [b"this is no frame at all"], 1000)
