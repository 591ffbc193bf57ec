"""Giving the IR of another front end's target the neutral triple and layout.

Invariant: nothing that the front end decided about memory or calls is changed: how a struct is passed or how much room
a va_list takes stands in the code already, and the rules of VIS-1 find what is wrong with it. The spec is
docs/spec/front-end.md, section 10.
"""

from __future__ import annotations

import re

from visget.format.irtext import NAME, closing, mask, split_list, unmask
from visget.format.module import DATALAYOUT, TRIPLE

_TRIPLE = re.compile(r'^target triple = "[^"]*"$', re.MULTILINE)
_LAYOUT = re.compile(r'^target datalayout = "[^"]*"$', re.MULTILINE)
_FLAG_LIST = re.compile(r"^!llvm\.module\.flags = !\{(.*)\}$", re.MULTILINE)
# What is left tells of the language, not of a machine; debug information goes later.
_KEPT_FLAG = re.compile(
    r'^(!\d+) = (?:distinct )?!\{i32 \d+, '
    r'!"(?:wchar_size|PIC Level|PIE Level|uwtable|Debug Info Version|Dwarf Version)"',
    re.MULTILINE,
)
_REMARKS = re.compile(r"^!llvm\.(?:ident|commandline) = .*\n", re.MULTILINE)
# How the optimiser of that front end left a loop for its own machine; the installer's has another one.
_LOOP_ADVICE = re.compile(
    r'^(!\d+) = !\{!"llvm\.loop\.'
    r'(?:unroll\.(?:runtime\.)?disable|isvectorized|(?:vectorize|interleave)\.\w+)"[^\n]*\}$',
    re.MULTILINE,
)
_LOOP = re.compile(r"^(!\d+) = distinct !\{\1((?:, !\d+)*)\}$", re.MULTILINE)
_SIGNATURE = re.compile(r"^(?:define|declare) .*$", re.MULTILINE)
_CALL = re.compile(r"^  .*\b(?:call|invoke) .*$", re.MULTILINE)
_CALLEE = re.compile(rf"[@%]{NAME}\(")
_RESULT = re.compile(r"\bi32 (?=(?:\([^()]*\) )?\Z)")
_ARGUMENT = re.compile(r"i32(?=[ ]|\Z)")
_MARK = re.compile(r"\b(?:signext|zeroext)\b")


def retargeted(text: str) -> str:
    """Return the IR text of another 64-bit little-endian target as one of the neutral target.

    Integers of 32 bits are marked signext in every signature and call: so does each C compiler for the neutral target,
    where the upper half of a register would otherwise be undefined. Other targets ignore the mark. Module flags that
    speak of the machine, advice about loops, and remarks about the compiler are left out.
    """
    if _TRIPLE.search(text) is None:
        text = f'target triple = "{TRIPLE}"\n{text}'
    if _LAYOUT.search(text) is None:
        text = f'target datalayout = "{DATALAYOUT}"\n{text}'
    text = _TRIPLE.sub(f'target triple = "{TRIPLE}"', text)
    text = _LAYOUT.sub(f'target datalayout = "{DATALAYOUT}"', text)
    text = _REMARKS.sub("", _with_flags(text, set(_KEPT_FLAG.findall(text))))
    text = _without_advice(text)
    masked, strings = mask(text)
    masked = _SIGNATURE.sub(lambda match: _extended(match[0]), masked)
    return unmask(_CALL.sub(lambda match: _extended(match[0]), masked), strings)


def _with_flags(text: str, kept: set[str]) -> str:
    def listed(match: re.Match[str]) -> str:
        return f"!llvm.module.flags = !{{{', '.join(flag for flag in match[1].split(', ') if flag in kept)}}}"

    return _FLAG_LIST.sub(listed, text)


def _without_advice(text: str) -> str:
    advice = set(_LOOP_ADVICE.findall(text))
    if not advice:
        return text

    def kept(match: re.Match[str]) -> str:
        nodes = [match[1], *(node for node in match[2].split(", ")[1:] if node not in advice)]
        return f"{match[1]} = distinct !{{{', '.join(nodes)}}}"

    return _LOOP.sub(kept, text)


def _extended(line: str) -> str:
    """Mark the 32-bit integers of one signature or call, in masked text."""
    at = _CALLEE.search(line)
    if at is None or at[0].startswith("@llvm."):
        return line
    end = closing(line, at.end() - 1)
    if end < 0:
        return line
    head = line[: at.start()]
    if not _MARK.search(head):
        head = _RESULT.sub("signext i32 ", head)
    arguments = split_list(line[at.end() : end])
    marked = [argument if _MARK.search(argument) else _ARGUMENT.sub("i32 signext", argument, count=1)
              if argument.startswith("i32") else argument for argument in arguments]  # fmt: skip
    return f"{head}{at[0]}{', '.join(marked)}{line[end:]}"
