"""What a module offers, needs and keeps, read from its text."""

from __future__ import annotations

from visget.format.module import parse_text, text_of
from visget.toolchain.irnames import Names, names_of, reachable

TEXT = text_of(parse_text(r"""
target triple = "riscv64-unknown-linux-musl"
$copy = comdat any
@data = global ptr @other_unit
@hidden = hidden constant [2 x ptr] [ptr @local, ptr @"odd name"]
@shared = weak_odr global i32 0
@outside = external global i32
@words = internal constant [8 x i8] c"@quoted\00"
@alias = alias void (), ptr @start
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @init, ptr null }]

define void @start() personality ptr @keeper {
  call void @local()
  call void @llvm.donothing()
  %v = load i32, ptr @outside
  ret void
}
define internal void @local() { ret void }
define linkonce_odr void @copy() comdat { ret void }
define available_externally void @elsewhere() { ret void }
define internal void @init() {
  call void @imported()
  ret void
}
define void @"odd name"() { ret void }
declare void @imported()
declare void @other_unit()
declare i32 @keeper(...)
declare void @llvm.donothing()
"""))


def test_what_is_offered() -> None:
    names = names_of(TEXT)
    assert names.offered == {"data", "hidden", "shared", "alias", "start", "odd name"}
    assert {"local", "copy", "init", "words"} <= names.entities.keys()
    assert not {"elsewhere", "outside", "imported", "llvm.global_ctors"} & names.entities.keys()
    assert names.roots == ("init",)


def test_what_refers_to_what() -> None:
    names = names_of(TEXT)
    assert set(names.entities["start"]) == {"keeper", "local", "outside"}
    assert names.entities["hidden"] == ("local", "odd name")
    assert names.entities["data"] == ("other_unit",)
    assert names.entities["alias"] == ("start",)
    assert names.entities["words"] == ()


def test_what_is_reached_and_what_is_missing() -> None:
    names = names_of(TEXT)
    inside, outside = reachable(names, ["alias"])
    assert inside == {"alias", "start", "local", "init"}
    assert outside == {"keeper", "outside", "imported"}
    assert reachable(names, ["data"])[1] == {"other_unit", "imported"}


def test_the_index_is_read_back() -> None:
    names = names_of(TEXT)
    assert Names.from_json(names.as_json()) == names
