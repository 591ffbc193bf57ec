from __future__ import annotations

from pathlib import Path

import pytest

from visget.errors import UsageError
from visget.toolchain.paths import expand, inside, path_problem


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("src/a.c", "src/b.c", "src/deep/c.c", "src/test_a.c", "x.h"):
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "outside.c").touch()
    return tmp_path / "root"


@pytest.mark.parametrize("text", ["a.c", "./a.c", "a/b/*.c", "**/*.c", "..a/b"])
def test_allows(text: str) -> None:
    assert path_problem(text) is None


@pytest.mark.parametrize("text", ["", "/a", "~/a", "C:/a", "..", "a/../b", "a\\b", "a\nb"])
def test_refuses(text: str) -> None:
    assert path_problem(text) is not None


def test_expands_sorted_and_without_the_excluded(root: Path) -> None:
    assert expand(root, ["src/**/*.c"], ["src/test_*.c"]) == ("src/a.c", "src/b.c", "src/deep/c.c")
    assert expand(root, ["src/b.c", "src/*.c"]) == ("src/a.c", "src/b.c", "src/test_a.c")


@pytest.mark.parametrize("exclude", [False, True])
def test_a_pattern_that_matches_nothing_is_an_error_with_a_suggestion(root: Path, exclude: bool) -> None:
    with pytest.raises(UsageError, match=r"'src/a\.cc' matches no file") as caught:
        expand(root, ["src/*.c", *([] if exclude else ["src/a.cc"])], ["src/a.cc"] if exclude else [])
    assert caught.value.hint == "did you mean 'src/a.c'?"
    with pytest.raises(UsageError) as caught:
        expand(root, ["scr/*.c"])
    assert "'scr' is no directory" in str(caught.value.hint)


def test_a_link_out_of_the_tree_is_refused(root: Path) -> None:
    (root / "src" / "evil.c").symlink_to(root.parent / "outside.c")
    with pytest.raises(UsageError, match="outside the source tree"):
        expand(root, ["src/*.c"])
    (root / "src" / "evil.c").unlink()
    (root / "src" / "fine.c").symlink_to("a.c")
    assert "src/fine.c" in expand(root, ["src/*.c"])
    (root / "up").symlink_to("..")
    with pytest.raises(UsageError, match="outside the source tree"):
        inside(root, "up/outside.c")


def test_a_loop_of_links_is_no_file(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match="no 'loop'"):
        inside(root, "loop")
