"""The decision about every kind of flag: what reaches clang, what the linker, what is dropped, noted or refused."""

from __future__ import annotations

import pytest

from visget.toolchain.driver_flags import (
    is_general,
    is_system_header_directory,
    is_system_library_directory,
    judge,
)

PASSED = """-Wall -Wextra -Wno-unused -W -w -Weverything -Warray-bounds -Wlogical-op -Wpedantic -Werror -Werror=format
-std=c99 -std=gnu++20 -ansi -pedantic -DX -DX=1 -UX -fwrapv -fno-strict-aliasing -fno-builtin -fno-builtin-memcpy
-fvisibility=hidden -fno-exceptions -fexceptions -fno-rtti -fcommon -ffreestanding -nostdinc -nostdinc++ -pthread -M
-MD -MMD -MP -MFx.d -MTx -H -C -P -dM -fdiagnostics-color=always -ferror-limit=3 -fsyntax-only -Wp,-MD,x.d
-ffp-contract=off -ftrivial-auto-var-init=zero -fms-extensions -Qunused-arguments -v"""
LINKED = """-shared -r -static -static-libgcc -static-libstdc++ -pie -no-pie -rdynamic -s -nostdlib -nostartfiles
-Wl,-soname,x -Wl,--version -fuse-ld=lld -z -u -Xlinker"""
DROPPED = """-emit-llvm
-O -O0 -O1 -O2 -O3 -Os -Oz -Og -Ofast -g -g3 -ggdb -gdwarf-4 -fPIC -fpic -fPIE -fno-pic -flto -flto=auto
-fno-lto -ffat-lto-objects -fuse-linker-plugin -fomit-frame-pointer -fno-omit-frame-pointer -fstack-protector-strong
-fno-stack-protector -fstack-clash-protection -fcf-protection=full -ffunction-sections -fdata-sections -fno-plt -pipe
-m64 -mcmodel=medium -Wa,--noexecstack -D_FORTIFY_SOURCE=2 -U_FORTIFY_SOURCE -funroll-loops -ftree-vectorize
-fno-vectorize -finline-limit=100 -fno-inline -fno-math-errno -fno-trapping-math -fno-sanitize=all -fno-openmp
-fno-fast-math -fsigned-char -fno-ident -fexcess-precision=fast -save-temps --param=ssp-buffer-size=4"""
NOTED = """-march=native -mtune=generic -mcpu=cortex-a72 -march=armv8-a+crc -ffast-math -funsafe-math-optimizations
-ffinite-math-only -fno-signed-zeros -freciprocal-math"""
REFUSED = """-m32 -mx32
-msse2 -mavx2 -mno-avx -mfpu=neon -mfpmath=sse -mabi=lp64 -mrelax -maes -mlong-double-64 -fopenmp
-fopenmp-simd -fopenacc -fsanitize=address -fsanitize=undefined -fprofile-generate -fprofile-arcs -ftest-coverage
--coverage -pg -finstrument-functions -fxray-instrument -fpack-struct -fshort-enums -fshort-wchar -funsigned-char
-fno-signed-char --target=x86_64-linux-gnu -target --sysroot=/ -isysroot -B/usr/bin -specs=x -wrapper -Xclang -mllvm
-fplugin=x.so -fbogus -bogus -fsplit-stack"""


@pytest.mark.parametrize(
    ("flag", "kind"),
    [(flag, kind) for kind, flags in
     (("pass", PASSED), ("link", LINKED), ("drop", DROPPED), ("note", NOTED), ("refuse", REFUSED))
     for flag in flags.split()],
)  # fmt: skip
def test_the_decision(flag, kind):
    assert judge(flag).kind == kind


@pytest.mark.parametrize("flag", f"{NOTED} {REFUSED}".split())
def test_who_is_told_something_is_told_why(flag):
    assert len(judge(flag).why) > 10


@pytest.mark.parametrize(
    ("path", "system", "general"),
    [
        ("/usr/include", True, True),
        ("/usr/local/include", True, True),
        ("/usr/include/x86_64-linux-gnu", True, True),
        ("/usr/include/c++/12", True, True),
        ("/usr/include/libxml2", True, False),
        ("/usr/include/glib-2.0/glib", True, False),
        ("/usr/local/include/python3.11", True, False),
        ("/usr/includes", False, False),
        ("/home/me/usr/include", False, False),
        ("/tmp/build/include", False, False),
    ],
)
def test_directories_of_headers(path, system, general):
    assert (is_system_header_directory(path), is_general(path)) == (system, general)


@pytest.mark.parametrize(
    ("path", "system"),
    [
        ("/usr/lib", True), ("/lib64", True), ("/usr/lib/x86_64-linux-gnu", True), ("/usr/local/lib", True),
        ("/home/me/lib", False), ("/usr/library", False), ("/tmp/usr/lib", False),
    ],
)  # fmt: skip
def test_directories_of_libraries(path, system):
    assert is_system_library_directory(path) == system
