"""The same registry behind a web server, healthy and otherwise."""

import time

import pytest
from packagekit import claim, key, package
from registrykit import index_file
from static_server import Fault, StaticServer

from visget.digest import digest_bytes
from visget.download import Patience
from visget.errors import NetworkError, NotFoundError, RegistryError, TrustError, UsageError
from visget.format.signing import sign_package
from visget.names import parse_name
from visget.network import NetworkOptions
from visget.registry.client import open_registry
from visget.registry.contact import Anchor
from visget.registry.directory import publish
from visget.registry.tuf_names import bin_of, index_target

HASTY = Patience(connect=1.0, gap=0.4, base=1.5, rate=1 << 20, slowest=1.0, window=0.5, tries=2, pause=0.02)
XXHASH = parse_name("xxhash")
SIZE = 300_000


@pytest.fixture
def item(root):
    import random

    # Does not compress, so that the file is large enough to be interrupted.
    made = package(filling=random.Random(1).randbytes(SIZE))
    publish(root, made, sign_package(made, key()), claim=claim(made, key()))
    return made


@pytest.fixture
def server(root, item):
    with StaticServer(root) as running:
        yield running


@pytest.fixture
def anchor(root):
    return Anchor(fingerprint=digest_bytes((root / "tuf" / "1.root.json").read_bytes()))


@pytest.fixture
def registry(server, anchor):
    with open_registry(server.url, patience=HASTY, anchor=anchor) as opened:
        yield opened


def blob(item):
    return f"/t/{item.digest}.pkg__xxhash__1.0.vis"


INDEX_BIN = f"/tuf/2.{bin_of(index_target(XXHASH))}.json"


def get(registry):
    (release,) = registry.releases(XXHASH).versions
    return registry.fetch(release)[0]


def test_any_static_web_server_will_do(server, registry, item):
    assert get(registry) == item.data
    envelope = digest_bytes(sign_package(item, key()))
    (index,) = (path for path, _ in server.requests if ".idx__" in path)
    record = [path for path, _ in server.requests if ".own__" in path]
    assert [path for path, _ in server.requests] == [
        "/tuf/1.root.json", "/tuf/2.root.json", "/tuf/timestamp.json", "/tuf/2.snapshot.json", "/tuf/1.targets.json",
        INDEX_BIN, index, *record, f"/t/{envelope}.pkg__xxhash__1.0.dsse", blob(item),
    ]  # fmt: skip
    assert [entry.name for entry in registry.names()] == ["xxhash"]


def test_an_unknown_name_is_said_by_the_registry_itself(registry):
    with pytest.raises(NotFoundError) as caught:
        registry.releases(parse_name("xxhsah"))
    assert caught.value.hint == "did you mean xxhash?"


FAULTS = [
    (Fault("status", status=500), NetworkError),
    (Fault("status", status=503, headers=(("Retry-After", "1000"),)), NetworkError),
    (Fault("status", status=429), NetworkError),
    (Fault("status", status=401), RegistryError),
    (Fault("status", status=403), RegistryError),
    (Fault("status", status=451), RegistryError),
    (Fault("status", status=204), RegistryError),
    (Fault("html"), RegistryError),
    (Fault("loop"), RegistryError),
    (Fault("gzip"), RegistryError),
    (Fault("reset"), NetworkError),
    (Fault("truncate", after=1), NetworkError),
    (Fault("silent", pause=1.0), NetworkError),
    (Fault("drip", pause=0.2), NetworkError),
    (Fault("endless"), RegistryError),
]


PLACES = ["/tuf/1.root.json", "/tuf/2.root.json", "/tuf/timestamp.json", "/tuf/2.snapshot.json", "/tuf/1.targets.json",
          INDEX_BIN, "idx", "names", "blob"]  # fmt: skip


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize(("fault", "family"), FAULTS, ids=[f"{f.kind}-{f.status}" for f, _ in FAULTS])
def test_row_21_and_24_a_fault_is_an_error_in_time_and_never_an_unknown_name(
    root, server, registry, item, path, fault, family
):
    if path == "/tuf/2.root.json" and fault.kind not in ("status", "html", "loop", "silent"):
        pytest.skip("faults of a body; there is no second root")
    if path == "idx":
        path = f"/t/{index_file(root, 'xxhash').name}"
    elif path == "names":
        path = f"/t/{next((root / 't').glob('*.names.json')).name}"
    elif path == "blob":
        path = blob(item)
    server.faults[path] = fault
    start = time.monotonic()
    if path == "/tuf/2.root.json" and fault.status == 403 and fault.kind == "status":
        # The end of the chain of roots in a bucket that may not be listed.
        assert get(registry) == item.data
        return
    with pytest.raises(RegistryError) as caught:
        if "names.json" in path:
            registry.names()
        else:
            get(registry)
    assert isinstance(caught.value, family)
    assert time.monotonic() - start < 5
    assert server.url in caught.value.where
    if fault.kind == "status" and family is RegistryError and fault.status > 400:
        assert str(fault.status) in caught.value.message


def test_row_21_everything_missing_is_not_an_unknown_name(server, registry, root):
    server.root = root / "elsewhere"
    with pytest.raises(RegistryError, match="no registry here"):
        registry.releases(XXHASH)


def test_a_lost_file_is_said_so(server, registry, item, root):
    (root / blob(item)[1:]).unlink()
    with pytest.raises(RegistryError, match="does not have its file"):
        get(registry)


def test_row_21_a_short_fault_is_sat_out(server, registry, item):
    server.faults["*"] = Fault("status", status=503, times=1)
    assert get(registry) == item.data


def test_other_bytes_are_refused(server, registry, item):
    server.faults[blob(item)] = Fault("changed")
    with pytest.raises(TrustError, match="not the file that the registry's index names"):
        get(registry)


def test_offline_is_said_so(server, anchor):
    with pytest.raises(NetworkError, match="offline"):
        open_registry(server.url, network=NetworkOptions(offline=True), anchor=anchor).releases(XXHASH)


def test_a_web_address_is_not_trusted_on_first_use(server):
    with pytest.raises(UsageError, match="does not know the registry") as caught:
        open_registry(server.url).releases(XXHASH)
    assert f"visget registry add NAME {server.url} --fingerprint SHA256" in caught.value.hint
    assert server.requests == []


# ---- interrupted downloads ----------------------------------------------------------------------------------


@pytest.fixture
def partial(tmp_path):
    return tmp_path / "partial"


@pytest.fixture
def resuming(server, partial, anchor):
    return open_registry(server.url, patience=HASTY, partial=partial, anchor=anchor)


def leave_half(server, resuming, item, partial):
    server.faults[blob(item)] = Fault("truncate", after=100_000)
    with pytest.raises(NetworkError):
        get(resuming)
    del server.faults[blob(item)]
    (part,) = partial.glob("*.part")
    assert 0 < part.stat().st_size < SIZE
    server.requests.clear()


def parts(partial):
    return [path.name for path in partial.iterdir() if not path.name.endswith(".lock")]


def test_row_22_an_interrupted_download_goes_on(server, resuming, item, partial):
    leave_half(server, resuming, item, partial)
    assert get(resuming) == item.data
    asked = [span for path, span in server.requests if path == blob(item)]
    assert asked[0].startswith("bytes=")
    assert len(asked) == 1
    assert parts(partial) == []


@pytest.mark.parametrize("lie", ["range-ignored", "range-wrong", "changed"])
def test_row_22_lies_about_ranges_end_right_or_fail(server, resuming, item, partial, lie):
    leave_half(server, resuming, item, partial)
    server.faults[blob(item)] = Fault(lie, times=1)
    assert get(resuming) == item.data
    assert parts(partial) == []


def test_row_22_a_server_that_goes_on_lying_fails(server, resuming, item, partial):
    leave_half(server, resuming, item, partial)
    server.faults[blob(item)] = Fault("changed")
    with pytest.raises(TrustError):
        get(resuming)
    assert parts(partial) == []


def test_row_22_damage_in_the_part_is_noticed_and_fetched_again(server, resuming, item, partial):
    leave_half(server, resuming, item, partial)
    (part,) = partial.glob("*.part")
    part.write_bytes(bytes(part.stat().st_size))
    assert get(resuming) == item.data
    assert parts(partial) == []
