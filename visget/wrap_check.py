"""What the VIS rules say about a program: the part of ``visget cc`` that keeps a program from being silently wrong.

Invariant: a unit is linked into a program only when none of the rules of RULES finds anything in it. These are the
rules about what code means; those about the form of a finished module and about what other programs see of a package
do not concern a program, which is made for one machine. Guide: docs/guides/building.md, "Programs".
"""

from __future__ import annotations

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

_SHOWN = 20


def check_unit(text: str, origin: str) -> None:
    """Refuse the unit of neutral LLVM IR `text`, with its line tables, when a program of it would not be right.

    Raises:
        BuildError: a rule is broken.
    """
    found = program_findings(text)
    if not found:
        return
    shown = [_line(finding, origin) for finding in found[:_SHOWN]]
    if len(found) > _SHOWN:
        shown.append(f"and {len(found) - _SHOWN} more")
    raise BuildError("\n".join(shown), hint=found[0].remedy, details={"findings": [f.as_dict() for f in found]})


def program_findings(text: str) -> list[Finding]:
    """Return what the rules for programs find in the unit `text`."""
    lines = extract_lines(text)
    final = text_of(parse_text(strip_debug(text)))
    found = check_module(final, exports=(), lines=lines, program=True)
    return [finding for finding in errors(found) if finding.rule in RULES]


def _line(finding: Finding, origin: str) -> str:
    place = f"{finding.file}:{finding.line}" if finding.file and finding.line else finding.file or origin
    within = f" in {finding.function}()" if finding.function else ""
    return f"{place}: [{finding.rule}]{within}: {finding.message}"
