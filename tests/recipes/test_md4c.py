"""MD4C against GitHub's own cmark (cmarkgfm) and the distribution's build, on every machine."""

from __future__ import annotations

import html
import random
import re
from collections.abc import Callable

import pytest
from machines import Machine

RECIPE = "md4c"
DISTRIBUTION = ("libmd4c.so.0", "libmd4c-html.so.0")
DOCUMENT = """\
# Heading with *emphasis* and `code`

A paragraph with **strong**, a [link](https://example.org "title"), an ![image](x.png),
a hard break\\
and an entity &copy; &#x41; \\*escaped\\*.

> quote
> > nested

1. one
2. two
   - inner

     continued
   - [x] done

~~~ python
print("<&>")
~~~

    indented

<div>raw *html*</div>

| a | b |
|---|--:|
| 1 | ~~2~~ |

Setext
======

***

www.example.org and <mailto:me@example.org>
"""


OUTPUT: list[bytes] = []


def output_of(machine: Machine) -> Callable[..., None]:
    """The callback that takes a machine's output: always the same one."""
    return OUTPUTS.setdefault(id(machine), lambda data, size, _user: OUTPUT.append(machine.read(data, size)))


OUTPUTS: dict[int, Callable[..., None]] = {}


def render(machine: Machine, text: bytes, flags: int = 0, html_flags: int = 0) -> bytes:
    OUTPUT.clear()
    assert machine.md_html(text, len(text), output_of(machine), None, flags, html_flags) == 0
    return b"".join(OUTPUT)


def normal(text: str) -> str:
    """What two renderers may write differently: spaces between tags, quotes, closed void elements."""
    text = html.unescape(text.replace("&quot;", '"'))
    text = re.sub(r"\s*/>", ">", text)
    text = re.sub(r">\s+", ">", re.sub(r"\s+<", "<", text))
    return re.sub(r"\s+", " ", text)


def random_markdown(rng: random.Random) -> str:
    pieces = ["*", "_", "`", "a", "b c", "\n", "\n\n", "> ", "- ", "1. ", "# ", "[x](y)", "<b>", "&amp;", "  ", "    ",
              "\\", "!", "![i](j)", "***", "---\n", "~~~\n", "\u00e9", "(", ")", "[", "]"]  # fmt: skip
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 60)))


def test_a_document_of_all_constructs(machine: Machine) -> None:
    cmark = pytest.importorskip("cmarkgfm")
    text = DOCUMENT.split("| a |")[0] + "Setext\n======\n\n***\n"
    text = text.replace("   - [x] done\n", "")
    theirs = cmark.markdown_to_html(text, cmark.cmark.Options.CMARK_OPT_UNSAFE)
    assert normal(render(machine, text.encode()).decode()) == normal(theirs)


def test_the_extensions_of_github(machine: Machine) -> None:
    found = render(machine, DOCUMENT.encode(), machine.MD_DIALECT_GITHUB).decode()
    assert "<table>" in found
    assert '<td align="right"><del>2</del></td>' in found
    assert 'type="checkbox" class="task-list-item-checkbox" disabled checked' in found
    assert '<a href="http://www.example.org">www.example.org</a>' in found
    assert "<del>" not in render(machine, DOCUMENT.encode()).decode()


def test_the_same_bytes_as_the_distribution(machine: Machine, theirs: Machine) -> None:
    rng = random.Random(5)
    for text in [DOCUMENT, *(random_markdown(rng) for _ in range(150))]:
        for flags in (0, machine.MD_DIALECT_GITHUB):
            assert render(machine, text.encode(), flags) == render(theirs, text.encode(), flags), text


def test_events(machine: Machine) -> None:
    """The parser itself, with a struct of callbacks."""
    seen: list[tuple[str, int, object]] = []

    def enter_block(kind: int, detail: int, _user: int) -> int:
        level = machine.struct("MD_BLOCK_H_DETAIL", detail)["level"] if kind == machine.MD_BLOCK_H else None
        seen.append(("block", kind, level))
        return 0

    def enter_span(kind: int, detail: int, _user: int) -> int:
        href = None
        if kind == machine.MD_SPAN_A:
            link = machine.struct("MD_SPAN_A_DETAIL", detail)
            href = machine.read(link["href.text"], link["href.size"])
        seen.append(("span", kind, href))
        return 0

    parser = machine.struct(
        "MD_PARSER", enter_block=enter_block, leave_block=lambda *_: 0, enter_span=enter_span,
        leave_span=lambda *_: 0,
        text=lambda kind, data, size, _: seen.append(("text", kind, machine.read(data, size))) or 0,
    )  # fmt: skip
    text = b"## Hi [there](u)\n"
    assert machine.md_parse(text, len(text), parser, None) == 0
    assert seen == [
        ("block", machine.MD_BLOCK_DOC, None), ("block", machine.MD_BLOCK_H, 2), ("text", 0, b"Hi "),
        ("span", machine.MD_SPAN_A, b"u"), ("text", 0, b"there"),
    ]  # fmt: skip
    parser["enter_span"] = lambda *_: -7
    assert machine.md_parse(text, len(text), parser, None) == -7


def test_a_large_document(machine: Machine, theirs: Machine) -> None:
    text = (DOCUMENT * 100).encode()
    assert render(machine, text) == render(theirs, text)
    deep = b"> " * 2000 + b"x"
    assert render(machine, deep).count(b"<blockquote>") == render(theirs, deep).count(b"<blockquote>")
