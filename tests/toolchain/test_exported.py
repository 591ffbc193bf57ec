from __future__ import annotations

from pathlib import Path

import pytest
from buildkit import headers, units

from visget.errors import UsageError
from visget.format.prototypes import Api
from visget.toolchain.exported import Exported, choose_exports
from visget.toolchain.merge import merge_units


def choose(
    root: Path, header: str, code: str, functions: tuple[str, ...] = ("*",), exclude: tuple[str, ...] = ()
) -> Exported:
    read = headers(root, header)
    merged = merge_units(units(root, {"a.c": code}))
    return choose_exports(read, merged, functions=functions, exclude=exclude)


def test_declared_and_defined_is_exported(tmp_path: Path) -> None:
    found = choose(
        tmp_path,
        "int f(int a);\nint g(int a);\nint missing(void);\nextern int variable;\n",
        "static int hidden(void) { return 1; }\nint variable;\nint g(int a) { return a + hidden(); }\n"
        "int f(int a) { return a; }\nint internal(int a) { return a; }\n",
    )
    assert found.symbols == ("f", "g")
    assert [function.name for function in found.api.functions] == ["f", "g"]
    assert found.findings == []
    assert found.notes == (
        "declared but not defined, so not exported: missing",
        "variables are not exported: variable; a package exports functions, such as one that returns the address",
    )  # fmt: skip


def test_patterns(tmp_path: Path) -> None:
    header = "int lib_a(void);\nint lib_b(void);\nint other(void);\n"
    code = "int lib_a(void) { return 1; }\nint lib_b(void) { return 2; }\nint other(void) { return 3; }\n"
    assert choose(tmp_path, header, code, ("lib_*",), ("*_b",)).symbols == ("lib_a",)
    with pytest.raises(UsageError, match=r"'lob_\*' in \[exports\] matches no function") as caught:
        choose(tmp_path, header, code, ("lob_*",))
    assert caught.value.hint == "they declare: lib_a, lib_b, other"


def test_nothing_to_export(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none of the functions that the public headers declare is defined"):
        choose(tmp_path, "int f(void);\n", "int g(void) { return 1; }\n")


def test_a_function_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the function g is declared but not defined"):
        choose(tmp_path, "int f(void);\nint g(void);\n", "int f(void) { return 1; }\n", ("f", "g"))


def test_only_types_that_matter_are_described(tmp_path: Path) -> None:
    header = (
        "#include <stdio.h>\n#include <time.h>\nstruct mine { struct timespec when; };\n"
        "enum unused_but_public { A };\nint f(FILE *out, struct mine *m);\n"
    )
    found = choose(tmp_path, header, '#include "api.h"\nint f(FILE *out, struct mine *m) { return !out + !m; }\n')
    names = {record.name for record in found.api.records}
    assert names == {"struct mine", "struct timespec", "struct _IO_FILE"}
    stream = found.api.record("struct _IO_FILE")
    assert stream is not None and not stream.complete
    assert [enum.name for enum in found.api.enums] == ["enum unused_but_public"]


@pytest.mark.parametrize(("header", "code", "rule", "said"), [
    ("int f();\n", "int f(int a) { return a; }\n", "API-001", "declared without its parameters"),
    ("int f(int a);\n", "long f(long a) { return a; }\n", "API-002",
     "the result is i32 (LLVM type) by its header, but i64"),
    ("int f(int a, int b);\n", "int f(int a) { return a; }\n", "API-002",
     "declares 2 parameters, but its definition has 1"),
    ("int f(int a, ...);\n", "int f(int a) { return a; }\n", "API-002", "disagree about variable arguments"),
    ("#include <stdint.h>\nint f(int_fast32_t *a);\n", "int f(int *a) { return *a; }\n", "API-003",
     "int_fast32_t has 4 bytes in one C library and 8 in another"),
    ("#include <stdint.h>\nstruct s { uint_fast16_t n; };\nint f(struct s *a);\n",
     "struct s;\nint f(struct s *a) { return !a; }\n", "API-003", "uint_fast16_t has 4 bytes"),
    ("#include <sys/stat.h>\nint f(struct stat *a);\n", "struct stat;\nint f(struct stat *a) { return !a; }\n",
     "API-004", "struct stat has a different layout"),
    ("#include <setjmp.h>\nstruct s { jmp_buf env; };\nint f(struct s *a);\n",
     "struct s;\nint f(struct s *a) { return !a; }\n", "API-004", "jmp_buf has a different layout"),
    ("#include <stddef.h>\nint f(wchar_t a);\n", "int f(int a) { return a; }\n", "API-005", "signed on some"),
])  # fmt: skip
def test_rules(tmp_path: Path, header: str, code: str, rule: str, said: str) -> None:
    found = choose(tmp_path, header, code)
    assert {finding.rule for finding in found.findings} == {rule}
    finding = next(finding for finding in found.findings if said in finding.message)
    assert finding.severity == ("warning" if rule == "API-005" else "error")
    assert (finding.function, finding.file) == ("f", "api.h")
    assert finding.line == len(header.splitlines())
    assert '[exports] exclude = ["f"]' in finding.remedy


def test_structs_by_value_have_no_llvm_type_to_compare(tmp_path: Path) -> None:
    header = "typedef struct { double x, y; } point;\npoint f(point p, int n);\n"
    found = choose(tmp_path, header, '#include "api.h"\npoint f(point p, int n) { p.x += n; return p; }\n')
    assert found.findings == []


def test_typedefs_of_types_that_are_left_out_are_left_out(tmp_path: Path) -> None:
    header = (
        "#include <time.h>\ntypedef struct timespec instant;\ntypedef void (*tick)(struct timespec *);\n"
        "typedef struct mine_s mine;\ntypedef int number;\nnumber f(mine *m);\n"
    )
    code = '#include "api.h"\nint f(mine *m) { return !m; }\n'
    api = choose(tmp_path / "a", header, code).api
    assert [one.name for one in api.typedefs] == ["mine", "number"]
    used = choose(tmp_path / "b", header + "int g(instant *i);\n", code + "int g(instant *i) { return !i; }\n").api
    assert [one.name for one in used.typedefs] == ["instant", "tick", "mine", "number"]
    assert Api.parse(used.encode()) == used
