"""C++ from its author to a program that loads the library: built, gated, linked and run, here and on other machines."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from native_code import cross_compile, qemu

from visget.format.keys import SecretKey
from visget.format.package import Package, verify_package
from visget.format.signing import sign_package
from visget.installer.compile import compile_package
from visget.installer.gate import Promise, gate_library, gate_object
from visget.installer.link import link_library
from visget.installer.linkers import find_linker
from visget.installer.target import baseline
from visget.toolchain.builder import BuildResult, build_package
from visget.toolchain.project import read_project

KEY = SecretKey.generate()
MANIFEST = """
[package]
name = "probe"
version = "1.0"
summary = "A probe"
license = "MIT"
[build]
sources = ["*.cpp"]
{build}
[exports]
headers = ["api.h"]
"""


@functools.cache
def cxx_cache() -> Path:
    """Return a cache directory for all tests of a session: libc++ is compiled once."""
    directory = Path(tempfile.mkdtemp(prefix="visget-test-cxx-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def build_cxx(directory: Path, header: str, source: str, build: str = "", cache: Path | None = None) -> BuildResult:
    """Build a package of one public header, whose functions are C, and one source."""
    directory.mkdir(parents=True, exist_ok=True)
    opened = '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    closed = "\n#ifdef __cplusplus\n}\n#endif\n"
    (directory / "api.h").write_text(opened + header + closed)
    (directory / "code.cpp").write_text('#include "api.h"\n' + source)
    (directory / "visget.toml").write_text(MANIFEST.format(build=build))
    return build_package(read_project(directory), cache=cache or cxx_cache())


def library_of(package: Package, arch: str, directory: Path) -> Path:
    """Install `package` for glibc on `arch` as far as its shared library, through both gates."""
    verified = verify_package(package, sign_package(package, KEY), [KEY.public])
    target = baseline(arch, "gnu")
    compiled = compile_package(verified, target)
    manifest = package.manifest
    promise = Promise(
        label="probe 1.0", target=target, exports=frozenset(manifest.exports),
        imports=frozenset(manifest.imports), constructors=manifest.constructors,
    )  # fmt: skip
    needed = gate_object(compiled.object, promise)
    linker = find_linker(None, target)
    if linker is None:
        pytest.skip(f"no linker for {target}")
    scratch = directory / f"link-{arch}"
    scratch.mkdir(parents=True)
    linked = link_library(
        linker, compiled.object, target=target, soname="libprobe.so", exports=manifest.exports, needed=needed,
        scratch=scratch,
    )  # fmt: skip
    gate_library(linked.library, promise, soname="libprobe.so")
    path = directory / f"libprobe-{arch}.so"
    path.write_bytes(linked.library)
    return path


def run_loading(
    driver: str, library: Path, arch: str, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a C program that is given the path of `library`, to load it, on `arch`."""
    directory = library.parent / f"run-{arch}"
    directory.mkdir(exist_ok=True)
    program = directory / "driver"
    if not program.exists():
        (directory / "driver.c").write_text(driver)
        if arch == "x86_64":
            compiler = shutil.which("gcc") or shutil.which("cc")
            if compiler is None:
                pytest.skip("no C compiler for the driver")
            subprocess.run([compiler, "-w", "driver.c", "-o", "driver", "-ldl"], check=True, cwd=directory)
        else:
            cross_compile(f"{arch}-linux-gnu.2.36", directory / "driver.c", program, "-w", "-ldl")
    command = qemu(arch)
    if command:
        root = Path(f"/usr/{arch}-linux-gnu")
        if not (root / "lib" / "libgcc_s.so.1").exists():
            pytest.skip(f"no C library for {arch} in {root} (Debian: libc6-*-cross, libgcc-s1-*-cross)")
        command += ["-L", str(root)]
    return subprocess.run(
        [*command, str(program), str(library), *arguments], capture_output=True, text=True, check=False, timeout=300,
        env={"PATH": "/usr/bin:/bin", **(environment or {})},
    )  # fmt: skip
