"""Legalisation edits what the calling convention demands and nothing else, least of all strings."""

from __future__ import annotations

import pytest
from neutral import neutral_ir

from visget.errors import CompileError, UnsupportedError
from visget.format.module import parse_text, text_of
from visget.installer.legalise import ARCHITECTURES, VA_FAMILY, legalise, place_constructors
from visget.installer.support import with_support

SMALL = """
target triple = "riscv64-unknown-linux-musl"
@words = constant [18 x i8] c"signext zeroext i8\\00" ; not code
define signext i8 @f(i8 noundef signext %x, i16 zeroext %y, i32 noundef signext %z) {
  %r = call signext i32 @g(i1 zeroext true, ptr @"odd signext name")
  ret i8 %x
}
declare signext i32 @g(i1 noundef zeroext, ptr)
@"odd signext name" = global i8 0
"""


def test_extension_attributes_go_on_aarch64_only() -> None:
    text = legalise(SMALL, "aarch64").text
    assert 'c"signext zeroext i8\\00"' in text
    assert '@"odd signext name"' in text
    assert text.count("signext") == 3
    assert text.count("zeroext") == 1
    assert "define i8 @f(i8 noundef %x, i16 %y, i32 noundef %z)" in text
    assert legalise(SMALL, "x86_64").text == SMALL


BYTES = """
@alias = alias i8 (i8), ptr @aliased
define noundef signext i8 @char(i8 noundef signext %x, i8 noundef zeroext %y, ptr %p) {
  %r = call noundef signext i8 @char(i8 noundef signext %x, i8 zeroext %y, ptr %p)
  %s = tail call signext i8 %p(i8 signext %r)
  %t = call signext i8 (ptr, ...) @v(ptr @"signext i8 @char(", i8 signext 3)
  %u = call zeroext i8 @small(i8 signext %t)
  %w = musttail call noundef signext i8 @char(i8 noundef signext %x, i8 zeroext %y, ptr %p)
  ret i8 %w
}
define signext i8 @small(i8 signext %x) {
  ret i8 %x
}
define internal signext i8 @aliased(i8 signext %x) {
  ret i8 %x
}
declare signext i8 @v(ptr, ...)
"""
TRUSTLESS = """
@alias = alias i8 (i8), ptr @aliased
define noundef zeroext i8 @char(i8 noundef %x, i8 noundef zeroext %y, ptr %p) {
  %r = call noundef i8 @char(i8 noundef signext %x, i8 zeroext %y, ptr %p)
  %s = tail call i8 %p(i8 signext %r)
  %t = call i8 (ptr, ...) @v(ptr @"signext i8 @char(", i8 signext 3)
  %u = call zeroext i8 @small(i8 signext %t)
  %w = musttail call noundef signext i8 @char(i8 noundef signext %x, i8 zeroext %y, ptr %p)
  ret i8 %w
}
define signext i8 @small(i8 %x) {
  ret i8 %x
}
define internal zeroext i8 @aliased(i8 %x) {
  ret i8 %x
}
declare signext i8 @v(ptr, ...)
"""


def test_on_riscv_no_byte_is_trusted_and_char_goes_out_as_c_compilers_there_expect() -> None:
    assert legalise(BYTES, "riscv64", chars=frozenset(["char", "alias"])).text == TRUSTLESS
    assert legalise(BYTES, "x86_64", chars=frozenset(["char", "alias"])).text == BYTES
    small = SMALL.replace("i8 noundef signext %x", "i8 noundef %x")
    assert legalise(SMALL, "riscv64").text == small != SMALL


VA = """
declare void @__vis_va_start(ptr noundef) #0
declare void @__vis_va_end(ptr noundef) #0
declare void @__vis_va_copy(ptr noundef, ptr noundef) #0
declare ptr @__vis_va_arg_gp(ptr noundef) #0
@text = constant [16 x i8] c"@__vis_va_start("
define i64 @f(i32 %n, ...) {
  %ap = alloca [4 x i64]
  %aq = alloca [4 x i64]
  call void @__vis_va_start(ptr noundef %ap) #0
  call void @__vis_va_copy(ptr noundef %aq, ptr noundef %ap) #0
  %p = call ptr @__vis_va_arg_gp(ptr noundef %aq) #0
  %v = load i64, ptr %p
  call void @__vis_va_end(ptr noundef %aq) #0
  ret i64 %v
}
attributes #0 = { nounwind "vis" }
"""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_variable_arguments_become_intrinsics_and_built_ins(arch: str) -> None:
    done = legalise(VA, arch)
    assert done.builtins == {"__vis_va_arg_gp"}
    assert "call void @llvm.va_start.p0(ptr noundef %ap)" in done.text
    assert 'c"@__vis_va_start("' in done.text
    resolved = with_support(done.text, arch, "musl", done.builtins)
    assert "declare ptr @__vis_va_arg_gp" not in resolved
    text_of(parse_text(resolved))  # it is a whole module, and LLVM's verifier agrees


def test_va_built_ins_that_are_not_called_are_refused() -> None:
    with pytest.raises(CompileError, match="__vis_va_end as a value"):
        legalise("define ptr @f() {\n  ret ptr @__vis_va_end\n}\ndeclare void @__vis_va_end(ptr)\n", "x86_64")


CALLS = """
declare signext i32 @vsnprintf(ptr noundef, i64 noundef, ptr noundef, ptr noundef) #1
declare signext i32 @vsnprintf_chk(ptr)
@table = global [1 x ptr] [ptr @vsnprintf]
define i32 @f(ptr %b, ptr %ap) {
  %r = call signext i32 (ptr, i64, ptr, ptr) @vsnprintf(ptr %b, i64 9, ptr %b, ptr %ap)
  %s = call signext i32 @vsnprintf_chk(ptr %b)
  ret i32 %r
}
attributes #1 = { "vis" }
"""


def test_libc_gets_the_pointer_inside_a_va_list_on_riscv64() -> None:
    done = legalise(CALLS, "riscv64")
    assert done.builtins == {"__vis_vsnprintf"}
    assert "[ptr @__vis_vsnprintf]" in done.text
    assert "@vsnprintf_chk(ptr %b)" in done.text
    resolved = with_support(done.text, "riscv64", "musl", done.builtins)
    text_of(parse_text(resolved))
    assert resolved.count("@vsnprintf(") == 2  # declared and called, by the shim alone
    assert legalise(CALLS, "x86_64").text == CALLS
    assert legalise(CALLS, "aarch64").builtins == frozenset()


def test_a_package_that_defines_such_a_function_keeps_its_own() -> None:
    own = (
        "define i32 @vprintf(ptr %f, ptr %ap) {\n  ret i32 0\n}\ndefine i32 @g() {\n  %r = call i32 "
        "@vprintf(ptr null, ptr null)\n  ret i32 %r\n}\n"
    )
    assert legalise(own, "riscv64").text == own


def test_every_shim_is_valid_ir_and_passes_its_arguments_on() -> None:
    assert len(VA_FAMILY) == 20
    names = [f"__vis_{name}" for name in VA_FAMILY]
    text = text_of(parse_text(with_support("", "riscv64", "musl", names).replace("define internal", "define")))
    for name in VA_FAMILY:
        assert f"@__vis_{name}(" in text
        assert f" @{name}(" in text


def test_an_unknown_built_in_asks_for_a_newer_visget() -> None:
    with pytest.raises(UnsupportedError, match="__vis_sad_u8") as caught:
        with_support("", "x86_64", "gnu", ["__vis_va_arg_gp", "__vis_sad_u8"])
    assert caught.value.details["builtins"] == ["__vis_sad_u8"]


def test_an_unknown_architecture_is_named() -> None:
    with pytest.raises(UnsupportedError, match="s390x"):
        legalise(SMALL, "s390x")


STRUCTORS = """
@llvm.global_ctors = appending global [3 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 200, ptr @early, ptr null }, { i32, ptr, ptr } { i32 65535, ptr @"odd name", ptr @data }, { i32, ptr, ptr } { i32 65535, ptr @late, ptr null }]
@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @end, ptr null }]
@data = internal global i32 0
define internal void @early() {
  ret void
}
define internal void @"odd name"() {
  ret void
}
define internal void @late() {
  ret void
}
define internal void @end() {
  ret void
}
"""  # noqa: E501


def test_constructors_become_entries_of_the_init_array() -> None:
    text = place_constructors(STRUCTORS)
    assert "llvm.global_" not in text
    assert '= internal constant ptr @early, section ".init_array.00200", align 8' in text
    assert '= internal constant ptr @"odd name", section ".init_array", align 8' in text
    assert text.index('ptr @"odd name"') < text.index("ptr @late, section")
    assert '= internal constant ptr @end, section ".fini_array", align 8' in text
    assert "@llvm.compiler.used = appending global [4 x ptr]" in text
    text_of(parse_text(text))


def test_an_existing_list_of_used_symbols_grows() -> None:
    used = '@llvm.compiler.used = appending global [1 x ptr] [ptr @data], section "llvm.metadata"\n'
    text = place_constructors(STRUCTORS + used)
    assert "@llvm.compiler.used = appending global [5 x ptr] [ptr @data, ptr @__vis_ctors.0" in text
    text_of(parse_text(text))


def test_an_empty_list_of_constructors_vanishes() -> None:
    text = place_constructors("@llvm.global_ctors = appending global [0 x { i32, ptr, ptr }] zeroinitializer\n")
    assert text == ""


def test_a_list_of_unknown_form_is_refused() -> None:
    odd = (
        "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr null, "
        "ptr null }]\n"
    )
    with pytest.raises(CompileError, match="constructors"):
        place_constructors(odd)


def test_clang_and_the_rules_agree(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The forms above are what clang really writes."""
    source = (
        "#include <stdarg.h>\n#include <stdio.h>\n__attribute__((constructor(150))) static void a(void) { "
            "puts(\"a\"); }\n"
        "__attribute__((destructor)) static void b(void) { puts(\"b\"); }\n"
        "int f(const char *t, ...) { va_list ap; va_start(ap, t); int r = vprintf(t, ap) + va_arg(ap, int); "
            "va_end(ap); return r; }\n"
        "signed char g(signed char x) { return x; }\n"
    )  # fmt: skip
    text = text_of(parse_text(neutral_ir(source, tmp_path_factory.mktemp("clang"))))
    for arch in ARCHITECTURES:
        done = legalise(text, arch)
        whole = place_constructors(with_support(done.text, arch, "musl", done.builtins))
        text_of(parse_text(whole))
        assert '.init_array.00150"' in whole
        assert ("signext" in whole) == (arch != "aarch64")
        assert ("__vis_vprintf" in done.builtins) == (arch == "riscv64")
