"""Which C types may cross the boundary by value: the table of docs/spec/vis-1.md, section 5, row by row."""

from __future__ import annotations

import pytest
from viscases import module_text

from visget.format.abi_classes import refusals
from visget.format.prototypes import (
    BASE_TYPES,
    Api,
    Array,
    CType,
    Enum,
    EnumRef,
    Field,
    Float,
    Function,
    FunctionType,
    Integer,
    Opaque,
    Parameter,
    Pointer,
    Record,
    RecordRef,
    Void,
)
from visget.format.verifier import check_module

CHAR, SHORT, INT, LONG = (BASE_TYPES[name] for name in ("char", "short", "int", "long"))
FLOAT, DOUBLE = BASE_TYPES["float"], BASE_TYPES["double"]
POINTER = Pointer(CHAR)


def record(name: str, size: int, *fields: tuple[int, CType], kind: str = "struct", align: int = 8) -> Record:
    return Record(name=name, kind=kind, size=size, align=align,  # type: ignore[arg-type]
                  fields=tuple(Field(name=f"m{n}", offset=at, type=t) for n, (at, t) in enumerate(fields)))  # fmt: skip


RECORDS = (
    record("int2", 8, (0, INT), (4, INT)),
    record("short3", 6, (0, SHORT), (2, SHORT), (4, SHORT)),
    record("char3", 3, (0, Array(CHAR, 3)), align=1),
    record("float1", 4, (0, FLOAT)),
    record("double1", 8, (0, DOUBLE)),
    record("double2", 16, (0, DOUBLE), (8, DOUBLE)),
    record("doubles2", 16, (0, Array(DOUBLE, 2))),
    record("long2", 16, (0, LONG), (8, LONG)),
    record("char16", 16, (0, Array(CHAR, 16)), align=1),
    record("pointer_size", 16, (0, POINTER), (8, LONG)),
    record("nested", 16, (0, RecordRef("int2")), (8, EnumRef("enum e"))),
    record("float2", 8, (0, FLOAT), (4, FLOAT)),
    record("float3", 12, (0, Array(FLOAT, 3))),
    record("float4", 16, (0, Array(FLOAT, 4))),
    record("int_float", 8, (0, INT), (4, FLOAT)),
    record("long_double", 16, (0, LONG), (8, DOUBLE)),
    record("double_long", 16, (0, DOUBLE), (8, LONG)),
    record("big", 24, (0, LONG), (8, LONG), (16, LONG)),
    record("double3", 24, (0, Array(DOUBLE, 3))),
    record("double5", 40, (0, Array(DOUBLE, 5))),
    record("packed", 9, (0, CHAR), (1, LONG), align=1),
    record("aligned", 16, (0, LONG), (8, LONG), align=16),
    record("number", 8, (0, DOUBLE), (0, LONG), kind="union"),
    record("floats", 4, (0, FLOAT), kind="union"),
    record("empty", 0, align=1),
    Record(name="secret", kind="struct", size=0, align=1, fields=(), complete=False),
    record("callback", 8, (0, Pointer(FunctionType(Void(), (RecordRef("big"),))))),
    record("logger", 8, (0, Pointer(FunctionType(INT, (POINTER, Pointer(RecordRef("struct __vis_va_tag"))))))),
    record("list", 32, (0, Opaque("va_list"))),
    record("quad", 32, (0, CHAR), (16, Opaque("long double")), align=16),
    record("most", 16, (0, LONG), (0, Opaque("long double")), kind="union", align=16),
    record("arena", 32, (0, LONG), (16, RecordRef("most")), align=16),
    record("node", 16, (0, Pointer(RecordRef("node"))), (8, LONG)),
)
API = Api(records=RECORDS, enums=(Enum(name="enum e", type=Integer("int", 4, True), values=(("A", 0),)),))


@pytest.mark.parametrize(
    ("name", "argument", "result"),
    [
        ("int2", True, True),
        ("short3", True, True),
        ("char3", True, True),
        ("float1", True, True),
        ("double1", True, True),
        ("double2", True, True),
        ("doubles2", True, True),
        ("long2", True, True),
        ("char16", True, True),
        ("pointer_size", True, True),
        ("nested", True, True),
        ("node", True, True),
        ("float2", False, False),
        ("float3", False, False),
        ("float4", False, False),
        ("int_float", False, False),
        ("long_double", False, False),
        ("double_long", False, False),
        ("big", False, True),
        ("double3", False, False),
        ("double5", False, True),
        ("packed", False, False),
        ("aligned", False, False),
        ("number", False, False),
        ("floats", False, False),
        ("empty", False, False),
        ("secret", False, False),
    ],
)
def test_structs(name: str, argument: bool, result: bool) -> None:
    assert (not list(refusals(Void(), (RecordRef(name),), API))) is argument
    assert (not list(refusals(RecordRef(name), (), API))) is result


@pytest.mark.parametrize(
    ("kind", "fine"),
    [
        *((kind, True) for kind in (INT, LONG, FLOAT, DOUBLE, POINTER, EnumRef("enum e"), BASE_TYPES["_Bool"])),
        (Opaque("_Complex double"), True),
        (Opaque("_Complex float"), False),
        (Opaque("long double"), False),
        (Opaque("int __attribute__((vector_size(16)))"), False),
        (BASE_TYPES["__int128"], False),
        (Float("_Float16", 2), False),
    ],
    ids=str,
)
def test_scalars(kind: CType, fine: bool) -> None:
    assert (not list(refusals(Void(), (kind,), API))) is fine
    assert (not list(refusals(kind, (), API))) is fine


@pytest.mark.parametrize(
    ("before", "fine"),
    [((), True), ((LONG,) * 4, True), ((LONG,) * 5, False), ((LONG,) * 6, True), ((DOUBLE,) * 6, True)],
    ids=lambda value: str(len(value)) if isinstance(value, tuple) else str(value),
)
def test_a_struct_must_not_be_split_between_registers_and_stack(before: tuple[CType, ...], fine: bool) -> None:
    assert (not list(refusals(Void(), (*before, RecordRef("long2")), API))) is fine


def test_the_address_of_a_large_result_takes_a_register() -> None:
    assert list(refusals(Void(), (LONG, LONG, LONG, LONG, RecordRef("long2")), API)) == []
    assert list(refusals(RecordRef("big"), (LONG, LONG, LONG, LONG, RecordRef("long2")), API)) != []


def test_two_doubles_need_two_registers() -> None:
    assert list(refusals(Void(), (*(DOUBLE,) * 6, RecordRef("double2")), API)) == []
    assert list(refusals(Void(), (*(DOUBLE,) * 7, RecordRef("double2")), API)) != []


def function(*types: CType, result: CType = Void(), c: str = "T") -> Api:  # noqa: B008 - immutable
    parameters = tuple(Parameter(name=f"p{n}", c=c, type=kind) for n, kind in enumerate(types))
    one = Function(name="f", prototype="void f()", doc="", result_c="void", result=result, parameters=parameters)
    return Api(
        functions=(one,),
        records=RECORDS,
        enums=API.enums,
    )


def rules(definition: str, api: Api | None) -> list[str]:
    text = module_text(f"{definition} {{\n  ret void\n}}\n")
    return [finding.rule for finding in check_module(text, exports=["f"], api=api)]


def test_types_settle_what_the_ir_leaves_open() -> None:
    two_words = "define void @f([2 x i64] %0)"
    assert rules(two_words, None) == ["VIS-403"]
    assert rules(two_words, function(RecordRef("long2"))) == []
    assert rules(two_words, function(RecordRef("float4"))) == ["VIS-402"]
    pair = "define void @f(float %0, float %1)"
    assert rules(pair, None) == ["VIS-402"]
    assert rules(pair, function(FLOAT, FLOAT)) == []
    assert rules(pair, function(RecordRef("float2"))) == ["VIS-402"]


def test_an_api_section_that_says_too_little_does_not_help() -> None:
    assert rules("define void @f(ptr dead_on_return noundef %0)", function(POINTER)) == ["VIS-402"]
    assert rules("define void @f(i128 noundef %0)", function(LONG)) == ["VIS-404"]


def test_callbacks_are_judged_wherever_they_are_reached() -> None:
    pointer = "define void @f(ptr noundef %0)"
    bad = Pointer(FunctionType(Void(), (RecordRef("float2"),)))
    assert rules(pointer, function(bad)) == ["VIS-405"]
    assert rules(pointer, function(Pointer(RecordRef("callback")))) == ["VIS-405"]
    assert rules(pointer, function(Pointer(FunctionType(INT, (POINTER,), variadic=True)))) == ["VIS-405"]
    assert rules(pointer, function(Pointer(FunctionType(INT, (POINTER, POINTER))))) == []
    assert rules(pointer, function(Pointer(RecordRef("node")))) == []
    assert rules(pointer, function(Pointer(RecordRef("logger")))) == ["VIS-405"]
    assert rules(pointer, function(Pointer(FunctionType(CHAR, (INT,))))) == ["VIS-405"]
    assert rules(pointer, function(Pointer(FunctionType(INT, (CHAR,))))) == ["VIS-405"]
    assert rules(pointer, function(Pointer(FunctionType(INT, (BASE_TYPES["signed char"], POINTER))))) == []
    assert set(rules(pointer, function(Pointer(FunctionType(INT, (Opaque("va_list"),)))))) == {"VIS-405"}


@pytest.mark.parametrize(
    ("kind", "c"),
    [
        (Pointer(RecordRef("struct __vis_va_tag")), "struct __vis_va_tag *"),
        (POINTER, "va_list"),
        (Opaque("__vis_va_list"), "x"),
    ],
)
def test_a_va_list_cannot_be_a_parameter(kind: CType, c: str) -> None:
    assert "VIS-408" in rules("define void @f(ptr noundef %0)", function(kind, c=c))


def test_no_va_list_in_memory_that_callers_see() -> None:
    assert rules("define void @f(ptr noundef %0)", function(Pointer(RecordRef("list")))) == ["VIS-408"]


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (Pointer(Opaque("long double")), ["VIS-409"]),
        (Pointer(Pointer(Array(Opaque("_Complex long double"), 2))), ["VIS-409"]),
        (Pointer(RecordRef("quad")), ["VIS-409"]),
        (Pointer(FunctionType(Void(), (Pointer(Opaque("long double")),))), ["VIS-409"]),
        # In a union it is there for the alignment.
        (Pointer(RecordRef("arena")), []),
    ],
)
def test_no_long_double_in_memory_that_callers_see(kind: CType, found: list[str]) -> None:
    assert rules("define void @f(ptr noundef %0)", function(kind)) == found


def test_the_advice_fits_the_type() -> None:
    """A pointer to a long double is refused too, and a single value is no struct."""
    remedies = {}
    for name, ir in (("long double", "fp128"), ("__int128", "i128")):
        text = module_text(f"define void @f({ir} noundef %0) {{\n  ret void\n}}\n")
        found = check_module(text, exports=["f"], api=function(Opaque(name)))
        assert {"VIS-402", "VIS-404"} <= {finding.rule for finding in found}
        remedies[name] = [finding.remedy for finding in found]
    assert all("double" in remedy and "pointer" not in remedy for remedy in remedies["long double"])
    assert all("pointer to the value" in remedy for remedy in remedies["__int128"])
