"""The wrappers' log: one line of JSON for each call, for whoever asks what a build has done.

Invariant: a line is written with one call of write(2) to a file opened for appending, so that lines of calls that
run at once do not mix; a log that cannot be written does not fail the build's call.
The keys are in docs/guides/building.md.
"""

from __future__ import annotations

import os
from typing import NamedTuple

LOG_NAME = "calls.jsonl"
"""The file in the directory that VISGET_WRAP_LOG names."""


class Call(NamedTuple):
    """What one call of a wrapper did."""

    tool: str
    """``cc``, ``c++``, ``ar``, ``ranlib`` or ``nm``."""
    argv: tuple[str, ...]
    kind: str
    """``object``, ``ir``, ``check``, ``preprocess``, ``query``, ``archive``, ``program``, ``shared``, ``relocatable``,
    ``symbols`` or ``refused``."""
    inputs: tuple[str, ...] = ()
    output: str | None = None
    status: int = 0
    dropped: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


def append(directory: str | None, call: Call) -> None:
    """Append `call` to the log in `directory`; None means that nobody wants one."""
    if directory is None:
        return
    import json

    line = json.dumps({**call._asdict(), "cwd": _here()}, ensure_ascii=True) + "\n"
    try:
        file = os.open(f"{directory}/{LOG_NAME}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError:
        return
    try:
        os.write(file, line.encode("utf-8", "surrogateescape"))
    finally:
        os.close(file)


def _here() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib is not loaded for this
    except FileNotFoundError:
        return ""
