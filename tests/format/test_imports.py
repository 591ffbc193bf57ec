"""The table of imports: true to the headers, present in both C libraries, closed, and helpful about what it refuses."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from pathlib import Path

import pytest
from neutral import zig
from platformkit import declared, signatures
from viscases import module_text

from visget.format.imports import BUILT_INS, DATA, IMPORTS, PROCESS_WIDE, PROGRAM_DATA, VA_LIST_FAMILY, platform_level
from visget.format.refused_imports import WRONG
from visget.format.rules_imports import why_not
from visget.format.verifier import check_module

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "spec" / "platform.md"
OVERLOADED = frozenset("memchr strchr strrchr strpbrk strstr abs div wcschr wcsrchr wcspbrk wcsstr wmemchr".split())  # noqa: SIM905
"""What C++ declares several times over, beside <math.h> and <complex.h>."""
UNWINDER = {name for name in IMPORTS if name.startswith("_Unwind_")}
NEWER_THAN_2_34 = {"hypot", "hypotf"}
"""glibc 2.35 gave these another version, with the same types and meaning."""


@pytest.mark.parametrize("cxx", [False, True], ids=["C", "C++"])
def test_every_signature_is_what_the_headers_declare(cxx: bool) -> None:
    """Each function of the tables is declared by a header, for C and C++ alike, with the LLVM types of the table."""
    headers = declared()
    built_ins = {name: item.label for name, item in headers.items() if item.label.startswith("__vis_")}
    names = {*IMPORTS, *built_ins} - UNWINDER
    if cxx:
        names -= {name for name in names if {"math.h", "complex.h"} & set(headers[name].headers)} | OVERLOADED
    expected = {built_ins.get(name, name): BUILT_INS.get(built_ins.get(name, "")) for name in names}
    expected |= {name: IMPORTS[name].signature for name in names & set(IMPORTS)}
    assert signatures(sorted(names), cxx=cxx) == expected


def test_the_headers_turn_functions_into_every_built_in_but_the_compiler_s_own() -> None:
    labels = {item.label for item in declared().values() if item.label.startswith("__vis_")}
    assert labels == {name for name in BUILT_INS if "_va_" not in name and name not in FROM_THE_COMPILER}


FROM_THE_COMPILER = {"__vis_cxa_atexit", "__vis_eh_return_data_regno"}


def test_every_import_exists_in_the_c_library_of_this_machine() -> None:
    libraries = [ctypes.CDLL(ctypes.util.find_library(name) or f"lib{name}.so.6") for name in ("c", "m")]
    libraries.append(ctypes.CDLL("libgcc_s.so.1"))
    missing = [name for name in (*IMPORTS, *DATA) if not any(hasattr(library, name) for library in libraries)]
    assert missing == []


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64"])
def test_every_import_is_in_glibc_2_34_of_each_machine(machine: str) -> None:
    """The version of a symbol says since when it is there; what is only there for old programs cannot be linked."""
    directories = [Path(f"/usr/{machine}-linux-gnu/lib"), Path(f"/lib/{machine}-linux-gnu")]
    found = next((place for place in directories if (place / "libc.so.6").exists()), None)
    if found is None:
        pytest.skip(f"no glibc for {machine} on this machine")
    symbols = {**exported(found / "libm.so.6"), **exported(found / "libc.so.6")}
    names = {*IMPORTS, *DATA} - UNWINDER - NEWER_THAN_2_34
    assert {name: symbols.get(name) for name in names if symbols.get(name, (99,)) > (2, 34)} == {}


def exported(library: Path) -> dict[str, tuple[int, ...]]:
    """Return the symbols that can be linked with, and the version of glibc that brought each."""
    from elftools.elf.elffile import ELFFile

    with library.open("rb") as file:
        elf = ELFFile(file)
        numbers = elf.get_section_by_name(".gnu.version")
        versions = elf.get_section_by_name(".gnu.version_d")
        found = {}
        for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            number = numbers.get_symbol(index)["ndx"]
            if symbol["st_shndx"] == "SHN_UNDEF" or not isinstance(number, int) or number & 0x8000:
                continue
            _, names = versions.get_version(number)
            label = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", next(names).name)
            if label:
                found[symbol.name] = (int(label[1]), int(label[2]))
    return found


def test_every_import_exists_in_musl() -> None:
    stub = zig().parent / "lib" / "libc" / "musl" / "libc.S"
    if not stub.exists():
        pytest.skip("this ziglang has no list of musl's symbols")
    # A name in capitals before the symbol says on which processors it has that name.
    names = set(re.findall(r"^(?:\.(?:globl|weak)|(?:WEAK|GLOBL)(?:TIME64|PTR64|64)?) (\S+)", stub.read_text(), re.M))
    assert {*IMPORTS, *DATA} - UNWINDER <= names


def test_no_name_is_both_allowed_and_refused() -> None:
    assert not set(WRONG) & (set(IMPORTS) | set(DATA) | set(BUILT_INS))


def test_the_va_list_family_is_part_of_the_table() -> None:
    assert set(IMPORTS) >= VA_LIST_FAMILY
    variadic = {name for name in IMPORTS if re.fullmatch(r"v.*(?:printf|scanf|syslog|warnx?|errx?)", name)}
    assert variadic == VA_LIST_FAMILY
    taking = {name for name, item in declared().items() if re.search(r"va_list|__vis_va_tag", item.type)}
    assert taking & set(IMPORTS) == VA_LIST_FAMILY
    assert all(IMPORTS[name].params[-1] == "ptr" for name in VA_LIST_FAMILY)


def test_the_lists_of_names_are_lists_of_imports() -> None:
    assert set(IMPORTS) >= PROCESS_WIDE
    assert set(DATA) >= PROGRAM_DATA
    assert not any(IMPORTS[name].program for name in PROCESS_WIDE)


def test_the_level_that_a_module_needs() -> None:
    assert platform_level([]) == 1
    assert platform_level(["malloc", "stdout", "__vis_va_start", "a_function_of_a_dependency"]) == 1
    assert platform_level(["malloc", "read"]) == 2
    assert platform_level(["timezone"]) == 2
    assert platform_level(["__vis_stat"]) == 2


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_refused_name_gives_its_reason_and_a_way_out(name: str) -> None:
    text = module_text(f"define void @f() {{\n  call void @{name}()\n  ret void\n}}\ndeclare void @{name}()\n")
    (finding,) = check_module(text, exports=["f"])
    assert (finding.rule, finding.severity, finding.function) == ("VIS-502", "error", "f")
    assert WRONG[name].why in finding.message
    assert finding.remedy == WRONG[name].instead


@pytest.mark.parametrize(
    "name",
    [
        # Each class of silently wrong answers that a C library can give through a name.
        *("regcomp", "fesetround", "nftw", "open", "fstatat", "csqrtf", "__mulsc3"),
        "__divsc3",
        *("strtold", "sqrtl", "epoll_ctl", "setjmp", "signgam", "ilogb"),
        # Present in one C library only.
        *("atexit", "strlcpy", "roundeven"),
        # A compiler's run-time library.
        *("__udivti3", "__addtf3", "__muldc3", "__atomic_store"),
        # Headers of one C library.
        *("__isoc99_sscanf", "__isoc23_strtol", "__ctype_b_loc", "__memcpy_chk", "__atomic_fetch_add_16"),
    ],
)
def test_what_is_known_to_be_wrong_is_refused_with_a_reason(name: str) -> None:
    refusal = why_not(name)
    assert refusal is not None
    assert refusal[0] == "VIS-502"
