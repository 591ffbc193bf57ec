"""Row 12: what is small and wants to become large is refused, and costs the process that reads it less than 200 MB.

Each bomb is listed by the registry and signed by the author, so that only the limits stand against it. The command
runs as a process of its own, which reports its peak of resident memory.
"""

import json
import os
import random
import re
import struct
import subprocess
import sys

import pytest
import zstandard
from badkit import Place, publish_tiny
from formatkit import assemble
from registrykit import edit_index, sign_target, stored
from rowkit import copy_of, offer, parts_of, with_section

from visget.errors import EXIT_REFUSED, EXIT_REGISTRY, EXIT_TRUST
from visget.format.container import FILE_LIMIT

MOST = 200 << 20
# The peak of this program image alone: ru_maxrss would begin with that of the process that started it.
PROGRAM = """
import re, sys
from pathlib import Path
from visget.cli import main
try:
    main()
finally:
    # Without the pages of libraries, which the kernel shares, and of which it maps more or fewer as it likes.
    held = dict(re.findall(r"(VmHWM|RssFile):\\s+(\\d+) kB", Path("/proc/self/status").read_text()))
    print("peak", int(held["VmHWM"]) - int(held["RssFile"]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    return publish_tiny(tmp_path_factory.mktemp("bombs"))


@pytest.fixture
def place(tmp_path, published) -> Place:
    return copy_of(published, tmp_path)


def small(place: Place, *words: str, codes: tuple[int, ...], seconds: float = 30) -> str:
    """Run the command and check how it ends, and what it took; return what it said."""
    place.run("list")
    before = place.natives(), sorted(place.registry.rglob("*"))
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], env=place.environ, capture_output=True, text=True,
                          check=False, timeout=seconds)  # fmt: skip
    assert done.returncode in codes, done.stderr
    assert "Traceback" not in done.stderr
    peak = re.search(r"^peak (\d+)$", done.stderr, re.M)
    assert peak is not None, done.stderr
    assert int(peak[1]) << 10 < MOST, f"{int(peak[1]) >> 10} MiB"
    assert (place.natives(), sorted(place.registry.rglob("*"))) == before
    assert place.run("list", "--json").json == {"installed": []}
    assert list((place.home / "tmp").iterdir()) == []
    return done.stderr


def zeros(size: int, **options: object) -> bytes:
    """A frame of that many zeros, made without holding them."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        3, write_content_size=True, write_checksum=True, **options
    )
    made = zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=size)
    block = bytes(1 << 20)
    return b"".join([made.compress(block) for _ in range(size >> 20)] + [made.flush()])


def lying(stored: bytes, size: int) -> bytes:
    """The frame with another content size in its head (RFC 8878, section 3.1.1.1), in eight bytes."""
    facts = zstandard.get_frame_parameters(stored)
    assert stored[4] & 0xC0 == 0x80, "four bytes of content size"
    single = stored[4] & 0x20
    at = 5 + (0 if single else 1)
    assert int.from_bytes(stored[at : at + 4], "little") == facts.content_size
    return stored[:4] + bytes([stored[4] | 0xC0]) + stored[5:at] + struct.pack("<Q", size) + stored[at + 4 :]


def wide(log: int, size: int) -> bytes:
    """A frame that wants a window of 2^log bytes, by hand: one block of repeated zeros, no checksum that fits."""
    block = (1 | 1 << 1 | (128 << 10) << 3).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd\xc4" + bytes([(log - 10) << 3]) + struct.pack("<Q", size) + block + bytes(4)


GIB = 1 << 30
FRAMES = {
    "1 GiB of zeros": lambda: (zeros(GIB), GIB),
    "1 GiB that the manifest calls 10 000 bytes": lambda: (zeros(GIB), 10_000),
    "1 GiB that manifest and frame call 10 000 bytes": lambda: (lying(zeros(GIB), 10_000), 10_000),
    "a content size of one more": lambda: (lying(zeros(1 << 20), (1 << 20) + 1), (1 << 20) + 1),
    "a content size of one less": lambda: (lying(zeros(1 << 20), (1 << 20) - 1), (1 << 20) - 1),
    "a content size of 2^63": lambda: (lying(zeros(1 << 20), 1 << 63), 1 << 20),
    "a content size of 2^64 - 1": lambda: (lying(zeros(1 << 20), (1 << 64) - 1), 1 << 20),
    "a window of 2^26": lambda: (zeros(64 << 20, window_log=26), 64 << 20),
    "a window of 2^31": lambda: (wide(31, 128 << 10), 128 << 10),
    "a window of 2^41": lambda: (wide(41, 128 << 10), 128 << 10),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_row_12_frames(place, kind):
    stored, size = FRAMES[kind]()
    offer(place, with_section(place.blob().read_bytes(), "bitcode", b"", stored, size=size))
    assert "bitcode" in small(place, "install", "tiny", codes=(EXIT_REFUSED,))


@pytest.fixture(scope="module")
def noise() -> bytes:
    """Bytes that no compressor makes smaller, so that the file is as large as what it holds."""
    return random.Random(12).randbytes(64 << 20)


HONEST = {
    "nothing but zeros": lambda noise: {"bitcode": bytes(64 << 20), "lines": bytes(32 << 20)},
    "as large as a file may be": lambda noise: {"bitcode": noise, "lines": noise[: (32 << 20) - (1 << 19)]},
}


@pytest.mark.parametrize("words", [("install", "tiny"), ("info", "tiny")], ids=["install", "info"])
@pytest.mark.parametrize("kind", HONEST)
def test_row_12_sections_of_the_size_that_they_say(place, noise, kind, words):
    """The largest package that there can be costs whoever reads it the file itself; the compiler's child refuses it."""
    data = place.blob().read_bytes()
    for section, content in HONEST[kind](noise).items():
        content = b"BC\xc0\xde" + content[4:] if section == "bitcode" else content
        data = with_section(data, section, content)
    assert kind == "nothing but zeros" or FILE_LIMIT - (1 << 19) <= len(data) <= FILE_LIMIT
    offer(place, data)
    said = small(place, *words, codes=(EXIT_REFUSED,) if words[0] == "install" else (0,), seconds=60)
    assert words[0] == "info" or "bitcode" in said


@pytest.mark.parametrize(("section", "limit"), [("bitcode", 64 << 20), ("lines", 32 << 20)])
def test_row_12_sections_of_one_byte_more(place, section, limit):
    data = place.blob().read_bytes()
    offer(place, with_section(data, section, b"", zeros(limit), size=limit + 1))
    said = small(place, "install", "tiny", codes=(EXIT_REFUSED,))
    assert f"the section {section} claims {limit + 1} bytes; at most {limit} are allowed" in said


def test_row_12_a_file_of_one_byte_more(place):
    """Neither a client fetches it, nor does a reader take it from elsewhere."""
    data = place.blob().read_bytes()
    offer(place, data + bytes(FILE_LIMIT + 1 - len(data)))
    said = small(place, "install", "tiny", codes=(EXIT_REGISTRY, EXIT_TRUST))
    assert f"{FILE_LIMIT + 1}" in said
    (path,) = (item for item in stored(place.registry, "vis") if item.stat().st_size > FILE_LIMIT)
    os.truncate(path, GIB)
    assert "more than the 100663296 bytes that are allowed" in small(place, "check", str(path), codes=(EXIT_REFUSED,))


def document(unit: bytes, size: int, key: bytes = b"a") -> bytes:
    return b'{"%s":[' % key + (unit * (size // len(unit)))[:-1] + b"]}"


@pytest.mark.parametrize(
    ("section", "unit"),
    [("api", b'{"":{}},'), ("headers", b'"ab",'), ("vectors", b"[" * 20 + b"]" * 20 + b",")],
    ids=["api", "headers", "vectors"],
)
def test_row_12_sections_of_very_many_values(place, section, unit):
    content = document(unit, (8 << 20) - 64)
    offer(place, with_section(place.blob().read_bytes(), section, content))
    said = small(place, "install", "tiny", codes=(EXIT_REFUSED,))
    assert f"the section {section} is not strict JSON: more than 524288 values" in said


@pytest.mark.parametrize("section", ["api", "vectors"])
def test_row_12_sections_of_100_000_levels(place, section):
    content = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    offer(place, with_section(place.blob().read_bytes(), section, content))
    assert "more than 32 levels" in small(place, "install", "tiny", codes=(EXIT_REFUSED,))


def with_manifest(place: Place, raw: bytes | None = None, **changes: object) -> bytes:
    """The package with other values in its manifest, or another manifest altogether."""
    manifest, parts = parts_of(place.blob().read_bytes())
    value = json.loads(manifest.encode()) | changes
    raw = raw if raw is not None else json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return assemble(raw, *(stored for _, stored in parts.values()))


def names(count: int) -> list[str]:
    return sorted(f"a{number:x}" for number in range(count))


def test_row_12_a_manifest_of_100_000_levels(place):
    offer(place, with_manifest(place, b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"))
    assert "more than 32 levels" in small(place, "install", "tiny", codes=(EXIT_REFUSED,))


def test_row_12_ten_million_dependencies(place):
    offer(place, with_manifest(place, document(b'"a",', 10_000_000 * 4, b"dependencies")))
    assert "at most 1048576 are allowed" in small(place, "install", "tiny", codes=(EXIT_REFUSED,))


def test_row_12_as_many_dependencies_as_a_manifest_holds(place):
    """They are harmless, and so allowed; showing them costs no more than they are."""
    offer(place, with_manifest(place, dependencies=names(100_000)))
    small(place, "info", "tiny", codes=(0,))


def test_row_12_a_manifest_of_1_gib(place):
    """The file really has that size (it is sparse). First only its head tells, then the registry too."""
    data = place.blob().read_bytes()
    head = data[:8] + struct.pack("<I", GIB) + data[12:]
    offer(place, head)
    assert f"the manifest claims {GIB} bytes" in small(place, "install", "tiny", codes=(EXIT_REFUSED,))
    for path in stored(place.registry, "vis"):
        path.chmod(0o600)
        with path.open("r+b") as file:
            file.truncate(GIB)
    assert "more than" in small(place, "install", "tiny", codes=(EXIT_REGISTRY,))
    edit_index(place.registry, "tiny", lambda index: index["versions"][-1].update(size=GIB))
    assert f"size is {GIB}, outside" in small(place, "install", "tiny", codes=(EXIT_REGISTRY,))


@pytest.mark.parametrize("unit", [b'{"":{}},', b'"ab",'], ids=["objects", "strings"])
def test_row_12_an_index_of_very_many_values(place, unit):
    """A hostile registry signs this itself."""
    sign_target(place.registry, "idx__tiny.json", document(unit, (16 << 20) - 64, b"versions"))
    said = small(place, "install", "tiny", codes=(EXIT_REGISTRY,))
    assert "more than 524288 values" in said


def test_row_12_what_is_refused_is_not_remembered(place):
    """Store, pins and seal are byte for byte what they were."""
    good = place.blob().read_bytes()
    offer(place, with_section(good, "vectors", b"{}"))
    place.run("list")
    before = place.state()
    assert "vectors" in small(place, "install", "tiny", codes=(EXIT_REFUSED,))
    assert place.state() == before
    assert not (place.home / "trust" / "store.key").exists()
