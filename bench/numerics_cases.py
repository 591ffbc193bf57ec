"""The functions of examples/numerics, on the sizes of `visget demo`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.case import Case
from bench.inputs import Arrays, mixed
from visget.runtime.library import Library


def numerics_cases(*, quick: bool) -> list[Case]:
    """Return the cases."""
    arrays, rng = Arrays(), np.random.default_rng(1)
    return [
        *_vectors(arrays, rng), _gemm(arrays, rng), _stencil(arrays, rng), _fft(arrays, rng), _crc32(quick=quick)
    ]  # fmt: skip


def _vectors(arrays: Arrays, rng: np.random.Generator) -> list[Case]:
    n = 100_003
    x, y = (arrays.copy(rng.standard_normal(n)) for _ in range(2))
    xf, yf = (arrays.copy(rng.standard_normal(n, dtype=np.float32)) for _ in range(2))
    result = arrays.empty(4, np.float64)

    def summary(lib: Library) -> Callable[[], object]:
        # The struct lies where the array lies, for every build.
        record = lib.num_range.from_buffer(result)
        return lambda: lib.num_summary(n, x, record)

    return [
        Case(title=f"num_saxpy, {n} floats", amount=8 * n, tolerance=1e-6, answer=lambda _: yf.copy(),
             bind=lambda lib: lambda: lib.num_saxpy(n, 0.0, xf, yf)),
        Case(title=f"num_dot, {n} doubles", amount=16 * n, tolerance=1e-12, answer=lambda value: value,
             bind=lambda lib: lambda: lib.num_dot(n, x, y)),
        Case(title=f"num_dotf, {n} floats", amount=8 * n, tolerance=1e-3, answer=lambda value: value,
             bind=lambda lib: lambda: lib.num_dotf(n, xf, yf)),
        Case(title=f"num_summary, {n} doubles", amount=8 * n, tolerance=1e-12, answer=lambda _: result[:3].copy(),
             bind=summary),
    ]  # fmt: skip


def _gemm(arrays: Arrays, rng: np.random.Generator) -> Case:
    m, n, k = 192, 208, 224
    a, b = (arrays.copy(rng.standard_normal(shape, dtype=np.float32)) for shape in ((m, k), (k, n)))
    c = arrays.empty((m, n), np.float32)
    return Case(title=f"num_gemm, {m} x {n} x {k}", tolerance=1e-5, answer=lambda _: c.copy(),
                bind=lambda lib: lambda: lib.num_gemm(m, n, k, 1.0, a, b, 0.0, c))  # fmt: skip


def _stencil(arrays: Arrays, rng: np.random.Generator) -> Case:
    rows, columns = 256, 300
    grid = arrays.copy(rng.standard_normal((rows, columns), dtype=np.float32))
    out = arrays.empty((rows, columns), np.float32)
    return Case(title=f"num_stencil, {rows} x {columns}", tolerance=1e-6, answer=lambda _: out.copy(),
                bind=lambda lib: lambda: lib.num_stencil(rows, columns, 0.5, 0.125, grid, out))  # fmt: skip


def _fft(arrays: Arrays, rng: np.random.Generator) -> Case:
    n = 4096
    re, im = (arrays.copy(rng.standard_normal(n)) for _ in range(2))
    plans = []

    def bind(lib: Library) -> Callable[[], object]:
        plan = lib.num_fft_new(n)
        plans.append(plan)
        forward, inverse = lib.num_direction.NUM_FORWARD, lib.num_direction.NUM_INVERSE

        def call() -> None:
            # There and back: the values stay bounded however often it is repeated.
            lib.num_fft_run(plan, forward, re, im)
            lib.num_fft_run(plan, inverse, re, im)

        return call

    return Case(title=f"num_fft_run, {n} points, both ways", tolerance=1e-9, bind=bind,
                release=lambda lib: lib.num_fft_free(plans.pop()),
                answer=lambda _: np.concatenate([re, im]))  # fmt: skip


def _crc32(*, quick: bool) -> Case:
    size = 1 << 16 if quick else 1 << 18
    data = Arrays().copy(mixed(size))
    return Case(title=f"num_crc32, {size >> 10} KiB", amount=size, answer=lambda value: value,
                bind=lambda lib: lambda: lib.num_crc32(0, data, size))  # fmt: skip
