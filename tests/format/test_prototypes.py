import json
from dataclasses import replace

import pytest
from formatkit import api
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from visget.errors import FormatError
from visget.format.prototypes import (
    BASE_TYPES,
    Api,
    Array,
    Bool,
    Constant,
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
    Typedef,
    Void,
    c_text,
)

INT, CHAR = BASE_TYPES["int"], BASE_TYPES["char"]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (INT, "int x"),
        (Bool(), "_Bool x"),
        (Pointer(Void()), "void *x"),
        (Pointer(CHAR, True), "const char *x"),
        (Pointer(Pointer(CHAR), True), "char *const *x"),
        (Pointer(Pointer(CHAR, True)), "const char **x"),
        (Pointer(Pointer(CHAR, True), True), "const char *const *x"),
        (Array(Pointer(CHAR), 4), "char *x[4]"),
        (Array(Array(INT, 3), 2), "int x[2][3]"),
        (Array(INT, 0), "int x[]"),
        (Pointer(Array(INT, 3)), "int (*x)[3]"),
        (Pointer(Array(INT, 3), True), "const int (*x)[3]"),
        (Pointer(FunctionType(INT, (Pointer(Void(), True),))), "int (*x)(const void *)"),
        (Pointer(FunctionType(Void(), ())), "void (*x)(void)"),
        (Pointer(FunctionType(INT, (Pointer(CHAR, True),), True)), "int (*x)(const char *, ...)"),
        (
            FunctionType(Pointer(FunctionType(Void(), (INT,))), (INT, Pointer(FunctionType(Void(), (INT,))))),
            "void (*x(int, void (*)(int)))(int)",
        ),
        (RecordRef("struct s"), "struct s x"),
        (Pointer(RecordRef("z_stream")), "z_stream *x"),
        (EnumRef("enum e"), "enum e x"),
        (Opaque("long double"), "long double x"),
        (Float("__bf16", 2), "__bf16 x"),
    ],
)
def test_c_text(type_, text):
    assert c_text(type_, "x") == text


def test_c_text_without_a_name():
    assert c_text(INT) == "int"
    assert c_text(Pointer(CHAR, True)) == "const char *"
    assert c_text(Pointer(FunctionType(INT, (INT,)))) == "int (*)(int)"
    assert c_text(Pointer(Pointer(CHAR), True)) == "char *const *"


PLAIN = st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
lines = st.text(PLAIN, max_size=20)
texts = st.text(PLAIN | st.sampled_from("\n\t"), max_size=30)
RECORD_NAMES, ENUM_NAMES = ["struct a", "union b", "c_t"], ["enum e"]
bases = st.sampled_from(list(BASE_TYPES.values()))
leaves = st.one_of(
    bases,
    st.builds(Integer, st.just("wchar_t"), st.sampled_from([1, 2, 4, 8, 16]), st.booleans()),
    st.builds(Float, st.just("__bf16"), st.just(2)),
    st.builds(Opaque, st.sampled_from(["long double", "float _Complex"])),
    st.builds(EnumRef, st.sampled_from(ENUM_NAMES)),
)
values = st.recursive(
    leaves.filter(lambda type_: type_ != Void()) | st.builds(RecordRef, st.sampled_from(RECORD_NAMES)),
    lambda inner: st.one_of(
        st.builds(Pointer, inner | st.just(Void()), st.booleans()),
        st.builds(lambda element, length: Pointer(Array(element, length)), inner, st.integers(0, 2**40)),
        st.builds(
            lambda result, parameters, variadic: Pointer(FunctionType(result, parameters, variadic)),
            inner | st.just(Void()), st.lists(inner, max_size=3).map(tuple), st.booleans(),
        ),
    ),
    max_leaves=6,
)  # fmt: skip
functions = st.builds(
    Function,
    name=names, prototype=lines, doc=texts, result_c=lines, result=values | st.just(Void()),
    parameters=st.lists(st.builds(Parameter, name=names | st.just(""), c=lines, type=values), max_size=4).map(tuple),
    variadic=st.booleans(), line=st.none() | st.integers(1, 99999), header=st.none() | st.just("a/b.h"),
)  # fmt: skip
fields = st.builds(
    Field, name=names | st.just(""), offset=st.integers(0, 1000),
    type=values.filter(lambda type_: not isinstance(type_, RecordRef)),
) | st.builds(
    Field, name=names, offset=st.integers(0, 1000), type=st.just(INT),
    bits=st.tuples(st.integers(0, 15), st.integers(1, 16)),
)  # fmt: skip
constants = st.one_of(
    st.builds(Constant, name=names, kind=st.just("int"), value=st.integers(-(2**63), 2**64)),
    st.builds(Constant, name=names, kind=st.just("float"), value=st.floats().map(float.hex)),
    st.builds(
        Constant, name=names, kind=st.just("str"), value=st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
    ),
)


def unique(strategy, size):
    return st.lists(strategy, max_size=size, unique_by=lambda item: item.name).map(tuple)


@st.composite
def apis(draw):
    records = tuple(
        Record(
            name=name,
            kind=draw(st.sampled_from(["struct", "union"])),
            size=2000 if complete else 0,
            align=8 if complete else 1,
            fields=tuple(draw(st.lists(fields, max_size=4))) if complete else (),
            complete=complete,
            doc=draw(texts),
        )
        for name in RECORD_NAMES
        for complete in [draw(st.booleans())]
    )
    held = tuple(draw(st.lists(st.tuples(names, st.integers(-(2**63), 2**64 - 1)), max_size=3)))
    enum = Enum(name="enum e", type=INT, values=held, doc=draw(texts))
    return Api(
        functions=draw(unique(functions, 3)), records=records, enums=(enum,), constants=draw(unique(constants, 4))
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(apis())
def test_round_trip(value):
    assert Api.parse(value.encode()) == value
    assert Api.parse(value.encode()).encode() == value.encode()


def test_base_types_are_written_by_name():
    written = json.loads(api().encode())
    assert written["functions"][0]["result"] == "int"
    assert written["functions"][0]["parameters"][0]["type"] == "int"


def struct(name, *parts, size=64, **changes):
    return Record(name=name, kind="struct", size=size, align=8, fields=parts, **changes)


def field(type_, offset=0, **changes):
    return Field(name="f", offset=offset, type=type_, **changes)


def refused(value, match):
    with pytest.raises(FormatError, match=match):
        Api.parse(value.encode())


def test_references_resolve():
    refused(Api(records=(struct("struct a", field(Pointer(RecordRef("struct b")))),)), "'struct b', which is not among")
    refused(Api(records=(struct("struct a", field(EnumRef("enum e"))),)), "'enum e', which is not among the enums")
    callback = Pointer(FunctionType(Void(), (Pointer(RecordRef("x")),)))
    refused(replace(api(), functions=(replace(api().functions[0], result=callback),)), "function add refers to 'x'")


def test_a_record_never_contains_itself():
    refused(Api(records=(struct("struct a", field(RecordRef("struct a"))),)), "contains itself")
    loop = (
        struct("struct a", field(Array(RecordRef("struct b"), 1))),
        struct("struct b", field(RecordRef("struct a"))),
    )
    refused(Api(records=loop), "contains itself")
    chain = [struct(f"s{n}", field(RecordRef(f"s{n + 1}"))) for n in range(40)] + [struct("s40")]
    refused(Api(records=tuple(chain)), "nested in more than 32")
    Api.parse(Api(records=(struct("struct a", field(Pointer(RecordRef("struct a")))),)).encode())


@pytest.mark.parametrize(
    "bad",
    [
        field(INT, 61),
        field(INT, 2**30),
        field(Pointer(Void()), 57),
        field(Array(INT, 17)),
        field(Array(Array(INT, 2**20), 2**20)),
        field(INT, 61, bits=(24, 1)),
        field(INT, bits=(31, 2)),
    ],
)
def test_fields_stay_inside(bad):
    refused(Api(records=(struct("struct a", bad),)), "leaves")


def test_fields_may_end_where_the_record_ends():
    good = struct("struct a", field(INT, 60), field(INT, 60, bits=(31, 1)), field(Array(INT, 0), 64))
    assert Api.parse(Api(records=(good,)).encode()).records == (good,)


@pytest.mark.parametrize(
    "bad", [Void(), FunctionType(INT, ()), Array(Void(), 1), Pointer(Array(FunctionType(INT, ()), 1))]
)
def test_there_are_no_such_values(bad):
    refused(Api(records=(struct("struct a", field(bad)),)), "no values")
    refused(taking(bad), "no values|passes as a pointer")
    refused(taking(Pointer(FunctionType(INT, (bad,)))), "no values|passes as a pointer")


def taking(type_):
    function = api().functions[0]
    return Api(functions=(replace(function, parameters=(Parameter(name="x", c="x", type=type_),)),))


def test_there_are_no_such_functions():
    refused(taking(Array(INT, 2)), r"takes 'int \[2\]', which C passes as a pointer")
    for result in (Array(INT, 2), FunctionType(INT, ())):
        refused(Api(functions=(replace(api().functions[0], result=result),)), "returns")
        refused(taking(Pointer(FunctionType(result, ()))), "returns")
    Api.parse(taking(Pointer(FunctionType(Void(), ()))).encode())
    Api.parse(taking(Pointer(Array(INT, 2))).encode())


def test_names_are_unique():
    for what in ("functions", "records", "enums", "constants", "typedefs"):
        item = {
            "functions": api().functions[0],
            "records": struct("struct a"),
            "enums": Enum(name="enum e", type=INT, values=()),
            "constants": Constant(name="C", kind="int", value=1),
            "typedefs": Typedef(name="t", type=INT),
        }[what]
        refused(Api(**{what: (item, item)}), "twice")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("format",), "visget-api-2"),
        (("functions", 0, "name"), "a b"),
        (("functions", 0, "name"), "é"),
        (("functions", 0, "result"), "unsigned"),
        (("functions", 0, "result"), 1),
        (("functions", 0, "result"), {"kind": "reference", "target": "int"}),
        (("functions", 0, "result"), {"kind": "integer", "name": "int", "size": 4, "signed": True}),
        (("functions", 0, "result"), {"kind": "integer", "name": "odd", "size": 3, "signed": True}),
        (("functions", 0, "result"), {"kind": "pointer", "target": "int"}),
        (("functions", 0, "result"), {"kind": "pointer", "target": "int", "const": False, "volatile": True}),
        (("functions", 0, "prototype"), "int\nadd"),
        (("functions", 0, "doc"), "\x1b"),
        (("functions", 0, "line"), 0),
        (("constants", 0, "value"), None),
        (("constants", 0, "value"), "5"),
        (("constants", 1, "value"), "1.5"),
        (("constants", 1, "kind"), "double"),
        (("typedefs",), None),
        (("typedefs",), {}),
        (("typedefs", 0, "name"), "struct x"),
        (("typedefs", 0, "name"), ""),
        (("typedefs", 0, "type"), "void"),
        (("typedefs", 0), {"name": "a", "type": "int", "doc": ""}),
    ],
)
def test_refuses(place, value):
    good = replace(
        api(),
        constants=(
            Constant(name="A", kind="int", value=1),
            Constant(name="B", kind="float", value="0x1.8p+0"),
        ),
        typedefs=(Typedef(name="a", type=INT),),
    )
    document = json.loads(good.encode())
    target = document
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    with pytest.raises(FormatError, match=r"^api"):
        Api.parse(json.dumps(document).encode())


def test_typedefs_are_carried():
    types = (
        INT, Bool(), BASE_TYPES["double"], RecordRef("struct a"), EnumRef("enum e"), Pointer(FunctionType(INT, (INT,))),
    )  # fmt: skip
    whole = Api(
        records=(struct("struct a"),),
        enums=(Enum(name="enum e", type=INT, values=()),),
        typedefs=tuple(Typedef(name=f"t{n}", type=type_) for n, type_ in enumerate(types)),
    )
    assert Api.parse(whole.encode()) == whole


@pytest.mark.parametrize(
    ("type_", "why"),
    [
        (Void(), "'void', which is none"),
        (Pointer(INT), r"'int \*', which is none"),
        (Array(INT, 2), "which is none"),
        (FunctionType(INT, ()), "which is none"),
        (Opaque("long double"), "'long double', which is none"),
        (RecordRef("struct b"), "the typedef 't' refers to 'struct b', which is not among the records"),
        (EnumRef("enum b"), "not among the enums"),
        (Pointer(FunctionType(RecordRef("struct b"), ())), "not among the records"),
        (Pointer(FunctionType(Array(INT, 2), ())), "returns"),
    ],
)
def test_typedefs_of_nothing_are_refused(type_, why):
    refused(Api(typedefs=(Typedef(name="t", type=type_),)), why)


def test_lookup():
    assert api().function("add") is not None
    assert api().function("sub") is None
    assert api().record("x") is api().enum("x") is None
