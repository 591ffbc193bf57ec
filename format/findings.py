"""What the VIS rules have to say about a module: one finding for each place that breaks a rule.

Invariant: a finding is complete on its own: rule, place, reason and remedy. The rules are docs/spec/vis-1.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One place in a module that breaks a VIS rule."""

    rule: str
    """The rule's id, such as ``VIS-014``."""
    severity: Severity
    """Whether the module is refused or only worth a word."""
    function: str | None = None
    """The function (symbol) it was found in; None when the module as a whole is meant."""
    file: str | None = None
    """The source file, relative, where the line table knows it."""
    line: int | None = None
    """The line in `file`, counted from 1."""
    message: str
    """What was found and why the rule forbids it; one line."""
    remedy: str
    """What the author can do; one or more lines."""

    def render(self) -> str:
        """Return the finding as text, in the shape that editors know from compilers."""
        place = self.file or ""
        if place and self.line is not None:
            place += f":{self.line}"
        prefix = f"{place}: " if place else ""
        within = f" in {self.function}()" if self.function else ""
        remedy = "".join(f"\n  {line}" for line in self.remedy.splitlines())
        return f"{prefix}{self.severity}[{self.rule}]{within}: {self.message}{remedy}"

    def as_dict(self) -> dict[str, object]:
        """Return the finding as the JSON object that ``--json`` prints."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "function": self.function,
            "file": self.file,
            "line": self.line,
            "message": self.message,
            "remedy": self.remedy,
        }


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return `findings` without repetitions, sorted by file, line, function, rule and message."""
    return sorted(
        set(findings),
        key=lambda f: (f.file or "", f.line or 0, f.function or "", f.rule, f.severity, f.message, f.remedy),
    )


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Return only the findings that refuse the module."""
    return [finding for finding in findings if finding.severity == "error"]
