"""Symbols of bitcode without LLVM: what LLVM's own reader says, and damaged files."""

from __future__ import annotations

import struct
import subprocess
from contextlib import suppress

import pytest
from buildkit import frontend
from hypothesis import given
from hypothesis import strategies as st

from visget.errors import FormatError
from visget.format.module import bitcode_of, parse_text
from visget.toolchain.clang import ENVIRONMENT, system_flags
from visget.toolchain.irsymbols import is_bitcode, read_symbols

SOURCE = """
#include <string.h>
extern int outside, data_outside;
int defined(void) { return outside; }
static int local(void) { return data_outside; }
__attribute__((weak)) int weak(void) { return local(); }
extern int weak_outside(void) __attribute__((weak));
__attribute__((visibility("hidden"))) int hidden(char *p) { memset(p, 0, 999); return weak_outside ? 1 : 0; }
__attribute__((visibility("protected"))) int protected_(void) { return 1; }
int variable = 3, common_;
static int local_variable; int *get(void) { return &local_variable; }
_Thread_local int tls;
"""


def compiled(source: str, *flags: str) -> bytes:
    done = subprocess.run(
        [*frontend().command, *system_flags(frontend(), cxx=False), *flags, "-c", "-emit-llvm", "-xc", "-", "-o-"],
        input=source.encode(), capture_output=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    return done.stdout


BITCODE = compiled(SOURCE, "-fcommon")


def test_every_kind_of_symbol():
    found = {symbol.name: symbol for symbol in read_symbols(BITCODE)}
    assert {name for name, symbol in found.items() if not symbol.defined} == {"outside", "data_outside", "weak_outside"}
    assert {name for name, symbol in found.items() if symbol.weak} == {"weak", "weak_outside"}
    assert {name for name, symbol in found.items() if symbol.common} == {"common_"}
    assert {name for name, symbol in found.items() if not symbol.visible} == {"local", "local_variable"}
    assert {name for name, symbol in found.items() if symbol.tls} == {"tls"}
    assert found["hidden"].visibility == "hidden"
    assert found["protected_"].visibility == "protected"
    assert found["defined"].visibility == "default"
    assert found["defined"].executable
    assert not found["variable"].executable
    assert not [name for name in found if name.startswith("llvm.")], "memset became an intrinsic"


def test_names_of_all_lengths():
    names = ["f" * length for length in (1, 7, 8, 100, 1000, 70000)]
    made = compiled("".join(f"int {name}(void) {{ return 0; }}\n" for name in names))
    assert sorted(symbol.name for symbol in read_symbols(made)) == sorted(names)


def test_nothing_at_all():
    assert read_symbols(compiled("typedef int t;")) == ()


def test_bitcode_without_a_table_says_what_to_do():
    text = 'target triple = "riscv64-unknown-linux-musl"\ndefine void @f() { ret void }\n'
    with pytest.raises(FormatError, match="table of symbols") as caught:
        read_symbols(bitcode_of(parse_text(text)), what="x.o")
    assert "visget-cc" in str(caught.value.hint)


@pytest.mark.parametrize("data", [b"", b"BC", b"\x7fELF", b"!<arch>\n"])
def test_what_is_no_bitcode(data):
    assert not is_bitcode(data)
    with pytest.raises(FormatError, match="not LLVM bitcode"):
        read_symbols(data)


@given(st.integers(0, len(BITCODE) // 4), st.integers(0, 2**32 - 1), st.integers(0, len(BITCODE)))
def test_damage_is_an_error_or_symbols(place, word, end):
    damaged = bytearray(BITCODE)
    struct.pack_into("<I", damaged, min(place * 4, len(damaged) - 4), word)
    with suppress(FormatError):
        read_symbols(bytes(damaged[:end]))
