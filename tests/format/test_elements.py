import hashlib
import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visget.digest import digest_bytes
from visget.format.elements import (
    ELEMENT_SIZES,
    compare_buffer,
    compare_result,
    element_bytes,
    element_count,
    is_close,
    parse_float,
)
from visget.format.vectors import (
    AfterBytes,
    AfterDigest,
    AfterValues,
    ExpectFloat,
    ExpectInt,
    ExpectNonnull,
    ExpectText,
    Pattern,
)

TABLE = json.loads((Path(__file__).parent.parent / "conformance" / "patterns.json").read_text())


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['type']}-{row['kind']}-{row['seed']}-{row['count']}")
def test_patterns_are_those_of_the_spec(row):
    data = element_bytes(row["type"], Pattern(kind=row["kind"], count=row["count"], seed=row["seed"]))
    if "hex" in row:
        assert data.hex() == row["hex"]
    assert hashlib.sha256(data).hexdigest() == row["sha256"]


@pytest.mark.parametrize("type_", ELEMENT_SIZES)
def test_lcg_by_another_implementation(type_):
    """The formula of the spec once more, in NumPy's wrapping arithmetic."""
    state, states = np.uint64(7), []
    with np.errstate(over="ignore"):
        for _ in range(50):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            states.append(state)
    s = np.array(states, dtype=np.uint64)
    if type_ == "f32":
        want = ((s >> np.uint64(40)).astype(np.float64) / 2**23 - 1).astype("<f4")
    elif type_ == "f64":
        want = ((s >> np.uint64(11)).astype(np.float64) / 2**52 - 1).astype("<f8")
    else:
        bits = 8 * ELEMENT_SIZES[type_]
        want = (s >> np.uint64(64 - bits)).astype(f"<u{bits // 8}")
    data = element_bytes(type_, Pattern(kind="lcg", count=50, seed=7))
    assert data == want.tobytes()
    if type_[0] == "f":
        assert -1 <= want.min() < -0.5 < 0.5 < want.max() < 1


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_integers_lie_little_endian(numbers):
    assert element_bytes("i32", tuple(numbers)) == struct.pack(f"<{len(numbers)}i", *numbers)


@given(st.lists(st.floats()))
def test_floats_lie_little_endian(numbers):
    texts = tuple(repr(number) for number in numbers)
    assert element_bytes("f64", texts) == np.array([float(text) for text in texts], dtype="<f8").tobytes()


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("u8", (256,)),
        ("u8", (-1,)),
        ("i8", (128,)),
        ("u64", (2**64,)),
        ("i64", (2**63,)),
        ("i32", ("1",)),
        ("f32", ("1e39",)),
        ("f32", ("-3.5e38",)),
        ("f64", ("1e999",)),
        ("f64", ("0x1p1024",)),
        ("f64", ("1,5",)),
    ],
)
def test_what_does_not_fit(type_, values):
    with pytest.raises(ValueError):
        element_bytes(type_, values)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", 1.5),
        ("-0", 0.0),
        ("0x1.8p+0", 1.5),
        ("-0X1P-1074", -5e-324),
        ("1e-400", 0.0),
        ("inf", math.inf),
        ("007", 7.0),
    ],
)
def test_float_texts(text, value):
    assert parse_float(text) == value


def test_signed_zero_and_nan():
    assert math.copysign(1, parse_float("-0")) == -1
    assert math.isnan(parse_float("nan"))
    assert element_bytes("f64", ("-0.0",)) == struct.pack("<d", -0.0)


@pytest.mark.parametrize("text", ["", " 1", "1_0", ".5", "1.", "+1", "NaN", "infinity", "0x1", "1e", "\u0661", "1\n"])
def test_not_floats(text):
    with pytest.raises(ValueError, match="not a float"):
        parse_float(text)


@pytest.mark.parametrize(
    ("got", "want", "rel", "abs_", "close"),
    [
        (1.0, 1.0, 0, 0, True),
        (1.0, 1.0 + 2**-52, 0, 0, False),
        (0.0, -0.0, 0, 0, True),
        (1.01, 1.0, 0.02, 0, True),
        (1.03, 1.0, 0.02, 0, False),
        (1.03, 1.0, 0.02, 0.02, True),
        (1e-9, 0.0, 1.0, 0, False),
        (1e-9, 0.0, 0, 1e-8, True),
        (math.nan, math.nan, 0, 0, True),
        (math.nan, 1.0, 9, 9, False),
        (1.0, math.nan, 9, 9, False),
        (math.inf, math.inf, 0, 0, True),
        (math.inf, -math.inf, 9, 9, False),
        (math.inf, 1.0, 9, 9, False),
        (1.0, math.inf, 9, 9, False),
    ],
)
def test_is_close(got, want, rel, abs_, close):
    assert is_close(got, want, rel, abs_) is close


def test_compare_result():
    assert compare_result(ExpectInt(value=2**64 - 1), 2**64 - 1) is None
    assert "returned 4, not 5" in compare_result(ExpectInt(value=5), 4)
    assert compare_result(ExpectFloat(text="1.5", rel="1e-3"), 1.501) is None
    assert "returned 1.6" in compare_result(ExpectFloat(text="1.5", rel="1e-3"), 1.6)
    assert compare_result(ExpectFloat(text="1"), None) is not None
    assert compare_result(ExpectText(text="é"), "é".encode()) is None
    assert compare_result(ExpectText(text=""), None) is not None
    assert compare_result(ExpectNonnull(), 5) is None
    assert compare_result(ExpectNonnull(), None) == compare_result(ExpectNonnull(), 0) == "returned null"


def test_compare_buffer():
    data = struct.pack("<4f", 1, 2, 3, math.nan)
    assert compare_buffer("f32", AfterValues(values=("1", "2")), data) is None
    assert compare_buffer("f32", AfterValues(values=("1", "2", "3", "nan")), data) is None
    assert "element 1 of the buffer is 2.0, not 2.5" in compare_buffer("f32", AfterValues(values=("1", "2.5")), data)
    assert compare_buffer("f32", AfterValues(values=("1", "2.5"), abs="0.5"), data) is None
    assert compare_buffer("u8", AfterBytes(data=data[:5]), data) is None
    assert "byte 1 of the buffer" in compare_buffer("u8", AfterBytes(data=b"\0\1"), data)
    assert compare_buffer("u8", AfterBytes(data=data + b"x"), data) is not None
    assert compare_buffer("u8", AfterDigest(sha256=digest_bytes(data)), memoryview(data)) is None
    assert "digest" in compare_buffer("u8", AfterDigest(sha256=digest_bytes(b"")), data)
    assert "holds 2 elements" in compare_buffer("f32", AfterValues(values=("1", "2", "9")), data[:11])
    ramp = AfterValues(values=Pattern(kind="ramp", count=3, seed=1))
    assert compare_buffer("f32", ramp, data) is None
    # Integers are compared exactly, whatever the tolerance says.
    assert compare_buffer("u8", AfterValues(values=(1,), abs="5"), b"\2") is not None


def test_count():
    assert element_count((1, 2)) == 2
    assert element_count(Pattern(kind="lcg", count=9, seed=0)) == 9
