"""The scanner sees entities where LLVM's printer put them, whatever names and strings look like."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from viscases import F, module_text

from visget.errors import FormatError
from visget.format.irtext import closing, mask, scan, split_list, split_type, unmask
from visget.format.irtypes import ENDLESS, Types
from visget.format.module import parse_text, text_of

NASTY = """
%"struct.a b" = type { i32, ptr }
%struct.c = type opaque
@"quoted \\22 name" = internal constant [9 x i8] c"}\\0Adefine ", align 1
@array = internal global [2 x ptr] [ptr @"quoted \\22 name", ptr null], section "x, section y"
@al = internal alias i8, ptr @array
define internal noundef signext range(i32 0, 5) i32 @"f(x, y)"(ptr noundef nonnull align 8 captures(none) %0,
    i32 noundef signext range(i32 -3, 7) %1, ...) unnamed_addr #0 align 16 {
  %3 = load ptr, ptr %0, align 8, !tbaa !1
  switch i32 %1, label %bb [
    i32 0, label %bb
    i32 1, label %"bb ; quoted"
  ]
bb:
  ret i32 0
"bb ; quoted":
  %4 = call i32 (ptr, ...) @"f(x, y)"(ptr %3, i32 1)
  br label %bb
}
declare void @opaque(ptr, [2 x i64], { float, float }, <4 x i32>)
attributes #0 = { nounwind "key"="value with } and \\22" }
!1 = !{!2, !2, i64 0}
!2 = !{!"any } pointer", !3, i64 0}
!3 = !{!"Simple C/C++ TBAA"}
"""


def test_entities() -> None:
    module = scan(module_text(NASTY))
    assert [item.name for item in module.globals] == ["quoted \\22 name", "array", "al"]
    assert [item.kind for item in module.globals] == ["constant", "global", "alias"]
    assert module.globals[1].type == "[2 x ptr]"
    function, declared = module.functions
    assert function.name == "f(x, y)"
    assert (function.linkage, function.variadic, function.declared) == ("internal", True, False)
    assert function.result.type == "i32"
    assert function.result.attributes.endswith("noundef signext range(i32 0, 5)")
    assert [parameter.type for parameter in function.parameters] == ["ptr", "i32"]
    assert "captures(none)" in function.parameters[0].attributes
    assert declared.signature == "void (ptr, [2 x i64], { float, float }, <4 x i32>)"
    assert declared.declared
    assert module.text(module.attributes["#0"]) == 'nounwind "key"="value with } and \\22"'
    assert module.source == "vis"


def test_ordinals_count_instructions_not_lines() -> None:
    function = scan(module_text(NASTY)).functions[0]
    first_words = [function.instruction(n).split()[0] for n in range(len(function.starts))]
    assert first_words == ["%3", "switch", "ret", "%4", "br"]
    assert function.instruction(1).endswith("]")
    assert function.ordinal(function.body.index("i32 1, label")) == 1


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=40), st.binary(min_size=1, max_size=12).filter(lambda b: b"\0" not in b))
def test_strings_and_names_of_any_bytes_are_never_syntax(content: bytes, name: bytes) -> None:
    def quoted(data: bytes) -> str:
        return "".join(f"\\{byte:02X}" for byte in data)

    body = f'@"{quoted(name)}x" = internal constant [{len(content)} x i8] c"{quoted(content)}"\n{F}'
    text = text_of(parse_text(body))
    module = scan(text)
    assert [function.name for function in module.functions] == ["f"]
    assert len(module.globals) == 1
    masked, strings = mask(text)
    without_comments = "\n".join(line for line in text.splitlines() if not line.startswith(";"))
    assert unmask(masked, strings).strip() == without_comments.strip()


@pytest.mark.parametrize(
    "text",
    ["garbage\n", "define void @f() {\n  ret void\n", "@x global i32 0\n", "declare nothing\n", "define void @f() {"],
)
def test_unknown_text_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="LLVM IR text"):
        scan(text)


def test_brackets_and_lists() -> None:
    assert closing("f(a(b), c)", 1) == 9
    assert closing("(((", 0) == -1
    assert split_list("i32 %a, { i32, ptr } %b, [2 x i64] %c") == ["i32 %a", "{ i32, ptr } %b", "[2 x i64] %c"]
    assert split_type("[2 x { i32, ptr }] %x") == ("[2 x { i32, ptr }]", "%x")
    assert split_type("ptr addrspace(1) %x") == ("ptr addrspace(1)", "%x")
    assert split_type("%struct.a %x") == ("%struct.a", "%x")


def test_sizes_of_types() -> None:
    types = Types({"%a": "{ i8, i64, i32 }", "%p": "<{ i8, i64 }>", "%r": "{ i32, %r }", "%n": "{ %a, [3 x %a] }"})
    assert types.size("%a") == 24
    assert types.size("%p") == 9
    assert types.size("%n") == 96
    assert types.size("<4 x i32>") == 16
    assert types.size("i128") == 16
    assert types.size("i24") == 4
    assert types.size("{ i8, fp128 }") == 32
    assert types.size("%unknown") == 0
    assert types.size("%r") >= ENDLESS
    assert types.scalars("%n", 4) == ["i8", "i64", "i32", "i8"]
    assert types.scalars("[1000000 x [1000000 x i8]]", 3) == ["i8", "i8", "i8"]


def test_attribute_keys_that_print_as_more_text_cannot_hide_anything() -> None:
    """LLVM prints keys of string attributes raw. What then looks hidden must be gone from what is compiled, too."""
    hidden = '"alloc-family\\22 }\\0A; " "target-cpu"="evil"'
    text = module_text(f"define void @f() #0 {{\n  ret void\n}}\nattributes #0 = {{ {hidden} }}\n")
    assert '\n; "' in text
    assert "evil" not in text_of(parse_text(text))

    swallowing = '"vis\\22 }\\0Adefine internal void @z() {\\0A  ret void ;"'
    text = module_text(f"define void @f() #0 {{\n  ret void\n}}\nattributes #0 = {{ {swallowing} }}\n")
    with pytest.raises(FormatError):
        scan(text)
    stray = module_text('define void @f() #0 {\n  ret void\n}\nattributes #0 = { "a\\22b" }\n')
    with pytest.raises(FormatError, match="no partner"):
        scan(stray)
