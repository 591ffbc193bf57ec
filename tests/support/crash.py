"""Run an action in a child process that is killed (SIGKILL) at its Nth call into the operating system.

The child is forked and counts the calls below; instead of making the Nth it kills itself, and of a write it makes
the first half. The tests count N up until the action survives, so that every point is tried.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable

CALLS = ("rename", "replace", "fsync", "write", "mkdir", "unlink", "fchmod", "utime", "rmdir", "link")


def arm(countdown: int) -> None:
    left = [countdown]

    def wrap(name: str) -> None:
        original = getattr(os, name)

        def wrapped(*args, **kwargs):
            left[0] -= 1
            if left[0] == 0:
                if name == "write":
                    original(args[0], bytes(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        setattr(os, name, wrapped)

    for name in CALLS:
        wrap(name)


def survives(action: Callable[[], object], countdown: int) -> bool:
    """Tell whether `action` comes to its end in a process that dies at its `countdown`-th call."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            arm(countdown)
            action()
            status = 0
        except BaseException:  # noqa: BLE001 - the parent sees the status
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGKILL:
        return False
    assert code == 0, "the action failed by itself"
    return True
