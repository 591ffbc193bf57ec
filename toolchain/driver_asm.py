"""Assembly in compiled units: where it is, and which of it means something.

Invariant: pure text to text; the text is LLVM IR with line tables, as clang prints it.
"""

from __future__ import annotations

import re

_WORD = re.compile(rb"\b(?:__asm__|__asm|asm)\b")
_CALL = re.compile(
    r'\basm (?:sideeffect |alignstack |inteldialect |unwind )*"(?P<template>[^"]*)", "(?P<constraints>[^"]*)"'
    r"(?P<rest>.*)"
)
# As in visget.format.rules_code: what every target understands.
_GENERIC_CONSTRAINT = re.compile(r"(?:[=+&*%]*[rmioXgnps0-9]+|~\{(?:memory|dirflag|fpsr|flags|cc)\})\Z")
_DBG = re.compile(r"!dbg (!\d+)")
_MACHINE_CODE = re.compile(
    r"__builtin_(?:ia32|arm|neon|aarch64)_|outside VIS-1|(?:invalid (?:output|input) constraint|unknown register name)"
    r"[^\n]* in asm|unsupported '[^'\n]*' in the 'target|<inline asm>:"
)
# What is left of an assembly file for other processors once it is preprocessed.
_EMPTY_LINE = re.compile(
    r"\s*(?:(?:#|//|@).*|\.(?:file|ident|text|data|att_syntax|intel_syntax)\b.*"
    r"|\.(?:section|pushsection)\s+\"?\.note\.GNU-stack\b.*|\.popsection|\.previous)?"
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def is_empty_assembly(preprocessed: str) -> bool:
    """Tell whether an assembly file, preprocessed, makes no code: what it has is for other processors."""
    text = _COMMENT.sub(" ", preprocessed)
    return all(_EMPTY_LINE.fullmatch(part) for line in text.split("\n") for part in line.split(";"))


def may_hold_assembly(source: bytes) -> bool:
    """Tell whether the C or C++ file `source` has the word."""
    return _WORD.search(source) is not None


def tells_of_machine_code(said: str) -> bool:
    """Tell whether clang's errors `said` are about the code of one kind of CPU."""
    return _MACHINE_CODE.search(said) is not None


def assembly_sites(text: str, source: str) -> list[tuple[str, str]]:
    """Return ``file:line`` and template of each assembly statement in the IR `text` that means something.

    An empty statement that only stops the optimiser (``asm volatile("" ::: "memory")``) is the same everywhere.
    """
    found = []
    for line in text.split("\n"):
        if line.startswith("module asm "):
            found.append((source, line[12:].strip('"')[:60]))
        elif " asm " in line and (match := _CALL.search(line)) and not _is_barrier(match):
            found.append((_place(text, match["rest"], source), match["template"][:60]))
    return list(dict.fromkeys(found))


def _is_barrier(match: re.Match[str]) -> bool:
    constraints = [part for part in match["constraints"].split(",") if part]
    return not match["template"].strip() and all(_GENERIC_CONSTRAINT.match(part) for part in constraints)


def _place(text: str, rest: str, source: str) -> str:
    """Return ``file:line`` of the instruction whose line ends with `rest`."""
    number = _DBG.search(rest)
    node = number and re.search(rf"^{number[1]} = .*?!DILocation\(line: (\d+),.*?scope: (!\d+)", text, re.MULTILINE)
    if not node:
        return source
    scope: str | None = node[2]
    while scope is not None:
        entry = re.search(rf"^{scope} = (.*)$", text, re.MULTILINE)
        if entry is None:
            break
        file = re.search(r"file: (!\d+)", entry[1])
        if file is not None:
            name = re.search(rf'^{file[1]} = !DIFile\(filename: "([^"]*)"', text, re.MULTILINE)
            return f"{name[1] if name else source}:{node[1]}"
        above = re.search(r"scope: (!\d+)", entry[1])
        scope = above[1] if above else None
    return f"{source}:{node[1]}"
