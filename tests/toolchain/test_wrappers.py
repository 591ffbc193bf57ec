"""What build systems are told, and the hints about portable code."""

from __future__ import annotations

import subprocess

import pytest

from visget.toolchain.driver_asm import assembly_sites, is_empty_assembly
from visget.toolchain.portable_switches import SWITCHES, remedy
from visget.toolchain.wrappers import (
    PLATFORM_LIBRARIES,
    PLATFORM_MARK,
    TOOL_NAMES,
    cmake_toolchain,
    config_site,
    meson_native,
    tool_variables,
    write_once,
    write_platform,
    write_tools,
)

TOOLS = {name: f"/opt/a b/visget-{name}" for name in TOOL_NAMES}


def test_answers_do_not_replace_those_that_somebody_gave(tmp_path):
    (tmp_path / "site").write_text(config_site())
    script = "ac_cv_func_strtod=mine; . ./site; echo $ac_cv_func_strtod $ac_cv_c_bigendian"
    done = subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "mine no\n"


def test_cmake_is_told_the_tools_and_no_system():
    text = cmake_toolchain(TOOLS, ["/scratch/platform", "/prefix"])
    for name in TOOL_NAMES:
        assert f'"/opt/a b/visget-{name}"' in text
    assert "CMAKE_SYSTEM_NAME" not in text, "naming the system would make it a cross build: try_run would ask"
    assert '"/scratch/platform;/prefix;' in text
    assert "MODE_PROGRAM NEVER" in text


def test_meson_is_told_the_tools_for_this_machine():
    text = meson_native(TOOLS, "/x/toolchain.cmake")
    assert text.startswith("[binaries]\nc = '/opt/a b/visget-cc'\n")
    assert "[host_machine]" not in text
    assert "cmake_toolchain_file = '/x/toolchain.cmake'" in text


def test_variables():
    assert set(tool_variables(TOOLS)) == {"CC", "CXX", "AR", "RANLIB", "NM"}


def test_files_are_written_once(tmp_path):
    write_platform(tmp_path)
    for name in PLATFORM_LIBRARIES:
        assert (tmp_path / "lib" / f"lib{name}.so").read_bytes().startswith(PLATFORM_MARK)
    stamp = (tmp_path / "lib" / "libm.so").stat()
    write_platform(tmp_path)
    assert (tmp_path / "lib" / "libm.so").stat() == stamp
    write_once(tmp_path / "x", "1")
    write_once(tmp_path / "x", "2")
    assert (tmp_path / "x").read_text() == "2"


def test_tools_under_the_names_of_makefiles(tmp_path):
    write_tools(tmp_path / "bin", TOOLS)
    write_tools(tmp_path / "bin", TOOLS | {"cc": "/elsewhere/visget-cc"})
    assert str((tmp_path / "bin" / "gcc").readlink()) == "/elsewhere/visget-cc"
    assert str((tmp_path / "bin" / "ar").readlink()) == TOOLS["ar"]
    every = {name for names in TOOL_NAMES.values() for name in names}
    assert {path.name for path in (tmp_path / "bin").iterdir()} == every


@pytest.mark.parametrize(
    ("paths", "library"),
    [
        (["/src/libsodium-1.0.20/src/x.c"], "libsodium"),
        (["/src/sodium/x.c"], "libsodium"),
        (["/src/x.c", "/home/me/libjpeg-turbo-3.0.1"], "libjpeg-turbo"),
        (["/w/OpenSSL_3/x.c"], "openssl"),
        (["/w/zlib-ng-2.1.6/arch/x.c"], "zlib-ng"),
        (["/w/gmp-6.3.0/mpn/x.asm"], "gmp"),
    ],
)
def test_the_librarys_own_switch_is_named(paths, library):
    assert remedy(*paths) == f"{library} does without it: {SWITCHES[library]}"


def test_unknown_libraries_get_general_advice():
    assert "./configure --help" in remedy("/src/nobody-1.0/x.c")


def test_every_switch_says_something():
    assert all(len(str(switch)) > 10 for switch in SWITCHES.values())
    assert list(SWITCHES) == sorted(SWITCHES), "one looks a library up by its name"


@pytest.mark.parametrize(
    "text",
    [
        "", '# 1 "x.S"\n\n', '.file "x.S"\n.text\n', '.section .note.GNU-stack,"",%progbits\n', "/* a\n b */ // c\n",
        "@ arm comment\n",
    ],
)  # fmt: skip
def test_assembly_without_code(text):
    assert is_empty_assembly(text)


@pytest.mark.parametrize("text", ["nop", ".globl f\n", "f:\n", ".byte 1\n", "/* x */ ret\n", ".text; ret\n", ".long f"])
def test_assembly_with_code(text):
    assert not is_empty_assembly(text)


def test_the_place_of_inlined_assembly_is_its_own():
    text = """
define void @g() !dbg !5 {
  call void asm sideeffect "mfence", "~{memory}"(), !dbg !8, !srcloc !9
  call void asm sideeffect "", "~{memory}"(), !dbg !8
  %1 = call i32 asm "rdtsc", "={eax}"()
  ret void
}
!1 = !DIFile(filename: "h/deep.h", directory: ".")
!5 = distinct !DISubprogram(name: "g", file: !1, line: 1)
!7 = distinct !DILexicalBlock(scope: !5, line: 2)
!8 = !DILocation(line: 4, column: 2, scope: !7)
"""
    assert assembly_sites(text, "z.c") == [("h/deep.h:4", "mfence"), ("z.c", "rdtsc")]
