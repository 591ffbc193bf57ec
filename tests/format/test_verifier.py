"""Each VIS rule fires on its minimal module, alone, and points at the right place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from viscases import CASES, FLAGS, HEAD, Case, F, module_text, ordinal_lines

from visget.errors import FormatError, UnsupportedError
from visget.format.findings import errors
from visget.format.irtext import scan
from visget.format.rules import BY_ID, RULES
from visget.format.verifier import check_module, module_facts

SPEC = Path(__file__).resolve().parents[2] / "docs" / "spec" / "vis-1.md"
ELSEWHERE = {
    "VIS-405": "test_abi_classes.py: it needs C types",
    "VIS-408": "test_abi_classes.py: it needs C types",
    "VIS-409": "test_abi_classes.py: it needs C types",
    "VIS-502": "test_imports.py: a row for each name",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule} {case.says[:40]}")
def test_the_rule_fires_there_and_no_other_rule_does(case: Case) -> None:
    text = module_text(case.body, head=case.head, flags=case.flags)
    findings = check_module(text, exports=case.exports, imports=case.imports, lines=ordinal_lines(text),
                            fp_contract=case.fp_contract)  # fmt: skip

    assert {finding.rule for finding in findings} == {case.rule, *case.also}
    found = [finding for finding in findings if finding.rule == case.rule and case.says in finding.message]
    assert found, [finding.render() for finding in findings]
    assert found[0].function == case.function
    assert found[0].severity == BY_ID[case.rule].severity
    assert found[0].remedy
    if case.function is None or scan(text).text(case.function) not in text:
        return
    declared = {function.name for function in scan(text).functions if function.declared}
    if case.function not in declared:
        assert found[0].file == "f.c"
        assert found[0].line == (99 if case.ordinal is None else 100 + case.ordinal)


@pytest.mark.parametrize(
    ("contract", "line"),
    [
        ("off", "%contract = fadd double 1.0, 2.0"),
        ("off", "%fast = call fastcc double @g(double 1.0)"),
        ("off", "%a = fadd nsz double 1.0, 2.0"),
        ("on", "%a = fmul contract double 1.0, 2.0"),
        ("fast", "%a = fmul fast double 1.0, 2.0"),
        (None, "%a = fmul fast double 1.0, 2.0"),
    ],
)
def test_floating_point_freedom_that_the_manifest_grants(contract: str | None, line: str) -> None:
    other = "define internal fastcc double @g(double %x) {\n  ret double %x\n}\n"
    text = module_text(f"define void @f() {{\n  {line}\n  ret void\n}}\n{other}")
    assert check_module(text, exports=["f"], fp_contract=contract) == []


ALLOWED_AT_LEVEL_2 = {
    "setjmp": "@b = internal global [64 x i64] zeroinitializer, align 16\n"
    "define signext i32 @f() {\n  %r = call signext i32 @_setjmp(ptr noundef @b) returns_twice\n  ret i32 %r\n}\n"
    "declare signext i32 @_setjmp(ptr) returns_twice\n",
    "a built-in called and its address taken": "@t = internal global ptr @__vis_stat\n"
    "define signext i32 @f(ptr %p) {\n  %x = load ptr, ptr @t\n  %r = call signext i32 %x(ptr %p, ptr %p)\n"
    "  %s = call signext i32 (ptr, i32, ...) @__vis_open(ptr %p, i32 signext 0, i32 signext 420)\n  ret i32 %s\n}\n"
    "declare signext i32 @__vis_stat(ptr, ptr)\ndeclare signext i32 @__vis_open(ptr, i32 signext, ...)\n",
    "exceptions": "@typeinfo = internal constant ptr null\n"
    "define internal signext i32 @__gxx_personality_v0() {\n  ret i32 0\n}\n"
    "define signext i32 @f(ptr %p) personality ptr @__gxx_personality_v0 {\n"
    "  invoke void %p() to label %a unwind label %b\na:\n  ret i32 0\nb:\n"
    "  %x = landingpad { ptr, i32 } catch ptr @typeinfo\n  %t = call i32 @llvm.eh.typeid.for.p0(ptr @typeinfo)\n"
    "  %s = extractvalue { ptr, i32 } %x, 1\n  %c = icmp eq i32 %s, %t\n  br i1 %c, label %a, label %d\nd:\n"
    "  resume { ptr, i32 } %x\n}\ndeclare i32 @llvm.eh.typeid.for.p0(ptr)\n",
    "the unwinder": "define i64 @f(ptr %p) {\n  %r = call i64 @_Unwind_GetIP(ptr %p)\n  ret i64 %r\n}\n"
    "declare i64 @_Unwind_GetIP(ptr)\n",
    "data": "%struct.in6_addr = type { %union.anon }\n%union.anon = type { [4 x i32] }\n"
    "@in6addr_any = external constant %struct.in6_addr\n@timezone = external global i64\n"
    "define ptr @f() {\n  %z = load i64, ptr @timezone\n  ret ptr @in6addr_any\n}\n",
}


@pytest.mark.parametrize("name", ALLOWED_AT_LEVEL_2)
def test_what_level_2_of_the_platform_interface_allows(name: str) -> None:
    text = module_text(ALLOWED_AT_LEVEL_2[name])
    assert check_module(text, exports=["f"]) == []
    assert module_facts(text).platform == (1 if name == "exceptions" else 2)


def test_what_a_program_may_do_and_a_package_may_not() -> None:
    text = module_text(
        "define signext i32 @main() {\n  %a = call signext i32 @fork()\n  call void @longjmp(ptr null, i32 signext 1)\n"
        "  %b = call signext i32 @vfork() returns_twice\n  ret i32 %a\n}\ndeclare signext i32 @fork()\n"
        "declare signext i32 @vfork() returns_twice\ndeclare void @longjmp(ptr, i32 signext)\n"
    )
    assert check_module(text, exports=["main"], program=True) == []
    refused = {finding.rule for finding in check_module(text, exports=["main"])}
    assert refused == {"VIS-114", "VIS-210", "VIS-324", "VIS-512"}


def test_a_built_in_is_called_with_its_own_types() -> None:
    text = module_text(
        "define void @f(ptr %p) {\n  %a = call signext i32 @__vis_stat(ptr %p, i64 0)\n  ret void\n}\n"
        "declare signext i32 @__vis_stat(ptr, ptr)\n"
    )
    assert [finding.rule for finding in check_module(text, exports=["f"])] == ["VIS-503"]


def test_every_rule_has_a_case() -> None:
    assert {rule.id for rule in RULES} == {case.rule for case in CASES} | set(ELSEWHERE)


def test_every_rule_is_in_the_spec_with_its_title_and_severity() -> None:
    spec = SPEC.read_text()
    for rule in RULES:
        heading = re.search(rf"^#### {rule.id}: (.*) \((error|warning)\)$", spec, re.M)
        assert heading, f"{rule.id} has no section"
        assert heading[1] == rule.title
        assert heading[2] == rule.severity


def test_the_spec_names_no_rule_that_does_not_exist() -> None:
    assert set(re.findall(r"^#### (VIS-\d{3})", SPEC.read_text(), re.M)) == {rule.id for rule in RULES}


def test_rules_have_unique_ids_in_order_and_complete_texts() -> None:
    ids = [rule.id for rule in RULES]
    assert ids == sorted(set(ids))
    for rule in RULES:
        assert rule.title and rule.reason.endswith(".") and rule.remedy.endswith("."), rule.id


CLEAN = """
%struct.pair = type { i32, double }
@.str = private unnamed_addr constant [41 x i8] c"asm \\22i1310\\22 fp128 addrspace(3) @llvm \\0A}\\0A\\00", align 1
@counter = internal global i64 0, align 8
@stderr = external constant ptr, align 8
@f2 = alias i64 (ptr, i64), ptr @f
@inner = internal alias void (), ptr @helper
@llvm.used = appending global [1 x ptr] [ptr @helper], section "llvm.metadata"
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @helper, ptr null }]

define internal void @helper() #0 {
  ret void
}

define i64 @f(ptr noundef %0, i64 noundef %1) #0 {
  %asm = alloca [16 x i8], align 16
  switch i64 %1, label %fp128 [
    i64 1, label %cmpxchg
    i64 2, label %invoke
  ]

cmpxchg:
  %x86_fp80 = call i64 @strlen(ptr noundef %0) #1
  %v2 = atomicrmw add ptr @counter, i64 %x86_fp80 seq_cst, align 8
  ret i64 %v2

invoke:
  %v3 = load ptr, ptr @stderr, align 8
  %v4 = call signext i32 (ptr, ptr, ...) @fprintf(ptr noundef %v3, ptr noundef @.str, i32 noundef signext 3)
  %v5 = call double @llvm.sqrt.f64(double 2.0)
  %v6 = call double @llvm.fmuladd.f64(double %v5, double %v5, double %v5)
  %v7 = load <8 x float>, ptr %0, align 4
  %v8 = fadd <8 x float> %v7, %v7
  store <8 x float> %v8, ptr %0, align 4
  call void @llvm.memcpy.p0.p0.i64(ptr %asm, ptr %0, i64 16, i1 false)
  %v9 = load i128, ptr %0, align 16
  %v10 = mul i128 %v9, %v9
  store i128 %v10, ptr %0, align 16
  call void @inner()
  ret i64 0

fp128:
  unreachable
}

declare i64 @strlen(ptr noundef)
declare signext i32 @fprintf(ptr noundef, ptr noundef, ...)
declare double @llvm.sqrt.f64(double)
declare double @llvm.fmuladd.f64(double, double, double)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @pthread_create(i32)

attributes #0 = { nounwind uwtable "vis" }
attributes #1 = { nounwind "no-builtin-strlen" allockind("alloc,zeroed") }
"""


def test_a_clean_module_has_no_findings_whatever_its_names_and_strings_look_like() -> None:
    text = module_text(CLEAN)
    assert check_module(text, exports=["f", "f2"], imports=["fprintf", "stderr", "strlen"]) == []


def test_all_findings_are_reported_sorted_and_once() -> None:
    body = "define void @f() {\n" + '  call void asm sideeffect "nop", ""()\n' * 3 + "  ret void\n}\n"
    text = module_text(body + "define void @a(i8 %x) {\n  ret void\n}\n", flags="")
    with_lines = check_module(text, exports=["f", "a"], lines=ordinal_lines(text))
    assert [(f.rule, f.function, f.line) for f in with_lines] == [
        ("VIS-103", None, None),
        ("VIS-407", "a", 99),
        ("VIS-301", "f", 100),
        ("VIS-301", "f", 101),
        ("VIS-301", "f", 102),
    ]
    # Without lines the three statements cannot be told apart.
    assert [f.rule for f in check_module(text, exports=["f", "a"])] == ["VIS-103", "VIS-407", "VIS-301"]


def test_errors_and_warnings_are_told_apart() -> None:
    text = module_text('define void @f() {\n  call void asm sideeffect "", "~{memory}"()\n  ret void\n}\n')
    findings = check_module(text, exports=["f"])
    assert [finding.severity for finding in findings] == ["warning"]
    assert errors(findings) == []


def test_an_unknown_profile_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="vis-2"):
        check_module(module_text(F), exports=["f"], profile="vis-2")


def test_text_that_is_not_ir_is_a_format_error() -> None:
    with pytest.raises(FormatError, match="unknown line"):
        check_module(HEAD + "what is this\n" + FLAGS, exports=[])


def test_module_facts() -> None:
    facts = module_facts(module_text(CLEAN))
    assert facts.exports == ("f", "f2")
    # pthread_create is declared and never used: no import.
    assert facts.imports == ("fprintf", "stderr", "strlen")
    assert facts.constructors
    assert not module_facts(module_text(F)).constructors


def test_a_large_module_is_checked_in_seconds() -> None:
    import time

    one = CLEAN[CLEAN.index("define i64 @f") : CLEAN.index("declare i64 @strlen")]
    one = one.replace("define i64", "define internal i64")
    body = CLEAN + "".join(one.replace("@f(", f"@g{n}(") for n in range(1500))
    text = module_text(body)
    assert len(text) > 1_500_000
    started = time.process_time()
    assert check_module(text, exports=["f", "f2"]) == []
    assert time.process_time() - started < 6


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        # 2^64 scalars, reached through 64 named types.
        (
            "".join(f"%t{n} = type {{ %t{n + 1}, %t{n + 1} }}\n" for n in range(64))
            + "%t64 = type { i8 }\ndefine void @f() {\n  %x = alloca %t0\n  ret void\n}\n",
            "VIS-310",
        ),
        # One long line in which a careless pattern would start again at every word.
        (
            "define void @f(ptr noundef %p) {\n  %call = load ptr, ptr %p\n  call void %p("
            + ", ".join(["ptr %call"] * 60_000)
            + ')\n  call void asm sideeffect "x", ""()\n  ret void\n}\n',
            "VIS-301",
        ),
    ],
    ids=["types", "line"],
)
def test_hostile_modules_take_no_longer(body: str, rule: str) -> None:
    import time

    text = module_text(body)
    started = time.process_time()
    assert [finding.rule for finding in check_module(text, exports=["f"])] == [rule]
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("attribute", "remedy"),
    [
        ("returns_twice", r"only setjmp"),
        ("naked noinline", r"__attribute__\(\(naked\)\).*in C"),
        ("strictfp", "FENV_ACCESS"),
        ("sanitize_address", "-fsanitize"),
    ],
)
def test_the_remedy_of_an_attribute_fits_it(attribute: str, remedy: str) -> None:
    text = module_text(f"define void @f() #9 {{\n  ret void\n}}\nattributes #9 = {{ {attribute} }}\n")
    (found,) = [finding for finding in check_module(text, exports=["f"]) if finding.rule == "VIS-114"]
    assert re.search(remedy, found.remedy)
    assert ("-fsanitize" in found.remedy) == attribute.startswith("sanitize")


@pytest.mark.parametrize(("count", "words"), [(1, "1 line of"), (2, "2 lines of")])
def test_lines_of_assembly_are_counted_in_good_english(count: int, words: str) -> None:
    text = module_text('module asm "nop"\n' * count + "define void @f() {\n  ret void\n}\n")
    assert [words in finding.message for finding in check_module(text, exports=["f"])] == [True]


def test_the_spec_lists_names_attributes_and_intrinsics_completely() -> None:
    from visget.format import intrinsics, reserved, rules_module

    spec = SPEC.read_text()
    appendix_a = spec.split("## Appendix A")[1].split("```text\n")[1].split("```")[0]
    assert set(appendix_a.split()) == set(reserved._C_LIBRARY)
    appendix_b = spec.split("## Appendix B")[1]
    assert set(re.findall(r"`([a-z][\w.]*)`", appendix_b)) - {"llvm."} == intrinsics.ALLOWED

    def named(rule: str) -> set[str]:
        return set(re.findall(r"`([\w-]+)`", spec.split(f"#### {rule}")[1].split("*Why.*")[0]))

    assert named("VIS-104") >= rules_module._NEUTRAL_ATTRIBUTES
    assert named("VIS-114") >= rules_module._FORBIDDEN_WORDS
    assert named("VIS-303") == intrinsics.TARGETS
