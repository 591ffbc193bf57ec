"""PCRE2: pcre2test through RunTest, and pcre2grep through RunGrepTest."""

from __future__ import annotations

import os
import re

import pytest
from upstreamkit import FAILED, NATIVE, OURS, PASSED, Suite, Workbench, run

FLAGS = [
    "-DHAVE_CONFIG_H", "-DSUPPORT_PCRE2_8", "-DSUPPORT_UNICODE", "-DHAVE_STRERROR", "-DHAVE_MEMMOVE",
    "-DHAVE_UNISTD_H", "-DHAVE_DIRENT_H", "-DHAVE_SYS_STAT_H", "-DHAVE_SYS_TYPES_H",
]  # fmt: skip
WIDE = [*FLAGS, "-DPCRE2_CODE_UNIT_WIDTH=8"]
NUMBERS = [*range(1, 27), "heap"]


def make(workbench: Workbench) -> Suite:
    suite = workbench.suite(
        "pcre2", sources=["src/pcre2_*.c"],
        exclude=[f"src/pcre2_{name}.c" for name in
                 ("dftables", "fuzzsupport", "jit_match", "jit_misc", "jit_test", "printint", "ucptables")],
        flags=WIDE, include=["src"],
    )  # fmt: skip
    for side in (NATIVE, OURS):
        # The functions of POSIX are a library of their own, on top of this one.
        posix = suite.objects("posix", ["src/pcre2posix.c"], [*WIDE, f"-I{suite.tree}/src", "-w", "-O1"])
        suite.program(side, "pcre2test", ["src/pcre2test.c"], FLAGS, posix)
        suite.program(side, "pcre2grep", ["src/pcre2grep.c"], WIDE)
    return suite


def test_runtest(suite: Suite) -> None:
    found: dict[str, dict[str, str]] = {NATIVE: {}, OURS: {}}
    for side in (NATIVE, OURS):
        environment = {**os.environ, "srcdir": str(suite.tree), "LC_ALL": "C"}
        for number in NUMBERS:
            words = ["sh", suite.tree / "RunTest", "-8", str(number)]
            done = run(words, cwd=suite.work / side, env=environment, check=False)
            if done.returncode:
                print(side, number, done.stdout[-3000:], done.stderr[-1000:])
            why = re.search(r"^ *((?:Skipped|Cannot test).*)$", done.stdout, re.MULTILINE)
            found[side][f"testinput{number}"] = FAILED if done.returncode else why[1] if why else PASSED
    skipped = {name: f"pcre2test: {result}" for name, result in found[NATIVE].items() if result != PASSED}
    suite.report("RunTest -8 (testdata/testinput*)", found, expected=27, known=skipped)
    suite.not_run("tests of JIT and of 16- and 32-bit code units", "the package is the 8-bit library without JIT")


def test_rungreptest(suite: Suite) -> None:
    found = {}
    for side in (NATIVE, OURS):
        environment = {**os.environ, "srcdir": str(suite.tree), "LC_ALL": "C"}
        done = run(["sh", suite.tree / "RunGrepTest"], cwd=suite.work / side, env=environment, check=False)
        # The script stops at the first difference.
        tests = re.findall(r"-- Test ([A-Z]*\d+[a-z]?) -", (suite.tree / "RunGrepTest").read_text(encoding="latin-1"))
        found[side] = dict.fromkeys(tests, PASSED if done.returncode == 0 else FAILED)
        print(side, done.stdout[-2000:], done.stderr[-2000:])
    suite.report("RunGrepTest", found, expected=100)


@pytest.mark.parametrize("words", [["-C"], ["-LM"]])
def test_the_program_says_the_same(suite: Suite, words: list[str]) -> None:
    said = [suite.ran(side, suite.work / side / "pcre2test", *words, cwd=suite.work).stdout for side in (NATIVE, OURS)]
    assert said[0] == said[1] != ""
