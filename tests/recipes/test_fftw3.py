"""FFTW against NumPy and the distribution's build, on every machine."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from machines import Machine

RECIPE = "fftw3"
DISTRIBUTION = ("libfftw3.so.3",)
FORWARD, BACKWARD = -1, 1
ESTIMATE = 1 << 6


def signal(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(count)


def transform(machine: Machine, values: np.ndarray, sign: int, flags: int = ESTIMATE) -> np.ndarray:
    size = values.size
    given, made = machine.buffer(16 * size), machine.buffer(16 * size)
    plan = machine.fftw_plan_dft(values.ndim, struct.pack(f"<{values.ndim}i", *values.shape), given, made, sign, flags)
    assert plan
    given.write(values.astype(complex).tobytes())
    machine.fftw_execute(plan)
    found = np.frombuffer(made.read(), complex).reshape(values.shape)
    machine.fftw_destroy_plan(plan)
    for memory in (given, made):
        machine.free(memory.address)
    return found


def near(one: np.ndarray, two: np.ndarray) -> bool:
    return bool(np.abs(one - two).max() <= 1e-14 * max(1.0, np.abs(two).max()) * np.log2(two.size + 2))


@pytest.mark.parametrize(
    "size", [1, 2, 3, 4, 5, 8, 13, 16, 30, 64, 97, 100, 128, 210, 256, 625, 1000, 1024, 1009, 4096]
)
def test_complex_of_every_kind_of_size(machine: Machine, size: int) -> None:
    values = signal(size, size) + 1j * signal(size, size + 1)
    assert near(transform(machine, values, FORWARD), np.fft.fft(values))
    assert near(transform(machine, values, BACKWARD), np.fft.ifft(values) * size)


@pytest.mark.parametrize("shape", [(4, 6), (16, 16), (7, 11), (3, 4, 5), (2, 3, 2, 5)])
def test_more_dimensions(machine: Machine, shape: tuple[int, ...]) -> None:
    values = (signal(int(np.prod(shape)), 3) + 1j * signal(int(np.prod(shape)), 4)).reshape(shape)
    assert near(transform(machine, values, FORWARD), np.fft.fftn(values))


@pytest.mark.parametrize("size", [2, 7, 10, 48, 101, 512])
def test_real(machine: Machine, size: int) -> None:
    values = signal(size, size)
    given, made = machine.buffer(8 * size), machine.buffer(16 * (size // 2 + 1))
    forward = machine.fftw_plan_dft_r2c_1d(size, given, made, ESTIMATE)
    back = machine.fftw_plan_dft_c2r_1d(size, made, given, ESTIMATE)
    given.write(values.tobytes())
    machine.fftw_execute(forward)
    assert near(np.frombuffer(made.read(), complex), np.fft.rfft(values))
    machine.fftw_execute(back)
    assert near(np.frombuffer(given.read(), float) / size, values)


@pytest.mark.parametrize("kind", range(3, 11))
def test_cosines_and_sines_as_the_distribution(machine: Machine, theirs: Machine, kind: int) -> None:
    size = 60
    results = []
    for m in (machine, theirs):
        given, made = m.buffer(8 * size), m.buffer(8 * size)
        plan = m.fftw_plan_r2r_1d(size, given, made, kind, ESTIMATE)
        given.write(signal(size, 5).tobytes())
        m.fftw_execute(plan)
        results.append(np.frombuffer(made.read(), float))
    assert near(results[0], results[1])


def test_many_at_once(machine: Machine) -> None:
    values = (signal(8 * 50, 6) + 1j * signal(8 * 50, 7)).reshape(8, 50)
    given, made = machine.buffer(values.nbytes), machine.buffer(values.nbytes)
    plan = machine.fftw_plan_many_dft(
        1, struct.pack("<i", 50), 8, given, None, 1, 50, made, None, 1, 50, FORWARD, ESTIMATE
    )
    given.write(values.tobytes())
    machine.fftw_execute(plan)
    assert near(np.frombuffer(made.read(), complex).reshape(8, 50), np.fft.fft(values, axis=1))


def test_wisdom(machine: Machine) -> None:
    """Plans as text: they go out, are forgotten, and come back."""
    transform(machine, signal(60, 1).astype(complex), FORWARD, 0)
    text = machine.fftw_export_wisdom_to_string()
    wisdom = machine.text(text)
    assert wisdom.startswith(b"(fftw-3.3.10 fftw_wisdom")
    machine.fftw_forget_wisdom()
    assert machine.fftw_import_wisdom_from_string(wisdom) == 1
    assert machine.fftw_import_wisdom_from_string(b"nonsense") == 0
    assert near(transform(machine, signal(60, 2), FORWARD, 1 << 21), np.fft.fft(signal(60, 2)))


def test_what_it_refuses(machine: Machine) -> None:
    memory = machine.buffer(64)
    assert not machine.fftw_plan_dft_1d(-1, memory, memory, FORWARD, ESTIMATE)
    assert not machine.fftw_plan_dft_1d(44_000, memory, memory, FORWARD, 1 << 21)  # wisdom only, and there is none
