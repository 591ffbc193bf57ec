"""The example library, compiled by the system's C compiler: each function against NumPy or zlib, at awkward sizes."""

import ctypes
import subprocess
import zlib
from pathlib import Path

import pytest
from runtimekit import CC, needs_cc

from visget.toolchain.project import read_project

pytestmark = needs_cc
numpy = pytest.importorskip("numpy")

SOURCES = Path(__file__).resolve().parents[2] / "examples" / "numerics"
P, N, F, D = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_float, ctypes.c_double
TYPES = {
    "num_saxpy": (None, [N, F, P, P]),
    "num_dot": (D, [N, P, P]),
    "num_dotf": (F, [N, P, P]),
    "num_summary": (None, [N, P, P]),
    "num_gemm": (ctypes.c_int, [N, N, N, F, P, P, F, P]),
    "num_stencil": (None, [N, N, F, F, P, P]),
    "num_fft_new": (P, [N]),
    "num_fft_run": (None, [P, ctypes.c_int, P, P]),
    "num_fft_free": (None, [P]),
    "num_crc32": (ctypes.c_uint32, [ctypes.c_uint32, ctypes.c_char_p, N]),
}
SIZES = [0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 1000, 4097]


@pytest.fixture(scope="module")
def lib(tmp_path_factory):
    output = tmp_path_factory.mktemp("numerics") / "libnumerics.so"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([CC, *flags, *map(str, sorted(SOURCES.glob("*.c"))), "-o", str(output), "-lm"], check=True)
    made = ctypes.CDLL(str(output))
    for name, (result, parameters) in TYPES.items():
        getattr(made, name).restype, getattr(made, name).argtypes = result, parameters
    return made


@pytest.fixture
def rng():
    return numpy.random.default_rng(1)


def at(array):
    return array.ctypes.data


@pytest.mark.parametrize("n", SIZES)
def test_vectors(lib, rng, n):
    x, y = rng.normal(size=n), rng.normal(size=n)
    scale = max(1.0, float(numpy.abs(x) @ numpy.abs(y)))
    assert lib.num_dot(n, at(x), at(y)) == pytest.approx(x @ y, abs=1e-13 * scale)
    xf, yf = x.astype("f4"), y.astype("f4")
    assert lib.num_dotf(n, at(xf), at(yf)) == pytest.approx(xf.astype("f8") @ yf.astype("f8"), abs=1e-6 * scale)
    result = yf.copy()
    lib.num_saxpy(n, 2.5, at(xf), at(result))
    assert numpy.allclose(result, yf + numpy.float32(2.5) * xf, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", SIZES)
def test_summary(lib, rng, n):
    x, out = rng.normal(size=n), numpy.zeros(4)
    lib.num_summary(n, at(x), at(out))
    assert out[3:].view("u8")[0] == n
    if n == 0:
        assert out[:3].tolist() == [numpy.inf, -numpy.inf, 0]
    else:
        assert out[:2].tolist() == [x.min(), x.max()]
        assert out[2] == pytest.approx(x.mean(), abs=1e-14)
        x[n // 2] = numpy.nan
        lib.num_summary(n, at(x), at(out))
        assert numpy.isnan(out[2])
        assert not numpy.isnan(out[:2]).any()


@pytest.mark.parametrize("m, n, k", [(0, 3, 2), (3, 0, 1), (3, 4, 0), (1, 1, 1), (5, 7, 3), (6, 16, 256), (7, 17, 257),
                                     (97, 33, 300), (12, 1025, 5), (193, 2, 9)])  # fmt: skip
@pytest.mark.parametrize("beta", [0.0, 1.0, 0.5])
def test_gemm(lib, rng, m, n, k, beta):
    a, b, c = (rng.normal(size=shape).astype("f4") for shape in ((m, k), (k, n), (m, n)))
    expected = 0.75 * (a.astype("f8") @ b.astype("f8")) + (beta * c if beta else 0)
    allowed = 1e-5 * (numpy.abs(a).astype("f8") @ numpy.abs(b).astype("f8") + 1)
    if beta == 0:
        c[...] = numpy.nan
    assert lib.num_gemm(m, n, k, 0.75, at(a), at(b), beta, at(c)) == 0
    assert (numpy.abs(c - expected) <= allowed).all()


@pytest.mark.parametrize("rows, columns", [(0, 0), (0, 5), (5, 0), (1, 5), (5, 1), (2, 2), (3, 2), (3, 3), (5, 67)])
def test_stencil(lib, rng, rows, columns):
    before = rng.normal(size=(rows, columns)).astype("f4")
    after, expected = numpy.full_like(before, numpy.nan), before.copy()
    if rows > 2 and columns > 2:
        sides = before[:-2, 1:-1] + before[2:, 1:-1] + before[1:-1, :-2] + before[1:-1, 2:]
        expected[1:-1, 1:-1] = 0.5 * before[1:-1, 1:-1] + 0.125 * sides
    lib.num_stencil(rows, columns, 0.5, 0.125, at(before), at(after))
    assert numpy.allclose(after, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("power", range(15))
def test_fft_there_and_back(lib, rng, power):
    n = 2**power
    z = rng.normal(size=n) + 1j * rng.normal(size=n)
    re, im = z.real.copy(), z.imag.copy()
    plan = lib.num_fft_new(n)
    assert plan
    for _ in range(2):
        lib.num_fft_run(plan, 0, at(re), at(im))
        assert numpy.abs(re + 1j * im - numpy.fft.fft(z)).max() <= 1e-14 * n + 1e-14
        lib.num_fft_run(plan, 1, at(re), at(im))
        assert numpy.abs(re + 1j * im - z).max() <= 1e-14
    lib.num_fft_free(plan)


def test_fft_refuses_other_lengths(lib):
    for n in (0, 3, 12, 2**25, 2**63, 2**64 - 1):
        assert not lib.num_fft_new(n)
    lib.num_fft_free(None)


@pytest.mark.parametrize("n", [*range(50), 255, 256, 1000, 4097, 5_000_000])
def test_crc32(lib, rng, n):
    data = rng.integers(0, 256, n, dtype="u1").tobytes()
    assert lib.num_crc32(0, data, n) == zlib.crc32(data)
    assert lib.num_crc32(0xDEADBEEF, data, n) == zlib.crc32(data, 0xDEADBEEF)
    half = n // 2
    assert lib.num_crc32(lib.num_crc32(0, data, half), data[half:], n - half) == zlib.crc32(data)


def test_the_project_file_covers_every_function():
    project = read_project(SOURCES)
    called = {step.call for vector in project.vectors.vectors for step in vector.steps}
    assert called == set(TYPES)
