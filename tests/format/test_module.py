"""Modules in and out of LLVM, and the envelope that is checked before LLVM sees a byte."""

from __future__ import annotations

import random

import pytest
from viscases import F, module_text

from visget.errors import BuildError, FormatError
from visget.format.module import bitcode_of, check_envelope, link, parse_bitcode, parse_text, text_of

BITCODE = bitcode_of(parse_text(module_text(F)))


def test_a_round_trip_keeps_text_and_bytes() -> None:
    check_envelope(BITCODE)
    module = parse_bitcode(BITCODE)
    # Only the comment with the module's name, which bitcode does not hold, differs.
    assert text_of(module).splitlines() == module_text(F).splitlines()[1:]
    assert bitcode_of(module) == BITCODE
    assert bitcode_of(parse_bitcode(memoryview(BITCODE))) == BITCODE


def test_bytes_do_not_depend_on_what_was_read_before() -> None:
    body = "%struct.pair = type { i32, i64 }\n@x = internal global %struct.pair zeroinitializer\n" + F
    first = bitcode_of(parse_text(module_text(body)))
    again = bitcode_of(parse_text(module_text(body)))
    assert first == again
    assert "%struct.pair = type" in text_of(parse_bitcode(again))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "starts with nothing"),
        (b"define void @f() { ret void }", "not LLVM bitcode"),
        (b"\xde\xc0\x17\x0b" + BITCODE, "wrapper header"),
        (BITCODE[:-4], "cut short"),
        (BITCODE[:-1], "not a whole number"),
        (BITCODE + b"\0\0\0\0", "ends inside a block header"),
        (BITCODE + b"EVILDATA", "something other than a block"),
        (BITCODE + BITCODE[4:], "not those of exactly one module"),
        (BITCODE[:4], "not those of exactly one module"),
        (BITCODE + BITCODE, "something other than a block"),
    ],
)
def test_the_envelope_is_checked_without_llvm(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        check_envelope(data)
    with pytest.raises(FormatError, match=says):
        parse_bitcode(data)


def test_every_truncation_is_refused_by_the_envelope() -> None:
    for length in range(len(BITCODE)):
        with pytest.raises(FormatError):
            check_envelope(BITCODE[:length])


def test_the_envelope_survives_noise() -> None:
    source = random.Random(7)
    for _ in range(2000):
        data = bytearray(BITCODE)
        for _ in range(source.randint(1, 8)):
            data[source.randrange(len(data))] = source.randrange(256)
        try:
            check_envelope(data)
        except FormatError as error:
            assert error.message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("define void @f() { rett }", "expected instruction opcode"),
        ("define i32 @f() { ret i64 1 }", "doesn't match function result type"),
        ("define void @f() { ret void }\0 module asm", "NUL"),
        ("define void @f(i32 %a) {\n %x = add i32 %y, 1\n %y = add i32 %x, 1\n ret void\n}", "dominate"),
    ],
)
def test_bad_text_is_a_format_error_with_llvms_reason(text: str, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        parse_text(text)


def test_a_triple_that_would_print_as_more_lines_is_refused() -> None:
    module = parse_text(module_text(F))
    module.triple = 'riscv64-unknown-linux-musl"\ndefine internal void @hide() {\n  ret void ;'
    with pytest.raises(FormatError, match="not plain text"):
        text_of(module)


def test_link_merges_and_refuses_double_definitions() -> None:
    one = "declare void @g()\ndefine void @f() {\n  call void @g()\n  ret void\n}\n"
    two = "define void @g() {\n  ret void\n}\n"
    text = text_of(link([one, two]))
    assert "define void @f()" in text
    assert "define void @g()" in text
    with pytest.raises(BuildError, match=r"cannot be merged.*multiply defined"):
        link([one, one])
    with pytest.raises(BuildError, match="nothing to merge"):
        link([])
