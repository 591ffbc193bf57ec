"""One transfer of visget/download.py: where its bytes go, how long it may take, and how its failures read.

Invariant: a sink never joins two parts that may come from different files, and no transfer outlives its deadline.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NoReturn, Protocol

from visget.digest import digest_bytes
from visget.errors import NetworkError, RegistryError
from visget.files import atomic_write, translated
from visget.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for what. The defaults are the product's; tests shorten them."""

    connect: float = 5.0
    """Seconds for one connection attempt."""
    gap: float = 15.0
    """Seconds without a single byte."""
    base: float = 30.0
    """Seconds for the whole call, before what `rate` adds; includes all tries and waits."""
    rate: float = 16 * 1024
    """Bytes a second: each this many bytes of the body add one second to the deadline."""
    slowest: float = 1024
    """Bytes a second below which a body is given up, seen over `window` seconds."""
    window: float = 10.0
    """Seconds over which `slowest` is measured."""
    tries: int = 3
    """Attempts in all."""
    pause: float = 0.5
    """Seconds before the second try; doubled for each further one, with jitter."""


class Sink(Protocol):
    """Where a body goes: it knows how much it has and can begin again."""

    size: int
    """Bytes held."""
    validator: str
    """What identifies the version that they belong to (an ETag or a date), or empty."""

    def write(self, chunk: bytes) -> None:
        """Add bytes at the end."""

    def restart(self, validator: str) -> None:
        """Drop everything; what follows belongs to the version `validator`."""


@dataclass(slots=True)
class MemorySink:
    """A body kept in memory."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    validator: str = ""

    def write(self, chunk: bytes) -> None:
        """Add bytes at the end."""
        self.parts.append(chunk)
        self.size += len(chunk)

    def restart(self, validator: str) -> None:
        """Drop everything; what follows belongs to the version `validator`."""
        self.parts.clear()
        self.size = 0
        # A date is too weak to glue parts of a document whose digest nobody may know.
        self.validator = validator if validator.startswith('"') else ""


class FileSink:
    """A body kept in a file that may hold its beginning already."""

    def __init__(self, stream: BinaryIO, path: Path, url: str) -> None:
        self._stream = stream
        self._path = path
        self._note = path.with_name(path.name + ".from")
        # The digest, because a query may be a secret.
        self._origin = digest_bytes(url.encode())
        self.validator = self._read_validator()
        # Without a validator for this very URL the beginning may belong to another file: do not build on it.
        self.size = stream.seek(0, 2) if self.validator else 0

    def _read_validator(self) -> str:
        try:
            origin, _, validator = self._note.read_text("utf-8").partition("\n")
        except (OSError, UnicodeDecodeError):
            return ""
        return validator if origin == self._origin else ""

    def write(self, chunk: bytes) -> None:
        """Add bytes at the end."""
        with translated("save a download", self._path):
            self._stream.write(chunk)
        self.size += len(chunk)

    def restart(self, validator: str) -> None:
        """Drop everything; what follows belongs to the version `validator`."""
        with translated("save a download", self._path):
            self._stream.seek(0)
            self._stream.truncate()
            atomic_write(self._note, f"{self._origin}\n{validator}".encode())
        self.size = 0
        self.validator = validator

    def forget(self) -> None:
        """Remove the note: the file is complete."""
        self._note.unlink(missing_ok=True)


class TryAgain(Exception):  # noqa: N818 - a control-flow signal, never seen outside
    """This attempt failed in a way that another may mend."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Transfer:
    """One call of read() or save(): its sink, its deadline and its words."""

    def __init__(
        self, patience: Patience, sink: Sink, limit: int, what: str, shown: str, progress: Progress
    ) -> None:
        self.patience = patience
        self.sink = sink
        self.limit = limit
        self.what = what
        self.shown = shown
        self.progress = progress
        self.aborted = False
        self._start = time.monotonic()
        self._total: int | None = None

    def expect(self, total: int) -> None:
        """Learn the size of the whole file."""
        if total > self.limit:
            self.too_large(total)
        self._total = total

    def remaining(self) -> float:
        """Seconds to the deadline. A body of unknown size earns its time byte by byte."""
        body = self.sink.size if self._total is None else self._total
        return self._start + self.patience.base + body / self.patience.rate - time.monotonic()

    def late(self) -> bool:
        """Tell whether the deadline has passed."""
        return self.remaining() <= 0

    def check_deadline(self) -> None:
        """Give up when the deadline has passed."""
        if self.late():
            self.give_up("the server is too slow")

    @contextlib.contextmanager
    def watchdog(self, cut: Callable[[], None]) -> Iterator[None]:
        """Call `cut` when the deadline passes: a blocked read has no other end when bytes keep dripping in."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(max(0.01, self.remaining())):
                if self.late():
                    self.aborted = True
                    cut()
                    return

        thread = threading.Thread(target=watch, name="visget-download-deadline", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def sleep(self, attempt: int, reason: str, pause: float | None) -> None:
        """Wait before another try, for as long as the server asked or with growing, jittered pauses."""
        if pause is None:
            pause = self.patience.pause * 2.0 ** (attempt - 1) * (0.5 + random.random())  # noqa: S311 - jitter only
        if pause > self.remaining():
            self.give_up(reason)
        self.progress.step("waiting", f"{self.what}: {reason}", self.sink.size, self._total)
        time.sleep(pause)

    def too_large(self, size: int) -> NoReturn:
        """Refuse a body of `size` bytes or more."""
        raise RegistryError(
            f"{self.what} is larger than it may be: at least {size} bytes, where {self.limit} are allowed",
            where=self.shown,
        )

    def give_up(self, reason: str) -> NoReturn:
        """End the transfer as one that may work another time."""
        raise NetworkError(
            f"cannot fetch {self.what}: {reason or 'no answer in time'}",
            where=self.shown,
            hint="check the network and the proxy settings, and try again; what has arrived is kept",
            details={"received": self.sink.size, "seconds": round(time.monotonic() - self._start, 1)},
        )
