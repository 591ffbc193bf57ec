"""What the VIS rules say about a program: the part of ``visget cc`` that keeps a program from being silently wrong.

Invariant: a unit is linked into a program only when none of the rules of RULES finds anything in it. These are the
rules about what code means; those about the form of a finished module and about what other programs see of a package
do not concern a program, which is made for one machine. Guide: docs/guides/building.md, "Programs".
"""

from __future__ import annotations

import sys

from visget.errors import BuildError
from visget.format.findings import Finding, errors
from visget.format.lines import extract_lines, strip_debug
from visget.format.module import parse_text, text_of
from visget.format.verifier import check_module

RULES = frozenset(
    f"VIS-{number}"
    for number in (
        # Thread-local variables, symbols that are chosen at load time.
        202, 212,
        # What code may say: assembly, intrinsics, types, atomics, operations without a run-time library, jumps.
        301, 303, 304, 305, 306, 307, 308, 309, 312, 313, 315, 317, 319, 320, 322, 323,
        # Long doubles and variable arguments that leave the program, built-ins. Whether a name exists is asked at
        # the link, when it is known which are defined elsewhere in the program.
        506, 507, 509,
    )
)  # fmt: skip
"""The rules that programs are held to."""

WARNINGS = frozenset(["VIS-508", "VIS-511"])
"""The rules of which a program's author is told: what may, but need not, be meant otherwise."""

_SHOWN = 20


def check_unit(text: str, origin: str) -> None:
    """Refuse the unit of neutral LLVM IR `text`, with its line tables, when a program of it would not be right.

    What is only doubtful is told on standard error, as compilers do.

    Raises:
        BuildError: a rule is broken.
    """
    found = program_findings(text)
    refused = errors(found)
    if refused:
        shown = [_line(finding, origin) for finding in refused[:_SHOWN]]
        if len(refused) > _SHOWN:
            shown.append(f"and {len(refused) - _SHOWN} more")
        facts = [finding.as_dict() for finding in refused]
        raise BuildError("\n".join(shown), hint=refused[0].remedy, details={"findings": facts})
    for finding in found[:_SHOWN]:
        sys.stderr.write(f"visget-cc: warning: {_line(finding, origin)}\n")


def program_findings(text: str) -> list[Finding]:
    """Return what the rules for programs find in the unit `text`: errors and warnings."""
    lines = extract_lines(text)
    final = text_of(parse_text(strip_debug(text)))
    found = check_module(final, exports=(), lines=lines, program=True)
    return [finding for finding in found if finding.rule in (RULES if finding.severity == "error" else WARNINGS)]


def _line(finding: Finding, origin: str) -> str:
    place = f"{finding.file}:{finding.line}" if finding.file and finding.line else finding.file or origin
    within = f" in {finding.function}()" if finding.function else ""
    return f"{place}: [{finding.rule}]{within}: {finding.message}"
