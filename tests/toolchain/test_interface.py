"""What of the public headers becomes the interface when some of it cannot be called alike everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from buildkit import build, project

from visget.errors import RefusedError
from visget.format.findings import Finding
from visget.format.module import parse_bitcode, text_of

HEADER = (
    "#include <stdarg.h>\n#include <stdint.h>\nstruct big { long a, b, c; };\nint plain(int a);\n"
    "int variadic(const char *f, ...);\nlong by_value(struct big b);\nint listed(const char *f, va_list ap);\n"
    "long double wide(long double a);\nvoid fast(int_fast32_t *a);\n"
)
CODE = (
    '#include "api.h"\nint plain(int a) { return a + 1; }\nint variadic(const char *f, ...) { return *f; }\n'
    "long by_value(struct big b) { return b.c; }\n"
    "int listed(const char *f, va_list ap) { return va_arg(ap, int) + *f; }\n"
    "long double wide(long double a) { return a; }\nvoid fast(int_fast32_t *a) { *a = 1; }\n"
)


def test_what_cannot_be_exported_is_left_out_with_a_warning(tmp_path: Path) -> None:
    result = build(project(tmp_path, {"api.h": HEADER, "a.c": CODE}))
    assert result.package.manifest.exports == ("plain",)
    assert [function.name for function in result.package.api().functions] == ["plain"]
    left = {one.function: one for one in result.findings if one.message.startswith("left out of the exports: ")}
    assert set(left) == {"variadic", "by_value", "listed", "wide", "fast"}
    assert {one.severity for one in left.values()} == {"warning"}
    assert left["variadic"].rule == "VIS-401" and (left["variadic"].file, left["variadic"].line) == ("api.h", 5)
    assert '[exports] exclude = ["by_value"]' in left["by_value"].remedy


def test_excluding_them_silences_the_warning(tmp_path: Path) -> None:
    exclude = 'exclude = ["variadic", "by_value", "listed", "wide", "fast"]'
    result = build(project(tmp_path, {"api.h": HEADER, "a.c": CODE}, exports=exclude))
    assert not [one for one in result.findings if "left out" in one.message]


def errors_of(root: Path) -> list[Finding]:
    with pytest.raises(RefusedError) as caught:
        build(root)
    found = caught.value.details["findings"]
    assert isinstance(found, list)
    return [one for one in found if one.severity == "error"]


def test_a_function_that_is_named_is_not_left_out(tmp_path: Path) -> None:
    root = project(tmp_path, {"api.h": HEADER, "a.c": CODE}, exports='functions = ["pl*", "by_value", "variadic"]')
    assert {(one.function, one.rule) for one in errors_of(root)} == {("by_value", "VIS-402"), ("variadic", "VIS-401")}


def test_an_interface_of_such_functions_only_is_refused(tmp_path: Path) -> None:
    found = errors_of(project(tmp_path, {"api.h": "int f(int a, ...);\n", "a.c": "int f(int a, ...) { return a; }\n"}))
    assert [(one.rule, one.function) for one in found] == [("VIS-401", "f")]


def test_another_name_of_a_function_is_exported_as_a_function(tmp_path: Path) -> None:
    code = (
        "static int one(int a) { return a + 1; }\nint f(int a) __attribute__((alias(\"one\")));\n"
        "int two(int a) { return one(a) * 2; }\nint g(int a) __attribute__((weak, alias(\"two\")));\n"
        "int h(int a) __attribute__((alias(\"two\")));\n"
    )
    header = "int f(int a);\nint two(int a);\nint g(int a);\nint h(int a);\n"
    result = build(project(tmp_path, {"api.h": header, "a.c": code}))
    assert result.package.manifest.exports == ("f", "g", "h", "two")
    text = text_of(parse_bitcode(result.package.bitcode()))
    assert "i32 @f(" in text and "@one" not in text and "@g = alias" in text


def test_aliases_of_one_hidden_function(tmp_path: Path) -> None:
    code = (
        "static int one(int a) { return a + 1; }\nint f(int a) __attribute__((alias(\"one\")));\n"
        "int g(int a) __attribute__((alias(\"one\")));\n"
    )
    result = build(project(tmp_path, {"api.h": "int f(int a);\nint g(int a);\n", "a.c": code}))
    assert result.package.manifest.exports == ("f", "g")
    text = text_of(parse_bitcode(result.package.bitcode()))
    assert "@one" not in text
