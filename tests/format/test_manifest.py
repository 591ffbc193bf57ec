import json
from dataclasses import replace

import pytest
from formatkit import entry, manifest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from visget.digest import digest_bytes
from visget.errors import FormatError, UnsupportedError, UsageError
from visget.format.manifest import Manifest, Provenance, Use, check_supported, parse_license

symbols = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True)
lines = st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]), max_size=40)
digests = st.binary(max_size=4).map(digest_bytes)


@st.composite
def manifests(draw):
    exported = draw(st.sets(symbols, max_size=5))
    imported = draw(st.sets(symbols, max_size=5)) - exported
    used = sorted(draw(st.sets(symbols, max_size=3)) - exported - imported)
    dependencies = draw(st.sampled_from([(), ("lz4<2,>=1.9", "zlib"), ("zlib==1.3.*",)]))
    types = st.sampled_from(["i64 (i64, ptr, i32)", "ptr ()", "{ double, i8 } (...)", "[2 x i8] (%struct.a, <2 x i8>)"])
    return Manifest(
        name=draw(st.sampled_from(["a", "png", "lz4-hc", "x265"])),
        version=Version(draw(st.from_regex(r"(1!)?[0-9]{1,3}(\.[0-9]{1,3}){0,3}(rc[1-9])?(\.post1)?", fullmatch=True))),
        summary=draw(lines),
        license=draw(st.sampled_from(["MIT", "BSD-2-Clause OR (MIT AND Zlib)", "LicenseRef-own"])),
        homepage=draw(st.none() | st.just("https://example.org/x?y#z")),
        profile=draw(st.sampled_from(["vis-1", "vis-2", "vis-999"])),
        epoch=draw(st.integers(1, 999)),
        exports=tuple(sorted(exported)),
        imports=tuple(sorted(imported)),
        dependencies=dependencies,
        platform=draw(st.sampled_from([1, 2, 999])),
        library=draw(st.sampled_from([None, "z", "png16", "c++_1.2-x"])),
        uses=(Use(package="zlib", symbols=tuple((n, draw(types)) for n in used)),) if used and dependencies else (),
        fp_contract=draw(st.sampled_from(["off", "on", "fast"])),
        constructors=draw(st.booleans()),
        cleanup=draw(st.sampled_from(["light", "none"])),
        provenance=Provenance(
            compiler=draw(lines), flags=tuple(draw(st.lists(lines, max_size=3))), source_digest=draw(digests),
            source=draw(st.none() | lines),
        ),
        sections=tuple(
            entry(kind, b"x" * draw(st.integers(1, 9)), b"y") for kind in draw(st.lists(symbols.map(str.lower).filter(
                lambda kind: "_" not in kind), unique=True, max_size=4))
        ),
    )  # fmt: skip


@given(manifests())
def test_round_trip(value):
    assert Manifest.parse(value.encode()) == value
    assert Manifest.parse(value.encode()).encode() == value.encode()


@given(manifests(), st.data())
def test_one_changed_byte_is_another_manifest_or_refused(value, data):
    encoded = value.encode()
    place = data.draw(st.integers(0, len(encoded) - 1))
    changed = bytearray(encoded)
    changed[place] ^= data.draw(st.integers(1, 255))
    try:
        parsed = Manifest.parse(bytes(changed))
    except (FormatError, UnsupportedError):
        return
    # Case inside an escape such as \u00e9 is the only freedom that JSON leaves here.
    assert parsed != value or changed.lower() == bytearray(encoded).lower()


def changed(**changes):
    return json.dumps(json.loads(manifest().encode()) | changes).encode()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "zlib\n"),
        ("name", "z" * 65),
        ("version", "v1.0"),
        ("version", "01.0"),
        ("version", "1.0-1"),
        ("version", "1" * 200),
        ("summary", "two\nlines"),
        ("summary", "x" * 201),
        ("summary", None),
        ("license", ""),
        ("license", "MIT\x00"),
        ("license", "x" * 257),
        ("homepage", "javascript:alert(1)"),
        ("homepage", "https://exa mple.org"),
        ("homepage", "https://bücher.example"),
        ("profile", "vis-01"),
        ("profile", "wasm"),
        ("epoch", 0),
        ("epoch", 1000),
        ("exports", ["a", "a"]),
        ("exports", ["\x01x"]),
        ("exports", ["a" * 257]),
        ("exports", "ab"),
        ("imports", [1]),
        ("dependencies", ["zlib", "lz4"]),
        ("dependencies", ["zlib", "zlib>1"]),
        ("dependencies", ["zlib >1"]),
        ("dependencies", ["Zlib"]),
        ("dependencies", ["zlib=>1"]),
        ("fp_contract", "contract"),
        ("constructors", "no"),
        ("cleanup", "heavy"),
        ("provenance", {}),
        ("sections", {}),
        ("sections", [{}]),
        ("format", "visget-manifest"),
        ("format", 1),
    ],
)
def test_refuses(key, value):
    with pytest.raises(FormatError, match=r"^manifest"):
        Manifest.parse(changed(**{key: value}))


@pytest.mark.parametrize("name", json.loads(manifest().encode()))
def test_every_key_is_needed(name):
    value = json.loads(manifest().encode())
    del value[name]
    with pytest.raises(FormatError, match=f"lacks the key '{name}'"):
        Manifest.parse(json.dumps(value).encode())


NEEDS = {"dependencies": ["lz4", "zlib"]}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"platform": 1}, "outside 2 to 999"),
        ({"platform": None}, "must be an integer"),
        ({"library": "adder"}, "left out"),
        ({"library": "a/b"}, "must be a name as after -l"),
        ({"library": "c"}, "a library of the system"),
        ({"library": None}, "must be a string"),
        (NEEDS | {"uses": {}}, "left out"),
        (NEEDS | {"uses": {"zlib": {}}}, "left out"),
        (NEEDS | {"uses": {"zlib": {"crc32": "i64"}}}, "must be the LLVM type of a function"),
        (NEEDS | {"uses": {"zlib": {"crc32": "i64 (i64)\x1b)"}}}, "control character"),
        (NEEDS | {"uses": {"zlib": {"crc.32": "i64 ()"}}}, "C identifiers"),
        (NEEDS | {"uses": {"png": {"crc32": "i64 ()"}}}, "not among the dependencies"),
        ({"name": "own", "dependencies": ["own>=1"]}, "names the package itself"),
        ({"uses": {"zlib": {"crc32": "i64 ()"}}}, "not among the dependencies"),
        (NEEDS | {"uses": {"zlib": {"f": "i64 ()"}, "lz4": {"f": "i64 ()"}}}, "of lz4 and of zlib"),
        (NEEDS | {"uses": {"zlib": {"add": "i64 ()"}}}, "among the exports or the imports"),
    ],
)
def test_refuses_what_is_said_of_dependencies(changes, why):
    with pytest.raises(FormatError, match=why):
        Manifest.parse(changed(**changes))


def test_a_manifest_that_says_the_defaults_has_the_bytes_of_one_that_knows_no_such_keys():
    assert manifest(platform=1, library="adder", uses=()).encode() == manifest().encode()
    assert not {"platform", "library", "uses"} & json.loads(manifest().encode()).keys()
    assert manifest(library="z").link_name == "z"
    assert manifest().link_name == "adder"


@pytest.mark.parametrize(
    "changes",
    [{"size": 0}, {"stored_size": 0}, {"kind": "A"}, {"kind": "a" * 33}, {"size": 2**53 + 1}, {"sha256": "A" * 64}],
)
def test_refuses_sections(changes):
    value = replace(manifest(), sections=(replace(entry("bitcode", b"x", b"y"), **changes),))
    with pytest.raises(FormatError):
        Manifest.parse(value.encode())


def test_too_many_sections():
    value = replace(manifest(), sections=tuple(entry(f"s{n}", b"x", b"y") for n in range(65)))
    with pytest.raises(FormatError, match="more than 64"):
        Manifest.parse(value.encode())


def test_later_formats_ask_for_a_newer_visget():
    with pytest.raises(UnsupportedError) as caught:
        Manifest.parse(changed(format="visget-manifest-2"))
    assert "pip install -U visget" in caught.value.hint
    for value in (manifest(profile="vis-2"), manifest(epoch=23), manifest(platform=3)):
        with pytest.raises(UnsupportedError, match=r"adder 1\.2\.3"):
            check_supported(value)
    check_supported(manifest(epoch=19, platform=2))


def test_licenses():
    assert parse_license("mit or apache-2.0") == "MIT OR Apache-2.0"
    with pytest.raises(UsageError, match="not an SPDX") as caught:
        parse_license("BSD")
    assert "BSD-2-Clause" in caught.value.hint
