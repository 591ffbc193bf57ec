"""Landlock for every version of it that this kernel can play, and for none."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from confinedkit import AS_NOBODY, NO_LANDLOCK, linux, root, run_python

from visget.installer import landlock

needed = pytest.mark.skipif(landlock.abi() == 0, reason="this kernel has no Landlock")
VERSIONS = range(1, max(2, landlock.abi() + 1))

TRY = """
from visget.installer import landlock, seccomp
def can(what):
    try:
        what(); return True
    except OSError as error:
        assert error.errno in (1, 13), error
        return False
def write(path):
    with open(path, "w") as file: file.write("x")
def bind():
    with socket.socket() as s: s.bind(("127.0.0.1", 0))
def trials(base):
    return {
        "granted": can(lambda: open(base + "/in/file").read()),
        "single": can(lambda: open(base + "/one").read()),
        "outside": can(lambda: open(base + "/two").read()),
        "list": can(lambda: os.listdir(base)),
        "write": can(lambda: write(base + "/in/new")),
        "write outside": can(lambda: write(base + "/three")),
        "unlink outside": can(lambda: os.unlink(base + "/victim")),
        "truncate": can(lambda: os.truncate(base + "/two", 0)),
        "bind": can(bind),
        "signal": can(lambda: os.kill(os.getppid(), 0)),
        "secret": can(lambda: open("/etc/passwd").read()),
    }
seccomp.no_new_privileges()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "place"
    (place / "in").mkdir(parents=True)
    for name in ("in/file", "one", "two", "victim"):
        (place / name).write_text("content")
        (place / name).chmod(0o666)
    for directory in (place, place / "in", *list(place.parents)[:3]):
        directory.chmod(0o777)
    return place


def attributes(version: int) -> tuple[int, ...]:
    data = landlock.attributes(version)
    return struct.unpack(f"={len(data) // 8}Q", data)


def test_the_request_grows_with_the_version() -> None:
    assert [attributes(version) for version in (1, 2, 3, 4, 5, 6, 7, 8)] == [
        (0x1FFF,), (0x3FFF,), (0x7FFF,), (0x7FFF, 3), (0xFFFF, 3), (0xFFFF, 3, 3), (0xFFFF, 3, 3), (0xFFFF, 3, 3),
    ]  # fmt: skip


@needed
@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_but_the_grants_remains(place: Path, version: int) -> None:
    """As an older kernel would do it: what that one does not know stays possible, and nothing fails."""
    result = run_python(
        f"""
        base = {str(place)!r}
        grants = [landlock.Grant(base + "/in", landlock.EVERYTHING), landlock.Grant(base + "/one", landlock.READ),
                  landlock.Grant(base + "/gone", landlock.READ)]
        used = landlock.restrict(grants, version={version})
        result = dict(trials(base), used=used)
        """,
        TRY,
    )
    assert result == {
        "granted": True, "single": True, "outside": False, "list": False, "write": True, "write outside": False,
        "unlink outside": False, "secret": False, "used": version,
        "truncate": version < 3, "bind": version < 4, "signal": version < 6,
    }  # fmt: skip


@needed
@root
def test_the_same_for_an_ordinary_user(place: Path) -> None:
    code = f"""
        base = {str(place)!r}
        used = landlock.restrict([landlock.Grant(base + "/in", landlock.READ)])
        result = dict(trials(base), uid=os.getuid())
    """
    result = run_python(code, AS_NOBODY, TRY)
    assert result["uid"] == 65534
    assert [name for name, worked in result.items() if worked is True] == ["granted"]


@linux
def test_without_landlock_nothing_is_taken_and_the_answer_says_so(place: Path) -> None:
    code = f"""
        base = {str(place)!r}
        result = [landlock.abi(), landlock.restrict([]), trials(base)["outside"]]
    """
    assert run_python(code, NO_LANDLOCK, TRY) == [0, 0, True]
