"""From C to what a program sees of it: built as an author would, installed for three machines, and run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from visget.errors import VisgetError
from visget.format.keys import SecretKey
from visget.format.package import Package, verify_package
from visget.format.signing import sign_package
from visget.installer.compile import compile_package
from visget.installer.target import baseline
from visget.toolchain.builder import build_package
from visget.toolchain.project import read_project

ARCHITECTURES = {"x86_64": "gnu", "aarch64": "musl", "riscv64": "musl"}
SLOTS = [
    pytest.param("x86_64", id="x86_64"),
    pytest.param("aarch64", id="aarch64", marks=pytest.mark.cross),
    pytest.param("riscv64", id="riscv64", marks=pytest.mark.cross),
]
KEY = SecretKey.generate()
MANIFEST = """
[package]
name = "probe"
version = "1.0"
summary = "A probe"
license = "MIT"
[build]
sources = ["code.c"]
floating-point = "strict"
{build}
[exports]
headers = ["api.h"]
"""


def package(directory: Path, header: str, source: str, build: str = "") -> Package:
    """Build a package from one public header and one source, as an author would."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "api.h").write_text(header + "\n")
    (directory / "code.c").write_text('#include "api.h"\n' + source + "\n")
    (directory / "visget.toml").write_text(MANIFEST.format(build=build))
    return build_package(read_project(directory), cache=directory / "cache").package


def said(error: VisgetError) -> str:
    """Everything that the author is shown."""
    findings = error.details.get("findings", [])
    assert isinstance(findings, list)
    shown = [finding if isinstance(finding, str) else str(finding) for finding in findings]
    return "\n".join([error.message, error.hint or "", str(error.details.get("stderr", "")), *shown])


def installed(built: Package, arch: str) -> bytes:
    """Sign it, and compile it for the baseline of `arch` in the worker."""
    verified = verify_package(built, sign_package(built, KEY), [KEY.public])
    return compile_package(verified, baseline(arch, ARCHITECTURES[arch])).object


def native(directory: Path, driver: str) -> str:
    """What the driver prints when the same sources are compiled for this machine."""
    (directory / "native.c").write_text(driver)
    program = directory / "native"
    command = ["gcc", "-std=gnu17", "-O1", "-w", "-fsigned-char", "-ffp-contract=off", str(directory / "native.c"),
               str(directory / "code.c"), "-o", str(program), "-lm"]  # fmt: skip
    subprocess.run(command, check=True)
    return subprocess.run([str(program)], capture_output=True, text=True, check=True, cwd=directory).stdout
