"""The table of imports: true to the headers, present in both C libraries, closed, and helpful about what it refuses."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from pathlib import Path

import pytest
from neutral import neutral_ir, zig
from viscases import module_text

from visget.format.imports import BUILT_INS, DATA, IMPORTS, VA_LIST_FAMILY
from visget.format.irtext import scan
from visget.format.module import parse_text, text_of
from visget.format.refused_imports import WRONG
from visget.format.rules_imports import why_not
from visget.format.verifier import check_module

SPEC = Path(__file__).resolve().parents[2] / "docs" / "spec" / "vis-1.md"
# <strings.h> has bcmp.
# fmt: off
HEADERS = (
    "assert", "complex", "ctype", "errno", "inttypes", "locale", "math", "stdio", "stdlib", "string", "strings", "time",
)
# fmt: on


def test_every_signature_is_what_the_headers_declare(tmp_path: Path) -> None:
    """The neutral front end declares every function of the table; LLVM types must agree one by one."""
    lines = ["#define _GNU_SOURCE", "#undef NDEBUG", *(f"#include <{header}.h>" for header in HEADERS)]
    hidden = {"__fpclassify", "__fpclassifyf", "__signbit", "__signbitf", "__assert_fail", "__errno_location"}
    names = [name for name in IMPORTS if name not in hidden]
    lines += [f"#undef {name}" for name in names]
    lines += ["void *const table[] = {", *(f"(void *){name}," for name in IMPORTS), "};"]
    text = text_of(parse_text(neutral_ir("\n".join(lines), tmp_path)))
    declared = {function.name: function.signature for function in scan(text).functions if function.declared}
    assert declared == {name: entry.signature for name, entry in IMPORTS.items()}


def test_every_import_exists_in_the_c_library_of_this_machine() -> None:
    libraries = [ctypes.CDLL(ctypes.util.find_library(name) or f"lib{name}.so.6") for name in ("c", "m")]
    missing = [name for name in (*IMPORTS, *DATA) if not any(hasattr(library, name) for library in libraries)]
    assert missing == []


def test_every_import_exists_in_musl() -> None:
    stub = zig().parent / "lib" / "libc" / "musl" / "libc.S"
    if not stub.exists():
        pytest.skip("this ziglang has no list of musl's symbols")
    names = set(re.findall(r"^\.(?:globl|weak) (\S+)", stub.read_text(), re.M))
    assert set(IMPORTS) | set(DATA) <= names


def test_no_name_is_both_allowed_and_refused() -> None:
    assert not set(WRONG) & (set(IMPORTS) | set(DATA) | set(BUILT_INS))


def test_the_va_list_family_is_part_of_the_table() -> None:
    assert set(IMPORTS) >= VA_LIST_FAMILY
    assert {name for name in IMPORTS if re.match(r"v.*(?:printf|scanf)\Z", name)} == VA_LIST_FAMILY


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_refused_name_gives_its_reason_and_a_way_out(name: str) -> None:
    text = module_text(f"define void @f() {{\n  call void @{name}()\n  ret void\n}}\ndeclare void @{name}()\n")
    (finding,) = check_module(text, exports=["f"])
    assert (finding.rule, finding.severity, finding.function) == ("VIS-502", "error", "f")
    assert WRONG[name].why in finding.message
    assert finding.remedy == WRONG[name].instead


@pytest.mark.parametrize(
    "name",
    [
        # Each class of silently wrong answers that a C library can give through a name.
        *("regcomp", "fesetround", "nftw", "open", "newlocale", "fstatat", "vswprintf", "csqrtf", "__mulsc3"),
        "__divsc3",
        *("strtold", "sqrtl", "getrusage", "epoll_ctl", "pthread_mutex_init", "setjmp", "sigaltstack", "ilogb"),
        # Present in one C library only.
        *("atexit", "strlcpy", "roundeven"),
        # A compiler's run-time library.
        *("__udivti3", "__addtf3", "__muldc3", "__atomic_store"),
        # Headers of one C library.
        *("__isoc99_sscanf", "__isoc23_strtol", "__ctype_b_loc", "__memcpy_chk", "__atomic_fetch_add_16"),
    ],
)
def test_what_is_known_to_be_wrong_is_refused_with_a_reason(name: str) -> None:
    refusal = why_not(name)
    assert refusal is not None
    assert refusal[0] == "VIS-502"


def test_the_spec_lists_the_table_completely() -> None:
    section = SPEC.read_text().split("### The table of allowed imports")[1].split("\n### ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", section, re.M)
    listed = {name: signature for signature, names in rows for name in re.findall(r"[\w]+", names)}
    assert listed == {name: entry.signature for name, entry in IMPORTS.items()}
