"""Runs a piece of Python in a process of its own, as root, as an ordinary user, or on a "lesser" kernel.

A lesser kernel is this one behind a filter that answers for the missing system call as an old kernel or a container
does: what is tested is the real code, with real answers of the kernel.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534

NO_LANDLOCK = """
from visget.installer import seccomp
seccomp.no_new_privileges()
seccomp.install(seccomp.Filter(rules=(seccomp.rule(seccomp.Action.fail(38), "landlock_create_ruleset"),),
                               default=seccomp.ALLOW), threads=True)
"""
NO_SECCOMP = """
from visget.installer import seccomp
seccomp.no_new_privileges()
seccomp.install(seccomp.Filter(rules=(seccomp.rule(seccomp.Action.fail(38), "seccomp"),), default=seccomp.ALLOW),
                threads=True)
"""
AS_NOBODY = """
import os
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""


def run_python(code: str, *preparation: str, directory: Path | None = None) -> Any:
    """Run `code` after `preparation` in a fresh interpreter; return the JSON object that it assigned to `result`."""
    script = "\n".join([
        # What is imported late could not be read any more as another user.
        "import encodings.ascii, encodings.idna, json, os, sys, signal, socket, ctypes, mmap, tempfile",
        "import visget.installer.sandbox_trials, visget.installer.sandbox_probe, visget.installer.link",
        *preparation, textwrap.dedent(code), "print(json.dumps(result))",
    ])  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=directory, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    return json.loads(done.stdout)


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is Linux's")
root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
