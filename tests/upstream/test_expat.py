"""Expat: tests/runtests.c."""

from __future__ import annotations

import re
from pathlib import Path

from upstreamkit import NATIVE, OURS, PASSED, Suite, Workbench, run

CONFIG = "#define BYTEORDER 1234\n#define HAVE_GETRANDOM 1\n#define HAVE_SYS_RANDOM 1\n"
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
INTERNAL = [
    "_INTERNAL_trim_to_complete_utf8_characters", "testingAccountingGetCountBytesDirect",
    "testingAccountingGetCountBytesIndirect", "unsignedCharToPrintable", "XML_ExpatVersionInfo",
]  # fmt: skip
"""What the library does not export comes from upstream's sources; it reads the installed library's parsers."""


def make(workbench: Workbench) -> Suite:
    return workbench.suite(
        "expat", sources=["expat/lib/xml*.c"], exclude=["expat/lib/xmltok_*.c"],
        flags=FLAGS, include=["expat/lib"], files={"expat/lib/expat_config.h": CONFIG},
    )  # fmt: skip


def internals(suite: Suite) -> list[Path]:
    """Return an object that defines nothing but INTERNAL."""
    sources = [f"expat/lib/{name}.c" for name in ("xmlparse", "xmltok", "xmlrole")]
    objects = suite.objects("internal", sources, ["-w", "-O1", *FLAGS, f"-I{suite.tree}/expat/lib"])
    whole = objects[0].with_name("internal.o")
    run(["ld", "-r", *objects, "-o", whole], cwd=suite.tree)
    run(["objcopy", *(f"--keep-global-symbol={name}" for name in INTERNAL), whole], cwd=suite.tree)
    return [whole]


def test_runtests(suite: Suite) -> None:
    found = {}
    for side in (NATIVE, OURS):
        extra = internals(suite) if side == OURS else []
        program = suite.program(side, "runtests", ["expat/tests/runtests.c", *HELPERS], FLAGS, extra)
        done = suite.ran(side, program, "-v", cwd=suite.work / side)
        results = re.findall(r"^(PASS|FAIL): (\w+)", done.stdout, re.MULTILINE)
        number = re.search(r"Checks: (\d+), Failed: (\d+)", done.stdout)
        assert number and int(number[1]) == len(results), done.stdout[-2000:] + done.stderr[-2000:]
        found[side] = {name: PASSED if word == "PASS" else word for word, name in results}
    suite.report("tests/runtests.c", found, expected=300)
    suite.not_run(
        "none of runtests.c, but 5 functions that it calls",
        "4 are internal and one returns a struct; upstream's sources provide them, and they work on the installed "
        "library's data",
    )
    suite.not_run("runtestspp.cpp", "the same tests compiled as C++")
    suite.not_run("xmltest.sh", "the W3C's collection of documents, which is no part of the source package")
