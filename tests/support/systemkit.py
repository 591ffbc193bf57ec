"""One tiny library under each build system, for tests of `[build] system`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from buildkit import write

from visget.toolchain.builder import BuildResult, build_package
from visget.toolchain.project import read_project

HEADER = "/** Adds. */\nint tiny_add(int a, int b);\nconst char *tiny_where(void);\n"
SOURCES = {
    "include/tiny.h": HEADER,
    "src/add.c": '#include "tiny.h"\n#include "own.h"\nint tiny_add(int a, int b)\n{\n    return tiny_own(a) + b;\n}\n',
    "src/own.h": "int tiny_own(int a);\n",
    "src/deep/add.c": (
        '#include "tiny.h"\n#include "../own.h"\n#include "config.h"\n'
        "int tiny_own(int a)\n{\n    return a * TINY_FACTOR;\n}\n"
        "const char *tiny_where(void)\n{\n    return __FILE__;\n}\n"
    ),
}
"""Two sources of one name, a private header, and a header that configuring makes."""

CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(tiny C)
include(CheckCSourceRuns)
check_c_source_runs("int main(void) { return sizeof(long) == 8 ? 0 : 1; }" TINY_RUNS)
if(NOT TINY_RUNS)
  message(FATAL_ERROR "programs do not run")
endif()
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/config.h "#define TINY_FACTOR 3\\n")
add_library(tiny src/add.c src/deep/add.c)
target_include_directories(tiny PUBLIC include src ${CMAKE_CURRENT_BINARY_DIR})
install(TARGETS tiny DESTINATION lib)
install(FILES include/tiny.h DESTINATION include)
enable_testing()
add_executable(check check.c)
target_link_libraries(check tiny)
add_test(NAME check COMMAND check)
"""
CHECK = '#include "tiny.h"\nint main(void) { return tiny_add(2, 3) == 9 ? 0 : 1; }\n'
MAKEFILE = """\
CC = gcc
AR = ar rcu
CFLAGS = -O2 -Wall -g
all: libtiny.a
config.h:
\techo '#define TINY_FACTOR 3' > config.h
add.o: src/add.c config.h
\t$(CC) $(CFLAGS) -Iinclude -Isrc -I. -c src/add.c
deep/add.o: src/deep/add.c config.h
\tmkdir -p deep
\t$(CC) $(CFLAGS) -Iinclude -Isrc -I. -c src/deep/add.c -o deep/add.o
libtiny.a: add.o deep/add.o
\trm -f $@
\t$(AR) $@ add.o deep/add.o
\tranlib $@
check: libtiny.a
\t$(CC) $(CFLAGS) -Iinclude check.c libtiny.a -o check
\t./check
install: libtiny.a
\tmkdir -p $(DESTDIR)/usr/include $(DESTDIR)/usr/lib
\tcp include/tiny.h $(DESTDIR)/usr/include
\tcp libtiny.a $(DESTDIR)/usr/lib
"""
CONFIGURE = """\
#!/bin/sh
set -e
test "$1" = --prefix=/usr
cat > conftest.c <<EOF
int main(void) { return sizeof(long) == 8 ? 0 : 1; }
EOF
${CC-cc} ${CFLAGS} conftest.c -o conftest
./conftest
echo "configured for `pwd`" > config.log
sed -e "s/^CC = .*/CC = ${CC-cc}/" < Makefile.in > Makefile
"""
MESON = """\
project('tiny', 'c', version: '1.0')
cc = meson.get_compiler('c')
run = cc.run('int main(void) { return sizeof(long) == 8 ? 0 : 1; }', name: 'long')
assert(run.returncode() == 0)
conf = configuration_data()
conf.set('TINY_FACTOR', 3)
configure_file(output: 'config.h', configuration: conf)
lib = library('tiny', 'src/add.c', 'src/deep/add.c', include_directories: ['include', 'src'], install: true)
install_headers('include/tiny.h')
exe = executable('check', 'check.c', include_directories: 'include', link_with: lib)
test('check', exe)
"""
FILES: Mapping[str, Mapping[str, str]] = {
    "cmake": {"CMakeLists.txt": CMAKE},
    "make": {"Makefile": MAKEFILE},
    "autotools": {"configure": CONFIGURE, "Makefile.in": MAKEFILE},
    "meson": {"meson.build": MESON},
}
"""The build files of each system."""


def tiny(
    root: Path, system: str, build: str = "", files: Mapping[str, str] | None = None, library: str = "libtiny.a"
) -> Path:
    """Write the tiny library with the build files of `system` and a visget.toml."""
    write(root, {**SOURCES, "check.c": CHECK, **FILES[system], **(files or {})})
    (root / "visget.toml").write_text(
        '[package]\nname = "tiny"\nversion = "1.0"\nsummary = "A sample"\nlicense = "MIT"\n'
        f'[build]\nsystem = "{system}"\nlibrary = "{library}"\ninclude = ["include"]\n{build}\n'
        '[exports]\nheaders = ["tiny.h"]\n'
    )
    return root


def build_tiny(root: Path, **arguments: object) -> BuildResult:
    """Build the project at `root` with a cache beside it."""
    cache = root.parent / f"{root.name}-cache"
    return build_package(read_project(root), cache=cache, **arguments)  # type: ignore[arg-type]
