"""Named moments at which a test can kill visget or make the disk fail.

``failpoint("store.native.renamed")`` does nothing, at the cost of one comparison, unless a test has armed that very
point: with armed() in its own process, or, for a whole command, through ``VISGET_FAILPOINT=POINT=ACTION`` together
with ``VISGET_TESTING=1``, which visget/config.py reads. Invariant: POINTS lists every point that the code has, so
that a test can try them all; worker processes, whose environment is empty, never have one. The actions:

* ``kill``: the process dies at once, as by ``kill -9`` or a power cut of this process alone;
* ``enospc``, ``eio``: the operation fails as on a full or a broken disk;
* ``sleep``: the process waits a second, so that another can be there at the same moment.

``ACTION@N`` acts when the point is reached for the Nth time and ever after. docs/spec/store.md, section "Failpoints".
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from visget.errors import UsageError

POINTS = {
    # ---- the store -------------------------------------------------------------------------------------
    "store.workspace.made": "a workspace exists, nobody holds its lock yet",
    "store.workspace.ready": "a workspace can be used",
    "store.workspace.before-removal": "what was made in a workspace has its place",
    "store.replace.written": "a new content is durable, the old one has the name",
    "store.replace.renamed": "a new content has the name, the name is not durable",
    "store.package.written": "a package file is durable, it has no name",
    "store.package.renamed": "a package file has its name, the name is not durable",
    "store.envelope.before-cleanup": "a new signature file lies beside the old one",
    "store.native.before-build": "an artifact is about to be made",
    "store.native.built": "an artifact's files are written",
    "store.native.listed": "entry.json is written, nothing is durable",
    "store.native.sealed": "an artifact is durable, it has no name",
    "store.native.renamed": "an artifact has its name, the name is not durable",
    "store.seal.before-fsync": "one file of an artifact is about to be made durable",
    "store.quarantine.before-rename": "something damaged is about to be moved away",
    "store.document.before-generation": "a document is about to be written",
    "store.document.before-main": "a document's new generation is durable, the document is the old one",
    "store.document.before-cleanup": "a document is written, older generations are still there",
    "file.written": "a file outside the store is durable, the old one has the name",
    "file.renamed": "a file outside the store has its name, the name is not durable",
    # ---- garbage collection ------------------------------------------------------------------------------
    "gc.roots-read": "garbage collection knows what must stay",
    "gc.before-rename": "one thing is about to go",
    "gc.renamed": "all that goes is out of sight, its files are still there",
    "gc.before-locks": "lock files of what is gone are about to go",
    # ---- installation ------------------------------------------------------------------------------------
    "install.fetched": "a package is in memory, unverified",
    "install.verified": "a package is verified, nothing is stored",
    "install.stored": "the package file is stored, its signature file is not",
    "install.before-pin": "a package is stored, its owner is not pinned",
    "install.pinned": "a package is stored and its owner pinned, nothing is compiled",
    "install.compiled": "the object file is in memory",
    "install.written": "an artifact's files are written into the workspace, but its receipt",
    "install.checked": "an artifact has given its expected answers",
    "install.before-record": "an artifact is stored, no environment names it",
    "install.recorded": "an artifact is installed",
    # ---- what a client remembers of a registry -------------------------------------------------------------
    "client.before-root": "a newer root was verified, the older one is remembered",
    "client.before-seen": "metadata was verified, the time of it is not remembered",
    # ---- publishing and refreshing -------------------------------------------------------------------------
    "registry.files.before-write": "files of a registry are about to be written",
    "registry.files.written": "files of a registry are durable, none has its name",
    "registry.files.named": "files of a registry have their names, the names are not durable",
    "registry.commit.targets-written": "packages and indexes are written, no metadata names them",
    "registry.commit.before-timestamp": "all new metadata is written but the timestamp: readers see the old state",
    "registry.commit.done": "readers see the new state, the operator's record does not know it",
    "registry.operator.before-record": "the operator's record is about to be written",
    "registry.refresh.before-prune": "all is signed anew, old files are still there",
}
"""Every point, and what is the case when it is reached."""
ACTIONS = ("kill", "enospc", "eio", "sleep")
_SLEEP_SECONDS = 1.0


Armed = tuple[str, str, int]
"""A point, what happens there, and when it is reached for which time."""

_armed: Armed | None = None
_reached = 0


def failpoint(name: str) -> None:
    """Mark the moment `name`; in a test that armed it, die or fail here."""
    if _armed is not None:
        _act(name, _armed)


def parse(text: str) -> Armed:
    """Read ``POINT=ACTION`` or ``POINT=ACTION@N``.

    Raises:
        UsageError: there is no such point or action.
    """
    point, _, rest = text.partition("=")
    action, _, times = rest.partition("@")
    if point not in POINTS or action not in ACTIONS or not (times or "1").isdecimal():
        raise UsageError(f"VISGET_FAILPOINT must be POINT=ACTION, not {text!r}", where="VISGET_FAILPOINT")
    return point, action, int(times or "1")


def arm(what: Armed | None) -> None:
    """Arm one point for the rest of this process, or none."""
    global _armed, _reached
    _armed, _reached = what, 0


@contextlib.contextmanager
def armed(point: str, action: str, times: int = 1) -> Iterator[None]:
    """Arm one point for a while."""
    arm(parse(f"{point}={action}@{times}"))
    try:
        yield
    finally:
        arm(None)


def reached() -> int:
    """Return how often the armed point was reached since it was armed."""
    return _reached


def _act(name: str, what: Armed) -> None:
    global _reached
    point, action, times = what
    if name != point:
        return
    _reached += 1
    if _reached < times:
        return
    if action == "kill":
        import signal  # with enum beneath it dearer than a whole load; this module is on its path

        os.kill(os.getpid(), signal.SIGKILL)
    if action == "sleep":
        import time

        time.sleep(_SLEEP_SECONDS)
    else:
        code = errno.ENOSPC if action == "enospc" else errno.EIO
        raise OSError(code, os.strerror(code))
