"""Structs, unions, bit-fields and enums against what a C compiler makes of the same declarations."""

import ctypes
import enum
import subprocess

import pytest
from runtimekit import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LLONG,
    LONG,
    SHORT,
    UCHAR,
    UINT,
    USHORT,
    VOID,
    callback,
    compile_c,
    field,
    fn,
    install,
    needs_cc,
    struct,
    to,
)  # fmt: skip

from visget.errors import LoadError, UnsupportedError
from visget.format.prototypes import Api, Array, Enum, EnumRef, Opaque, Record, RecordRef
from visget.runtime.types import Types

DECLARATIONS = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>
struct mixed { char a; double b; short c; char name[5]; _Bool on; long long big; float f[3]; };
struct inner { short s; int i; };
struct outer { char c; struct inner in; struct inner many[2]; unsigned char end; };
struct node { struct node *next; struct node *others[2]; int value; };
struct left; struct right { struct left *l; int v; }; struct left { struct right r; struct right *p; char c; };
union number { int i; double d; unsigned char bytes[12]; };
struct tagged { int kind; union number n; };
#pragma pack(push, 1)
struct packed { char a; int b; double c; short d; };
#pragma pack(pop)
struct wide { char a; int b; } __attribute__((aligned(16)));
struct gap { char a; int b __attribute__((aligned(16))); char c; };
struct bits { unsigned a : 3, b : 7; int c : 5; unsigned d : 20; unsigned char e; _Bool f : 1; long long g : 40; };
struct only { unsigned short a : 1; unsigned short b : 15; };
struct spread { char first; unsigned x : 24; };
struct anonymous { int a; union { int b; float c; }; struct { short d, e; }; };
struct flexible { int n; double data[]; };
struct handlers { int (*call)(int); const char *label; char *text; void *user; const struct node *head; };
struct hard { int a; long double x; int b; };
enum level { LOW = -1, HIGH = 7 };
typedef struct { enum level level; int v; } leveled;
struct small { float x, y; };
struct large { double v[4]; long n; };
struct ints { int a; long b; };
"""
FUNCTIONS = r"""
void fill_bits(struct bits *b)
{ b->a = 5; b->b = 100; b->c = -9; b->d = 1000000; b->e = 200; b->f = 1; b->g = -123456789012; }
long read_bits(const struct bits *b) { return b->a + 10L*b->b + 1000L*b->c + 100000L*b->d + b->e + b->f + b->g; }
void fill_only(struct only *o) { o->a = 1; o->b = 12345; }
void fill_spread(struct spread *s) { s->first = 1; s->x = 0xabcdef; }
void fill_mixed(struct mixed *m)
{ m->a = 'x'; m->b = 2.5; m->c = -3; strcpy(m->name, "name"); m->on = 1; m->big = 1LL << 40; m->f[2] = 0.5f; }
void fill_packed(struct packed *p) { p->a = 1; p->b = 2; p->c = 3.5; p->d = 4; }
int count(const struct node *n) { int c = 0; for (; n; n = n->next) c++; return c; }
struct small swap(struct small s) { struct small r = { s.y, s.x }; return r; }
struct large grow(struct large s, int by) { s.n += by; for (int i = 0; i < 4; i++) s.v[i] += by; return s; }
struct ints add(struct ints x, struct ints y) { struct ints r = { x.a + y.a, x.b + y.b }; return r; }
int first(union number n) { return n.i; }
int only_first(struct only o) { return o.a; }
int run(const struct handlers *h, int x) { return h->call(x); }
leveled step(leveled l) { l.v++; return l; }
double read_hard(const struct hard *h) { return h->a + (double)h->x + h->b; }
void fill_hard(struct hard *h) { h->a = 1; h->x = 2; h->b = 4; }
"""
LEVEL = Enum(name="enum level", type=INT, values=(("LOW", -1), ("HIGH", 7)))


def record(name, size, align, *fields, kind="struct", doc=""):
    return Record(name=name, kind=kind, size=size, align=align, fields=fields, doc=doc)


RECORDS = (
    record("struct mixed", 48, 8, field("a", 0, CHAR), field("b", 8, DOUBLE), field("c", 16, SHORT),
           field("name", 18, Array(CHAR, 5)), field("on", 23, BOOL), field("big", 24, LLONG),
           field("f", 32, Array(FLOAT, 3)), doc="Mixed."),
    record("struct inner", 8, 4, field("s", 0, SHORT), field("i", 4, INT)),
    record("struct outer", 32, 4, field("c", 0, CHAR), field("in", 4, struct("inner")),
           field("many", 12, Array(struct("inner"), 2)), field("end", 28, UCHAR)),
    record("struct node", 32, 8, field("next", 0, to(struct("node"))),
           field("others", 8, Array(to(struct("node")), 2)), field("value", 24, INT)),
    record("struct right", 16, 8, field("l", 0, to(struct("left"))), field("v", 8, INT)),
    record("struct left", 32, 8, field("r", 0, struct("right")), field("p", 16, to(struct("right"))),
           field("c", 24, CHAR)),
    record("union number", 16, 8, field("i", 0, INT), field("d", 0, DOUBLE), field("bytes", 0, Array(UCHAR, 12)),
           kind="union"),
    record("struct tagged", 24, 8, field("kind", 0, INT), field("n", 8, RecordRef("union number"))),
    record("struct packed", 15, 1, field("a", 0, CHAR), field("b", 1, INT), field("c", 5, DOUBLE),
           field("d", 13, SHORT)),
    record("struct wide", 16, 16, field("a", 0, CHAR), field("b", 4, INT)),
    record("struct gap", 32, 16, field("a", 0, CHAR), field("b", 16, INT), field("c", 20, CHAR)),
    record("struct bits", 16, 8, field("a", 0, UINT, (0, 3)), field("b", 0, UINT, (3, 7)), field("c", 0, INT, (10, 5)),
           field("d", 4, UINT, (0, 20)), field("e", 7, UCHAR), field("f", 8, BOOL, (0, 1)),
           field("g", 8, LLONG, (1, 40))),
    record("struct only", 2, 2, field("a", 0, USHORT, (0, 1)), field("b", 0, USHORT, (1, 15))),
    record("struct spread", 4, 4, field("first", 0, CHAR), field("x", 0, UINT, (8, 24))),
    record("struct anonymous", 12, 4, field("a", 0, INT), field("", 4, RecordRef("union anonymous at 1")),
           field("", 8, struct("anonymous at 2"))),
    record("union anonymous at 1", 4, 4, field("b", 0, INT), field("c", 0, FLOAT), kind="union"),
    record("struct anonymous at 2", 4, 2, field("d", 0, SHORT), field("e", 2, SHORT)),
    record("struct flexible", 8, 8, field("n", 0, INT), field("data", 8, Array(DOUBLE, 0))),
    record("struct handlers", 40, 8, field("call", 0, callback(INT, INT)), field("label", 8, to(CHAR, const=True)),
           field("text", 16, to(CHAR)), field("user", 24, to(VOID)), field("head", 32, to(struct("node"), const=True))),
    record("struct hard", 48, 16, field("a", 0, INT), field("x", 16, Opaque("long double")), field("b", 32, INT)),
    record("leveled", 8, 4, field("level", 0, EnumRef("enum level")), field("v", 4, INT)),
    record("struct small", 8, 4, field("x", 0, FLOAT), field("y", 4, FLOAT)),
    record("struct large", 40, 8, field("v", 0, Array(DOUBLE, 4)), field("n", 32, LONG)),
    record("struct ints", 16, 8, field("a", 0, INT), field("b", 8, LONG)),
)  # fmt: skip
API = Api(
    functions=(
        fn("fill_bits", VOID, ("b", to(struct("bits")))),
        fn("read_bits", LONG, ("b", to(struct("bits"), const=True))),
        fn("fill_only", VOID, ("o", to(struct("only")))),
        fn("fill_spread", VOID, ("s", to(struct("spread")))),
        fn("fill_mixed", VOID, ("m", to(struct("mixed")))),
        fn("fill_packed", VOID, ("p", to(struct("packed")))),
        fn("count", INT, ("n", to(struct("node"), const=True))),
        fn("swap", struct("small"), ("s", struct("small"))),
        fn("grow", struct("large"), ("s", struct("large")), ("by", INT)),
        fn("add", struct("ints"), ("x", struct("ints")), ("y", struct("ints"))),
        fn("first", INT, ("n", RecordRef("union number"))),
        fn("only_first", INT, ("o", struct("only"))),
        fn("run", INT, ("h", to(struct("handlers"), const=True)), ("x", INT)),
        fn("step", RecordRef("leveled"), ("l", RecordRef("leveled"))),
        fn("read_hard", DOUBLE, ("h", to(struct("hard"), const=True))),
        fn("fill_hard", VOID, ("h", to(struct("hard")))),
    ),
    records=RECORDS,
    enums=(LEVEL,),
)


@pytest.fixture(scope="module")
def lib(tmp_path_factory):
    return install(tmp_path_factory.mktemp("types"), DECLARATIONS + FUNCTIONS, API)


@pytest.fixture
def types():
    return Types(API, "visget.lib.demo")


def spelled(r):
    return r.name


@needs_cc
def test_sizes_and_offsets_are_those_of_c(types, tmp_path):
    lines = []
    for r in RECORDS:
        if "anonymous at" in r.name:
            continue
        lines.append(f'printf("{r.name}|%zu|%zu\\n", sizeof({r.name}), _Alignof({r.name}));')
        lines += [
            f'printf("{r.name}|{f.name}|%zu\\n", offsetof({r.name}, {f.name}));'
            for f in r.fields
            if f.bits is None and f.name
        ]
    source = f"#include <stdio.h>\n{DECLARATIONS}\nint main(void) {{ {' '.join(lines)} return 0; }}"
    program = compile_c(source, tmp_path / "print", "-Wno-unused")
    table = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    checked = 0
    for line in table.splitlines():
        name, what, number = line.split("|")
        if what.isdigit():
            assert (ctypes.sizeof(types.record(name)), types.size_and_alignment(name)[1]) == (int(what), int(number))
        elif hasattr(types.record(name), what):
            assert getattr(types.record(name), what).offset == int(number), line
        else:
            assert (name, what) == ("struct hard", "x")
        checked += 1
    assert checked > 60


@needs_cc
def test_what_c_writes_is_what_python_reads(lib):
    mixed = lib.mixed()
    lib.fill_mixed(mixed)
    assert (mixed.a, mixed.b, mixed.c, mixed.name, mixed.on, mixed.big) == (120, 2.5, -3, b"name", True, 1 << 40)
    assert list(mixed.f) == [0, 0, 0.5]
    packed = lib.packed()
    lib.fill_packed(packed)
    assert repr(packed) == "packed(a=1, b=2, c=3.5, d=4)"
    assert lib.mixed.__doc__ == "Mixed."
    assert lib.mixed is lib["struct mixed"]
    with pytest.raises(AttributeError):
        mixed.nmae = 1


@needs_cc
def test_bit_fields(lib):
    bits = lib.bits()
    lib.fill_bits(bits)
    assert repr(bits) == "bits(a=5, b=100, c=-9, d=1000000, e=200, f=1, g=-123456789012)"
    bits.c, bits.a, bits.g = 7, 0, 2**39 - 1
    assert (bits.a, bits.b, bits.c, bits.d, bits.e, bits.f, bits.g) == (0, 100, 7, 1000000, 200, 1, 2**39 - 1)
    assert lib.read_bits(bits) == 0 + 1000 + 7000 + 100000 * 1000000 + 200 + 1 + 2**39 - 1
    named = lib.bits(a=1, g=-1)
    assert (named.a, named.b, named.g) == (1, 0, -1)
    for name, value in (("a", 8), ("a", -1), ("c", 16), ("c", -17), ("g", 2**39)):
        with pytest.raises(OverflowError, match=rf"{value} does not fit into the \d+ bits of {name}"):
            setattr(bits, name, value)
    only, spread = lib.only(), lib.spread()
    lib.fill_only(only)
    lib.fill_spread(spread)
    assert (only.a, only.b) == (1, 12345)
    assert (spread.first, spread.x) == (1, 0xABCDEF)


@needs_cc
def test_pointers_to_oneself_and_each_other(lib):
    tail, head = lib.node(value=2), lib.node(value=1)
    head.next = ctypes.pointer(tail)
    assert lib.count(head) == 2
    assert head.next.contents.value == 2
    assert lib.left.r.offset == 0
    assert lib.right().l._type_ is lib.left
    assert lib.left().r.__class__ is lib.right


@needs_cc
def test_unions_and_anonymous_members(lib):
    number = lib.number(i=1)
    assert number.bytes[0] == 1
    assert ctypes.sizeof(number) == 16
    thing = lib.anonymous(a=1)
    thing.c = 1.0
    thing.e = -2
    assert (thing.b, thing.d, thing.e) == (0x3F800000, 0, -2)


@needs_cc
def test_structs_by_value(lib):
    swapped = lib.swap(lib.small(1, 2))
    assert (swapped.x, swapped.y) == (2, 1)
    grown = lib.grow(lib.large((1, 2, 3, 4), 5), by=10)
    assert (list(grown.v), grown.n) == ([11, 12, 13, 14], 15)
    added = lib.add(lib.ints(1, 2**40), lib.ints(2, 1))
    assert (added.a, added.b) == (3, 2**40 + 1)
    with pytest.raises(TypeError, match=r"add\(\) argument 2 \(y\): expected struct ints \(an instance of ints\), got"):
        lib.add(lib.ints(), lib.small())
    stepped = lib.step(lib.leveled(7, 1))
    assert (stepped.level, stepped.v) == (lib.HIGH, 2)
    for function, reason in ((lib.first, "it is a union"), (lib.only_first, "bit-fields")):
        with pytest.raises(UnsupportedError, match=f"cannot be passed by value from Python: {reason}|{reason}"):
            function(lib.number())


@needs_cc
def test_function_pointers_and_text_in_structs(lib):
    handlers = lib.handlers(label=b"label")
    handlers.call = type(handlers.call)(lambda x: x + 1)
    assert lib.run(handlers, 41) == 42
    assert handlers.label == b"label"
    assert not handlers.user
    assert not handlers.head


@needs_cc
def test_members_that_python_cannot_represent(lib):
    hard = lib.hard()
    lib.fill_hard(hard)
    assert repr(hard) == "hard(a=1, b=4)"
    hard.b = 5
    assert lib.read_hard(hard) == 8


def test_enums(types):
    level = types.enum("enum level")
    assert issubclass(level, enum.IntEnum)
    assert repr(level.LOW) == "<level.LOW: -1>"
    odd = Enum(name="odd", type=UINT, values=(("mro", 1), ("_private_", 2), ("__dunder__", 3), ("A", 4), ("B", 4)))
    made = Types(Api(enums=(odd,)), "m").enum("odd")
    assert [member.name for member in made] == ["A"]
    assert made.B is made.A


@pytest.mark.parametrize(
    "broken",
    [
        record("struct a", 8, 4, field("x", 0, INT), field("y", 2, INT)),
        record("struct a", 4, 4, field("x", 0, INT), field("y", 4, INT)),
        record("union a", 4, 4, field("x", 0, DOUBLE), kind="union"),
        record("union a", 8, 4, field("x", 4, INT), kind="union"),
    ],
)
def test_impossible_layouts_are_refused(broken):
    with pytest.raises(LoadError, match=r"the layout of (struct|union) a .* is not one that C can have"):
        Types(Api(records=(broken,)), "m").record(broken.name)


def test_incomplete_records_have_no_storage(types):
    shell = Record(name="struct shell", kind="struct", size=0, align=1, fields=(), complete=False)
    types = Types(Api(records=(shell,)), "m")
    assert types.record("struct shell") is types.record("struct shell")
    with pytest.raises(UnsupportedError, match="struct shell is incomplete"):
        types.storage(struct("shell"))
    assert issubclass(types.storage(to(struct("shell"))), ctypes._Pointer)
