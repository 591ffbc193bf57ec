"""stb_image and stb_image_write against Pillow, on every machine."""

from __future__ import annotations

import io
import math
import struct

import pytest
from e2ekit import noise
from machines import Machine

RECIPE = "stb-image"
WIDTH, HEIGHT = 57, 43
PIXELS = bytes(
    int(127.5 + 127 * math.sin((x * (k + 1) + y * 2) / 9))
    for y in range(HEIGHT)
    for x in range(WIDTH)
    for k in range(3)
)
PICTURES = {"smooth": PIXELS, "noise": noise(WIDTH * HEIGHT * 3, 4)}
EXACT = {"PNG": {}, "BMP": {}, "TGA": {}, "PPM": {}, "GIF": {}}


def load(machine: Machine, data: bytes, channels: int = 3) -> tuple[int, int, int, bytes] | None:
    width, height, found = (machine.buffer(4) for _ in range(3))
    pixels = machine.stbi_load_from_memory(data, len(data), width, height, found, channels)
    if not pixels:
        return None
    size = width.u32() * height.u32() * (channels or found.u32())
    result = width.u32(), height.u32(), found.u32(), machine.read(pixels, size)
    machine.stbi_image_free(pixels)
    return result


def pillow(pixels: bytes, kind: str, mode: str = "RGB", **options: object) -> tuple[bytes, bytes]:
    """Return a file, and the pixels that Pillow reads from it."""
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    made = image.frombytes("RGB", (WIDTH, HEIGHT), pixels).convert(mode)
    made.save(out, kind, **options)
    return out.getvalue(), image.open(io.BytesIO(out.getvalue())).convert("RGB").tobytes()


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("name", PICTURES)
def test_files_of_pillow(machine: Machine, kind: str, name: str) -> None:
    data, pixels = pillow(PICTURES[name], kind, "P" if kind == "GIF" else "RGB")
    found = load(machine, data)
    assert found is not None
    assert found[:2] == (WIDTH, HEIGHT)
    assert found[3] == pixels


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "I;16"])
def test_kinds_of_png(machine: Machine, mode: str) -> None:
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    if mode == "I;16":
        made = image.frombytes("I;16", (WIDTH, HEIGHT), noise(WIDTH * HEIGHT * 2, 5))
    else:
        made = image.frombytes("RGB", (WIDTH, HEIGHT), PIXELS).convert(mode)
    made.save(out, "PNG")
    found = load(machine, out.getvalue(), 4 if mode in ("LA", "RGBA") else 1 if mode == "L" else 3)
    assert found is not None
    if mode == "I;16":
        width, height, channels = (machine.buffer(4) for _ in range(3))
        data = out.getvalue()
        assert machine.stbi_is_16_bit_from_memory(data, len(data))
        pixels = machine.stbi_load_16_from_memory(data, len(data), width, height, channels, 1)
        assert machine.read(pixels, WIDTH * HEIGHT * 2) == made.tobytes()
    else:
        wanted = {"L": "L", "LA": "RGBA", "RGBA": "RGBA"}.get(mode, "RGB")
        assert found[3] == made.convert(wanted).tobytes()


@pytest.mark.parametrize("options", [{"quality": 90, "subsampling": 0}, {"quality": 60, "progressive": True}])
def test_jpeg_is_near(machine: Machine, options: dict[str, object]) -> None:
    """Decoders of JPEG may round differently."""
    data, pixels = pillow(PIXELS, "JPEG", **options)
    found = load(machine, data)
    assert found is not None
    assert sum(abs(a - b) for a, b in zip(found[3], pixels, strict=True)) / len(pixels) < 2


@pytest.mark.parametrize("kind", ["png", "bmp", "tga", "jpg"])
def test_writing_through_a_callback(machine: Machine, kind: str) -> None:
    image = pytest.importorskip("PIL.Image")
    parts: list[bytes] = []
    options = [95] if kind == "jpg" else [WIDTH * 3] if kind == "png" else []
    function = getattr(machine, f"stbi_write_{kind}_to_func")
    done = function(
        lambda _context, data, size: parts.append(machine.read(data, size)), None, WIDTH, HEIGHT, 3, PIXELS, *options
    )
    assert done
    data = b"".join(parts)
    pixels = image.open(io.BytesIO(data)).convert("RGB").tobytes()
    if kind == "jpg":
        assert sum(abs(a - b) for a, b in zip(pixels, PIXELS, strict=True)) / len(pixels) < 3
    else:
        assert pixels == PIXELS
        found = load(machine, data)
        assert found is not None
        assert found[3] == PIXELS


def test_files(machine: Machine, tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "picture.png"
    assert machine.stbi_write_png(str(path).encode(), WIDTH, HEIGHT, 3, PIXELS, WIDTH * 3)
    width, height, found = (machine.buffer(4) for _ in range(3))
    pixels = machine.stbi_load(str(path).encode(), width, height, found, 3)
    assert machine.read(pixels, len(PIXELS)) == PIXELS
    assert not machine.stbi_load(str(tmp_path / "none").encode(), width, height, found, 3)
    assert machine.text(machine.stbi_failure_reason()) == b"can't fopen"


def test_high_dynamic_range(machine: Machine) -> None:
    """Floats go out as RGBE and come back within its precision."""
    values = [0.0, 0.25, 1.0, 1.5, 100.0, 3e4]
    floats = struct.pack("<18f", *(v for v in values for _ in range(3)))
    parts: list[bytes] = []
    assert machine.stbi_write_hdr_to_func(
        lambda _c, data, size: parts.append(machine.read(data, size)), None, 6, 1, 3, floats
    )
    data = b"".join(parts)
    assert machine.stbi_is_hdr_from_memory(data, len(data))
    width, height, found = (machine.buffer(4) for _ in range(3))
    pixels = machine.stbi_loadf_from_memory(data, len(data), width, height, found, 3)
    back = struct.unpack("<18f", machine.read(pixels, 72))
    for one, two in zip(back[::3], values, strict=True):
        assert one == pytest.approx(two, rel=1 / 128)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP"])
def test_damage_never_hangs_or_crashes(machine: Machine, kind: str) -> None:
    data, _ = pillow(PIXELS, kind, "P" if kind == "GIF" else "RGB")
    assert load(machine, data[:20]) is None
    assert machine.text(machine.stbi_failure_reason())
    for place in range(0, len(data), max(1, len(data) // 60)):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        load(machine, bytes(broken))
