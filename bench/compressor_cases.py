"""What is timed of the compressors: both directions, on the same mixed data, at the levels that people use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.case import Case, amount
from bench.documents import mixed_data
from bench.inputs import Arrays
from bench.plain import LIBC, POINTER, SIZE, Call, bound, call, taken
from visget.runtime.library import Library

_MIB = 1 << 20
Pack = Callable[[Library, Any, Any, Any], Call]
"""(library, input, output, length) -> a call after which output holds `length[0]` bytes, or that returns them."""


def _both_ways(
    name: str, size: int, packs: dict[str, tuple[Pack, Callable[[Any, Any], int]]],
    unpack: Callable[[Library, Any, Any], Call],
) -> list[Case]:  # fmt: skip
    """Return a case for each way to compress, and one for decompression of what the first made."""
    arrays = Arrays()
    source = mixed_data(size)
    room = size + size // 4 + 1024
    packed, held, out = arrays.empty(room, np.uint8), arrays.empty(room, np.uint8), arrays.empty(size, np.uint8)
    length = arrays.empty(1, np.uint64)

    def packer(title: str, pack: Pack, count: Callable[[Any, Any], int]) -> Case:
        return Case(
            title=f"{name} {title}, {amount(size)}", amount=size, bind=lambda lib: pack(lib, source, packed, length),
            answer=lambda value: packed[: count(value, length)].copy(),
        )  # fmt: skip

    def unpacker(lib: Library) -> Call:
        pack, count = next(iter(packs.values()))
        made = count(pack(lib, source, held, length)(), length)
        out[:] = 0
        return unpack(lib, held[:made], out)

    found = [packer(title, pack, count) for title, (pack, count) in packs.items()]
    return [*found, Case(title=f"{name} decompress, {amount(size)}", amount=size, bind=unpacker,
                         answer=lambda _: out.copy())]  # fmt: skip


def _returned(value: Any, _length: Any) -> int:
    return int(value)


def _stored(_value: Any, length: Any) -> int:
    return int(length[0])


def zstd_cases(*, quick: bool) -> list[Case]:
    """Return the cases of Zstandard."""
    def pack(level: int) -> tuple[Pack, Callable[[Any, Any], int]]:
        return lambda lib, given, room, _: bound(
            lib, "ZSTD_compress", room, room.size, given, given.size, level, result=SIZE
        ), _returned  # fmt: skip

    return _both_ways(
        "zstd", _MIB if quick else 4 * _MIB, {"level 3": pack(3), "level 9": pack(9)},
        lambda lib, given, room: bound(lib, "ZSTD_decompress", room, room.size, given, given.size, result=SIZE),
    )  # fmt: skip


def brotli_cases(*, quick: bool) -> list[Case]:
    """Return the cases of Brotli."""
    def pack(quality: int) -> tuple[Pack, Callable[[Any, Any], int]]:
        def ready(lib: Library, given: Any, room: Any, length: Any) -> Call:
            run = bound(lib, "BrotliEncoderCompress", quality, 22, 0, given.size, given, length, room)

            def again() -> Any:
                length[0] = room.size
                return run()

            return again

        return ready, _stored

    def unpack(lib: Library, given: Any, room: Any) -> Call:
        length = Arrays().copy(np.array([room.size], np.uint64))
        run = bound(lib, "BrotliDecoderDecompress", given.size, given, length, room)

        def again() -> Any:
            length[0] = room.size
            return run()

        return again

    return _both_ways("brotli", _MIB // 4 if quick else 2 * _MIB, {"quality 5": pack(5)}, unpack)


def libdeflate_cases(*, quick: bool) -> list[Case]:
    """Return the cases of libdeflate."""
    size = _MIB if quick else 4 * _MIB

    def pack(lib: Library, given: Any, room: Any, _: Any) -> Call:
        # A few megabytes for each measurement: it lives until the process ends.
        made = call(lib, "libdeflate_alloc_compressor", 6, result=POINTER)
        return bound(
            lib, "libdeflate_zlib_compress", POINTER(made), given, given.size, room, room.size, result=SIZE
        )  # fmt: skip

    def unpack(lib: Library, given: Any, room: Any) -> Call:
        made = call(lib, "libdeflate_alloc_decompressor", result=POINTER)
        return bound(
            lib, "libdeflate_zlib_decompress", POINTER(made), given, given.size, room, room.size, None
        )  # fmt: skip

    checks = [
        Case(title=f"{name}, {amount(size)}", amount=size, answer=lambda value: value & 0xFFFFFFFF,
             bind=lambda lib, name=name: bound(lib, name, 1, mixed_data(size), size))
        for name in ("libdeflate_crc32", "libdeflate_adler32")
    ]  # fmt: skip
    return [*_both_ways("libdeflate", size, {"level 6": (pack, _returned)}, unpack), *checks]


def snappy_cases(*, quick: bool) -> list[Case]:
    """Return the cases of Snappy."""
    def pack(lib: Library, given: Any, room: Any, length: Any) -> Call:
        run = bound(lib, "snappy_compress", given, given.size, room, length)

        def again() -> Any:
            length[0] = room.size
            return run()

        return again

    def unpack(lib: Library, given: Any, room: Any) -> Call:
        length = Arrays().copy(np.array([room.size], np.uint64))
        run = bound(lib, "snappy_uncompress", given, given.size, room, length)

        def again() -> Any:
            length[0] = room.size
            return run()

        return again

    return _both_ways("snappy", _MIB if quick else 4 * _MIB, {"compress": (pack, _stored)}, unpack)


def blosc_cases(*, quick: bool) -> list[Case]:
    """Return the cases of c-blosc: 8-byte numbers, shuffled, on one thread."""
    def pack(name: bytes) -> tuple[Pack, Callable[[Any, Any], int]]:
        def ready(lib: Library, given: Any, room: Any, _: Any) -> Call:
            call(lib, "blosc_init")
            return bound(
                lib, "blosc_compress_ctx", 5, 1, 8, given.size, given, room, room.size, name, 0, 1
            )  # fmt: skip

        return ready, _returned

    return _both_ways(
        "c-blosc", _MIB if quick else 4 * _MIB, {"lz4 5, shuffle": pack(b"lz4"), "zstd 5, shuffle": pack(b"zstd")},
        lambda lib, given, room: bound(lib, "blosc_decompress_ctx", given, room, room.size, 1),
    )  # fmt: skip


def zopfli_cases(*, quick: bool) -> list[Case]:
    """Return the case of Zopfli, which only compresses, and slowly: a second for 16 KiB."""
    size = (2 << 10) if quick else (16 << 10)
    options = Arrays().empty(64, np.uint8)
    source = mixed_data(_MIB)[:size]
    pointer, length = Arrays().empty(1, np.uint64), Arrays().empty(1, np.uint64)

    def bind(lib: Library) -> Call:
        call(lib, "ZopfliInitOptions", options)
        options.view(np.int32)[2] = 5  # iterations
        run = bound(lib, "ZopfliCompress", options, 1, source, size, pointer, length)

        def again() -> Any:
            if pointer[0]:
                LIBC.free(int(pointer[0]))
            pointer[0] = length[0] = 0
            return run()

        return again

    return [Case(title=f"zopfli, 5 iterations, {amount(size)}", amount=size, bind=bind,
                 answer=lambda _: taken(int(pointer[0]), int(length[0])))]  # fmt: skip
