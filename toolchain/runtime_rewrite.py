"""Turning operations that back ends make library calls of into calls of the VIS run-time.

On some targets a division of 128-bit integers or an addition of long doubles becomes a call into the compiler's own
run-time library (libgcc, compiler-rt), which users do not have. Here it becomes a call of a function that the package
carries: docs/spec/front-end.md, section 8, has the list.

Invariant: pure, text to text, for modules as LLVM prints them; instructions that are not in the list stay as they
are, and so do those on vectors, which the rules of VIS-1 then refuse. Debug locations stay with what replaces an
instruction.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from visget.format.irtext import closing, mask, unmask
from visget.toolchain.runtime_lowering import WIDE, Lowering
from visget.toolchain.runtime_table import BY_NAME, ROUTINES

_SIGNS = ("fp128", " half", " bfloat", "@llvm.powi.")
_WIDE = re.compile(rf" {WIDE}\b")
_DEFINITION = re.compile(r"^(define [^\n]*\{)\n.*?^\}", re.M | re.S)
_GROUP = re.compile(r"^attributes (#\d+) = \{(.*)\}$", re.M)
_QUAD = re.compile(r"\bfp128\b")
_FRESH = re.compile(r"%vis\.rt\.(\d+)\b")
_NAMED = re.compile(r"@(" + "|".join(BY_NAME) + r")(?![-\w$.])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A module that calls the run-time."""

    text: str
    """The module; what it calls is declared."""
    routines: frozenset[str]
    """The functions of the run-time that it lacks."""


def lower_operations(text: str) -> Lowered:
    """Return the module `text` without the operations that need a compiler's run-time library."""
    text, named = _by_name(text)
    concerned = any(sign in text for sign in _SIGNS) or _WIDE.search(text) is not None
    if not concerned and "@vis_rt_" not in text:
        return Lowered(text=text, routines=frozenset())
    lowering = Lowering(1 + max((int(number) for number in _FRESH.findall(text)), default=-1))
    if concerned:
        text = "\n".join(line for old in text.split("\n") for line in lowering.lines(old))
    if "fp128" in text:
        plain = frozenset(number for number, held in _GROUP.findall(text) if "noimplicitfloat" in held)
        text = _DEFINITION.sub(lambda found: _without_float_tricks(found, plain), text)
    defined = set(re.findall(r"^define [^\n]*?@(vis_rt_\w+)\(", text, re.M))
    declared = set(re.findall(r"^declare [^\n]*?@((?:vis_rt_|llvm\.)[\w.]+)\(", text, re.M))
    used = lowering.used | named
    lines = lowering.intrinsics | {name: ROUTINES[name].declaration for name in used - defined}
    missing = sorted(lines.keys() - declared)
    if missing:
        text = text.rstrip("\n") + "\n\n" + "".join(f"{lines[name]}\n" for name in missing)
    declared &= ROUTINES.keys()
    return Lowered(text=text, routines=frozenset((used | declared) - defined))


def _without_float_tricks(found: re.Match[str], plain: frozenset[str]) -> str:
    """Keep LLVM from finding comparisons of long doubles in the bits of those that a function looks at.

    `plain` are the groups of attributes that say so already.
    """
    head, rest = found[1], found[0][len(found[1]) :]
    if not _QUAD.search(found[0]) or "noimplicitfloat" in head or plain & set(re.findall(r"#\d+", head)):
        return found[0]
    end = closing(head, head.index("(", head.index(" @"))) + 1
    attributes = re.match(r"(?: local_unnamed_addr| unnamed_addr)?", head[end:])
    end += attributes.end() if attributes else 0
    return f"{head[:end]} noimplicitfloat{head[end:]}{rest}"


def _by_name(text: str) -> tuple[str, set[str]]:
    """Rename what is called by name, unless the module has such functions itself; return the new names too."""
    wanted = set(_NAMED.findall(text))
    if wanted:
        wanted -= set(re.findall(r"^define [^\n]*?@(\w+)\(", text, re.M))
    if not wanted:
        return text, set()
    # Two of them may become one, so the declarations are made anew.
    text = re.sub(rf"^declare [^\n]*@(?:{'|'.join(sorted(wanted))})\([^\n]*\n", "", text, flags=re.M)
    renamed: set[str] = set()

    def rename(found: re.Match[str]) -> str:
        if found[1] not in wanted:
            return found[0]
        renamed.add(BY_NAME[found[1]])
        return f"@{BY_NAME[found[1]]}"

    needles = tuple(f"@{name}" for name in wanted)
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if any(needle in line for needle in needles):
            masked, strings = mask(line)
            lines[number] = unmask(_NAMED.sub(rename, masked), strings)
    return "\n".join(lines), renamed
