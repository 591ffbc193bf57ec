"""The VIS rules about symbols: names, linkage, visibility, what is exported (VIS-2xx)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from visget.format.irtext import Function, Global, symbols
from visget.format.reserved import why_reserved
from visget.format.rule import Hit, Rule, Scope

_EXPORT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\Z")
_LOCAL_NAME = re.compile(r"(?:[A-Za-z_.$][A-Za-z0-9_.$-]{0,4095}|\d{1,9})\Z")
_LINKAGES = frozenset(("", "external", "internal", "private"))
_LINKAGE_ADVICE = {
    "common": "Build with -fno-common.",
    "weak": "Remove __attribute__((weak)); where it marks an optional hook, let the caller register a function.",
    "extern_weak": "Remove __attribute__((weak)) from the declaration; a package cannot ask whether a symbol exists.",
    "available_externally": "Make the function `static inline`, or give it one external definition.",
}
_HIDDEN = re.compile(r"\b(?:hidden|protected|dllimport|dllexport)\b")


def _local(linkage: str) -> bool:
    return linkage in ("internal", "private")


def _items(scope: Scope) -> Iterator[Function | Global]:
    yield from scope.module.globals
    yield from scope.module.functions


def _hit(scope: Scope, item: Function | Global, message: str, remedy: str | None = None) -> Hit:
    """Return a hit at a defined function itself, and at the first use of anything else."""
    if isinstance(item, Function) and not item.declared:
        return Hit(message=message, function=item, remedy=remedy)
    return scope.at_use(item.name, message, remedy=remedy)


def _names(scope: Scope) -> Iterator[Hit]:
    for item in _items(scope):
        if item.name.startswith("llvm."):
            continue
        pattern = _LOCAL_NAME if _local(item.linkage) else _EXPORT_NAME
        if not pattern.match(item.name):
            yield _hit(scope, item, f'the symbol name "{item.name[:60]}" ({len(item.name)} characters) is not plain')


def _ifunc(scope: Scope) -> Iterator[Hit]:
    for item in scope.module.globals:
        if item.kind == "ifunc":
            yield Hit(message=f"{item.name} is an ifunc: its resolver would run while the library is loaded")


def _alias(scope: Scope) -> Iterator[Hit]:
    functions = {function.name: function for function in scope.module.definitions()}
    data = {item.name: item for item in scope.module.globals if item.kind in ("global", "constant")}
    for item in scope.module.globals:
        if item.kind != "alias":
            continue
        target = scope.module.name((symbols(item.value) or [""])[-1])
        aliased = functions.get(target) or data.get(target)
        plain = re.search(r"ptr @\S+\Z", item.value) is not None
        if aliased is None or not plain:
            yield Hit(message=f"{item.name} is an alias of something other than one symbol of this module")
        elif not _local(item.linkage) and (target not in functions or target not in scope.exports):
            yield Hit(message=f"{item.name} is an exported alias of {target[:60]}, which is not an exported function")


def _linkage(scope: Scope) -> Iterator[Hit]:
    for item in _items(scope):
        if item.linkage in _LINKAGES or item.name.startswith("llvm."):
            continue
        advice = _LINKAGE_ADVICE.get(item.linkage.removesuffix("_odr"))
        yield _hit(scope, item, f"{item.name[:60]} has the linkage {item.linkage}", advice)


def _visibility(scope: Scope) -> Iterator[Hit]:
    for item in _items(scope):
        match = _HIDDEN.search(item.prefix)
        if match and not _local(item.linkage):
            yield _hit(scope, item, f"{item.name[:60]} is neither internal nor plainly exported but {match[0]}")


def _thread_local_import(scope: Scope) -> Iterator[Hit]:
    for item in scope.module.globals:
        if item.prefix.find("thread_local") >= 0 and (item.declared or not _local(item.linkage)):
            which = "of another library" if item.declared else "that is exported"
            yield scope.at_use(item.name, f"{item.name[:60]} is a thread-local variable {which}")


def _thread_local(scope: Scope) -> Iterator[Hit]:
    for item in scope.module.globals:
        if "thread_local" in item.prefix and not item.declared and _local(item.linkage):
            yield scope.at_use(item.name, f"{item.name[:60]} is a thread-local variable")


def _thread_local_model(scope: Scope) -> Iterator[Hit]:
    for item in scope.module.globals:
        match = re.search(r"thread_local\((\w+)\)", item.prefix)
        if match:
            yield scope.at_use(item.name, f"{item.name[:60]} asks for the thread-local model {match[1]}")


def _missing(scope: Scope) -> Iterator[Hit]:
    defined = {item.name for item in _items(scope) if not item.declared and not _local(item.linkage)}
    for name in sorted(scope.exports - defined):
        yield Hit(message=f"{name} is to be exported, but the module does not define it")


def _stray(scope: Scope) -> Iterator[Hit]:
    for item in _items(scope):
        if item.declared or _local(item.linkage) or item.name in scope.exports or item.name.startswith("llvm."):
            continue
        if item.linkage in ("", "external"):
            yield _hit(scope, item, f"{item.name[:60]} is visible to other libraries, but is not among the exports")


def _reserved(scope: Scope) -> Iterator[Hit]:
    defined = {item.name: item for item in _items(scope) if not item.declared and not _local(item.linkage)}
    for name in sorted(scope.exports | set(defined)):
        entry = scope.program and name == "main"
        owner = None if name.startswith("llvm.") or entry else why_reserved(name)
        if owner:
            message = f"the export {name[:60]} is a name of {owner}"
            function = defined.get(name)
            yield Hit(message=message, function=function if isinstance(function, Function) else None)
    for item in _items(scope):
        if not item.declared and _local(item.linkage) and item.name.startswith("__vis_"):
            yield _hit(scope, item, f"{item.name[:60]} defines a name of visget")


def _dso_local(scope: Scope) -> Iterator[Hit]:
    for item in _items(scope):
        if "dso_local" in item.prefix.split() and not _local(item.linkage):
            yield _hit(scope, item, f"{item.name[:60]} is marked dso_local")


_INTERNALISE = "Build the package with `visget build`, which makes everything internal that is not exported."

RULES = (
    Rule(
        id="VIS-201",
        title="plain symbol names",
        severity="error",
        check=_names,
        reason="Names with control characters or of enormous length reach assemblers, linkers and terminals.",
        remedy='Use names of letters, digits and underscores; remove asm labels such as int f(void) asm("name").',
    ),
    Rule(
        id="VIS-202",
        title="no ifuncs",
        severity="error",
        check=_ifunc,
        reason="An ifunc chooses code by CPU at load. A package is compiled for the CPU already.",
        remedy="Switch run-time dispatch off with the library's define.",
    ),
    Rule(
        id="VIS-203",
        title="aliases stay inside the exports",
        severity="error",
        check=_alias,
        reason="An alias could export something under another name. An internal one is harmless, and so is one of "
        "two exported names for one function.",
        remedy="Export a small function that calls the other one, or list both names as exports.",
    ),
    Rule(
        id="VIS-204",
        title="external or internal linkage only",
        severity="error",
        check=_linkage,
        reason="Weak, common and once-only symbols are resolved between libraries, differently on every system.",
        remedy=_INTERNALISE,
    ),
    Rule(
        id="VIS-205",
        title="default visibility only",
        severity="error",
        check=_visibility,
        reason="A symbol is exported or internal; other visibilities mean different things on different systems.",
        remedy=_INTERNALISE,
    ),
    Rule(
        id="VIS-206",
        title="no thread-local variables across libraries",
        severity="error",
        check=_thread_local_import,
        reason="Access to another library's thread-local variable needs a TLS model that differs between systems.",
        remedy="Use a function that returns the address of the variable.",
    ),
    Rule(
        id="VIS-207",
        title="thread-local variables are slow",
        severity="warning",
        check=_thread_local,
        reason="In a library that is loaded at run time each access calls a function of the system.",
        remedy="Pass a context pointer instead, if the function is called often.",
    ),
    Rule(
        id="VIS-208",
        title="every export is defined",
        severity="error",
        check=_missing,
        reason="The exports are a promise that users link against.",
        remedy="Add the source file that defines it, check the defines that switch it off, or take it off the exports.",
    ),
    Rule(
        id="VIS-209",
        title="nothing else is visible",
        severity="error",
        check=_stray,
        reason="A symbol that nobody promised can collide with another library.",
        remedy=_INTERNALISE,
    ),
    Rule(
        id="VIS-210",
        title="no names that belong to others",
        severity="error",
        check=_reserved,
        reason="An export such as malloc could take the place of a function that the whole process uses.",
        remedy="Rename it (a define on the command line often does: -Dname=mylib_name), or do not export it.",
    ),
    Rule(
        id="VIS-211",
        title="position-independent symbols",
        severity="error",
        check=_dso_local,
        reason="dso_local on a visible symbol leads to relocations that a shared library cannot have.",
        remedy="Compile with -fPIC, as `visget build` does.",
    ),
    Rule(
        id="VIS-212",
        title="the general model of thread-local variables",
        severity="error",
        check=_thread_local_model,
        reason="The other models hold for programs, or for libraries that are loaded with them.",
        remedy="Build without -ftls-model and __attribute__((tls_model(...))).",
    ),
)
