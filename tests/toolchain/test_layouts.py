"""API-007 and API-008: what clang says about the public headers on x86-64 and AArch64, against what the module has."""

from __future__ import annotations

from pathlib import Path

import pytest
from buildkit import frontend, headers, units

from visget.format.findings import Finding
from visget.toolchain.clang import CompileOptions
from visget.toolchain.exported import choose_exports
from visget.toolchain.layouts import MACHINES, Machine, compare_layouts
from visget.toolchain.merge import merge_units


def compare(root: Path, header: str, code: str = "void f(void *p) { *(char *)p = 1; }") -> list[Finding]:
    read = headers(root, header)
    api = choose_exports(read, merge_units(units(root, {"a.c": code})), functions=("*",), exclude=()).api
    return compare_layouts(frontend(), CompileOptions(), root, read, api, ["api.h"])


@pytest.mark.parametrize(
    "header",
    [
        "struct s { char a; int b : 3; unsigned c : 29; long long d : 40; _Bool e; double g; void *h; };",
        "struct s { char a; union { int i; double d; }; struct { short x, y; } p[3]; int (*call)(int); char tail[]; };",
        "struct __attribute__((packed)) s { char a; int b; double c; };",
        "struct s { char a; _Alignas(32) char b; __int128 c; };",
        "typedef float v4 __attribute__((vector_size(16)));\nstruct s { char a; v4 b; };",
        "#include <stdatomic.h>\nstruct s { atomic_char a; atomic_short b; _Atomic long long c; atomic_flag d; };",
        "#include <time.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <stdint.h>\n#include <stddef.h>\n"
        "struct s { struct tm a; struct timespec b; FILE *c; div_t d; lldiv_t e; fpos_t g; time_t h; size_t i;\n"
        "  intmax_t j; uintptr_t k; int_fast8_t l; int_fast64_t m; int_least16_t n; ptrdiff_t o; clock_t p; };",
        "#include <locale.h>\n#include <wchar.h>\n#include <inttypes.h>\n#include <signal.h>\n"
        "struct s { struct lconv *a; mbstate_t b; wint_t c; imaxdiv_t d; sig_atomic_t e; };",
        "#include <sys/types.h>\n#include <sys/time.h>\n#include <sys/socket.h>\n#include <netinet/in.h>\n"
        "struct s { struct timeval a; off_t b; ssize_t c; pid_t d; mode_t e; struct sockaddr_in g; socklen_t h; };",
        "enum e { A = -1, B = 1L << 40 };\nstruct s { enum e a; char b; };",
    ],
)
def test_equal_everywhere(header: str, tmp_path: Path) -> None:
    assert compare(tmp_path, header + "\nvoid f(struct s *p);\n") == []


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("struct s { char a; int : 0; char b; };", "struct s has 8 bytes instead of 5 on AArch64"),
        ("struct s { char a; int : 3; char b; };", "struct s has 4 bytes instead of 3 on AArch64"),
        ("typedef float v8 __attribute__((vector_size(32)));\nstruct s { char a; v8 v; };", "member v at another"),
        ("struct s { char a; _BitInt(65) v; };", "struct s has its member v at another place on AArch64"),
        ("#include <stdarg.h>\nstruct s { va_list a; };", "struct s has 24 bytes instead of 32 on x86-64"),
        ("#ifdef __x86_64__\n#define W long\n#else\n#define W int\n#endif\nstruct s { W a; };", "has 8 bytes"),
        ("struct s {\n#ifdef __SSE2__\n int x;\n#endif\n int a; };", "struct s has its member a at another place"),
        ("struct s { int a;\n#ifndef __aarch64__\n char x; char y;\n#endif\n };", "has other members (x, y)"),
        ("#include <pthread.h>\nstruct s { pthread_attr_t a; };", "struct s has 56 bytes instead of 96 on x86-64"),
        ("#include <stdint.h>\nstruct s { int_fast32_t a; };", "struct s has 8 bytes instead of 4 on x86-64"),
        ("struct s;\nstruct t { char a; int : 0; char b; };\nstruct s { struct t *next; };", "struct t has 8 bytes"),
    ],
)
def test_a_struct_that_differs_somewhere(header: str, says: str, tmp_path: Path) -> None:
    found = compare(tmp_path, header + "\nvoid f(struct s *p);\n")
    assert {one.rule for one in found} == {"API-007"}
    assert {one.severity for one in found} == {"error"}
    assert any(says in one.message for one in found), [one.render() for one in found]
    lines = header.split("\n")
    for one in found:
        assert one.function == "f"
        assert one.file == "api.h"
        assert one.line is not None and one.message[:8] in lines[one.line - 1]


def test_a_number_that_has_another_size_somewhere(tmp_path: Path) -> None:
    found = compare(tmp_path, "#include <sys/types.h>\ntypedef blksize_t mine;\nvoid f(mine *p);\n")
    assert [(one.rule, one.severity, one.function, one.file, one.line) for one in found] == [
        ("API-007", "error", "f", "api.h", 3)
    ] * len(found)
    assert "blksize_t has 8 bytes on x86-64, but 4 in the package" in [one.message for one in found]


def test_a_struct_that_no_function_takes_is_only_worth_a_word(tmp_path: Path) -> None:
    found = compare(tmp_path, "struct s { char a; int : 0; char b; };\nvoid f(void *p);\n")
    assert [(one.rule, one.severity, one.function) for one in found] == [("API-007", "warning", None)]


def test_headers_that_another_machine_refuses(tmp_path: Path) -> None:
    found = compare(tmp_path, '#ifdef __aarch64__\n#error "not here"\n#endif\nvoid f(void *p);\n')
    assert [(one.rule, one.severity, one.file) for one in found] == [("API-008", "warning", "api.h")]
    assert found[0].message.startswith("the public headers do not compile for AArch64: ")
    assert 'error: "not here"' in found[0].message


def test_the_machine_itself_differs_in_nothing(tmp_path: Path) -> None:
    """The comparison compares: with the module's own C library and machine, the worst header is fine."""
    own = Machine(
        name="itself",
        triple="riscv64-unknown-linux-musl",
        directories=("riscv64-linux-musl", "generic-musl", "riscv-linux-any", "any-linux-any"),
    )
    header = "#include <sys/stat.h>\n#include <stdint.h>\nstruct s { char a; int : 0; struct stat b; int_fast32_t c; };"
    read = headers(tmp_path, header + "\nvoid f(struct s *p);\n")
    merged = merge_units(units(tmp_path, {"a.c": "void f(void *p) { *(char *)p = 1; }"}))
    api = choose_exports(read, merged, functions=("*",), exclude=()).api
    assert compare_layouts(frontend(), CompileOptions(), tmp_path, read, api, ["api.h"], [own]) == []
    assert compare_layouts(frontend(), CompileOptions(), tmp_path, read, api, ["api.h"], MACHINES) != []
