"""Which comment in a header documents which declaration.

Invariant: a comment is given to one declaration or to none. clang gives every comment to the declaration that follows;
headers like zlib's write it below instead, and headings stand between groups. So a comment that is no documentation
comment (`/**`, `///`) and has a blank line below it belongs to the declaration that it touches from below, if any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from visget.format.plaintext import clean_line
from visget.toolchain.astdump import Node, children, comment


_TRAILING = re.compile(r";\s*(?:/\*[*!]?<?|//[/!]?<?)(.*?)(?:\*/\s*)?$")


def documentation(nodes: Sequence[Node], text: str) -> dict[str, str]:
    """Return the comment of each declaration by its node id.

    Args:
        nodes: the top-level declarations of one header, in order.
        text: the header.
    """
    lines = text.splitlines()
    found: dict[str, str] = {}
    taken: set[int] = set()
    before: Node | None = None
    for node in nodes:
        said = comment(node)
        start = _comment_line(lines, node)
        if said and start not in taken and 0 < start <= len(lines):
            owner = _owner(lines, start, before, node)
            if owner is not None:
                taken.add(start)
                found.setdefault(str(owner.get("id")), said)
        before = node
    for node in nodes:
        trailing = _TRAILING.search(lines[_last_line(lines, node) - 1]) if lines else None
        if trailing:
            found.setdefault(str(node.get("id")), clean_line(trailing[1]))
    return found


def _owner(lines: Sequence[str], start: int, before: Node | None, node: Node) -> Node | None:
    opening = lines[start - 1]
    if any(mark in opening for mark in ("/**", "/*!", "///", "//!")):
        return node
    below = before is not None and _last_line(lines, before) in (start - 1, start)
    end = _comment_end(lines, start)
    gap = any(not line.strip() for line in lines[end : _first_line(node) - 1])
    if not gap:
        return node
    return before if below else None


def _comment_line(lines: Sequence[str], node: Node) -> int:
    """Return the number of the line in which the comment of `node` opens; clang tells where its first word stands."""
    for found in children(node, "FullComment"):
        number = int(found.get("loc", {}).get("line", 0))
        while 1 < number <= len(lines) and not any(mark in lines[number - 1] for mark in ("/*", "//")):
            number -= 1
        return number
    return 0


def _comment_end(lines: Sequence[str], start: int) -> int:
    """Return the number of the last line of the comment that begins in line `start`."""
    number = start
    if "/*" in lines[start - 1]:
        while number < len(lines) and "*/" not in lines[number - 1]:
            number += 1
        return number
    while number < len(lines) and lines[number].lstrip().startswith("//"):
        number += 1
    return number


def _first_line(node: Node) -> int:
    begin = node.get("range", {}).get("begin", {})
    return int(begin.get("expansionLoc", begin).get("line", 0))


def _last_line(lines: Sequence[str], node: Node) -> int:
    """Return the line with the semicolon; where a macro ends the declaration, clang tells only where it begins."""
    end = node.get("range", {}).get("end", {})
    number = int(end.get("expansionLoc", end).get("line", 0))
    while 0 < number < len(lines) and ";" not in lines[number - 1]:
        number += 1
    return number
