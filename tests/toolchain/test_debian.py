from __future__ import annotations

import pytest

from visget.errors import UnsupportedError
from visget.toolchain import debian
from visget.toolchain.debian import Place, dsc_name, find_places, parse_targets


@pytest.mark.parametrize(
    ("source", "path"), [("zlib", "z/zlib"), ("libpng", "libp/libpng"), ("lib", "l/lib"), ("libx", "libx/libx")]
)
def test_files_lie_in_the_pool(source: str, path: str) -> None:
    place = Place(mirror="http://mirror.example/debian/", component="main")
    assert place.url(source, "x_1~2+3.dsc") == f"http://mirror.example/debian/pool/main/{path}/x_1~2+3.dsc"


@pytest.mark.parametrize(
    ("version", "name"), [("1:1.2-3", "x_1.2-3.dsc"), ("1.2~rc1+b-3", "x_1.2~rc1+b-3.dsc"), ("2", "x_2.dsc")]
)
def test_the_epoch_is_no_part_of_file_names(version: str, name: str) -> None:
    assert dsc_name("x", version) == name


def test_reads_apt_targets() -> None:
    text = "http://a.example/debian/ main\nhttp://a.example/debian/ non-free\nfile:/srv/ main\nhttp://b.example/flat \n"
    assert [(place.mirror, place.component) for place in parse_targets(text)] == [
        ("http://a.example/debian/", "main"),
        ("http://a.example/debian/", "non-free"),
    ]


def test_without_apt_the_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian.shutil, "which", lambda name: None)
    with pytest.raises(UnsupportedError) as caught:
        find_places(None)
    assert "debian-mirror" in str(caught.value.hint)
    assert find_places("http://a.example")[0].mirror == "http://a.example"
