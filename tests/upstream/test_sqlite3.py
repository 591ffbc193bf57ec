"""SQLite: speedtest1, kvtest, fuzzcheck, threadtest4 and scripts of test/*.test.

Upstream's testfixture is SQLite's own sources with switches for tests inside, so it cannot be linked with an installed
library. The scripts run in tclsh instead, with upstream's Tcl interface on the library (sqlite_harness.tcl).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from upstreamkit import CC, FAILED, NATIVE, OURS, PASSED, QUIET, Suite, Workbench, compile_all, run

HERE = Path(__file__).parent
FLAGS = [
    "-DSQLITE_THREADSAFE=1", "-DNDEBUG", "-DSQLITE_OMIT_LOAD_EXTENSION=1", "-DSQLITE_ENABLE_MATH_FUNCTIONS",
    "-DSQLITE_ENABLE_FTS5", "-DSQLITE_ENABLE_RTREE",
]  # fmt: skip
CONFIGURED = ["-fPIC", "-D_HAVE_SQLITE_CONFIG_H", *FLAGS]
SCRIPTS = HERE / "sqlite_scripts.txt"
"""Scripts of which every test passes without testfixture."""


def amalgamate(tree: Path) -> None:
    """Make sqlite3.c."""
    run(["sh", "configure", "--disable-shared", "--disable-tcl", "--disable-readline"], cwd=tree)
    run(["make", "sqlite3.c"], cwd=tree)


def make(workbench: Workbench) -> Suite:
    if shutil.which("tclsh") is None or not Path("/usr/include/tcl8.6/tcl.h").exists():
        pytest.skip("needs Tcl 8.6 with its headers")
    return workbench.suite("sqlite3", prepare=amalgamate, sources=["sqlite3.c"], flags=CONFIGURED, include=["."])


def said(suite: Suite, name: str, *runs: list[str], pattern: str) -> dict[str, dict[str, str]]:
    """Run a program of test/ with different words; a run passes when it succeeds and its output has the pattern."""
    found: dict[str, dict[str, str]] = {NATIVE: {}, OURS: {}}
    for side in (NATIVE, OURS):
        program = suite.program(side, name, [f"test/{name}.c"], FLAGS, libraries=("-lm", "-lpthread", "-ldl"))
        place = suite.work / side / f"{name}.run"
        place.mkdir()
        for words in runs:
            done = suite.ran(side, program, *words, cwd=place)
            match = re.search(pattern, done.stdout)
            right = done.returncode == 0 and match is not None
            # What the pattern's groups match has to be the same on both sides.
            kept = " ".join(match.groups()) if match else ""
            found[side][f"{' '.join(words).replace(str(suite.tree), '')} {kept}".strip()] = PASSED if right else FAILED
            if not right:
                print(side, words, done.returncode, done.stdout[-1500:], done.stderr[-1500:])
    return found


def test_speedtest1(suite: Suite) -> None:
    runs = [["--memdb", "--verify", "--size", "3", "--testset", name] for name in ("main", "cte", "fp", "rtree", "orm")]
    runs.append(["--verify", "--size", "2", "--journal", "wal", "t.db"])
    suite.report(
        "test/speedtest1.c --verify", said(suite, "speedtest1", *runs, pattern=r"(Verification Hash: \S+ \S+)")
    )


def test_kvtest(suite: Suite) -> None:
    runs = [["init", "x.db", "--count", "500", "--size", "9000"], ["run", "x.db", "--count", "2000", "--blob-api"],
            ["run", "x.db", "--count", "2000", "--random"], ["run", "x.db", "--count", "500", "--update"]]  # fmt: skip
    suite.report("test/kvtest.c", said(suite, "kvtest", *runs, pattern="."))


def test_threads(suite: Suite) -> None:
    runs = [["4"], ["-wal", "4"], ["-serialized", "4"]]
    suite.report("test/threadtest4.c", said(suite, "threadtest4", *runs, pattern="."))


def test_fuzzcheck(suite: Suite) -> None:
    found = {}
    for side in (NATIVE, OURS):
        sources = ["test/fuzzcheck.c", "test/ossfuzz.c", "test/fuzzinvariants.c", "ext/recover/dbdata.c",
                   "ext/recover/sqlite3recover.c", "test/vt02.c"]  # fmt: skip
        flags = [*FLAGS, "-DSQLITE_ENABLE_MEMSYS5", "-DSQLITE_OSS_FUZZ", "-DSQLITE_CORE", f"-I{suite.tree}/ext/recover"]
        program = suite.program(side, "fuzzcheck", sources, flags, libraries=("-lm", "-lpthread", "-ldl"))
        found[side] = {}
        for number in (3, 5, 6):
            done = suite.ran(side, program, suite.tree / f"test/fuzzdata{number}.db", cwd=suite.work / side)
            match = re.search(r"fuzzcheck: 0 errors out of (\d+) tests", done.stdout)
            name = f"fuzzdata{number}.db {match[1] if match else ''}"
            found[side][name] = PASSED if match and done.returncode == 0 else FAILED
            if not match:
                print(side, name, done.returncode, done.stdout[-1500:], done.stderr[-1500:])
    suite.report("test/fuzzcheck.c", found, expected=3)


def test_scripts(suite: Suite) -> None:
    tests = suite.tree / "test"
    found: dict[str, dict[str, str]] = {NATIVE: {}, OURS: {}}
    for side in (NATIVE, OURS):
        chosen = suite.sides[side]
        place = suite.work / side / "scripts"
        place.mkdir()
        flags = [*QUIET, "-fPIC", *chosen.flags, "-I/usr/include/tcl8.6", '-DPACKAGE_NAME="sqlite3"',
                 '-DPACKAGE_VERSION="3.40.1"', *FLAGS]  # fmt: skip
        objects = compile_all(suite.tree, ["src/tclsqlite.c"], place, flags)
        objects += suite.rest(objects, place) if side == OURS else []
        library = place / "libtclsqlite.so"
        run([CC, "-shared", *objects, *chosen.libraries, "-ltcl8.6", "-lm", "-o", library], cwd=place)
        for name in SCRIPTS.read_text(encoding="utf-8").split():
            work = place / name
            work.mkdir()
            words = [HERE / "sqlite_harness.tcl", library, tests, tests / f"{name}.test"]
            done = suite.ran(side, Path("tclsh"), *words, cwd=work)
            for test in re.findall(r"^(\S+)\.\.\. Ok$", done.stdout, re.MULTILINE):
                found[side][f"{name}: {test}"] = PASSED
            for test in re.findall(r"^! (\S+) expected", done.stdout, re.MULTILINE):
                found[side][f"{name}: {test}"] = FAILED
            if " errors out of" not in done.stdout:
                found[side][f"{name}: the whole script"] = FAILED
                print(side, name, done.stdout[-1000:], done.stderr[-1000:])
            shutil.rmtree(work)
    suite.report("test/*.test, the scripts of tests/upstream/sqlite_scripts.txt", found, expected=5000)
    suite.note_taken("variable arguments are not exported; native code, on the installed library's data")
    suite.not_run("the other scripts of test/", "they call what only testfixture has: SQLite with its tests inside")
    suite.not_run("the other fuzzdata*.db", "they take minutes each")
