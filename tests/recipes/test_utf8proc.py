"""utf8proc against Python's unicodedata, on every machine."""

from __future__ import annotations

import itertools
import sys
import unicodedata

import pytest
from machines import Machine

RECIPE = "utf8proc"
DISTRIBUTION = ("libutf8proc.so.2",)
FORMS = {"NFD": "utf8proc_NFD", "NFC": "utf8proc_NFC", "NFKD": "utf8proc_NFKD", "NFKC": "utf8proc_NFKC"}
# Characters that Unicode 3.2 had already: their normal forms never change, whatever versions Python and utf8proc have.
OLD = [chr(n) for n in range(1, sys.maxunicode) if unicodedata.ucd_3_2_0.category(chr(n)) not in ("Cn", "Cs")]
# Corrigenda changed the decompositions of a handful of ideographs after Unicode 3.2.
CHANGED = set("\uf951\U0002f868\U0002f874\U0002f91f\U0002f95f\U0002f9bf")
TEXTS = [
    "", "Ame\u0301lie \ufb01", "\u1e9b\u0323", "A\u030a\u0327", "\uac00\u11a8 \u1100\u1161\u11a8", "\u2460\u00bd\u3392",
    "".join(OLD[400:9000:7]), "e" + "\u0301\u0327" * 20,
]  # fmt: skip


def take(machine: Machine, address: int) -> str:
    assert address
    return machine.text(address).decode()


@pytest.mark.parametrize("form", FORMS)
def test_normal_forms(machine: Machine, form: str) -> None:
    for text in TEXTS:
        assert take(machine, getattr(machine, FORMS[form])(text.encode())) == unicodedata.normalize(form, text)


def test_every_old_character(machine: Machine) -> None:
    """All of them in one call each way: canonical order makes neighbours interact, so they are kept apart by 'x'."""
    text = "x".join(c for c in OLD if c not in CHANGED)
    assert take(machine, machine.utf8proc_NFKD(text.encode())) == unicodedata.normalize("NFKD", text)
    assert take(machine, machine.utf8proc_NFC(text.encode())) == unicodedata.normalize("NFC", text)


def test_properties(machine: Machine) -> None:
    changed = 0
    for char in OLD[:: 97 if machine.name != "x86-64" else 11]:
        code = ord(char)
        assert machine.utf8proc_codepoint_valid(code)
        record = machine.struct("utf8proc_property_t", machine.utf8proc_get_property(code))
        assert record["combining_class"] == unicodedata.combining(char)
        changed += machine.text(machine.utf8proc_category_string(code)).decode() != unicodedata.category(char)
        if len(char.upper()) == len(char.lower()) == 1 and char.upper() != char and char.upper().lower() == char:
            assert machine.utf8proc_toupper(code) == ord(char.upper())
    assert changed < 10  # a few characters have moved to another category since
    for code in (-1, 0xD800, 0x110000):
        assert not machine.utf8proc_codepoint_valid(code)


def test_bytes_and_characters(machine: Machine) -> None:
    out = machine.buffer(4)
    point = machine.buffer(4)
    for char in OLD[::501]:
        size = machine.utf8proc_encode_char(ord(char), out)
        assert out.read(size).decode() == char
        assert machine.utf8proc_iterate(char.encode(), size, point) == size
        assert point.u32() == ord(char)


@pytest.mark.parametrize("broken", [b"\xc3", b"\x80", b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"])
def test_broken_text(machine: Machine, broken: bytes) -> None:
    point = machine.buffer(4)
    code = machine.utf8proc_iterate(broken, len(broken), point)
    assert code == machine.UTF8PROC_ERROR_INVALIDUTF8
    assert machine.text(machine.utf8proc_errmsg(code)) == b"Invalid UTF-8 string"
    out = machine.buffer(8)
    assert machine.utf8proc_map(broken, len(broken), out, machine.UTF8PROC_STABLE) == code


def test_graphemes(machine: Machine) -> None:
    state = machine.buffer(4)
    clusters = ["a", "e\u0301\u0327", "\r\n", "\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7", "\uac00\u11a8", "z"]
    text = "".join(clusters)
    found = [text[0]]
    for before, after in itertools.pairwise(text):
        if machine.utf8proc_grapheme_break_stateful(ord(before), ord(after), state):
            found.append("")
        found[-1] += after
    assert found == clusters


def test_custom_mapping(machine: Machine) -> None:
    """A callback is called for every character."""
    seen: list[int] = []

    def swap(code: int, _data: int) -> int:
        seen.append(code)
        return ord("-") if code == ord(" ") else code

    out = machine.buffer(8)
    options = machine.UTF8PROC_CASEFOLD | machine.UTF8PROC_COMPOSE | machine.UTF8PROC_STABLE
    text = "GROSSE STRA\u00dfE \u00c9"
    size = machine.utf8proc_map_custom(text.encode(), len(text.encode()), out, options, swap, None)
    assert machine.read(out.u64(), size).decode() == text.casefold().replace(" ", "-")
    assert seen == 2 * [ord(c) for c in text]  # once to measure, once to write


def test_the_same_as_the_distribution(machine: Machine, theirs: Machine) -> None:
    for code in range(0, 0x110000, 4099):
        ours, other = (m.read(m.utf8proc_get_property(code), 24) for m in (machine, theirs))
        assert ours == other, hex(code)
        assert machine.utf8proc_charwidth(code) == theirs.utf8proc_charwidth(code)
        assert machine.utf8proc_totitle(code) == theirs.utf8proc_totitle(code)
