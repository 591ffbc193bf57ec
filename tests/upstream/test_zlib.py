"""zlib: test/example.c, test/minigzip.c and test/infcover.c."""

from __future__ import annotations

import gzip
import re

from upstreamkit import FAILED, NATIVE, OURS, PASSED, Suite, Workbench

QUICK = True
GZIP = ["gzlib.c", "gzread.c", "gzwrite.c", "gzclose.c"]
"""The package is without the functions on files; the programs that need them get upstream's sources of these."""
UNIX = ["-DHAVE_UNISTD_H", "-D_LARGEFILE64_SOURCE=1"]


def make(workbench: Workbench) -> Suite:
    return workbench.suite("zlib", sources=["*.c"], exclude=["gz*.c"], flags=["-DHAVE_HIDDEN", *UNIX], include=["."])


def lines(text: str) -> dict[str, str]:
    """Count the lines of a program that says what it tests."""
    return {f"{number}: {line}": PASSED for number, line in enumerate(text.splitlines())}


def test_example(suite: Suite) -> None:
    found = {}
    for side in (NATIVE, OURS):
        program = suite.program(side, "example", ["test/example.c", *GZIP], UNIX)
        done = suite.ran(side, program, cwd=suite.work / side)
        assert done.returncode == 0, done.stderr
        found[side] = lines(done.stdout)
    assert any("inflateSync" in name for name in found[OURS])
    suite.report("test/example.c", found, expected=8)


def test_infcover(suite: Suite) -> None:
    found = {}
    for side in (NATIVE, OURS):
        # inflate_table() is internal; the test calls it itself once.
        program = suite.program(side, "infcover", ["test/infcover.c", "inftrees.c"], UNIX)
        done = suite.ran(side, program, cwd=suite.work / side)
        assert done.returncode == 0, done.stderr
        found[side] = lines(re.sub(r"allocated high water mark.*\n", "\n", done.stderr))
    suite.report("test/infcover.c", found, expected=20)
    suite.not_run("none of infcover.c, but inflate_table()", "the internal function comes from upstream's inftrees.c")


def test_minigzip(suite: Suite) -> None:
    found: dict[str, dict[str, str]] = {NATIVE: {}, OURS: {}}
    packed = {}
    for side in (NATIVE, OURS):
        program = suite.program(side, "minigzip", ["test/minigzip.c", *GZIP], UNIX)
        for level in ("-1", "-6", "-9", "-h", "-r"):
            file = suite.work / side / f"text{level}"
            file.write_bytes((suite.tree / "ChangeLog").read_bytes())
            assert suite.ran(side, program, level, file, cwd=suite.work / side).returncode == 0
            packed[side, level] = file.with_name(file.name + ".gz").read_bytes()
            right = gzip.decompress(packed[side, level]) == (suite.tree / "ChangeLog").read_bytes()
            done = suite.ran(side, program, "-d", file.with_name(file.name + ".gz"), cwd=suite.work / side)
            assert done.returncode == 0, done.stderr
            right = right and file.read_bytes() == (suite.tree / "ChangeLog").read_bytes()
            found[side][f"minigzip {level}"] = PASSED if right else FAILED
    for level in ("-1", "-6", "-9", "-h", "-r"):
        assert packed[NATIVE, level] == packed[OURS, level]
    suite.report("test/minigzip.c", found, expected=5)
