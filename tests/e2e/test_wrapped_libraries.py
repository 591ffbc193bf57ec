"""Real libraries, unmodified, by their own build systems and with their own tests, through the compiler wrappers.

Long, but for zlib: configure scripts and test suites take minutes.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from wrapkit import Bench, lacks

from visget.errors import NetworkError, NotFoundError
from visget.toolchain.archives import read_archive
from visget.toolchain.irsymbols import is_bitcode, read_symbols
from visget.toolchain.project import read_project
from visget.toolchain.sources import source_tree

pytestmark = pytest.mark.network


@dataclass(frozen=True, slots=True)
class Source:
    """Where upstream's sources come from."""

    debian: str
    sha256: str
    subdir: str = "."


ZLIB = Source("zlib=1:1.2.13.dfsg-1", "3fa1e6b2fc525062aa88207dda52fed8e045373c809d362fe8a2bfbf7cf515a8")
PCRE2 = Source("pcre2=10.42-1", "726dafe7a8d07332d4df61edf23f384ddb158b2b263846273d1103b6b9a7c176")
EXPAT = Source("expat=2.5.0-1+deb12u2", "6fc87dbd01f49999ed368cfb37c08d35e41348dda2281d60642f3aa14cb77e32", "expat")
LIBYAML = Source("libyaml=0.2.5-1", "1edbf86e5cd76937ff62892ba6c2537456d645d834d4cd4a82430b8be7051bf4")
CJSON = Source("cjson=1.7.15-1+deb12u4", "764c2de141d680f4fb4cada30c526dacaa30ead061b9b9c34f2b81e2df0f8439")


@pytest.fixture(scope="session")
def downloads(tmp_path_factory) -> Path:
    kept = os.environ.get("VISGET_CACHE_DIR")
    return Path(kept) if kept else tmp_path_factory.mktemp("downloads")


@pytest.fixture
def bench(tmp_path) -> Bench:
    return Bench(tmp_path)


def unpack(bench: Bench, downloads: Path, source: Source) -> Path:
    """Lay the sources into the bench, as a release archive would: scripts can be run, all files have one time."""
    bench.write(
        {
            "visget.toml": '[package]\nname = "x"\nversion = "1"\nsummary = "x"\nlicense = "MIT"\n'
            f'[source]\ndebian = "{source.debian}"\nsha256 = "{source.sha256}"\n'
            '[build]\nsources = ["*.c"]\n[exports]\nheaders = ["x.h"]\n'
        }
    )
    try:
        with source_tree(read_project(bench.root / "visget.toml"), cache=downloads) as tree:
            shutil.copytree(tree.root / source.subdir, bench.root / "s", symlinks=True)
    except (NetworkError, NotFoundError) as error:
        pytest.skip(f"{source.debian} cannot be fetched: {error.message}")
    for path in (bench.root / "s").rglob("*"):
        if path.is_symlink():
            continue
        if path.is_file():
            with path.open("rb") as file:
                if file.read(2) == b"#!":
                    path.chmod(0o755)
        os.utime(path, (315532800, 315532800))
    return bench.root / "s"


def good(ran) -> str:
    assert ran.status == 0, ran.out[-6000:] + ran.err[-6000:]
    return ran.out


def defined(archive: Path) -> set[str]:
    members = read_archive(archive)
    assert all(is_bitcode(member.data) for member in members)
    return {symbol.name for member in members for symbol in read_symbols(member.data) if symbol.defined}


def need(*programs: str) -> None:
    if why := lacks(*programs):
        pytest.skip(why)


def test_zlib_by_its_own_configure(bench, downloads):
    need("make")
    root = unpack(bench, downloads, ZLIB)
    said = good(bench.visget("configure", cwd="s"))
    assert "Checking for vsnprintf() in stdio.h... Yes." in said
    assert "Building shared library libz.so" in said
    good(bench.visget("make", cwd="s"))
    tested = good(bench.visget("make", "test", cwd="s"))
    assert "zlib test OK" in tested
    assert "zlib shared test OK" in tested
    assert {"deflate", "inflate", "gzopen"} <= defined(root / "libz.a")
    assert is_bitcode((root / "libz.so.1.2.13.bc").read_bytes())


@pytest.mark.long
def test_zlib_by_cmake(bench, downloads):
    need("cmake", "ninja")
    root = unpack(bench, downloads, ZLIB)
    good(bench.visget("cmake", "-S", "s", "-B", "b", "-G", "Ninja"))
    good(bench.visget("cmake", "--build", "b"))
    good(bench.run("ctest", "--output-on-failure", cwd="b"))
    assert {"deflate", "inflate"} <= defined(bench.root / "b" / "libz.a")
    assert (root / "zconf.h.included").exists()


@pytest.mark.long
def test_pcre2_by_configure_and_libtool(bench, downloads):
    need("make")
    root = unpack(bench, downloads, PCRE2)
    # pcre2grep flushes its output after it has forked: on a busy machine its own test of that fails, with any compiler.
    good(bench.visget("configure", "--disable-pcre2grep-callout-fork", cwd="s"))
    good(bench.visget("make", cwd="s"))
    tested = good(bench.visget("make", "check", cwd="s"))
    assert re.search(r"# PASS:  3\b", tested), tested[-3000:]
    assert "pcre2_match_8" in defined(root / ".libs" / "libpcre2-8.a")
    assert is_bitcode(next((root / ".libs").glob("libpcre2-8.so.*.bc")).read_bytes())


@pytest.mark.long
def test_expat_with_its_tests_in_c_and_cxx(bench, downloads):
    need("make", "autoreconf", "libtoolize")
    unpack(bench, downloads, EXPAT)
    good(bench.run("autoreconf", "-fi", cwd="s"))
    good(bench.visget("configure", "--without-docbook", cwd="s"))
    tested = good(bench.visget("make", "check", cwd="s"))
    assert re.search(r"# PASS:  2\b", tested), tested[-3000:]


@pytest.mark.long
def test_libyaml_by_autoconf(bench, downloads):
    need("make", "autoreconf", "libtoolize")
    unpack(bench, downloads, LIBYAML)
    good(bench.run("autoreconf", "-fi", cwd="s"))
    good(bench.visget("configure", cwd="s"))
    tested = good(bench.visget("make", "check", cwd="s"))
    assert re.search(r"# FAIL:  0\b", tested), tested[-3000:]


@pytest.mark.long
def test_cjson_by_cmake(bench, downloads):
    """Archives of test helpers hold the library's own sources once more: only needed members may be linked."""
    need("cmake", "make")
    unpack(bench, downloads, CJSON)
    good(bench.visget("cmake", "-S", "s", "-B", "b", "-DENABLE_CJSON_UTILS=ON"))
    good(bench.visget("cmake", "--build", "b"))
    assert "100% tests passed" in good(bench.run("ctest", cwd="b"))
    assert is_bitcode(next((bench.root / "b").glob("libcjson.so.*.bc")).read_bytes())
