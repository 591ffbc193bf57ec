import resource

import pytest
from formatkit import BITCODE, api, assemble, forge, frame, manifest, package_bytes, part, sections
from hypothesis import given, settings
from hypothesis import strategies as st

from visget.errors import FormatError, UnsupportedError
from visget.format.apijson import API_LIMIT
from visget.format.container import KINDS, read_container, write_container
from visget.format.headers import HEADERS_LIMIT
from visget.format.lines import LIMIT as LINES_LIMIT
from visget.format.module import BITCODE_LIMIT
from visget.format.vectorjson import VECTORS_LIMIT


def test_round_trip():
    content = sections(readme=b"x" * 100_000, headers=b"{}")
    container = read_container(write_container(manifest(), content))
    assert {kind: container.section(kind) for kind in container.stored} == content
    assert container.section("vectors") is None
    assert container.section("nonsense") is None


def test_layout_does_not_depend_on_the_order_given():
    content = sections()
    assert write_container(manifest(), dict(reversed(content.items()))) == write_container(manifest(), content)
    assert [entry.kind for entry in read_container(package_bytes()).manifest.sections] == ["bitcode", "api", "license"]


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=1, max_size=5000), st.binary(min_size=1, max_size=5000))
def test_any_content(bitcode, readme):
    container = read_container(write_container(manifest(), {"bitcode": bitcode, "api": b"{}", "readme": readme}))
    assert (container.section("bitcode"), container.section("readme")) == (bitcode, readme)


@pytest.mark.parametrize("size", [1, 1 << 17, (1 << 23) - 1, 1 << 23, (1 << 23) + 1, 20_000_000])
def test_sizes_around_the_window(size):
    content = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    assert read_container(package_bytes(bitcode=content)).section("bitcode") == content


def test_memoryview_is_as_good_as_bytes():
    assert read_container(memoryview(package_bytes())).section("bitcode") == BITCODE


def test_writer_refuses_what_a_reader_would():
    with pytest.raises(FormatError, match="no section api"):
        write_container(manifest(), {"bitcode": b"x"})
    with pytest.raises(FormatError, match="size is 0"):
        write_container(manifest(), sections(readme=b""))
    with pytest.raises(FormatError, match="summary"):
        write_container(manifest(summary="\x1b"), sections())
    with pytest.raises(FormatError, match="at most"):
        write_container(manifest(), sections(license=b"x" * ((1 << 20) + 1)))
    with pytest.raises(ValueError, match="surprise"):
        write_container(manifest(), sections(surprise=b"x"))


def test_unknown_sections():
    known = part("bitcode", BITCODE), part("api", api().encode())
    container = read_container(forge(*known, part("graph", b"x", b"not even zstd", critical=False)))
    assert container.unknown == ("graph",)
    assert container.section("graph") is None
    with pytest.raises(UnsupportedError, match="'graph'"):
        read_container(forge(*known, part("graph", b"x", critical=True)))


def test_caps_are_those_of_the_parsers():
    assert KINDS["api"].limit == API_LIMIT
    assert KINDS["headers"].limit == HEADERS_LIMIT
    assert KINDS["vectors"].limit == VECTORS_LIMIT
    assert KINDS["bitcode"].limit == BITCODE_LIMIT
    assert KINDS["lines"].limit == LINES_LIMIT


def test_what_is_handed_on_piece_by_piece_is_the_section():
    content = bytes(range(256)) * (1 << 17)
    container = read_container(package_bytes(bitcode=content))
    pieces = list(container.pieces("bitcode"))
    assert b"".join(pieces) == content
    assert max(len(piece) for piece in pieces) <= 8 << 20


def test_a_piece_is_wrong_only_before_an_error():
    damaged = part("bitcode", BITCODE, frame(BITCODE[:-1] + b"!"))
    pieces = read_container(forge(damaged, part("api", b"{}"))).pieces("bitcode")
    with pytest.raises(FormatError, match="does not have the digest"):
        list(pieces)


def test_every_truncation():
    data = package_bytes()
    for length in range(len(data)):
        with pytest.raises(FormatError):
            read_container(data[:length])


def test_an_honest_bomb_is_refused_by_its_size():
    bomb = part("bitcode", BITCODE, frame(bytes(1 << 28)), size=1 << 29)
    with pytest.raises(FormatError, match="claims 536870912 bytes"):
        read_container(forge(bomb, part("api", b"{}")))


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_a_lying_bomb_costs_little_memory():
    bomb = frame(bytes(1 << 28))
    # Bytes 6 to 9 are the content size (RFC 8878, section 3.1.1.1); 0x80: it has four bytes.
    assert bomb[4] & 0xE0 == 0x80
    lying = bomb[:6] + (10_000).to_bytes(4, "little") + bomb[10:]
    container = read_container(forge(part("bitcode", bytes(10_000), lying), part("api", b"{}")))
    before = peak()
    with pytest.raises(FormatError, match="bitcode"):
        container.section("bitcode")
    assert peak() - before < 32 << 10


def test_manifest_length_is_checked_before_it_is_believed():
    with pytest.raises(FormatError, match="claims 4294967295"):
        read_container(assemble(b"{}", length=2**32 - 1))


