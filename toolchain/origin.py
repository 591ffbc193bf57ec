"""The table [source] of visget.toml: where the sources of a package come from.

Invariant: every source names one exact file by its SHA-256; which server delivers it decides nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from visget.digest import Digest, parse_digest
from visget.errors import UsageError
from visget.names import parse_version
from visget.toolchain.paths import path_problem
from visget.toolchain.toml_table import Table

_PYPI = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([A-Za-z0-9.!+_-]+)")
# Debian policy 5.6.1 and 5.6.12.
_DEBIAN = re.compile(r"([a-z0-9][a-z0-9+.-]+)=((?:[0-9]+:)?[0-9][A-Za-z0-9.+~-]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """What is laid beside the files of upstream, none of which it may replace."""

    overlay: str = ""
    """A directory beside visget.toml whose files are added; empty for none."""
    copies: tuple[tuple[str, str], ...] = ()
    """Files under another name too: (new name, the file of the tree)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PypiSource:
    """The source distribution of one release in the Python package index that pip uses."""

    name: str
    version: str
    sha256: Digest
    """Of the source distribution."""
    subdir: str = ""
    additions: Additions = Additions()

    @property
    def label(self) -> str:
        """What the package's provenance says."""
        return f"pypi:{self.name}=={self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianSource:
    """One Debian source package."""

    name: str
    version: str
    """With its epoch, as apt shows it."""
    sha256: Digest
    """Of the .dsc file, which names the digests of all others."""
    subdir: str = ""
    additions: Additions = Additions()

    @property
    def label(self) -> str:
        """What the package's provenance says."""
        return f"debian:{self.name}={self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlSource:
    """An archive at an address."""

    url: str
    sha256: Digest
    """Of the archive."""
    subdir: str = ""
    additions: Additions = Additions()

    @property
    def label(self) -> str:
        """What the package's provenance says."""
        return f"url:{self.url}"


Source: TypeAlias = PypiSource | DebianSource | UrlSource


def parse_source(table: Table) -> Source:
    """Read the table [source].

    Raises:
        UsageError: it does not name exactly one source with its digest.
    """
    kinds = [kind for kind in ("pypi", "debian", "url") if kind in table]
    for kind, example in (("pypi", '"name==1.0"'), ("debian", '"name=1.0-1"'), ("url", '"https://..."')):
        table.text(kind, example)
    if len(kinds) > 1:
        table.fail(kinds[1], f"a package has one source, and {kinds[0]!r} names one already", "remove one of the two")
    if not kinds:
        table.text("sha256", '"..."')
        table.text("subdir", '"..."')
        _additions(table)
        table.done()
        table.fail_here(
            "names no source", 'write pypi = "name==version", debian = "name=version" or url = "https://..."'
        )
    kind = kinds[0]
    text = table.needed(kind, '"..."')
    sha256 = _sha256(table)
    subdir = table.path("subdir", '"lib"') or ""
    additions = _additions(table)
    table.done()
    if kind == "url":
        if not re.fullmatch(r"https?://[^\s/@]+/\S+", text):
            table.fail("url", f"{text[:80]!r} is no http:// or https:// address of a file")
        return UrlSource(url=text, sha256=sha256, subdir=subdir, additions=additions)
    match = (_PYPI if kind == "pypi" else _DEBIAN).fullmatch(text)
    if match is None:
        form = "name==version" if kind == "pypi" else "name=version, with the version as apt shows it"
        table.fail(kind, f"expected {form}, found {text[:80]!r}", "one exact version, no range")
    if kind == "pypi":
        try:
            parse_version(match[2])
        except UsageError as error:
            table.parsed(kind, error)
        return PypiSource(name=match[1], version=match[2], sha256=sha256, subdir=subdir, additions=additions)
    return DebianSource(name=match[1], version=match[2], sha256=sha256, subdir=subdir, additions=additions)


def _additions(table: Table) -> Additions:
    overlay = table.path("overlay", '"port"') or ""
    copies = table.table("copy")
    pairs = [(name, copies.path(name, '"config.h.in"') or "") for name in copies]
    for name, _ in pairs:
        if problem := path_problem(name):
            copies.fail(name, problem)
    copies.done()
    return Additions(overlay=overlay, copies=tuple(pairs))


def _sha256(table: Table) -> Digest:
    text = table.needed("sha256", '"64 hexadecimal digits"')
    try:
        return parse_digest(text.lower())
    except ValueError:
        table.fail(
            "sha256",
            f"expected 64 hexadecimal digits, found {len(text)} characters",
            "run `sha256sum FILE` on the sdist, the .dsc file or the archive",
        )
