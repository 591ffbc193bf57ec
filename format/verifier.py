"""Checks a module against the profile VIS-1: all rules, all findings.

Invariant: the answer depends on the arguments alone, and a module without an error finding obeys every rule of
docs/spec/vis-1.md that can be seen in it. The text must be LLVM's own print (visget.format.module.text_of), never text
that somebody sent, and a compiler must go on from the checked text, not from the bitcode: LLVM prints the keys of
string attributes without escaping, so only then is what was checked what is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from visget.errors import UnsupportedError
from visget.format.findings import Finding, in_order
from visget.format.imports import AT_THE_END, platform_level
from visget.format.irtext import Function, Global, scan
from visget.format.lines import LineTable
from visget.format.profile import PROFILE
from visget.format.prototypes import Api
from visget.format.rule import NOTHING_USED, Hit, Rule, Scope
from visget.format.rules import RULES
from visget.format.rules_imports import imports_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFacts:
    """What a manifest says about its module."""

    exports: tuple[str, ...]
    """The defined symbols that other libraries can see, sorted."""
    imports: tuple[str, ...]
    """The symbols it needs from elsewhere, sorted; neither LLVM's nor VIS built-ins."""
    constructors: bool
    """Whether code runs when it is loaded or unloaded."""
    platform: int
    """The level of the platform interface that it needs."""


def check_module(
    text: str,
    *,
    exports: Iterable[str],
    imports: Iterable[str] | None = None,
    lines: LineTable | None = None,
    api: Api | None = None,
    fp_contract: str | None = None,
    profile: str = PROFILE,
    uses: Mapping[str, str] = NOTHING_USED,
    program: bool = False,
) -> list[Finding]:
    """Return everything that the rules find in a module, sorted.

    Args:
        text: the module as LLVM prints it.
        exports: the symbols that the package promises.
        imports: the imports that the manifest names; not compared when None.
        lines: the line table, for source lines in the findings.
        api: the C types of the exports; without them, doubtful ABI cases are warnings or errors by the IR alone.
        fp_contract: the floating-point contract of the manifest; not compared when None.
        profile: the profile to check against.
        uses: what the manifest says that dependencies provide: the LLVM type of each function.
        program: whether it is a program, which may use more of the platform interface than a package.

    Raises:
        FormatError: the text is not a module.
        UnsupportedError: the profile is not known.
    """
    if profile != PROFILE:
        raise UnsupportedError(
            f"the profile {profile!r} is not known to this visget, which knows {PROFILE!r}",
            hint="install a newer visget",
        )
    scope = Scope(
        scan(text),
        exports=frozenset(exports),
        imports=None if imports is None else frozenset(imports),
        api=api,
        fp_contract=fp_contract,
        uses=uses,
        program=program,
    )
    return in_order(_finding(rule, hit, lines) for rule in RULES for hit in rule.check(scope))


def module_facts(text: str) -> ModuleFacts:
    """Return what the manifest has to say about the module `text`.

    Raises:
        FormatError: the text is not a module.
    """
    scope = Scope(scan(text), exports=frozenset())
    items: tuple[Function | Global, ...] = (*scope.module.globals, *scope.module.functions)
    visible = (item.name for item in items if not item.declared and item.linkage not in ("internal", "private"))
    imports = imports_of(scope)
    built_ins = [function.name for function in scope.built_ins]
    return ModuleFacts(
        exports=tuple(sorted(name for name in visible if not name.startswith("llvm."))),
        imports=imports,
        platform=platform_level((*imports, *built_ins)),
        constructors=any(name in AT_THE_END for name in built_ins)
        or any(
            item.name in ("llvm.global_ctors", "llvm.global_dtors") and "zeroinitializer" not in item.value
            for item in scope.module.globals
        ),
    )


def _finding(rule: Rule, hit: Hit, lines: LineTable | None) -> Finding:
    name = hit.function.name if hit.function else None
    place = lines.lookup(name, hit.ordinal) if lines is not None and name is not None else None
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        function=name,
        file=place.file if place else None,
        line=place.line if place else None,
        message=hit.message,
        remedy=hit.remedy or rule.remedy,
    )
