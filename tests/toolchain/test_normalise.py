from __future__ import annotations

from visget.format.module import parse_text
from visget.toolchain.normalise import internal_text, neutral_text, strong_definitions

UNIT = """source_filename = "/home/me/a.c"
target triple = "riscv64-unknown-linux-musl"

$inl = comdat any

$"odd name" = comdat any

@text = private unnamed_addr constant [17 x i8] c"x comdat, comdat\\00", align 1
@inl_state = linkonce_odr hidden global i32 0, comdat($inl), align 4
@weak = weak dso_local global i32 1, align 4
@strong = hidden local_unnamed_addr global i32 1, align 4
@"odd global" = dso_local constant i32 3
@outside = external global ptr
@maybe = extern_weak global i32
@other = dso_local alias i32 (i32), ptr @f
@llvm.used = appending global [1 x ptr] [ptr @f], section "llvm.metadata"

define linkonce_odr hidden i32 @inl() #1 comdat {
  ret i32 0
}

define weak void @"odd name"() #1 comdat($"odd name") align 2 {
  ret void
}

define dso_local signext i32 @f(i32 noundef signext %0) #0 {
  ret i32 %0
}

define internal void @hidden_one() #1 {
  ret void
}

define available_externally void @inline_body() #1 {
  ret void
}

declare void @imported(ptr) #2

attributes #0 = { nounwind "target-cpu"="generic-rv64" "target-features"="+m,+a" "no-trapping-math"="true" }
attributes #1 = { "frame-pointer"="all" "stack-protector-buffer-size"="8" }
attributes #2 = { "custom"="kept" "tune-cpu"="x" }

!llvm.module.flags = !{!0, !1, !2, !3}

!0 = !{i32 1, !"wchar_size", i32 4}
!1 = !{i32 1, !"target-abi", !"lp64d"}
!2 = !{i32 6, !"riscv-isa", !4}
!3 = !{i32 8, !"SmallDataLimit", i32 0}
!4 = !{!"rv64i2p1"}
"""


def lines_of(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_what_pins_to_a_processor_goes() -> None:
    assert lines_of(neutral_text(UNIT), "attributes") == [
        "attributes #0 = { nounwind }",
        'attributes #1 = { "vis" }',
        'attributes #2 = { "custom"="kept" }',
    ]


def test_flags_of_the_neutral_target_go_and_others_stay() -> None:
    assert lines_of(neutral_text(UNIT), "!llvm.module.flags") == ["!llvm.module.flags = !{!0}"]


def test_the_file_name_goes() -> None:
    assert 'source_filename = "vis"' in neutral_text(UNIT)
    assert "/home/me" not in neutral_text(UNIT)


def test_groups_of_sections_go_but_text_stays() -> None:
    text = neutral_text(UNIT)
    assert 'c"x comdat, comdat\\00", align 1' in text
    assert "define linkonce_odr hidden i32 @inl() #1 {" in text
    assert 'define weak void @"odd name"() #1 align 2 {' in text
    assert "@inl_state = linkonce_odr hidden global i32 0, align 4" in text
    assert not lines_of(text, "$")


def test_strong_definitions() -> None:
    assert sorted(strong_definitions(UNIT)) == ["f", "odd global", "other", "strong"]


def test_everything_else_becomes_internal() -> None:
    text = internal_text(UNIT, ["f", "strong"])
    assert lines_of(text, "define") == [
        "define internal i32 @inl() #1 comdat {",
        'define internal void @"odd name"() #1 comdat($"odd name") align 2 {',
        "define signext i32 @f(i32 noundef signext %0) #0 {",
        "define internal void @hidden_one() #1 {",
        "define internal void @inline_body() #1 {",
    ]
    globals_ = dict(line.split(" = ", 1) for line in lines_of(text, "@"))
    assert globals_["@inl_state"].startswith("internal global i32 0")
    assert globals_["@weak"].startswith("internal global i32 1")
    assert globals_["@strong"].startswith("local_unnamed_addr global i32 1")
    assert globals_['@"odd global"'] == "internal constant i32 3"
    assert "@other" not in globals_  # an alias that nobody outside can see is its target
    assert globals_["@outside"] == "external global ptr"
    assert globals_["@maybe"] == "extern_weak global i32"
    assert globals_["@text"].startswith("private ")
    assert globals_["@llvm.used"].startswith("appending ")


def test_declarations_stay() -> None:
    assert lines_of(internal_text(UNIT, []), "declare") == ["declare void @imported(ptr) #2"]


def test_the_section_of_initialisers_goes_and_others_stay() -> None:
    text = 'define internal void @init() #0 section ".text.startup" {\n  ret void\n}\n@s = global i32 0, section "s"\n'
    assert neutral_text(text) == text.replace('#0 section ".text.startup"', "#0")
    other = 'define internal void @f() #0 section ".init" {\n  ret void\n}\n'
    assert neutral_text(other) == other


def test_internal_aliases_are_replaced_by_what_they_stand_for() -> None:
    text = r"""
@_ZN1AD1Ev = internal unnamed_addr alias void (ptr), ptr @_ZN1BD1Ev
@_ZN1BD1Ev = unnamed_addr alias void (ptr), ptr @_ZN1BD2Ev
@table = global [2 x ptr] [ptr @_ZN1AD1Ev, ptr @_ZN1BD1Ev]
@words = constant [11 x i8] c"@_ZN1AD1Ev\00"

define void @_ZN1BD2Ev(ptr %this) {
  ret void
}

define void @use(ptr %p) {
  call void @_ZN1AD1Ev(ptr %p)
  ret void
}
"""
    text = internal_text(text, ["use"])
    assert "alias" not in text
    assert "[ptr @_ZN1BD2Ev, ptr @_ZN1BD2Ev]" in text
    assert "call void @_ZN1BD2Ev(ptr %p)" in text
    assert r'c"@_ZN1AD1Ev\00"' in text
    parse_text(text)
