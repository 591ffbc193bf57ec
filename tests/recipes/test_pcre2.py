"""PCRE2 against Python's re module and the distribution's build, on every machine."""

from __future__ import annotations

import random
import re

import pytest
from machines import Machine

RECIPE = "pcre2"
DISTRIBUTION = ("libpcre2-8.so.0",)
# What re and PCRE2 mean the same by.
CASES = [
    (r"(\w+)@((?:\w+\.)+\w+)", 0, "mail joe@ex.example.org and ann@b.c.d now"),
    (r"^(\d{4})-(\d\d)-(\d\d)$", re.MULTILINE, "2026-11-30\nx\n1999-01-02"),
    (r"(a+)(b*)(c?)", 0, "xxaabbbc abc a b aac"),
    ("(?i)STRASSE|gr(?:\u00fc|ue)n", 0, "Gr\u00dcN in der strasse, gruen"),
    (r"(?P<word>\b\w)(?P=word)", 0, "aab llama eel"),
    (r"(?<!\$)\b\d+(?![\d.])", 0, "cost $42 or 17 or 3.5 and 99"),
    (r"\s*(?:#.*)?$", re.MULTILINE, "a # b\n# c\n\n d"),
    (r"(x)?(y)?z", 0, "xz yz xyz z"),
    (r"(?s)begin(.*?)end", 0, "begin a\nend begin end"),
    (r"[^\W\d_]+", 0, "\u00e9t\u00e9 42 na\u00efve _x \u4e2d\u6587"),
    (r"(?:(?=a)a|b)*c", 0, "abababc bbc"),
    (r"\\(.)", 0, r"a\nb\\c"),
]
FLAGS = {re.MULTILINE: "PCRE2_MULTILINE"}


class Regex:
    """A compiled pattern."""

    def __init__(self, machine: Machine, pattern: str, options: int = 0) -> None:
        self.machine = machine
        error, place = machine.buffer(4), machine.buffer(8)
        data = pattern.encode()
        self.code = machine.pcre2_compile_8(data, len(data), options, error, place, None)
        self.error = 0 if self.code else error.u32()
        self.place = place.u64()
        self.message = b""
        if not self.code:
            room = machine.buffer(200)
            size = machine.pcre2_get_error_message_8(self.error, room, 200)
            self.message = room.read(size)
        else:
            self.data = machine.pcre2_match_data_create_from_pattern_8(self.code, None)

    def match(self, subject: bytes, start: int = 0, options: int = 0) -> list[tuple[int, int]] | int:
        """Return the places of the groups, or a negative code."""
        found = self.machine.pcre2_match_8(self.code, subject, len(subject), start, options, self.data, None)
        if found < 0:
            return found
        ovector = self.machine.pcre2_get_ovector_pointer_8(self.data)
        count = self.machine.pcre2_get_ovector_count_8(self.data)
        raw = self.machine.read(ovector, 16 * count)
        words = [int.from_bytes(raw[n : n + 8], "little", signed=True) for n in range(0, len(raw), 8)]
        return list(zip(words[::2], words[1::2], strict=True))

    def all(self, subject: bytes) -> list[list[tuple[int, int]]]:
        """Return all matches, as re.finditer() does."""
        found, start, options = [], 0, 0
        never = self.machine.PCRE2_NOTEMPTY_ATSTART | self.machine.PCRE2_ANCHORED
        while start <= len(subject):
            places = self.match(subject, start, options)
            if isinstance(places, int):
                assert places == -1
                if not options:
                    break
                start, options = start + 1, 0
                while start < len(subject) and subject[start] & 0xC0 == 0x80:
                    start += 1
                continue
            found.append(places)
            options = never if places[0][0] == places[0][1] else 0
            start = places[0][1]
        return found


def expected(pattern: str, flags: int, subject: str) -> list[list[tuple[int, int]]]:
    def place(at: int) -> int:
        return len(subject[:at].encode()) if at >= 0 else -1

    return [
        [tuple(map(place, match.span(group))) for group in range(match.re.groups + 1)]  # type: ignore[misc]
        for match in re.finditer(pattern, subject, flags)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].encode("ascii", "replace").decode())
def test_all_matches(machine: Machine, case: tuple[str, int, str]) -> None:
    pattern, flags, subject = case
    options = machine.PCRE2_UTF | machine.PCRE2_UCP | (getattr(machine, FLAGS[flags]) if flags else 0)
    regex = Regex(machine, pattern, options)
    assert regex.code, regex.message
    # PCRE2 may report an empty match at the end of another one where Python 3.7 and later do so too.
    assert regex.all(subject.encode()) == expected(pattern, flags, subject)


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    kind = rng.randrange(8 if depth < 3 else 3)
    if kind < 3:
        return rng.choice(["a", "b", "c", ".", "[ab]", "[^a]", r"\b", "^", "$", r"\w", ""])
    if kind == 3:
        return f"({random_pattern(rng, depth + 1)})"
    if kind == 4:
        return f"(?:{random_pattern(rng, depth + 1)}|{random_pattern(rng, depth + 1)})"
    if kind == 5:
        return f"(?:{random_pattern(rng, depth + 1)}){rng.choice(['?', '{0,2}', '{2}', '+?', '{1,3}?'])}"
    return random_pattern(rng, depth + 1) + random_pattern(rng, depth + 1)


def test_random_patterns_as_the_distribution_matches_them(machine: Machine, theirs: Machine) -> None:
    rng = random.Random(9)
    for _ in range(150 if machine.name == "x86-64" else 60):
        pattern = random_pattern(rng)
        one, two = Regex(machine, pattern), Regex(theirs, pattern)
        assert (one.error, one.place, one.message) == (two.error, two.place, two.message), pattern
        if one.code:
            for _ in range(4):
                subject = "".join(rng.choice("abc ") for _ in range(rng.randrange(12))).encode()
                assert one.match(subject) == two.match(subject), (pattern, subject)
            machine.pcre2_match_data_free_8(one.data)
            machine.pcre2_code_free_8(one.code)


@pytest.mark.parametrize(
    "pattern",
    ["(a", "a)", "[z-a]", "*", "(?<n>a)(?<n>b)", "\\", "(?P<1>a)", "a{2,1}", "(?<=a+)b", "[[:foo:]]", "\\p{Xx}"],
)
def test_broken_patterns(machine: Machine, theirs: Machine, pattern: str) -> None:
    one, two = Regex(machine, pattern), Regex(theirs, pattern)
    assert one.code == 0
    assert (one.error, one.place, one.message) == (two.error, two.place, two.message)


def test_subjects_that_are_no_text(machine: Machine) -> None:
    regex = Regex(machine, ".", machine.PCRE2_UTF)
    for subject in (b"\xff", b"\xc3", b"\xed\xa0\x80"):
        found = regex.match(subject)
        assert isinstance(found, int)
        assert machine.PCRE2_ERROR_UTF8_ERR21 <= found <= machine.PCRE2_ERROR_UTF8_ERR1
    assert regex.match(b"\n") == machine.PCRE2_ERROR_NOMATCH


def test_a_catastrophic_pattern_ends(machine: Machine) -> None:
    regex = Regex(machine, "(a+)+$")
    context = machine.pcre2_match_context_create_8(None)
    machine.pcre2_set_match_limit_8(context, 20_000)
    subject = b"a" * 40 + b"!"
    code = machine.pcre2_match_8(regex.code, subject, len(subject), 0, 0, regex.data, context)
    assert code == machine.PCRE2_ERROR_MATCHLIMIT
    assert machine.pcre2_jit_compile_8(regex.code, machine.PCRE2_JIT_COMPLETE) == machine.PCRE2_ERROR_JIT_BADOPTION


def test_substitution(machine: Machine) -> None:
    regex = Regex(machine, r"(\w)(\w*)")
    subject = b"swap the first letters of every word, please. " * 50
    room, size = machine.buffer(5000), machine.buffer((5000).to_bytes(8, "little"))
    count = machine.pcre2_substitute_8(
        regex.code, subject, len(subject), 0, machine.PCRE2_SUBSTITUTE_GLOBAL, None, None, b"$2$1", 4, room, size
    )
    assert count == 400
    assert room.read(size.u64()) == re.sub(rb"(\w)(\w*)", rb"\2\1", subject)


def test_callouts(machine: Machine) -> None:
    """A callback in the middle of a match that decides whether it goes on."""
    seen: list[int] = []

    def callout(block: int, _data: int) -> int:
        found = machine.struct("pcre2_callout_block_8", block)
        seen.append(found["callout_number"])
        return 1 if len(seen) == 2 else 0

    context = machine.pcre2_match_context_create_8(None)
    machine.pcre2_set_callout_8(context, callout, None)
    regex = Regex(machine, "a(?C7)|b(?C8)|c")
    assert machine.pcre2_match_8(regex.code, b"ac", 2, 0, 0, regex.data, context) == 1
    assert seen == [7]


def test_the_other_matcher(machine: Machine) -> None:
    """pcre2_dfa_match finds all lengths at once."""
    regex = Regex(machine, "a|ab|abc")
    data = machine.pcre2_match_data_create_8(10, None)
    space = machine.buffer(400)
    found = machine.pcre2_dfa_match_8(regex.code, b"abcd", 4, 0, 0, data, None, space, 100)
    raw = machine.read(machine.pcre2_get_ovector_pointer_8(data), 16 * found)
    ends = [int.from_bytes(raw[n + 8 : n + 16], "little") for n in range(0, len(raw), 16)]
    assert ends == [3, 2, 1]
