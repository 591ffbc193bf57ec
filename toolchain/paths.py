"""Paths and patterns in visget.toml: always relative, always inside their tree.

Invariant: what expand() returns are regular files whose real place is inside the root, whatever links the tree holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from visget.errors import UsageError
from visget.nearest import nearest

_DRIVE = re.compile(r"[A-Za-z]:")


def path_problem(text: str) -> str | None:
    """Tell what is wrong with `text` as a relative path or pattern with slashes; None when nothing is."""
    if not text or not text.isprintable():
        return "expected a path"
    if "\\" in text:
        return f"{text[:80]!r} has a backslash; write paths with /"
    if text.startswith(("/", "~")) or _DRIVE.match(text):
        return f"{text[:80]!r} is not relative; a package may name only files of its own tree"
    if ".." in PurePosixPath(text).parts:
        return f"{text[:80]!r} leaves its tree by '..'"
    return None


def expand(root: Path, patterns: Iterable[str], exclude: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the files under `root` that match a pattern and no exclusion, sorted, with slashes.

    Every pattern must match something: one that does not is a misspelling, or the sources have changed.

    Raises:
        UsageError: a pattern matches no file, or a file lies outside `root` by a link, or has a name that would drive
            a terminal wherever it is shown.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        chosen |= _matching(root, pattern)
    for pattern in exclude:
        chosen -= _matching(root, pattern)
    return tuple(sorted(chosen))


def _matching(root: Path, pattern: str) -> set[str]:
    found = {path.relative_to(root).as_posix() for path in root.glob(pattern) if path.is_file()}
    if not found:
        raise UsageError(f"the pattern {pattern!r} matches no file", where=str(root), hint=_near(root, pattern))
    for name in found:
        if not name.isprintable():
            raise UsageError(
                f"the file {name[:80]!r} has a name with characters that are not shown", where=str(root),
                hint="rename it, or choose a pattern that leaves it out",
            )  # fmt: skip
        inside(root, name)
    return found


def inside(root: Path, name: str) -> Path:
    """Return the path of the file or directory `name` under `root`.

    Raises:
        UsageError: there is none, or a link leads out of `root`.
    """
    path = root / name
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UsageError(f"there is no {name!r}", where=str(root), hint=_near(root, name)) from error
    if not real.is_relative_to(root.resolve()):
        raise UsageError(f"{name!r} is a link to a place outside the source tree", where=str(root))
    return path


def _near(root: Path, name: str) -> str | None:
    """Suggest an existing file for `name`, looking only where it should be."""
    parent = root / PurePosixPath(name).parent
    if "*" in str(parent) or not parent.is_dir():
        return f"{str(PurePosixPath(name).parent)!r} is no directory of the tree" if "*" not in str(parent) else None
    entries = sorted(entry.name for entry in parent.iterdir())
    near = nearest(PurePosixPath(name).name, entries)
    if near:
        return f"did you mean {(PurePosixPath(name).parent / near[0]).as_posix()!r}?"
    return f"found there: {', '.join(entries[:8])}{' ...' if len(entries) > 8 else ''}" if entries else None
