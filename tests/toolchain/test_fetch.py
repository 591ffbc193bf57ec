from __future__ import annotations

import contextlib
import dataclasses
import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from visget.digest import Digest, digest_bytes
from visget.download import NetworkOptions
from visget.errors import FormatError, NetworkError, NotFoundError, TrustError, UsageError
from visget.progress import SILENT
from visget.toolchain.fetch import fetch_archives
from visget.toolchain.origin import DebianSource, PypiSource, Source, UrlSource
from visget.toolchain.project import Project, read_project
from visget.toolchain.sources import find_headers, find_sources, find_text, source_tree

JSON = "application/vnd.pypi.simple.v1+json"


class Site:
    """A web server for pages in memory."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.requests: list[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                kind, body = outer.pages.get(self.path, ("", b""))
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def put(self, path: str, body: bytes, kind: str = "application/octet-stream") -> Digest:
        self.pages[path] = (kind, body)
        return digest_bytes(body)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def tarball(**files: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"top/{name.replace('__', '/').replace('_', '.')}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(stream.getvalue(), mtime=0)


SDIST = tarball(src__a_c="int a;", include__a_h="int a;", LICENSE="free")


def fetch(source: Source, cache: Path, network: NetworkOptions) -> list[bytes]:
    archives = fetch_archives(source, cache=cache, network=network, progress=SILENT)
    return [archive.path.read_bytes() for archive in archives]


def index(site: Site, *, digest: str | None = None) -> NetworkOptions:
    site.put("/files/My_Lib-1.0.tar.gz", SDIST)
    files = [
        {"filename": "my_lib-1.0-py3-none-any.whl", "url": "../../files/my_lib-1.0-py3-none-any.whl", "hashes": {}},
        {"filename": "my_lib-0.9.tar.gz", "url": "../../files/old.tar.gz", "hashes": {"sha256": "0" * 64}},
        {
            "filename": "My_Lib-1.0.tar.gz",
            "url": "../../files/My_Lib-1.0.tar.gz",
            "hashes": {"sha256": digest or digest_bytes(SDIST)},
        },
    ]
    site.put("/simple/my-lib/", json.dumps({"files": files}).encode(), JSON)
    return NetworkOptions(python_index=f"{site.url}/simple/")


def pypi(version: str = "1.0", digest: str | None = None, name: str = "My.Lib") -> PypiSource:
    return PypiSource(name=name, version=version, sha256=Digest(digest or digest_bytes(SDIST)))


def test_takes_the_sdist_from_a_json_index(site: Site, tmp_path: Path) -> None:
    assert fetch(pypi(), tmp_path, index(site)) == [SDIST]


def test_takes_the_sdist_from_an_html_index(site: Site, tmp_path: Path) -> None:
    network = index(site)
    page = f'<a href="../../files/My_Lib-1.0.tar.gz#sha256={digest_bytes(SDIST)}">x</a><a name="y">z</a>'
    site.put("/simple/my-lib/", page.encode(), "text/html; charset=utf-8")
    assert fetch(pypi(), tmp_path, network) == [SDIST]


def test_takes_the_sdist_from_a_local_index(tmp_path: Path) -> None:
    page = tmp_path / "simple" / "my-lib"
    page.mkdir(parents=True)
    (tmp_path / "my-lib-1.0.tar.gz").write_bytes(SDIST)
    (page / "index.html").write_text('<a href="../../my-lib-1.0.tar.gz">x</a>')
    network = NetworkOptions(python_index=(tmp_path / "simple").as_uri())
    assert fetch(pypi(), tmp_path / "cache", network) == [SDIST]


def test_the_second_time_needs_no_network(site: Site, tmp_path: Path) -> None:
    network = index(site)
    fetch(pypi(), tmp_path, network)
    before = list(site.requests)
    assert fetch(pypi(), tmp_path, dataclasses.replace(network, offline=True)) == [SDIST]
    assert site.requests == before


def test_offline_without_the_file_says_so(tmp_path: Path) -> None:
    for source in (pypi(), UrlSource(url="http://127.0.0.1:9/x.tar.gz", sha256=digest_bytes(b""))):
        with pytest.raises(NetworkError, match="offline"):
            fetch(source, tmp_path, NetworkOptions(offline=True))


def test_a_damaged_cache_entry_is_fetched_again(site: Site, tmp_path: Path) -> None:
    network = index(site)
    fetch(pypi(), tmp_path, network)
    entry = tmp_path / "sources" / digest_bytes(SDIST)
    entry.chmod(0o644)
    entry.write_bytes(b"damage")
    assert fetch(pypi(), tmp_path, network) == [SDIST]


def test_an_index_with_another_digest_is_not_trusted(site: Site, tmp_path: Path) -> None:
    with pytest.raises(TrustError) as caught:
        fetch(pypi(), tmp_path, index(site, digest="1" * 64))
    assert caught.value.details == {"expected": digest_bytes(SDIST), "actual": "1" * 64}


def test_a_file_with_another_digest_is_not_trusted(site: Site, tmp_path: Path) -> None:
    network = index(site)
    site.put("/files/My_Lib-1.0.tar.gz", b"tampered")
    with pytest.raises(TrustError) as caught:
        fetch(pypi(), tmp_path, network)
    assert caught.value.details == {"expected": digest_bytes(SDIST), "actual": digest_bytes(b"tampered")}
    assert digest_bytes(b"tampered") in caught.value.message
    assert [path.name for path in (tmp_path / "sources").iterdir()] == ["locks"]


def test_an_unknown_version_names_those_near(site: Site, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        fetch(pypi("1.1"), tmp_path, index(site))
    assert "did you mean 1.0" in str(caught.value.hint)
    with pytest.raises(NotFoundError, match="nothing"):
        fetch(pypi(name="nothing"), tmp_path, index(site))


def dsc(*entries: tuple[str, bytes], version: str = "1:1.0-2") -> bytes:
    lines = "\n".join(f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}" for name, data in entries)
    return (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nFormat: 3.0 (quilt)\nSource: libx\n"
        f"Version: {version}\nChecksums-Sha1:\n abc 1 x\nChecksums-Sha256:\n{lines}\nFiles:\n abc 1 x\n\n"
        "-----BEGIN PGP SIGNATURE-----\n\nSource: forged\n-----END PGP SIGNATURE-----\n"
    ).encode()


MAIN, PART, DEBIAN = tarball(a_c="int a;"), tarball(b_c="int b;"), tarball(patches__x="p")
ENTRIES = (
    ("libx_1.0-2.debian.tar.xz", DEBIAN),
    ("libx_1.0.orig-part.tar.gz", PART),
    ("libx_1.0.orig.tar.gz", MAIN),
)


def mirror(site: Site, description: bytes, *, component: str = "main") -> tuple[DebianSource, NetworkOptions]:
    pool = f"/debian/pool/{component}/libx/libx"
    digest = site.put(f"{pool}/libx_1.0-2.dsc", description)
    for name, data in ENTRIES:
        site.put(f"{pool}/{name}", data)
    source = DebianSource(name="libx", version="1:1.0-2", sha256=digest)
    return source, NetworkOptions(debian_mirror=f"{site.url}/debian/")


@pytest.mark.parametrize("component", ["main", "contrib"])
def test_takes_the_upstream_tarballs_of_a_debian_package(site: Site, tmp_path: Path, component: str) -> None:
    source, network = mirror(site, dsc(*ENTRIES), component=component)
    assert fetch(source, tmp_path, network) == [MAIN, PART]
    assert not [path for path in site.requests if "debian.tar" in path]
    assert fetch(source, tmp_path, NetworkOptions(offline=True)) == [MAIN, PART]


def test_a_native_debian_package_is_one_tarball(site: Site, tmp_path: Path) -> None:
    source, network = mirror(site, dsc(("libx_1.0.tar.gz", MAIN)))
    site.put("/debian/pool/main/libx/libx/libx_1.0.tar.gz", MAIN)
    assert fetch(source, tmp_path, network) == [MAIN]


def test_a_changed_dsc_or_tarball_is_not_trusted(site: Site, tmp_path: Path) -> None:
    source, network = mirror(site, dsc(*ENTRIES))
    site.put("/debian/pool/main/libx/libx/libx_1.0.orig.tar.gz", PART[:-1])
    with pytest.raises(TrustError):
        fetch(source, tmp_path / "a", network)
    site.put("/debian/pool/main/libx/libx/libx_1.0-2.dsc", b"Source: libx\n")
    with pytest.raises(TrustError):
        fetch(source, tmp_path / "b", network)


@pytest.mark.parametrize(
    ("description", "words"),
    [
        (dsc(*ENTRIES, version="1:1.0-3"), "describes libx 1:1.0-3"),
        (dsc(("../../libx.orig.tar.gz", MAIN)), "malformed"),
        (dsc(ENTRIES[0]), "exactly one main tarball"),
        (dsc(ENTRIES[1]), "exactly one main tarball"),
        (dsc(*ENTRIES).replace(b"\nFiles:", b"\nSource: again\nFiles:"), "twice"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_refuses_a_malformed_dsc(site: Site, tmp_path: Path, description: bytes, words: str) -> None:
    source, network = mirror(site, description)
    with pytest.raises(FormatError, match=words):
        fetch(source, tmp_path, network)


def test_a_package_that_no_mirror_has_is_told_with_a_hint(site: Site, tmp_path: Path) -> None:
    source, network = mirror(site, dsc(*ENTRIES))
    with pytest.raises(NotFoundError, match=r"libx_1\.1-1\.dsc") as caught:
        fetch(dataclasses.replace(source, version="1.1-1"), tmp_path, network)
    assert "debian-mirror" in str(caught.value.hint)


def project(directory: Path, source: str, body: str = "") -> Project:
    directory.mkdir()
    (directory / "visget.toml").write_text(
        '[package]\nname = "x"\nversion = "1"\nsummary = "s"\nlicense = "MIT"\nlicense-file = "LICENSE"\n'
        f'[source]\n{source}\n[build]\nsources = ["src/*.c"]\ninclude = ["include"]\n{body}'
        '[exports]\nheaders = ["a.h"]\n'
    )
    return read_project(directory)


def test_a_source_tree_lives_as_long_as_its_block(site: Site, tmp_path: Path) -> None:
    digest = site.put("/x-1.0.tar.gz", SDIST)
    made = project(tmp_path / "p", f'url = "{site.url}/x-1.0.tar.gz"\nsha256 = "{digest}"')
    with source_tree(made, cache=tmp_path / "cache") as tree:
        assert tree.digest == digest
        assert tree.label == f"url:{site.url}/x-1.0.tar.gz"
        assert find_sources(made, tree.root) == ("src/a.c",)
        assert find_headers(made, tree.root) == {"a.h": tree.root / "include" / "a.h"}
        assert find_text(made, tree.root, "LICENSE").read_text() == "free"
        (made.directory / "LICENSE").write_text("mine")
        assert find_text(made, tree.root, "LICENSE").read_text() == "mine"
        with pytest.raises(UsageError, match="NOTICE"):
            find_text(made, tree.root, "NOTICE")
    assert not tree.root.exists()
    with source_tree(made, cache=tmp_path / "cache", network=NetworkOptions(offline=True)) as again:
        assert again.root != tree.root


def test_components_of_debian_packages_are_subdirectories(site: Site, tmp_path: Path) -> None:
    source, network = mirror(site, dsc(*ENTRIES))
    made = project(tmp_path / "p", f'debian = "{source.name}={source.version}"\nsha256 = "{source.sha256}"')
    with source_tree(made, cache=tmp_path / "cache", network=network) as tree:
        assert (tree.root / "a.c").is_file()
        assert (tree.root / "part" / "b.c").is_file()


def test_a_missing_subdir_is_told(site: Site, tmp_path: Path) -> None:
    digest = site.put("/x-1.0.tar.gz", SDIST)
    made = project(tmp_path / "p", f'url = "{site.url}/x-1.0.tar.gz"\nsha256 = "{digest}"\nsubdir = "sorce"')
    with pytest.raises(UsageError, match="sorce"), source_tree(made, cache=tmp_path / "cache"):
        pass
    assert list((tmp_path / "cache" / "trees").iterdir()) == []


def test_local_sources_are_where_the_project_is(tmp_path: Path) -> None:
    made = dataclasses.replace(project(tmp_path / "p", f'url = "http://h/x"\nsha256 = "{"0" * 64}"'), source=None)
    with source_tree(made, cache=tmp_path / "cache") as tree:
        assert tree.root == made.directory
    assert made.directory.exists()
