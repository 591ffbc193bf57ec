"""KISS FFT, built from its sources and installed for this machine, against NumPy's transforms in double precision."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from e2ekit import Shelf

from visget.runtime.library import Library

pytestmark = pytest.mark.network

# Powers of two, products of the small factors that have code of their own (2, 3, 4, 5), primes and their products.
SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 25, 30, 31, 32, 45, 60, 97, 100, 121, 128, 210, 257, 360, 1000, 1009,
         1024, 1025, 4096, 4099]  # fmt: skip
LARGE = (1 << 20) + (1 << 18)  # 5 * 2**18 points: 10 MiB


@pytest.fixture(scope="module")
def lib(shelf: Shelf) -> Library:
    return shelf.load("kissfft")


def plan(lib: Library, kind: str, *shape: Any) -> Any:
    made = lib[f"{kind}_alloc"](*shape, None, None)
    assert made
    return made


def complex_noise(shape: Any, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def close(found: np.ndarray, wanted: np.ndarray, limit: float = 2e-6) -> bool:
    """Compare by the root of the mean square, as errors of transforms behave; every value must be near, too."""
    assert found.shape == wanted.shape
    scale = float(np.sqrt(np.mean(np.abs(wanted) ** 2))) or 1.0
    error = np.abs(found.astype(np.complex128) - wanted) / scale
    return bool(np.sqrt(np.mean(error**2)) < limit and error.max() < 20 * limit)


@pytest.mark.parametrize("size", SIZES)
def test_complex_transforms(lib: Library, size: int) -> None:
    data = complex_noise(size, size)
    forward, back = np.empty_like(data), np.empty_like(data)
    lib.kiss_fft(plan(lib, "kiss_fft", size, 0), data, forward)
    assert close(forward, np.fft.fft(data))
    lib.kiss_fft(plan(lib, "kiss_fft", size, 1), data, back)
    assert close(back, np.fft.ifft(data) * size)
    lib.kiss_fft(plan(lib, "kiss_fft", size, 1), forward, back)
    assert close(back / size, data)


def test_a_large_transform(lib: Library) -> None:
    data = complex_noise(LARGE, 1)
    found = np.empty_like(data)
    lib.kiss_fft(plan(lib, "kiss_fft", LARGE, 0), data, found)
    assert close(found, np.fft.fft(data))


def test_in_place_with_a_stride_and_in_memory_of_the_caller(lib: Library) -> None:
    data = complex_noise(300, 2)
    wanted = np.fft.fft(data)
    place = data.copy()
    lib.kiss_fft(plan(lib, "kiss_fft", 300, 0), place, place)
    assert close(place, wanted)

    needed = ctypes.c_ulong(0)
    assert not lib.kiss_fft_alloc(100, 0, None, needed)
    memory = ctypes.create_string_buffer(needed.value)
    too_small = ctypes.c_ulong(needed.value - 1)
    assert not lib.kiss_fft_alloc(100, 0, memory, too_small)
    strided = lib.kiss_fft_alloc(100, 0, memory, needed)
    assert ctypes.cast(strided, ctypes.c_void_p).value == ctypes.addressof(memory)
    found = np.empty(100, np.complex64)
    lib.kiss_fft_stride(strided, data, found, 3)
    assert close(found, np.fft.fft(data[::3]))


@pytest.mark.parametrize("size", [size for size in SIZES if size % 2 == 0] + [2 * 97, 2 * 1009])
def test_real_transforms(lib: Library, size: int) -> None:
    data = np.random.default_rng(size).standard_normal(size, dtype=np.float32)
    spectrum, back = np.empty(size // 2 + 1, np.complex64), np.empty_like(data)
    lib.kiss_fftr(plan(lib, "kiss_fftr", size, 0), data, spectrum)
    wanted = np.fft.rfft(data)
    assert close(spectrum, wanted)
    lib.kiss_fftri(plan(lib, "kiss_fftr", size, 1), wanted.astype(np.complex64), back)
    assert close(back / size, data)


@pytest.mark.parametrize("shape", [(4,), (4, 6), (7, 5), (3, 4, 5), (2, 3, 5, 7), (16, 17, 18), (1, 8, 1)])
def test_transforms_of_more_dimensions(lib: Library, shape: tuple[int, ...]) -> None:
    data, dims = complex_noise(shape, 3), np.array(shape, np.int32)
    found = np.empty_like(data)
    lib.kiss_fftnd(plan(lib, "kiss_fftnd", dims, len(shape), 0), data, found)
    assert close(found, np.fft.fftn(data))
    lib.kiss_fftnd(plan(lib, "kiss_fftnd", dims, len(shape), 1), data, found)
    assert close(found, np.fft.ifftn(data) * data.size)


@pytest.mark.parametrize("shape", [(4, 6), (7, 10), (3, 4, 8), (5, 97, 14)])
def test_real_transforms_of_more_dimensions(lib: Library, shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(4).standard_normal(shape, dtype=np.float32)
    dims = np.array(shape, np.int32)
    wanted = np.fft.rfftn(data)
    spectrum, back = np.empty(wanted.shape, np.complex64), np.empty_like(data)
    lib.kiss_fftndr(plan(lib, "kiss_fftndr", dims, len(shape), 0), data, spectrum)
    assert close(spectrum, wanted)
    lib.kiss_fftndri(plan(lib, "kiss_fftndr", dims, len(shape), 1), spectrum, back)
    assert close(back / data.size, data)


def test_plans_from_the_librarys_own_cache(lib: Library) -> None:
    """kfc_fft() keeps plans in a static list: state inside the library."""
    for size in (10, 97, 10, 64, 97):
        data = complex_noise(size, 5)
        found = np.empty_like(data)
        lib.kfc_fft(size, data, found)
        assert close(found, np.fft.fft(data))
        lib.kfc_ifft(size, data, found)
        assert close(found, np.fft.ifft(data) * size)
    lib.kfc_cleanup()


def test_next_fast_size(lib: Library) -> None:
    def fast(n: int) -> bool:
        for factor in (2, 3, 5):
            while n % factor == 0:
                n //= factor
        return n == 1

    for n in [*range(1, 300), 1025, 100_003]:
        assert lib.kiss_fft_next_fast_size(n) == next(m for m in range(n, 2 * n + 1) if fast(m))


def test_complaints_go_to_the_programs_stderr(lib: Library, capfd: pytest.CaptureFixture[str]) -> None:
    """`stderr` is data of the C library that the package imports, not a function."""
    assert not lib.kiss_fftr_alloc(15, 0, None, None)
    assert "Real FFT optimization must be even" in capfd.readouterr().err


def test_wrong_arrays_are_refused_before_the_library_sees_them(lib: Library) -> None:
    made = plan(lib, "kiss_fft", 8, 0)
    good = complex_noise(8, 6)
    for bad in (good.astype(np.complex128), complex_noise(16, 6)[::2], good.tolist()):
        with pytest.raises(TypeError, match=r"argument 2 \(fin\)"):
            lib.kiss_fft(made, bad, np.empty_like(good))
    fixed = np.empty_like(good)
    fixed.flags.writeable = False
    with pytest.raises(TypeError, match=r"argument 3 \(fout\).*read-only"):
        lib.kiss_fft(made, good, fixed)
    with pytest.raises(TypeError, match=r"argument 1 \(cfg\)"):
        lib.kiss_fft(plan(lib, "kiss_fftr", 8, 0), good, np.empty_like(good))
