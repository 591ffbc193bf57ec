"""Row 23: names that are taken for another, names nobody may have, and versions that were withdrawn.

What a name may be at all is row 11; a registry of other shape than this (a server) answers 409 and 422 to the same.
"""

from dataclasses import replace

import pytest
from badkit import TOML, Place, key_file, publish_tiny, write_project
from packagekit import key
from rowkit import copy_of, parts_of, put_together, refused, with_section

from visget.errors import EXIT_REFUSED, EXIT_REGISTRY, EXIT_TRUST, EXIT_USAGE


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    """tiny 1.0 and, of the same author, zlib 1.0."""
    place = publish_tiny(tmp_path_factory.mktemp("names"))
    assert place.run("publish", renamed(place, "zlib")).code == 0
    key_file(place.config / "keys" / "stranger.key", "stranger")
    return place


@pytest.fixture
def place(tmp_path, published) -> Place:
    copy = copy_of(published, tmp_path)
    (tmp_path / "project" / "dist").mkdir(parents=True)
    (tmp_path / "project" / "dist" / "tiny-1.0.vis").write_bytes(built(published))
    return copy


def built(place: Place) -> bytes:
    return (place.root / "project" / "dist" / "tiny-1.0.vis").read_bytes()


def renamed(place: Place, name: str):
    """A file with the package tiny under another name, well-formed otherwise."""
    manifest, parts = parts_of(built(place))
    path = place.root / "renamed.vis"
    path.write_bytes(put_together(replace(manifest, name=name), parts))
    return path


ALIKE = ["z-lib", "zl1b", "zllb", "z1ib", "z1lb", "z1-1b"]
NOT_ASCII = ["zl\u0131b", "\uff5alib", "z\u200blib", "z\u2010lib", "\u017elib", "z\u0142ib", "zl\u0456b"]


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("who", ["default", "stranger"])
def test_row_23_a_name_that_looks_like_one_that_exists(place, name, who):
    says = f"the name '{name}' is too similar to 'zlib'"
    refused(place, "publish", renamed(place, name), "--key", who, codes=(EXIT_REGISTRY,), says=says)


@pytest.mark.parametrize("name", ["Zlib", "ZLIB", "z_lib", "z.lib", "z--lib", *NOT_ASCII])
def test_row_23_another_spelling_is_no_name(place, name, tmp_path):
    refused(place, "publish", renamed(place, name), codes=(EXIT_REFUSED,), says="name")
    project = write_project(tmp_path / "source", toml=TOML.format(version="1.0").replace('"tiny"', f'"{name}"'))
    refused(place, "build", project, codes=(EXIT_USAGE,), says="package.name")
    refused(place, "install", name, codes=(EXIT_USAGE,))


@pytest.mark.parametrize("name", ["con", "nul", "prn", "aux", "com1", "lpt9"])
def test_row_23_names_that_are_reserved(place, name, tmp_path):
    refused(place, "publish", renamed(place, name), codes=(EXIT_REFUSED,), says="reserved")
    project = write_project(tmp_path / "source", toml=TOML.format(version="1.0").replace('"tiny"', f'"{name}"'))
    refused(place, "build", project, codes=(EXIT_USAGE,), says="reserved")


def test_row_23_a_name_that_only_resembles_is_free(place):
    for name in ("zlibs", "xlib", "zlib-ng", "lib"):
        outcome = place.run("publish", renamed(place, name), "--key", "stranger")
        assert outcome.code == 0, outcome


def test_row_23_a_name_that_belongs_to_somebody(place):
    other = with_section(renamed(place, "zlib").read_bytes(), "license", b"Another licence\n")
    path = place.root / "other.vis"
    manifest, parts = parts_of(other)
    path.write_bytes(put_together(replace(manifest, version="2.0"), parts))
    refused(place, "publish", path, "--key", "stranger", codes=(EXIT_TRUST,), says=key("stranger").public.id)
    assert place.run("publish", path).code == 0


def test_row_23_a_withdrawn_version_is_never_replaced(place):
    """Nothing of a registry is ever free again: neither the version nor the name."""
    assert place.run("yank", "zlib==1.0", "--reason", "broken").code == 0
    other = place.root / "other.vis"
    other.write_bytes(with_section(renamed(place, "zlib").read_bytes(), "license", b"Another licence\n"))
    says = "zlib 1.0 is already published with other content"
    refused(place, "publish", other, codes=(EXIT_REGISTRY,), says=says)
    refused(place, "publish", other, "--key", "stranger", codes=(EXIT_TRUST,))
    again = place.run("publish", renamed(place, "zlib"))
    assert again.code == 0
    assert "already published" in again.out
    refused(place, "publish", renamed(place, "zl1b"), codes=(EXIT_REGISTRY,), says="too similar")
    assert "broken" in place.run("install", "zlib==1.0").err, "the same bytes again do not bring it back"
