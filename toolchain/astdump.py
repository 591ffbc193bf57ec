"""Reads clang's own description of the public headers: its syntax tree as JSON, and its record layouts.

Invariant: nothing here interprets C; what clang says is only given names. Every declaration carries the file and line
it was written in, which the JSON leaves out where they repeat those of the location before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from visget.errors import BuildError
from visget.format.plaintext import clean_text

Node = dict[str, Any]
"""A node of the tree. Locations in it have "file" and "line" filled in."""


# Rows of asterisks and the like, by which comments are made to look like boxes.
_BANNER = re.compile(r"^[-*=#~_+/|\s]+$\n?", re.MULTILINE)


def parse_tree(text: str) -> list[Node]:
    """Return the top-level declarations in clang's JSON.

    Raises:
        BuildError: the text is not clang's JSON.
    """
    file, line = "", 0

    def locate(node: Node) -> Node:
        # A location prints its file and line only where they differ from those of the location printed before it,
        # and locations are leaves: this sees them in the order they were printed.
        nonlocal file, line
        if "offset" in node and "col" in node:
            file, line = node.get("file", file), node.get("line", line)
            node["file"], node["line"] = file, line
        return node

    try:
        tree = json.loads(text, object_hook=locate)
    except (ValueError, RecursionError) as error:
        raise BuildError(f"the compiler's description of the public headers cannot be read: {error}") from error
    inner = tree.get("inner", []) if isinstance(tree, dict) else []
    return [node for node in inner if not node.get("isImplicit")]


def place(node: Node) -> tuple[str, int, int]:
    """Return the file, line and column where `node` was declared; for a macro, where it was used."""
    loc = node.get("loc", {})
    loc = loc.get("expansionLoc", loc)
    return str(loc.get("file", "")), int(loc.get("line", 0)), int(loc.get("col", 0))


def children(node: Node, *kinds: str) -> Iterator[Node]:
    """Yield the children of `node` of those kinds."""
    return (child for child in node.get("inner", ()) if child.get("kind") in kinds)


def comment(node: Node) -> str:
    """Return the comment that belongs to `node` as plain text: paragraphs, and one line for each command."""
    for found in children(node, "FullComment"):
        blocks = [_BANNER.sub("", _block(block)).strip() for block in found.get("inner", ())]
        return clean_text("\n\n".join(filter(None, blocks)))
    return ""


def _block(block: Node) -> str:
    match block.get("kind"):
        case "ParamCommandComment" | "TParamCommandComment":
            return f"{block.get('param', '?')}: {_flow(block)}"
        case "BlockCommandComment":
            name = str(block.get("name", ""))
            prefix = {"brief": "", "short": "", "details": "", "return": "Returns: ", "returns": "Returns: "}
            return prefix.get(name, f"{name}: ") + _flow(block)
        case "VerbatimBlockComment" | "VerbatimLineComment":
            lines = [str(line.get("text", "")) for line in block.get("inner", ())]
            return "\n".join([*([str(block["text"]).strip()] if block.get("text") else []), *lines])
        case _:
            return _flow(block)


def _flow(block: Node) -> str:
    """Return the running text of a block, one line for each line of the comment."""
    text, before = "", 0
    for part in block.get("inner", ()):
        match part.get("kind"):
            case "TextComment":
                said = str(part.get("text", ""))
            case "ParagraphComment":
                said = _flow(part)
            case "InlineCommandComment":
                said = " ".join(str(argument) for argument in part.get("args", ()))
            case _:
                continue
        # A command such as \p stands in the middle of its line, and clang takes the line apart there.
        line = place(part)[1]
        text += said if line == before else f"\n{said}"
        before = line
    return re.sub(r"[ \t]+", " ", "\n".join(line.strip() for line in text.splitlines() if line.strip()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Where one field lies."""

    bit: int
    """Its first bit, from the start of the record."""
    width: int | None
    """How many bits, for a bit-field."""
    name: str = ""
    """The field's name; empty for padding and for anonymous structs and unions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one record lies in memory."""

    size: int
    align: int
    slots: tuple[Slot, ...] = field(default_factory=tuple)
    """Its own fields in order."""


_FIELD = re.compile(r" *(\d+)(?::(?:(\d+)-(\d+)|(-)))? \| {3}(?=\S)")
_UNNAMED = re.compile(r"\((?:unnamed|anonymous)(?: \w+)? at (.+:\d+:\d+)\)")
_SIZE = re.compile(r"\[sizeof=(\d+), align=(\d+)")


def parse_layouts(text: str) -> Mapping[str, Layout]:
    """Return the layouts in the output of -fdump-record-layouts, by ``struct foo`` or by file:line:column."""
    layouts: dict[str, Layout] = {}
    for dump in text.split("*** Dumping AST Record Layout\n")[1:]:
        head, *lines = dump.splitlines()
        slots: list[Slot] = []
        size = None
        for line in lines:
            size = size or _SIZE.search(line)
            if found := _FIELD.match(line):
                start = 8 * int(found[1]) + int(found[2] or 0)
                width = int(found[3]) - int(found[2]) + 1 if found[2] else 0 if found[4] else None
                slots.append(Slot(bit=start, width=width, name=line.rpartition(" ")[2]))
        name = head.partition("|")[2].strip()
        unnamed = _UNNAMED.search(name)
        if size is not None:
            layout = Layout(size=int(size[1]), align=int(size[2]), slots=tuple(slots))
            layouts[unnamed[1] if unnamed else name] = layout
    return layouts
