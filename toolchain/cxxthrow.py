"""Which exported functions may let a C++ exception out, and whose findings are the author's own.

Invariant: a function is named only when there is a way from it to a throw that nothing on the way catches for certain;
calls through pointers count as not throwing, so this is advice and no proof. The finding is CXX-001 of
docs/spec/front-end.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from visget.format.findings import Finding
from visget.format.lines import LineTable
from visget.toolchain.normalise import NAME, plain

_SHOWN = 5
_THROWERS = frozenset(["__cxa_throw", "__cxa_rethrow", "_Unwind_RaiseException", "_Unwind_Resume_or_Rethrow"])
_FUNCTION = re.compile(rf"^define [^\n@]*@({NAME})\(([^\n]*)\n(.*?)^}}", re.M | re.S)
_CALL = re.compile(rf"^  [^\n]*?\b(call|invoke) [^\n@]*@({NAME})\(([^\n]*)", re.M)
_NOUNWIND_GROUP = re.compile(r"^attributes (#\d+) = \{[^\n]*\bnounwind\b", re.M)
_GROUP_USE = re.compile(r"#\d+")
_OWN_HEADERS = ("visget/",)


def escaping_exceptions(text: str, *, exports: Collection[str], lines: LineTable) -> list[Finding]:
    """Return a finding that names the functions among `exports` that may throw; nothing when there are none."""
    if "@__cxa_throw(" not in text and "@_Unwind_RaiseException(" not in text:
        return []
    callers: dict[str, set[str]] = {}
    for name, passing in _functions(text):
        for callee in passing:
            callers.setdefault(callee, set()).add(name)
    throwing: set[str] = set()
    waiting = list(_THROWERS)
    while waiting:
        for caller in callers.get(waiting.pop(), ()):
            if caller not in throwing:
                throwing.add(caller)
                waiting.append(caller)
    named = sorted(throwing & set(exports))
    if not named:
        return []
    shown = ", ".join(f"{name}()" for name in named[:_SHOWN])
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    place = lines.lookup(named[0])
    return [
        Finding(
            rule="CXX-001",
            severity="warning",
            function=named[0],
            file=place.file if place else None,
            line=place.line if place else None,
            message=f"{shown}{more} may let a C++ exception out, which ends a program that is not written in C++",
            remedy="Catch exceptions there and return an error. noexcept (in C++'s view of the header too) says that "
            "ending the program is meant.",
        )
    ]


def _functions(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each function that may throw, with the functions whose exceptions go on to its caller."""
    quiet = frozenset(_NOUNWIND_GROUP.findall(text))
    for found in _FUNCTION.finditer(text):
        head, body = found[2], found[3]
        if quiet & set(_GROUP_USE.findall(head)):
            continue
        # What an invoke throws goes on only by a resume.
        resumes = "\n  resume " in body
        passing = frozenset(
            plain(callee)
            for kind, callee, rest in _CALL.findall(body)
            if (kind == "call" or resumes) and not quiet & set(_GROUP_USE.findall(rest))
        )
        yield plain(found[1]), passing


def of_the_author(findings: Iterable[Finding], lines: LineTable) -> list[Finding]:
    """Return `findings` without the warnings about the C++ library's own code, which the author cannot change."""
    return [
        finding
        for finding in findings
        if finding.severity == "error"
        or finding.function is None
        or not (
            finding.function not in lines.functions
            if finding.file is None
            else finding.file.startswith(_OWN_HEADERS)
        )
    ]
