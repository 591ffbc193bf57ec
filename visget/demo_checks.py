"""The checks of ``visget demo``: every function of examples/numerics against NumPy or zlib.

Invariant: each case holds its own input and output arrays, so that its call can be repeated and timed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from visget.runtime.library import Library


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One function on one input."""

    function: str
    """Name and size, for people."""
    against: str
    """The reference."""
    call: Callable[[], object]
    """One call; may be repeated."""
    renew: Callable[[], None] = lambda: None
    """Make what the call works with anew, before each round: where memory happens to lie is part of the time."""
    check: Callable[[], tuple[str, bool]]
    """Call it once on fresh input: how far it is from the reference, and whether that is right."""


def cases(library: Library) -> Iterator[Case]:
    """Yield the cases for one loaded artifact; the same inputs for every artifact."""
    rng = np.random.default_rng(20260101)
    yield _saxpy(library, rng)
    yield _dot(library, rng)
    yield _dotf(library, rng)
    yield _summary(library, rng)
    yield _gemm(library, rng)
    yield _stencil(library, rng)
    yield _fft(library, rng)
    yield _crc32(library, rng)


def _close(found: Any, wanted: Any, limit: float) -> tuple[str, bool]:
    """Return the largest error relative to the reference's largest value, and whether it is within `limit`."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if not np.isfinite(found).all():
        return "not finite", False
    scale = float(np.max(np.abs(wanted))) or 1.0
    error = float(np.max(np.abs(found - wanted))) / scale
    return (f"{error:.1e}" if error else "equal"), error <= limit


def _saxpy(lib: Library, rng: np.random.Generator) -> Case:
    n = 100_000
    x, y = rng.standard_normal(n, dtype=np.float32), rng.standard_normal(n, dtype=np.float32)
    work = y.copy()

    def check() -> tuple[str, bool]:
        out = y.copy()
        lib.num_saxpy(n, 0.5, x, out)
        return _close(out, 0.5 * x.astype(np.float64) + y, 1e-6)

    return Case(function=f"num_saxpy {n}", against="NumPy", check=check,
                call=lambda: lib.num_saxpy(n, 1e-9, x, work))  # fmt: skip


def _dot(lib: Library, rng: np.random.Generator) -> Case:
    n = 100_003
    x, y = rng.standard_normal(n), rng.standard_normal(n)
    return Case(function=f"num_dot {n}", against="NumPy", call=lambda: lib.num_dot(n, x, y),
                check=lambda: _close(lib.num_dot(n, x, y), np.dot(x, y), 1e-11))  # fmt: skip


def _dotf(lib: Library, rng: np.random.Generator) -> Case:
    n = 100_003
    x, y = rng.standard_normal(n, dtype=np.float32), rng.standard_normal(n, dtype=np.float32)
    wanted = np.dot(x.astype(np.float64), y.astype(np.float64))
    return Case(function=f"num_dotf {n}", against="NumPy", call=lambda: lib.num_dotf(n, x, y),
                check=lambda: _close(lib.num_dotf(n, x, y), wanted, 1e-4))  # fmt: skip


def _summary(lib: Library, rng: np.random.Generator) -> Case:
    n = 100_001
    x = rng.standard_normal(n)
    result = lib.num_range()

    def check() -> tuple[str, bool]:
        lib.num_summary(n, x, result)
        found = (result.low, result.high, result.mean)
        error, right = _close(found, (x.min(), x.max(), x.mean()), 1e-13)
        return error, right and result.count == n

    return Case(function=f"num_summary {n}", against="NumPy", check=check, call=lambda: lib.num_summary(n, x, result))


def _gemm(lib: Library, rng: np.random.Generator) -> Case:
    m, n, k = 192, 208, 224
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    c = rng.standard_normal((m, n), dtype=np.float32)
    work = c.copy()

    def check() -> tuple[str, bool]:
        out = c.copy()
        status = lib.num_gemm(m, n, k, 1.5, a, b, -0.5, out)
        error, right = _close(out, 1.5 * (a.astype(np.float64) @ b) - 0.5 * c, 1e-5)
        return error, right and status == 0

    return Case(function=f"num_gemm {m}x{n}x{k}", against="NumPy", check=check,
                call=lambda: lib.num_gemm(m, n, k, 1.0, a, b, 0.0, work))  # fmt: skip


def _stencil(lib: Library, rng: np.random.Generator) -> Case:
    rows, columns = 256, 300
    grid = rng.standard_normal((rows, columns), dtype=np.float32)
    out = np.empty_like(grid)

    def check() -> tuple[str, bool]:
        out.fill(np.nan)
        lib.num_stencil(rows, columns, 0.5, 0.125, grid, out)
        wide = grid.astype(np.float64)
        wanted = wide.copy()
        wanted[1:-1, 1:-1] = 0.5 * wide[1:-1, 1:-1] + 0.125 * (
            wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        )
        return _close(out, wanted, 1e-6)

    return Case(function=f"num_stencil {rows}x{columns}", against="NumPy", check=check,
                call=lambda: lib.num_stencil(rows, columns, 0.5, 0.125, grid, out))  # fmt: skip


def _fft(lib: Library, rng: np.random.Generator) -> Case:
    n = 4096
    signal = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    plans = [lib.num_fft_new(n)]
    forward, inverse = lib.num_direction.NUM_FORWARD, lib.num_direction.NUM_INVERSE
    re, im = signal.real.copy(), signal.imag.copy()

    def check() -> tuple[str, bool]:
        real, imaginary = signal.real.copy(), signal.imag.copy()
        lib.num_fft_run(plans[-1], forward, real, imaginary)
        error, right = _close(real + 1j * imaginary, np.fft.fft(signal), 1e-13)
        lib.num_fft_run(plans[-1], inverse, real, imaginary)
        return error, right and _close(real + 1j * imaginary, signal, 1e-13)[1]

    def call() -> None:
        # There and back: the values stay bounded however often it is repeated.
        lib.num_fft_run(plans[-1], forward, re, im)
        lib.num_fft_run(plans[-1], inverse, re, im)

    def renew() -> None:
        lib.num_fft_free(plans.pop())
        plans.append(lib.num_fft_new(n))

    return Case(function=f"num_fft_run {n} (both ways)", against="NumPy", check=check, call=call, renew=renew)


def _crc32(lib: Library, rng: np.random.Generator) -> Case:
    data = rng.bytes(1 << 18)

    def check() -> tuple[str, bool]:
        right = all(
            lib.num_crc32(zlib.crc32(b"start"), part, len(part)) == zlib.crc32(part, zlib.crc32(b"start"))
            for part in (b"", b"x", data[:1000], data)
        )
        return ("equal" if right else "different"), right

    return Case(function=f"num_crc32 {len(data)}", against="zlib", check=check,
                call=lambda: lib.num_crc32(0, data, len(data)))  # fmt: skip
