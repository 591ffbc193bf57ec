from __future__ import annotations

from pathlib import Path

import pytest
from buildkit import headers

from visget.errors import BuildError
from visget.format.prototypes import (
    BASE_TYPES,
    Api,
    Constant,
    Enum,
    EnumRef,
    Function,
    FunctionType,
    Integer,
    Opaque,
    Pointer,
    Record,
    RecordRef,
    c_text,
)
from visget.toolchain.astdump import parse_layouts, parse_tree, place
from visget.toolchain.headers import Headers

API = """
#ifndef API_H
#define API_H
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#ifdef __cplusplus
extern "C" {
#endif
#define VERSION_MAJOR 3
#define VERSION "1.2" "3"
#define EPSILON 1e-5f
#define BIG 0xffffffffffffffffULL
#define LEAST (-9223372036854775807LL - 1)
#define NEGATIVE (-1)
#define SHIFTED (1u << VERSION_MAJOR)
#define LETTER 'a'
#define SIZE sizeof(point_t)
#define GREENISH GREEN
#define NOTHING ((void *)0)
#define EXTERN extern
#define CALL version_string()
#define WITH_PARAMETER(x) (x + 1)
#define BROKEN (1 +
#define GONE 5
#undef GONE
#define _RESERVED 1
/** A point. In the plane. */
typedef struct { double x, y; } point_t;
struct foo {
    int a : 3;
    unsigned b : 5;
    int : 0;
    unsigned long long wide : 40;
    char c;
    union { int i; float f; } u;
    struct { short s, t; };
    int grid[4][2];
    struct foo *next;
    int (*call)(void *, const char *text);
    long tail[];
};
struct __attribute__((packed)) tight { char c; int i; short s; };
union both { int i; double d; };
typedef struct opaque opaque;
typedef struct opaque *opaque_p;
enum color { RED, GREEN = 5, BLUE = -1 };
typedef enum { SMALL, LARGE = 0x80000000u } size_kind;
enum { LOOSE = 77 };
typedef int (*callback)(void *user, size_t n, const point_t *p);
typedef const char *text_t;

/**
 * Adds two numbers.
 *
 * Longer text.
 * @param a the first
 * @return the sum
 */
EXTERN int add(int a, int b);
void visit(callback cb, void *user);
/// What it is called.
text_t name_of(const struct foo *f, uint8_t buffer[4], size_kind kind, enum color c);
double norm(point_t p) __attribute__((pure));
opaque *make(void);
void release(opaque_p what);
_Bool flags(signed char s, unsigned char u, short h, unsigned long long l);
void (*handler(int key))(int, float);
void arrays(int (*m)[4], char *const *argv, const void *const p, int *restrict r);
int format(const char *f, ...);
int vformat(const char *f, va_list ap);
long double precise(long double x);
int_fast32_t fast(FILE *out);
int old_style();
double _Complex turn(double _Complex z);
int first(int);
int renamed(int x) __asm__("other_name");
extern int variable;
static inline int inlined(int q) { return q + 1; }
static int local(void);
typedef int typedef_of_system_t;
const char *version_string(void);
#ifdef __cplusplus
}
#endif
#endif
"""


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Headers:
    return headers(tmp_path_factory.mktemp("headers"), API)


def function(read: Headers, name: str) -> Function:
    return next(one.function for one in read.declared if one.function.name == name)


@pytest.mark.parametrize(("name", "prototype", "resolved"), [
    ("add", "int add(int a, int b)", "int (int, int)"),
    ("visit", "void visit(callback cb, void *user)",
     "void (int (*)(void *, unsigned long, const point_t *), void *)"),
    ("name_of", "text_t name_of(const struct foo *f, uint8_t *buffer, size_kind kind, enum color c)",
     "const char *(const struct foo *, unsigned char *, size_kind, enum color)"),
    ("norm", "double norm(point_t p)", "double (point_t)"),
    ("make", "opaque *make(void)", "struct opaque *(void)"),
    ("release", "void release(opaque_p what)", "void (struct opaque *)"),
    ("flags", "_Bool flags(signed char s, unsigned char u, short h, unsigned long long l)",
     "_Bool (signed char, unsigned char, short, unsigned long long)"),
    ("handler", "void (*handler(int key))(int, float)", "void (*(int))(int, float)"),
    ("arrays", "void arrays(int (*m)[4], char *const *argv, const void *const p, int *restrict r)",
     "void (int (*)[4], char *const *, const void *, int *)"),
    ("format", "int format(const char *f, ...)", "int (const char *, ...)"),
    ("precise", "long double precise(long double x)", "long double (long double)"),
    ("turn", "_Complex double turn(_Complex double z)", "_Complex double (_Complex double)"),
    ("first", "int first(int)", "int (int)"),
    ("other_name", "int other_name(int x)", "int (int)"),
])  # fmt: skip
def test_prototypes(read: Headers, name: str, prototype: str, resolved: str) -> None:
    from visget.format.prototypes import FunctionType

    found = function(read, name)
    assert found.prototype == prototype
    types = tuple(parameter.type for parameter in found.parameters)
    assert c_text(FunctionType(found.result, types, found.variadic)).replace(" (", "(") == resolved.replace(" (", "(")


def test_spellings_and_places(read: Headers) -> None:
    found = function(read, "name_of")
    assert [parameter.c for parameter in found.parameters] == [
        "const struct foo *", "uint8_t *", "size_kind", "enum color",
    ]  # fmt: skip
    assert found.result_c == "text_t"
    assert found.header == "api.h"
    assert found.line == API.splitlines().index(
        "text_t name_of(const struct foo *f, uint8_t buffer[4], size_kind kind, enum color c);"
    ) + 1  # fmt: skip


def test_comments(read: Headers) -> None:
    assert function(read, "add").doc == "Adds two numbers.\n\nLonger text.\n\na: the first\n\nReturns: the sum"
    assert function(read, "name_of").doc == "What it is called."
    assert function(read, "visit").doc == ""


def test_only_what_a_library_defines_is_declared(read: Headers) -> None:
    names = {one.function.name for one in read.declared}
    assert not names & {"inlined", "local", "printf", "variable"}
    assert read.variables == ("variable",)


def test_names_met_on_the_way(read: Headers) -> None:
    names = {one.function.name: one.names for one in read.declared}
    assert "int_fast32_t" in names["fast"]
    assert "va_list" in names["vformat"]
    assert {one.function.name for one in read.declared if not one.prototyped} == {"old_style"}


def test_va_list_is_opaque(read: Headers) -> None:
    assert function(read, "vformat").parameters[1].type == Pointer(Opaque("va_list"))


def record(read: Headers, name: str) -> Record:
    found = read.api.record(name)
    assert found is not None
    return found


def fields(one: Record) -> list[tuple[str, int, str, tuple[int, int] | None]]:
    return [(field.name, field.offset, c_text(field.type), field.bits) for field in one.fields]


def test_layouts(read: Headers) -> None:
    foo = record(read, "struct foo")
    assert (foo.kind, foo.size, foo.align, foo.complete) == ("struct", 72, 8, True)
    assert fields(foo) == [
        ("a", 0, "int", (0, 3)),
        ("b", 0, "unsigned int", (3, 5)),
        ("wide", 8, "unsigned long long", (0, 40)),
        ("c", 13, "char", None),
        ("u", 16, "struct foo.u", None),
        ("", 20, "struct foo.6", None),
        ("grid", 24, "int [4][2]", None),
        ("next", 56, "struct foo *", None),
        ("call", 64, "int (*)(void *, const char *)", None),
        ("tail", 72, "long []", None),
    ]
    assert fields(record(read, "struct foo.u")) == [("i", 0, "int", None), ("f", 0, "float", None)]
    assert record(read, "struct foo.u").kind == "union"


def test_packed_and_opaque_and_unnamed_records(read: Headers) -> None:
    tight = record(read, "struct tight")
    assert (tight.size, tight.align) == (7, 1)
    assert fields(tight) == [("c", 0, "char", None), ("i", 1, "int", None), ("s", 5, "short", None)]
    assert record(read, "union both").size == 8
    assert not record(read, "struct opaque").complete
    point = record(read, "point_t")
    assert (point.size, point.doc) == (16, "A point. In the plane.")


def test_enums(read: Headers) -> None:
    assert read.api.enum("enum color") == Enum(
        name="enum color", type=Integer("int", 4, True), values=(("RED", 0), ("GREEN", 5), ("BLUE", -1))
    )
    assert read.api.enum("size_kind") == Enum(
        name="size_kind", type=Integer("unsigned int", 4, False), values=(("SMALL", 0), ("LARGE", 0x80000000))
    )


def test_constants(read: Headers) -> None:
    assert {(c.name, c.kind, c.value) for c in read.api.constants} == {
        ("VERSION_MAJOR", "int", 3),
        ("VERSION", "str", "1.23"),
        ("EPSILON", "float", "0x1.4f8b580000000p-17"),
        ("BIG", "int", 2**64 - 1),
        ("LEAST", "int", -(2**63)),
        ("NEGATIVE", "int", -1),
        ("SHIFTED", "int", 8),
        ("LETTER", "int", 97),
        ("SIZE", "int", 16),
        ("GREENISH", "int", 5),
        ("LOOSE", "int", 77),
    }


def test_the_interface_can_be_written_and_read(read: Headers) -> None:
    whole = Api(
        functions=tuple(one.function for one in read.declared), records=read.api.records, enums=read.api.enums,
        constants=read.api.constants,
    )  # fmt: skip
    assert Api.parse(whole.encode()) == whole


def test_layouts_are_those_of_the_compiler(tmp_path: Path, read: Headers) -> None:
    from buildkit import units

    probe = ["#include <stddef.h>", '#include "api.h"']
    for one in read.api.records:
        if one.complete and one.name in read.public_types and "." not in one.name:
            probe.append(f"_Static_assert(sizeof({one.name}) == {one.size}, \"\");")
            probe.append(f"_Static_assert(_Alignof({one.name}) == {one.align}, \"\");")
            probe += [
                f"_Static_assert(offsetof({one.name}, {field.name}) == {field.offset}, \"\");"
                for field in one.fields
                if field.name and field.bits is None
            ]
    assert len(probe) > 20
    units(tmp_path, {"api.h": API, "probe.c": "\n".join(probe) + "\n"})


def test_a_comment_below_a_declaration_belongs_to_it(tmp_path: Path) -> None:
    text = """/* The licence of this header. */

int first(int a);
/*
     first does this.
*/


int second(int a);
/*
     second does that.
*/

                        /* utility functions */

/* third, in the usual place */
int third(int a);
int fourth(int a); /* fourth, beside it */
int fifth(int a);  /**< fifth too */
/****************
*  A heading
****************/

int sixth(int a);
"""
    docs = {one.function.name: one.function.doc for one in headers(tmp_path, text).declared}
    assert docs == {
        "first": "first does this.", "second": "second does that.", "third": "third, in the usual place",
        "fourth": "fourth, beside it", "fifth": "fifth too", "sixth": docs["sixth"],
    }  # fmt: skip


def test_the_better_of_two_declarations_counts(tmp_path: Path) -> None:
    text = "/** Documented. */\nint f(int);\nint f(int named);\nint g();\nint g(int a);\n"
    found = {one.function.name: one for one in headers(tmp_path, text).declared}
    assert found["f"].function.prototype == "int f(int named)"
    assert found["f"].function.doc == "Documented."
    assert found["g"].prototyped


def test_headers_that_are_not_c_are_refused_with_clangs_words(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        headers(tmp_path, "class A { int x; };\n")
    assert caught.value.message == "the public headers do not compile as C"
    assert "api.h:1:1: error: unknown type name 'class'" in str(caught.value.details["stderr"])


def test_defines_choose_what_the_header_says(tmp_path: Path) -> None:
    text = "#ifdef WIDE\nlong f(long a);\n#define KIND 2\n#else\nint f(int a);\n#define KIND 1\n#endif\n"
    narrow, wide = headers(tmp_path, text), headers(tmp_path, text, defines=("WIDE",))
    assert function(narrow, "f").prototype == "int f(int a)"
    assert function(wide, "f").prototype == "long f(long a)"
    assert wide.api.constants == (Constant(name="KIND", kind="int", value=2),)


def test_a_standard_of_cxx_is_not_for_the_headers(tmp_path: Path) -> None:
    found = headers(tmp_path, "int f(int a);\n", flags=("-std=c++20",), cxx_standard="c++20")
    assert function(found, "f").prototype == "int f(int a)"


def test_places_that_the_tree_leaves_out() -> None:
    tree = parse_tree(
        '{"inner": [{"id": "1", "kind": "A", "loc": {"offset": 1, "file": "x.h", "line": 3, "col": 1, "tokLen": 1}},'
        ' {"id": "2", "kind": "B", "loc": {"offset": 9, "col": 7, "tokLen": 1}},'
        ' {"id": "3", "kind": "C", "loc": {"spellingLoc": {"offset": 5, "line": 1, "col": 2, "tokLen": 1},'
        ' "expansionLoc": {"offset": 50, "line": 9, "col": 2, "tokLen": 1}}}]}'
    )
    assert [place(node) for node in tree] == [("x.h", 3, 1), ("x.h", 3, 7), ("x.h", 9, 2)]


def test_a_tree_that_is_no_json_is_an_error() -> None:
    with pytest.raises(BuildError, match="cannot be read"):
        parse_tree("{")


def test_layout_dumps() -> None:
    (layout,) = parse_layouts(
        "*** Dumping AST Record Layout\n         0 | struct s\n     0:0-2 |   int a\n     4:- |   int\n"
        "         8 |   struct t inner\n         8 |     int deep\n           | [sizeof=16, align=8]\n"
    ).values()
    assert (layout.size, layout.align) == (16, 8)
    assert [(slot.bit, slot.width) for slot in layout.slots] == [(0, 3), (32, 0), (64, None)]


def test_commands_inside_a_line_of_a_comment_stay_in_it(tmp_path: Path) -> None:
    text = (
        "/**\n * Computes \\p a plus @p b, see @ref g() and \\c other.\n * Second line with \\em emphasis\n"
        " * \\p c starts a line. <b>html</b> &lt;x&gt;\n *\n"
        " * @param a  The \\c first one,\n *           and more @ref g.\n"
        " * @return the sum of \\p a and \\p b.\n * @code\n *   f(1, 2);\n * @endcode\n */\nint f(int a, int b);\n"
    )
    found = headers(tmp_path, text).declared[0].function.doc
    assert found == (
        "Computes a plus b, see g() and other.\nSecond line with emphasis\nc starts a line. html <x>\n\n"
        "a: The first one,\nand more g.\n\nReturns: the sum of a and b.\n\nf(1, 2);"
    )


def test_typedef_names_of_the_public_headers(tmp_path: Path) -> None:
    text = (
        "#include <stdint.h>\n#include <stdio.h>\n"
        "typedef struct stream_s { int a; } stream;\ntypedef stream *stream_p;\ntypedef stream also;\n"
        "typedef struct { int b; } unnamed;\ntypedef unnamed other;\ntypedef struct hidden_s hidden;\n"
        "typedef enum colour { RED } colour_t;\ntypedef enum { UP } way;\n"
        "typedef uint32_t hash;\ntypedef uint32_t hash;\ntypedef double real;\ntypedef long double wide;\n"
        "typedef int row[4];\ntypedef int (*callback)(stream *s, hash h);\ntypedef int function(int);\n"
        "typedef void nothing;\ntypedef _Bool flag;\n"
    )
    found = {one.name: one.type for one in headers(tmp_path, text).api.typedefs}
    stream, colour, hash_ = RecordRef("struct stream_s"), EnumRef("enum colour"), BASE_TYPES["unsigned int"]
    assert found == {
        "stream": stream, "also": stream, "other": RecordRef("unnamed"), "hidden": RecordRef("struct hidden_s"),
        "colour_t": colour, "hash": hash_, "real": BASE_TYPES["double"], "flag": BASE_TYPES["_Bool"],
        "callback": Pointer(FunctionType(BASE_TYPES["int"], (Pointer(stream), hash_))),
    }  # fmt: skip
