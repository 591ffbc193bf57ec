"""The same registry behind a web server, healthy and otherwise."""

import time

import pytest
from packagekit import key, package
from static_server import Fault, StaticServer

from visget.digest import digest_bytes
from visget.download import Patience
from visget.errors import NetworkError, NotFoundError, RegistryError, TrustError
from visget.format.signing import sign_package
from visget.names import parse_name
from visget.network import NetworkOptions
from visget.registry.client import open_registry
from visget.registry.directory import publish

HASTY = Patience(connect=1.0, gap=0.4, base=1.5, rate=1 << 20, slowest=1.0, window=0.5, tries=2, pause=0.02)
XXHASH = parse_name("xxhash")
SIZE = 300_000


@pytest.fixture
def item(root):
    import random

    # Does not compress, so that the file is large enough to be interrupted.
    made = package(filling=random.Random(1).randbytes(SIZE))
    publish(root, made, sign_package(made, key()))
    return made


@pytest.fixture
def server(root, item):
    with StaticServer(root) as running:
        yield running


@pytest.fixture
def registry(server):
    with open_registry(server.url, patience=HASTY) as opened:
        yield opened


def blob(item):
    return f"/blobs/{item.digest}.vis"


def get(registry):
    (release,) = registry.releases(XXHASH).versions
    return registry.fetch(release)[0]


def test_any_static_web_server_will_do(server, registry, item):
    assert get(registry) == item.data
    envelope = digest_bytes(sign_package(item, key()))
    assert [path for path, _ in server.requests] == [
        "/visget.json", "/index/xxhash.json", f"/blobs/{envelope}.dsse", blob(item)
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


@pytest.mark.parametrize("path", ["/visget.json", "/index/xxhash.json", "/names.json", "blob"])
@pytest.mark.parametrize(("fault", "family"), FAULTS, ids=[f"{f.kind}-{f.status}" for f, _ in FAULTS])
def test_a_fault_is_an_error_in_time_and_never_an_unknown_name(server, registry, item, path, fault, family):
    server.faults[blob(item) if path == "blob" else path] = fault
    start = time.monotonic()
    with pytest.raises(RegistryError) as caught:
        if path == "/names.json":
            registry.releases(parse_name("another"))
        else:
            get(registry)
    assert isinstance(caught.value, family)
    assert time.monotonic() - start < 5
    assert server.url in caught.value.where
    if fault.kind == "status" and family is RegistryError and fault.status > 400:
        assert str(fault.status) in caught.value.message


def test_everything_missing_is_not_an_unknown_name(server, registry, root):
    server.root = root / "elsewhere"
    with pytest.raises(RegistryError, match="no registry here"):
        registry.releases(XXHASH)


def test_a_lost_file_is_said_so(server, registry, item, root):
    (root / "blobs" / f"{item.digest}.vis").unlink()
    with pytest.raises(RegistryError, match="does not have its file"):
        get(registry)


def test_a_short_fault_is_sat_out(server, registry, item):
    server.faults["*"] = Fault("status", status=503, times=1)
    assert get(registry) == item.data


def test_other_bytes_are_refused(server, registry, item):
    server.faults[blob(item)] = Fault("changed")
    with pytest.raises(TrustError, match="not the file that the registry's index names"):
        get(registry)


def test_offline_is_said_so(server):
    with pytest.raises(NetworkError, match="offline"):
        open_registry(server.url, network=NetworkOptions(offline=True)).releases(XXHASH)


# ---- interrupted downloads ----------------------------------------------------------------------------------


@pytest.fixture
def partial(tmp_path):
    return tmp_path / "partial"


@pytest.fixture
def resuming(server, partial):
    return open_registry(server.url, patience=HASTY, partial=partial)


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


def test_an_interrupted_download_goes_on(server, resuming, item, partial):
    leave_half(server, resuming, item, partial)
    assert get(resuming) == item.data
    asked = [span for path, span in server.requests if path == blob(item)]
    assert asked[0].startswith("bytes=")
    assert len(asked) == 1
    assert parts(partial) == []


@pytest.mark.parametrize("lie", ["range-ignored", "range-wrong", "changed"])
def test_lies_about_ranges_end_right_or_fail(server, resuming, item, partial, lie):
    leave_half(server, resuming, item, partial)
    server.faults[blob(item)] = Fault(lie, times=1)
    assert get(resuming) == item.data
    assert parts(partial) == []


def test_a_server_that_goes_on_lying_fails(server, resuming, item, partial):
    leave_half(server, resuming, item, partial)
    server.faults[blob(item)] = Fault("changed")
    with pytest.raises(TrustError):
        get(resuming)
    assert parts(partial) == []


def test_damage_in_the_part_is_noticed_and_fetched_again(server, resuming, item, partial):
    leave_half(server, resuming, item, partial)
    (part,) = partial.glob("*.part")
    part.write_bytes(bytes(part.stat().st_size))
    assert get(resuming) == item.data
    assert parts(partial) == []
