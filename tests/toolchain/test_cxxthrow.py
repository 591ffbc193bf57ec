"""CXX-001 names the exports that an exception can leave, and warnings about libc++'s own code stay away."""

from __future__ import annotations

from pathlib import Path

import pytest
from cxxkit import build_cxx

from visget.format.findings import Finding
from visget.format.lines import FunctionLines, LineTable, Place
from visget.toolchain.cxxthrow import escaping_exceptions, of_the_author

IR = """
define i32 @plain(ptr %p) #0 {
  %r = call i32 @inner(i32 1)
  ret i32 %r
}

define internal i32 @inner(i32 %x) #0 {
  call void @__cxa_throw(ptr null, ptr null, ptr null)
  unreachable
}

define i32 @quiet(ptr %p) #1 {
  %r = call i32 @inner(i32 1)
  ret i32 %r
}

define i32 @promised(ptr %p) #0 {
  %r = call i32 @inner(i32 1) #1
  ret i32 %r
}

define i32 @catches(ptr %p) #0 personality ptr @__gxx_personality_v0 {
  %r = invoke i32 @inner(i32 1)
          to label %good unwind label %bad

good:
  ret i32 %r

bad:
  %caught = landingpad { ptr, i32 }
          catch ptr null
  ret i32 0
}

define i32 @cleans(ptr %p) #0 personality ptr @__gxx_personality_v0 {
  %r = invoke i32 @inner(i32 1)
          to label %good unwind label %bad

good:
  ret i32 %r

bad:
  %caught = landingpad { ptr, i32 }
          cleanup
  resume { ptr, i32 } %caught
}

define i32 @indirect(ptr %p) #0 {
  %r = call i32 %p(i32 1)
  ret i32 %r
}

declare void @__cxa_throw(ptr, ptr, ptr)
declare i32 @__gxx_personality_v0(...)

attributes #0 = { uwtable "vis" }
attributes #1 = { mustprogress nounwind "vis" }
"""
EXPORTS = ("plain", "quiet", "promised", "catches", "cleans", "indirect")


def test_exactly_those_that_an_exception_can_leave() -> None:
    lines = LineTable(functions={"cleans": FunctionLines(start=Place("a.cpp", 7), ordinals=(), places=())})
    (finding,) = escaping_exceptions(IR, exports=EXPORTS, lines=lines)
    assert (finding.rule, finding.severity, finding.file, finding.line) == ("CXX-001", "warning", "a.cpp", 7)
    assert finding.message.startswith("cleans(), plain() may let a C++ exception out")


def test_many_are_counted() -> None:
    text = "".join(
        f"define i32 @f{n}() #0 {{\n  call void @__cxa_throw(ptr null, ptr null, ptr null)\n  unreachable\n}}\n\n"
        for n in range(8)
    )
    (finding,) = escaping_exceptions(text, exports=[f"f{n}" for n in range(8)], lines=LineTable(functions={}))
    assert "f0(), f1(), f2(), f3(), f4() and 3 more may" in finding.message


def test_a_module_without_throw_has_none() -> None:
    assert escaping_exceptions(IR.replace("__cxa_throw", "other"), exports=EXPORTS, lines=LineTable(functions={})) == []


@pytest.mark.parametrize(
    ("function", "file", "severity", "kept"),
    [
        ("mine", "src/a.cpp", "warning", True),
        ("mine", None, "warning", True),
        (None, None, "warning", True),
        ("_ZNSt3__16localeC1Ev", None, "warning", False),
        ("_ZNSt3__16vectorIiE4growEv", "visget/lib/libcxx/include/__vector/vector.h", "warning", False),
        ("_ZNSt3__16localeC1Ev", None, "error", True),
    ],
)
def test_whose_warning_it_is(function: str | None, file: str | None, severity: str, kept: bool) -> None:
    lines = LineTable(functions={"mine": FunctionLines(start=None, ordinals=(), places=())})
    finding = Finding(
        rule="VIS-314", severity=severity, function=function, file=file, message="m", remedy="r",  # type: ignore[arg-type]
    )  # fmt: skip
    assert of_the_author([finding], lines) == [finding] * kept


def test_an_author_is_told(tmp_path: Path) -> None:
    source = """
#include <string>
int risky(const char *p) { return int(std::string(p).size()); }
int safe(const char *p) { try { return risky(p); } catch (...) { return -1; } }
int ends(const char *p) noexcept { return risky(p); }
"""
    header = """
#ifdef __cplusplus
#define ENDS noexcept
#else
#define ENDS
#endif
int risky(const char *p);
int safe(const char *p);
int ends(const char *p) ENDS;
"""
    (finding,) = build_cxx(tmp_path / "a", header, source).findings
    assert (finding.rule, finding.function, finding.file, finding.line) == ("CXX-001", "risky", "code.cpp", 4)
    assert finding.message.startswith("risky() may")
    quiet = header.replace("risky(const char *p);", "risky(const char *p) ENDS;")
    made = build_cxx(tmp_path / "b", quiet, source.replace("risky(const char *p) {", "risky(const char *p) noexcept {"))
    assert made.findings == []
