"""[source] overlay and copy: what a recipe adds beside upstream's files, none of which it may replace."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from visget.errors import UsageError
from visget.toolchain.project import read_project
from visget.toolchain.sources import SourceTree, source_tree

FILES = {"x-1/src/a.c": b"int a;\n", "x-1/config.h.generic": b"#define LEVEL 3\n"}


def archive() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def recipe(root: Path, lines: str) -> Path:
    """A recipe whose archive lies in its cache already."""
    data = archive()
    digest = hashlib.sha256(data).hexdigest()
    (root / "cache" / "sources").mkdir(parents=True)
    (root / "cache" / "sources" / digest).write_bytes(data)
    (root / "port" / "src").mkdir(parents=True)
    (root / "port" / "src" / "impl.c").write_text("int impl;\n")
    (root / "visget.toml").write_text(
        '[package]\nname = "x"\nversion = "1"\nsummary = "s"\nlicense = "MIT"\n[build]\nsources = ["src/*.c"]\n'
        f'[exports]\nheaders = ["x.h"]\n[source]\nurl = "https://example.org/x.tar"\nsha256 = "{digest}"\n{lines}\n'
    )
    return root


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[object]:
    stack: list[object] = []

    def opener(lines: str) -> SourceTree:
        root = recipe(tmp_path / "r", lines)
        block = source_tree(read_project(root), cache=root / "cache")
        stack.append(block)
        return block.__enter__()

    yield opener
    for block in stack:
        block.__exit__(None, None, None)  # type: ignore[attr-defined]


def refusal(root: Path, lines: str) -> UsageError:
    recipe(root, lines)
    with pytest.raises(UsageError) as caught, source_tree(read_project(root), cache=root / "cache"):
        pass
    assert not list((root / "cache").glob("trees/*"))
    return caught.value


def test_files_are_added(opened) -> None:  # type: ignore[no-untyped-def]
    tree = opened('overlay = "port"\ncopy = { "gen/config.h" = "config.h.generic" }')
    assert (tree.root / "src" / "impl.c").read_text() == "int impl;\n"
    assert (tree.root / "gen" / "config.h").read_bytes() == FILES["x-1/config.h.generic"]
    assert (tree.root / "src" / "a.c").read_bytes() == FILES["x-1/src/a.c"]


def test_a_file_of_upstream_cannot_be_replaced(tmp_path: Path) -> None:
    error = refusal(tmp_path / "1", 'copy = { "src/a.c" = "config.h.generic" }')
    assert "'src/a.c' is there already" in error.message
    assert error.where == f"{tmp_path / '1' / 'visget.toml'}:13"
    root = tmp_path / "2"
    recipe(root, 'overlay = "port"')
    (root / "port" / "src" / "a.c").write_text("int b;\n")
    with pytest.raises(UsageError, match="there already"), source_tree(read_project(root), cache=root / "cache"):
        pass


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('overlay = "../port"', "leaves its tree"),
        ('overlay = "prot"', "no 'prot'"),
        ('copy = { "/etc/x" = "config.h.generic" }', "not relative"),
        ('copy = { "b.c" = "../visget.toml" }', "leaves its tree"),
        ('copy = { "b.c" = "config.h" }', "no 'config.h'"),
        ('copy = { "b.c" = "src" }', "not a file"),
        ('copy = { "b.c" = 7 }', "expected a string"),
        ('copy = ["b.c"]', "expected a table"),
    ],
)
def test_refusals(tmp_path: Path, lines: str, words: str) -> None:
    assert words in refusal(tmp_path / "r", lines).message


def test_an_overlay_stays_beside_visget_toml(tmp_path: Path) -> None:
    root = recipe(tmp_path / "r", 'overlay = "port"')
    (root / "port" / "name.c").symlink_to("/etc/hostname")
    with pytest.raises(UsageError, match="outside"), source_tree(read_project(root), cache=root / "cache"):
        pass
