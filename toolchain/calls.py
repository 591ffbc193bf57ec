"""The log of the compiler wrappers: which object came from which source, by which call, reading which headers.

Invariant: what a line says is only ever used to explain and to check; the bitcode itself says what is in a package.
The lines are written by the wrappers (docs/spec/front-end.md, section 9).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from visget.errors import BuildError

LOG = "calls.jsonl"
"""The file in the directory that the wrappers are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a wrapper."""

    tool: str
    """"cc", "c++", "ar" and so on."""
    argv: tuple[str, ...]
    """The arguments that the build system gave it."""
    cwd: str
    """The directory that it was called in."""
    kind: str
    """What it made: "object", "archive", "program", "shared" ..."""
    inputs: tuple[str, ...]
    """The files named on the command line, absolute."""
    output: str | None
    """The file that was made, absolute."""
    status: int
    """The exit status."""
    headers: tuple[str, ...]
    """The headers that a compilation read, absolute; none that belong to the compiler."""

    def shown(self, root: Path, limit: int = 300) -> str:
        """Return the command and its directory for messages, without the place of the build."""
        text = " ".join((f"visget-{self.tool}", *self.argv)).replace(f"{root}/", "")
        where = os.path.relpath(self.cwd, root)
        return (text if len(text) <= limit else text[:limit] + " ...") + (f" (in {where})" if where != "." else "")


def read_calls(directory: Path) -> tuple[Call, ...]:
    """Return the calls that were logged in `directory`, in their order.

    Raises:
        BuildError: a line is not one of the log.
    """
    path = directory / LOG
    if not path.exists():
        return ()
    calls = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="surrogateescape").splitlines(), 1):
        try:
            calls.append(_call(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BuildError("the log of the compiler wrappers is damaged", where=f"{path}:{number}") from error
    return tuple(calls)


def _call(entry: Mapping[str, object]) -> Call:
    cwd = str(entry["cwd"])

    def absolute(name: str) -> str:
        return os.path.normpath(os.path.join(cwd, name))  # noqa: PTH118 - a Path would resolve ".." no better

    def listed(key: str) -> tuple[str, ...]:
        value = entry.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise TypeError(key)
        return tuple(value)

    output = entry.get("output")
    return Call(
        tool=str(entry["tool"]),
        argv=listed("argv"),
        cwd=cwd,
        kind=str(entry["kind"]),
        inputs=tuple(absolute(name) for name in listed("inputs")),
        output=absolute(str(output)) if output is not None else None,
        status=int(str(entry.get("status", 0))),
        headers=tuple(absolute(name) for name in listed("headers")),
    )


class CallLog:
    """The calls of one build, by what they read and made."""

    def __init__(self, calls: Iterable[Call], root: Path, known: Iterable[Path] = ()) -> None:
        self.root = root
        self._known = tuple(f"{path}/" for path in known)
        self.calls = tuple(calls)
        self._by_source: dict[str, list[Call]] = {}
        self._by_output: dict[str, list[Call]] = {}
        for call in self.calls:
            if call.status != 0:
                continue
            if call.tool in ("cc", "c++"):
                for name in call.inputs:
                    self._by_source.setdefault(self.relative(name), []).append(call)
            if call.output is not None:
                self._by_output.setdefault(Path(call.output).name, []).append(call)

    def relative(self, name: str) -> str:
        """Return `name` relative to the root where it lies inside of it, real places being compared."""
        for base in (name, os.path.realpath(name)):
            if base.startswith(f"{self.root}/"):
                return os.path.relpath(base, self.root)
        return name

    def known(self, name: str) -> bool:
        """Tell whether `name` belongs to visget or to a dependency, and so may be read though it is outside."""
        return name.startswith(self._known)

    def of_source(self, source: str) -> tuple[Call, ...]:
        """Return the calls that compiled `source` (relative to the root)."""
        return tuple(self._by_source.get(source, ()))

    def of_object(self, name: str) -> tuple[Call, ...]:
        """Return the calls that made a file whose last part is `name`."""
        return tuple(self._by_output.get(Path(name).name, ()))

    def inputs(self, source: str) -> Iterator[tuple[str, Call]]:
        """Yield every file that was read to compile `source`, with the call; relative where inside the root."""
        for call in self.of_source(source):
            yield source, call
            for header in call.headers:
                yield self.relative(header), call
