"""Withdrawing a published version, and taking that back.

A version in bad standing stays where it is, for those who have locked it or name it exactly; nobody is offered it any
more (PEP 592). Invariant: nothing but its standing changes. The spec is docs/spec/registry.md, section "Withdrawing".
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from packaging.version import Version

from visget.errors import NotFoundError, UsageError
from visget.format.plaintext import is_line
from visget.names import PackageName
from visget.nearest import nearest
from visget.registry.editing import editing
from visget.registry.protocol import YANKED_LIMIT, Releases


def check_reason(reason: str) -> str:
    """Return `reason` when it is one line that people can read.

    Raises:
        UsageError: it is empty, too long, or holds a control character.
    """
    if not reason.strip():
        raise UsageError("the reason is empty", hint="say in a few words why nobody should choose this version")
    if len(reason) > YANKED_LIMIT or not is_line(reason):
        raise UsageError(f"the reason must be one line of at most {YANKED_LIMIT} characters")
    return reason


def with_standing(releases: Releases, version: Version, reason: str | None) -> Releases:
    """Return `releases` with `version` withdrawn for `reason`, or in good standing when that is None.

    Raises:
        NotFoundError: there is no such version.
    """
    if all(item.version != version for item in releases.versions):
        newest = ", ".join(str(item.version) for item in reversed(releases.versions[-10:]))
        raise NotFoundError(f"{releases.name} {version} was never published", hint=f"there is {newest}")
    versions = tuple(
        dataclasses.replace(item, yanked=reason) if item.version == version else item for item in releases.versions
    )
    return dataclasses.replace(releases, versions=versions)


def set_standing(
    root: Path,
    name: PackageName,
    version: Version,
    reason: str | None,
    *,
    keys: Path | None = None,
    now: float | None = None,
) -> bool:
    """Withdraw a version in the registry at `root`, or put it in good standing again.

    Args:
        root: the registry's directory.
        name: the package.
        version: its version.
        reason: why nobody should choose it; None puts it in good standing.
        keys: the operator's room; None means the one beside the directory.
        now: the time, in seconds since the epoch.

    Returns:
        Whether anything changed.

    Raises:
        NotFoundError: there is no such package or version.
        UsageError: the registry's keys are not here.
        TrustError, RegistryError: the registry is not in order, or cannot be written.
        ResourceError: the disk is full or fails.
    """
    with editing(root, keys=keys, now=now) as editor:
        old = editor.index(name)
        if old is None:
            close = nearest(name, editor.names())
            raise NotFoundError(
                f"there is no package {name!r} in this registry",
                where=str(root), hint=f"did you mean {close[0]!r}?" if close else None,
            )  # fmt: skip
        new = with_standing(old, version, reason)
        editor.put_index(new)
    return new != old
