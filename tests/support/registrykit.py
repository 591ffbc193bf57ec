"""Looking into a registry's directory, and registries that lie: everything properly signed, by the operator's keys."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from visget.digest import digest_bytes
from visget.registry.operator import find_room, open_room
from visget.registry.tuf_names import index_target, stored_path
from visget.registry.tuf_repository import Change, Repository
from visget.registry.upkeep import signer_of


def room_of(root: Path) -> Path:
    """The operator's room: beside the registry, or in a configuration beside it."""
    return find_room(root.parent / "config" / "registries", root)


def repository(root: Path) -> Repository:
    return Repository(root, open_room(room_of(root)).root())


def stored(root: Path, kind: str, name: str = "*", version: str = "*") -> list[Path]:
    """The files of packages of that kind ("vis" or "dsse")."""
    return sorted((root / "t").glob(f"*.pkg__{name}__{version}.{kind}"))


def index_file(root: Path, name: str) -> Path:
    """The file of the current index of a package."""
    target = repository(root).find(index_target(name))  # type: ignore[arg-type]
    assert target is not None
    return root / stored_path(target.name, target.digest)


def sign_target(root: Path, name: str, data: bytes, *, now: float | None = None) -> None:
    """Put any bytes into the registry as the target `name`, properly signed."""
    room = open_room(room_of(root))
    change = Change(
        repository(root), signer_of(room), periods=room.periods, now=now or time.time(), seen=room.seen
    )
    change.put(name, data)
    room.remember(change.commit())


def edit_index(root: Path, name: str, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change what the index of a package says, and sign that."""
    document = json.loads(index_file(root, name).read_bytes())
    edit(document)
    sign_target(root, index_target(name), json.dumps(document).encode())  # type: ignore[arg-type]


def put_file(root: Path, name: str, data: bytes) -> str:
    """Put a file where the client looks for one of that name and digest; return the digest."""
    digest = digest_bytes(data)
    (root / stored_path(name, digest)).write_bytes(data)
    return digest


def tree(root: Path) -> dict[str, bytes]:
    """Every file that readers see."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != ".lock" and ".new" not in path.parts
    }


class Told:
    """A receiver of progress that keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def step(self, phase: str, detail: str = "", done: int = 0, total: int | None = None) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)
