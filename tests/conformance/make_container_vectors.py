"""Write the test vectors of docs/spec/container.md: run `python tests/conformance/make_container_vectors.py`.

Each case is NAME.bin, a file that claims to be a package, and NAME.json, what a reader must say about it:
{"valid": true, "manifest": {...}, "sections": {kind: digest}} or {"valid": false, "error": family, "at": "open" or the
kind of the section whose reading fails, "why": ...}.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))

from formatkit import BITCODE, api, assemble, forge, frame, manifest, package_bytes, part  # noqa: E402
from packaging.version import Version  # noqa: E402

from visget.digest import digest_bytes  # noqa: E402
from visget.format.container import MAGIC, read_container  # noqa: E402
from visget.format.manifest import Provenance, Use  # noqa: E402

API = api().encode()
GOOD = package_bytes()
(LENGTH,) = struct.unpack("<I", GOOD[8:12])
MANIFEST = GOOD[12 : 12 + LENGTH]
FRAMES = GOOD[12 + LENGTH :]


def good_parts():
    return part("bitcode", BITCODE), part("api", API)


def with_manifest(**changes: object) -> bytes:
    """The good package with some keys of its manifest replaced (or, for None, removed)."""
    value = json.loads(MANIFEST)
    for key, item in changes.items():
        if item is None:
            del value[key]
        else:
            value[key] = item
    return assemble(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), FRAMES)


def valid() -> Iterator[tuple[str, bytes]]:
    yield "minimal", forge(*good_parts())
    yield "usual", GOOD
    full = manifest(
        version=Version("2.0rc1"),
        homepage="https://example.org/adder",
        license="MIT OR Apache-2.0",
        imports=("malloc", "memcpy"),
        dependencies=("lz4<2,>=1.9", "zlib"),
        fp_contract="off",
        constructors=True,
        cleanup="none",
        provenance=Provenance(
            compiler="clang 22.1.8",
            flags=("-O2", "-std=gnu17"),
            source_digest=digest_bytes(b"archive"),
            source="pypi:adder==2.0rc1",
        ),
    )
    yield "full", package_bytes(full, headers=b'{"adder.h":"int add(int a, int b);\\n"}', readme="größer\n".encode())
    using = manifest(
        dependencies=("lz4<2,>=1.9", "zlib"), imports=("malloc",), platform=2, library="add+1.6",
        uses=(Use(package="zlib", symbols=(("crc32", "i64 (i64, ptr, i32)"), ("zlibVersion", "ptr ()"))),),
    )  # fmt: skip
    yield "with-dependencies", package_bytes(using)
    yield "other-order", forge(*reversed(good_parts()))
    yield "unknown-optional-section", forge(*good_parts(), part("graph", b"of the future", critical=False))
    yield "unknown-optional-section-not-zstd", forge(
        *good_parts(), part("graph", b"of the future", b"stored in another way", critical=False)
    )
    yield "manifest-not-canonical-json", assemble(json.dumps(json.loads(MANIFEST), indent=1).encode(), FRAMES)


def invalid() -> Iterator[tuple[str, bytes, str, str, str]]:
    one, two = good_parts()
    yield "empty", b"", "FormatError", "open", "no bytes"
    yield "other-magic", b"PK\x03\x04" + GOOD[4:], "FormatError", "open", "another magic"
    yield "magic-crlf", GOOD.replace(b"\n", b"\r\n", 1), "FormatError", "open", "damaged by a text-mode transfer"
    yield "later-container", b"VISPKG2\n" + GOOD[8:], "UnsupportedError", "open", "a later container format"
    yield "only-magic", MAGIC, "FormatError", "open", "ends within the header"
    yield "manifest-longer-than-file", GOOD[: 12 + LENGTH - 1], "FormatError", "open", "ends within the manifest"
    yield (
        "manifest-length-beyond-cap",
        assemble(MANIFEST, FRAMES, length=(1 << 20) + 1),
        "FormatError",
        "open",
        "a manifest of more than 1 MiB",
    )
    yield "manifest-length-big-endian", MAGIC + struct.pack(">I", LENGTH) + GOOD[12:], "FormatError", "open", "u32 LE"
    yield "truncated", GOOD[:-1], "FormatError", "open", "ends within the last section"
    yield "trailing-byte", GOOD + b"\0", "FormatError", "open", "a byte after the last section"
    yield "gap", forge(one, (two[0], b"\0" + two[1])), "FormatError", "open", "a byte between two sections"
    yield "json-duplicate-key", assemble(MANIFEST[:-1] + b',"epoch":22}', FRAMES), "FormatError", "open", "a key twice"
    yield "json-float", assemble(MANIFEST.replace(b":22,", b":22.0,"), FRAMES), "FormatError", "open", "a float"
    yield "json-bom", assemble(b"\xef\xbb\xbf" + MANIFEST, FRAMES), "FormatError", "open", "a byte order mark"
    yield "json-array", assemble(b"[" + MANIFEST + b"]", FRAMES), "FormatError", "open", "not an object"
    yield "json-trailing", assemble(MANIFEST + b"{}", FRAMES), "FormatError", "open", "two values"
    yield "manifest-unknown-key", with_manifest(surprise=1), "FormatError", "open", "a key the spec does not have"
    yield "manifest-missing-key", with_manifest(license=None), "FormatError", "open", "a key is missing"
    yield "manifest-name", with_manifest(name="Adder"), "FormatError", "open", "an upper-case name"
    yield "manifest-name-path", with_manifest(name="../adder"), "FormatError", "open", "a path as name"
    yield "manifest-name-device", with_manifest(name="con"), "FormatError", "open", "a device name"
    yield "manifest-version", with_manifest(version="1.2.3.0-1"), "FormatError", "open", "a version not in normal form"
    yield "manifest-summary-escape", with_manifest(summary="\x1b[2J"), "FormatError", "open", "a terminal escape"
    yield "manifest-summary-bidi", with_manifest(summary="a\u202eb"), "FormatError", "open", "a bidi override"
    yield "manifest-epoch-string", with_manifest(epoch="22"), "FormatError", "open", "a string for an integer"
    yield "manifest-integer-for-boolean", with_manifest(constructors=0), "FormatError", "open", "not a boolean"
    yield "manifest-exports-order", with_manifest(exports=["b", "a"]), "FormatError", "open", "exports not sorted"
    yield "manifest-exports-twice", with_manifest(exports=["a", "a"]), "FormatError", "open", "an export twice"
    yield "manifest-export-symbol", with_manifest(exports=["a.globl"]), "FormatError", "open", "not a C identifier"
    yield "manifest-import-export", with_manifest(imports=["add"]), "FormatError", "open", "exported and imported"
    short = json.loads(MANIFEST)["provenance"] | {"source_digest": "0" * 63}
    yield "manifest-digest", with_manifest(provenance=short), "FormatError", "open", "a digest of 63 digits"
    needs = {"dependencies": ["lz4", "zlib"]}
    for name, changes, why in (
        ("platform-1", {"platform": 1}, "the default is left out"),
        ("platform-string", {"platform": "2"}, "a string for an integer"),
        ("library-of-its-name", {"library": "adder"}, "the default is left out"),
        ("library-path", {"library": "../z"}, "a path after -l"),
        ("library-system", {"library": "gcc_s"}, "a library of the system after -l"),
        ("library-option", {"library": "-z"}, "an option after -l"),
        ("uses-nothing", needs | {"uses": {}}, "an object that says nothing"),
        ("uses-nothing-of-it", needs | {"uses": {"zlib": {}}}, "an object that says nothing"),
        ("uses-no-dependency", needs | {"uses": {"png": {"f": "i32 ()"}}}, "it is not among the dependencies"),
        ("uses-symbol", needs | {"uses": {"zlib": {"a.b": "i32 ()"}}}, "not a C identifier"),
        ("uses-type", needs | {"uses": {"zlib": {"f": "i32"}}}, "not the type of a function"),
        ("uses-type-newline", needs | {"uses": {"zlib": {"f": "i32 (\n)"}}}, "not the type of a function"),
        ("uses-twice", needs | {"uses": {"lz4": {"f": "i32 ()"}, "zlib": {"f": "i32 ()"}}}, "in two packages"),
        ("uses-export", needs | {"uses": {"zlib": {"add": "i32 ()"}}}, "a symbol that it exports"),
        ("uses-import", needs | {"imports": ["f"], "uses": {"zlib": {"f": "i32 ()"}}}, "a symbol of the C library"),
        ("uses-list", needs | {"uses": ["zlib"]}, "an array for an object"),
    ):
        yield f"manifest-{name}", with_manifest(**changes), "FormatError", "open", why
    yield "later-platform", with_manifest(platform=3), "UnsupportedError", "open", "a later platform interface"
    yield "later-manifest", with_manifest(format="visget-manifest-2"), "UnsupportedError", "open", "a later manifest"
    yield "later-profile", with_manifest(profile="vis-2"), "UnsupportedError", "open", "a later VIS profile"
    yield "later-epoch", with_manifest(epoch=23), "UnsupportedError", "open", "bitcode of a later LLVM"
    yield (
        "unknown-critical-section",
        forge(one, two, part("kernels", b"of the future", critical=True)),
        "UnsupportedError",
        "open",
        "a section that must be known",
    )
    yield "no-bitcode", forge(two), "FormatError", "open", "no section bitcode"
    yield "no-api", forge(one), "FormatError", "open", "no section api"
    yield "section-twice", forge(one, two, two), "FormatError", "open", "a kind twice"
    yield "section-kind-path", forge(one, two, part("../x", b"x")), "FormatError", "open", "a path as kind"
    yield "bitcode-optional", forge(part("bitcode", BITCODE, critical=False), two), "FormatError", "open", "wrong flag"
    yield "license-critical", forge(one, two, part("license", b"x", critical=True)), "FormatError", "open", "wrong flag"
    yield (
        "section-beyond-cap",
        forge(one, two, part("license", b"x", size=(1 << 20) + 1)),
        "FormatError",
        "open",
        "a licence of more than 1 MiB",
    )
    yield (
        "stored-beyond-cap",
        forge(one, two, part("license", b"x", frame(b"x") + bytes(2000))),
        "FormatError",
        "open",
        "more stored bytes than a good frame has",
    )
    damaged = part("bitcode", BITCODE, stored_sha256=digest_bytes(b""))
    yield "stored-digest", forge(damaged, two), "FormatError", "open", "the stored bytes have another digest"
    for name, (entry, stored), why in (
        ("size-too-large", part("bitcode", BITCODE, size=len(BITCODE) + 1), "the manifest says one byte more"),
        ("size-too-small", part("bitcode", BITCODE, size=len(BITCODE) - 1), "the manifest says one byte less"),
        ("content-digest", part("bitcode", BITCODE, sha256=digest_bytes(b"")), "the content has another digest"),
        ("not-zstd", part("bitcode", BITCODE, BITCODE), "stored without compression"),
        ("no-checksum", part("bitcode", BITCODE, frame(BITCODE, write_checksum=False)), "no content checksum"),
        ("no-content-size", part("bitcode", BITCODE, frame(BITCODE, write_content_size=False)), "no content size"),
        ("two-frames", part("bitcode", BITCODE * 2, frame(BITCODE) * 2), "two frames"),
        ("second-frame-empty", part("bitcode", BITCODE, frame(BITCODE) + frame(b"")), "an empty second frame"),
        ("frame-trailing", part("bitcode", BITCODE, frame(BITCODE) + b"\0"), "a byte after the frame"),
        ("frame-truncated", part("bitcode", BITCODE, frame(BITCODE)[:-1]), "the frame ends early"),
        ("frame-checksum", part("bitcode", BITCODE, frame(BITCODE)[:-1] + b"\0"), "the frame's checksum is wrong"),
        (
            "skippable-first",
            part("bitcode", BITCODE, b"\x50\x2a\x4d\x18\x04\0\0\0evil" + frame(BITCODE)),
            "a skippable frame before the frame",
        ),
        (
            "skippable-last",
            part("bitcode", BITCODE, frame(BITCODE) + b"\x50\x2a\x4d\x18\x04\0\0\0evil"),
            "a skippable frame after the frame",
        ),
        ("window", part("bitcode", BITCODE, big_window(BITCODE)), "a window of 16 MiB"),
        ("dictionary", part("bitcode", BITCODE, with_dictionary(BITCODE)), "a dictionary"),
        ("bomb", part("bitcode", BITCODE, frame(bytes(1 << 24))), "expands to far more than the manifest says"),
        ("lying-bomb", part("bitcode", BITCODE, lying_bomb(len(BITCODE))), "the frame lies about its content size"),
    ):
        # A stored size beyond the cap is refused earlier than the section.
        at = "open" if len(stored) > entry.size + entry.size // 128 + 1024 else "bitcode"
        yield f"bitcode-{name}", forge((entry, stored), two), "FormatError", at, why


def big_window(content: bytes) -> bytes:
    """One raw block in a frame whose header asks for a window of 16 MiB, with content size and checksum."""
    import xxhash

    # Descriptor: 2-byte content size (value minus 256), not single segment, checksum; then the window descriptor.
    header = b"\x28\xb5\x2f\xfd" + bytes([0x44, (24 - 10) << 3]) + struct.pack("<H", len(content) - 256)
    block = struct.pack("<I", len(content) << 3 | 1)[:3] + content
    return header + block + struct.pack("<I", xxhash.xxh64_intdigest(content) & 0xFFFFFFFF)


def with_dictionary(content: bytes) -> bytes:
    """The same with a window of 8 MiB and the dictionary id 7."""
    import xxhash

    header = b"\x28\xb5\x2f\xfd" + bytes([0x45, (23 - 10) << 3, 7]) + struct.pack("<H", len(content) - 256)
    block = struct.pack("<I", len(content) << 3 | 1)[:3] + content
    return header + block + struct.pack("<I", xxhash.xxh64_intdigest(content) & 0xFFFFFFFF)


def lying_bomb(size: int) -> bytes:
    """A frame that claims `size` bytes and holds 200 blocks of 128 KiB, each of 4 bytes."""
    header = b"\x28\xb5\x2f\xfd" + bytes([0x44, (23 - 10) << 3]) + struct.pack("<H", size - 256)
    # Block type 1 (RLE), 131072 times the byte 0; the last one has the last-block bit.
    block = struct.pack("<I", 131072 << 3 | 1 << 1)[:3] + b"\0"
    last = struct.pack("<I", 131072 << 3 | 1 << 1 | 1)[:3] + b"\0"
    return header + block * 199 + last + bytes(4)


def cases() -> Iterator[tuple[str, bytes, dict[str, object]]]:
    for name, data in valid():
        container = read_container(data)
        yield (
            f"valid-{name}",
            data,
            {
                "valid": True,
                "manifest": json.loads(container.manifest.encode()),
                "sections": {
                    entry.kind: entry.sha256
                    for entry in container.manifest.sections
                    if entry.kind not in container.unknown
                },
                "unknown": list(container.unknown),
            },
        )
    for name, data, error, at, why in invalid():
        yield f"invalid-{name}", data, {"valid": False, "error": error, "at": at, "why": why}


def main() -> None:
    folder = HERE / "container"
    folder.mkdir(exist_ok=True)
    for old in (*folder.glob("*.bin"), *folder.glob("*.json")):
        old.unlink()
    for name, data, expected in cases():
        (folder / f"{name}.bin").write_bytes(data)
        (folder / f"{name}.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
