"""Small libraries built by CMake, Meson, make, and autoconf with libtool, none of which knows about visget."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from wrapkit import Bench, lacks

from visget.toolchain.archives import read_archive
from visget.toolchain.irsymbols import is_bitcode

LIBRARY = {
    "src/shape.h": "double shape_area(double side);\nconst char *shape_name(void);\n",
    "src/shape.c": '#include "shape.h"\n#include <math.h>\n#include "config.h"\n'
    "double shape_area(double side) { return pow(side, 2.0); }\n",
    "src/name.c": '#include "shape.h"\n#include "config.h"\n'
    "#ifdef HAVE_GNU_GET_LIBC_VERSION\n#error this machine's own C library was found\n#endif\n"
    "#ifndef HAVE_STRTOL\n#error a function of every machine was not found\n#endif\n"
    "#if SIZEOF_LONG != 8\n#error a program was not run\n#endif\n"
    'const char *shape_name(void) { return "square"; }\n',
    "src/check.c": '#include "shape.h"\n#include <string.h>\n'
    'int main(void) { return shape_area(3.0) != 9.0 || strcmp(shape_name(), "square"); }\n',
}
CMAKE = r"""
cmake_minimum_required(VERSION 3.13)
project(shape C)
include(CheckFunctionExists)
include(CheckSymbolExists)
include(CheckCCompilerFlag)
include(CheckIncludeFile)
if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "compiler is ${CMAKE_C_COMPILER_ID}")
endif()
if(CMAKE_CROSSCOMPILING)
  message(FATAL_ERROR "this is no cross build")
endif()
check_function_exists(gnu_get_libc_version HAVE_GNU_GET_LIBC_VERSION)
check_function_exists(strtol HAVE_STRTOL)
check_symbol_exists(fseeko "stdio.h" HAVE_FSEEKO)
check_include_file(zlib.h HAVE_ZLIB_H)
check_c_compiler_flag(-msse2 HAVE_SSE2)
check_c_compiler_flag(-Wall HAVE_WALL)
try_run(RAN COMPILED ${CMAKE_BINARY_DIR}/try ${CMAKE_SOURCE_DIR}/size.c)
find_library(MATH m)
find_library(ZLIB z)
find_path(ZLIB_INCLUDE zlib.h)
find_package(Threads REQUIRED)
find_package(ZLIB)
if(HAVE_ZLIB_H OR ZLIB OR ZLIB_INCLUDE OR ZLIB_FOUND)
  message(FATAL_ERROR "this machine's zlib was found: ${HAVE_ZLIB_H} ${ZLIB} ${ZLIB_INCLUDE}")
endif()
if(HAVE_SSE2 OR NOT HAVE_WALL OR NOT HAVE_FSEEKO OR NOT MATH)
  message(FATAL_ERROR "sse2 ${HAVE_SSE2} wall ${HAVE_WALL} fseeko ${HAVE_FSEEKO} m ${MATH}")
endif()
set(SIZEOF_LONG ${RAN})
configure_file(config.h.in config.h)
add_executable(generate generate.c)
add_custom_command(OUTPUT made.c COMMAND generate > made.c DEPENDS generate)
add_library(shape src/shape.c src/name.c made.c)
target_include_directories(shape PUBLIC src ${CMAKE_BINARY_DIR})
target_link_libraries(shape PUBLIC ${MATH} Threads::Threads)
add_executable(check src/check.c)
target_link_libraries(check shape)
enable_testing()
add_test(NAME check COMMAND check)
install(TARGETS shape DESTINATION lib)
"""
CONFIG = "#cmakedefine HAVE_GNU_GET_LIBC_VERSION\n#cmakedefine HAVE_STRTOL\n#define SIZEOF_LONG @SIZEOF_LONG@\n"
GENERATE = '#include <stdio.h>\nint main(void) { puts("int shape_made(void) { return 1; }"); return 0; }\n'


@pytest.fixture
def bench(tmp_path) -> Bench:
    made = Bench(tmp_path)
    made.write(LIBRARY)
    return made


def good(ran) -> str:
    assert ran.status == 0, ran.out[-6000:] + ran.err[-6000:]
    return ran.out


def members(path: Path) -> set[str]:
    found = read_archive(path)
    assert all(is_bitcode(member.data) for member in found)
    # shape.o, shape.c.o, src_shape.c.o, libname_la-name.o: each build system has its way.
    return {re.split(r"[-_./]", re.sub(r"(\.c)?\.o$", "", member.name))[-1] for member in found}


@pytest.mark.parametrize("shared", ["OFF", "ON"])
@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_cmake(bench, generator, shared):
    if why := lacks("cmake", "ninja" if generator == "Ninja" else "make"):
        pytest.skip(why)
    if (generator == "Ninja") != (shared == "ON"):
        pytest.skip("two of the four suffice")
    bench.write({"CMakeLists.txt": CMAKE, "config.h.in": CONFIG, "generate.c": GENERATE,
                 "size.c": "int main(void) { return sizeof(long); }\n"})  # fmt: skip
    good(bench.visget("cmake", "-S", ".", "-B", "b", "-G", generator, f"-DBUILD_SHARED_LIBS={shared}"))
    good(bench.visget("cmake", "--build", "b"))
    good(bench.run("ctest", "--output-on-failure", cwd="b"))
    if shared == "OFF":
        assert members(bench.root / "b" / "libshape.a") == {"shape", "name", "made"}
    else:
        assert (bench.root / "b" / "libshape.so").read_bytes()[:4] == b"\x7fELF"
        assert is_bitcode((bench.root / "b" / "libshape.so.bc").read_bytes())
        good(bench.run("cmake", "--install", "b", "--prefix", str(bench.root / "out")))


def test_a_toolchain_file_of_the_users_own(bench):
    if why := lacks("cmake"):
        pytest.skip(why)
    ran = bench.visget("cmake", "-DCMAKE_TOOLCHAIN_FILE=x.cmake", "-S", ".")
    assert ran.status != 0
    assert "toolchain file" in ran.err


MESON = r"""
project('shape', 'c', version: '1')
cc = meson.get_compiler('c')
assert(cc.get_id() == 'clang', cc.get_id())
assert(not meson.is_cross_build())
assert(not cc.has_argument('-msse2'))
assert(cc.has_argument('-Wall'))
assert(not cc.has_function('gnu_get_libc_version'))
assert(cc.has_function('strtol', prefix: '#include <stdlib.h>'))
assert(not cc.has_header('zlib.h'))
assert(not dependency('zlib', required: false).found())
assert(not cc.find_library('z', required: false).found())
size = cc.run('int main(void) { return sizeof(long); }', name: 'a program')
assert(size.compiled())
data = configuration_data({'HAVE_STRTOL': 1, 'SIZEOF_LONG': size.returncode()})
assert(cc.sizeof('long') == 8)
configure_file(output: 'config.h', configuration: data)
m = cc.find_library('m')
generate = executable('generate', 'generate.c')
made = custom_target('made', output: 'made.c', command: [generate], capture: true)
shape = library('shape', 'src/shape.c', 'src/name.c', made, dependencies: [m, dependency('threads')])
test('check', executable('check', 'src/check.c', link_with: shape))
"""


@pytest.mark.parametrize("kind", ["static", "shared"])
def test_meson(bench, kind):
    if why := lacks("meson", "ninja"):
        pytest.skip(why)
    bench.write({"meson.build": MESON, "generate.c": GENERATE})
    good(bench.visget("meson", "setup", f"-Ddefault_library={kind}", "b"))
    good(bench.visget("meson", "compile", "-C", "b"))
    good(bench.visget("meson", "test", "-C", "b"))
    if kind == "static":
        assert members(bench.root / "b" / "libshape.a") == {"shape", "name", "made"}
    else:
        assert is_bitcode((bench.root / "b" / "libshape.so.bc").read_bytes())


MAKEFILE = """
CC = gcc
OBJS = src/shape.o src/name.o
all: libshape.a check
libshape.a: $(OBJS)
\tar cru $@ $(OBJS)
\tranlib $@
%.o: %.c
\t$(CC) -O3 -march=native -fomit-frame-pointer -DHAVE_STRTOL -DSIZEOF_LONG=8 -I. -c -o $@ $<
check: src/check.o libshape.a
\tcc -o $@ src/check.o -L. -lshape -lm
\t./check
"""


def test_make_with_names_of_tools_in_it(bench):
    if why := lacks("make"):
        pytest.skip(why)
    bench.write({"Makefile": MAKEFILE, "config.h": ""})
    good(bench.visget("make"))
    assert members(bench.root / "libshape.a") == {"shape", "name"}
    assert {call["tool"] for call in bench.calls()} == {"cc", "ar", "ranlib"}


CONFIGURE = r"""
AC_INIT([shape], [1.0])
AC_CONFIG_SRCDIR([src/shape.c])
AM_INIT_AUTOMAKE([foreign subdir-objects])
AM_PROG_AR
AC_PROG_CC
LT_INIT
AC_CONFIG_HEADERS([config.h])
AC_C_BIGENDIAN([AC_MSG_ERROR([big])], [], [AC_MSG_ERROR([unknown order])])
AC_CHECK_SIZEOF([long])
AC_SEARCH_LIBS([pow], [m])
AC_CHECK_LIB([z], [deflate], [AC_MSG_ERROR([this machine's zlib was found])])
AC_CHECK_HEADERS([stdlib.h unistd.h zlib.h])
AS_IF([test "x$ac_cv_header_zlib_h" = xyes], [AC_MSG_ERROR([this machine's zlib.h was found])])
AC_CHECK_FUNCS([strtol gnu_get_libc_version stat fseeko])
AS_IF([test "x$ac_cv_func_stat$ac_cv_func_fseeko" != xyesyes], [AC_MSG_ERROR([stat or fseeko])])
AC_RUN_IFELSE([AC_LANG_PROGRAM([[#include <stdlib.h>]], [[return strtol("0", 0, 10);]])], [],
  [AC_MSG_ERROR([a program did not run])], [AC_MSG_ERROR([cross compiling])])
AC_MSG_CHECKING([for SSE2])
save=$CFLAGS; CFLAGS="$CFLAGS -msse2"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_ERROR([-msse2 was taken])], [AC_MSG_RESULT([no])])
CFLAGS=$save
AS_IF([test "x$OBJEXT" != xo], [AC_MSG_ERROR([objects end in $OBJEXT])])
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
"""
AUTOMAKE = r"""
ACLOCAL_AMFLAGS = -I m4
AM_CPPFLAGS = -I$(srcdir)/src
lib_LTLIBRARIES = libshape.la
noinst_LTLIBRARIES = libname.la
include_HEADERS = src/shape.h
libname_la_SOURCES = src/name.c
libshape_la_SOURCES = src/shape.c
libshape_la_LIBADD = libname.la
libshape_la_LDFLAGS = -version-info 2:0:1 -no-undefined -export-symbols-regex '^shape_'
check_PROGRAMS = shapetest
shapetest_SOURCES = src/check.c
shapetest_LDADD = libshape.la
TESTS = shapetest
"""


def test_autoconf_automake_and_libtool(bench):
    if why := lacks("autoreconf", "automake", "libtoolize", "make"):
        pytest.skip(why)
    bench.write({"configure.ac": CONFIGURE, "Makefile.am": AUTOMAKE, "m4/.keep": ""})
    good(bench.run("autoreconf", "-fi"))
    out = good(bench.visget("configure"))
    assert "name lister" in out
    assert "parse" in out
    assert "failed" not in out.partition("command to parse")[2].splitlines()[0]
    assert "whether to build shared libraries... yes" in out
    good(bench.visget("make", "check"))
    assert members(bench.root / ".libs" / "libshape.a") == {"shape", "name"}
    library = (bench.root / ".libs" / "libshape.so").resolve()
    assert library.name == "libshape.so.1.1.0"
    assert is_bitcode(library.with_name(library.name + ".bc").read_bytes())
    good(bench.visget("make", "install", f"DESTDIR={bench.root}/stage"))
    assert (bench.root / "stage/usr/local/lib/libshape.a").is_file()


def test_a_configure_script_elsewhere(bench):
    bench.write({"s/configure": "#!/bin/sh\necho \"cc is $CC, site is $CONFIG_SITE\"\n$CC -dumpmachine\n"})
    out = good(bench.visget("configure", "s/configure", "--x"))
    assert "visget-cc" in out.splitlines()[0]
    assert "config.site" in out.splitlines()[0]
    assert "linux" in out.splitlines()[1]
    ran = bench.visget("configure")
    assert ran.status != 0
    assert "no configure script" in ran.err


def test_the_tools_as_commands_of_visget(bench):
    bench.write({"p.c": "int main(void) { return 5; }\n"})
    good(bench.visget("cc", "-c", "p.c"))
    good(bench.visget("ar", "rcs", "p.a", "p.o"))
    good(bench.visget("ranlib", "p.a"))
    assert " T main" in good(bench.visget("nm", "p.o"))
    good(bench.visget("cc", "p.o", "-o", "p"))
    assert bench.run("./p").status == 5
    assert "clang version" in good(bench.visget("c++", "--version"))
    late = bench.visget("--quiet", "cc", "-c", "p.c")
    assert late.status == 2
