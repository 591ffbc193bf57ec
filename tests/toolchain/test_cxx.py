"""The C++ run-time library: made once, as far as needed, and the same package whatever the cache holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cxxkit import build_cxx, cxx_cache

from visget.errors import BuildError, RefusedError
from visget.format.module import parse_bitcode, text_of
from visget.toolchain.clang import CompileOptions, find_frontend
from visget.toolchain.cxx import needs_cxx, with_cxx_runtime
from visget.toolchain.cxxlibrary import OWN, SETS, open_library
from visget.toolchain.frontend import compile_unit

EPOCH = 22
LANGUAGE = """
#include <typeinfo>
struct Base { virtual ~Base() {} };
struct Derived : Base {};
static int thrown(Base *base) { if (!dynamic_cast<Derived *>(base)) throw 7; return 1; }
int one(int kind) {
  Base base;
  Derived derived;
  try { return thrown(kind ? &derived : &base); } catch (int n) { return n; }
}
"""
HEADER = "int one(int kind);"


class Listener:
    """Keeps what was compiled."""

    def __init__(self) -> None:
        self.compiled: list[str] = []

    def step(self, phase: str, detail: str = "", done: int | None = None, total: int | None = None) -> None:
        if phase == "compiling the C++ library" and detail:
            self.compiled.append(detail)

    def note(self, text: str) -> None:
        raise AssertionError(text)


def text_in(built) -> str:  # type: ignore[no-untyped-def]
    return text_of(parse_bitcode(built.package.bitcode()))


@pytest.mark.parametrize(
    ("name", "its"),
    [
        ("_Znwm", True), ("_ZNSt3__112basic_stringIcE6appendEPKc", True), ("__cxa_throw", True), ("__dso_handle", True),
        ("__gxx_personality_v0", True), ("__dynamic_cast", True), ("_Unwind_RaiseException", False), ("malloc", False),
        ("__errno_location", False), ("Z", False), ("_ZTISt9exception", True), ("_ZTIPKc", True), ("_ZdlPv", True),
        ("_ZThn16_NSt3__118basic_stringstreamIcED0Ev", True), ("_ZTVN10__cxxabiv117__class_type_infoE", True),
        ("_ZTV5Shape", False), ("_ZN3foo3barENSt3__112basic_stringIcEE", False), ("_ZN4Shape4areaEv", False),
    ],
)  # fmt: skip
def test_whose_symbol_it_is(name: str, its: bool) -> None:
    assert needs_cxx([name]) is its


def test_every_source_is_there_and_named_once() -> None:
    frontend = find_frontend(None, epoch=EPOCH)
    sources = [source for sources in SETS for source in sources]
    assert len(sources) == len(set(sources))
    library = open_library(frontend, cache=Path("/nonexistent"))
    for source in sources:
        assert ((frontend.library if "/" in source else OWN) / source).is_file(), source
    assert library.directory.parent == Path("/nonexistent/cxx")


def test_only_what_is_needed_is_compiled_and_only_once(tmp_path: Path) -> None:
    frontend = find_frontend(None, epoch=EPOCH)
    (tmp_path / "a.cpp").write_text(LANGUAGE)
    text = compile_unit(frontend, CompileOptions(), "a.cpp", root=tmp_path).text
    first, second = Listener(), Listener()
    linked = with_cxx_runtime(text, frontend=frontend, cache=tmp_path, progress=first)
    assert sorted(first.compiled) == sorted(Path(source).stem for source in SETS[0])
    assert with_cxx_runtime(text, frontend=frontend, cache=tmp_path, progress=second) == linked
    assert second.compiled == []
    assert "define" in linked
    assert "@__cxa_throw(" in linked
    assert "_ZNSt3__112basic_string" not in linked

    # A damaged or half-written entry is made again.
    directory = open_library(frontend, cache=tmp_path).directory
    code = next(directory.glob("*cxa_exception.ll.zst"))
    code.write_bytes(code.read_bytes()[:-9])
    next(directory.glob("*cxa_guard.json")).write_text("{")
    third = Listener()
    assert with_cxx_runtime(text, frontend=frontend, cache=tmp_path, progress=third) == linked
    assert sorted(third.compiled) == ["cxa_exception", "cxa_guard"]


def test_c_needs_nothing_of_it(tmp_path: Path) -> None:
    frontend = find_frontend(None, epoch=EPOCH)
    (tmp_path / "a.c").write_text("int f(int a) { return a; }\n")
    text = compile_unit(frontend, CompileOptions(), "a.c", root=tmp_path).text
    assert with_cxx_runtime(text, frontend=frontend, cache=tmp_path / "cache") is text
    assert not (tmp_path / "cache").exists()


def test_nothing_of_cxx_is_left_undefined_or_visible(tmp_path: Path) -> None:
    built = build_cxx(tmp_path, HEADER, LANGUAGE)
    manifest = built.package.manifest
    assert manifest.exports == ("one",)
    assert not needs_cxx(manifest.imports)
    assert "_Unwind_RaiseException" in manifest.imports
    text = text_in(built)
    assert [line for line in text.splitlines() if line.startswith("define ") and " internal " not in line] == [
        line for line in text.splitlines() if line.startswith("define ") and "@one(" in line
    ]
    assert " alias " not in text


def test_the_package_does_not_depend_on_the_cache(tmp_path: Path) -> None:
    cold = build_cxx(tmp_path / "a", HEADER, LANGUAGE, cache=tmp_path / "cache")
    warm = build_cxx(tmp_path / "b", HEADER, LANGUAGE, cache=tmp_path / "cache")
    other = build_cxx(tmp_path / "c", HEADER, LANGUAGE)
    assert cold.data == warm.data == other.data


def test_it_is_small(tmp_path: Path) -> None:
    source = "#include <string>\nint one(int kind) { return int((std::to_string(kind) + \"!\").size()); }\n"
    assert len(build_cxx(tmp_path, HEADER, source).data) < 60_000


def test_an_operator_new_of_ones_own_is_used(tmp_path: Path) -> None:
    source = """
#include <cstdlib>
#include <new>
static int calls;
void *operator new(std::size_t size) { calls++; if (void *p = std::malloc(size)) return p; throw std::bad_alloc(); }
void operator delete(void *p) noexcept { std::free(p); }
int one(int kind) { int *p = new int(kind); int n = *p; delete p; return n + calls; }
"""
    text = text_in(build_cxx(tmp_path, HEADER, source))
    assert "@_ZN12_GLOBAL__N_15callsE" in text or "@_ZL5calls" in text


def test_without_exceptions_and_types(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        build_cxx(tmp_path / "a", HEADER, LANGUAGE, "exceptions = false\nrtti = false")
    said = str(caught.value.details["stderr"])
    assert "exceptions disabled" in said
    assert "-frtti" in said
    source = "#include <vector>\nint one(int kind) { std::vector<int> v(kind, 2); return v.back(); }\n"
    built = build_cxx(tmp_path / "b", HEADER, source, "exceptions = false\nrtti = false")
    assert {"-fno-exceptions", "-fno-rtti"} <= set(built.package.manifest.provenance.flags)
    assert built.findings == []


def test_a_symbol_that_the_library_cannot_have_compiles_nothing(tmp_path: Path) -> None:
    source = "struct Shape { virtual int area() const; };\nint one(int kind) { return Shape().area() + kind; }\n"
    with pytest.raises(RefusedError) as caught:
        build_cxx(tmp_path, HEADER, source, cache=tmp_path / "cache")
    assert {finding.rule for finding in caught.value.details["findings"]} == {"VIS-504"}  # type: ignore[attr-defined]
    assert not (tmp_path / "cache" / "cxx").exists()


def test_everything_that_the_library_offers_is_known_as_its() -> None:
    """Else it would not be found where nothing else asks for the set that has it."""
    offered = {
        name
        for index in open_library(find_frontend(None, epoch=EPOCH), cache=cxx_cache()).directory.glob("*.json")
        for name in json.loads(index.read_text())["names"]["offered"]
    }
    assert len(offered) > 50
    assert {name for name in offered if not needs_cxx([name])} <= {"__abort_message", "__muloti4"}
