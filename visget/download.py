"""Fetching one file over HTTP so that no server, however slow, broken or hostile, can hold or fill this machine.

Invariant: a call ends by its deadline with a complete body within its size cap, or raises; what it fetched is not
trusted. The caller knows the digest and compares it. The rules are docs/spec/registry.md, section "Transport".

How to use it::

    with Downloader(options) as downloader:
        answer = downloader.read(url, limit=1 << 20, what="the index of xxhash")  # small: into memory
        downloader.save(url, part, limit=entry.size, what="xxhash 0.8.2", progress=progress)  # large: into a file
        # then: digest_file(part) == wanted, else part.unlink() and TrustError; then rename part.

`save` continues an interrupted `part` (Range with If-Range; the validator is kept beside it in ``NAME.from``),
also across processes; the caller holds a lock when two processes may share the file. One Downloader belongs to
one thread.

Errors: `HttpError` (a RegistryError with ``.status``) for an answer that will not change, such as 404 or 403;
RegistryError for an answer that is no file (too large, a web page, a redirect loop); NetworkError for everything
that a later try may mend. Only 5xx, 429, timeouts and broken connections are tried again, at most
`Patience.tries` times.
"""

from __future__ import annotations

import contextlib
import email.utils
import socket
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from visget.errors import NetworkError, RegistryError, UsageError
from visget.files import translated
from visget.network import NetworkOptions, make_pool, proxy_for, shown_url, split_credentials
from visget.progress import SILENT, Progress
from visget.transfer import FileSink, MemorySink, Patience, Sink, Transfer, TryAgain
from visget.version import __version__

if TYPE_CHECKING:
    import urllib3

__all__ = ["Answer", "Downloader", "HttpError", "NetworkOptions", "Patience", "shown_url"]

_CHUNK = 1 << 16
_REDIRECTS = 3
_RETRY_AFTER_LIMIT = 60.0
_RETRY_STATUS = frozenset([429, 500, 502, 503, 504])


class HttpError(RegistryError):
    """A server gave a final answer that is not the file: 404, 403, 410 and the like."""

    def __init__(self, message: str, *, status: int, where: str, hint: str | None = None) -> None:
        super().__init__(message, where=where, hint=hint, details={"status": status})
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A small document that was read into memory."""

    body: bytes
    url: str
    """Where it came from in the end, after redirects: the base for links in it."""
    content_type: str
    """The media type in lower case, without parameters; empty when the server named none."""


class Downloader:
    """Connections to servers, reused between calls; see the module's text."""

    def __init__(self, options: NetworkOptions | None = None, patience: Patience | None = None) -> None:
        self._options = options or NetworkOptions()
        self._patience = patience or Patience()
        self._pools: dict[str | None, urllib3.PoolManager] = {}
        self._live: list[Any] = []  # the connection in use and its socket, for the watchdog

    def __enter__(self) -> Downloader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            pool.clear()
        self._pools.clear()

    def read(
        self,
        url: str,
        *,
        limit: int,
        what: str = "",
        accept: str = "*/*",
        html: bool = False,
        progress: Progress = SILENT,
    ) -> Answer:
        """Fetch a small document into memory.

        Args:
            url: an http:// or https:// URL; credentials in it are sent to its host only, and never shown.
            limit: the largest body accepted, in bytes.
            what: what it is, for messages and progress.
            accept: the media types wanted.
            html: take a web page too. Otherwise one is an error: it comes from a proxy or a login page.
            progress: told the bytes that arrived.

        Raises:
            HttpError: the server refused for good.
            NetworkError: no complete answer in time, or the machine is offline.
            RegistryError: the answer is no such document.
        """
        sink = MemorySink()
        final, media = self._fetch(url, sink, limit=limit, what=what, accept=accept, html=html, progress=progress)
        return Answer(body=b"".join(sink.parts), url=final, content_type=media)

    def save(
        self, url: str, part: Path, *, limit: int, what: str = "", html: bool = False, progress: Progress = SILENT
    ) -> int:
        """Fetch a file into `part`, continuing what is there already, and return its size.

        When it raises NetworkError, what arrived stays in `part` for the next call. The content is unchecked.

        Raises:
            HttpError: the server refused for good.
            NetworkError: no complete answer in time, or the machine is offline.
            RegistryError: the answer is no such file.
            ResourceError: the disk is full.
            CacheError: `part` cannot be written.
        """
        with translated("save a download", part):
            part.parent.mkdir(parents=True, exist_ok=True)
            part.touch(mode=0o600)
            stream = part.open("r+b")
        with stream:
            sink = FileSink(stream, part, url)
            self._fetch(url, sink, limit=limit, what=what, accept="*/*", html=html, progress=progress)
            with translated("save a download", part):
                stream.flush()
                sink.forget()
            return sink.size

    def _fetch(
        self, url: str, sink: Sink, *, limit: int, what: str, accept: str, html: bool, progress: Progress
    ) -> tuple[str, str]:
        shown = shown_url(url)
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise UsageError(f"{shown} is no http:// or https:// URL")
        if self._options.offline:
            raise NetworkError(
                f"cannot fetch {what or shown}: visget is offline", where=shown, hint="run without --offline"
            )
        call = Transfer(self._patience, sink, limit, what or shown, shown, progress)
        attempt = 1
        while True:
            try:
                return self._attempt(url, call, accept, html)
            except TryAgain as again:
                if attempt >= self._patience.tries or call.late():
                    call.give_up(str(again))
                call.sleep(attempt, str(again), again.wait)
                attempt += 1

    def _attempt(self, url: str, call: Transfer, accept: str, html: bool) -> tuple[str, str]:
        headers = {"User-Agent": f"visget/{__version__}", "Accept": accept, "Accept-Encoding": "identity"}
        sink = call.sink
        if sink.size and sink.validator:
            headers |= {"Range": f"bytes={sink.size}-", "If-Range": sink.validator}
        with self._opened(url, headers, call) as (response, final):
            if response.status == 416:
                sink.restart("")
                raise TryAgain("the server has no such part of the file", 0.0)
            if response.status not in (200, 206):
                _refuse_status(response, call)
            media = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            _check_body_kind(response, media, final, html, call)
            total = _begin(response, sink)
            if total is not None:
                call.expect(total)
            self._copy(response, call, total)
        return final, media

    def _copy(self, response: urllib3.BaseHTTPResponse, call: Transfer, total: int | None) -> None:
        sink = call.sink
        mark_time, mark_size = time.monotonic(), sink.size
        while chunk := _translated_read(response, call):
            if sink.size + len(chunk) > call.limit:
                call.too_large(sink.size + len(chunk))
            sink.write(chunk)
            call.progress.step("fetching", call.what, sink.size, total)
            now = time.monotonic()
            call.check_deadline()
            if now - mark_time >= self._patience.window:
                if sink.size - mark_size < self._patience.slowest * (now - mark_time):
                    raise TryAgain(f"slower than {self._patience.slowest:.0f} bytes a second")
                mark_time, mark_size = now, sink.size
        if call.aborted:
            call.give_up("the server is too slow")
        if total is not None and sink.size != total:
            raise TryAgain(f"the connection ended after {sink.size} of {total} bytes")

    @contextlib.contextmanager
    def _opened(
        self, url: str, headers: Mapping[str, str], call: Transfer
    ) -> Iterator[tuple[urllib3.BaseHTTPResponse, str]]:
        """Follow redirects to the answer, with a watchdog that cuts the connection at the deadline."""
        import urllib3

        timeout = urllib3.Timeout(connect=self._patience.connect, read=self._patience.gap)
        bare, authorization = split_credentials(url)
        origin = urllib.parse.urlsplit(bare)
        for _ in range(_REDIRECTS + 1):
            sent = dict(headers)
            # Credentials go to the host that they were given for, and to no other that it redirects to.
            if authorization is not None and urllib.parse.urlsplit(bare).netloc == origin.netloc:
                sent["Authorization"] = authorization
            with call.watchdog(self._cut):
                response = _translated_open(self._pool(bare), bare, sent, timeout, call)
                try:
                    location = response.headers.get("Location")
                    if response.status not in (301, 302, 303, 307, 308) or not location:
                        yield response, bare
                        return
                finally:
                    # A body that was read to its end has given its connection back already.
                    response.close()
            target = urllib.parse.urlsplit(urllib.parse.urljoin(bare, location))
            if target.scheme not in ("http", "https") or (origin.scheme == "https" != target.scheme):
                raise RegistryError(
                    f"{call.what}: the server redirects to {shown_url(target.geturl())}, which is less secure",
                    where=call.shown,
                )
            bare, _ = split_credentials(target._replace(fragment="").geturl())
        raise RegistryError(f"{call.what}: more than {_REDIRECTS} redirects", where=call.shown)

    def _cut(self) -> None:
        for entry in self._live:
            live = getattr(entry, "sock", entry)
            if isinstance(live, socket.socket):
                with contextlib.suppress(OSError):
                    live.shutdown(socket.SHUT_RDWR)

    def _pool(self, url: str) -> urllib3.PoolManager:
        proxy = proxy_for(url, self._options)
        if proxy not in self._pools:
            self._pools[proxy] = make_pool(proxy, self._options.ca_bundle, self._live)
        return self._pools[proxy]


def _translated_open(
    pool: urllib3.PoolManager, url: str, headers: Mapping[str, str], timeout: urllib3.Timeout, call: Transfer
) -> urllib3.BaseHTTPResponse:
    import urllib3.exceptions as u

    try:
        return pool.request(
            "GET",
            url,
            headers=headers,
            timeout=timeout,
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
        )
    except u.SSLError as error:
        if call.aborted:
            call.give_up("the server is too slow")
        raise NetworkError(
            f"cannot fetch {call.what}: no secure connection: {error}",
            where=call.shown,
            hint="if a proxy re-signs the traffic here, name its certificate: --ca-bundle FILE or SSL_CERT_FILE",
        ) from error
    except u.LocationParseError as error:
        raise UsageError(f"{call.shown} is no valid URL") from error
    except (u.HTTPError, OSError) as error:
        if call.aborted:
            call.give_up("the server is too slow")
        raise TryAgain(_reason(error)) from error


def _translated_read(response: urllib3.BaseHTTPResponse, call: Transfer) -> bytes:
    import urllib3.exceptions as u

    try:
        return response.read1(_CHUNK, decode_content=False)
    except (u.HTTPError, OSError) as error:
        if call.aborted:
            call.give_up("the server is too slow")
        raise TryAgain(_reason(error)) from error


def _reason(error: Exception) -> str:
    import urllib3.exceptions as u

    # From the special to the general: urllib3 derives NameResolutionError from NewConnectionError, and that from
    # ConnectTimeoutError.
    if isinstance(error, u.NameResolutionError):
        return "the host name is not known (no network?)"
    if isinstance(error, u.ProxyError):
        return "the proxy does not answer"
    if isinstance(error, u.NewConnectionError):
        return "the server cannot be reached (connection refused, or no route)"
    if isinstance(error, u.ConnectTimeoutError):
        return "no connection in time"
    if isinstance(error, u.TimeoutError):
        return "the server sends nothing"
    return "the connection broke"


def _refuse_status(response: urllib3.BaseHTTPResponse, call: Transfer) -> NoReturn:
    status = response.status
    if status in _RETRY_STATUS:
        wait = _retry_after(response.headers.get("Retry-After", ""))
        if wait is not None and wait > _RETRY_AFTER_LIMIT:
            call.give_up(f"the server is busy (status {status}) and asks to come back in {wait:.0f} s")
        raise TryAgain(f"the server answers with status {status}", wait)
    words = {
        401: "the server wants credentials (status 401)",
        403: "the server refuses access (status 403)",
        404: "the server does not have it (status 404)",
        407: "the proxy wants credentials (status 407)",
        410: "the server has it no longer (status 410)",
    }
    hint = {
        403: "this is not the same as a missing file: check credentials and the proxy",
        404: "check the address; names and versions are exact",
    }
    raise HttpError(
        f"cannot fetch {call.what}: {words.get(status, f'the server answers with status {status}')}",
        status=status,
        where=call.shown,
        hint=hint.get(status),
    )


def _retry_after(text: str) -> float | None:
    if text.strip().isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None


def _check_body_kind(response: urllib3.BaseHTTPResponse, media: str, url: str, html: bool, call: Transfer) -> None:
    if media in ("text/html", "application/xhtml+xml") and not html:
        raise RegistryError(
            f"{call.what}: the answer is a web page, not the file",
            where=call.shown,
            hint="a proxy or a login page may stand between; open the address in a browser",
        )
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    path = urllib.parse.urlsplit(url).path
    # Some servers label x.tar.gz as a gzip-encoded x.tar; its bytes are those of the file all the same.
    labelled = encoding in ("gzip", "x-gzip") and path.endswith((".gz", ".tgz"))
    if encoding not in ("", "identity") and not labelled:
        raise RegistryError(
            f"{call.what}: the answer is encoded as {encoding[:20]!r}, which was not asked for", where=call.shown
        )


def _begin(response: urllib3.BaseHTTPResponse, sink: Sink) -> int | None:
    """Decide where the body goes and return the size of the whole file, if the server told it."""
    length = response.headers.get("Content-Length", "")
    if response.status == 206:
        unit, _, rest = response.headers.get("Content-Range", "").partition(" ")
        span, _, whole = rest.partition("/")
        first = span.partition("-")[0]
        if unit != "bytes" or first != str(sink.size) or not whole.isdecimal():
            sink.restart("")
            raise TryAgain("the server sent another part of the file than was asked for", 0.0)
        return int(whole)
    # Only a strong validator may glue two parts together (RFC 9110, section 13.1.5).
    etag = response.headers.get("ETag", "")
    sink.restart(etag if etag.startswith('"') else response.headers.get("Last-Modified", ""))
    return int(length) if length.isdecimal() else None
