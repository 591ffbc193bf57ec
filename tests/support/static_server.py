"""A static web server over a directory, with Range support and faults to inject.

``server.faults["/names.json"] = Fault("status", status=500)`` makes that path fail; ``times`` says how often before
it works again. ``server.requests`` lists (path, Range header) of every request.
"""

import contextlib
import ssl
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TYPES = {".json": "application/json"}


@dataclass
class Fault:
    """What goes wrong.

    kind: "status" (answers with `status` and `headers`), "reset" (closes after `after` bytes of the body without
    a word), "truncate" (states the whole length, sends `after` bytes), "drip" (one byte each `pause` seconds),
    "endless" (a body without an end), "html" (a web page with status 200), "loop" (redirects to itself),
    "range-ignored" (200 and the
    whole body to a Range request), "range-wrong" (a Content-Range of another part), "changed" (other bytes and
    another ETag), "gzip" (an encoding nobody asked for), "silent" (says nothing for `pause` seconds).
    """

    kind: str
    status: int = 500
    times: int = 1 << 30
    after: int = 0
    pause: float = 0.2
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b"no"


class StaticServer:
    def __init__(self, root: Path, tls: ssl.SSLContext | None = None) -> None:
        self.root = root
        self._scheme = "http" if tls is None else "https"
        self.faults: dict[str, Fault] = {}
        self.requests: list[tuple[str, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with contextlib.suppress(ConnectionError):
                    outer.answer(self)

            def log_message(self, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *args: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "StaticServer":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        asked = handler.headers.get("Range")
        self.requests.append((path, asked))
        fault = self.faults.get(path) or self.faults.get("*")
        if fault is not None:
            fault.times -= 1
            if fault.times < 0:
                fault = None
        file = self.root / path.lstrip("/")
        kind = fault.kind if fault else ""
        if kind == "status":
            send(handler, fault.status, fault.body, fault.headers)
        elif kind == "html":
            send(handler, 200, b"<html>please log in</html>", (("Content-Type", "text/html"),))
        elif kind == "loop":
            send(handler, 302, b"", (("Location", path),))
        elif kind == "silent":
            time.sleep(fault.pause)
            handler.close_connection = True
        elif not file.is_file():
            send(handler, 404, b"not found", (("Content-Type", "text/html"),))
        else:
            self.file(handler, file, asked, fault)

    def file(self, handler: BaseHTTPRequestHandler, file: Path, asked: str | None, fault: Fault | None) -> None:
        data = file.read_bytes()
        etag = f'"{len(data)}-{file.stat().st_mtime_ns}"'
        kind = fault.kind if fault else ""
        if kind == "changed":
            data, etag = bytes(len(data)), '"changed"'
        headers = [("Content-Type", TYPES.get(file.suffix, "application/octet-stream")), ("ETag", etag)]
        status, start = 200, 0
        fresh = handler.headers.get("If-Range") in (None, etag)
        if asked and fresh and asked.startswith("bytes=") and kind != "range-ignored":
            start = int(asked.removeprefix("bytes=").split("-")[0])
            if start >= len(data):
                send(handler, 416, b"", (("Content-Range", f"bytes */{len(data)}"),))
                return
            status = 206
            shown = start - 1 if kind == "range-wrong" else start
            headers.append(("Content-Range", f"bytes {shown}-{len(data) - 1}/{len(data)}"))
        body = data[start:]
        if kind == "gzip":
            headers.append(("Content-Encoding", "gzip"))
        if kind in ("reset", "truncate", "drip"):
            begin(handler, status, len(body), headers)
            if kind == "drip":
                for byte in body:
                    handler.wfile.write(bytes([byte]))
                    handler.wfile.flush()
                    time.sleep(fault.pause)
            handler.wfile.write(body[: fault.after])
            handler.wfile.flush()
            handler.close_connection = True
            return
        if kind == "endless":
            handler.send_response(200)
            handler.end_headers()
            handler.close_connection = True
            while True:
                handler.wfile.write(bytes(1 << 16))
        send(handler, status, body, headers)


def begin(handler: BaseHTTPRequestHandler, status: int, length: int, headers) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(length))
    for name, value in headers:
        handler.send_header(name, value)
    handler.end_headers()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, headers) -> None:
    begin(handler, status, len(body), headers)
    handler.wfile.write(body)
