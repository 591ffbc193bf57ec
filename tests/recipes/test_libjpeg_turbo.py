"""libjpeg-turbo against Pillow and the distribution's build, on every machine."""

from __future__ import annotations

import io
import math

import pytest
from e2ekit import noise
from machines import Machine

RECIPE = "libjpeg-turbo"
DISTRIBUTION = ("libturbojpeg.so.0",)
WIDTH, HEIGHT = 75, 50
PIXELS = bytes(
    int(127.5 + 127 * math.sin((x * (k + 1) + y * 2) / 9))
    for y in range(HEIGHT)
    for x in range(WIDTH)
    for k in range(3)
)
PICTURES = {"smooth": PIXELS, "noise": noise(WIDTH * HEIGHT * 3, 1)}


def compress(machine: Machine, pixels: bytes, sampling: int, quality: int, flags: int = 0) -> bytes:
    handle = machine.tjInitCompress()
    out, size = machine.buffer(8), machine.buffer(8)
    code = machine.tjCompress2(handle, pixels, WIDTH, 0, HEIGHT, machine.TJPF_RGB, out, size, sampling, quality, flags)
    assert code == 0, machine.text(machine.tjGetErrorStr2(handle))
    packed = machine.read(out.u64(), size.u64())
    machine.tjFree(out.u64())
    assert machine.tjDestroy(handle) == 0
    return packed


def decompress(machine: Machine, packed: bytes, flags: int = 0) -> bytes:
    handle = machine.tjInitDecompress()
    width, height, sampling, space = (machine.buffer(4) for _ in range(4))
    assert machine.tjDecompressHeader3(handle, packed, len(packed), width, height, sampling, space) == 0
    assert (width.u32(), height.u32()) == (WIDTH, HEIGHT)
    room = machine.buffer(WIDTH * HEIGHT * 3)
    code = machine.tjDecompress2(handle, packed, len(packed), room, WIDTH, 0, HEIGHT, machine.TJPF_RGB, flags)
    assert code == 0, machine.text(machine.tjGetErrorStr2(handle))
    machine.tjDestroy(handle)
    return room.read()


def pillow_pixels(packed: bytes) -> bytes:
    image = pytest.importorskip("PIL.Image")
    return image.open(io.BytesIO(packed)).convert("RGB").tobytes()


def difference(one: bytes, two: bytes) -> float:
    return sum(abs(a - b) for a, b in zip(one, two, strict=True)) / len(one)


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("sampling", ["TJSAMP_444", "TJSAMP_422", "TJSAMP_420", "TJSAMP_GRAY"])
@pytest.mark.parametrize("quality", [10, 75, 100])
def test_the_same_as_the_distribution(
    machine: Machine, theirs: Machine, name: str, sampling: str, quality: int
) -> None:
    """SIMD code and C code give the same bits with the accurate transforms."""
    exact = machine.TJFLAG_ACCURATEDCT
    packed = compress(machine, PICTURES[name], getattr(machine, sampling), quality, exact)
    assert packed == compress(theirs, PICTURES[name], getattr(machine, sampling), quality, exact)
    assert decompress(machine, packed, exact) == decompress(theirs, packed, exact)
    if sampling == "TJSAMP_444" and quality == 100:
        assert difference(decompress(machine, packed), PICTURES[name]) < 2
        assert difference(decompress(machine, packed), pillow_pixels(packed)) < 0.5


@pytest.mark.parametrize("options", [{"progressive": True}, {"optimize": True, "quality": 60}, {"quality": 95}])
def test_files_of_pillow(machine: Machine, theirs: Machine, options: dict[str, object]) -> None:
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.frombytes("RGB", (WIDTH, HEIGHT), PIXELS).save(out, "JPEG", **options)
    found = decompress(machine, out.getvalue())
    assert found == decompress(theirs, out.getvalue())
    assert difference(found, pillow_pixels(out.getvalue())) < 1


def test_lossless_transforms(machine: Machine, theirs: Machine) -> None:
    packed = compress(machine, PIXELS, machine.TJSAMP_444, 90)
    results = []
    for m in (machine, theirs):
        handle = m.tjInitTransform()
        out, size = m.buffer(8), m.buffer(8)
        transform = m.struct("tjtransform", op=m.TJXOP_ROT90, options=2)
        assert m.tjTransform(handle, packed, len(packed), 1, out, size, transform, 0) == 0
        results.append(m.read(out.u64(), size.u64()))
        m.tjDestroy(handle)
    assert results[0] == results[1]


def test_errors_come_back_by_longjmp(machine: Machine) -> None:
    packed = compress(machine, PIXELS, machine.TJSAMP_420, 80)
    handle = machine.tjInitDecompress()
    room = machine.buffer(WIDTH * HEIGHT * 3)
    for broken, words in (
        (b"\xff\xd8junk", b"Not a JPEG file|Unsupported marker|JPEG datastream"),
        (b"no picture", b"Not a JPEG file: starts with 0x6e 0x6f"),
        (packed[:30], b"Premature|JPEG datastream contains no image|Not a JPEG"),
    ):
        code = machine.tjDecompress2(handle, broken, len(broken), room, WIDTH, 0, HEIGHT, machine.TJPF_RGB, 0)
        assert code == -1
        said = machine.text(machine.tjGetErrorStr2(handle))
        assert any(word in said for word in words.split(b"|")), said
    assert machine.tjDecompress2(handle, packed, len(packed), room, WIDTH, 0, HEIGHT, machine.TJPF_RGB, 0) == 0
    for place in range(0, len(packed), len(packed) // 60):
        damaged = bytearray(packed)
        damaged[place] ^= 0xFF
        machine.tjDecompress2(handle, bytes(damaged), len(damaged), room, WIDTH, 0, HEIGHT, machine.TJPF_RGB, 0)
    machine.tjDestroy(handle)


def test_the_interface_of_libjpeg(machine: Machine) -> None:
    """Structs, a memory destination, scan lines: as most programs use it."""
    image = pytest.importorskip("PIL.Image")
    errors = machine.struct("jpeg_error_mgr")
    info = machine.struct("jpeg_compress_struct")
    info["err"] = machine.jpeg_std_error(errors)
    machine.jpeg_CreateCompress(info, machine.JPEG_LIB_VERSION, info.size)
    out, size = machine.buffer(8), machine.buffer(8)
    machine.jpeg_mem_dest(info, out, size)
    info["image_width"], info["image_height"], info["input_components"] = WIDTH, HEIGHT, 3
    info["in_color_space"] = machine.JCS_RGB
    machine.jpeg_set_defaults(info)
    machine.jpeg_set_quality(info, 92, 1)
    machine.jpeg_start_compress(info, 1)
    rows = machine.buffer(PIXELS)
    for row in range(HEIGHT):
        pointer = machine.buffer((rows.address + row * WIDTH * 3).to_bytes(8, "little"))
        assert machine.jpeg_write_scanlines(info, pointer, 1) == 1
    assert info["next_scanline"] == HEIGHT
    machine.jpeg_finish_compress(info)
    packed = machine.read(out.u64(), size.u64())
    machine.jpeg_destroy_compress(info)
    opened = image.open(io.BytesIO(packed))
    assert opened.size == (WIDTH, HEIGHT)
    assert difference(opened.convert("RGB").tobytes(), PIXELS) < 6
