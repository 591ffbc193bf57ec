"""Row 2: a package that is cut, lengthened, or whose sections are not exactly one zstd frame each.

First as damage on the way, then with the signature of an author whose tools are hostile: his word does not make a
malformed container well. The reader's table of malformed containers is tests/conformance/container.
"""

import pytest
from badkit import Place, overwrite, plant, publish_tiny
from formatkit import frame
from packagekit import key
from rowkit import copy_of, offer, parts_of, put_together, refused, with_section

from visget.errors import EXIT_REFUSED, EXIT_REGISTRY, EXIT_TRUST, FormatError, TrustError, UnsupportedError
from visget.format.package import open_package, verify_package
from visget.format.signing import parse_key_id

SKIPPABLE = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"skip"


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    return publish_tiny(tmp_path_factory.mktemp("cuts"))


@pytest.fixture
def place(tmp_path, published) -> Place:
    return copy_of(published, tmp_path)


@pytest.mark.parametrize("suffix", [".vis", ".dsse"])
def test_row_02_cut_on_the_way(place, suffix):
    path = place.blob(suffix)
    data = path.read_bytes()
    for part in range(0, 64, 7):
        cut = len(data) * part // 64
        overwrite(path, data[:cut])
        says = f"it has {cut} bytes" if suffix == ".vis" else "nothing of it was used"
        refused(place, "install", "tiny", codes=(EXIT_TRUST,), says=says)


@pytest.mark.parametrize("suffix", [".vis", ".dsse"])
@pytest.mark.parametrize("tail", [b"\0", b"\n", b"(\xb5/\xfd", SKIPPABLE])
def test_row_02_lengthened_on_the_way(place, suffix, tail):
    path = place.blob(suffix)
    overwrite(path, path.read_bytes() + tail)
    # A reader stops at the signed size, and does not look what the rest would have been.
    refused(place, "install", "tiny", codes=(EXIT_REGISTRY,), says="more than")


def test_row_02_cut_at_every_64th_but_listed_by_the_registry(place):
    data = place.blob().read_bytes()
    for part in range(1, 64, 9):
        plant(place.registry, vis=data[: len(data) * part // 64])
        refused(place, "install", "tiny", codes=(EXIT_REFUSED,))


def test_row_02_at_every_byte(published):
    data, envelope = published.blob().read_bytes(), published.blob(".dsse").read_bytes()
    keys = [parse_key_id(key("author").public.id)]

    def accepted(data: bytes, envelope: bytes) -> bool:
        try:
            verify_package(open_package(data), envelope, keys)
        except (TrustError, FormatError, UnsupportedError) as error:
            return not error.message
        return True

    assert accepted(data, envelope)
    assert [at for at in range(len(data)) if accepted(data[:at], envelope)] == []
    assert [at for at in range(len(envelope)) if accepted(data, envelope[:at])] == []
    for tail in (b"\0", b" ", data, SKIPPABLE):
        assert not accepted(data + tail, envelope)
        assert not accepted(data, envelope + tail.strip() + b"x")


# name: what the hostile author makes of the good frame of the module, and its content
FRAMES = {
    "two frames": lambda content: frame(content[:100]) + frame(content[100:]),
    "an empty second frame": lambda content: frame(content) + frame(b""),
    "a skippable frame first": lambda content: SKIPPABLE + frame(content),
    "a skippable frame last": lambda content: frame(content) + SKIPPABLE,
    "a byte behind the frame": lambda content: frame(content) + b"\0",
    "a frame that is cut": lambda content: frame(content)[:-1],
    "no frame": lambda content: content,
    "no checksum": lambda content: frame(content, write_checksum=False),
    "no content size": lambda content: frame(content, write_content_size=False),
    "nothing": lambda content: b"\x28\xb5\x2f\xfd",
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("section", ["bitcode", "api"])
def test_row_02_frames_that_the_author_signed(place, kind, section):
    data = place.blob().read_bytes()
    content = open_package(data).section(section)
    offer(place, with_section(data, section, content, FRAMES[kind](content)))
    refused(place, "install", "tiny", codes=(EXIT_REFUSED,), says=section)


def test_row_02_containers_that_the_author_signed(place):
    data = place.blob().read_bytes()
    manifest, parts = parts_of(data)
    assert open_package(put_together(manifest, parts)).data == data
    (first, *_) = parts
    lost = {kind: part for kind, part in parts.items() if kind != first}
    for bad in (
        put_together(manifest, parts, b"\0"), put_together(manifest, parts, b"\0" * 4096), data[:-1], data[:12],
        data[:11], put_together(manifest, lost), put_together(manifest, parts, length=1), b"VISPKG1\r\n" + data[8:],
        put_together(manifest, parts, length=(1 << 32) - 1),
    ):  # fmt: skip
        offer(place, bad)
        refused(place, "install", "tiny", codes=(EXIT_REFUSED,))
    offer(place, data)
    assert place.run("install", "tiny").code == 0
