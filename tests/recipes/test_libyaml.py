"""LibYAML against PyYAML's own parser, which is not built on it, on every machine."""

from __future__ import annotations

import random
from typing import Any

import pytest
from machines import Machine, Struct

RECIPE = "libyaml"
DISTRIBUTION = ("libyaml-0.so.2",)
DOCUMENTS = [
    "", "a: [1, 2]\nb: 'x'\n", "- &anchor {k: v}\n- *anchor\n",
    "--- |\n literal\n  text\n--- >-\n folded\n text\n...\n",
    "? complex\n  key\n: !!str tagged\n", '"escapes \\t \\u00e9 \\U0001F600 \\x41"\n',
    "%YAML 1.1\n--- !local {a: !<tag:x,1> b}\n",
    "a: 'it''s'\nb: \"multi\n  line\"\nc: plain\n  continued\n", "# only a comment\n", "\ufeffbom: yes\n",
    "- - - deep\n    - er\n",
    "key with spaces: {flow: [a, b, {c: d}], e: }\n",
]  # fmt: skip
BROKEN = ["a: [1, 2\nb: }", "a: b: c", "\tx: 1", "'open", "%YAML 2.0\n---\n", "- a\nb: c", "{a: b]", "@x", "\x01"]
EVENTS = {
    "YAML_STREAM_START_EVENT": "StreamStart", "YAML_STREAM_END_EVENT": "StreamEnd",
    "YAML_DOCUMENT_START_EVENT": "DocumentStart", "YAML_DOCUMENT_END_EVENT": "DocumentEnd",
    "YAML_ALIAS_EVENT": "Alias", "YAML_SCALAR_EVENT": "Scalar", "YAML_SEQUENCE_START_EVENT": "SequenceStart",
    "YAML_SEQUENCE_END_EVENT": "SequenceEnd", "YAML_MAPPING_START_EVENT": "MappingStart",
    "YAML_MAPPING_END_EVENT": "MappingEnd",
}  # fmt: skip


def text_at(machine: Machine, address: int) -> str | None:
    return machine.text(address).decode() if address else None


def events(machine: Machine, data: bytes) -> list[tuple[Any, ...]]:
    """What the library's parser says; the last is ("error", problem) where it gave up."""
    kinds = {getattr(machine, name): kind for name, kind in EVENTS.items()}
    parser, event = machine.struct("yaml_parser_t"), machine.struct("yaml_event_t")
    assert machine.yaml_parser_initialize(parser)
    source = machine.buffer(data + b"\0")
    machine.yaml_parser_set_input_string(parser, source, len(data))
    found: list[tuple[Any, ...]] = []
    while not found or found[-1][0] not in ("StreamEnd", "error"):
        if not machine.yaml_parser_parse(parser, event):
            found.append(("error", text_at(machine, parser["problem"]), parser["problem_mark.line"]))
            break
        found.append(described(machine, kinds[event["type"]], event))
        machine.yaml_event_delete(event)
    machine.yaml_parser_delete(parser)
    for memory in (parser, event, source):
        machine.free(memory.address)
    return found


def described(machine: Machine, kind: str, event: Struct) -> tuple[Any, ...]:
    place = (event["start_mark.line"], event["start_mark.column"])
    if kind == "Scalar":
        value = machine.read(event["data.scalar.value"], event["data.scalar.length"]).decode()
        return (
            kind,
            place,
            value,
            text_at(machine, event["data.scalar.anchor"]),
            text_at(machine, event["data.scalar.tag"]),
        )
    if kind == "Alias":
        return kind, place, text_at(machine, event["data.alias.anchor"])
    if kind in ("SequenceStart", "MappingStart"):
        member = "data." + ("sequence_start" if kind == "SequenceStart" else "mapping_start")
        return kind, place, text_at(machine, event[f"{member}.anchor"]), text_at(machine, event[f"{member}.tag"])
    return (kind, place)


def python_events(text: str) -> list[tuple[Any, ...]]:
    yaml = pytest.importorskip("yaml")
    found: list[tuple[Any, ...]] = []
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        kind, place = type(event).__name__.removesuffix("Event"), (event.start_mark.line, event.start_mark.column)
        if kind == "Scalar":
            found.append((kind, place, event.value, event.anchor, event.tag))
        elif kind == "Alias":
            found.append((kind, place, event.anchor))
        elif kind in ("SequenceStart", "MappingStart"):
            found.append((kind, place, event.anchor, event.tag))
        else:
            found.append((kind, place))
    return found


def simplified(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Without places: the two count columns of implied documents differently."""
    return [(event[0], *event[2:]) for event in found]


def random_value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(6 if depth < 4 else 4)
    if kind < 4:
        return rng.choice(
            [None, True, 12, -1.5, "text", "with: colon", "- dash", "", "\u00e9\u4e2d", "two\nlines", " space "]
        )
    if kind == 4:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {f"key {n}": random_value(rng, depth + 1) for n in range(rng.randrange(4))}


def test_events_of_documents(machine: Machine) -> None:
    yaml = pytest.importorskip("yaml")
    rng = random.Random(3)
    texts = [*DOCUMENTS]
    for number in range(60):
        texts.append(
            yaml.safe_dump(random_value(rng), default_flow_style=number % 2 == 0, allow_unicode=number % 3 == 0)
        )
    for text in texts:
        assert simplified(events(machine, text.encode())) == simplified(python_events(text)), text


def test_other_encodings(machine: Machine) -> None:
    text = "k: \u00e9\u4e2d\U0001f600\n"
    expected = simplified(events(machine, text.encode()))
    for encoding in ("utf-16-le", "utf-16-be"):
        assert simplified(events(machine, ("\ufeff" + text).encode(encoding))) == expected
    assert events(machine, b"k: \xff\xfe")[-1][:2] == ("error", "invalid leading UTF-8 octet")


@pytest.mark.parametrize("text", BROKEN)
def test_errors(machine: Machine, theirs: Machine, text: str) -> None:
    yaml = pytest.importorskip("yaml")
    with pytest.raises(yaml.YAMLError):
        list(yaml.parse(text, Loader=yaml.SafeLoader))
    found = events(machine, text.encode())
    assert found[-1][0] == "error"
    assert found == events(theirs, text.encode())


def emit(machine: Machine, text: str, canonical: int, width: int) -> bytes:
    """Parse a document and emit its events again, through a callback."""
    parts: list[bytes] = []
    parser, emitter, event = (machine.struct(f"yaml_{kind}_t") for kind in ("parser", "emitter", "event"))
    source = machine.buffer(text.encode())
    assert machine.yaml_parser_initialize(parser) and machine.yaml_emitter_initialize(emitter)
    machine.yaml_parser_set_input_string(parser, source, source.size)

    def write(_data: int, buffer: int, size: int) -> int:
        parts.append(machine.read(buffer, size))
        return 1

    machine.yaml_emitter_set_output(emitter, write, None)
    machine.yaml_emitter_set_canonical(emitter, canonical)
    machine.yaml_emitter_set_unicode(emitter, 1)
    machine.yaml_emitter_set_width(emitter, width)
    last = False
    while not last:
        assert machine.yaml_parser_parse(parser, event)
        last = event["type"] == machine.YAML_STREAM_END_EVENT
        assert machine.yaml_emitter_emit(emitter, event), machine.text(emitter["problem"])
    machine.yaml_emitter_delete(emitter)
    machine.yaml_parser_delete(parser)
    return b"".join(parts)


def test_what_is_emitted_says_the_same(machine: Machine, theirs: Machine) -> None:
    yaml = pytest.importorskip("yaml")
    for text in DOCUMENTS:
        for canonical, width in ((0, 20), (1, 80)):
            emitted = emit(machine, text, canonical, width)
            assert emitted == emit(theirs, text, canonical, width)
            if "!local" not in text:
                assert list(yaml.safe_load_all(emitted)) == list(yaml.safe_load_all(text)), emitted


def test_a_large_document_as_a_tree(machine: Machine) -> None:
    parser, document = machine.struct("yaml_parser_t"), machine.struct("yaml_document_t")
    text = "".join(f"- {{number: {n}, words: [a, b, c]}}\n" for n in range(3000)).encode()
    assert machine.yaml_parser_initialize(parser)
    source = machine.buffer(text)
    machine.yaml_parser_set_input_string(parser, source, len(text))
    assert machine.yaml_parser_load(parser, document)
    root = machine.struct("yaml_node_t", machine.yaml_document_get_root_node(document))
    assert root["type"] == machine.YAML_SEQUENCE_NODE
    assert (root["data.sequence.items.top"] - root["data.sequence.items.start"]) // 4 == 3000
    machine.yaml_document_delete(document)
    machine.yaml_parser_delete(parser)
