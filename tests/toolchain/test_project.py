from __future__ import annotations

from pathlib import Path

import pytest

from visget.digest import digest_bytes
from visget.errors import UsageError
from visget.toolchain.origin import DebianSource, PypiSource, UrlSource
from visget.toolchain.project import Project, read_project

DIGEST = digest_bytes(b"")
MINIMAL = """\
[package]
name = "my-lib"
version = "1.2"
summary = "Adds numbers"
license = "MIT"

[build]
sources = ["src/*.c"]

[exports]
headers = ["my_lib.h"]
"""
FULL = f"""\
[package]
name = "my-lib"
version = "1.2rc1"
summary = "Adds numbers"
license = "mit or apache-2.0"
homepage = "https://example.org/my-lib"
readme = "README.md"
license-file = ["LICENSE", "NOTICE"]

[source]
pypi = "My_Lib==1.2rc1"
sha256 = "{DIGEST}"
subdir = "deps/my"

[build]
language = "c"
sources = ["a.c", "b/**/*.c"]
exclude = ["b/test.c"]
include = ["include"]
defines = {{ A = "x", B = 2, C = true }}
flags = ["-fno-strict-aliasing", "-Iother", "-DD(x)=x", "-Wno-unused"]
standard = "c11"
floating-point = "strict"
float-cast = "native"
cleanup = "none"

[exports]
headers = ["my.h", "my/more.h"]
functions = ["my_*"]
exclude = ["my_debug_*"]

[[vector]]
name = "one"
steps = [{{ call = "my_add", args = [{{ float = 1.5 }}], returns = {{ float = 3, rel = 1e-6 }} }}]

[[bench]]
name = "two"
[[bench.steps]]
call = "my_add"
"""


def parse(directory: Path, text: str) -> Project:
    path = directory / "visget.toml"
    path.write_text(text)
    return read_project(path)


def test_reads_the_least(tmp_path: Path) -> None:
    project = parse(tmp_path, MINIMAL)
    assert project.package.name == "my-lib"
    assert str(project.package.version) == "1.2"
    assert project.source is None
    assert project.build.floating_point == "contract"
    assert project.build.float_cast == "saturate"
    assert project.build.cleanup == "light"
    assert project.exports.functions == ("*",)
    assert project.vectors.vectors == ()
    assert project.directory == tmp_path
    assert read_project(tmp_path) == project


def test_reads_everything(tmp_path: Path) -> None:
    project = parse(tmp_path, FULL)
    assert project.package.license == "MIT OR Apache-2.0"
    assert project.package.license_files == ("LICENSE", "NOTICE")
    assert project.source == PypiSource(name="My_Lib", version="1.2rc1", sha256=DIGEST, subdir="deps/my")
    assert project.source.label == "pypi:My_Lib==1.2rc1"
    assert project.build.defines == ("A=x", "B=2", "C")
    assert project.build.standard == "c11"
    assert (project.build.floating_point, project.build.float_cast, project.build.cleanup) == (
        "strict",
        "native",
        "none",
    )
    assert project.exports.headers == ("my.h", "my/more.h")
    assert [vector.name for vector in project.vectors.vectors] == ["one"]
    assert [bench.steps[0].call for bench in project.benches.vectors] == ["my_add"]


def test_reads_the_other_sources(tmp_path: Path) -> None:
    debian = parse(tmp_path, MINIMAL + f'[source]\ndebian = "libx=1:2.0~rc1+dfsg-3"\nsha256 = "{DIGEST}"\n')
    assert debian.source == DebianSource(name="libx", version="1:2.0~rc1+dfsg-3", sha256=DIGEST)
    url = parse(tmp_path, MINIMAL + f'[source]\nurl = "https://example.org/x.tar.gz"\nsha256 = "{DIGEST.upper()}"\n')
    assert url.source == UrlSource(url="https://example.org/x.tar.gz", sha256=DIGEST)


def test_a_single_licence_file_may_stand_alone(tmp_path: Path) -> None:
    text = MINIMAL.replace('license = "MIT"', 'license = "MIT"\nlicense-file = "COPYING"')
    assert parse(tmp_path, text).package.license_files == ("COPYING",)


BAD = [
    # what to replace, by what, then the line, the key and words of the complaint
    ('name = "my-lib"', 'nmae = "my-lib"', 2, "package.nmae", "did you mean 'name'"),
    ('name = "my-lib"', "", 1, "package", "'name' is missing"),
    ('name = "my-lib"', 'name = "My Lib"', 2, "package.name", "is not a package name"),
    ('name = "my-lib"', "name = 7", 2, "package.name", "expected a string, found an integer (7)"),
    ('version = "1.2"', 'version = "one"', 3, "package.version", "is not a version"),
    ('version = "1.2"', "version = 1.2", 3, "package.version", "found a number (1.2)"),
    ('"Adds numbers"', '""', 4, "package.summary", "is empty"),
    ('"Adds numbers"', '"two\\nlines"', 4, "package.summary", "one line"),
    ('"Adds numbers"', '"\\u001b[31mred"', 4, "package.summary", "control characters"),
    ('"Adds numbers"', f'"{"x" * 201}"', 4, "package.summary", "longer than 200"),
    ('license = "MIT"', 'license = "My own"', 5, "package.license", "no SPDX licence expression"),
    ('license = "MIT"', 'license = "MIT"\nhomepage = "example.org"', 6, "package.homepage", "address"),
    ('license = "MIT"', 'license = "MIT"\nreadme = "../README"', 6, "package.readme", "leaves its tree"),
    ('license = "MIT"', 'license = "MIT"\nkeywords = []', 6, "package.keywords", "unknown key"),
    ('sources = ["src/*.c"]', "", 7, "build", "'sources' is missing"),
    ('sources = ["src/*.c"]', "sources = []", 8, "build.sources", "names no file"),
    ('sources = ["src/*.c"]', 'sources = "src/*.c"', 8, "build.sources", "expected an array"),
    ('sources = ["src/*.c"]', 'sources = [\n  "a.c",\n  "/etc/x.c",\n]', 10, "build.sources[1]", "not relative"),
    ('sources = ["src/*.c"]', 'sources = ["a.c", "a.c"]', 8, "build.sources[1]", "there twice"),
    ('sources = ["src/*.c"]', 'sources = ["a.c", 3]', 8, "build.sources[1]", "expected a string"),
    ('sources = ["src/*.c"]', "sources = ['a\\b.c']", 8, "build.sources[0]", "backslash"),
    ('["src/*.c"]', '["a.c"]\nflags = [\n  "-Wall",\n  "-march=native",\n]', 11, "build.flags[1]", "one kind of CPU"),
    ('["src/*.c"]', '["a.c"]\nlanguage = "C"', 9, "build.language", 'expected one of "auto", "c", "c++"'),
    ('["src/*.c"]', '["a.c"]\nstandard = "c18"', 9, "build.standard", "no standard"),
    ('["src/*.c"]', '["a.c"]\nstandard = "c++17"\nlanguage = "c"', 9, "build.standard", "not a standard of C"),
    ('["src/*.c"]', '["a.c"]\nfloating-point = "quick"', 9, "build.floating-point", "strict"),
    ('["src/*.c"]', '["a.c"]\nfloating_point = "fast"', 9, "build.floating_point", "did you mean 'floating-point'"),
    ('["src/*.c"]', '["a.c"]\ndefines = { A = false }', 9, "build.defines.A", "or true"),
    ('["src/*.c"]', '["a.c"]\ndefines = { "A B" = 1 }', 9, "build.defines.'A B'", "not the name of a macro"),
    ('["src/*.c"]', '["a.c"]\n[build.defines]\nOK = 1\n__vis_x = 1', 11, "build.defines.__vis_x", "belongs to visget"),
    ('["src/*.c"]', '["a.c"]\ndefines = ["A", "A=2"]', 9, "build.defines[1]", "defined twice"),
    ("[exports]", "[export]", 10, "export", "did you mean 'exports'"),
    ("[build]", "[biuld]", 7, "biuld", "did you mean 'build'"),
    ('headers = ["my_lib.h"]', "headers = []", 11, "exports.headers", "names no header"),
    ('headers = ["my_lib.h"]', 'headers = ["*.h"]', 11, "exports.headers[0]", "is a pattern"),
    ('["my_lib.h"]', '["my_lib.h"]\nfunctions = ["a b"]', 12, "exports.functions[0]", "no pattern"),
    ('["my_lib.h"]', '["my_lib.h"]\nfunctions = []', 12, "exports.functions", "names no function"),
    ("[package]", "[pakage]", 1, "pakage", "did you mean 'package'"),
    ("[package]\n", "", 1, "name", "known here: bench, build, dependencies, exports, package"),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "words"), BAD, ids=[f"{row[3]}-{row[4][:24]}" for row in BAD])
def test_names_line_key_and_remedy(tmp_path: Path, old: str, new: str, line: int, key: str, words: str) -> None:
    text = MINIMAL.replace(old, new, 1)
    assert text != MINIMAL
    with pytest.raises(UsageError) as caught:
        parse(tmp_path, text)
    error = caught.value
    assert error.where == f"{tmp_path / 'visget.toml'}:{line}", error.message
    assert words in f"{error.message} {error.hint}"
    assert error.message.startswith(f"{key}:")
    assert error.details["key"] == key


BAD_SOURCES = [
    ("", 12, "names no source"),
    (f'pypi = "a==1"\ndebian = "b=1"\nsha256 = "{DIGEST}"', 14, "one source"),
    (f'pypi = "a>=1"\nsha256 = "{DIGEST}"', 13, "name==version"),
    (f'pypi = "a==one"\nsha256 = "{DIGEST}"', 13, "not a version"),
    (f'debian = "a==1"\nsha256 = "{DIGEST}"', 13, "name=version"),
    (f'debian = "../a=1"\nsha256 = "{DIGEST}"', 13, "name=version"),
    (f'url = "ftp://example.org/x"\nsha256 = "{DIGEST}"', 13, "no http:// or https://"),
    (f'url = "https://user:secret@example.org/x"\nsha256 = "{DIGEST}"', 13, "no http:// or https://"),
    ('pypi = "a==1"', 12, "'sha256' is missing"),
    ('pypi = "a==1"\nsha256 = "abc"', 14, "64 hexadecimal digits"),
    (f'pypi = "a==1"\nsha256 = "{DIGEST}"\nsubdir = "/x"', 15, "not relative"),
    (f'pypy = "a==1"\nsha256 = "{DIGEST}"', 13, "did you mean 'pypi'"),
]


@pytest.mark.parametrize(("table", "line", "words"), BAD_SOURCES)
def test_refuses_bad_sources(tmp_path: Path, table: str, line: int, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(tmp_path, f"{MINIMAL}[source]\n{table}\n")
    assert caught.value.where == f"{tmp_path / 'visget.toml'}:{line}", caught.value.message
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_names_the_step_of_a_bad_vector(tmp_path: Path) -> None:
    text = MINIMAL + (
        '[[vector]]\nname = "a"\nsteps = [{ call = "f" }]\n\n[[vector]]\nname = "b"\nsteps = [\n'
        '  { call = "f" },\n  { call = "g", args = [{ itn = 1 }] },\n]\n'
    )
    with pytest.raises(UsageError) as caught:
        parse(tmp_path, text)
    assert caught.value.where == f"{tmp_path / 'visget.toml'}:20"
    with pytest.raises(UsageError) as caught:
        parse(tmp_path, MINIMAL + '[[vector]]\nname = "a"\nsteps = [{ call = "f" }]\n[[bench]]\nnaem = "b"\n')
    assert caught.value.where == f"{tmp_path / 'visget.toml'}:15"


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ('[package]\nname = "x\n', ":2:10", "not valid TOML"),
        ("[package]\na = 1\na = 2\n", ":3:6", "not valid TOML"),
        ("[package", ":1", "not valid TOML"),
        ("a = " + "[" * 5000 + "]" * 5000, "", "too deeply"),
    ],
)
def test_names_line_and_column_of_a_syntax_error(tmp_path: Path, text: str, where: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        parse(tmp_path, text)
    assert str(caught.value.where).startswith(f"{tmp_path / 'visget.toml'}{where}")


def test_names_the_line_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "visget.toml").write_bytes(b"[package]\nname = '\xff'\n")
    with pytest.raises(UsageError, match="not UTF-8") as caught:
        read_project(tmp_path)
    assert caught.value.where == f"{tmp_path / 'visget.toml'}:2"


def test_tells_how_to_begin_where_there_is_no_project(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no visget") as caught:
        read_project(tmp_path)
    assert "visget init" in str(caught.value.hint)
