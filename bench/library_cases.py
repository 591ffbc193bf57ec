"""What is timed of each library; here xxHash, zlib, LZ4, KISS FFT, through their typed interfaces.

Sizes are those of real use: 8 MiB for checksums (and 256 KiB, which stays in the cache), 4 MiB for compressors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench.case import Case, amount
from bench.compressor_cases import (
    blosc_cases,
    brotli_cases,
    libdeflate_cases,
    snappy_cases,
    zopfli_cases,
    zstd_cases,
)
from bench.crypto_cases import mbedtls_cases, sodium_cases
from bench.documents import mixed_data
from bench.engine_cases import fftw_cases, lua_cases, pcre2_cases, sqlite_cases
from bench.image_cases import jpeg_cases, png_cases, stb_cases, webp_cases
from bench.inputs import Arrays
from bench.numerics_cases import numerics_cases
from bench.text_cases import cjson_cases, expat_cases, markdown_cases, utf8_cases, yaml_cases
from visget.runtime.library import Library

_MIB = 1 << 20


def xxhash_cases(*, quick: bool) -> list[Case]:
    """Return the cases of xxHash."""
    size = _MIB if quick else 8 * _MIB
    data, small = mixed_data(size), mixed_data(size)[: 256 << 10]

    def case(name: str, values: Any, *seed: int) -> Case:
        length = len(values)
        return Case(
            title=f"{name}, {amount(length)}", amount=length, answer=lambda value: value,
            bind=lambda lib: lambda call=lib[name]: call(values, length, *seed),
        )  # fmt: skip

    return [
        case("XXH32", data, 0), case("XXH64", data, 0), case("XXH3_64bits", data), case("XXH3_64bits", small)
    ]  # fmt: skip


def zlib_cases(*, quick: bool) -> list[Case]:
    """Return the cases of zlib."""
    arrays = Arrays()
    size = _MIB if quick else 8 * _MIB
    large, data = mixed_data(size), mixed_data(size)[: size // 2]
    room = len(data) + len(data) // 8
    packed, held, out = (arrays.empty(count, np.uint8) for count in (room, room, len(data)))
    length = arrays.empty(1, np.uint64)

    def deflate(level: int) -> Case:
        def bind(lib: Library) -> Callable[[], object]:
            def call() -> object:
                length[0] = len(packed)
                return lib.compress2(packed, length, data, len(data), level)

            return call

        return Case(title=f"compress2, level {level}, {amount(len(data))}", amount=len(data), bind=bind,
                    answer=lambda _: packed[: int(length[0])].copy())  # fmt: skip

    def inflate(lib: Library) -> Callable[[], object]:
        length[0] = len(held)
        lib.compress2(held, length, data, len(data), 6)
        source = held[: int(length[0])]

        def call() -> object:
            length[0] = len(out)
            return lib.uncompress(out, length, source, len(source))

        return call

    return [
        *(deflate(level) for level in (1, 6, 9)),
        Case(title=f"uncompress, {amount(len(data))}", amount=len(data), bind=inflate, answer=lambda _: out.copy()),
        *(Case(title=f"{name}, {amount(size)}", amount=size, answer=lambda value: value,
               bind=lambda lib, name=name: lambda call=lib[name]: call(1, large, size))
          for name in ("crc32", "adler32")),
    ]  # fmt: skip


def lz4_cases(*, quick: bool) -> list[Case]:
    """Return the cases of LZ4."""
    arrays = Arrays()
    size = _MIB if quick else 8 * _MIB
    data = mixed_data(size)[: size // 2]
    room = len(data) + len(data) // 8
    packed, held, out = (arrays.empty(count, np.uint8) for count in (room, room, len(data)))

    def inflate(lib: Library) -> Callable[[], object]:
        source = held[: lib.LZ4_compress_default(data, held, len(data), len(held))]
        return lambda: lib.LZ4_decompress_safe(source, out, len(source), len(out))

    def filled(count: Any) -> object:
        return packed[:count].copy()

    return [
        Case(title=f"LZ4_compress_default, {amount(len(data))}", amount=len(data), answer=filled,
             bind=lambda lib: lambda: lib.LZ4_compress_default(data, packed, len(data), len(packed))),
        Case(title=f"LZ4_compress_HC, level 9, {amount(len(data))}", amount=len(data), answer=filled,
             bind=lambda lib: lambda: lib.LZ4_compress_HC(data, packed, len(data), len(packed), 9)),
        Case(title=f"LZ4_decompress_safe, {amount(len(data))}", amount=len(data), bind=inflate,
             answer=lambda _: out.copy()),
    ]  # fmt: skip


def kissfft_cases(*, quick: bool) -> list[Case]:
    """Return the cases of KISS FFT; 4200 = 2^3 * 3 * 5^2 * 7 takes the general butterflies too."""
    arrays, rng = Arrays(), np.random.default_rng(2)

    def plan_memory(points: int) -> tuple[Any, Any]:
        """Return memory that is large enough for a plan, and its size as C wants it."""
        memory = arrays.empty(32 * points + 4096, np.uint8)
        return memory, arrays.copy(np.array([memory.size], np.uint64))

    def complex_case(points: int) -> Case:
        signal = (rng.standard_normal(points) + 1j * rng.standard_normal(points)).astype(np.complex64)
        source, out = arrays.copy(signal), arrays.empty(points, np.complex64)
        memory, size = plan_memory(points)

        def bind(lib: Library) -> Callable[[], object]:
            plan = lib.kiss_fft_alloc(points, 0, memory, size)
            return lambda: lib.kiss_fft(plan, source, out)

        return Case(title=f"kiss_fft, {points} points", bind=bind, answer=lambda _: out.copy(), tolerance=1e-5)

    def real_case(points: int) -> Case:
        source = arrays.copy(rng.standard_normal(points, dtype=np.float32))
        out = arrays.empty(points // 2 + 1, np.complex64)
        memory, size = plan_memory(points)

        def bind(lib: Library) -> Callable[[], object]:
            plan = lib.kiss_fftr_alloc(points, 0, memory, size)
            return lambda: lib.kiss_fftr(plan, source, out)

        return Case(title=f"kiss_fftr, {points} points", bind=bind, answer=lambda _: out.copy(), tolerance=1e-5)

    return [complex_case(4096), complex_case(4200), real_case(8192)]


CASES: Mapping[str, Callable[..., list[Case]]] = {
    "numerics": numerics_cases,
    "xxhash": xxhash_cases,
    "zlib": zlib_cases,
    "lz4": lz4_cases,
    "kissfft": kissfft_cases,
    "brotli": brotli_cases,
    "c-blosc": blosc_cases,
    "cjson": cjson_cases,
    "expat": expat_cases,
    "fftw3": fftw_cases,
    "libdeflate": libdeflate_cases,
    "libjpeg-turbo": jpeg_cases,
    "libpng": png_cases,
    "libsodium": sodium_cases,
    "libwebp": webp_cases,
    "libyaml": yaml_cases,
    "lua": lua_cases,
    "mbedtls": mbedtls_cases,
    "md4c": markdown_cases,
    "pcre2": pcre2_cases,
    "snappy": snappy_cases,
    "sqlite3": sqlite_cases,
    "stb-image": stb_cases,
    "utf8proc": utf8_cases,
    "zopfli": zopfli_cases,
    "zstd": zstd_cases,
}
"""The cases of each library, by name; each takes quick=."""
