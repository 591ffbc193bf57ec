"""Run one action in a process of its own that is killed (SIGKILL) at its Nth call into the operating system.

``python crash.py ROOT ACTION N`` kills itself instead of making the Nth of the calls below; a write is cut in half
first. Without a kill it exits 0. The tests count N up until an action survives, so that every point is tried.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

CALLS = ("rename", "replace", "fsync", "write", "mkdir", "unlink", "fchmod", "utime", "rmdir", "link")


def arm(countdown: int) -> None:
    left = [countdown]

    def wrap(name):
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


def survives(root: Path, action: str, countdown: int, code: str) -> bool:
    """Run `code` (which defines a function `action(root)`) in a process that dies at its `countdown`-th call."""
    done = subprocess.run(
        [sys.executable, __file__, str(root), action, str(countdown)],
        input=code, text=True, capture_output=True, timeout=60,
    )  # fmt: skip
    if done.returncode == -signal.SIGKILL:
        return False
    assert done.returncode == 0, done.stderr
    return True


def main() -> None:
    root, action, countdown = sys.argv[1:]
    space: dict[str, object] = {}
    exec(sys.stdin.read(), space)  # noqa: S102 - the text comes from the test itself
    arm(int(countdown))
    space[action](Path(root))  # type: ignore[operator]


if __name__ == "__main__":
    main()
