"""Settings turned into the values that the rooms take: target, limits, linker, network.

Invariant: the rooms below never see Settings; whatever they need is in one of these values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from visget.cache.store import Store
from visget.config import Settings
from visget.machine import machine_id

if TYPE_CHECKING:
    from visget.download import NetworkOptions
    from visget.installer.limits import Limits
    from visget.installer.linkers import Linker
    from visget.installer.target import Target


def store_of(settings: Settings) -> Store:
    """Return the user's store; it is created when there is none.

    Raises:
        TrustError: somebody else could change what is in it.
        CacheError: it cannot be created. Whoever writes to it on a network file system meets another one, unless
            the settings allow that.
    """
    return Store.open(settings.home, network=settings.allow_network_fs)


def target_of(settings: Settings, text: str | None) -> Target:
    """Return the target named by `text`, else by the settings, else this machine.

    Raises:
        UnsupportedError: there is no such target or no back end for it.
    """
    from visget.installer.detect import host_target
    from visget.installer.target import parse_target

    wanted = text or settings.target
    host = host_target()
    return parse_target(wanted, host) if wanted else host


def machine_key(settings: Settings, target: Target | None) -> str:
    """Return under which name the environment remembers an artifact: this machine's id, or the target's text.

    Args:
        target: the target just compiled for; None means "whatever `load` wants now".
    """
    if target is None:
        if settings.target in (None, "host"):  # no need to look at the processor, which takes LLVM
            return machine_id()
        target = target_of(settings, None)
    from visget.installer.detect import host_target

    return machine_id() if target == host_target() else f"target:{target.key()}"


def limits_of(settings: Settings) -> Limits:
    """Return the limits of the worker processes."""
    from visget.installer.limits import Limits

    return Limits(
        seconds=float(settings.compile_seconds), memory=settings.compile_memory_mb << 20,
        library_path=settings.library_path, sandbox=settings.sandbox,
    )  # fmt: skip


def linker_of(settings: Settings, target: Target) -> Linker | None:
    """Return the linker to use for `target`, or None when there is none.

    Raises:
        UsageError: the settings name a linker that does not exist.
    """
    from visget.installer.linkers import find_linker

    return find_linker(settings.linker, target)


def network_of(settings: Settings) -> NetworkOptions:
    """Return how to reach the network."""
    from visget.download import NetworkOptions

    return NetworkOptions(
        offline=settings.offline, ca_bundle=settings.ca_bundle, proxy=settings.proxy, no_proxy=settings.no_proxy,
        debian_mirror=settings.debian_mirror, python_index=settings.python_index,
    )  # fmt: skip
