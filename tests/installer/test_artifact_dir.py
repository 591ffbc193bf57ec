"""Artifact directories: complete, relocatable, and never in the place of what is somebody else's."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from depkit import Workshop, base, middle, top
from native_code import cross_compile, qemu

from visget.digest import digest_bytes
from visget.errors import CacheError, UsageError
from visget.installer.artifact_dir import LIST_FILE, read_directory, write_directory
from visget.installer.detect import host_target
from visget.installer.linkers import find_linker
from visget.installer.target import baseline


def shop_for(tmp_path, target):
    linker = find_linker("auto", target)
    if linker is None:
        pytest.skip("there is no linker")
    return Workshop(tmp_path / "shop", target, linker)


@pytest.fixture
def shop(tmp_path):
    return shop_for(tmp_path, host_target())


def both(shop):
    """The artifact of `top`, which needs `base` and `middle`, and `middle` needs `base`."""
    first = shop.dependency(base())
    second = shop.dependency(middle(), base())
    return shop.link(top(), first, second)


def everything(place):
    return {path.relative_to(place).as_posix() for path in place.rglob("*") if not path.is_dir()}


def test_it_holds_the_library_and_all_that_it_needs(shop, tmp_path):
    entry = both(shop)
    made = write_directory(entry, shop.store, tmp_path / "out")
    place = tmp_path / "out"
    files = everything(place)
    assert files == {*made.files, LIST_FILE}
    assert {"lib/libtop.so", "lib/libtop.a", "include/top.h", "include/base.h", "include/middle.h",
            "lib/pkgconfig/top.pc", "lib/pkgconfig/base.pc", "receipt.json", "api.json",
            "share/visget/base/receipt.json", "share/visget/middle/api.json"} <= files  # fmt: skip
    assert not any("entry.json" in path for path in files)
    assert made.packages == ("base 1.0", "middle 1.0")
    for path, digest in made.files.items():
        assert digest_bytes((place / path).read_bytes()) == digest, path
    assert read_directory(place) == made


def test_no_document_leads_out_of_it(shop, tmp_path):
    entry = both(shop)
    write_directory(entry, shop.store, tmp_path / "out")
    for path in sorted((tmp_path / "out").rglob("*")):
        if path.suffix in (".pc", ".cmake", ".h"):
            text = path.read_text()
            assert not re.search(r"[0-9a-f]{64}", text), path
            assert str(tmp_path) not in text, path
    assert str(tmp_path).encode() not in b"".join(p.read_bytes() for p in (tmp_path / "out/lib").glob("*.so"))


MAIN = """
#include "top.h"
int main(void) { return top_sum(10) == 41 ? 0 : 1; }
"""


@pytest.mark.cross
@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
@pytest.mark.parametrize("libc", ["gnu", pytest.param("musl", marks=pytest.mark.long)])
def test_a_program_is_linked_with_a_copy_and_runs(tmp_path, arch, libc):
    emulator = qemu(arch)
    shop = shop_for(tmp_path, baseline(arch, libc))
    made = write_directory(both(shop), shop.store, tmp_path / "out")
    copy = shutil.copytree(made.path, tmp_path / "elsewhere" / "copy")
    # Neither the store nor the first place is there any more.
    shop.store.root.rename(tmp_path / "gone")
    shutil.rmtree(made.path)
    (tmp_path / "main.c").write_text(MAIN)
    if libc == "gnu":
        sysroot = Path("/usr") / f"{arch}-linux-gnu"
        if emulator and not (sysroot / "lib/libc.so.6").exists():
            pytest.skip(f"no C library in {sysroot}")
        emulator += ["-L", str(sysroot)] if emulator else []
        # What the library needs is found beside it, without the program's help.
        more = [f"-L{copy}/lib", "-ltop", f"-Wl,-rpath,{copy}/lib", "-Wl,--allow-shlib-undefined"]
    else:
        more = ["-static", *(f"{copy}/lib/lib{name}.a" for name in ("top", "middle", "base"))]
    cross_compile(f"{arch}-linux-{libc}", tmp_path / "main.c", tmp_path / "main", f"-I{copy}/include", *more)
    done = subprocess.run([*emulator, "./main"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_another_place_is_refused_unless_it_is_the_same_package(shop, tmp_path):
    entry = shop.install(base())
    place = tmp_path / "out"
    write_directory(entry, shop.store, place)
    again = write_directory(entry, shop.store, place)
    assert everything(place) == {*again.files, LIST_FILE}
    other = shop.install(middle(), base())
    with pytest.raises(UsageError, match="holds an artifact of base, not of middle"):
        write_directory(other, shop.store, place)
    assert read_directory(place) == again
    assert write_directory(other, shop.store, place, force=True).name == "middle"
    assert not (place / "share/visget/middle").exists()


def test_what_others_put_there_is_never_lost_in_silence(shop, tmp_path):
    entry = shop.install(base())
    place = tmp_path / "out"
    write_directory(entry, shop.store, place)
    (place / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"did not write: notes\.txt"):
        write_directory(entry, shop.store, place)
    assert (place / "notes.txt").read_text() == "mine"
    write_directory(entry, shop.store, place, force=True)
    assert not (place / "notes.txt").exists()


@pytest.mark.parametrize("force", [False, True])
def test_a_directory_of_somebody_else_stays(shop, tmp_path, force):
    entry = shop.install(base())
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("all of it")
    with pytest.raises(UsageError, match="visget did not write it"):
        write_directory(entry, shop.store, mine, force=force)
    assert everything(mine) == {"thesis.txt"}
    link = tmp_path / "link"
    link.symlink_to(mine)
    with pytest.raises(UsageError, match="visget did not write it"):
        write_directory(entry, shop.store, link, force=force)
    (mine / LIST_FILE).write_text(json.dumps({"format": "visget-artifact-1"}))
    with pytest.raises(UsageError, match="visget did not write it"):
        write_directory(entry, shop.store, mine, force=force)
    with pytest.raises(UsageError, match="not a directory"):
        write_directory(entry, shop.store, tmp_path / "no" / "way", force=force)


def test_an_empty_directory_is_taken(shop, tmp_path):
    (tmp_path / "out").mkdir()
    write_directory(shop.install(base()), shop.store, tmp_path / "out")
    assert (tmp_path / "out/lib/libbase.so").is_file()


def test_a_failure_leaves_nothing(shop, tmp_path, monkeypatch):
    from visget.installer import artifact_dir

    place = tmp_path / "room" / "out"
    place.parent.mkdir()
    entry = shop.install(base())
    first = write_directory(entry, shop.store, place)
    written = []

    def failing(path, data, mode=0o644):
        written.append(path)
        if len(written) == 5:
            raise OSError(28, "No space left on device", str(path))
        path.write_bytes(data)

    monkeypatch.setattr(artifact_dir, "write_new", failing)
    with pytest.raises(Exception, match=r"(?i)no space"):
        write_directory(entry, shop.store, place)
    assert [path.name for path in place.parent.iterdir()] == ["out"]
    assert read_directory(place) == first


def test_an_artifact_that_is_gone_is_told(shop, tmp_path):
    entry = shop.install(middle(), base())
    shop.store.remove_native(entry.needs[0].key)
    with pytest.raises(CacheError, match="gone from the store"):
        write_directory(entry, shop.store, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_pkg_config_finds_it_there(shop, tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("there is no pkg-config")
    write_directory(both(shop), shop.store, tmp_path / "out")
    done = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "top"], capture_output=True, text=True, check=True,
        env={"PKG_CONFIG_PATH": str(tmp_path / "out/lib/pkgconfig"), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert "-ltop" in done.stdout
