"""The operations that may be interrupted at any moment, and what must hold afterwards. For tests of rows 14 and 15."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from badkit import Place, publish_tiny, write_project
from packagekit import key

from visget import api
from visget.cache.environment import Environment
from visget.cache.store import Store
from visget.config import Settings, read_settings
from visget.digest import digest_bytes
from visget.format.package import Package, open_package
from visget.format.signing import sign_package
from visget.registries import reading, room_of
from visget.registry.directory import publish
from visget.registry.operator import open_room
from visget.registry.roots import Holders, holders_of, parse_root, sign_file, staged
from visget.registry.tuf_keys import KeySigner
from visget.registry.upkeep import finish_staged, refresh, rotate_online, rotate_root, waiting

AUTHOR = "author"
OLD = digest_bytes(b"an artifact that nothing needs")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A registry with tiny 1.0, tiny 2.0 as a file, and a user who may have installed it."""

    place: Place
    second: Package

    @property
    def settings(self) -> Settings:
        return read_settings(self.place.environ)

    @property
    def store(self) -> Store:
        return Store.open(self.place.home)

    def copy(self, root: Path) -> World:
        """Return a copy that may be damaged."""
        shutil.copytree(self.place.root, root, symlinks=True)
        return World(place=Place(root=root), second=self.second)


def make_world(root: Path) -> World:
    """Build everything once."""
    place = publish_tiny(root)
    project = write_project(root / "second", version="2.0")
    assert place.run("build", project).code == 0
    return World(place=place, second=open_package((project / "dist" / "tiny-2.0.vis").read_bytes()))


# ---- installing ----------------------------------------------------------------------------------------------


def _install(world: World) -> None:
    api.install("tiny", settings=world.settings)


def _check_install(world: World, *, done: bool) -> None:
    versions = [item.version for item in api.installed(settings=world.settings)]
    assert versions == ["1.0"] or (versions == [] and not done)
    if versions:
        assert api.resolve("tiny", settings=world.settings)
    store_is_whole(world.store)


# ---- garbage collection --------------------------------------------------------------------------------------


def _fill(world: World) -> None:
    """Install tiny, and add an artifact and a package that nothing needs."""
    _install(world)
    store = world.store
    store.put_package(b"a package that nothing needs")
    store.build_native(OLD, lambda work: (work / "file").write_text("x") and None)


def _collect(world: World) -> None:
    world.store.gc(max_age=0)


def _check_collect(world: World, *, done: bool) -> None:
    store = world.store
    store_is_whole(store)
    assert api.resolve("tiny", settings=world.settings)
    left = [entry.key for entry in store.natives()]
    assert len(left) == 1 or not done
    assert OLD not in left or not done


# ---- publishing and refreshing -------------------------------------------------------------------------------


def _publish(world: World) -> None:
    settings = world.settings
    envelope = sign_package(world.second, key(AUTHOR))
    publish(world.place.registry, world.second, envelope, keys=room_of(settings, world.place.registry))


def _refresh(world: World) -> None:
    refresh(world.place.registry, room_of(world.settings, world.place.registry), force=True)


def versions_offered(world: World) -> list[str]:
    """Return what a user who knows the registry sees now; everything on the way is verified."""
    with reading(world.settings, None) as source:
        releases = source.releases("tiny")
        for release in releases.versions:
            source.fetch(release)
        return [str(release.version) for release in releases.versions]


def _check_publish(world: World, *, done: bool) -> None:
    found = versions_offered(world)
    assert found == ["1.0", "2.0"] or (found == ["1.0"] and not done)


def _check_refresh(world: World, *, done: bool) -> None:
    assert versions_offered(world) == ["1.0"]


# ---- rotating and signing ------------------------------------------------------------------------------------


def _rotate(world: World) -> None:
    rotate_online(world.place.registry, room_of(world.settings, world.place.registry))


def _check_rotate(world: World, *, done: bool) -> None:
    assert versions_offered(world) == ["1.0"]
    room = room_of(world.settings, world.place.registry)
    if done:
        assert staged(room / "staged") == []
        assert not (room / "online.next.key").exists()
        _publish(world)
        assert versions_offered(world) == ["1.0", "2.0"]


def _stage_root(world: World) -> None:
    """Hand the root to another key, which has to sign that."""
    room = room_of(world.settings, world.place.registry)
    assert len(rotate_root(world.place.registry, room, Holders(keys=(key("holder").public,)))) == 1


def _sign(world: World) -> None:
    (document,) = staged(room_of(world.settings, world.place.registry) / "staged")
    sign_file(document.path, KeySigner(key("holder")))


def _check_sign(world: World, *, done: bool) -> None:
    room = room_of(world.settings, world.place.registry)
    (document,) = staged(room / "staged")
    assert len(document.metadata.signatures) in ((2,) if done else (1, 2))
    assert len(waiting(room)) == 2 - len(document.metadata.signatures)
    assert versions_offered(world) == ["1.0"]
    if done:
        _apply(world)


def _stage_and_sign(world: World) -> None:
    _stage_root(world)
    _sign(world)


def _apply(world: World) -> None:
    assert finish_staged(world.place.registry, room_of(world.settings, world.place.registry)) == []


def _check_apply(world: World, *, done: bool) -> None:
    assert versions_offered(world) == ["1.0"]
    room = open_room(room_of(world.settings, world.place.registry))
    holders = holders_of(parse_root(room.root()), "root").keys
    assert holders == (key("holder").public,) or not done
    assert staged(room.staged) == [] or not done


# ---- all -----------------------------------------------------------------------------------------------------


def nothing(world: World) -> None:
    """Prepare nothing."""


OPERATIONS: dict[str, tuple[Callable[[World], None], Callable[[World], None], Callable[..., None]]] = {
    "install": (nothing, _install, _check_install),
    "gc": (_fill, _collect, _check_collect),
    "publish": (nothing, _publish, _check_publish),
    "refresh": (nothing, _refresh, _check_refresh),
    "rotate-online": (nothing, _rotate, _check_rotate),
    "sign": (_stage_root, _sign, _check_sign),
    "apply": (_stage_and_sign, _apply, _check_apply),
}
"""Name: what is there before, the operation, and what must hold after it, done or not."""


def store_is_whole(store: Store) -> None:
    assert store.check().damaged == ()
    assert Environment(store).installed() is not None
    assert list((store.root / "quarantine").iterdir()) == []


def nothing_is_left(world: World) -> None:
    """Assert that no temporary file remains anywhere."""
    found = [
        str(path.relative_to(world.place.root))
        for room in (world.place.home, world.place.registry, world.place.config)
        for path in room.rglob("*")
        if path.name.endswith((".tmp", ".part")) or path.parent.name in (".new", "tmp")
        or (path.parent.name == "tuf" and path.name.startswith("tmp"))
    ]  # fmt: skip
    assert found == [], found
