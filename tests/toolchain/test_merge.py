from __future__ import annotations

from pathlib import Path

import pytest
from buildkit import units

from visget.errors import BuildError
from visget.format.module import parse_bitcode, text_of
from visget.toolchain.clang import CompileOptions
from visget.toolchain.merge import finish, merge_units

TWO = {
    "a.c": "int twice(int);\nstatic int unused(int x) { return x; }\nint f(int a) { return twice(a) + 1; }\n",
    "b.c": "#include <stdio.h>\nint state;\nint twice(int a) { state++; return 2 * a; }\n"
    "int never(void) { return puts(\"never called\"); }\n",
}


def test_units_become_one_module_that_shows_only_its_exports(tmp_path: Path) -> None:
    built = finish(merge_units(units(tmp_path, TWO)), exports=["f"], cleanup="light")
    assert "define signext i32 @f(" in built.text
    assert "define internal signext i32 @twice(" in built.text
    assert "@never" not in built.text and "@puts" not in built.text and "@unused" not in built.text
    assert "@state = internal " in built.text
    assert "!dbg" not in built.text and "DILocation" not in built.text
    assert text_of(parse_bitcode(built.bitcode)).split("source_filename")[1] == built.text.split("source_filename")[1]


def test_the_light_cleanup_removes_stack_slots_and_no_more(tmp_path: Path) -> None:
    merged = merge_units(units(tmp_path, TWO))
    light, none = (finish(merged, exports=["f"], cleanup=how) for how in ("light", "none"))  # type: ignore[arg-type]
    assert "alloca" in none.text and "alloca" not in light.text
    assert "call signext i32 @twice" in light.text  # nothing is inlined before the real machine is known
    assert "@never" not in none.text


def test_a_symbol_defined_twice_names_both_files(tmp_path: Path) -> None:
    two = units(tmp_path, {"a.c": "int f(void) { return 1; }\nint g;\n", "b.c": "int f(void) { return 2; }\nint g;\n"})
    with pytest.raises(BuildError) as caught:
        merge_units(two)
    assert caught.value.message == "f is defined in a.c and in b.c (2 symbols in all)"
    assert caught.value.details["duplicates"] == ["f is defined in a.c and in b.c", "g is defined in a.c and in b.c"]


def test_weak_and_inline_definitions_may_meet(tmp_path: Path) -> None:
    files = {
        "a.c": "__attribute__((weak)) int f(void) { return 1; }\nint g(void) { return f(); }\n",
        "b.c": "int f(void) { return 2; }\n",
        "c.cpp": "inline int shared() { return 3; }\nextern \"C\" int h() { return shared(); }\n",
        "d.cpp": "inline int shared() { return 3; }\nextern \"C\" int i() { return shared(); }\n",
    }
    built = finish(merge_units(units(tmp_path, files)), exports=["g", "h", "i"], cleanup="light")
    assert built.text.count("define internal") == 2
    assert "ret i32 2" in built.text and "ret i32 1" not in built.text


def test_lines_lead_back_to_the_source(tmp_path: Path) -> None:
    code = "int f(int *p, int n)\n{\n    int s = 0;\n    while (n--)\n        s += p[n];\n    return s;\n}\n"
    built = finish(merge_units(units(tmp_path, {"src/a.c": code})), exports=["f"], cleanup="light")
    body = built.text.partition("define")[2].partition("\n}")[0]
    instructions = [line for line in body.splitlines() if line.startswith("  ") and line[2] not in " ]"]
    load = next(number for number, line in enumerate(instructions) if "load i32" in line)
    place = built.lines.lookup("f", load)
    assert place is not None
    assert (place.file, place.line) == ("src/a.c", 5)


def test_the_clean_up_leaves_no_unmarked_integer(tmp_path: Path) -> None:
    # fprintf of one character becomes fputc: a declaration that LLVM makes, and not clang.
    code = '#include <stdio.h>\nvoid f(FILE *s) { fprintf(s, "x"); }\n'
    built = finish(merge_units(units(tmp_path, {"a.c": code})), exports=["f"], cleanup="light")
    assert "declare noundef signext i32 @fputc(" in built.text or "declare signext i32 @fputc(" in built.text


def test_old_style_and_common_definitions(tmp_path: Path) -> None:
    code = "int shared;\nint f(a) int a; { return a + shared; }\n"
    built = finish(
        merge_units(units(tmp_path, {"a.c": code}, CompileOptions(flags=("-fcommon",)))), exports=["f"], cleanup="light"
    )
    assert "@shared = internal global i32 0" in built.text or "@shared = internal" in built.text
