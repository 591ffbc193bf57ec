"""A power cut, imitated: what was not synchronised when it happened is lost, in the ways in which disks lose it.

The action runs in a child that writes down what it synchronises and renames, and dies at its Nth call. Then happen()
changes the directory to what may be on the disk: a file whose bytes were not synchronised is empty or full of zeros,
and a name whose directory was not synchronised may be the old one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from crash import survives

VARIANTS = ("cut", "zeros", "old names")


class PowerCut:
    """One power cut of the file system below `root`."""

    def __init__(self, root: Path, log: Path) -> None:
        self._root = root
        self._log = log
        log.unlink(missing_ok=True)
        # Whatever is there already has been on the disk for long.
        self._before = {facts.st_ino for path in root.rglob("*") if (facts := path.lstat())}

    def survives(self, action: Callable[[], object], countdown: int) -> bool:
        """Run `action` in a child that dies at its `countdown`-th call; say whether it came to its end."""
        log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        write = os.write

        def note(*what: object) -> None:
            write(log, json.dumps(what).encode() + b"\n")

        def watched() -> object:
            fsync, rename, replace = os.fsync, os.rename, os.replace

            def noting_fsync(descriptor: int) -> None:
                fsync(descriptor)
                note("sync", os.fstat(descriptor).st_ino, str(Path(f"/proc/self/fd/{descriptor}").readlink()))

            def noting(original: Callable[..., None]) -> Callable[..., None]:
                def move(source: object, target: object, **options: object) -> None:
                    original(source, target, **options)
                    note("name", str(source), str(target), os.lstat(str(target)).st_ino)

                return move

            os.fsync, os.rename, os.replace = noting_fsync, noting(rename), noting(replace)
            return action()

        try:
            return survives(watched, countdown)
        finally:
            os.close(log)

    def happen(self, variant: str) -> None:
        """Change the directory to what may be on the disk after the cut."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []
        durable = self._before | {line[1] for line in lines if line[0] == "sync"}
        if variant == "old names":
            self._undo(lines)
        for path in sorted(self._root.rglob("*")):
            facts = path.lstat()
            if path.is_file() and not path.is_symlink() and facts.st_ino not in durable and "locks" not in path.parts:
                mode = facts.st_mode & 0o777
                path.chmod(0o600)
                path.write_bytes(bytes(facts.st_size) if variant == "zeros" else b"")
                path.chmod(mode)

    def _undo(self, lines: list[list[object]]) -> None:
        """Give back their old names to those whose directory was not synchronised afterwards, the latest first."""
        for number in range(len(lines) - 1, -1, -1):
            line = lines[number]
            if line[0] != "name":
                continue
            source, target = Path(str(line[1])), Path(str(line[2]))
            synced = any(later[0] == "sync" and later[2] == str(target.parent) for later in lines[number:])
            if not synced and os.path.lexists(target) and target.lstat().st_ino == line[3]:
                if source.parent.is_dir() and not os.path.lexists(source):
                    target.rename(source)
                elif target.is_file():
                    target.unlink()
