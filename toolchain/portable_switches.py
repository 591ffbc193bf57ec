"""How well-known libraries are told to do without assembly and without instructions of one CPU.

Invariant: every entry is a switch that the library documents. The table is for hints only: nothing is switched by
itself. Packagers are welcome to add to it: the name of the library as in its archives and directories, and for each
build system what to write.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Switch(NamedTuple):
    """What switches the machine's own code off in one library."""

    autotools: str = ""
    """Arguments of configure."""
    cmake: str = ""
    """Arguments of cmake."""
    meson: str = ""
    """Arguments of meson setup."""
    defines: str = ""
    """Macros, for the library's own makefile or a list of sources."""

    def __str__(self) -> str:
        named = (
            ("configure", self.autotools), ("cmake", self.cmake), ("meson setup", self.meson),
            ("[build] defines", self.defines),
        )  # fmt: skip
        return ", or ".join(f"{tool}: {text}" for tool, text in named if text)


SWITCHES: dict[str, Switch] = {
    "aom": Switch(cmake="-DAOM_TARGET_CPU=generic"),
    "blake3": Switch(cmake="-DBLAKE3_SIMD_TYPE=none", defines="BLAKE3_NO_SSE2 BLAKE3_NO_SSE41 BLAKE3_NO_AVX2 "
                     "BLAKE3_NO_AVX512"),
    "brotli": Switch(defines="BROTLI_BUILD_PORTABLE"),
    "c-blosc": Switch(cmake="-DDEACTIVATE_SSE2=ON -DDEACTIVATE_AVX2=ON"),
    "dav1d": Switch(meson="-Denable_asm=false"),
    "ffmpeg": Switch(autotools="--disable-asm --disable-inline-asm"),
    "fftw": Switch(autotools="(leave out every --enable-sse2, --enable-avx...)"),
    "flac": Switch(autotools="--disable-asm-optimizations", cmake="-DWITH_ASM=OFF"),
    "gmp": Switch(autotools="--disable-assembly"),
    "lame": Switch(autotools="--disable-nasm"),
    "libdeflate": Switch(defines="LIBDEFLATE_DISABLE_INTRINSICS"),
    "libgcrypt": Switch(autotools="--disable-asm"),
    "libjpeg-turbo": Switch(cmake="-DWITH_SIMD=OFF"),
    "libpng": Switch(autotools="--disable-hardware-optimizations", cmake="-DPNG_HARDWARE_OPTIMIZATIONS=OFF"),
    "libsodium": Switch(autotools="--disable-asm --disable-pie"),
    "libvpx": Switch(autotools="--target=generic-gnu"),
    "libwebp": Switch(autotools="--disable-sse4.1 --disable-sse2 --disable-neon", cmake="-DWEBP_ENABLE_SIMD=OFF"),
    "mbedtls": Switch(defines="(unset MBEDTLS_HAVE_ASM, MBEDTLS_AESNI_C and MBEDTLS_PADLOCK_C in mbedtls_config.h)"),
    "mpg123": Switch(autotools="--with-cpu=generic"),
    "nettle": Switch(autotools="--disable-assembler"),
    "openh264": Switch(meson="-Dasm=disabled"),
    "openssl": Switch(autotools="no-asm"),
    "opus": Switch(autotools="--disable-asm --disable-intrinsics --disable-rtcd",
                   cmake="-DOPUS_DISABLE_INTRINSICS=ON", meson="-Dasm=disabled -Dintrinsics=disabled -Drtcd=disabled"),
    "pcre2": Switch(autotools="--disable-jit", cmake="-DPCRE2_SUPPORT_JIT=OFF"),
    "pixman": Switch(meson="-Dsse2=disabled -Dssse3=disabled -Dmmx=disabled -Da64-neon=disabled"),
    "speex": Switch(autotools="--disable-sse"),
    "speexdsp": Switch(autotools="--disable-sse --disable-neon"),
    "svt-av1": Switch(cmake="-DCOMPILE_C_ONLY=ON"),
    "x264": Switch(autotools="--disable-asm"),
    "x265": Switch(cmake="-DENABLE_ASSEMBLY=OFF"),
    "xz": Switch(autotools="--disable-assembler", cmake="-DXZ_ASM_I386=OFF"),
    "zlib-ng": Switch(cmake="-DWITH_OPTIM=OFF", autotools="--without-optimizations"),
    "zstd": Switch(cmake="-DZSTD_DISABLE_ASM=ON", defines="ZSTD_DISABLE_ASM"),
}
"""The switches by library."""

_VERSION = re.compile(r"[-_]?v?\d[\w.+~-]*$")
_GENERAL = (
    "look for a switch of the library (./configure --help, cmake -LH, meson configure: asm, simd, intrinsics, generic) "
    "that leaves portable C, or leave the file out"
)


def remedy(*paths: str) -> str:
    """Return what to do about machine code in a library that one of `paths` goes through or names."""
    for path in paths:
        for part in reversed(path.lower().split("/")):
            name = _VERSION.sub("", part)
            for known in (part, name, name.removeprefix("lib"), f"lib{name}"):
                if known in SWITCHES:
                    return f"{known} does without it: {SWITCHES[known]}"
    return _GENERAL
