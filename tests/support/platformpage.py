"""Writes the lists of docs/spec/platform.md from the tables of visget.format and from what the headers declare.

python tests/support/platformpage.py    # rewrites the page
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from platformheaders import WITHOUT
from platformkit import declared

from visget.format.imports import BUILT_INS, DATA, IMPORTS, PROGRAM_DATA, VA_LIST_FAMILY
from visget.format.refused_imports import WRONG

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spec" / "platform.md"
_PART = re.compile(r"(<!-- begin: (\w+) -->\n).*?(<!-- end: \2 -->\n)", re.S)
_BY_THE_COMPILER = "(by the compiler)"


def expected() -> str:
    """Return what the page must say."""
    parts = {
        "functions": _functions(program=False),
        "program": _functions(program=True),
        "data": _data(),
        "va_list": _names(VA_LIST_FAMILY),
        "built_ins": _built_ins(),
        "refused": _refused(),
        "headers": _headers(),
    }
    return _PART.sub(lambda found: f"{found[1]}\n{parts[found[2]].strip()}\n\n{found[3]}", PAGE.read_text())


def _header(name: str) -> str:
    item = declared().get(name)
    return f"<{item.headers[0]}>" if item else _BY_THE_COMPILER


def _functions(*, program: bool) -> str:
    rows: dict[tuple[str, int], dict[str, list[str]]] = {}
    for name, item in IMPORTS.items():
        if item.program == program:
            rows.setdefault((_header(name), item.level), {}).setdefault(item.signature, []).append(name)
    lines = ["| Header | Level | Signature | Functions |", "|---|---|---|---|"]
    for (header, level), groups in sorted(rows.items()):
        for signature, names in groups.items():
            cell = ", ".join(f"`{name}`" for name in names)
            lines.append(f"| {header} | {level} | `{signature}` | {cell} |")
    return "\n".join(lines)


def _data() -> str:
    lines = ["| Variable | Type | Level | For |", "|---|---|---|---|"]
    for name, kind in DATA.items():
        who = "programs" if name in PROGRAM_DATA else "all"
        lines.append(f"| `{name}` | `{kind}` | {1 if name.startswith('std') else 2} | {who} |")
    return "\n".join(lines)


def _built_ins() -> str:
    functions = {item.label: item for item in declared().values() if item.label in BUILT_INS}
    lines = ["| Built-in | Signature | C function | Header |", "|---|---|---|---|"]
    for name, signature in BUILT_INS.items():
        if "_va_" in name:
            continue
        item = functions.get(name)
        where = f"`{item.name}` | <{item.headers[0]}>" if item else f"| {_BY_THE_COMPILER}"
        lines.append(f"| `{name}` | `{signature}` | {where} |")
    return "\n".join(lines)


def _refused() -> str:
    groups: dict[tuple[str, str], list[str]] = {}
    for name, wrong in WRONG.items():
        groups.setdefault((wrong.why, wrong.instead), []).append(name)
    return "\n".join(
        textwrap.fill(f"* {_names(names)}: {why}. {instead}", 120, subsequent_indent="  ", break_long_words=False)
        for (why, instead), names in groups.items()
    )


def _headers() -> str:
    lines = ["| Header | Instead |", "|---|---|"]
    return "\n".join([*lines, *(f"| <{name}> | {remedy} |" for name, remedy in WITHOUT.items())])


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


if __name__ == "__main__":
    PAGE.write_text(expected())
    sys.exit(0)
