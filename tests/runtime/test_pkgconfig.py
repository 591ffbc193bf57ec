"""Compiler flags from an entry's pkg-config file, and a program that is built with them."""

import shutil
import subprocess

import pytest
from runtimekit import CC, INT, compile_c, fn, install, needs_cc

from visget.errors import LoadError
from visget.format.prototypes import Api
from visget.runtime.pkgconfig import compile_flags, link_flags, read_fields, search_path

PC = """\
# made by hand
prefix=${pcfiledir}/../..
libdir=${prefix}/lib
includedir = ${prefix}/include

Name: demo
Description: for tests
Version: 1.2
Cflags: -I${includedir} -DDEMO=1
Libs: -L${libdir} -ldemo
Libs.private: -lm
"""


def make_entry(directory):
    file = search_path(directory) / "demo.pc"
    file.parent.mkdir(parents=True)
    file.write_text(PC)
    return directory


def test_flags_name_the_entry_where_it_lies(tmp_path):
    entry = make_entry(tmp_path / "a b'c")
    lib = f"{entry}/lib/pkgconfig/../../lib"
    assert compile_flags(entry, "demo") == [f"-I{entry}/lib/pkgconfig/../../include", "-DDEMO=1"]
    assert link_flags(entry, "demo") == [f"-L{lib}", "-ldemo", f"-Wl,-rpath,{lib}"]
    assert link_flags(entry, "demo", static=True) == [f"{entry}/lib/libdemo.a", "-lm"]


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config on this machine")
def test_pkg_config_says_the_same(tmp_path):
    entry = make_entry(tmp_path / "plain")
    done = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "demo"],
        env={"PKG_CONFIG_PATH": str(search_path(entry)), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    # pkg-config puts macros first.
    assert sorted(done.stdout.split()) == sorted(compile_flags(entry, "demo") + link_flags(entry, "demo")[:-1])


@needs_cc
@pytest.mark.parametrize("static", [False, True])
def test_a_program_built_with_the_flags_runs(tmp_path, static):
    entry = make_entry(tmp_path / "with space")
    install(entry, "int answer(void) { return 42; }", Api(functions=(fn("answer", INT),)))
    compile_c("int answer(void) { return 42; }", entry / "lib" / "demo.o", "-c")
    subprocess.run(["ar", "rc", str(entry / "lib" / "libdemo.a"), str(entry / "lib" / "demo.o")], check=True)
    (entry / "include").mkdir()
    (entry / "include" / "demo.h").write_text("int answer(void);\n")
    main = tmp_path / "main.c"
    main.write_text("#include <demo.h>\nint main(void) { return answer() - 42 + (DEMO - 1); }\n")
    program = tmp_path / "main"
    flags = compile_flags(entry, "demo") + link_flags(entry, "demo", static=static)
    subprocess.run([CC, str(main), *flags, "-o", str(program)], check=True)
    assert subprocess.run([str(program)], env={}, check=False).returncode == 0


def test_what_is_damaged(tmp_path):
    with pytest.raises(LoadError, match="the installed library demo is damaged") as caught:
        compile_flags(tmp_path, "demo")
    assert caught.value.where == str(search_path(tmp_path) / "demo.pc")
    entry = make_entry(tmp_path / "entry")
    for text in ("Libs -L\n", "Libs: ${nowhere}\n", "Libs: 'open\n", "\xff"):
        (search_path(entry) / "demo.pc").write_text(text, encoding="latin-1")
        with pytest.raises(LoadError, match="its pkg-config file cannot be used"):
            link_flags(entry, "demo")


def test_fields(tmp_path):
    text = "a=1\nb=${a}2\n\nName: x # comment\nLibs:${b} ${pcfiledir}\n"
    assert read_fields(text, tmp_path) == {"Name": "x", "Libs": f"12 {tmp_path}"}
    with pytest.raises(ValueError, match="line 1: the variable b is not defined"):
        read_fields("a=${b}\nb=1\n", tmp_path)
