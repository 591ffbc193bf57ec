from __future__ import annotations

import contextlib
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from visget.download import Downloader, HttpError, NetworkOptions, Patience, shown_url
from visget.errors import NetworkError, RegistryError, UsageError
from visget.network import proxy_for

QUICK = Patience(connect=2, gap=0.5, base=8, rate=1e9, slowest=1, window=0.5, pause=0.01)
BODY = bytes(range(256)) * 800  # 204 800 bytes

Handler = http.server.BaseHTTPRequestHandler


class Server:
    """A local server whose answer to the n-th request is the n-th function of `script`; the last repeats."""

    def __init__(self, *script: Callable[[Handler], None], protocol: str = "HTTP/1.1") -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        outer = self

        class Scripted(Handler):
            protocol_version = protocol

            def do_GET(self) -> None:
                outer.requests.append((self.path, dict(self.headers)))
                with contextlib.suppress(OSError):
                    script[min(len(outer.requests), len(script)) - 1](self)

            def log_message(self, *args: object) -> None:
                pass

        self._httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
        self._httpd.daemon_threads = True
        self._httpd.handle_error = lambda *args: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._httpd.server_port}"

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._httpd.shutdown()
        self._httpd.server_close()


def whole(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(BODY)))
    handler.send_header("ETag", '"v1"')
    handler.end_headers()
    handler.wfile.write(BODY)


def status(code: int, **headers: str) -> Callable[[Handler], None]:
    def answer(handler: Handler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def truncated(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(BODY)))
    handler.send_header("ETag", '"v1"')
    handler.end_headers()
    handler.wfile.write(BODY[:100_000])
    handler.wfile.flush()
    handler.close_connection = True
    handler.connection.shutdown(2)


def ranged(handler: Handler) -> None:
    """Serve what Range asks for when If-Range names this version."""
    wanted = handler.headers.get("Range")
    if wanted is None or handler.headers.get("If-Range") != '"v1"':
        whole(handler)
        return
    start = int(wanted.removeprefix("bytes=").partition("-")[0])
    handler.send_response(206)
    handler.send_header("Content-Range", f"bytes {start}-{len(BODY) - 1}/{len(BODY)}")
    handler.send_header("Content-Length", str(len(BODY) - start))
    handler.end_headers()
    handler.wfile.write(BODY[start:])


def wrong_range(handler: Handler) -> None:
    handler.send_response(206)
    handler.send_header("Content-Range", f"bytes 7-{len(BODY) - 1}/{len(BODY)}")
    handler.send_header("Content-Length", str(len(BODY) - 7))
    handler.end_headers()
    handler.wfile.write(BODY[7:])


def drip(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(BODY)))
    handler.end_headers()
    for value in BODY:
        handler.wfile.write(bytes([value]))
        handler.wfile.flush()
        time.sleep(0.1)


def drip_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(1000):
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.1)


def reset(handler: Handler) -> None:
    handler.connection.shutdown(2)
    handler.close_connection = True


def silent(handler: Handler) -> None:
    time.sleep(3)


def endless(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    while True:
        handler.wfile.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")


def page(handler: Handler) -> None:
    body = b"<html>Please log in</html>"
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html; charset=utf-8")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def squeezed(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip")
    handler.send_header("Content-Length", "3")
    handler.end_headers()
    handler.wfile.write(b"abc")


@pytest.fixture
def downloader() -> Iterator[Downloader]:
    with Downloader(patience=QUICK) as made:
        yield made


def test_reads_and_saves(downloader: Downloader, tmp_path: Path) -> None:
    with Server(whole) as server:
        assert downloader.read(f"{server.url}/a", limit=len(BODY)).body == BODY
        part = tmp_path / "new" / "x.part"
        assert downloader.save(f"{server.url}/a", part, limit=len(BODY)) == len(BODY)
        assert part.read_bytes() == BODY
        assert [entry.name for entry in part.parent.iterdir()] == ["x.part"]
        assert server.requests[0][1]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("fault", [status(500), status(503, Retry_After="0"), status(429), reset, silent, truncated])
def test_row_21_mends_a_passing_fault(downloader: Downloader, tmp_path: Path, fault: Callable[[Handler], None]) -> None:
    with Server(fault, ranged) as server:
        downloader.save(f"{server.url}/a", tmp_path / "p", limit=len(BODY))
        assert (tmp_path / "p").read_bytes() == BODY
        assert len(server.requests) == 2


@pytest.mark.parametrize("fault", [status(500), reset, silent, truncated])
def test_row_21_gives_up_on_a_lasting_fault(downloader: Downloader, fault: Callable[[Handler], None]) -> None:
    with Server(fault) as server:
        start = time.monotonic()
        with pytest.raises(NetworkError) as caught:
            downloader.read(f"{server.url}/a", limit=len(BODY), what="the index")
        assert "the index" in caught.value.message
        assert len(server.requests) == QUICK.tries
        assert time.monotonic() - start < QUICK.base + 1


def test_row_22_resumes_within_a_call_and_asks_only_for_the_rest(downloader: Downloader, tmp_path: Path) -> None:
    with Server(truncated, ranged) as server:
        downloader.save(f"{server.url}/a", tmp_path / "p", limit=len(BODY))
        assert server.requests[1][1]["Range"] == "bytes=100000-"
        assert server.requests[1][1]["If-Range"] == '"v1"'


def test_row_22_resumes_in_a_later_call(tmp_path: Path) -> None:
    part = tmp_path / "p"
    with Server(truncated, ranged) as server:
        with Downloader(patience=Patience(tries=1)) as first, pytest.raises(NetworkError):
            first.save(f"{server.url}/a", part, limit=len(BODY))
        assert part.stat().st_size == 100_000
        with Downloader(patience=QUICK) as second:
            second.save(f"{server.url}/a", part, limit=len(BODY))
        assert part.read_bytes() == BODY
        assert server.requests[1][1]["Range"] == "bytes=100000-"


def test_row_22_never_builds_on_a_part_of_another_url(downloader: Downloader, tmp_path: Path) -> None:
    part = tmp_path / "p"
    with Server(truncated, ranged) as server:
        with Downloader(patience=Patience(tries=1)) as first, pytest.raises(NetworkError):
            first.save(f"{server.url}/a", part, limit=len(BODY))
        part.write_bytes(b"?" * 100_000)
        downloader.save(f"{server.url}/b", part, limit=len(BODY))
        assert part.read_bytes() == BODY
        assert "Range" not in server.requests[1][1]


@pytest.mark.parametrize("fault", [wrong_range, status(416), whole])
def test_row_22_begins_again_when_the_part_does_not_fit(
    downloader: Downloader, tmp_path: Path, fault: Callable[[Handler], None]
) -> None:
    with Server(truncated, fault, whole) as server:
        downloader.save(f"{server.url}/a", tmp_path / "p", limit=len(BODY))
        assert (tmp_path / "p").read_bytes() == BODY


@pytest.mark.parametrize("fault", [drip, drip_headers])
@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/1.0"])
def test_row_21_a_drip_ends_by_the_deadline(fault: Callable[[Handler], None], protocol: str) -> None:
    patience = Patience(connect=2, gap=5, base=1, rate=1e9, slowest=0, tries=3, pause=0.01)
    with Server(fault, protocol=protocol) as server, Downloader(patience=patience) as downloader:
        start = time.monotonic()
        with pytest.raises(NetworkError, match="too slow"):
            downloader.read(f"{server.url}/a", limit=len(BODY))
        assert time.monotonic() - start < 2.5


def test_row_21_a_body_below_the_least_rate_is_given_up() -> None:
    patience = Patience(gap=5, base=20, slowest=1000, window=0.3, tries=1)
    with (
        Server(drip) as server,
        Downloader(patience=patience) as downloader,
        pytest.raises(NetworkError, match="slower than"),
    ):
        downloader.read(f"{server.url}/a", limit=len(BODY))


@pytest.mark.parametrize("fault", [whole, endless])
def test_row_21_the_size_cap_holds(downloader: Downloader, tmp_path: Path, fault: Callable[[Handler], None]) -> None:
    with Server(fault) as server:
        with pytest.raises(RegistryError, match="larger than it may be"):
            downloader.save(f"{server.url}/a", tmp_path / "p", limit=100_000)
        assert (tmp_path / "p").stat().st_size <= 100_000


def test_row_21_follows_three_redirects_and_no_more(downloader: Downloader) -> None:
    hop = status(302, Location="/next")
    with Server(hop, hop, hop, whole) as server:
        answer = downloader.read(f"{server.url}/a", limit=len(BODY))
        assert answer.body == BODY
        assert answer.url == f"{server.url}/next"
    with Server(hop) as server:
        with pytest.raises(RegistryError, match="more than 3 redirects"):
            downloader.read(f"{server.url}/a", limit=len(BODY))
        assert len(server.requests) == 4


@pytest.mark.parametrize("target", ["file:///etc/hostname", "ftp://127.0.0.1/x"])
def test_row_21_refuses_a_redirect_to_another_scheme(downloader: Downloader, target: str) -> None:
    with Server(status(302, Location=target)) as server, pytest.raises(RegistryError, match="less secure"):
        downloader.read(f"{server.url}/a", limit=len(BODY))


@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_row_21_a_final_status_is_told_and_not_tried_again(downloader: Downloader, code: int) -> None:
    with Server(status(code)) as server:
        with pytest.raises(HttpError) as caught:
            downloader.read(f"{server.url}/a", limit=10)
        assert caught.value.status == code
        assert not isinstance(caught.value, NetworkError)
        assert len(server.requests) == 1


def test_row_21_a_long_retry_after_is_told_at_once(downloader: Downloader) -> None:
    with Server(status(503, Retry_After="3600")) as server:
        with pytest.raises(NetworkError, match="3600 s"):
            downloader.read(f"{server.url}/a", limit=10)
        assert len(server.requests) == 1


def test_row_21_a_web_page_is_no_file(downloader: Downloader) -> None:
    with Server(page) as server:
        with pytest.raises(RegistryError, match="web page"):
            downloader.read(f"{server.url}/a", limit=1000)
        assert b"log in" in downloader.read(f"{server.url}/a", limit=1000, html=True).body


def test_row_21_an_encoded_body_is_refused_unless_the_file_itself_is_gzip(downloader: Downloader) -> None:
    with Server(squeezed) as server:
        with pytest.raises(RegistryError, match="encoded"):
            downloader.read(f"{server.url}/a.vis", limit=1000)
        assert downloader.read(f"{server.url}/a.tar.gz", limit=1000).body == b"abc"


def test_credentials_go_to_their_host_only_and_are_never_shown(downloader: Downloader) -> None:
    with Server(status(404)) as other, Server(status(302, Location=f"{other.url}/x")) as server:
        url = server.url.replace("//", "//user:secret@") + "/a?token=t0ken"
        with pytest.raises(HttpError) as caught:
            downloader.read(url, limit=10)
        assert server.requests[0][1]["Authorization"].startswith("Basic ")
        assert "Authorization" not in other.requests[0][1]
        text = str(caught.value.as_dict())
        assert "secret" not in text
        assert "t0ken" not in text
    assert shown_url("https://u:p@h/x?q=1#f") == "https://h/x"


def test_offline_and_foreign_schemes_touch_no_network(tmp_path: Path) -> None:
    with Downloader(NetworkOptions(offline=True)) as downloader:
        with pytest.raises(NetworkError, match="offline"):
            downloader.save("http://127.0.0.1:9/x", tmp_path / "p", limit=10)
        with pytest.raises(UsageError):
            downloader.read("file:///etc/hostname", limit=10)


def test_row_21_a_refused_connection_says_so(downloader: Downloader) -> None:
    with pytest.raises(NetworkError, match="refused"):
        downloader.read("http://127.0.0.1:9/x", limit=10)


def test_goes_through_the_proxy() -> None:
    with Server(whole) as proxy, Downloader(NetworkOptions(proxy=proxy.url), QUICK) as downloader:
        assert downloader.read("http://example.invalid/file", limit=len(BODY)).body == BODY
        assert proxy.requests[0][0] == "http://example.invalid/file"


@pytest.mark.parametrize(
    ("no_proxy", "direct"),
    [("", False), ("*", True), ("example.org", True), (".example.org", True), ("ample.org", False),
     ("other, www.example.org", True), ("example.org:81", False), ("example.org:80", True)],
)  # fmt: skip
def test_no_proxy(no_proxy: str, direct: bool) -> None:
    options = NetworkOptions(proxy="proxy:3128", no_proxy=no_proxy)
    assert proxy_for("http://www.example.org:80/x", options) == (None if direct else "http://proxy:3128")
    assert proxy_for("http://www.example.org/x", NetworkOptions()) is None


def test_a_missing_ca_bundle_is_named(tmp_path: Path) -> None:
    options = NetworkOptions(ca_bundle=str(tmp_path / "none.pem"))
    with Downloader(options) as downloader, pytest.raises(UsageError, match="certificate") as caught:
        downloader.read("https://127.0.0.1:9/x", limit=10)
    assert caught.value.where == str(tmp_path / "none.pem")
