"""Row 1: one flipped bit anywhere in what an installation reads: refused, and nothing of it is kept.

Here the command line installs from the damaged registry. Every single byte of a package, a signature and an owner
record is tried where that is cheap: tests/format/test_package.py, test_signing.py and test_owner.py.
"""

import pytest
from badkit import Place, flipped, overwrite, plant, publish_tiny
from packagekit import key
from rowkit import copy_of, refused, tuf_files

from visget.errors import EXIT_REFUSED, EXIT_TRUST, EXIT_UNSUPPORTED, FormatError, TrustError, UnsupportedError
from visget.format.package import open_package, verify_package
from visget.format.signing import parse_key_id

WINDOW = 300
STEPS = pytest.mark.parametrize("step", [47, pytest.param(1, marks=pytest.mark.long)])


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    return publish_tiny(tmp_path_factory.mktemp("flips"))


@pytest.fixture
def place(tmp_path, published) -> Place:
    return copy_of(published, tmp_path)


def window(data: bytes, what: str) -> range:
    """The bytes to flip: of the sections, of the manifest, or of the middle of a whole file."""
    payload = data.index(b"\x28\xb5\x2f\xfd") if what in ("sections", "manifest") else 0
    start = {"sections": payload, "manifest": 0}.get(what, max(0, len(data) // 2 - WINDOW // 2))
    return range(start, min(start + WINDOW, len(data)))


@STEPS
@pytest.mark.parametrize("what", ["sections", "manifest", "signature"])
def test_row_01_in_a_file_of_the_package(place, what, step):
    path = place.blob(".dsse" if what == "signature" else ".vis")
    data = path.read_bytes()
    for at in window(data, what)[::step]:
        overwrite(path, flipped(data, at))
        refused(place, "install", "tiny", codes=(EXIT_TRUST,), says="nothing of it was used")
    overwrite(path, data)
    assert place.run("install", "tiny").code == 0


@STEPS
@pytest.mark.parametrize("what", ["sections", "manifest", "signature"])
def test_row_01_when_the_registry_signed_the_damage(place, what, step):
    """The index agrees with the damaged file, as that of a hostile registry would: the author's signature does not."""
    kind = "dsse" if what == "signature" else "vis"
    data = place.blob(f".{kind}").read_bytes()
    for at in window(data, what)[::step]:
        plant(place.registry, **{kind: flipped(data, at)})
        # The last: a digit of the format or the epoch has become a larger one, which asks for a newer visget.
        refused(place, "install", "tiny", codes=(EXIT_TRUST, EXIT_REFUSED, EXIT_UNSUPPORTED))


@STEPS
@pytest.mark.parametrize("role", ["root", "timestamp", "snapshot", "targets", "bin", "index", "owner record"])
def test_row_01_in_each_signed_file_of_the_registry(place, role, step):
    path = tuf_files(place)[role]
    data = path.read_bytes()
    for at in window(data, role)[::step]:
        overwrite(path, flipped(data, at))
        refused(place, "install", "tiny", codes=(EXIT_TRUST,))
    overwrite(path, data)
    assert place.run("install", "tiny").code == 0


def test_row_01_every_byte_of_a_package_and_its_signature(published):
    data, envelope = published.blob().read_bytes(), published.blob(".dsse").read_bytes()
    keys = [parse_key_id(key("author").public.id)]

    def accepted(data: bytes, envelope: bytes) -> bool:
        try:
            verify_package(open_package(data), envelope, keys)
        except (TrustError, FormatError, UnsupportedError) as error:
            return not error.message
        return True

    assert accepted(data, envelope)
    assert [at for at in range(len(data)) if accepted(flipped(data, at), envelope)] == []
    assert [at for at in range(len(envelope)) if accepted(data, flipped(envelope, at))] == []
