from __future__ import annotations

from pathlib import Path

import pytest

from visget.errors import UsageError
from visget.toolchain.project import Dependency, Project, read_project

HEAD = '[package]\nname = "x"\nversion = "1"\nsummary = "s"\nlicense = "MIT"\n[exports]\nheaders = ["x.h"]\n'


def read(tmp_path: Path, text: str) -> Project:
    (tmp_path / "visget.toml").write_text(HEAD + text)
    return read_project(tmp_path)


def refused(tmp_path: Path, text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    return caught.value


def test_a_build_system_with_everything(tmp_path: Path) -> None:
    build = read(
        tmp_path,
        '[build]\nsystem = "cmake"\nlibrary = ["libx.a", "sub/**/*.a"]\ndirectory = "build/cmake"\n'
        'configure = ["-DBUILD_TESTING=OFF"]\ntargets = ["x"]\ninstall = true\ntests = ["ctest", "-V"]\n'
        'defines = ["A"]\nflags = ["-fwrapv"]\nfloating-point = "strict"\ncleanup = "none"\ninclude = ["inc"]\n',
    ).build
    assert (build.system, build.library, build.directory) == ("cmake", ("libx.a", "sub/**/*.a"), "build/cmake")
    assert (build.configure, build.targets, build.install) == (("-DBUILD_TESTING=OFF",), ("x",), True)
    assert (build.tests, build.defines, build.flags) == (("ctest", "-V"), ("A",), ("-fwrapv",))
    assert (build.sources, build.include, build.floating_point) == ((), ("inc",), "strict")


def test_one_library_may_stand_alone(tmp_path: Path) -> None:
    assert read(tmp_path, '[build]\nsystem = "make"\nlibrary = "libx.a"\n').build.library == ("libx.a",)


def test_without_a_system_visget_compiles(tmp_path: Path) -> None:
    assert read(tmp_path, '[build]\nsources = ["a.c"]\n').build.system == "sources"


@pytest.mark.parametrize(("text", "message", "hint"), [
    ('system = "cmak"\nlibrary = "x.a"\n', "build.system: expected one of", "did you mean 'cmake'?"),
    ('system = "cmake"\n', "build: the key 'library' is missing", 'library = ["libmylib.a"]'),
    ('system = "cmake"\nlibraries = ["x.a"]\n', "did you mean 'library'?", ""),
    ('system = "cmake"\nlibrary = []\n', "build.library: names no file", ""),
    ('system = "cmake"\nlibrary = "/usr/lib/libz.a"\n', "build.library", ""),
    ('system = "cmake"\nlibrary = "x.a"\nsources = ["a.c"]\n', "build.sources: cmake itself knows this", "library"),
    ('system = "meson"\nlibrary = "x.a"\nstandard = "c99"\n', "build.standard: meson itself knows this", "-std="),
    ('sources = ["a.c"]\nconfigure = ["x"]\n', "build.configure: belongs to a build system", '"autotools"'),
    ('sources = ["a.c"]\ntests = ["x"]\n', "build.tests: belongs to a build system", ""),
    ('system = "cmake"\nlibrary = "x.a"\nconfigure = ["-DCMAKE_C_COMPILER=gcc"]\n', "configure[0]", "remove it"),
    ('system = "autotools"\nlibrary = "x.a"\nconfigure = ["--a", "--host=arm-none"]\n', "configure[1]", "remove it"),
    ('system = "meson"\nlibrary = "x.a"\nconfigure = ["--cross-file=x"]\n', "configure[0]", "remove it"),
    ('system = "make"\nlibrary = "x.a"\nconfigure = ["install"]\n', "'install' is no variable", "targets"),
    ('system = "make"\nlibrary = "x.a"\ntargets = ["-k"]\n', "targets[0]: '-k' is an option", "configure"),
    ('system = "make"\nlibrary = "x.a"\ninstall = "yes"\n', "expected true or false", ""),
    ('system = "make"\nlibrary = "x.a"\ndirectory = "../up"\n', "build.directory", ""),
])  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str, hint: str) -> None:
    error = refused(tmp_path, f"[build]\n{text}")
    assert message in error.message
    assert hint in (error.hint or "")
    assert error.where is not None and error.where.startswith(str(tmp_path / "visget.toml:"))


def test_dependencies_are_sorted_and_canonical(tmp_path: Path) -> None:
    found = read(tmp_path, '[build]\nsources = ["a.c"]\n[dependencies]\nzlib = ">=1.2, <2"\nlz4 = "*"\n').dependencies
    assert found == (Dependency(name="lz4", specifier=""), Dependency(name="zlib", specifier="<2,>=1.2"))


@pytest.mark.parametrize(("text", "message"), [
    ('zlib = "1.2"', "'1.2' is no range of versions"),
    ("zlib = 1", "expected a string"),
    ('Z_lib = "*"', "dependencies.Z_lib"),
])  # fmt: skip
def test_wrong_dependencies_are_named(tmp_path: Path, text: str, message: str) -> None:
    error = refused(tmp_path, f'[build]\nsources = ["a.c"]\n[dependencies]\n{text}\n')
    assert message in error.message
    assert (error.where or "").endswith("visget.toml:11")


def test_what_the_command_line_gives_need_not_be_there(tmp_path: Path) -> None:
    (tmp_path / "visget.toml").write_text(HEAD.partition("[exports]")[0])
    project = read_project(tmp_path, given=True, headers=True)
    assert project.build.sources == () and project.exports.headers == ()
