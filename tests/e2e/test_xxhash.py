"""xxHash, built from its sources and installed for this machine, against the Python package xxhash."""

from __future__ import annotations

import random

import numpy as np
import pytest
import xxhash
from e2ekit import Shelf, noise, pieces

from visget.runtime.library import Library

pytestmark = pytest.mark.network

# Around every change of algorithm (4, 8, 16, 128, 240), of stripes (32, 64) and of blocks (1024), and large ones.
SIZES = [*range(35), 63, 64, 65, 127, 128, 129, 239, 240, 241, 255, 256, 257, 1023, 1024, 1025, 4095, 65_537, 5_000_011]
SEEDS = [0, 1, 0x9E3779B97F4A7C15, (1 << 64) - 1]


@pytest.fixture(scope="module")
def lib(shelf: Shelf) -> Library:
    return shelf.load("xxhash")


@pytest.fixture(scope="module")
def data() -> bytes:
    return noise(max(SIZES) + 64, 7)


def whole(result: object) -> int:
    return result.high64 << 64 | result.low64  # type: ignore[attr-defined]


def test_version(lib: Library) -> None:
    assert lib.version == "0.8.4"
    assert lib.XXH_versionNumber() == 804
    assert lib.receipt["answers"] == "passed"


@pytest.mark.parametrize("seed", SEEDS)
def test_one_shot(lib: Library, data: bytes, seed: int) -> None:
    sizes = SIZES + [random.Random(seed).randrange(100_000) for _ in range(50)]
    for size in sizes:
        part = data[:size]
        assert lib.XXH32(part, size, seed & 0xFFFFFFFF) == xxhash.xxh32_intdigest(part, seed & 0xFFFFFFFF), size
        assert lib.XXH64(part, size, seed) == xxhash.xxh64_intdigest(part, seed), size
        assert lib.XXH3_64bits_withSeed(part, size, seed) == xxhash.xxh3_64_intdigest(part, seed), size
        assert whole(lib.XXH3_128bits_withSeed(part, size, seed)) == xxhash.xxh3_128_intdigest(part, seed), size
        if seed == 0:
            assert lib.XXH3_64bits(part, size) == xxhash.xxh3_64_intdigest(part), size
            assert whole(lib.XXH3_128bits(part, size)) == xxhash.xxh3_128_intdigest(part), size


def test_any_alignment_and_any_buffer(lib: Library, data: bytes) -> None:
    array = np.frombuffer(data, np.uint8)
    for offset in range(17):
        for size in (0, 1, 16, 100, 300, 3000):
            wanted = xxhash.xxh3_64_intdigest(data[offset : offset + size])
            part = array[offset : offset + size]
            for buffer in (part, part.copy(), memoryview(part), bytearray(part)):
                assert lib.XXH3_64bits(buffer, size) == wanted, (offset, size, type(buffer))
    floats = array[:4000].view(np.float64)
    assert lib.XXH64(floats, floats.nbytes, 3) == xxhash.xxh64_intdigest(data[:4000], 3)


@pytest.mark.parametrize(
    ("kind", "reset", "reference"),
    [
        ("XXH32", "XXH32_reset", xxhash.xxh32),
        ("XXH64", "XXH64_reset", xxhash.xxh64),
        ("XXH3_64bits", "XXH3_64bits_reset_withSeed", xxhash.xxh3_64),
        ("XXH3_128bits", "XXH3_128bits_reset_withSeed", xxhash.xxh3_128),
    ],
)
def test_streams(lib: Library, data: bytes, kind: str, reset: str, reference: type) -> None:
    family = kind.partition("_")[0]
    create, free, copy = (lib[f"{family}_{verb}"] for verb in ("createState", "freeState", "copyState"))
    update, digest = lib[f"{kind}_update"], lib[f"{kind}_digest"]
    state, twin = create(), create()
    try:
        for round_, size in enumerate((0, 1, 5000, 700_001)):
            seed = 12345 * round_
            assert lib[reset](state, seed) == lib.XXH_OK
            mine = reference(seed=seed)
            for number, part in enumerate(pieces(data[:size], round_, 4096)):
                assert update(state, part, len(part)) == lib.XXH_OK
                mine.update(part)
                if number % 50 == 0:
                    # A digest does not end a stream, and a copy goes on by itself.
                    copy(twin, state)
                    assert update(twin, b"more", 4) == lib.XXH_OK
                    assert number_of(digest(state)) == mine.intdigest()
            assert number_of(digest(state)) == mine.intdigest()
        mine = mine.copy()
        copy(twin, state)
        assert update(twin, b"more", 4) == lib.XXH_OK
        mine.update(b"more")
        assert number_of(digest(twin)) == mine.intdigest()
    finally:
        assert free(state) == free(twin) == lib.XXH_OK


def number_of(result: object) -> int:
    return result if isinstance(result, int) else whole(result)


def test_secrets(lib: Library, data: bytes) -> None:
    """The wheel has no secrets; the stream and the single call must agree, and other secrets give other hashes."""
    secret, other = noise(192, 1), noise(192, 2)
    state = lib.XXH3_createState()
    for size in (0, 10, 200, 241, 100_000):
        part = data[:size]
        assert lib.XXH3_64bits_reset_withSecret(state, secret, len(secret)) == lib.XXH_OK
        assert lib.XXH3_64bits_update(state, part, size) == lib.XXH_OK
        found = lib.XXH3_64bits_withSecret(part, size, secret, len(secret))
        assert lib.XXH3_64bits_digest(state) == found
        assert lib.XXH3_64bits_withSecret(part, size, other, len(other)) != found
        assert lib.XXH3_64bits(part, size) != found
    lib.XXH3_freeState(state)


def test_structs_by_value(lib: Library, data: bytes) -> None:
    """XXH128_hash_t goes into functions and comes out of them as a struct, not by reference."""
    one, other = lib.XXH3_128bits(data, 1000), lib.XXH3_128bits(data, 1001)
    assert type(one) is lib.XXH128_hash_t
    assert lib.XXH128_isEqual(one, lib.XXH3_128bits(data, 1000)) == 1
    assert lib.XXH128_isEqual(one, other) == 0
    assert lib.XXH128_isEqual(one, lib.XXH128_hash_t(low64=one.low64, high64=one.high64)) == 1
    assert lib.XXH128_isEqual(one, lib.XXH128_hash_t(low64=one.low64, high64=one.high64 ^ 1)) == 0
    order = lib.XXH128_cmp(one, other)
    assert (order > 0) == (whole(one) > whole(other))
    assert order == -lib.XXH128_cmp(other, one) != 0
    canonical = lib.XXH128_canonical_t()
    lib.XXH128_canonicalFromHash(canonical, one)
    assert bytes(canonical.digest) == xxhash.xxh3_128_digest(data[:1000])
    assert whole(lib.XXH128_hashFromCanonical(canonical)) == whole(one)


def test_canonical_forms(lib: Library, data: bytes) -> None:
    small, large = lib.XXH32_canonical_t(), lib.XXH64_canonical_t()
    lib.XXH32_canonicalFromHash(small, lib.XXH32(data, 500, 9))
    lib.XXH64_canonicalFromHash(large, lib.XXH64(data, 500, 9))
    assert bytes(small.digest) == xxhash.xxh32_digest(data[:500], 9)
    assert bytes(large.digest) == xxhash.xxh64_digest(data[:500], 9)
    assert lib.XXH32_hashFromCanonical(small) == xxhash.xxh32_intdigest(data[:500], 9)
    assert lib.XXH64_hashFromCanonical(large) == xxhash.xxh64_intdigest(data[:500], 9)


def test_null_without_bytes(lib: Library) -> None:
    assert lib.XXH64(None, 0, 0) == xxhash.xxh64_intdigest(b"")
    assert lib.XXH3_64bits(None, 0) == xxhash.xxh3_64_intdigest(b"")
