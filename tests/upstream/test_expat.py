"""Expat: tests/runtests.c."""

from __future__ import annotations

import re

from upstreamkit import NATIVE, OURS, PASSED, Suite, Workbench

CONFIG = """
#define BYTEORDER 1234
#define HAVE_GETRANDOM 1
#define XML_NS 1
#define XML_DTD 1
#define XML_CONTEXT_BYTES 1024
#define XML_DEV_URANDOM 1
"""
FLAGS = ["-DHAVE_EXPAT_CONFIG_H"]
HELPERS = [f"expat/tests/{name}.c" for name in ("chardata", "structdata", "memcheck", "minicheck")]


def make(workbench: Workbench) -> Suite:
    return workbench.suite(
        "expat", sources=["expat/lib/xml*.c"], exclude=["expat/lib/xmltok_*.c"],
        flags=FLAGS, include=["expat/lib"], files={"expat/lib/expat_config.h": CONFIG},
    )  # fmt: skip


def test_runtests(suite: Suite) -> None:
    found = {}
    for side in (NATIVE, OURS):
        program = suite.program(side, "runtests", ["expat/tests/runtests.c", *HELPERS], FLAGS)
        done = suite.ran(side, program, "-v", cwd=suite.work / side)
        results = re.findall(r"^(PASS|FAIL): (\w+)", done.stdout, re.MULTILINE)
        number = re.search(r"Checks: (\d+), Failed: (\d+)", done.stdout)
        assert number and int(number[1]) == len(results), done.stdout[-2000:] + done.stderr[-2000:]
        found[side] = {name: PASSED if word == "PASS" else word for word, name in results}
    suite.report("tests/runtests.c", found, expected=300)
    suite.note_taken("internal, but for one that returns a struct; native code, on the installed library's data")
    suite.not_run("runtestspp.cpp", "the same tests compiled as C++")
    suite.not_run("xmltest.sh", "the W3C's collection of documents, which is no part of the source package")
