"""libwebp against Pillow and the distribution's build, on every machine."""

from __future__ import annotations

import io
import math

import pytest
from e2ekit import noise
from machines import Machine

RECIPE = "libwebp"
DISTRIBUTION = ("libwebp.so.7",)
WIDTH, HEIGHT = 73, 41
PIXELS = bytes(
    int(127.5 + 127 * math.sin((x * (k + 1) + y * 2) / 9))
    for y in range(HEIGHT)
    for x in range(WIDTH)
    for k in range(3)
)
SHARP = bytes((x * y * k) & 255 for y in range(HEIGHT) for x in range(WIDTH) for k in (1, 2, 3))
PICTURES = {"smooth": PIXELS, "sharp": SHARP, "noise": noise(WIDTH * HEIGHT * 3, 1)}


def encode(machine: Machine, pixels: bytes, quality: float | None) -> bytes:
    out = machine.buffer(8)
    if quality is None:
        size = machine.WebPEncodeLosslessRGB(pixels, WIDTH, HEIGHT, WIDTH * 3, out)
    else:
        size = machine.WebPEncodeRGB(pixels, WIDTH, HEIGHT, WIDTH * 3, quality, out)
    assert size
    packed = machine.read(out.u64(), size)
    machine.WebPFree(out.u64())
    return packed


def decode(machine: Machine, packed: bytes) -> bytes | None:
    width, height = machine.buffer(4), machine.buffer(4)
    found = machine.WebPDecodeRGB(packed, len(packed), width, height)
    if not found:
        return None
    pixels = machine.read(found, width.u32() * height.u32() * 3)
    machine.WebPFree(found)
    return pixels


def pillow_decode(packed: bytes) -> bytes:
    image = pytest.importorskip("PIL.Image")
    return image.open(io.BytesIO(packed)).convert("RGB").tobytes()


def pillow_encode(pixels: bytes, **options: object) -> bytes:
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.frombytes("RGB", (WIDTH, HEIGHT), pixels).save(out, "WEBP", **options)
    return out.getvalue()


@pytest.mark.parametrize("name", PICTURES)
def test_without_loss(machine: Machine, name: str) -> None:
    pixels = PICTURES[name]
    assert pillow_decode(encode(machine, pixels, None)) == pixels
    assert decode(machine, pillow_encode(pixels, lossless=True)) == pixels


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("quality", [5.0, 50.0, 75.0, 99.5])
def test_with_loss(machine: Machine, theirs: Machine, name: str, quality: float) -> None:
    pixels = PICTURES[name]
    packed = encode(machine, pixels, quality)
    assert packed == encode(theirs, pixels, quality)
    assert decode(machine, packed) == decode(theirs, packed) == pillow_decode(packed)
    if name == "smooth" and quality > 70:
        found = decode(machine, packed)
        assert found is not None
        assert sum(abs(a - b) for a, b in zip(found, pixels, strict=True)) / len(pixels) < 6
    theirs_packed = pillow_encode(pixels, quality=quality)
    assert decode(machine, theirs_packed) == pillow_decode(theirs_packed)


def test_the_advanced_interface(machine: Machine, theirs: Machine) -> None:
    """A configuration, a picture with alpha, and a writer that is called back."""
    results = []
    for m in (machine, theirs):
        parts: list[bytes] = []

        def write(data: int, size: int, _picture: int, m: Machine = m, parts: list[bytes] = parts) -> int:
            parts.append(m.read(data, size))
            return 1

        config, picture = m.struct("WebPConfig"), m.struct("WebPPicture")
        abi = m.WEBP_ENCODER_ABI_VERSION
        assert m.WebPConfigInitInternal(config, m.WEBP_PRESET_PHOTO, 60.0, abi)
        assert m.WebPPictureInitInternal(picture, abi)
        config["method"] = 6
        config["alpha_quality"] = 50
        config["segments"] = 3
        config["sns_strength"] = 80
        assert m.WebPValidateConfig(config)
        picture["width"], picture["height"] = WIDTH, HEIGHT
        picture["writer"] = write
        rgba = b"".join(PIXELS[n : n + 3] + bytes([n % 256]) for n in range(0, len(PIXELS), 3))
        assert m.WebPPictureImportRGBA(picture, rgba, WIDTH * 4)
        assert m.WebPEncode(config, picture), picture["error_code"]
        m.WebPPictureFree(picture)
        results.append(b"".join(parts))
        config["quality"] = 101.0
        assert not m.WebPValidateConfig(config)
    assert results[0] == results[1]


def test_damage_is_noticed(machine: Machine) -> None:
    packed = encode(machine, PIXELS, 75.0)
    for size in range(0, len(packed), 101):
        assert decode(machine, packed[:size]) is None
    features = machine.struct("WebPBitstreamFeatures")
    abi = machine.WEBP_DECODER_ABI_VERSION
    assert machine.WebPGetFeaturesInternal(packed, len(packed), features, abi) == machine.VP8_STATUS_OK
    assert (features["width"], features["height"], features["has_alpha"]) == (WIDTH, HEIGHT, 0)
    assert machine.WebPGetFeaturesInternal(packed, 11, features, abi) == machine.VP8_STATUS_NOT_ENOUGH_DATA
    assert machine.WebPGetFeaturesInternal(b"x" * 40, 40, features, abi) == machine.VP8_STATUS_BITSTREAM_ERROR


def test_animations(machine: Machine) -> None:
    """The muxer and the demuxer: frames go in, Pillow counts them, and they come out again."""
    image = pytest.importorskip("PIL.Image")
    mux = machine.WebPNewInternal(machine.WEBP_MUX_ABI_VERSION)
    frames = [encode(machine, pixels, None) for pixels in PICTURES.values()]
    for frame in frames:
        data = machine.buffer(frame)
        info = machine.struct(
            "WebPMuxFrameInfo", **{"bitstream.bytes": data, "bitstream.size": len(frame)},
            duration=70, id=machine.WEBP_CHUNK_ANMF, blend_method=machine.WEBP_MUX_NO_BLEND,
        )  # fmt: skip
        assert machine.WebPMuxPushFrame(mux, info, 1) == machine.WEBP_MUX_OK
    assert machine.WebPMuxSetAnimationParams(mux, machine.struct("WebPMuxAnimParams", loop_count=3)) == 1
    made = machine.struct("WebPData")
    assert machine.WebPMuxAssemble(mux, made) == machine.WEBP_MUX_OK
    packed = machine.read(made["bytes"], made["size"])
    opened = image.open(io.BytesIO(packed))
    assert (opened.n_frames, opened.size, opened.info["loop"]) == (3, (WIDTH, HEIGHT), 3)
    for number, pixels in enumerate(PICTURES.values()):
        opened.seek(number)
        assert opened.convert("RGB").tobytes() == pixels
    demux = machine.WebPDemuxInternal(made, 0, None, machine.WEBP_DEMUX_ABI_VERSION)
    assert machine.WebPDemuxGetI(demux, machine.WEBP_FF_FRAME_COUNT) == 3
    machine.WebPDemuxDelete(demux)
    machine.WebPMuxDelete(mux)
