"""Static libraries as ar writes them, and damaged ones."""

from __future__ import annotations

import subprocess
from contextlib import suppress

import pytest
from buildkit import frontend
from hypothesis import given
from hypothesis import strategies as st

from visget.errors import FormatError
from visget.toolchain.archives import is_archive, read_archive


def ar(directory, *arguments):
    subprocess.run([frontend().command[0], "ar", *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def files(tmp_path):
    for name, text in {"a.o": b"one", "b.o": b"three!", "a-name-of-more-than-sixteen.o": b"long"}.items():
        (tmp_path / name).write_bytes(text)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.o").write_bytes(b"another a")
    return tmp_path


def members(path):
    return [(member.name, member.data) for member in read_archive(path)]


ALL = [("a.o", b"one"), ("b.o", b"three!"), ("a-name-of-more-than-sixteen.o", b"long"), ("a.o", b"another a")]
NAMES = ["a.o", "b.o", "a-name-of-more-than-sixteen.o", "sub/a.o"]


@pytest.mark.parametrize("flags", ["rcs", "cru", "cr", "-rc", "rcsD"])
def test_members_keep_their_order(files, flags):
    ar(files, flags, "x.a", *NAMES[:3])
    assert members(files / "x.a") == ALL[:3]


@pytest.mark.parametrize("flags", ["qc", "qcS"])
def test_members_may_share_a_name(files, flags):
    ar(files, flags, "x.a", *NAMES)
    assert members(files / "x.a") == ALL
    assert read_archive(files / "x.a")[3].origin.endswith("x.a(a.o)")


def test_a_thin_archive_names_files(files):
    ar(files, "qcsT", "x.a", *NAMES)
    assert (files / "x.a").read_bytes().startswith(b"!<thin>\n")
    assert [data for _, data in members(files / "x.a")] == [data for _, data in ALL]
    (files / "b.o").unlink()
    with pytest.raises(FormatError, match=r"thin archive .*b\.o"):
        read_archive(files / "x.a")


def test_the_names_of_bsd(tmp_path):
    name = b"from bsd.o\0\0"
    header = b"%-16s%-12s%-6s%-6s%-8s%-10d`\n" % (b"#1/12", b"0", b"0", b"0", b"644", len(name) + 4)
    (tmp_path / "x.a").write_bytes(b"!<arch>\n" + header + name + b"data")
    assert members(tmp_path / "x.a") == [("from bsd.o", b"data")]


def test_an_empty_archive(tmp_path):
    (tmp_path / "x.a").write_bytes(b"!<arch>\n")
    assert read_archive(tmp_path / "x.a") == []
    assert is_archive(b"!<arch>\n")


def test_what_is_no_archive(tmp_path):
    (tmp_path / "x.a").write_bytes(b"BC\xc0\xde")
    with pytest.raises(FormatError, match="not a static library"):
        read_archive(tmp_path / "x.a")
    with pytest.raises(FormatError, match="cannot read"):
        read_archive(tmp_path / "missing.a")


@given(st.data())
def test_damage_is_an_error_or_harmless(tmp_path_factory, data):
    directory = tmp_path_factory.mktemp("damaged")
    (directory / "a.o").write_bytes(b"12345")
    ar(directory, "rcs", "x.a", "a.o")
    whole = bytearray((directory / "x.a").read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255))
    (directory / "x.a").write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    with suppress(FormatError):
        read_archive(directory / "x.a")
