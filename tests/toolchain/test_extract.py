from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from visget.errors import FormatError, ResourceError
from visget.toolchain.extract import ExtractLimits, extract

Entry = tuple[str, bytes | str, bytes]  # name, content or link target, tar type


def tar(*entries: Entry, mode: int = 0o644) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content, kind in entries:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.mode = mode
            if isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content
                archive.addfile(info)
    return stream.getvalue()


def regular(name: str, content: bytes = b"x") -> Entry:
    return name, content, tarfile.REGTYPE


def symlink(name: str, target: str) -> Entry:
    return name, target, tarfile.SYMTYPE


def hardlink(name: str, target: str) -> Entry:
    return name, target, tarfile.LNKTYPE


def unpack(
    directory: Path, data: bytes, limits: ExtractLimits | None = None
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files that came out, and what was skipped; check that nothing else was made anywhere."""
    archive = directory / "in" / "a"
    archive.parent.mkdir()
    archive.write_bytes(data)
    result = extract(archive, directory / "out" / "tree", limits=limits)
    assert [path.name for path in (directory / "out").iterdir()] == ["tree"]
    files = {}
    for path in (directory / "out" / "tree").rglob("*"):
        kind = path.lstat().st_mode
        assert stat.S_ISREG(kind) or stat.S_ISDIR(kind)
        assert not kind & (stat.S_ISUID | stat.S_ISGID | stat.S_IWOTH)
        if stat.S_ISREG(kind):
            files[path.relative_to(directory / "out" / "tree").as_posix()] = path.read_bytes()
    assert len(files) == result.files
    return files, result.skipped


PLAIN = tar(("top", b"", tarfile.DIRTYPE), regular("top/a.c", b"int a;"), regular("top/b/c.h", b"int c;"))


def zipped(*entries: tuple[str, bytes], attributes: int = 0) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = attributes
            archive.writestr(info, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "pack",
    [lambda data: data, gzip.compress, bz2.compress, lzma.compress, zstandard.compress],
    ids=["tar", "gz", "bz2", "xz", "zst"],
)
def test_unpacks_tar_in_every_packing(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    files, skipped = unpack(tmp_path, pack(PLAIN))
    assert files == {"a.c": b"int a;", "b/c.h": b"int c;"}
    assert skipped == ()


def test_unpacks_zip(tmp_path: Path) -> None:
    files, _ = unpack(tmp_path, zipped(("top/", b""), ("top/a.c", b"int a;"), ("top/b/c.h", b"")))
    assert files == {"a.c": b"int a;", "b/c.h": b""}


def test_keeps_the_top_when_there_are_several(tmp_path: Path) -> None:
    files, _ = unpack(tmp_path, tar(regular("a/x"), regular("./b//y")))
    assert set(files) == {"a/x", "b/y"}


@pytest.mark.parametrize(
    "name",
    ["/etc/x", "../x", "a/../../x", "a/..", "a\\..\\x", "a\x1b[31m", "/".join("d" * 70), "n" * 300, "a/" * 600 + "x"],
)
def test_refuses_names_that_lead_astray(tmp_path: Path, name: str) -> None:
    for data in (tar(regular("top/ok"), regular(name)), zipped(("top/ok", b""), (name, b""))):
        directory = tmp_path / str(len(list(tmp_path.iterdir())))
        directory.mkdir()
        if "\\" in name and data.startswith(b"PK"):
            continue  # zipfile itself turns backslashes round on some systems
        with pytest.raises(FormatError):
            unpack(directory, data)
        assert list((directory / "out").iterdir()) == []


def test_links_inside_become_copies(tmp_path: Path) -> None:
    files, skipped = unpack(
        tmp_path,
        tar(
            symlink("t/early", "real"),
            regular("t/real", b"data"),
            symlink("t/sub/up", "../real"),
            symlink("t/chain", "early"),
            hardlink("t/hard", "t/real"),
        ),
    )
    assert files == dict.fromkeys(["real", "early", "sub/up", "chain", "hard"], b"data")
    assert skipped == ()


@pytest.mark.parametrize(
    "link",
    [
        symlink("t/l", "/etc/passwd"),
        symlink("t/l", "../../x"),
        symlink("t/l", "missing"),
        symlink("t/l", "d"),
        symlink("t/l", "l"),
        hardlink("t/l", "/etc/passwd"),
        hardlink("t/l", "../x"),
        ("t/l", b"", tarfile.FIFOTYPE),
        ("t/l", b"", tarfile.CHRTYPE),
    ],
)
def test_other_links_and_devices_are_left_out(tmp_path: Path, link: Entry) -> None:
    files, skipped = unpack(tmp_path, tar(regular("t/d/ok"), link))
    assert set(files) == {"d/ok"} or set(files) == {"ok"}
    assert skipped == ("t/l",)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    files, _ = unpack(tmp_path, tar(symlink("t/d", str(outside)), regular("t/d/x"), regular("t/y")))
    assert set(files) == {"d/x", "y"}
    assert list(outside.iterdir()) == []


def test_a_zip_link_is_no_file(tmp_path: Path) -> None:
    data = zipped(("t/l", b"/etc/passwd"), attributes=(stat.S_IFLNK | 0o777) << 16)
    with pytest.raises(FormatError, match="no files"):
        unpack(tmp_path, data)


@pytest.mark.parametrize(
    "entries", [[regular("a"), regular("a")], [regular("a"), regular("a/b")], [regular("a/b"), regular("a")]]
)
def test_refuses_one_name_for_two_things(tmp_path: Path, entries: list[Entry]) -> None:
    with pytest.raises(FormatError, match=r"twice|as a file and as a directory"):
        unpack(tmp_path, tar(*entries))


def test_set_user_id_is_dropped(tmp_path: Path) -> None:
    unpack(tmp_path, tar(regular("t/a"), regular("t/b"), mode=0o4777))
    assert (tmp_path / "out" / "tree" / "a").stat().st_mode & 0o7777 == 0o644 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(tar(regular("t/bomb", bytes(2 << 20)))),
        zipped(("t/bomb", bytes(2 << 20))),
        gzip.compress(bytes(1024) + tar(*[(f"t/{n}", b"", tarfile.DIRTYPE) for n in range(3000)])),
    ],
    ids=["gz", "zip", "headers"],
)
def test_stops_at_the_size_limit(tmp_path: Path, data: bytes) -> None:
    with pytest.raises((ResourceError, FormatError)):
        unpack(tmp_path, data, ExtractLimits(size=1 << 20))
    assert list((tmp_path / "out").iterdir()) == []


def test_stops_at_the_member_limit(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="more than 10 entries"):
        unpack(tmp_path, tar(*[regular(f"t/{n}") for n in range(11)]), ExtractLimits(members=10))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
@pytest.mark.parametrize("part", [0.3, 0.9])
def test_a_truncated_archive_is_damaged(tmp_path: Path, pack: Callable[[bytes], bytes], part: float) -> None:
    whole = pack(tar(regular("t/a", os.urandom(100_000)), regular("t/b", os.urandom(100_000))))
    with pytest.raises(FormatError):
        unpack(tmp_path, whole[: int(len(whole) * part)])
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"<html>", b"\x1f\x8b garbage", b"PK\x03\x04 garbage", gzip.compress(b"no tar")])
def test_refuses_what_is_no_archive(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(FormatError):
        unpack(tmp_path, data)


def test_a_damaged_zip_member_is_told(tmp_path: Path) -> None:
    data = bytearray(zipped(("t/a", os.urandom(1000))))
    data[200] ^= 1
    with pytest.raises(FormatError, match="damaged"):
        unpack(tmp_path, bytes(data))


def test_never_overwrites(tmp_path: Path) -> None:
    archive = tmp_path / "a"
    archive.write_bytes(PLAIN)
    (tmp_path / "tree").mkdir()
    with pytest.raises(ResourceError, match="exists"):
        extract(archive, tmp_path / "tree")
