import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visget.errors import FormatError
from visget.format.headers import check_include_name, encode_headers, parse_headers


@pytest.mark.parametrize("name", ["a.h", "zlib.h", "sub/dir/of/a.h", "c++/x.hpp", "_a-b+c.h", "9.h"])
def test_good_names(name):
    check_include_name(name)
    assert parse_headers(encode_headers({name: "int x;\n"})) == {name: "int x;\n"}


@pytest.mark.parametrize(
    "name",
    [
        "", "/a.h", "../a.h", "a/../b.h", "a/./b.h", "./a.h", "a//b.h", "a/", "a\\b.h", "a/b/c/d/e.h", ".hidden",
        "a\0.h", "a b.h", "a.h\n", "é.h", "-I.h", "C:a.h", "x" * 256, "a/.h", "%2e%2e/a.h",
    ],
)  # fmt: skip
def test_bad_names(name):
    with pytest.raises(FormatError, match="include name"):
        parse_headers(json.dumps({name: ""}).encode())


def test_names_that_cannot_live_together():
    with pytest.raises(FormatError, match="differ only in case"):
        encode_headers({"a.h": "", "A.h": ""})
    with pytest.raises(FormatError, match="would have to be a directory"):
        encode_headers({"a": "", "a/b.h": ""})
    with pytest.raises(FormatError, match="must be a string"):
        parse_headers(b'{"a.h":1}')


@given(st.text(alphabet="a./\\-_ \0C:", max_size=12))
def test_a_name_never_leaves_its_directory(name):
    try:
        check_include_name(name)
    except FormatError:
        return
    parts = name.split("/")
    assert len(parts) <= 4
    assert all(part and part not in (".", "..") and "\\" not in part for part in parts)
