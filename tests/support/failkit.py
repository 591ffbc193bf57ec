"""Run an action in a child process that dies, or whose disk fails, at a named point (visget/failpoint.py)."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from visget import failpoint
from visget.errors import VisgetError

Action = Callable[[], object]


def points_of(action: Action, note: Path) -> dict[str, int]:
    """Run `action` in a child and return which points it passes, and how often each."""
    passed: Counter[str] = Counter()

    def traced() -> None:
        failpoint.arm(("no such point", "sleep", 1))
        with mock.patch.object(failpoint, "_act", lambda name, _: passed.update([name])):
            action()
        note.write_text(json.dumps(passed))

    assert _in_child(traced) == 0, "the action fails by itself"
    return dict(json.loads(note.read_text()))


def killed(action: Action, point: str, nth: int = 1) -> bool:
    """Run `action` in a child that dies at the `nth` passing of `point`; say whether it died there."""

    def armed() -> None:
        failpoint.arm((point, "kill", nth))
        action()

    code = _in_child(armed)
    assert code in (0, -signal.SIGKILL), "the action failed by itself"
    return code == -signal.SIGKILL


def failing(action: Action, point: str, fault: str, nth: int = 1) -> VisgetError | None:
    """Run `action` in this process with a disk that fails from the `nth` passing of `point` on."""
    try:
        with failpoint.armed(point, fault, nth):
            action()
    except VisgetError as error:
        return error
    return None


def _in_child(action: Action) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        except BaseException:  # noqa: BLE001 - the parent sees the status
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
