from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visget.toolchain.toml_lines import places

TEXT = '''\
# a comment with [brackets] and key = 1
top = 1
"quoted key".sub = { a = 1, b = [1, 2] } # trailing

[table]
long = """
fake = 1
[fake]
\\""" still inside"""
literal = \'\'\'
fake = 2\'\'\'
array = [
  1, "a # no comment",

  # comment, with commas
  [2,
   3],
]
[table.'x.y']
k = 1979-05-27T07:32:00Z
[[many]]
n = 1
[[many.deep]]
[[many.deep]]
m = 2
[[many]]
[many.plain]
z = "]"
'''
EXPECTED = {
    ("top",): 2,
    ("quoted key",): 3,
    ("quoted key", "sub"): 3,
    ("quoted key", "sub", "b", 1): 3,
    ("table",): 5,
    ("table", "long"): 6,
    ("table", "literal"): 10,
    ("table", "array"): 12,
    ("table", "array", 0): 13,
    ("table", "array", 1): 13,
    ("table", "array", 2): 16,
    ("table", "array", 2, 1): 17,
    ("table", "x.y", "k"): 20,
    ("many", 0): 21,
    ("many", 0, "deep", 0): 23,
    ("many", 0, "deep", 1, "m"): 25,
    ("many", 1): 26,
    ("many", 1, "plain", "z"): 28,
}


@pytest.mark.parametrize(("place", "line"), EXPECTED.items())
def test_finds_the_line(place: tuple[str | int, ...], line: int) -> None:
    tomllib.loads(TEXT)
    assert places(TEXT)[place] == line


def test_finds_nothing_that_is_not_there() -> None:
    assert not [place for place in places(TEXT) if "fake" in place]


@given(st.text(alphabet="ab=[]{}\"'\n #,.1\\", max_size=40))
def test_never_hangs_or_crashes_on_valid_documents(text: str) -> None:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    found = places(text)
    assert {(key,) for key in values} <= set(found)
