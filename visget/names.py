"""Names of packages, versions and requirements, parsed once into their normal form.

Invariant: a PackageName is already normal, so two names are the same package exactly when the strings are
equal. The rule is written in docs/spec/manifest.md, section "Names"; versions and requirements are PEP 440.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NewType

from visget.errors import UsageError

if TYPE_CHECKING:
    # Imported where a version is parsed: `visget.load` never parses one, and packaging costs it milliseconds.
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

PackageName = NewType("PackageName", str)
"""A name that passed parse_name()."""

NAME_LIMIT = 64
VERSION_LIMIT = 128
_REQUIREMENT_LIMIT = 1024
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z")
DEVICE_NAMES = frozenset(
    ["con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))]
)
"""Device names of Windows: a file of that name cannot be written there, with any suffix."""
SYSTEM_LIBRARIES = frozenset(
    [
        "c", "g", "m", "mvec", "pthread", "dl", "rt", "util", "resolv", "crypt", "anl", "nsl", "thread_db", "atomic",
        "BrokenLocale", "gcc", "gcc_s", "gcc_eh", "ssp", "stdc++", "c++", "c++abi", "supc++", "unwind",
    ]
)  # fmt: skip
"""What linkers link without being told, or programs take for granted: a package's library is never called so."""
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*((?:[=<>!~].*)?)\Z", re.DOTALL)


def parse_name(text: str) -> PackageName:
    """Return `text` as a package name.

    Raises:
        UsageError: the name breaks a rule; the message says which.
    """
    shown = text[:80]
    if len(text) > NAME_LIMIT:
        raise UsageError(f"package name {shown!r}... is longer than {NAME_LIMIT} characters")
    if not _NAME.match(text):
        raise UsageError(
            f"{shown!r} is not a package name",
            hint="use lower-case ASCII letters, digits and single hyphens, beginning with a letter",
        )
    if text in DEVICE_NAMES:
        raise UsageError(f"package name {shown!r} is reserved: it is a device name on Windows")
    if text in SYSTEM_LIBRARIES:
        # With its directory on a linker's path, -lc would be the package.
        raise UsageError(f"package name {shown!r} is reserved: lib{text} belongs to the system")
    return PackageName(text)


def parse_version(text: str) -> Version:
    """Return `text` as a PEP 440 version.

    Raises:
        UsageError: it is not one.
    """
    from packaging.version import InvalidVersion, Version

    if len(text) > VERSION_LIMIT:
        # Also because Python refuses to read a number of thousands of digits, with an error of its own.
        raise UsageError(f"the version {text[:20]!r}... is longer than {VERSION_LIMIT} characters")
    try:
        return Version(text)
    except InvalidVersion as error:
        raise UsageError(
            f"{text[:80]!r} is not a version", hint="write a PEP 440 version, such as 1.4.2 or 2.0rc1"
        ) from error


class Requirement(NamedTuple):
    """A package name with the versions that will do."""

    name: PackageName
    """The package wanted."""
    specifier: SpecifierSet
    """The PEP 440 versions that satisfy it; empty means any final release."""

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Parse ``NAME``, ``NAME==1.2`` or ``NAME>=1.2,<2``.

        Raises:
            UsageError: the name or a version clause is malformed.
        """
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        if len(text) > _REQUIREMENT_LIMIT:
            raise UsageError(f"the requirement {text[:40]!r}... is longer than {_REQUIREMENT_LIMIT} characters")
        match = _REQUIREMENT.match(text)
        if match is None:
            raise UsageError(f"{text[:80]!r} is not a requirement", hint="write NAME, NAME==1.2 or NAME>=1.2,<2")
        try:
            specifier = SpecifierSet(match[2])
        except InvalidSpecifier as error:
            raise UsageError(
                f"{text[:80]!r} has a version clause that PEP 440 does not know",
                hint="write NAME==1.2 or NAME>=1.2,<2",
            ) from error
        return cls(parse_name(match[1]), specifier)

    def __str__(self) -> str:
        return f"{self.name}{self.specifier}"


def exact_version(text: str) -> tuple[PackageName, Version]:
    """Parse ``NAME==VERSION``, which names one version.

    Raises:
        UsageError: it is something else.
    """
    name, equal, version = text.partition("==")
    if not equal or version.startswith("="):
        raise UsageError(f"{text[:80]!r} does not name one version", hint="write NAME==VERSION")
    return parse_name(name.strip()), parse_version(version.strip())
