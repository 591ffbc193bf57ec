"""The same sources give the same bytes, in any directory, at any time, for anybody; and a package compiles alike.

The sources use __FILE__, __DATE__ and __TIME__, the classic ways of putting the place and the time into a program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from e2ekit import NUMERICS, RECIPES, Shelf, User
from tinykit import Market, write_project

from visget.format.package import Package, open_package

SECTIONS = ("bitcode", "api", "headers", "license", "readme", "vectors", "lines")


def build(user: User, project: Path, *words: str, **environment: str) -> bytes:
    return Path(user.json("build", project, *words, **environment)["file"]).read_bytes()


def other_locale() -> str:
    """Return the most foreign locale that this machine has."""
    try:
        done = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False)
        have = done.stdout.split()
    except OSError:
        have = []
    wanted = ("tr_TR.utf8", "ja_JP.eucjp", "de_DE.utf8", "C.utf8")
    return next((name for name in wanted if name in have), "C.UTF-8")


def test_two_people_build_the_same_bytes(market: Market, tmp_path: Path) -> None:
    one, other = User(tmp_path / "one"), User(tmp_path / "the other one, ünder another näme")
    first = write_project(one.root / "tiny")
    second = write_project(other.root / "deep" / "in" / "a copy of tiny", backwards=True)
    for number, path in enumerate(sorted(second.rglob("*"))):
        os.utime(path, (1e9 + number, 1e9 + number))
        if path.is_file():
            path.chmod(0o600)
    (second / "notes.txt").write_text("no part of the package")
    made = build(one, first, "--jobs", "1", PYTHONHASHSEED="1", LC_ALL="C", TZ="UTC0", HOME="/nonexistent")
    again = build(
        other, second, "--jobs", "4", PYTHONHASHSEED="2", LC_ALL=other_locale(), TZ="XYZ-11",
        SOURCE_DATE_EPOCH="1700000000", PWD="/", CPATH=str(tmp_path), C_INCLUDE_PATH=str(tmp_path),
    )  # fmt: skip
    assert made == again
    assert made == market.packages[0].read_bytes()
    # And the comparison is worth something: another source gives other bytes.
    source = second / "calls.c"
    source.write_text(source.read_text().replace("long sum = 0", "long sum = 1"))
    assert build(other, second) != made


def test_nothing_of_the_author_s_machine_is_inside(market: Market) -> None:
    package = open_package(market.packages[0].read_bytes())
    contents = [package.data, *sections_of(package)]
    assert len(contents) > 5
    private = [
        str(market.author.root), market.author.root.name, os.environ.get("HOME") or "/root", os.uname().nodename,
        "/home/", "site-packages", "ziglang",
    ]  # fmt: skip
    for content in contents:
        for word in private:
            if len(word) > 3:
                assert word.encode() not in content, word


def sections_of(package: Package) -> list[bytes]:
    return [content for kind in SECTIONS if (content := package.section(kind)) is not None]


def test_what_the_macros_of_place_and_time_give(market: Market, tmp_path: Path) -> None:
    user = market.newcomer(tmp_path / "user")
    user.visget("install", "tiny")
    library = user.load("tiny")
    assert library.tiny_file() == b"where.c"
    assert library.tiny_date() == b"Jan  1 1980 00:00:00"


def test_two_machines_compile_the_same_bytes(market: Market, tmp_path: Path) -> None:
    """Equal processors and tools assumed, everything in an artifact but the receipt's times is equal."""
    entries = []
    for name, environment in (
        ("one", {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC0"}),
        ("a much longer name of a home", {"PYTHONHASHSEED": "2", "LC_ALL": other_locale(), "TZ": "XYZ-11"}),
    ):
        user = market.newcomer(tmp_path / name)
        for target in ("host", "baseline", "riscv64-linux-musl"):
            user.visget("install", "tiny", "--target", target, **environment)
        native = user.root / "home" / "native" / "v1"
        entries.append(
            {
                str(path.relative_to(native)): path.read_bytes()
                for path in native.rglob("*")
                if path.is_file() and path.name not in ("receipt.json", "entry.json")
            }
        )
    one, other = entries
    assert sorted(one) == sorted(other)
    assert sum(name.endswith("libtiny.so") for name in one) == 3
    assert [name for name in one if one[name] != other[name]] == []
    for name, content in one.items():
        assert str(tmp_path).encode() not in content, name


def test_the_example_builds_alike_from_a_copy(tmp_path: Path) -> None:
    user = User(tmp_path / "user")
    copy = shutil.copytree(NUMERICS, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("dist"))
    first = Path(user.json("build", NUMERICS, "--output", tmp_path / "dist")["file"]).read_bytes()
    assert build(user, copy, "-j1", PYTHONHASHSEED="7") == first


@pytest.mark.network
@pytest.mark.parametrize("name", ["xxhash", "kissfft"])
def test_a_recipe_builds_alike_somewhere_else(shelf: Shelf, tmp_path: Path, name: str) -> None:
    """Also without the directory in which the sources were unpacked the first time."""
    first = shelf.package(name).read_bytes()
    recipe = tmp_path / "recipe"
    recipe.mkdir()
    for path in (RECIPES / name).iterdir():
        if path.is_file():
            (recipe / path.name).write_bytes(path.read_bytes())
    other = User(tmp_path / "other", VISGET_CACHE_DIR=shelf.user.environment["VISGET_CACHE_DIR"])
    again = other.json("build", recipe, "--offline", "-j1", PYTHONHASHSEED="3", LC_ALL=other_locale())
    assert Path(again["file"]).read_bytes() == first
