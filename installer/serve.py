"""The child's side of a worker: one request in, stages and one reply out, and no way to die in silence.

Invariant: whatever the work raises becomes a reply; nothing that the work prints can mix with the reply. The
protocol is docs/spec/worker.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from visget.errors import VisgetError
from visget.installer.frames import Frame, FrameError, read_frame, sender
from visget.installer.limits import follow_parent
from visget.installer.sandbox import Level

Reply = tuple[Mapping[str, object], Sequence[bytes]]
"""The JSON object and the byte strings of a reply."""
Announce = Callable[..., None]
"""Called with the name of a stage (and facts as keywords) before it begins."""
Work = Callable[[Frame, Announce], Reply]
"""What a worker does with a request."""
Enter = Callable[[Frame], Level]
"""Fetches what the work needs from outside, and confines this process."""


def serve(parent: int, enter: Enter, work: Work) -> None:
    """Answer the request on standard input with `work`, confined by `enter`, and end the process."""
    send = sender(_claim_output())
    try:
        follow_parent(parent)
        request = read_frame(0)
        level = enter(request)
        # Said before the first byte of a package is looked at: later, a child may have been taken over.
        send({"stage": "confined", "level": level.as_dict()})
        head, parts = work(request, lambda stage, **facts: send({"stage": stage, **facts}))
        send({**head, "status": "ok"}, parts)
    except VisgetError as error:
        send({"status": "error", **_plain(error.as_dict())})
    except MemoryError:
        send({"status": "error", "error": "MemoryError", "message": "out of memory"})
    except FrameError as error:
        send({"status": "error", "error": "FrameError", "message": str(error)})
    except BaseException as error:  # noqa: BLE001 - a reply is owed for anything; Python's own report would open files
        message = f"{type(error).__name__}: {error}"
        send({"status": "error", "error": "internal", "message": message, "at": _frames(error.__traceback__)})
    os._exit(0)


def _claim_output() -> int:
    """Keep standard output for frames alone; what the work prints goes to standard error."""
    output = os.dup(1)
    os.dup2(2, 1)
    return output


def _plain(obj: Mapping[str, object]) -> dict[str, object]:
    """Make every value one that JSON has; only details can hold others."""
    details = obj.get("details")
    known = details if isinstance(details, dict) else {}
    kept = {key: value for key, value in known.items() if isinstance(value, str | int | list | bool)}
    return {**obj, "details": kept}


def _frames(traceback: TracebackType | None) -> list[str]:
    """Name the frames of `traceback` without opening source files, which a confined process cannot do."""
    names = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        names.append(f"{os.path.basename(code.co_filename)}:{traceback.tb_lineno} {code.co_name}")  # noqa: PTH119
        traceback = traceback.tb_next
    return names[-8:]
