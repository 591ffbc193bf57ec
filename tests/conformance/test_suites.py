"""Public suites of C programs through ``visget cc``: equal to a native build, or refused; never wrong.

The complete suites take long; every run takes the same forty programs on x86-64 (for others, zig would have to make its
C library first). docs/conformance.md has the table.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import suiterun
from suites import INVALID, all_programs, tcc_programs

from visget.errors import NetworkError, NotFoundError, UnsupportedError

pytestmark = pytest.mark.network

FORTY = (
    "01_comment", "04_for", "07_function", "10_pointer", "13_integer_literals", "15_recursion", "17_enum",
    "18_include", "19_pointer_arithmetic", "21_char_array", "22_floating_point", "24_math_library", "25_quicksort",
    "26_character_constants", "28_strings", "30_hanoi", "31_args", "32_led", "33_ternary_op", "35_sizeof",
    "36_array_initialisers", "37_sprintf", "40_stdio", "42_function_pointer", "45_empty_for", "47_switch_return",
    "52_unnamed_enum", "54_goto", "64_macro_nesting", "70_floating_point_literals", "72_long_long_constant",
    "75_array_in_struct_init", "76_dollars_in_identifiers", "78_vla_label", "83_utf8_in_identifiers",
    "90_struct-init", "91_ptr_longlong_arith32", "94_generic", "97_utf8_string_literal", "93_integer_promotion",
)  # fmt: skip
ARCHITECTURES = [
    "x86_64",
    pytest.param("aarch64", marks=pytest.mark.cross),
    pytest.param("riscv64", marks=pytest.mark.cross),
]
FOREIGN = [pytest.mark.cross, pytest.mark.long]
SHORT = ["x86_64", pytest.param("aarch64", marks=FOREIGN), pytest.param("riscv64", marks=FOREIGN)]
RUNNER = Path(suiterun.__file__)


def _need(arch: str, programs) -> None:
    if arch != "x86_64" and shutil.which(f"qemu-{arch}") is None:
        pytest.skip(f"no qemu-{arch} (Debian: qemu-user)")
    if shutil.which("gcc") is None:
        pytest.skip("no gcc for the reference")
    try:
        programs()
    except (NetworkError, NotFoundError, UnsupportedError) as error:
        pytest.skip(f"the sources cannot be fetched: {error.message}")


def _run(tmp_path: Path, *words: str) -> tuple[list[dict[str, str]], str]:
    results = tmp_path / "results.jsonl"
    done = subprocess.run(
        [sys.executable, str(RUNNER), *words, "--results", str(results)], capture_output=True, text=True, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return [json.loads(line) for line in results.read_text().splitlines()], done.stdout


@pytest.mark.parametrize("arch", SHORT)
def test_forty_programs_do_the_same_as_natively(tmp_path, arch) -> None:
    _need(arch, tcc_programs)
    names = "|".join(FORTY)
    outcomes, said = _run(tmp_path, "--arch", arch, "--suite", "tcc", "--match", f"^({names})$")
    assert len(outcomes) == len(FORTY) == 40
    assert Counter(outcome["kind"] for outcome in outcomes) == {"pass": 40}, said


@pytest.mark.long
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_no_program_of_the_suites_is_wrong(tmp_path, arch) -> None:
    _need(arch, all_programs)
    outcomes, said = _run(tmp_path, "--arch", arch)
    assert len(outcomes) > 2800
    assert [outcome for outcome in outcomes if outcome["kind"] == "wrong"] == [], said
    assert all(outcome["why"] for outcome in outcomes if outcome["kind"] == "refused"), said
    assert sum(outcome["kind"] == "pass" for outcome in outcomes) > 0.85 * len(outcomes), said


def test_programs_that_are_left_out_exist_and_have_a_reason() -> None:
    _need("x86_64", tcc_programs)
    assert all(len(why) > 20 for why in INVALID.values())


def test_the_runner_sees_what_differs_and_what_is_refused(tmp_path) -> None:
    """The runner itself must see a difference (the long double of VIS has 113 bits everywhere) and a refusal."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc for the reference")
    programs = {
        "same": '#include <stdio.h>\nint main(void) { puts("x"); return 0; }\n',
        "other": '#include <float.h>\n#include <stdio.h>\nint main(void) { printf("%d", LDBL_MANT_DIG); return 0; }\n',
        "refused": '#include <stdio.h>\nint main(void) { printf("%Lf", 1.5L); return 0; }\n',
    }
    kinds = {}
    suiterun.prepare(["x86_64"])
    for name, text in programs.items():
        source = tmp_path / f"{name}.c"
        source.write_text(text)
        program = suiterun.Program(suite="own", name=name, sources=(source,))
        (outcome,) = suiterun.run_program(program, ["x86_64"])
        kinds[name] = (outcome.kind, outcome.why)
    assert kinds["same"] == ("pass", "")
    assert kinds["other"] == ("wrong", "other output")
    assert kinds["refused"] == ("refused", "refused.c:2: [VIS-506] in main(): a long double is passed to printf")
