"""The first of the two runs of the optimiser leaves loops to the second, on every architecture.

It is there to simplify; a loop that it unrolled in part would be vectorised badly and grow. (What it gains shows only
in real libraries: bench/ measures it.)
"""

from __future__ import annotations

from pathlib import Path

import pytest
from neutral import native_object, neutral_ir

from visget.installer import codegen

LOOPS = """
void saxpy(unsigned long n, float a, const float *restrict x, float *restrict y)
{
    for (unsigned long i = 0; i < n; i++)
        y[i] += a * x[i];
}
unsigned sum(unsigned long n, const unsigned *x)
{
    unsigned total = 0;
    for (unsigned long i = 0; i < n; i++)
        total += x[i] ^ (x[i] >> 3);
    return total;
}
int longest(unsigned long n, const signed char *x)
{
    int best = 0, run = 0;
    for (unsigned long i = 0; i < n; i++) {
        run = x[i] > 0 ? run + 1 : 0;
        best = run > best ? run : best;
    }
    return best;
}
"""
PROCESSORS = {"x86_64": "skylake-avx512", "aarch64": "neoverse-n1", "riscv64": "sifive-u74"}


@pytest.mark.parametrize("arch", PROCESSORS)
def test_the_first_run_unrolls_no_loop_in_part(
    arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = neutral_ir(LOOPS, tmp_path)
    both = len(native_object(text, arch, cpu=PROCESSORS[arch]))
    monkeypatch.setattr(codegen, "_simplify", lambda module, machine: None)
    alone = len(native_object(text, arch, cpu=PROCESSORS[arch]))
    assert both <= alone * 1.05


def test_level_1_has_no_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = neutral_ir(LOOPS, tmp_path)
    monkeypatch.setattr(codegen, "_simplify", lambda module, machine: pytest.fail("a first run at level 1"))
    assert native_object(text, "x86_64", level=1).startswith(b"\x7fELF")
