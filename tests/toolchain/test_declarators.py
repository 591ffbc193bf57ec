from __future__ import annotations

from typing import ClassVar

import pytest

from visget.format.prototypes import (
    Array,
    Bool,
    CType,
    EnumRef,
    Float,
    FunctionType,
    Integer,
    Opaque,
    Pointer,
    RecordRef,
    Void,
    c_text,
)
from visget.toolchain.declarators import Parsed, adjusted, declare, parse_type, split_function

INT, LONG, CHAR = Integer("int", 4, True), Integer("long", 8, True), Integer("char", 1, True)
UNSIGNED, ULONG = Integer("unsigned int", 4, False), Integer("unsigned long", 8, False)
DOUBLE, FLOAT, VOID = Float("double", 8), Float("float", 4), Void()
FOO = RecordRef("struct foo")


class Names:
    """The names that the table below uses."""

    typedefs: ClassVar[dict[str, Parsed]] = {
        "size_t": Parsed(ULONG),
        "cstring": Parsed(Pointer(CHAR, True)),
        "fixed": Parsed(INT, const=True),
        "row": Parsed(Array(INT, 4)),
        "callback": Parsed(Pointer(FunctionType(INT, (Pointer(VOID),))), names=frozenset(["inner_t"])),
        "point_t": Parsed(RecordRef("point_t")),
        "int_fast32_t": Parsed(INT, names=frozenset(["int32_t"])),
    }

    def typedef(self, name: str) -> Parsed | None:
        return self.typedefs.get(name)

    def tag(self, kind: str, name: str) -> RecordRef | EnumRef | None:
        known = {"struct foo": FOO, "union u": RecordRef("union u"), "enum color": EnumRef("enum color")}
        return known.get(f"{kind} {name}")  # type: ignore[return-value]

    def unnamed(self, place: str) -> RecordRef | EnumRef | None:
        return RecordRef("struct foo.u") if place == "./dir with (odd) name/api.h:17:45" else None


TABLE: list[tuple[str, CType]] = [
    ("int", INT),
    ("void", VOID),
    ("_Bool", Bool()),
    ("bool", Bool()),
    ("char", CHAR),
    ("signed char", Integer("signed char", 1, True)),
    ("unsigned char", Integer("unsigned char", 1, False)),
    ("short", Integer("short", 2, True)),
    ("unsigned short", Integer("unsigned short", 2, False)),
    ("unsigned int", UNSIGNED),
    ("unsigned long", ULONG),
    ("long long", Integer("long long", 8, True)),
    ("unsigned long long", Integer("unsigned long long", 8, False)),
    ("__int128", Integer("__int128", 16, True)),
    ("unsigned __int128", Integer("unsigned __int128", 16, False)),
    ("_Float16", Float("_Float16", 2)),
    ("float", FLOAT),
    ("double", DOUBLE),
    ("long double", Opaque("long double")),
    ("_Complex double", Opaque("_Complex double")),
    ("const int", INT),
    ("volatile int *", Pointer(INT)),
    ("const char *", Pointer(CHAR, True)),
    ("char *const", Pointer(CHAR)),
    ("char *const *", Pointer(Pointer(CHAR), True)),
    ("const char *const *", Pointer(Pointer(CHAR, True), True)),
    ("const void *restrict", Pointer(VOID, True)),
    ("fixed *", Pointer(INT, True)),
    ("cstring", Pointer(CHAR, True)),
    ("const cstring *", Pointer(Pointer(CHAR, True), True)),
    ("size_t", ULONG),
    ("struct foo", FOO),
    ("const struct foo *", Pointer(FOO, True)),
    ("union u *", Pointer(RecordRef("union u"))),
    ("enum color", EnumRef("enum color")),
    ("struct point_t *", Pointer(RecordRef("point_t"))),
    ("point_t", RecordRef("point_t")),
    ("int[4]", Array(INT, 4)),
    ("int[4][2]", Array(Array(INT, 2), 4)),
    ("long[]", Array(LONG, 0)),
    ("row[3]", Array(Array(INT, 4), 3)),
    ("int (*)[4]", Pointer(Array(INT, 4))),
    ("int *[4]", Array(Pointer(INT), 4)),
    ("int (void)", FunctionType(INT, ())),
    ("int ()", FunctionType(INT, ())),
    ("int (int, ...)", FunctionType(INT, (INT,), True)),
    ("int (*)(void *, const char *)", Pointer(FunctionType(INT, (Pointer(VOID), Pointer(CHAR, True))))),
    ("void (*)(void)", Pointer(FunctionType(VOID, ()))),
    ("void (*(int))(int, float)", FunctionType(Pointer(FunctionType(VOID, (INT, FLOAT))), (INT,))),
    ("void (*(*)(int))(float)", Pointer(FunctionType(Pointer(FunctionType(VOID, (FLOAT,))), (INT,)))),
    ("int (*const [2])(const struct foo *, size_t)", Array(Pointer(FunctionType(INT, (Pointer(FOO, True), ULONG))), 2)),
    ("void (int (*)(int), row)", FunctionType(VOID, (Pointer(FunctionType(INT, (INT,))), Pointer(INT)))),
    ("void (int) __attribute__((noreturn))", FunctionType(VOID, (INT,))),
    ("union (unnamed at ./dir with (odd) name/api.h:17:45)", RecordRef("struct foo.u")),
    ("struct foo::(anonymous at ./dir with (odd) name/api.h:17:45)", RecordRef("struct foo.u")),
    ("va_list", Opaque("va_list")),
    ("struct __vis_va_tag *", Pointer(Opaque("va_list"))),
    ("__attribute__((__vector_size__(4 * sizeof(float)))) float",
     Opaque("__attribute__((__vector_size__(4 * sizeof(float)))) float")),
    ("__attribute__((__vector_size__(4 * sizeof(float)))) float *",
     Pointer(Opaque("__attribute__((__vector_size__(4 * sizeof(float)))) float"))),
    ("unknown_t *", Opaque("unknown_t *")),
    ("struct nobody", Opaque("struct nobody")),
    ("_BitInt(12)", Opaque("_BitInt(12)")),
    ("_Atomic(int)", INT),
    ("const _Atomic(unsigned int) *", Pointer(UNSIGNED, const=True)),
    ("_Atomic(char *) [4]", Array(Pointer(CHAR), 4)),
    ("_Atomic(struct foo)", Opaque("_Atomic(struct foo)")),
    ("int[n]", Opaque("int[n]")),
    ("int @", Opaque("int @")),
    ("", Opaque("")),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "expected"), TABLE, ids=[spelling or "empty" for spelling, _ in TABLE])
def test_spellings(spelling: str, expected: CType) -> None:
    assert parse_type(spelling, Names()).type == expected


def test_what_c_text_writes_is_read_back() -> None:
    for spelling, type_ in TABLE:
        if not isinstance(type_, Opaque | RecordRef) and "va_list" not in c_text(type_) and "__attr" not in spelling:
            assert parse_type(c_text(type_), Names()).type in (type_, adjusted(Parsed(type_)).type)


def test_names_on_the_way() -> None:
    assert parse_type("callback", Names()).names == {"callback", "inner_t"}
    assert parse_type("void (*)(int_fast32_t *)", Names()).names == {"int_fast32_t", "int32_t"}
    assert "va_list" in parse_type("int (const char *, va_list)", Names()).names


@pytest.mark.parametrize(("spelling", "name", "expected"), [
    ("int", "a", "int a"),
    ("const char *", "s", "const char *s"),
    ("char *const *", "argv", "char *const *argv"),
    ("char *const", "s", "char *const s"),
    ("int (*)(void *)", "f", "int (*f)(void *)"),
    ("int (*const)(void)", "f", "int (*const f)(void)"),
    ("int (*)[4]", "m", "int (*m)[4]"),
    ("int[4]", "m", "int m[4]"),
    ("void (*(*)(int))(float)", "g", "void (*(*g)(int))(float)"),
    ("void (*)(int, float)", "get(int k)", "void (*get(int k))(int, float)"),
    ("int", "", "int"),
])  # fmt: skip
def test_declarations(spelling: str, name: str, expected: str) -> None:
    assert declare(spelling, name) == expected


@pytest.mark.parametrize(("spelling", "result", "parameters"), [
    ("int (char *)", "int", "char *"),
    ("void (*(int))(float)", "void (*)(float)", "int"),
    ("const char *(void)", "const char *", "void"),
    ("void (int (*)(int)) __attribute__((nonnull))", "void", "int (*)(int)"),
    ("int ()", "int", ""),
])  # fmt: skip
def test_functions_are_split(spelling: str, result: str, parameters: str) -> None:
    assert split_function(spelling) == (result, parameters)
