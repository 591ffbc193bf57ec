import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visget.errors import FormatError, UsageError
from visget.format.strictjson import MARKS_LIMIT, Reader, dumps, integer_json, loads, parse_integer

LIMIT = 1 << 20

INVALID = {
    "empty": b"",
    "array": b"[]",
    "number": b"1",
    "duplicate key": b'{"a":1,"a":1}',
    "duplicate key below": b'{"x":[{"a":1,"b":2,"a":1}]}',
    "duplicate key by escape": b'{"a":1,"\\u0061":1}',
    "float": b'{"a":1.5}',
    "integral float": b'{"a":1.0}',
    "exponent": b'{"a":1e3}',
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":-Infinity}',
    "negative zero": b'{"a":-0}',
    "byte order mark": b'\xef\xbb\xbf{"a":1}',
    "not UTF-8": b'{"a":"\xff"}',
    "UTF-16": '{"a":1}'.encode("utf-16-le"),
    "surrogate in UTF-8": b'{"a":"\xed\xa0\x80"}',
    "trailing": b'{"a":1}x',
    "second value": b"{}{}",
    "lone high surrogate": b'{"a":"\\ud800"}',
    "lone low surrogate": b'{"a":"\\uDC00x"}',
    "surrogates in the wrong order": b'{"a":"\\udc00\\ud800"}',
    "surrogate in a key": b'{"\\ud800":1}',
    "2^53+1": b'{"a":9007199254740993}',
    "-2^53-1": b'{"a":-9007199254740993}',
    "6000 digits": b'{"a":' + b"9" * 6000 + b"}",
    "33 levels": b'{"a":' * 33 + b"1" + b"}" * 33,
    "33 levels of arrays": b'{"a":' + b"[" * 32 + b"]" * 32 + b"}",
    "100000 levels": b'{"a":' + b"[" * 100_000,
    "control character": b'{"a":"\n"}',
    "single quotes": b"{'a':1}",
    "comment": b"{}//",
    "trailing comma": b'{"a":1,}',
}


@pytest.mark.parametrize("data", INVALID.values(), ids=INVALID.keys())
def test_refuses(data):
    with pytest.raises(FormatError, match=r"^it "):
        loads(data, what="it", limit=LIMIT)


def test_takes_what_is_at_the_limits():
    edges = b' {"a" : [9007199254740992,\n-9007199254740992] }'
    assert loads(edges, what="it", limit=LIMIT) == {"a": [2**53, -(2**53)]}
    assert loads(b'{"a":"\\ud83d\\ude00"}', what="it", limit=LIMIT) == {"a": "\U0001f600"}
    assert loads(b'{"a":' * 32 + b"1" + b"}" * 32, what="it", limit=LIMIT)
    assert loads(b'{"a":' + b"[" * 31 + b"]" * 31 + b"}", what="it", limit=LIMIT)


def test_length_limit():
    assert loads(b"{} ", what="it", limit=3) == {}
    with pytest.raises(FormatError, match="4 bytes; at most 3"):
        loads(b"{}  ", what="it", limit=3)


@pytest.mark.parametrize("unit", [b'{"":{}},', b"[],", b'"ab",', b"1,", b'{"a":1,"b":2},'])
def test_row_12_many_values_are_refused_before_they_are_made(unit):
    marks = sum(unit.count(mark) for mark in (b",", b"[", b"{"))
    most = (MARKS_LIMIT - 2) // marks  # the object and the array are two
    assert loads(b'{"a":[' + unit * most + b"1]}", what="it", limit=1 << 30)
    with pytest.raises(FormatError, match="it is not strict JSON: more than 524288 values"):
        loads(b'{"a":[' + unit * (most + 1) + b"1]}", what="it", limit=1 << 30)


def test_punctuation_in_texts_is_no_value():
    text = "{[,\\\"" * 300_000
    assert loads(dumps({"a": text, "b,": 1}), what="it", limit=1 << 30) == {"a": text, "b,": 1}
    assert loads(b'{"a":[1,2,3]}', what="it", limit=1 << 30, marks=4)
    with pytest.raises(FormatError, match="more than 3 values"):
        loads(b'{"a":[1,2,3]}', what="it", limit=1 << 30, marks=3)


def test_dumps_is_sorted_compact_ascii():
    assert dumps({"b": [1, True, None], "a": "\u20ac"}) == b'{"a":"\\u20ac","b":[1,true,null]}'


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values, max_size=5))
def test_round_trip(value):
    assert loads(dumps(value), what="it", limit=LIMIT) == value
    assert dumps(loads(dumps(value), what="it", limit=LIMIT)) == dumps(value)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\ud8019.eE-x ', max_size=60).map(str.encode))
def test_never_another_error(data):
    try:
        value = loads(data, what="it", limit=LIMIT)
    except FormatError:
        return
    assert value == json.loads(data)


@given(st.integers(-(2**130), 2**130))
def test_integers_beyond_json(number):
    written = integer_json(number)
    assert isinstance(written, int) == (abs(number) <= 2**53)
    assert parse_integer(written) == number


@pytest.mark.parametrize(
    "bad", ["5", "9007199254740992", "+99999999999999999", "099999999999999999", " 1", 1.5, True, None]
)
def test_integers_have_one_form(bad):
    assert parse_integer(bad) is None


def test_reader_names_the_place():
    reader = Reader({"a": {"b": [{"c": "x"}]}, "n": 3}, "doc", UsageError)
    inner = next(reader.object("a").objects("b"))
    with pytest.raises(UsageError) as caught:
        inner.integer("c")
    assert caught.value.where == "doc.a.b[0].c"
    assert str(caught.value) == "doc.a.b[0].c must be an integer, not a string"
    with pytest.raises(UsageError, match="doc lacks the key 'z'"):
        reader.line("z")
    with pytest.raises(UsageError, match="doc has the unknown key 'n'"):
        reader.done()
    with pytest.raises(UsageError, match=r"doc\.n is 3, outside 4 to 5"):
        reader.integer("n", 4, 5)
    reader.done()


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1]])
def test_reader_integer_is_an_integer(value):
    with pytest.raises(FormatError):
        Reader({"a": value}, "doc").integer("a")


def test_reader_lines():
    reader = Reader({"a": "x\ty", "b": "é", "c": "xxx", "d": None, "e": "x\n\ty", "f": ["x", "\x1b"]}, "doc")
    with pytest.raises(FormatError, match="control character"):
        reader.line("a")
    assert reader.line("b") == "é"
    with pytest.raises(FormatError, match="3 characters; at most 2"):
        reader.line("c", 2)
    assert reader.nullable_line("d") is None
    assert reader.text("e") == "x\n\ty"
    with pytest.raises(FormatError, match=r"doc\.f\[1\] holds a control"):
        reader.lines("f")
