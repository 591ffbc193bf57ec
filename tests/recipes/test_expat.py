"""Expat against Python's pyexpat and the distribution's build, on every machine."""

from __future__ import annotations

import pyexpat
import random
from typing import Any

import pytest
from machines import Machine

RECIPE = "expat"
DISTRIBUTION = ("libexpat.so.1",)
DOCUMENTS = [
    b'<a b="1" c="&lt;&#65;"><d/>text &amp; more<e>\r\n</e><!-- no --><?pi data?></a>',
    b'<?xml version="1.0" encoding="iso-8859-1"?><x>\xe9</x>',
    '<?xml version="1.0" encoding="UTF-16"?><x y="\u4e2d">\u00e9</x>'.encode("utf-16"),
    b'<!DOCTYPE r [<!ENTITY e "in <b>bold</b>"><!ATTLIST r z CDATA "default">]><r>&e;</r>',
    b"<r><![CDATA[<raw> & ]]></r>",
    "<\u4e2d\u6587 \u00e9='1'/>".encode(),
]
BROKEN = [
    b"", b"<a>", b"<a></b>", b"<a b=1/>", b"<a b='1' b='2'/>", b"<a>&undefined;</a>", b"<a>\x01</a>", b"<a/><b/>",
    b"<?xml version='1.0' encoding='no-such'?><a/>", b"<a>\xff</a>", b"text", b"<a><!-- -- --></a>", b"<a b='<'/>",
]  # fmt: skip


def events(machine: Machine, data: bytes, step: int = 0, namespaces: bool = False) -> list[tuple[Any, ...]]:
    """What the library calls back; the last is ("error", code, line, column) where it gave up."""
    found: list[tuple[Any, ...]] = []
    parser = machine.XML_ParserCreateNS(None, ord("|")) if namespaces else machine.XML_ParserCreate(None)
    text = machine.text

    def start(_user: int, name: int, attributes: int) -> None:
        pairs = []
        while pointer := int.from_bytes(machine.read(attributes, 8), "little"):
            pairs.append(text(pointer).decode())
            attributes += 8
        found.append(("start", text(name).decode(), tuple(pairs)))

    def data_of(_user: int, pointer: int, size: int) -> None:
        piece = machine.read(pointer, size).decode()
        if found and found[-1][0] == "data":
            found[-1] = ("data", found[-1][1] + piece)
        else:
            found.append(("data", piece))

    machine.XML_SetElementHandler(parser, start, lambda _u, name: found.append(("end", text(name).decode())))
    machine.XML_SetCharacterDataHandler(parser, data_of)
    machine.XML_SetCommentHandler(parser, lambda _u, data: found.append(("comment", text(data).decode())))
    machine.XML_SetProcessingInstructionHandler(
        parser, lambda _u, target, data: found.append(("pi", text(target).decode(), text(data).decode()))
    )
    pieces = [data[n : n + step] for n in range(0, len(data), step)] if step else [data]
    for number, piece in enumerate(pieces or [b""]):
        if not machine.XML_Parse(parser, piece, len(piece), number >= len(pieces) - 1):
            found.append(
                (
                    "error",
                    machine.XML_GetErrorCode(parser),
                    machine.XML_GetCurrentLineNumber(parser),
                    machine.XML_GetCurrentColumnNumber(parser),
                )
            )
            break
    machine.XML_ParserFree(parser)
    machine.forget_callbacks()
    return found


def python_events(data: bytes, namespaces: bool = False) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    parser = pyexpat.ParserCreate(None, "|") if namespaces else pyexpat.ParserCreate()
    parser.ordered_attributes = True
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: found.append(("start", name, tuple(attributes)))
    parser.EndElementHandler = lambda name: found.append(("end", name))
    parser.CharacterDataHandler = lambda text: found.append(("data", text))
    parser.CommentHandler = lambda text: found.append(("comment", text))
    parser.ProcessingInstructionHandler = lambda target, text: found.append(("pi", target, text))
    try:
        parser.Parse(data, True)
    except pyexpat.ExpatError as error:
        found.append(("error", error.code, error.lineno, error.offset))
    return found


def random_xml(rng: random.Random, depth: int = 0) -> str:
    name = rng.choice(["a", "b:c", "\u00e9", "long-name.1"])
    values = ['"1"', "'&gt;'", '"\u4e2d"']
    attributes = "".join(f" x{n}={rng.choice(values)}" for n in range(rng.randrange(3)))
    inside = "".join(
        rng.choice(["text", " ", "&amp;", "&#x41;", "<![CDATA[x]]>", "<!--c-->", "<?p q?>", "\n"])
        if depth > 3 or rng.random() < 0.6
        else random_xml(rng, depth + 1)
        for _ in range(rng.randrange(5))
    )
    return f"<{name}{attributes}>{inside}</{name}>"


@pytest.mark.parametrize("step", [0, 1, 7])
def test_events(machine: Machine, step: int) -> None:
    rng = random.Random(4)
    for data in [*DOCUMENTS, *(random_xml(rng).encode() for _ in range(40 if step != 1 else 8))]:
        assert events(machine, data, step) == python_events(data), data


def test_namespaces(machine: Machine) -> None:
    data = b'<r xmlns="urn:x" xmlns:p="urn:p"><p:a p:b="1"/></r>'
    found = events(machine, data, namespaces=True)
    assert found == python_events(data, namespaces=True)
    assert found[1] == ("start", "urn:p|a", ("urn:p|b", "1"))


@pytest.mark.parametrize("data", BROKEN)
def test_errors(machine: Machine, theirs: Machine, data: bytes) -> None:
    found = events(machine, data)
    assert found == events(theirs, data)
    assert found[-1][0] == "error"
    if b"no-such" not in data:  # for this one pyexpat asks Python's codecs
        assert found[-1][1] == python_events(data)[-1][1]
    assert machine.text(machine.XML_ErrorString(found[-1][1])) == pyexpat.ErrorString(found[-1][1]).encode()


def test_a_billion_laughs_are_stopped(machine: Machine) -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    data = f'<!DOCTYPE r [<!ENTITY e0 "{"ha" * 40}">{entities}]><r>&e11;</r>'.encode()
    parser = machine.XML_ParserCreate(None)
    assert not machine.XML_Parse(parser, data, len(data), 1)
    assert machine.XML_GetErrorCode(parser) == machine.XML_ERROR_AMPLIFICATION_LIMIT_BREACH
    machine.XML_ParserFree(parser)


def test_a_large_document_through_its_own_buffer(machine: Machine) -> None:
    parser = machine.XML_ParserCreate(None)
    count = [0]

    def start(_user: int, _name: int, _attributes: int) -> None:
        count[0] += 1

    machine.XML_SetElementHandler(parser, start, lambda *_: None)
    data = b"<r>" + b"<item n='1'>some text</item>" * 2000 + b"</r>"
    for place in range(0, len(data), 10_000):
        piece = data[place : place + 10_000]
        room = machine.XML_GetBuffer(parser, len(piece))
        machine.write(room, piece)
        assert machine.XML_ParseBuffer(parser, len(piece), place + 10_000 >= len(data))
    assert count[0] == 2001
    machine.XML_ParserFree(parser)
    assert machine.text(machine.XML_ExpatVersion()) == b"expat_2.5.0"
