"""Watch what is made durable before what becomes visible: a power cut keeps only what was fsynced before it."""

import os
from pathlib import Path


class Journal:
    """The order of fsync and rename calls below `root`; after() says what a power cut at that point would lose."""

    def __init__(self, root: Path, monkeypatch) -> None:
        self.root = root
        self.synced: set[tuple[int, int]] = set()
        self.renames: list[tuple[str, list[str]]] = []
        self.pending: dict[str, str] = {}
        fsync, rename, replace = os.fsync, os.rename, os.replace

        def watched_fsync(descriptor):
            fsync(descriptor)
            facts = os.fstat(descriptor)
            self.synced.add((facts.st_dev, facts.st_ino))
            # A synced directory makes the names in it durable.
            self.pending.pop(str(Path(f"/proc/self/fd/{descriptor}").readlink()), None)

        def watched(original):
            def move(source, target, **kwargs):
                # What the new name shows to others must be durable before it appears.
                self.renames.append((str(target), self.unsynced(Path(source))))
                original(source, target, **kwargs)
                self.pending[str(Path(target).parent)] = str(target)

            return move

        monkeypatch.setattr(os, "fsync", watched_fsync)
        monkeypatch.setattr(os, "rename", watched(rename))
        monkeypatch.setattr(os, "replace", watched(replace))

    def unsynced(self, path: Path) -> list[str]:
        found = []
        for item in [path, *path.rglob("*")] if path.is_dir() else [path]:
            facts = item.stat()
            if (facts.st_dev, facts.st_ino) not in self.synced:
                found.append(str(item))
        return found

    def check(self, *places: str) -> None:
        """Assert that something appeared below each of `places`, durably, and that its name is durable too."""
        for place in places:
            below = str(self.root / place)
            seen = [lacking for target, lacking in self.renames if target.startswith(below)]
            assert seen, f"nothing appeared in {place}"
            assert not [item for lacking in seen for item in lacking], "visible before it was durable"
            assert not [target for target in self.pending.values() if target.startswith(below)], "name not durable"
