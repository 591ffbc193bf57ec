"""Test vectors held against the functions that they call: every rule of docs/spec/vectors.md, "Fitting the api"."""

from __future__ import annotations

from typing import Any

import pytest

from visget.format.prototypes import (
    BASE_TYPES,
    Api,
    CType,
    Enum,
    EnumRef,
    Function,
    Integer,
    Opaque,
    Parameter,
    Pointer,
    Record,
    RecordRef,
)
from visget.format.vectorfit import misfits
from visget.format.vectors import VectorSet

INT, DOUBLE, VOID = BASE_TYPES["int"], BASE_TYPES["double"], BASE_TYPES["void"]
PLACE = Pointer(VOID)
POINT = Record(name="struct point", kind="struct", size=8, align=4, fields=())
COLOUR = Enum(name="enum colour", type=Integer("unsigned int", 4, False), values=(("RED", 0),))


def api(result: CType, *parameters: CType, variadic: bool = False) -> Api:
    listed = tuple(Parameter(name=f"p{n}", c="", type=type_) for n, type_ in enumerate(parameters))
    function = Function(
        name="f", prototype="the prototype", doc="", result_c="", result=result, parameters=listed, variadic=variadic
    )
    return Api(functions=(function,), records=(POINT,), enums=(COLOUR,))


def step(*args: dict[str, Any], **more: Any) -> VectorSet:
    return VectorSet.from_toml([{"name": "v", "steps": [{"call": "f", "args": list(args), **more}]}])


ARRAY = {"array": {"type": "u8", "values": [1]}}
FITS: list[tuple[CType, dict[str, Any]]] = [
    (INT, {"int": 2**31 - 1}),
    (INT, {"int": 2**32 - 1}),
    (INT, {"int": -(2**31)}),
    (BASE_TYPES["unsigned char"], {"int": -1}),
    (BASE_TYPES["unsigned long"], {"int": 2**64 - 1}),
    (BASE_TYPES["_Bool"], {"int": 7}),
    (EnumRef("enum colour"), {"int": 3}),
    (DOUBLE, {"float": 2.5}),
    (DOUBLE, {"int": 2}),
    (PLACE, {"null": True}),
    (PLACE, {"int": 0}),
    (PLACE, {"bytes": "00"}),
    (PLACE, {"text": "x"}),
    (PLACE, ARRAY),
    (PLACE, {"out": {"type": "f64", "length": 1}}),
]
MISFITS: list[tuple[CType, dict[str, Any], str]] = [
    (INT, {"float": 2.5}, "argument 1 (p0) of f: a float cannot be passed as int"),
    (PLACE, {"float": 2.5}, "a float cannot be passed as void *"),
    (INT, {"int": 2**32}, "4294967296 does not fit into the 32 bits of int"),
    (INT, {"int": -(2**31) - 1}, "does not fit into the 32 bits of int"),
    (BASE_TYPES["signed char"], {"int": 256}, "256 does not fit into the 8 bits"),
    (EnumRef("enum colour"), {"int": 2**40}, "does not fit into the 32 bits of enum colour"),
    (PLACE, {"int": 4096}, "an integer cannot be passed as void *"),
    (INT, {"null": True}, "int is not a pointer"),
    (DOUBLE, ARRAY, "double is not a pointer"),
    (INT, {"text": "x"}, "int is not a pointer"),
    (RecordRef("struct point"), {"int": 0}, "cannot pass the type struct point"),
    (Opaque("long double"), {"float": 1.0}, "cannot pass the type long double"),
    (BASE_TYPES["__int128"], {"int": 1}, "cannot pass the type __int128"),
    (BASE_TYPES["_Float16"], {"float": 1.0}, "cannot pass the type _Float16"),
]


@pytest.mark.parametrize(("type_", "arg"), FITS)
def test_an_argument_that_fits(type_, arg):
    assert list(misfits(step(arg), api(INT, type_))) == []


@pytest.mark.parametrize(("type_", "arg", "says"), MISFITS)
def test_an_argument_that_does_not_fit(type_, arg, says):
    (found,) = misfits(step(arg), api(INT, type_))
    assert says in found.message
    assert (found.where, found.hint) == ("vector 'v', step 1", "the prototype")


@pytest.mark.parametrize(
    ("result", "more", "says"),
    [
        (VOID, {"returns": {"int": 0}}, "returns void"),
        (VOID, {"save": "x"}, "returns void"),
        (VOID, {"nonnull": True}, "returns void"),
        (DOUBLE, {"save": "x"}, "double cannot be saved"),
        (INT, {"returns": {"text": "x"}}, "int is not a pointer"),
        (DOUBLE, {"returns": {"nonnull": True}}, "double is not a pointer"),
        (PLACE, {"returns": {"float": 1.0}}, "void * is no float"),
        (RecordRef("struct point"), {}, "returns struct point"),
    ],
)
def test_a_result_that_does_not_fit(result, more, says):
    (found,) = misfits(step(**more), api(result))
    assert says in found.message


@pytest.mark.parametrize(
    ("result", "more"),
    [
        (VOID, {}), (INT, {"returns": {"int": 0}, "save": "x", "nonnull": True}), (DOUBLE, {"returns": {"float": 1.0}}),
        (INT, {"returns": {"float": 1.0}}), (PLACE, {"returns": {"text": "x"}, "save": "y"}),
        (PLACE, {"nonnull": True}), (DOUBLE, {"returns": {"int": 1}}),
    ],
)  # fmt: skip
def test_a_result_that_fits(result, more):
    assert list(misfits(step(**more), api(result))) == []


def test_the_number_of_arguments():
    one = {"int": 1}
    assert [m.message for m in misfits(step(one), api(INT, INT, INT))] == ["gives f 1 argument; it takes 2"]
    assert [m.message for m in misfits(step(one, one), api(INT, INT))] == ["gives f 2 arguments; it takes 1"]
    assert list(misfits(step(one, one, {"float": 1.0}), api(INT, INT, variadic=True))) == []


def test_every_step_that_does_not_fit_is_found():
    steps = [{"call": "g"}, {"call": "f", "save": "x"}, {"call": "f"}, {"call": "h"}]
    vectors = VectorSet.from_toml([{"name": "a", "steps": steps}, {"name": "b", "steps": [{"call": "g"}]}])
    found = [(m.vector, m.step) for m in misfits(vectors, api(INT))]
    assert found == [("a", 1), ("a", 4), ("b", 1)]
    assert [m.hint for m in misfits(vectors, api(INT))] == ["the functions are f"] * 3


def test_a_saved_value():
    steps = [{"call": "f", "args": [{"int": 0}], "save": "x"}, {"call": "f", "args": [{"var": "x"}]}]
    vectors = VectorSet.from_toml([{"name": "a", "steps": steps}])
    assert list(misfits(vectors, api(INT, INT))) == []
    assert list(misfits(vectors, api(PLACE, PLACE))) == []
    (found,) = misfits(vectors, api(INT, DOUBLE))
    assert "a saved pointer or integer cannot be passed as double" in found.message
