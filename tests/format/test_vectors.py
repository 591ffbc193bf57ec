import json
import math
import tomllib
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from visget.digest import digest_bytes
from visget.errors import FormatError, UsageError
from visget.format.elements import ELEMENT_SIZES
from visget.format.vectors import (
    AfterBytes,
    AfterDigest,
    AfterValues,
    ArrayArg,
    BufferArg,
    BytesArg,
    ExpectFloat,
    ExpectInt,
    ExpectNonnull,
    ExpectText,
    FloatArg,
    IntArg,
    NullArg,
    OutArg,
    Pattern,
    Step,
    TextArg,
    VarArg,
    Vector,
    VectorSet,
)

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
integers = st.integers(-(2**63), 2**64 - 1)
float_texts = st.floats().map(repr) | st.floats(allow_nan=False, allow_infinity=False).map(float.hex)
tolerances = st.sampled_from(["0", "1e-6", "0x1p-20", "0.5"])
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)
expects = st.one_of(
    st.none(),
    st.builds(ExpectInt, value=integers),
    st.builds(ExpectFloat, text=float_texts, rel=tolerances, abs=tolerances),
    st.builds(ExpectText, text=texts),
    st.just(ExpectNonnull()),
)
plain = st.one_of(
    st.builds(IntArg, value=integers),
    st.builds(FloatArg, text=float_texts),
    st.builds(BytesArg, data=st.binary(max_size=9)),
    st.builds(TextArg, text=texts),
    st.just(NullArg()),
)


@st.composite
def elements(draw, type_, most):
    if most and draw(st.booleans()):
        return Pattern(
            kind=draw(st.sampled_from(["ramp", "lcg"])),
            count=draw(st.integers(1, most)),
            seed=draw(st.integers(0, 2**32 - 1)),
        )
    if type_[0] == "f":
        one = st.floats(width=32).map(repr) if type_ == "f32" else float_texts
    else:
        bits = 8 * ELEMENT_SIZES[type_]
        one = st.integers(0, 2**bits - 1) if type_[0] == "u" else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return tuple(draw(st.lists(one, max_size=min(most, 5))))


@st.composite
def afters(draw, type_, count):
    match draw(st.integers(0, 3)):
        case 0:
            return AfterValues(values=draw(elements(type_, count)), rel=draw(tolerances), abs=draw(tolerances))
        case 1:
            return AfterBytes(data=draw(st.binary(max_size=min(9, count * ELEMENT_SIZES[type_]))))
        case 2:
            return AfterDigest(sha256=digest_bytes(b"x"))
    return None


@st.composite
def vectors(draw):
    steps, saved, buffers = [], [], {}
    for _ in range(draw(st.integers(1, 3))):
        args = []
        for _ in range(draw(st.integers(0, 4))):
            kind = draw(st.integers(0, 4))
            if kind == 0 and saved:
                args.append(VarArg(name=draw(st.sampled_from(saved))))
            elif kind == 1 and buffers:
                name = draw(st.sampled_from(sorted(buffers)))
                args.append(BufferArg(name=name, after=draw(afters(*buffers[name]))))
            elif kind in (2, 3):
                type_ = draw(st.sampled_from(list(ELEMENT_SIZES)))
                id_ = draw(st.none() | names)
                id_ = None if id_ in buffers else id_
                if kind == 2:
                    values = draw(elements(type_, 50))
                    count = values.count if isinstance(values, Pattern) else len(values)
                    args.append(ArrayArg(type=type_, values=values, after=draw(afters(type_, count)), id=id_))
                else:
                    count = draw(st.integers(1, 50))
                    args.append(OutArg(type=type_, length=count, after=draw(afters(type_, count)), id=id_))
                if id_ is not None:
                    buffers[id_] = (type_, count)
            else:
                args.append(draw(plain))
        save = draw(st.none() | names)
        save = None if save in saved else save
        steps.append(
            Step(call=draw(names), args=tuple(args), returns=draw(expects), save=save, nonnull=draw(st.booleans()))
        )
        if save:
            saved.append(save)
    return tuple(steps)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(vectors(), max_size=3))
def test_round_trip(many):
    value = VectorSet(vectors=tuple(Vector(name=f"v{n}", steps=steps) for n, steps in enumerate(many)))
    assert VectorSet.parse(value.encode()) == value
    assert VectorSet.parse(value.encode()).encode() == value.encode()
    # What a person may write in TOML includes all that the section may hold.
    assert VectorSet.from_toml(json.loads(value.encode())["vectors"]) == value


def test_toml():
    tables = tomllib.loads("""
        [[vector]]
        name = "scales"
        [[vector.steps]]
        call = "scale"
        args = [
          { array = { type = "f32", values = [1, 2.5, "0x1p-3"] }, after = [2.0, 5, nan], rel = 1e-6, id = "x" },
          { float = 2.0 }, { int = 18446744073709551615 }, { out = { type = "u8", length = 4 }, after_hex = "0001" },
        ]
        returns = { float = inf }
        save = "handle"
        nonnull = true

        [[vector.steps]]
        call = "again"
        args = [ { buffer = "x" }, { var = "handle" }, { null = true }, { text = "é" }, { bytes = "00ff" } ]
        returns = { int = -1 }
    """)["vector"]
    (vector,) = VectorSet.from_toml(tables).vectors
    assert vector == Vector(
        name="scales",
        steps=(
            Step(
                call="scale",
                args=(
                    ArrayArg(
                        type="f32",
                        values=("1", "2.5", "0x1p-3"),
                        after=AfterValues(values=("2.0", "5", "nan"), rel="1e-06"),
                        id="x",
                    ),
                    FloatArg(text="2.0"),
                    IntArg(value=2**64 - 1),
                    OutArg(type="u8", length=4, after=AfterBytes(data=b"\0\1")),
                ),
                returns=ExpectFloat(text="inf"),
                save="handle",
                nonnull=True,
            ),
            Step(
                call="again",
                args=(
                    BufferArg(name="x"),
                    VarArg(name="handle"),
                    NullArg(),
                    TextArg(text="é"),
                    BytesArg(data=b"\0\xff"),
                ),
                returns=ExpectInt(value=-1),
            ),
        ),
    )
    assert VectorSet.parse(VectorSet.from_toml(tables).encode()).vectors == (vector,)


def step(**changes):
    return {"call": "f"} | changes


def arg(value):
    return [step(args=[value])]


U8 = {"type": "u8", "values": [1, 2]}
BAD_STEPS = {
    "no call": [{}],
    "call is no symbol": [step(call="f()")],
    "unknown key": [step(arguments=[])],
    "args is no array": [step(args={})],
    "no steps": [],
    "two kinds": arg({"int": 1, "float": "1"}),
    "no kind": arg({}),
    "unknown kind": arg({"struct": 1}),
    "int is text": arg({"int": "5"}),
    "int is a bool": arg({"int": True}),
    "int of 65 bits": arg({"int": str(2**64)}),
    "float is a bool": arg({"float": True}),
    "float is no float": arg({"float": "one"}),
    "odd hex": arg({"bytes": "0"}),
    "upper-case hex": arg({"bytes": "FF"}),
    "null is false": arg({"null": False}),
    "NUL in text": arg({"text": "a\0"}),
    "unknown var": arg({"var": "x"}),
    "var saved by the same step": [step(args=[{"var": "x"}], save="x")],
    "unknown buffer": arg({"buffer": "x"}),
    "saved twice": [step(save="x"), step(save="x")],
    "id twice": [step(args=[{"array": U8, "id": "x"}, {"array": U8, "id": "x"}])],
    "id is no identifier": arg({"array": U8, "id": "a b"}),
    "id of an integer": arg({"int": 1, "id": "x"}),
    "unknown type": arg({"array": {"type": "f16", "values": []}}),
    "values and pattern": arg({"array": U8 | {"pattern": {"kind": "ramp", "count": 1, "seed": 0}}}),
    "neither values nor pattern": arg({"array": {"type": "u8"}}),
    "value out of range": arg({"array": {"type": "u8", "values": [256]}}),
    "text in an integer array": arg({"array": {"type": "u8", "values": ["1"]}}),
    "f32 overflow": arg({"array": {"type": "f32", "values": ["1e39"]}}),
    "unknown pattern": arg({"array": {"type": "u8", "pattern": {"kind": "random", "count": 1, "seed": 0}}}),
    "pattern too long": arg({"array": {"type": "u64", "pattern": {"kind": "lcg", "count": 2**23 + 1, "seed": 0}}}),
    "seed too large": arg({"array": {"type": "u8", "pattern": {"kind": "lcg", "count": 1, "seed": 2**32}}}),
    "out too long": arg({"out": {"type": "u16", "length": 2**26}}),
    "out of nothing": arg({"out": {"type": "u8", "length": 0}}),
    "buffers too large": arg({"out": {"type": "u8", "length": 2**26}}) * 5,
    "after too long": arg({"array": U8, "after": [1, 2, 3]}),
    "after_hex too long": arg({"array": U8, "after_hex": "010203"}),
    "two afters": arg({"array": U8, "after": [1], "after_hex": "01"}),
    "after of an integer": arg({"int": 1, "after": [1]}),
    "digest": arg({"array": U8, "after_sha256": "00"}),
    "tolerance without after": arg({"array": U8, "rel": "1"}),
    "tolerance beside a digest": arg({"array": U8, "after_sha256": "0" * 64, "rel": "1"}),
    "negative tolerance": arg({"array": U8, "after": [1], "abs": "-1"}),
    "tolerance nan": arg({"array": U8, "after": [1], "abs": "nan"}),
    "expect nothing": [step(returns={})],
    "expect two": [step(returns={"int": 1, "text": "x"})],
    "tolerance of an integer": [step(returns={"int": 1, "rel": "1"})],
    "nonnull is false": [step(returns={"nonnull": False})],
}


@pytest.mark.parametrize("steps", BAD_STEPS.values(), ids=BAD_STEPS.keys())
def test_refuses(steps):
    tables = [{"name": "v", "steps": steps}]
    with pytest.raises(FormatError):
        VectorSet.parse(json.dumps({"format": "visget-vectors-1", "vectors": tables}).encode())
    with pytest.raises(UsageError, match=r"^vector 'v'"):
        VectorSet.from_toml(tables)


def test_the_message_names_vector_step_and_key():
    tables = [{"name": "a", "steps": [step()]}, {"name": "b", "steps": [step(), step(args=[{"float": "x"}])]}]
    with pytest.raises(UsageError) as caught:
        VectorSet.from_toml(tables, key="bench")
    assert caught.value.where == "bench 'b', step 2: args[0].float"
    assert str(caught.value) == "bench 'b', step 2: args[0].float is not a float: 'x'"


def test_names():
    with pytest.raises(UsageError, match="a second time"):
        VectorSet.from_toml([{"name": "a", "steps": [step()]}] * 2)
    with pytest.raises(UsageError, match="must not be empty"):
        VectorSet.from_toml([{"name": "", "steps": [step()]}])
    with pytest.raises(UsageError, match="vector must be an array of tables"):
        VectorSet.from_toml({"name": "a"})


def test_json_has_no_floats_and_no_large_integers():
    good = VectorSet.from_toml([{"name": "a", "steps": [step(args=[{"int": 2**60}, {"float": math.pi}])]}])
    assert json.loads(good.encode())["vectors"][0]["steps"][0]["args"] == [
        {"int": "1152921504606846976"},
        {"float": "3.141592653589793"},
    ]
    for bad in (b'{"int":1152921504606846976}', b'{"float":1.5}'):
        section = b'{"format":"visget-vectors-1","vectors":[{"name":"a","steps":[{"call":"f","args":[' + bad + b"]}]}]}"
        with pytest.raises(FormatError, match="strict JSON"):
            VectorSet.parse(section)


def test_every_vector_stands_on_its_own():
    first = Vector(name="a", steps=(Step(call="f", args=(OutArg(type="u8", length=1, id="x"),), save="y"),))
    second = replace(first, name="b")
    assert VectorSet.parse(VectorSet(vectors=(first, second)).encode()).vectors == (first, second)
    leak = Vector(name="b", steps=(Step(call="f", args=(BufferArg(name="x"),)),))
    with pytest.raises(FormatError, match="no earlier argument"):
        VectorSet.parse(VectorSet(vectors=(first, leak)).encode())
