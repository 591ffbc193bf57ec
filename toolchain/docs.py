"""Which comment in a header documents which declaration.

Invariant: a comment is given to one declaration or to none. clang gives every comment to the declaration that follows;
headers like zlib's write it below instead, and headings stand between groups. So a comment that is no documentation
comment (`/**`, `///`) and has a blank line below it belongs to the declaration that it touches from below, if any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from visget.format.plaintext import clean_line, clean_text
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
    for node in nodes:
        said = comment(node) if lines and _stands_above(lines, node) else ""
        said = said or (_beside_or_below(lines, node) if lines else "")
        if said:
            found[str(node.get("id"))] = said
    return found


def _stands_above(lines: Sequence[str], node: Node) -> bool:
    start = _comment_line(lines, node)
    if not 0 < start <= len(lines):
        return False
    if any(mark in lines[start - 1] for mark in ("/**", "/*!", "///", "//!")):
        return True
    end = _comment_end(lines, start)
    return all(line.strip() for line in lines[end : _first_line(node) - 1])


def _beside_or_below(lines: Sequence[str], node: Node) -> str:
    last = _last_line(lines, node)
    trailing = _TRAILING.search(lines[last - 1])
    if trailing:
        return clean_line(trailing[1])
    opening = lines[last].lstrip() if last < len(lines) else ""
    if not opening.startswith("/*") or opening.startswith(("/**", "/*!")):
        return ""
    end = _comment_end(lines, last + 1)
    if end < len(lines) and lines[end].strip():
        return ""  # it touches the next declaration too, and stands above that
    said = "\n".join(lines[last:end]).strip().removeprefix("/*").removesuffix("*/")
    return clean_text("\n".join(line.strip().removeprefix("* ") for line in said.splitlines())).strip()


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
    number = max(1, min(int(end.get("expansionLoc", end).get("line", 1)), len(lines)))
    while number < len(lines) and ";" not in lines[number - 1]:
        number += 1
    return number
