"""Row 21: a web server that fails, stalls, lies or cannot prove who it is: a network error in time, nothing changed.

Here the command line meets the whole list; tests/registry/test_http.py has every fault at every file, and
tests/visget/test_download.py the details of the downloader.
"""

import time

import pytest
from badkit import Place, publish_tiny
from registrykit import stored
from rowkit import copy_of, refused
from static_server import Fault, StaticServer
from tlskit import certificate, server_context

import visget.download
from visget.digest import digest_bytes
from visget.download import Patience
from visget.errors import EXIT_REGISTRY

HASTY = Patience(connect=1.0, gap=0.4, base=1.5, rate=1 << 20, slowest=1.0, window=0.5, tries=2, pause=0.02)
DEADLINE = 6.0


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    return publish_tiny(tmp_path_factory.mktemp("servers"))


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """The same rules with less time, so that the tests need not wait either."""
    monkeypatch.setattr(visget.download, "Patience", lambda: HASTY)


@pytest.fixture
def place(tmp_path, published) -> Place:
    return copy_of(published, tmp_path)


def customer(place: Place, url: str, **variables: str) -> Place:
    """A user who trusts the registry at `url`, and has nothing of it yet."""
    user = Place(root=place.root / "user", variables={"VISGET_REGISTRY": url, "no_proxy": "127.0.0.1", **variables})
    fingerprint = digest_bytes((place.registry / "tuf" / "1.root.json").read_bytes())
    added = user.run("registry", "add", "shop", url, "--fingerprint", fingerprint)
    assert added.code == 0, added
    return user


FAULTS = {
    "500": Fault("status", status=500),
    "503, try again later": Fault("status", status=503, headers=(("Retry-After", "3600"),)),
    "429": Fault("status", status=429),
    "401": Fault("status", status=401),
    "403": Fault("status", status=403),
    "connection reset": Fault("reset"),
    "half a body": Fault("truncate", after=100),
    "a byte at a time": Fault("drip", pause=0.2),
    "silence": Fault("silent", pause=1.0),
    "a body without end": Fault("endless"),
    "redirects in a circle": Fault("loop"),
    "a body nobody asked to compress": Fault("gzip"),
    "a login page": Fault("html"),
}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("file", ["timestamp", "package"])
def test_row_21_installing_from_such_a_server(place, kind, file):
    with StaticServer(place.registry) as server:
        user = customer(place, server.url)
        (vis,) = stored(place.registry, "vis")
        path = {"timestamp": "/tuf/timestamp.json", "package": f"/t/{vis.name}"}[file]
        server.faults[path] = FAULTS[kind]
        begun = time.monotonic()
        refused(user, "install", "tiny", codes=(EXIT_REGISTRY,), says=server.url)
        assert time.monotonic() - begun < DEADLINE
        server.faults.clear()
        assert file == "timestamp" or user.run("install", "tiny").code == 0, "nothing is wrong for good"


def test_row_21_an_outage_is_never_an_unknown_name(place):
    with StaticServer(place.registry) as server:
        user = customer(place, server.url)
        for fault in (Fault("status", status=404), Fault("status", status=500), Fault("html"), Fault("reset")):
            server.faults["*"] = fault
            refused(user, "install", "tiny", codes=(EXIT_REGISTRY,))
    refused(user, "install", "tiny", codes=(EXIT_REGISTRY,), says="refused")


# ---- TLS -----------------------------------------------------------------------------------------------------


def test_row_21_a_server_that_proves_who_it_is(place, tmp_path):
    good = certificate(tmp_path / "good.pem")
    with StaticServer(place.registry, server_context(good)) as server:
        assert server.url.startswith("https:")
        user = customer(place, server.url, VISGET_CA_BUNDLE=str(good))
        assert user.run("install", "tiny").code == 0


@pytest.mark.parametrize(
    ("made", "trusted", "says"),
    [
        ({}, False, "certificate"),
        ({"expired": True}, True, "expired"),
        ({"address": "127.0.0.2"}, True, "mismatch"),
    ],
    ids=["unknown", "expired", "of another host"],
)
def test_row_21_a_server_that_does_not_prove_who_it_is(place, tmp_path, made, trusted, says):
    fingerprint = digest_bytes((place.registry / "tuf" / "1.root.json").read_bytes())
    path = certificate(tmp_path / "bad.pem", **made)
    other = certificate(tmp_path / "other.pem")
    with StaticServer(place.registry, server_context(path)) as server:
        user = Place(root=tmp_path / "user", variables={
            "VISGET_REGISTRY": server.url, "no_proxy": "127.0.0.1", "VISGET_CA_BUNDLE": str(path if trusted else other),
        })  # fmt: skip
        begun = time.monotonic()
        words = ("registry", "add", "shop", server.url, "--fingerprint", fingerprint)
        outcome = refused(user, *words, codes=(EXIT_REGISTRY,))
        assert says in outcome.err
        assert server.url in outcome.err
        assert time.monotonic() - begun < DEADLINE
        assert server.requests == [], "not a word was sent"


def test_row_21_a_server_that_speaks_no_tls(place, tmp_path):
    with StaticServer(place.registry) as server:
        url = server.url.replace("http:", "https:")
        user = Place(root=tmp_path / "user", variables={"VISGET_REGISTRY": url, "no_proxy": "127.0.0.1"})
        refused(user, "registry", "add", "shop", url, "--fingerprint", "0" * 64, codes=(EXIT_REGISTRY,), says=url)


def test_row_21_a_redirect_from_https_to_http(place, tmp_path):
    good = certificate(tmp_path / "good.pem")
    with StaticServer(place.registry) as plain, StaticServer(place.registry, server_context(good)) as server:
        user = customer(place, server.url, VISGET_CA_BUNDLE=str(good))
        away = (("Location", f"{plain.url}/tuf/timestamp.json"),)
        server.faults["/tuf/timestamp.json"] = Fault("status", status=302, headers=away)
        refused(user, "install", "tiny", codes=(EXIT_REGISTRY,), says="less secure")
        assert plain.requests == []
