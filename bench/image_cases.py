"""What is timed of the libraries of pictures: encoding and decoding one picture of three channels."""

from __future__ import annotations

import ctypes
import struct
import zlib
from functools import cache
from typing import Any

import numpy as np

from bench.case import Case
from bench.documents import picture
from bench.inputs import Arrays
from bench.plain import POINTER, SIZE, Call, Sink, bound, call, callback, taken
from visget.runtime.library import Library

_PNG_RGB, _PNG_VERSION = 2, 1
_TJ_420, _TJ_RGB = 2, 0
_TJ_EXACT = 4096


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


@cache
def png_file(side: int) -> bytes:
    """Return the picture as a PNG file, made without any of the libraries: each line is filtered by the one above."""
    pixels = picture(side)
    above = np.vstack([np.zeros((1, side, 3), np.uint8), pixels[:-1]])
    lines = np.hstack([np.full((side, 1), 2, np.uint8), (pixels - above).reshape(side, -1)])
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def png_cases(*, quick: bool) -> list[Case]:
    """Return the cases of libpng, by its simplified interface."""
    side = 128 if quick else 768
    pixels, data = picture(side), png_file(side)
    arrays = Arrays()
    image, out = arrays.empty(256, np.uint8), arrays.empty(pixels.size, np.uint8)
    packed, length = arrays.empty(2 * pixels.size, np.uint8), arrays.empty(1, np.uint64)
    fields = image.view(np.uint32)  # opaque (a pointer), version, width, height, format

    def write(lib: Library) -> Call:
        run = bound(lib, "png_image_write_to_memory", image, packed, length, 0, pixels, 0, None)

        def again() -> Any:
            image[:] = 0
            fields[2:6] = _PNG_VERSION, side, side, _PNG_RGB
            length[0] = packed.size
            return run()

        return again

    def read(lib: Library) -> Call:
        begin = bound(lib, "png_image_begin_read_from_memory", image, data, len(data))
        finish = bound(lib, "png_image_finish_read", image, None, out, 0, None)
        out[:] = 0

        def again() -> Any:
            image[:] = 0
            fields[2] = _PNG_VERSION
            begin()
            fields[5] = _PNG_RGB
            return finish()

        return again

    return [
        Case(title=f"png encode, {side} x {side}", amount=pixels.size, bind=write,
             answer=lambda _: packed[: int(length[0])].copy()),
        Case(title=f"png decode, {side} x {side}", amount=pixels.size, bind=read, answer=lambda _: out.copy()),
    ]  # fmt: skip


def jpeg_cases(*, quick: bool) -> list[Case]:
    """Return the cases of libjpeg-turbo: quality 85, 4:2:0, with the transforms that are the same bits everywhere."""
    side = 128 if quick else 1024
    pixels = picture(side)
    arrays = Arrays()
    out, pointer, length = arrays.empty(pixels.size, np.uint8), arrays.empty(1, np.uint64), arrays.empty(1, np.uint64)
    room = arrays.empty(2 * pixels.size + 65536, np.uint8)
    no_realloc = 1024

    def start(lib: Library, name: str) -> ctypes.c_void_p:
        return POINTER(call(lib, name, result=POINTER))

    def encode(lib: Library) -> Call:
        handle = start(lib, "tjInitCompress")
        run = bound(lib, "tjCompress2", handle, pixels, side, 0, side, _TJ_RGB, pointer, length, _TJ_420, 85,
                    _TJ_EXACT | no_realloc)  # fmt: skip

        def again() -> Any:
            pointer[0], length[0] = room.ctypes.data, room.size
            return run()

        return again

    def decode(lib: Library) -> Call:
        encode(lib)()
        held = room[: int(length[0])].copy()
        handle = start(lib, "tjInitDecompress")
        out[:] = 0
        return bound(lib, "tjDecompress2", handle, held, held.size, out, side, 0, side, _TJ_RGB, _TJ_EXACT)

    return [
        Case(title=f"jpeg encode, {side} x {side}", amount=pixels.size, bind=encode,
             answer=lambda _: room[: int(length[0])].copy()),
        Case(title=f"jpeg decode, {side} x {side}", amount=pixels.size, bind=decode, answer=lambda _: out.copy()),
    ]  # fmt: skip


def webp_cases(*, quick: bool) -> list[Case]:
    """Return the cases of libwebp."""
    side = 96 if quick else 512
    pixels = picture(side)
    arrays = Arrays()
    out, pointer = arrays.empty(pixels.size, np.uint8), arrays.empty(1, np.uint64)
    last: dict[str, int] = {}

    def encode(lib: Library, quality: float | None) -> Call:
        name = "WebPEncodeLosslessRGB" if quality is None else "WebPEncodeRGB"
        words = () if quality is None else (ctypes.c_float(quality),)
        run = bound(lib, name, pixels, side, side, 3 * side, *words, pointer, result=SIZE)

        def again() -> Any:
            free(lib)
            last["size"] = run()
            return last["size"]

        return again

    def free(lib: Library) -> None:
        if pointer[0]:
            call(lib, "WebPFree", POINTER(int(pointer[0])), result=None)
            pointer[0] = 0

    def decode(lib: Library) -> Call:
        size = encode(lib, 75.0)()
        held = taken(int(pointer[0]), size).copy()
        free(lib)
        out[:] = 0
        return bound(lib, "WebPDecodeRGBInto", held, held.size, out, out.size, 3 * side, result=POINTER)

    def encoded(size: Any) -> Any:
        return taken(int(pointer[0]), size).copy()

    return [
        Case(title=f"webp encode, quality 75, {side} x {side}", amount=pixels.size,
             bind=lambda lib: encode(lib, 75.0), answer=encoded, release=free),
        Case(title=f"webp encode, lossless, {side} x {side}", amount=pixels.size,
             bind=lambda lib: encode(lib, None), answer=encoded, release=free),
        Case(title=f"webp decode, {side} x {side}", amount=pixels.size, bind=decode, answer=lambda _: out.copy()),
    ]  # fmt: skip


def stb_cases(*, quick: bool) -> list[Case]:
    """Return the cases of stb_image: PNG and JPEG read, JPEG written."""
    side = 128 if quick else 768
    pixels, png = picture(side), png_file(side)
    arrays = Arrays()
    sizes = arrays.empty((3, 16), np.int32)
    sink = Sink(4 * pixels.size)
    held: dict[str, Any] = {}

    def load(lib: Library, data: Any) -> Call:
        run = bound(lib, "stbi_load_from_memory", data, len(data), sizes[0], sizes[1], sizes[2], 3, result=POINTER)

        def again() -> Any:
            made = run()
            # Copying takes a fraction of a percent of decoding.
            held["pixels"] = taken(made, pixels.size)
            call(lib, "stbi_image_free", POINTER(made), result=None)
            return made is not None

        return again

    def write(lib: Library) -> Call:
        run = bound(lib, "stbi_write_jpg_to_func", callback("sink_image"), sink.state, side, side, 3, pixels, 85)

        def again() -> Any:
            sink.clear()
            return run()

        return again

    def load_jpeg(lib: Library) -> Call:
        write(lib)()
        return load(lib, sink.written())

    return [
        Case(title=f"stbi_load, PNG, {side} x {side}", amount=pixels.size, bind=lambda lib: load(lib, png),
             answer=lambda _: held["pixels"]),
        Case(title=f"stbi_load, JPEG, {side} x {side}", amount=pixels.size, bind=load_jpeg,
             answer=lambda _: held["pixels"]),
        Case(title=f"stbi_write_jpg, {side} x {side}", amount=pixels.size, bind=write,
             answer=lambda _: sink.written()),
    ]  # fmt: skip
