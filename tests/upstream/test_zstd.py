"""Zstandard: fuzzer, zstreamtest and smaller programs of tests/, and the program zstd on the golden files.

Most of them call the experimental functions, which upstream's shared library exports and the recipe's package does not;
and its threads; so they run against a variant of the package that has both.
"""

from __future__ import annotations

import re

from upstreamkit import FAILED, NATIVE, OURS, PASSED, Suite, Workbench

FLAGS = [
    "-DZSTD_DISABLE_ASM", "-DZSTD_LEGACY_SUPPORT=0", "-DXXH_NAMESPACE=ZSTD_", "-DZSTD_MULTITHREAD",
    "-DDYNAMIC_BMI2=0", "-DZSTD_TRACE=0",
]  # fmt: skip
"""As the package is compiled. The last two decide what is in a context, and upstream sets them for some processors."""
VARIANT = {
    'name = "zstd"': 'name = "zstd-experimental"\nlibrary = "zstd"',
    "[build.defines]": "[build.defines]\nZSTD_MULTITHREAD = true\nZSTD_STATIC_LINKING_ONLY = true\n"
    "ZDICT_STATIC_LINKING_ONLY = true",
}
HELPERS = ["programs/datagen.c", "programs/util.c", "programs/timefn.c"]
WHY = "internal, or with a struct by value; native code, on the installed library's data"


SOURCES = [f"lib/{name}/*.c" for name in ("common", "compress", "decompress", "dictBuilder")]


def make(workbench: Workbench) -> Suite:
    return workbench.suite(
        "zstd", variant=VARIANT, sources=SOURCES,
        flags=FLAGS, include=["lib", "lib/common", "lib/compress", "lib/dictBuilder", "programs"],
    )  # fmt: skip


def results(text: str) -> dict[str, str]:
    """Return the tests that a program says it ran: `test 12 : what it does : OK`."""
    found = {}
    for line in re.sub(r"\r", "\n", text).splitlines():
        match = re.match(r"\s*test\s*(\d+)\s*: (.*?)\s*:?\s*(OK.*)?$", line)
        if match:
            name = re.sub(r"[0-9.]+ ?(MB/s|seconds?|ms|%)", "", match[2])
            found[f"{match[1]} {name}"] = PASSED
    return found


def test_fuzzer(suite: Suite) -> None:
    found = {}
    for side in (NATIVE, OURS):
        program = suite.program(side, "fuzzer", ["tests/fuzzer.c", *HELPERS], FLAGS)
        done = suite.ran(side, program, "-v", "-s4711", "-i300", cwd=suite.work / side)
        assert done.returncode == 0, f"{side}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        found[side] = {**results(done.stdout + done.stderr), "300 random rounds": PASSED}
    suite.report("tests/fuzzer.c -s4711 -i300", found, expected=90)


def test_zstreamtest(suite: Suite) -> None:
    found: dict[str, dict[str, str]] = {NATIVE: {}, OURS: {}}
    sources = ["tests/zstreamtest.c", "tests/seqgen.c", "tests/external_matchfinder.c", *HELPERS]
    for side in (NATIVE, OURS):
        program = suite.program(side, "zstreamtest", sources, FLAGS)
        for words in (["-s4711", "-i200"], ["--newapi", "-t1", "-s4711", "-i200"]):
            done = suite.ran(side, program, "-v", *words, cwd=suite.work / side)
            assert done.returncode == 0, f"{side} {words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
            found[side] |= {**results(done.stdout + done.stderr), f"{words[0]}: 200 random rounds": PASSED}
    suite.report("tests/zstreamtest.c, old and new interface", found, expected=40)


def test_small_programs(suite: Suite) -> None:
    found: dict[str, dict[str, str]] = {NATIVE: {}, OURS: {}}
    for side in (NATIVE, OURS):
        for name in ("invalidDictionaries", "longmatch"):
            program = suite.program(side, name, [f"tests/{name}.c"], FLAGS)
            done = suite.ran(side, program, cwd=suite.work / side)
            found[side][name] = FAILED if done.returncode else PASSED
        program = suite.program(side, "roundTripCrash", ["tests/roundTripCrash.c"], FLAGS)
        for file in sorted((suite.tree / "lib").glob("*/*.c")):
            done = suite.ran(side, program, file, cwd=suite.work / side)
            found[side][f"roundTripCrash {file.name}"] = FAILED if done.returncode else PASSED
    suite.report("invalidDictionaries, longmatch, roundTripCrash", found, expected=30)


def test_the_program(suite: Suite) -> None:
    sources = [str(path.relative_to(suite.tree)) for path in sorted((suite.tree / "programs").glob("*.c"))]
    found: dict[str, dict[str, str]] = {NATIVE: {}, OURS: {}}
    packed: dict[str, list[bytes]] = {NATIVE: [], OURS: []}
    tests = suite.tree / "tests"
    samples = [
        *sorted((tests / "golden-compression").iterdir()),
        *sorted((suite.tree / "lib" / "compress").glob("*.c")),
    ]
    for side in (NATIVE, OURS):
        program = suite.program(side, "zstd", sources, FLAGS)
        place = suite.work / side
        for file in sorted((tests / "golden-decompression").iterdir()):
            done = suite.ran(side, program, "-d", "-f", file, "-o", place / "out", cwd=place)
            found[side][file.name] = FAILED if done.returncode else PASSED
        for file in samples:
            for words in (["-1"], ["-9", "--long"], ["-19", "--check"]):
                suite.ran(side, program, *words, "-f", file, "-o", place / "x.zst", cwd=place)
                packed[side].append((place / "x.zst").read_bytes())
                suite.ran(side, program, "-d", "-f", place / "x.zst", "-o", place / "x", cwd=place)
                right = (place / "x").read_bytes() == file.read_bytes()
                found[side][f"{file.name} {' '.join(words)}"] = PASSED if right else FAILED
        for file in sorted((tests / "golden-dictionaries").iterdir()):
            done = suite.ran(side, program, "-D", file, "-f", tests / "fuzzer.c", "-o", place / "y.zst", cwd=place)
            found[side][file.name] = FAILED if done.returncode else PASSED
    assert packed[NATIVE] == packed[OURS]
    suite.report("the program zstd: golden files and round trips", found, expected=20)
    suite.note_taken(WHY)
    suite.not_run("playTests.sh", "takes tens of minutes; the golden files and round trips stand for it")
    suite.not_run("poolTests", "the pool of threads is internal: nothing of the installed library would be tested")
    suite.not_run("decodecorpus, fullbench, paramgrill", "they are made of the compressor's inner parts")
    suite.not_run("bigdict", "takes several GB of memory")
    suite.not_run("legacy", "the package is without the formats of before version 1.0")
