"""``visget-nm``, and that libtool's script can read it."""

from __future__ import annotations

import re

import pytest
from wrapkit import Bench, lacks

SOURCE = """
extern int outside, maybe(void) __attribute__((weak));
int function(void) { return outside + (maybe ? maybe() : 0); }
static int local(int a) { return a; }
int (*pointer)(int) = local;
__attribute__((weak)) int weak(void) { return 1; }
int data = 1;
"""


@pytest.fixture
def bench(tmp_path) -> Bench:
    made = Bench(tmp_path)
    made.write({"x.c": SOURCE, "y.c": "int y(void) { return 0; }\n"})
    made.good("-c", "x.c", "y.c")
    return made


def listed(text: str) -> dict[str, str]:
    return {line.split()[-1]: line.split()[-2] for line in text.splitlines() if line.strip()}


def test_the_letters(bench):
    assert listed(bench.good("x.o", tool="nm").out) == {
        "function": "T", "local": "t", "pointer": "D", "weak": "W", "data": "D", "outside": "U", "maybe": "w",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["-g"], {"function", "pointer", "weak", "data", "outside", "maybe"}),
        (["-u"], {"outside", "maybe"}),
        (["--undefined-only"], {"outside", "maybe"}),
        (["--defined-only", "-g"], {"function", "pointer", "weak", "data"}),
        (["--extern-only", "--defined-only"], {"function", "pointer", "weak", "data"}),
    ],
)
def test_the_choice(bench, options, names):
    assert set(listed(bench.good(*options, "x.o", tool="nm").out)) == names


def test_the_formats(bench):
    assert re.search(r"^0{16} T function$", bench.good("-B", "x.o", tool="nm").out, re.MULTILINE)
    assert re.search(r"^ {16} U outside$", bench.good("x.o", tool="nm").out, re.MULTILINE)
    assert "function T 0 0\n" in bench.good("-P", "x.o", tool="nm").out
    assert "outside U\n" in bench.good("-P", "x.o", tool="nm").out
    assert bench.good("-jg", "y.o", tool="nm").out == "y\n"
    assert bench.good("-A", "y.o", tool="nm").out == f"y.o: {'0' * 16} T y\n"


def test_archives_and_several_files(bench):
    bench.good("rcs", "lib.a", "x.o", "y.o", tool="ar")
    out = bench.good("lib.a", tool="nm").out
    assert "\nx.o:\n" in out
    assert "\ny.o:\n" in out
    assert "\ny.o:\n" in bench.good("x.o", "y.o", tool="nm").out


def test_native_files_are_the_systems(bench):
    if lacks("nm"):
        pytest.skip("no nm")
    bench.write({"main.c": "int main(void) { return 0; }\n"})
    bench.good("main.c", "-o", "p")
    assert listed(bench.good("p", tool="nm").out)["main"] == "T"


def test_what_cannot_be_listed(bench):
    assert bench.tool("nm", "missing").status == 1
    bench.write({"text": "hello"})
    assert "file format not recognized" in bench.tool("nm", "text").err
    assert bench.tool("nm", "--no-such-option", "x.o").status == 1


def test_libtools_check_of_the_tool(bench):
    """It takes the first line of `nm -B /dev/null`, and then pipes the list through this expression."""
    assert "/dev/null" in bench.tool("nm", "-B", "/dev/null").err
    pattern = re.compile(r"^.*[ \t]([ABCDGIRSTW][ABCDGIRSTW]*)[ \t][ \t]*([_A-Za-z][_A-Za-z0-9]*)$", re.MULTILINE)
    found = {name: letter for letter, name in pattern.findall(bench.good("x.o", tool="nm").out)}
    assert found == {"function": "T", "pointer": "D", "weak": "W", "data": "D"}
