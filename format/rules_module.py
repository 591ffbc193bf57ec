"""The VIS rules about a module as a whole: its target, its metadata, its attributes, its size (VIS-1xx)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from visget.format.profile import DATALAYOUT, TRIPLE
from visget.format.rule import Hit, Rule, Scope

DATA_LIMIT = 256 << 20
FUNCTION_LIMIT = 50_000

# Behaviour (ignored: it only rules how modules merge), name, value.
_FLAGS = {"wchar_size": ("4",), "PIC Level": ("2",), "PIE Level": ("1", "2"), "uwtable": ("0", "1", "2")}
_FLAG = re.compile(r'!\{i32 \d+, !("\d+"), (?:i32 (\d+)|.*)\}\Z')
_NAMED = frozenset(("llvm.module.flags", "llvm.errno.tbaa"))
_DEBUG_NAMED = frozenset(("llvm.dbg.cu", "llvm.gcov", "llvm.pseudo_probe_desc"))
_LINKER_NAMED = frozenset(("llvm.linker.options", "llvm.dependent-libraries", "llvm.commandline"))
_DEBUG_NODE = re.compile(r"(?:distinct )?!(?:DI|GenericDINode)")
# A name, not the value behind = and not the argument of allockind("...").
_ATTRIBUTE = re.compile(r'(?<![=(])("\d+")')
# fmt: off
_TARGET_ATTRIBUTES = frozenset((
    "target-cpu", "target-features", "tune-cpu", "target-abi", "frame-pointer", "probe-stack", "stack-probe-size",
    "stack-protector-buffer-size", "min-legal-vector-width", "prefer-vector-width", "interrupt", "vlen",
    "no-stack-arg-probe", "sign-return-address", "sign-return-address-key", "branch-target-enforcement",
    "indirect-tls-seg-refs", "cf-branch", "cf-protection-return", "cf-protection-branch", "guard_nocf",
    "amdgpu-flat-work-group-size", "use-soft-float", "zero-call-used-regs",
))
_NEUTRAL_ATTRIBUTES = frozenset((
    "vis", "no-trapping-math", "no-infs-fp-math", "no-nans-fp-math", "no-signed-zeros-fp-math",
    "approx-func-fp-math", "unsafe-fp-math", "less-precise-fpmad", "alloc-family", "alloc-variant-zeroed",
    "disable-tail-calls", "no-builtins", "no-inline-line-tables", "no-jump-tables", "strict-float-cast-overflow",
    "function-inline-cost", "function-inline-threshold", "call-inline-cost", "call-threshold-bonus", "thunk",
    "modular-format",
))
_NEUTRAL_PREFIXES = ("no-builtin-",)
_FORBIDDEN_WORDS = frozenset((
    "naked", "ssp", "sspstrong", "sspreq", "safestack", "shadowcallstack", "sanitize_address", "sanitize_hwaddress",
    "sanitize_memory", "sanitize_memtag", "sanitize_thread", "sanitize_type", "sanitize_realtime",
    "sanitize_realtime_blocking", "sanitize_numerical_stability", "sanitize_alloc_token", "presplitcoroutine",
    "coro_only_destroy_when_complete", "coro_elide_safe", "hybrid_patchable", "jumptable", "strictfp", "optdebug",
    "fn_ret_thunk_extern", "vscale_range", "skipprofile",
))
# fmt: on
# Of attributes that the source asks for, not a flag.
_OTHER_REMEDIES = {
    "naked": "Remove __attribute__((naked)), and write the function in C.",
    "returns_twice": "Of all functions only setjmp of <setjmp.h> may have it.",
    "strictfp": "Build without -ffp-model=strict and -frounding-math, and remove #pragma STDC FENV_ACCESS.",
}
_SECTION_METADATA = re.compile(r"!(pcsections|associated|exclude|implicit\.ref|kcfi_type) !\d")
_WORD = re.compile(r"[a-z_]+")
_GROUP = re.compile(r"(?<= )#\d+")
_CALLS_SETJMP = re.compile(r"(?:call|invoke) [^@]*@(?:_setjmp|vfork)\(")
_CONSTRUCTOR = re.compile(r"\{ i32, ptr, ptr \} \{ i32 (\d+), ptr @([-\w.$]+), ptr ([^}]*) \}")
_LISTS = frozenset(("llvm.used", "llvm.compiler.used", "llvm.global_ctors", "llvm.global_dtors"))


def _triple(scope: Scope) -> Iterator[Hit]:
    found = scope.module.triple
    if found != TRIPLE:
        yield Hit(message=f"the target triple is {found or 'missing'}, not {TRIPLE}")


def _layout(scope: Scope) -> Iterator[Hit]:
    found = scope.module.layout
    if found != DATALAYOUT:
        yield Hit(message=f"the data layout is {found or 'missing'}, not {DATALAYOUT}")


def _flags(scope: Scope) -> Iterator[Hit]:
    module = scope.module
    seen = set()
    for token in re.findall(r"!(\d+)", module.named_metadata.get("llvm.module.flags", "")):
        match = _FLAG.match(module.metadata.get(token, ""))
        name = module.name(match[1]) if match else ""
        seen.add(name)
        if match is None or match[2] not in _FLAGS.get(name, ()):
            yield Hit(message=f"the module flag {module.text(module.metadata.get(token, token))} is not one of VIS")
    if "PIC Level" not in seen:
        yield Hit(message='the module flag "PIC Level" is missing: the code was not made for a shared library')


def _in_group(scope: Scope, group: str, message: str, remedy: str | None = None) -> Hit:
    function, ordinal = scope.group_users.get(group, (None, None))
    return Hit(message=message, function=function, ordinal=ordinal, remedy=remedy)


def _string_attributes(scope: Scope) -> Iterator[Hit]:
    for group, text in scope.module.attributes.items():
        for token in _ATTRIBUTE.findall(text):
            name = scope.module.name(token)
            if name in _NEUTRAL_ATTRIBUTES or name.startswith(_NEUTRAL_PREFIXES):
                continue
            kind = "belongs to one target" if name in _TARGET_ATTRIBUTES else "is not one of VIS"
            yield _in_group(scope, group, f'the attribute "{name[:60]}" {kind}: it would steer the user\'s compiler')


def _word_attributes(scope: Scope) -> Iterator[Hit]:
    for group, text in scope.module.attributes.items():
        for name in sorted(_FORBIDDEN_WORDS.intersection(_WORD.findall(text))):
            message = f"the attribute {name} asks for code that VIS does not have"
            yield _in_group(scope, group, message, _OTHER_REMEDIES.get(name))
    yield from _returns_twice(scope)
    for function in scope.module.functions:
        for clause in ("gc", "prefix", "prologue"):
            if re.search(rf"(?:^| ){clause} ", function.suffix):
                yield Hit(message=f"the function carries a `{clause}` clause", function=function)
    for item in scope.module.globals:
        match = re.search(r", (sanitize_\w+)", item.value)
        if match:
            yield scope.at_use(item.name, f"{item.name[:60]} asks for {match[1]}, which VIS does not have")


def _returns_twice(scope: Scope) -> Iterator[Hit]:
    allowed = {"_setjmp", *(("vfork",) if scope.program else ())}
    groups = {name for name, text in scope.module.attributes.items() if "returns_twice" in text.split()}
    if not groups:
        return
    message, remedy = "the attribute returns_twice on another function than setjmp", _OTHER_REMEDIES["returns_twice"]
    for function in scope.module.functions:
        if function.name not in allowed and groups.intersection(_GROUP.findall(function.suffix)):
            yield Hit(message=message, function=function, remedy=remedy)
    for function, ordinal, match in scope.find(_GROUP):
        if match[0] in groups and not _CALLS_SETJMP.search(function.instruction(ordinal)):
            yield Hit(message=message, function=function, ordinal=ordinal, remedy=remedy)


def _debug(scope: Scope) -> Iterator[Hit]:
    module = scope.module
    if module.source != "vis":
        source = "missing" if module.source is None else f'"{module.source[:80]}"'
        yield Hit(message=f'the source file name is {source}, not "vis": paths of the author must not travel')
    for name in sorted(_DEBUG_NAMED.intersection(module.named_metadata)):
        yield Hit(message=f"debug information is left: !{name}")
    if any(_DEBUG_NODE.match(node) for node in module.metadata.values()):
        yield Hit(message="debug information is left: !DI nodes in the metadata")


def _named_metadata(scope: Scope) -> Iterator[Hit]:
    for name in scope.module.named_metadata:
        if name in _NAMED or name in _DEBUG_NAMED:
            continue
        why = "gives orders to the user's linker" if name in _LINKER_NAMED else "is not one of VIS"
        yield Hit(message=f"the named metadata !{name[:60]} {why}")


def _assembly(scope: Scope) -> Iterator[Hit]:
    if scope.module.assembly:
        count = scope.module.assembly
        yield Hit(message=f"the module holds {count} line{'' if count == 1 else 's'} of file-scope assembly")


def _comdat(scope: Scope) -> Iterator[Hit]:
    for name in scope.module.comdats:
        yield scope.at_use(name, f"the symbol {name[:80]} is in a comdat group, which linkers merge across libraries")


def _section(scope: Scope) -> Iterator[Hit]:
    for item in scope.module.globals:
        match = re.search(r', (section|partition|code_model) ("\d+")', item.value)
        if match and not (item.name in _LISTS and scope.module.name(match[2]) == "llvm.metadata"):
            yield scope.at_use(item.name, f'{item.name} asks for the {match[1]} "{scope.module.name(match[2])[:60]}"')
    for function in scope.module.functions:
        match = re.search(r'(?:^| )(section|partition) ("\d+")', function.suffix)
        if match:
            message = f'the function asks for the {match[1]} "{scope.module.name(match[2])[:60]}"'
            yield Hit(message=message, function=function)
    yield from _section_metadata(scope)


def _section_metadata(scope: Scope) -> Iterator[Hit]:
    for item in scope.module.globals:
        match = _SECTION_METADATA.search(item.value)
        if match:
            yield scope.at_use(item.name, f"{item.name} asks for sections by !{match[1]}")
    for function in scope.module.functions:
        match = _SECTION_METADATA.search(function.suffix)
        if match:
            yield Hit(message=f"the function asks for sections by !{match[1]}", function=function)
    for function, ordinal, match in scope.find(_SECTION_METADATA):
        yield Hit(message=f"an instruction asks for sections by !{match[1]}", function=function, ordinal=ordinal)


def _constructors(scope: Scope) -> Iterator[Hit]:
    defined = {function.name for function in scope.module.definitions()}
    for item in scope.module.globals:
        if item.name in ("llvm.global_ctors", "llvm.global_dtors") and "zeroinitializer" not in item.value:
            entries = _CONSTRUCTOR.findall(item.value)
            if len(entries) != item.value.count("{ i32, ptr, ptr } {"):
                yield Hit(message=f"{item.name} has an entry that is not a function of this module")
            for priority, name, data in entries:
                if name not in defined or data != "null":
                    yield Hit(message=f"{item.name} has an entry {name} that is not a plain function of this module")
                elif int(priority) < 101 or int(priority) > 65535:
                    yield Hit(message=f"{item.name} runs {name} with the priority {priority}, outside 101 to 65535")


def _llvm_globals(scope: Scope) -> Iterator[Hit]:
    for item in scope.module.globals:
        if item.name.startswith("llvm.") and item.name not in _LISTS:
            yield Hit(message=f"the global {item.name[:60]} is an order to LLVM that VIS does not have")


def _data_size(scope: Scope) -> Iterator[Hit]:
    total = sum(scope.types.size(item.type) for item in scope.module.globals if not item.declared)
    if total > DATA_LIMIT:
        yield Hit(message=f"the static data has {total} bytes; at most {DATA_LIMIT} are allowed")


def _function_count(scope: Scope) -> Iterator[Hit]:
    count = len(scope.module.functions)
    if count > FUNCTION_LIMIT:
        yield Hit(message=f"the module has {count} functions; at most {FUNCTION_LIMIT} are allowed")


_REBUILD = "Build the package with `visget build`, which makes neutral modules."

RULES = (
    Rule(
        id="VIS-101",
        title="the triple is the neutral one",
        severity="error",
        check=_triple,
        reason="Another triple means another data model, other sizes of types, other calling conventions.",
        remedy=_REBUILD,
    ),
    Rule(
        id="VIS-102",
        title="the data layout is the neutral one",
        severity="error",
        check=_layout,
        reason="Sizes and offsets are already computed in the module; they hold for one layout only.",
        remedy=_REBUILD,
    ),
    Rule(
        id="VIS-103",
        title="only the module flags of VIS",
        severity="error",
        check=_flags,
        reason="Flags such as target-abi or riscv-isa bind the code to a machine, and without PIC Level 2 it "
        "cannot become a shared library.",
        remedy=_REBUILD + " Do not pass -fno-pic, -mcmodel or -fshort-wchar.",
    ),
    Rule(
        id="VIS-104",
        title="no target attributes",
        severity="error",
        check=_string_attributes,
        reason="An attribute such as target-cpu pins its function to that machine whatever the user has; others "
        "insert calls or probes. So only listed ones may stay.",
        remedy=_REBUILD + " Remove __attribute__((target(...))) and the flag behind the attribute; where a"
        ' group becomes empty, "vis" stands in it.',
    ),
    Rule(
        id="VIS-105",
        title="no debug information and no source paths",
        severity="error",
        check=_debug,
        reason="Paths of the author's machine must not travel and bytes must not depend on where a package was "
        "built. Source lines are kept in a section of their own.",
        remedy=_REBUILD + " It moves line numbers to the section `lines`.",
    ),
    Rule(
        id="VIS-106",
        title="no orders to the linker",
        severity="error",
        check=_named_metadata,
        reason="Named metadata such as llvm.linker.options and llvm.dependent-libraries makes the user's linker load "
        "what the author names, or stops LLVM.",
        remedy="Remove #pragma comment(lib, ...) and #pragma comment(linker, ...); name libraries as dependencies.",
    ),
    Rule(
        id="VIS-107",
        title="no file-scope assembly",
        severity="error",
        check=_assembly,
        reason="Assembly is for one machine.",
        remedy='Write it in C, and switch off the file-scope asm("...") with the define that the library has for it.',
    ),
    Rule(
        id="VIS-108",
        title="no comdat groups",
        severity="error",
        check=_comdat,
        reason="The linker may replace a comdat symbol by one of another library.",
        remedy=_REBUILD + " It makes everything internal that is not exported.",
    ),
    Rule(
        id="VIS-109",
        title="no explicit sections",
        severity="error",
        check=_section,
        reason="A section such as .init_array makes code run at load, and section names are not portable.",
        remedy="Remove __attribute__((section(...))) or the define that adds it.",
    ),
    Rule(
        id="VIS-110",
        title="constructors are plain functions of the module",
        severity="error",
        check=_constructors,
        reason="The installer rewrites constructors for each target; it knows plain functions with a priority from "
        "101 to 65535 only.",
        remedy="Use __attribute__((constructor)) on a function of the library, with no priority or one above 100.",
    ),
    Rule(
        id="VIS-111",
        title="no other llvm.* globals",
        severity="error",
        check=_llvm_globals,
        reason="Such globals are orders to LLVM (embedded bitcode, command lines).",
        remedy=_REBUILD + " Do not pass -fembed-bitcode or -frecord-command-line.",
    ),
    Rule(
        id="VIS-112",
        title="at most 256 MiB of static data",
        severity="error",
        check=_data_size,
        reason="Every user would load it; more than that breaks the small code model.",
        remedy="Allocate large buffers at run time, or load large tables from a file.",
    ),
    Rule(
        id="VIS-113",
        title="at most 50000 functions",
        severity="error",
        check=_function_count,
        reason="A package is compiled on the user's machine, in bounded time and memory.",
        remedy="Split the library into several packages.",
    ),
    Rule(
        id="VIS-114",
        title="only neutral function attributes",
        severity="error",
        check=_word_attributes,
        reason="Instrumentation and stack protectors need a run-time library; naked functions need assembly; "
        "strictfp needs a machine's floating-point environment; returns_twice is for setjmp alone.",
        remedy="Build without -fsanitize, -fstack-protector, -ffp-model=strict; naked functions are written in C.",
    ),
)
