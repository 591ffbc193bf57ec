"""What a package offers: the functions of the public headers, less those that cannot be called alike everywhere.

Invariant: nothing is left out in silence. A function that cannot be exported is a warning when a pattern or the
default chose it, and an error when visget.toml names it. The spec is docs/spec/front-end.md, section 7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from visget.errors import UsageError
from visget.format.findings import Finding, in_order
from visget.format.irtext import Module, scan
from visget.format.rule import Scope
from visget.format.rules_abi import RULES
from visget.toolchain.exported import Exported, choose_exports
from visget.toolchain.headers import Headers
from visget.toolchain.project import Project
from visget.toolchain.toml_lines import Place

LEFT_OUT = frozenset(
    ["API-001", "API-003", "API-004", "VIS-401", "VIS-402", "VIS-404", "VIS-405", "VIS-408", "VIS-409"]
)
"""The rules that a function of a public header can break without being wrong in itself."""


def choose_interface(project: Project, headers: Headers, merged: str) -> Exported:
    """Choose the functions that `project` exports from the module `merged`.

    Raises:
        UsageError: a pattern matches nothing, or nothing is left; the line of visget.toml is named.
    """
    module = scan(merged)
    chosen = _chosen(project, headers, module, ())
    named = frozenset(project.exports.functions)
    wrong: dict[str, Finding] = {}
    for finding in (*chosen.findings, *_breaking(chosen, module)):
        if finding.rule in LEFT_OUT and finding.severity == "error" and finding.function not in named:
            wrong.setdefault(finding.function or "", finding)
    if not wrong or wrong.keys() >= set(chosen.symbols):  # an empty package would say nothing: the errors do
        return chosen
    places = {one.function.name: (one.file, one.function.line) for one in headers.declared}
    left = _chosen(project, headers, module, wrong.keys())
    warnings = [
        replace(
            finding, severity="warning", file=places[name][0], line=places[name][1],
            message=f"left out of the exports: {finding.message}",
            remedy=_silenced(finding.remedy, name),
        )
        for name, finding in wrong.items()
    ]  # fmt: skip
    return replace(left, findings=in_order([*left.findings, *warnings]))


def _silenced(remedy: str, name: str) -> str:
    exclude = f'[exports] exclude = ["{name}"]'
    return remedy if exclude in remedy else f"{remedy.rstrip('.')}; {exclude} silences this"


def _breaking(exported: Exported, module: Module) -> Iterator[Finding]:
    """Yield what the rules about signatures find in the exports of a module that is not finished yet."""
    scope = Scope(module, exports=frozenset(exported.symbols), api=exported.api)
    for rule in RULES:
        if rule.id in LEFT_OUT:
            for hit in rule.check(scope):
                if hit.function is not None:
                    yield Finding(
                        rule=rule.id, severity=rule.severity, function=hit.function.name, file=None, line=None,
                        message=hit.message, remedy=hit.remedy or rule.remedy,
                    )  # fmt: skip


def _chosen(project: Project, headers: Headers, module: Module, left_out: Collection[str]) -> Exported:
    """Return what choose_exports() returns; say of an error which line of visget.toml it comes from."""
    patterns = {"functions": project.exports.functions, "exclude": project.exports.exclude}
    try:
        return choose_exports(
            headers, module, functions=patterns["functions"], exclude=(*patterns["exclude"], *sorted(left_out))
        )
    except UsageError as error:
        place: Place = ("exports", "headers")
        for key, listed in patterns.items():
            if error.details.get("pattern") in listed:
                place = ("exports", key, listed.index(str(error.details["pattern"])))
        raise project.wrong(place, error.message, error.hint) from error
