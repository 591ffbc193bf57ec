"""What clang says, sorted: what is harmless, what VIS takes for an error, and what deserves a hint.

Invariant: pure text to text; nothing that clang reports as an error is ever left out.
"""

from __future__ import annotations

import re

from visget.format.refused_imports import WRONG

COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
# clang has one warning for two things: an old-style definition, which is harmless, and a call whose arguments nobody
# checked, which goes wrong as soon as a machine passes float, int and pointer differently.
_UNPROTOTYPED_CALL = re.compile(r"(?:warning|error): passing arguments to .* without a prototype")
_OLD_DEFINITION = re.compile(r"warning: a function d\w+ without a prototype is deprecated")
_DIAGNOSTIC = re.compile(r"[^ ].*?: (?:(?:fatal )?error|warning): |In file included from ")
_UNDECLARED = re.compile(r"error: (?:call to|use of) undeclared (?:library )?(?:function|identifier) '(\w+)'")
_COUNT = re.compile(r"\d+ (?:warning|error)s?(?: and \d+ errors?)? generated\.\n?")


def plain(said: str) -> str:
    """Return `said` without colours."""
    return COLOUR.sub("", said)


def has_unprototyped_call(said: str) -> bool:
    """Tell whether clang met a call with arguments of a function whose parameters nobody declared."""
    return _UNPROTOTYPED_CALL.search(plain(said)) is not None


def advice(said: str) -> list[str]:
    """Return what to do about functions that visget's headers do not declare, in the order of their appearance."""
    names = dict.fromkeys(_UNDECLARED.findall(plain(said)))
    return [
        f"{name} is not in the platform interface: {WRONG[name].why}. {WRONG[name].instead}"
        for name in names
        if name in WRONG
    ]


def without_old_definitions(said: str) -> str:
    """Return what clang said without the warnings of old-style definitions, which some libraries have by hundreds."""
    blocks: list[list[str]] = [[]]
    for line in said.splitlines(keepends=True):
        text = plain(line)
        if _DIAGNOSTIC.match(text) and not _is_heading(blocks[-1]):
            blocks.append([])
        if not _COUNT.fullmatch(text):
            blocks[-1].append(line)
    kept = [block for block in blocks if not _OLD_DEFINITION.search(plain("".join(block)))]
    return "".join(line for block in kept for line in block)


def _is_heading(block: list[str]) -> bool:
    """Tell whether `block` so far only says which file is included from where."""
    return bool(block) and all(plain(line).startswith("In file included from ") for line in block)
