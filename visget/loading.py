"""``visget.load`` and ``visget.path``: from a name to a library in this process.

Invariant: loading an installed library imports neither LLVM, nor cryptography, nor anything of registries; only
when this machine's artifact is missing or damaged is the installer imported, to compile it again.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from visget.cache.content import DamagedError
from visget.cache.entry import Check, NativeEntry
from visget.cache.environment import Environment, Installed
from visget.cache.store import Store
from visget.config import Settings, read_load_settings, read_settings
from visget.errors import CacheError, LoadError, NotFoundError, TrustError, VisgetError
from visget.names import Requirement, parse_name, parse_version
from visget.progress import SILENT, Progress
from visget.wiring import machine_key, store_of, target_of

if TYPE_CHECKING:
    from visget.format.package import VerifiedPackage
    from visget.runtime.library import Library


def load(name: str, version: str | None = None, *, settings: Settings | None = None) -> Library:
    """Load an installed library into this process and return it with typed functions.

    Args:
        name: the package's name.
        version: one of the installed versions; None means the selected one.

    Raises:
        NotFoundError: it is not installed.
        LoadError: the library cannot be loaded.
    """
    from visget.runtime.library import open_entry

    # Names and sizes only: what is loaded is checked below, through the descriptor that it is loaded from.
    installed, entry = resolve(name, version, settings=settings, check="quick")
    find = partial(store_of(settings or read_load_settings()).native, check="quick")
    try:
        return open_entry(entry, name=installed.name, version=installed.version, find=find)
    except DamagedError:
        # This look at every file moves the artifact to quarantine, and has it compiled again.
        installed, entry = resolve(name, version, settings=settings)
    try:
        return open_entry(entry, name=installed.name, version=installed.version, find=find)
    except DamagedError as error:
        raise LoadError(
            f"{installed.name} {installed.version} was damaged again as soon as it was whole: {error}",
            where=str(entry.path), hint="look for a failing disk, or for a program that writes to the store",
        ) from error  # fmt: skip


def path(name: str, version: str | None = None, *, settings: Settings | None = None) -> Path:
    """Return the shared library of an installed package, for ``ctypes.CDLL`` or a linker.

    Raises:
        NotFoundError: it is not installed, or was installed without a linker and has no shared library.
    """
    installed, entry = resolve(name, version, settings=settings)
    found = entry.path / "lib" / f"lib{installed.name}.so"
    if not found.exists():
        raise NotFoundError(
            f"{installed.name} {installed.version} has no shared library: there was no linker when it was installed",
            where=str(entry.path),
            hint="pip install 'visget[author]' (it brings a linker) and install it again; visget.load works as it is",
        )
    return found


def resolve(name: str, version: str | None = None, *, settings: Settings | None = None,
            progress: Progress = SILENT, check: Check = "full") -> tuple[Installed, NativeEntry]:  # fmt: skip
    """Return what is installed under `name` and its native entry for this machine, compiling it when it is missing.

    A shared home directory serves machines with different processors: the package is there, but this machine's
    artifact may not be. A damaged artifact is missing, too. In both cases it is compiled again from the package.

    Args:
        check: "quick" for a caller that compares the digest of whatever it uses itself.

    Raises:
        NotFoundError: nothing of that name and version is installed.
    """
    light = settings or read_load_settings()
    store = store_of(light)
    wanted = str(parse_version(version)) if version is not None else None
    found = Environment(store).lookup(parse_name(name), wanted)
    if found is None:
        raise not_installed(name, version, Environment(store).installed())
    key = found.natives.get(machine_key(light, None))
    entry = store.native(key, check=check) if key is not None else None
    if entry is not None and not _whole(store, entry, check):
        entry = None
    if entry is None:
        with store.in_use():
            entry = _compile_again(found, store, settings or read_settings(), progress)
    return found, entry


def _whole(store: Store, entry: NativeEntry, check: Check) -> bool:
    """Return whether every artifact is there that the library in `entry` is linked with, directly or not."""
    pending = list(entry.needs)
    seen = set()
    while pending:
        need = pending.pop()
        if need in seen:
            continue
        seen.add(need)
        other = store.native(need.key, check=check)
        if other is None or (need.path and other.file(need.path) is None):
            return False
        pending += other.needs
    return True


def _compile_again(found: Installed, store: Store, settings: Settings, progress: Progress) -> NativeEntry:
    from visget.installing import install_verified
    from visget.requiring import dependency, needs_in_order

    needs = [] if not found.requires else needs_in_order(
        found, Environment(store), lambda item: _verified_again(item, store, settings, progress)
    )  # fmt: skip
    keys = {} if found.static else {
        item.name: resolve(item.name, item.version, settings=settings, progress=progress)[1].key for item, _ in needs
    }  # fmt: skip
    return install_verified(
        _verified_again(found, store, settings, progress), store, target_of(settings, None), source=found.source,
        first_use=False, settings=settings, progress=progress, select=False, automatic=found.automatic,
        dependencies=[dependency(verified, keys.get(item.name)) for item, verified in needs],
        linking="static" if found.static else "shared",
    ).entry  # fmt: skip


def _verified_again(found: Installed, store: Store, settings: Settings, progress: Progress) -> VerifiedPackage:
    from visget.format.keys import parse_key_id
    from visget.format.package import open_package, verify_package

    data, envelope = store.package(found.package), store.envelope(found.package)
    if data is None or envelope is None:
        return _fetch_again(found, store, settings, progress)
    return verify_package(open_package(data), envelope, [parse_key_id(signer) for signer in found.signers])


def _fetch_again(found: Installed, store: Store, settings: Settings, progress: Progress) -> VerifiedPackage:
    from visget.obtain import obtain

    title = f"{found.name} {found.version}"
    try:
        wanted = Requirement.parse(f"{found.name}=={found.version}")
        again = obtain(wanted, registry=found.source or None, settings=settings, progress=progress).verified
    except TrustError:
        raise
    except VisgetError as error:
        raise CacheError(
            f"{title} is damaged in the store, its package is gone too, and it cannot be fetched: {error.message}",
            where=str(store.package_path(found.package)),
            hint=error.hint or f"install it again: visget install {found.name}=={found.version}",
        ) from error
    if again.package.digest != found.package:
        raise TrustError(
            f"the registry now offers other bytes as {title} than were installed before",
            where=found.source,
            hint="versions never change; tell the registry's operator and the author",
            details={"expected": found.package, "actual": again.package.digest},
        )
    return again


def not_installed(name: str, version: str | None, installed: list[Installed]) -> NotFoundError:
    """Return the error that says that `name` is not installed, and what to do about it."""
    from visget.nearest import nearest

    versions = [item.version for item in installed if item.name == name]
    if versions:
        return NotFoundError(
            f"{name} {version} is not installed; installed: {', '.join(versions)}",
            hint=f"visget install {name}=={version}",
        )
    close = nearest(name, [item.name for item in installed])
    hint = f"did you mean {close[0]!r}?" if close else f"visget install {name}"
    return NotFoundError(f"{name!r} is not installed", hint=hint)
