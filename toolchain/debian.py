"""Debian source packages: where they lie in a mirror, and which files they consist of.

Invariant: a .dsc file is trusted for its digest alone, which visget.toml names; the digests that it lists are then
those of the tarballs. Its OpenPGP signature adds nothing to that and is not read. The forms are those of Debian policy,
chapter 5, and dsc(5).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import urllib.parse
from dataclasses import dataclass

from visget.digest import Digest, parse_digest
from visget.errors import FormatError, UnsupportedError

_APT_SECONDS = 60
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.~_-]*")
_TARBALL = r"\.tar\.(?:gz|xz|bz2|zst|lzma)"
_HINT = "set VISGET_DEBIAN_MIRROR or `debian-mirror` in the settings to the address of a Debian mirror"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A part of a mirror in which source packages lie."""

    mirror: str
    component: str

    def url(self, source: str, file: str) -> str:
        """Return the address of `file` of the package `source`."""
        prefix = source[:4] if source.startswith("lib") and len(source) > 3 else source[:1]
        path = f"pool/{self.component}/{prefix}/{source}/{file}"
        return f"{self.mirror.rstrip('/')}/{urllib.parse.quote(path, safe='/+~')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tarball:
    """A tarball of the upstream sources."""

    name: str
    size: int
    sha256: Digest
    directory: str
    """Where it is extracted in the source tree: empty for the main one, else the name of its component."""


def dsc_name(source: str, version: str) -> str:
    """Return the name of the .dsc file; the epoch of a version is no part of file names."""
    return f"{source}_{version.rpartition(':')[2]}.dsc"


def find_places(mirror: str | None) -> tuple[Place, ...]:
    """Return where to look: in `mirror`, else in the mirrors that apt on this machine uses.

    Raises:
        UnsupportedError: no mirror is given, and there is no apt to ask.
    """
    if mirror:
        return tuple(Place(mirror=mirror, component=name) for name in ("main", "contrib", "non-free"))
    apt = shutil.which("apt-get")
    if apt is None:
        raise UnsupportedError("this machine has no apt that would name a Debian mirror", hint=_HINT)
    try:
        done = subprocess.run(
            [apt, "indextargets", "--format", "$(REPO_URI) $(COMPONENT)", "Created-By: Packages"],
            capture_output=True, text=True, timeout=_APT_SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError("cannot ask apt for its mirrors", hint=_HINT) from error
    places = parse_targets(done.stdout)
    if not places:
        raise UnsupportedError("apt on this machine has no mirror that can be reached over http", hint=_HINT)
    return places


def parse_targets(text: str) -> tuple[Place, ...]:
    """Read the lines ``URI COMPONENT`` of ``apt-get indextargets``."""
    places: list[Place] = []
    for line in text.splitlines():
        mirror, _, component = line.strip().partition(" ")
        if not mirror.startswith(("http://", "https://")) or not component:
            continue
        # Sources may be in main although only another component is enabled for binaries.
        places += [Place(mirror=mirror, component=name) for name in (component, "main")]
    return tuple(dict.fromkeys(places))


def parse_dsc(data: bytes, *, source: str, version: str) -> tuple[Tarball, ...]:
    """Return the upstream tarballs that a .dsc file lists, the main one first.

    Debian's own changes (the .debian.tar or .diff) are left out: the package is what its upstream published.

    Raises:
        FormatError: it is malformed, or describes another package.
    """
    where = dsc_name(source, version)
    fields = _fields(data, where)
    said = (fields.get("source", "").strip(), fields.get("version", "").strip())
    if said != (source, version):
        raise FormatError(f"the file describes {said[0]} {said[1]}, not {source} {version}", where=where)
    files = [_entry(line.split(), where) for line in fields.get("checksums-sha256", "").splitlines() if line.strip()]
    chosen: list[Tarball] = []
    for name, size, digest in files:
        match = re.search(rf"\.orig(?:-([A-Za-z0-9-]+))?{_TARBALL}\Z", name)
        if match is not None:
            chosen.append(Tarball(name=name, size=size, sha256=digest, directory=match[1] or ""))
    if not chosen:  # a native package: one tarball holds all
        chosen = [
            Tarball(name=name, size=size, sha256=digest, directory="")
            for name, size, digest in files
            if re.search(rf"(?<!\.debian){_TARBALL}\Z", name)
        ]
    chosen.sort(key=lambda tarball: tarball.directory)
    if not chosen or chosen[0].directory or len([tarball for tarball in chosen if not tarball.directory]) > 1:
        raise FormatError("the file does not name exactly one main tarball with its SHA-256", where=where)
    return tuple(chosen)


def _entry(words: list[str], where: str) -> tuple[str, int, Digest]:
    try:
        digest, size, name = words
        if not _FILE_NAME.fullmatch(name):
            raise ValueError(name)
        return name, int(size), parse_digest(digest)
    except ValueError as error:
        raise FormatError("the list of digests is malformed", where=where) from error


def _fields(data: bytes, where: str) -> dict[str, str]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("the file is not UTF-8 text", where=where) from error
    if text.startswith("-----BEGIN PGP SIGNED MESSAGE-----"):
        _, _, text = text.partition("\n\n")
        text, _, _ = text.partition("\n-----BEGIN PGP SIGNATURE-----")
    fields: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        if line[:1] in (" ", "\t"):
            if key:
                fields[key] += "\n" + line.strip()
        elif ":" in line:
            key, _, value = line.partition(":")
            key = key.strip().lower()
            if key in fields:
                raise FormatError(f"the field {key!r} is there twice", where=where)
            fields[key] = value
    return fields
