"""libpng, which needs the package zlib, against Pillow and the distribution's build, on every machine."""

from __future__ import annotations

import io
import struct
import zlib

import pytest
from e2ekit import noise
from machines import Machine

RECIPE = "libpng"
DISTRIBUTION = ("libpng16.so.16",)
WIDTH, HEIGHT = 61, 37
PIXELS = bytes((x * 3 + y * k) & 255 for y in range(HEIGHT) for x in range(WIDTH) for k in (1, 2, 3))
RGB, RGBA, GRAY = 2, 3, 0


def write(machine: Machine, pixels: bytes, kind: int = RGB) -> bytes:
    image = machine.struct("png_image", version=machine.PNG_IMAGE_VERSION, width=WIDTH, height=HEIGHT, format=kind)
    size = machine.buffer(8)
    assert machine.png_image_write_to_memory(image, None, size, 0, pixels, 0, None), image["message"]
    out = machine.buffer(size.u64())
    assert machine.png_image_write_to_memory(image, out, size, 0, pixels, 0, None)
    return out.read(size.u64())


def read(machine: Machine, data: bytes, kind: int = RGB) -> bytes:
    """Return the pixels; an error raises what libpng says."""
    image = machine.struct("png_image", version=machine.PNG_IMAGE_VERSION)
    source = machine.buffer(data)
    if machine.png_image_begin_read_from_memory(image, source, len(data)):
        image["format"] = kind
        channels = {GRAY: 1, RGB: 3, RGBA: 4}[kind]
        room = machine.buffer(image["width"] * image["height"] * channels)
        if machine.png_image_finish_read(image, None, room, 0, None):
            return room.read()
    raise ValueError(image["message"].split(b"\0")[0].decode())


@pytest.mark.parametrize("pixels", [PIXELS, noise(WIDTH * HEIGHT * 3, 1)], ids=["ramp", "noise"])
def test_both_directions(machine: Machine, theirs: Machine, pixels: bytes) -> None:
    image = pytest.importorskip("PIL.Image")
    data = write(machine, pixels)
    assert image.open(io.BytesIO(data)).tobytes() == pixels
    assert read(machine, data) == read(theirs, data) == pixels
    out = io.BytesIO()
    image.frombytes("RGB", (WIDTH, HEIGHT), pixels).save(out, "PNG")
    assert read(machine, out.getvalue()) == pixels


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1"])
def test_kinds(machine: Machine, theirs: Machine, mode: str) -> None:
    image = pytest.importorskip("PIL.Image")
    made = image.frombytes("RGB", (WIDTH, HEIGHT), PIXELS).convert(mode)
    out = io.BytesIO()
    made.save(out, "PNG")
    assert read(machine, out.getvalue(), RGBA) == made.convert("RGBA").tobytes()
    assert read(machine, out.getvalue(), GRAY) == read(theirs, out.getvalue(), GRAY)


def test_errors_come_back_by_longjmp(machine: Machine) -> None:
    data = write(machine, PIXELS)
    with pytest.raises(ValueError, match=r"not a PNG file|Not a PNG file"):
        read(machine, b"no picture at all")
    with pytest.raises(ValueError, match=r"CRC error|IDAT: invalid|incorrect data check|invalid"):
        read(machine, data[:60] + bytes([data[60] ^ 0xFF]) + data[61:])
    with pytest.raises(ValueError, match=r"."):
        read(machine, data[: len(data) // 2])
    huge = bytearray(data)
    huge[16:20] = struct.pack(">I", 0x7FFFFFFF)
    huge[29:33] = struct.pack(">I", zlib.crc32(huge[12:29]))
    with pytest.raises(ValueError, match=r"Invalid IHDR data"):
        read(machine, bytes(huge))


def test_functions_of_ours(machine: Machine) -> None:
    """The classic interface: a write function that is called back, filters, an ancillary chunk, rows."""
    image = pytest.importorskip("PIL.Image")
    parts: list[bytes] = []
    png = machine.png_create_write_struct(b"1.6.39", None, None, None)
    info = machine.png_create_info_struct(png)
    machine.png_set_write_fn(
        png, None, lambda _png, data, size: parts.append(machine.read(data, size)), lambda _png: None
    )
    machine.png_set_IHDR(png, info, WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    machine.png_set_gAMA(png, info, 0.45455)
    machine.png_set_pHYs(png, info, 3000, 3000, 1)
    machine.png_set_compression_level(png, 9)
    machine.png_set_filter(png, 0, 0xF8)
    machine.png_write_info(png, info)
    for row in range(HEIGHT):
        machine.png_write_row(png, PIXELS[row * WIDTH * 3 : (row + 1) * WIDTH * 3])
    machine.png_write_end(png, info)
    handle, other = (machine.buffer(value.to_bytes(8, "little")) for value in (png, info))
    machine.png_destroy_write_struct(handle, other)
    opened = image.open(io.BytesIO(b"".join(parts)))
    assert opened.tobytes() == PIXELS
    assert opened.info["gamma"] == 0.45455
    assert opened.info["dpi"] == pytest.approx((76.2, 76.2))


def test_versions_fit(machine: Machine) -> None:
    assert machine.png_access_version_number() == 10639
    assert machine.text(machine.png_get_libpng_ver(None)) == b"1.6.39"
