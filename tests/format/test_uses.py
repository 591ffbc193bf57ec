"""What the rules say about functions that come from the packages that a package depends on."""

import pytest
from viscases import module_text

from visget.format.verifier import check_module

CALLS = module_text(
    "define i64 @f(ptr %p) {\n  %r = call i64 @crc32(i64 0, ptr %p, i32 signext 9)\n  ret i64 %r\n}\n"
    "declare i64 @crc32(i64, ptr, i32 signext)\n"
)
TYPE = "i64 (i64, ptr, i32)"


def found(text=CALLS, uses=None, imports=()):
    return [(item.rule, item.message) for item in check_module(text, exports=["f"], imports=imports, uses=uses or {})]


def test_a_function_of_a_dependency_is_accepted_only_when_the_manifest_uses_it():
    assert found(uses={"crc32": TYPE}) == []
    assert {rule for rule, _ in found()} == {"VIS-501", "VIS-510"}
    assert {rule for rule, _ in found(imports=["crc32"])} == {"VIS-501"}


def test_its_type_is_that_of_the_dependency():
    ((rule, message),) = found(uses={"crc32": "i64 (i64, ptr, i64)"})
    assert rule == "VIS-503"
    assert message == "crc32 is declared as i64 (i64, ptr, i32), but is i64 (i64, ptr, i64)"


def test_calls_have_the_type_too():
    text = CALLS.replace("ptr %p, i32 signext 9)", "ptr %p, i64 9)")
    assert [rule for rule, _ in found(text, {"crc32": TYPE})] == ["VIS-503"]


def test_what_is_used_is_a_function():
    text = module_text("@crc32 = external global i32\ndefine ptr @f() {\n  ret ptr @crc32\n}\n")
    assert ("VIS-503", "crc32 is a function, but is declared as data") in found(text, {"crc32": TYPE})


def test_nothing_is_named_that_is_not_needed():
    assert found(uses={"crc32": TYPE, "adler32": TYPE}) == [
        ("VIS-510", "the manifest uses adler32 of a dependency, which the module does not need")
    ]


@pytest.mark.parametrize("name", ["regcomp", "_ZNSt3__1foo", "__cxa_throw"])
def test_a_dependency_may_provide_what_no_c_library_may(name):
    text = module_text(f"define void @f() {{\n  call void @{name}()\n  ret void\n}}\ndeclare void @{name}()\n")
    assert found(text) != []
    assert found(text, {name: "void ()"}) == []
