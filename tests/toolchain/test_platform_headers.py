"""The headers declare the platform interface and nothing else; what they say of sizes and numbers holds everywhere."""

from __future__ import annotations

import platformheaders
import pytest
from platformkit import declared, headers, includable, long_types, run

from visget.format.imports import BUILT_INS, DATA, IMPORTS
from visget.format.refused_imports import WRONG
from visget.toolchain.clang import OVERLAY

COMPILERS_OWN = {"alloca"}
"""Functions that the compiler replaces by code."""
REFUSED_BY_A_RULE = {"ilogb", "ilogbf"}
"""Declared for <tgmath.h>'s sake."""


def test_the_generated_parts_are_what_the_tables_ask_for() -> None:
    for name, text in platformheaders.expected().items():
        assert (OVERLAY / name).read_text() == text, "run: python tests/support/platformheaders.py"


def test_whatever_the_headers_declare_is_in_the_interface_or_unavailable() -> None:
    """Every function and variable of every header that can be included."""
    assert len(includable()) > 100
    stray = {
        name: item.headers
        for name, item in declared().items()
        if name not in IMPORTS
        and name not in DATA
        and item.label not in IMPORTS
        and item.label not in BUILT_INS
        and not item.unavailable
        and name not in long_types() | COMPILERS_OWN
    }
    assert set(stray) == REFUSED_BY_A_RULE <= set(WRONG)


def test_what_is_refused_by_its_type_has_a_type_that_rules_refuse() -> None:
    assert {"sinl", "strtold", "wcstold", "csqrtf"} <= long_types()
    assert not long_types() & set(IMPORTS)


def test_everything_in_the_interface_is_declared_by_a_header() -> None:
    names = {name for name in (*IMPORTS, *DATA) if not name.startswith("_Unwind_")}
    assert names <= set(declared())
    assert not any(declared()[name].unavailable for name in names)


def test_a_header_that_has_nothing_to_offer_says_what_to_use() -> None:
    done = run("".join(f"#include <{name}>\n" for name in platformheaders.WITHOUT), "-fsyntax-only", "-ferror-limit=0")
    assert done.stderr.count("error: ") == len(platformheaders.WITHOUT)
    for name, remedy in platformheaders.WITHOUT.items():
        assert f'"<{name}> is not in the platform interface: {remedy}"' in done.stderr


FLAGS: list[list[str]] = [[], ["-D_GNU_SOURCE"], ["-std=c99"], ["-std=c11", "-D_XOPEN_SOURCE=700"]]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("cxx", [False, True], ids=["C", "C++"])
def test_headers_can_be_included_in_any_order(flags: list[str], cxx: bool) -> None:
    """With every set of names that sources ask for."""
    if cxx and flags[:1] and flags[0].startswith("-std"):
        flags = ["-std=c++17", *flags[1:]]
    for order in (includable(), includable()[::-1]):
        done = run("".join(f"#include <{name}>\n" for name in order), *flags, "-fsyntax-only", cxx=cxx)
        assert done.returncode == 0, done.stderr[:2000]


def test_the_headers_that_are_listed_exist() -> None:
    assert set(platformheaders.WITHOUT) <= set(headers())
    assert {"sys/stat.h", "fcntl.h", "pthread.h", "setjmp.h", "threads.h", "sys/socket.h"} <= set(includable())


def test_a_macro_of_the_sources_survives_the_headers() -> None:
    """Sources that bring their own strlcpy rename it before they include headers."""
    source = (
        "#define strlcpy mine_strlcpy\n#include <string.h>\n"
        "unsigned long strlcpy(char *, const char *, unsigned long);\n"
        "unsigned long f(char *a) { return mine_strlcpy(a, a, 1); }\n"
    )
    done = run(source, "-S", "-emit-llvm", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert "@mine_strlcpy(" in done.stdout


def test_sources_may_define_what_the_interface_lacks() -> None:
    source = (
        "#define _GNU_SOURCE\n#include <string.h>\n#include <stdlib.h>\n"
        "size_t strlcpy(char *to, const char *from, size_t n) { return strlen(from) + (to && n); }\n"
        "size_t f(char *a) { return strlcpy(a, a, 1); }\n"
    )
    assert run(source, "-fsyntax-only").returncode == 0
