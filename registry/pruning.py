"""Removing what a registry's signed metadata names no more.

Invariant: nothing goes that the present state names, that is younger than a day (somebody may be reading it), or
that belongs to a package; roots are kept for ever. The spec is docs/spec/registry.md, section "Renewal".
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from visget.files import translated
from visget.registry.names_list import NamesList
from visget.registry.tuf_names import METADATA, NAMES_TARGET, TARGETS
from visget.registry.tuf_repository import Repository

_GRACE = 86400.0
_VERSIONED = re.compile(r"([1-9][0-9]*)\.(.+)\.json\Z")
_REPLACED = re.compile(r"([0-9a-f]{64})\.(idx__.+|names.*)\.json\Z")


def prune(repository: Repository, now: float) -> int:
    """Remove metadata and indexes that were replaced a day ago or earlier, and return how many."""
    current = {role.removesuffix(".json"): item.version for role, item in repository.snapshot.signed.meta.items()}
    current["snapshot"] = repository.snapshot.signed.version
    named = {target.digest for target in repository.all_targets()}
    listing = repository.find(NAMES_TARGET)
    if listing is not None:
        parts = NamesList.parse(repository.read(listing), str(repository.root)).shards
        named |= {target.digest for target in parts.values()}
    removed = 0
    for entry in _old(repository.root / METADATA, now):
        match = _VERSIONED.match(entry.name)
        if match and match[2] != "root" and int(match[1]) < current.get(match[2], 0):
            removed += _remove(entry)
    for entry in _old(repository.root / TARGETS, now):
        match = _REPLACED.match(entry.name)
        if match and match[1] not in named:
            removed += _remove(entry)
    return removed


def _old(room: Path, now: float) -> Iterator[os.DirEntry[str]]:
    with translated("look for old files", room), os.scandir(room) as entries:
        for entry in entries:
            facts = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(facts.st_mode) and facts.st_mtime < now - _GRACE:
                yield entry


def _remove(entry: os.DirEntry[str]) -> int:
    path = Path(entry.path)
    with translated("remove an old file", path):
        path.unlink(missing_ok=True)
    return 1

