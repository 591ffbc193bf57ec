from __future__ import annotations

import io
import random

import pytest
from elftools.elf.elffile import ELFFile
from native_code import SIMPLE, object_of

from visget.errors import FormatError
from visget.installer import elf
from visget.installer.stubs import stub_object
from visget.installer.target import ARCHITECTURES, baseline


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_pyelftools_agrees(arch: str) -> None:
    data = object_of(SIMPLE, baseline(arch, "gnu"))
    ours = elf.read_elf(data)
    theirs = ELFFile(io.BytesIO(data))
    assert (ours.kind, ours.machine) == (elf.ET_REL, {"x86_64": 62, "aarch64": 183, "riscv64": 243}[arch])
    assert [(s.name, s.flags, s.size) for s in ours.sections] == [
        (s.name, s["sh_flags"], s["sh_size"]) for s in list(theirs.iter_sections())[1:]
    ]
    table = theirs.get_section_by_name(".symtab")
    assert [(s.name, s.defined) for s in ours.symbols(elf.SHT_SYMTAB)] == [
        (s.name, s["st_shndx"] != "SHN_UNDEF") for s in table.iter_symbols() if s["st_name"]
    ]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_stub_objects_define_their_names(arch: str) -> None:
    data = stub_object(arch, ["strlen", "memcpy", "strlen"])
    symbols = list(elf.read_elf(data).symbols(elf.SHT_SYMTAB))
    assert [(s.name, s.binding, s.type, s.defined) for s in symbols] == [
        ("memcpy", elf.STB_GLOBAL, elf.STT_FUNC, True),
        ("strlen", elf.STB_GLOBAL, elf.STT_FUNC, True),
    ]
    table = ELFFile(io.BytesIO(data)).get_section_by_name(".symtab")
    assert [s.name for s in table.iter_symbols()] == ["", "memcpy", "strlen"]
    assert data == stub_object(arch, ["memcpy", "strlen"])


@pytest.mark.parametrize(
    "data",
    [b"", b"\x7fELF", b"MZ" + b"\0" * 100, b"\x7fELF\x01\x01\x01" + b"\0" * 100, b"\x7fELF\x02\x02\x01" + b"\0" * 100],
)
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        elf.read_elf(data)


def look_at_everything(data: bytes) -> None:
    file = elf.read_elf(data)
    list(file.symbols(elf.SHT_SYMTAB))
    list(file.symbols(elf.SHT_DYNSYM))
    file.relocation_types()
    for tag, value in file.dynamic():
        if tag == elf.DT_NEEDED:
            file.dynamic_text(value)


def test_damaged_files_are_an_error_and_never_anything_else() -> None:
    data = object_of(SIMPLE)
    look_at_everything(data)
    for size in range(0, len(data), 7):
        with pytest.raises(FormatError):
            look_at_everything(data[:size])
    dice = random.Random(1)
    refused = 0
    for _ in range(3000):
        broken = bytearray(data)
        for _ in range(dice.randint(1, 8)):
            # The header and the section table at the end are what is read.
            place = dice.choice([dice.randrange(64), dice.randrange(len(data))])
            broken[place] = dice.randrange(256)
        try:
            look_at_everything(bytes(broken))
        except FormatError:
            refused += 1
    assert 300 < refused < 3000
