from __future__ import annotations

import pytest

from visget.toolchain.flags import flag_problem

GOOD = [
    *["-DNAME", "-DNAME=1", "-DF(x)=x+1", "-UNAME", "-Iinclude", "-I.", "-std=gnu17", "-std=c++20"],
    *["-fwrapv", "-fno-wrapv", "-fno-strict-aliasing", "-fno-builtin", "-fno-builtin-memcpy"],
    *["-fcx-limited-range", "-fno-c++-static-destructors"],
    *["-fno-exceptions", "-fexceptions", "-fno-rtti", "-frtti"],
    *["-Wall", "-Wno-unused", "-Werror=return-type", "-pedantic"],
]
BAD = {
    "-O0": "not to be optimised",
    "-O1": "not to be optimised",
    "-O3": "author's machine",
    "-march=native": "one kind of CPU",
    "-mtune=generic": "one kind of CPU",
    "-mavx2": "one kind of CPU",
    "-msse4.2": "one kind of CPU",
    "-fno-vectorize": "stops the optimiser",
    "-fno-slp-vectorize": "stops the optimiser",
    "-fno-unroll-loops": "stops the optimiser",
    "-fopenmp": "run-time library",
    "-flto": "link-time",
    "-flto=thin": "link-time",
    "-g": "paths of the author's machine",
    "-ggdb3": "paths of the author's machine",
    "-ffast-math": "whole package",
    "-ffp-contract=off": "whole package",
    "-funsigned-char": "char is signed",
    "-fc++-static-destructors": "not among the flags",
    "-fPIC": "always so",
    "-fvisibility=hidden": "exports",
    "-fsanitize=address": "checks or counters",
    "-lm": "links a library",
    "-L/usr/lib": "links a library",
    "-Wl,-rpath,/x": "linker",
    "-Wp,-D,X": "another tool",
    "-w": "wrong answer",
    "-fshort-enums": "layout",
    "-include": "separate argument",
    "-isystem/usr/include": "directory of headers",
    "-I/usr/include": "not relative",
    "-I../x": "leaves its tree",
    "-Isrc/../../x": "leaves its tree",
    "-D": "stands alone",
    "-D__vis_va_start=1": "belongs to visget",
    "-o/etc/passwd": "business of visget",
    "-MF/tmp/x": "business of visget",
    "-xassembler": "chooses the language",
    "-fplugin=evil.so": "not among the flags",
    "-Xclang": "not among the flags",
    "-mllvm": "one kind of CPU",
    "@flags.txt": "not among the flags",
    "--sysroot=/": "not among the flags",
    "-B/tmp": "not among the flags",
    "evil.c": "not among the flags",
    "-fwrapv -O0": "not among the flags",
    "-DX\n-O0": "not among the flags",
}


@pytest.mark.parametrize("flag", GOOD)
def test_allows(flag: str) -> None:
    assert flag_problem(flag) is None


@pytest.mark.parametrize(("flag", "words"), BAD.items())
def test_refuses_and_says_why(flag: str, words: str) -> None:
    problem = flag_problem(flag)
    assert problem is not None
    assert words in problem[0]
    assert problem[1]
