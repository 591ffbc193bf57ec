"""Zopfli against Python's zlib, the Python package zopfli and the distribution's build, on every machine."""

from __future__ import annotations

import zlib

import pytest
from e2ekit import noise, prose
from machines import Machine

RECIPE = "zopfli"
DISTRIBUTION = ("libzopfli.so.1",)
INPUTS = {
    "empty": b"", "one byte": b"x", "zeros": bytes(3000), "noise": noise(1500, 1), "prose": prose(12_000, 2),
    "ramp": bytes(range(256)) * 20,
}  # fmt: skip
KINDS = {"ZOPFLI_FORMAT_GZIP": 31, "ZOPFLI_FORMAT_ZLIB": 15, "ZOPFLI_FORMAT_DEFLATE": -15}


def compress(machine: Machine, data: bytes, kind: str = "ZOPFLI_FORMAT_ZLIB", iterations: int = 5) -> bytes:
    options = machine.struct("ZopfliOptions")
    machine.ZopfliInitOptions(options)
    assert (options["numiterations"], options["blocksplitting"], options["blocksplittingmax"]) == (15, 1, 15)
    options["numiterations"] = iterations
    out, size = machine.buffer(8), machine.buffer(8)
    machine.ZopfliCompress(options, getattr(machine, kind), data, len(data), out, size)
    packed = machine.read(out.u64(), size.u64())
    machine.free(out.u64())
    return packed


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_can_be_read(machine: Machine, name: str, kind: str) -> None:
    data = INPUTS[name]
    packed = compress(machine, data, kind)
    assert zlib.decompress(packed, KINDS[kind]) == data
    if kind == "ZOPFLI_FORMAT_ZLIB":
        assert len(packed) <= len(zlib.compress(data, 9))


def test_the_same_bytes_as_the_python_package(machine: Machine) -> None:
    zopfli = pytest.importorskip("zopfli.zlib")
    for data in INPUTS.values():
        assert compress(machine, data) == zopfli.compress(data, numiterations=5)


@pytest.mark.parametrize("iterations", [1, 15])
def test_the_same_bytes_as_the_distribution(machine: Machine, theirs: Machine, iterations: int) -> None:
    """Its optimum is found by comparing real numbers, so it is a test of arithmetic too."""
    for data in INPUTS.values():
        assert compress(machine, data, iterations=iterations) == compress(theirs, data, iterations=iterations)
