"""What is timed of the libraries that read and write text: cJSON, Expat, LibYAML, MD4C, utf8proc."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.case import Case, amount
from bench.documents import json_text, markdown_text, prose_text, xml_text, yaml_text
from bench.inputs import Arrays
from bench.plain import LIBC, POINTER, SIZE, Call, Sink, bound, call, callback, taken
from visget.runtime.library import Library

_MIB = 1 << 20


def cjson_cases(*, quick: bool) -> list[Case]:
    """Return the cases of cJSON: reading, and writing what was read."""
    size = _MIB // 8 if quick else 2 * _MIB
    text = json_text(size)
    held: dict[str, Any] = {}

    def parse(lib: Library) -> Call:
        def again() -> Any:
            tree = call(lib, "cJSON_ParseWithLength", text, len(text), result=POINTER)
            count = call(lib, "cJSON_GetArraySize", POINTER(tree))
            call(lib, "cJSON_Delete", POINTER(tree), result=None)
            return count

        return again

    def write(lib: Library) -> Call:
        held["tree"] = POINTER(call(lib, "cJSON_ParseWithLength", text, len(text), result=POINTER))
        run = bound(lib, "cJSON_PrintUnformatted", held["tree"], result=POINTER)

        def again() -> Any:
            made = run()
            length = LIBC.strlen(POINTER(made))
            held["last"] = taken(made, length)
            LIBC.free(made)
            return length

        return again

    return [
        Case(title=f"cJSON parse and free, {amount(size)}", amount=len(text), bind=parse, answer=lambda value: value),
        Case(title=f"cJSON print, {amount(size)}", amount=len(text), bind=write, answer=lambda _: held["last"],
             release=lambda lib: call(lib, "cJSON_Delete", held["tree"], result=None)),
    ]  # fmt: skip


def expat_cases(*, quick: bool) -> list[Case]:
    """Return the cases of Expat: with callbacks for elements and text, and without any."""
    size = _MIB // 8 if quick else 4 * _MIB
    text = xml_text(size)
    sink = Sink(0)

    def parse(lib: Library, handlers: bool) -> Call:
        def again() -> Any:
            sink.clear()
            parser = POINTER(call(lib, "XML_ParserCreate", None, result=POINTER))
            if handlers:
                call(lib, "XML_SetUserData", parser, sink.state, result=None)
                call(lib, "XML_SetElementHandler", parser, callback("sink_start"), callback("sink_end"), result=None)
                call(lib, "XML_SetCharacterDataHandler", parser, callback("sink_text"), result=None)
            good = call(lib, "XML_Parse", parser, text, len(text), 1)
            call(lib, "XML_ParserFree", parser, result=None)
            return good

        return again

    return [
        Case(title=f"XML_Parse, elements and text called back, {amount(size)}", amount=len(text),
             bind=lambda lib: parse(lib, True), answer=lambda good: np.append(sink.noted(), np.uint64(good))),
        Case(title=f"XML_Parse, nothing called back, {amount(size)}", amount=len(text),
             bind=lambda lib: parse(lib, False), answer=lambda good: good),
    ]  # fmt: skip


def yaml_cases(*, quick: bool) -> list[Case]:
    """Return the cases of LibYAML: reading a document, and reading and writing it."""
    size = _MIB // 16 if quick else _MIB
    text = yaml_text(size)
    arrays = Arrays()
    parser, emitter, document = (arrays.empty(2048, np.uint8) for _ in range(3))
    sink = Sink(2 * size + 4096)

    def run(lib: Library, write: bool) -> Call:
        def again() -> Any:
            sink.clear()
            call(lib, "yaml_parser_initialize", parser)
            call(lib, "yaml_parser_set_input_string", parser, text, len(text), result=None)
            good = call(lib, "yaml_parser_load", parser, document)
            if write:
                call(lib, "yaml_emitter_initialize", emitter)
                call(lib, "yaml_emitter_set_output", emitter, callback("sink_yaml"), sink.state, result=None)
                call(lib, "yaml_emitter_set_unicode", emitter, 1, result=None)
                good += call(lib, "yaml_emitter_open", emitter)
                good += call(lib, "yaml_emitter_dump", emitter, document)  # takes the document
                good += call(lib, "yaml_emitter_close", emitter)
                call(lib, "yaml_emitter_delete", emitter, result=None)
            else:
                call(lib, "yaml_document_delete", document, result=None)
            call(lib, "yaml_parser_delete", parser, result=None)
            return good

        return again

    return [
        Case(title=f"yaml_parser_load, {amount(size)}", amount=len(text), bind=lambda lib: run(lib, False),
             answer=lambda good: good),
        Case(title=f"yaml_parser_load and yaml_emitter_dump, {amount(size)}", amount=len(text),
             bind=lambda lib: run(lib, True), answer=lambda good: np.append(sink.written(), np.uint8(good))),
    ]  # fmt: skip


def markdown_cases(*, quick: bool) -> list[Case]:
    """Return the cases of MD4C."""
    size = _MIB // 8 if quick else 2 * _MIB
    text = markdown_text(size)
    sink = Sink(4 * len(text))
    github = 0x0004 | 0x0008 | 0x0400 | 0x0100 | 0x0200 | 0x0800

    def render(lib: Library, flags: int) -> Call:
        run = bound(lib, "md_html", text, len(text), callback("sink_markdown"), sink.state, flags, 0)

        def again() -> Any:
            sink.clear()
            return run()

        return again

    return [
        Case(title=f"md_html, {title}, {amount(size)}", amount=len(text), bind=lambda lib, f=flags: render(lib, f),
             answer=lambda code: np.append(sink.written(), np.uint8(code)))
        for title, flags in (("CommonMark", 0), ("GitHub's dialect", github))
    ]  # fmt: skip


def utf8_cases(*, quick: bool) -> list[Case]:
    """Return the cases of utf8proc: normal forms of text in several scripts."""
    size = _MIB // 8 if quick else 2 * _MIB
    text = prose_text(size)
    points = Arrays().empty(2 * len(text), np.int32)
    stable, compat, compose, decompose, fold = 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 10

    def normal(lib: Library, options: int) -> Call:
        first = bound(lib, "utf8proc_decompose", text, len(text), points, points.size, options, result=SIZE)

        def again() -> Any:
            count = first()
            return call(lib, "utf8proc_reencode", points, count, options, result=SIZE)

        return again

    return [
        Case(title=f"utf8proc, {title}, {amount(size)}", amount=len(text), bind=lambda lib, o=options: normal(lib, o),
             answer=lambda count: points.view(np.uint8)[:count].copy())
        for title, options in (
            ("NFC", stable | compose), ("NFKD and case folding", stable | compat | decompose | fold),
        )
    ]  # fmt: skip
