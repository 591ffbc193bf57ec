from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from installable import verified

from visget.installer.pkgconfig import pkgconfig_text
from visget.runtime.pkgconfig import read_fields

MANIFEST = verified().package.manifest


def test_no_path_is_fixed() -> None:
    text = pkgconfig_text(MANIFEST, shared=True)
    assert text.startswith("prefix=${pcfiledir}/../..\n")
    assert not [line for line in text.splitlines() if "=/" in line or " /" in line]


def test_our_own_reader_understands_it() -> None:
    fields = read_fields(pkgconfig_text(MANIFEST, shared=True), Path("/opt/entry/lib/pkgconfig"))
    prefix = "/opt/entry/lib/pkgconfig/../.."
    assert fields["Cflags"] == f"-I{prefix}/include"
    assert fields["Libs"] == f"-L{prefix}/lib -Wl,-rpath,{prefix}/lib -ladder"
    assert fields["Version"] == "1.2.3"
    assert fields["URL"] == "https://example.org/adder"


def test_with_only_an_archive_the_maths_library_is_needed_too() -> None:
    fields = read_fields(pkgconfig_text(MANIFEST, shared=False), Path("/e/lib/pkgconfig"))
    assert fields["Libs"].endswith("-ladder -lm")
    assert "rpath" not in fields["Libs"]


def test_the_program_pkg_config_understands_it(tmp_path: Path) -> None:
    program = shutil.which("pkg-config") or shutil.which("pkgconf")
    if program is None:
        pytest.skip("pkg-config is not installed")
    hard = verified(summary="100 % $HOME # not a comment, not a ${variable}").package.manifest
    (tmp_path / "adder.pc").write_text(pkgconfig_text(hard, shared=True), encoding="utf-8")

    def ask(*words: str) -> str:
        command = [program, *words, "adder"]
        path = {"PKG_CONFIG_PATH": str(tmp_path)}
        done = subprocess.run(command, env=path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert ask("--modversion") == "1.2.3"
    assert "-ladder" in ask("--libs").split()
    assert "-lm" in ask("--libs", "--static").split()
    assert f"-I{tmp_path}/../../include" in ask("--cflags").split()
