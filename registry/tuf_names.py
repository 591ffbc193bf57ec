"""The names of a registry's targets, and where its files lie.

Invariant: a target's name is flat, of lower-case ASCII letters, digits and ``. _ + ! -``, and never begins or ends
with a dot; so a name can neither leave a directory nor mean two things in a URL. A client checks a name before it
looks it up and before it makes a path of it. The spec is docs/spec/registry.md, section "Layout".
"""

from __future__ import annotations

import hashlib
import re

from packaging.version import Version

from visget.digest import Digest
from visget.errors import TrustError
from visget.names import PackageName

METADATA = "tuf"
"""The directory of the signed metadata."""
TARGETS = "t"
"""The directory of everything that the metadata names, directly or through an index."""
BIN_BITS = 8
BIN_PREFIX = "bin"
BINS = tuple(f"{BIN_PREFIX}-{number:02x}" for number in range(1 << BIN_BITS))
"""The roles among which the targets are distributed."""
NAMES_TARGET = "names.json"
"""The list of all names, for search."""
_FLAT = re.compile(r"[a-z0-9](?:[a-z0-9_+!-]|\.(?!\.)){0,179}\Z")


def check_target_name(name: str) -> str:
    """Return `name` when it may be the name of a target.

    Raises:
        TrustError: it could leave its directory, or mean something else in a URL or a file system.
    """
    if not _FLAT.match(name) or name.endswith("."):
        raise TrustError(
            f"{name[:80]!r} cannot be the name of a registry's file",
            hint="names have at most 180 lower-case ASCII letters, digits and . _ + ! -",
        )
    return name


def index_target(name: PackageName) -> str:
    """Return the name of the index of a package."""
    return f"idx__{name}.json"


def package_target(name: PackageName, version: Version) -> str:
    """Return the name of a package file."""
    return check_target_name(f"pkg__{name}__{version}.vis")


def envelope_target(name: PackageName, version: Version) -> str:
    """Return the name of a signature file."""
    return check_target_name(f"pkg__{name}__{version}.dsse")


def owner_target(name: PackageName, number: int) -> str:
    """Return the name of the `number`-th owner record of a package; the first is 1."""
    return f"own__{name}__{number}.json"


def shard_target(bits: int, number: int) -> str:
    """Return the name of one part of the list of all names, which has 2 to the power of `bits` parts."""
    return f"names__{bits}-{number:02x}.json"


def bin_of(target: str) -> str:
    """Return the role that is responsible for `target`."""
    return BINS[hashlib.sha256(target.encode("utf-8")).digest()[0]]


def stored_path(target: str, digest: Digest) -> str:
    """Return where the file of a target lies; the digest in its name makes every path hold the same for ever."""
    return f"{TARGETS}/{digest}.{check_target_name(target)}"


def metadata_path(role: str, version: int | None) -> str:
    """Return where the metadata of `role` lies; `version` is None for the timestamp only."""
    return f"{METADATA}/{role}.json" if version is None else f"{METADATA}/{version}.{role}.json"
