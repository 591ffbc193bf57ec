"""What a build has written of this machine into a library: its directories, its name, its kind of processor.

Invariant: only texts in the finished module count; what is never used is gone by then. A directory of the build is an
error, for the package would differ at each build; the other things are warnings. The rules BLD-... are in
docs/spec/front-end.md, section 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from visget.format.findings import Finding
from visget.format.lines import LineTable

_CONSTANT = re.compile(r'^@("[^"\n]*"|[-\w.$]+) = [^\n"]*\b(?:constant|global) [^\n]*', re.MULTILINE)
_TEXT = re.compile(r'\bc"([^"\n]*)"')
_DEFINE = re.compile(r'^define [^\n@]*@("[^"\n]*"|[-\w.$]+)\(', re.MULTILINE)
_ESCAPE = re.compile(r"\\([0-9A-F]{2})")
_HOST = re.compile(
    r"\b(?:x86_64|i[3-6]86|aarch64|arm\w*|riscv64\w*|powerpc64le|ppc64le|s390x|mips64el|loongarch64)"
    r"-(?:\w+-)?(?:linux|unknown)(?:-(?:gnu|musl)\w*)?\b"
)
_SHOWN = 120


def baked_in(text: str, *, paths: Sequence[str], machine: str, lines: LineTable) -> Iterator[Finding]:
    """Yield a finding for each text of the module `text` that tells where, or on which machine, it was built.

    Args:
        text: the finished module.
        paths: directories of the build.
        machine: the name of this machine; empty to not look for it.
        lines: where the functions are.
    """
    for constant in _CONSTANT.finditer(text):
        for found in _TEXT.findall(constant[0]):
            told = _judge(_ESCAPE.sub(lambda m: chr(int(m[1], 16)), found) if "\\" in found else found, paths, machine)
            if told is not None:
                yield _finding(text, constant[1], *told, lines)
                break


def _judge(value: str, paths: Sequence[str], machine: str) -> tuple[str, str] | None:
    for path in paths:
        at = value.find(path)
        if at >= 0:
            return "BLD-001", value[at:].split("\0")[0]
    host = _HOST.search(value)
    if host is not None:
        return "BLD-002", host[0]
    if machine and re.search(rf"(?<![\w-]){re.escape(machine)}(?![\w-])", value):
        return "BLD-002", machine
    return None


def _finding(text: str, symbol: str, rule: str, value: str, lines: LineTable) -> Finding:
    function = _user(text, symbol)
    place = lines.lookup(function) if function else None
    shown = repr(value[:_SHOWN])
    if rule == "BLD-001":
        message = f"{symbol.strip(chr(34))} holds {shown}, a directory of this build, so no build is like another"
        remedy = "find the macro that brings it in (often -DNAME=\"$(srcdir)\"), and give it another value with defines"
    else:
        message = f"{symbol.strip(chr(34))} holds {shown}, which describes the machine that built it"
        remedy = "give what configure found another value with configure or defines, if programs rely on it"
    return Finding(
        rule=rule, severity="error" if rule == "BLD-001" else "warning", function=function,
        file=place.file if place else None, line=place.line if place else None, message=message, remedy=remedy,
    )  # fmt: skip


def _user(text: str, symbol: str) -> str | None:
    """Return the first function that uses `symbol`, directly."""
    use = re.compile(rf"^  .*@{re.escape(symbol)}(?![-\w.$])", re.MULTILINE).search(text)
    if use is None:
        return None
    defined = _DEFINE.findall(text, 0, use.start())
    return str(defined[-1]).strip(chr(34)) if defined else None
