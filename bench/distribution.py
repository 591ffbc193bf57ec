"""The distribution's own packages of the libraries, as rivals: built by others, for every processor of a kind.

Invariant: only found or unpacked, never installed. What is loaded is one small shared object that needs those of the
package, so that every function is found through one handle however many files the distribution makes of a library.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.native import link

LABEL = "distribution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Packaged:
    """What the distribution calls a library."""

    package: str
    sonames: tuple[str, ...]


def _packaged(package: str, *sonames: str) -> Packaged:
    return Packaged(package=package, sonames=sonames)


PACKAGES: Mapping[str, Packaged] = {
    "brotli": _packaged("libbrotli1", "libbrotlienc.so.1", "libbrotlidec.so.1", "libbrotlicommon.so.1"),
    "c-blosc": _packaged("libblosc1", "libblosc.so.1"),
    "cjson": _packaged("libcjson1", "libcjson.so.1"),
    "expat": _packaged("libexpat1", "libexpat.so.1"),
    "fftw3": _packaged("libfftw3-double3", "libfftw3.so.3"),
    "kissfft": _packaged("libkissfft-float131", "libkissfft-float.so.131"),
    "libdeflate": _packaged("libdeflate0", "libdeflate.so.0"),
    "libjpeg-turbo": _packaged("libturbojpeg0", "libturbojpeg.so.0"),
    "libpng": _packaged("libpng16-16", "libpng16.so.16"),
    "libsodium": _packaged("libsodium23", "libsodium.so.23"),
    "libwebp": _packaged("libwebp7", "libwebp.so.7"),
    "libyaml": _packaged("libyaml-0-2", "libyaml-0.so.2"),
    "lua": _packaged("liblua5.4-0", "liblua5.4.so.0"),
    "lz4": _packaged("liblz4-1", "liblz4.so.1"),
    "mbedtls": _packaged("libmbedcrypto7", "libmbedcrypto.so.7"),
    "md4c": _packaged("libmd4c-html0", "libmd4c-html.so.0", "libmd4c.so.0"),
    "pcre2": _packaged("libpcre2-8-0", "libpcre2-8.so.0"),
    "snappy": _packaged("libsnappy1v5", "libsnappy.so.1"),
    "sqlite3": _packaged("libsqlite3-0", "libsqlite3.so.0"),
    "stb-image": _packaged("libstb0", "libstb.so.0"),
    "utf8proc": _packaged("libutf8proc2", "libutf8proc.so.2"),
    "xxhash": _packaged("libxxhash0", "libxxhash.so.0"),
    "zlib": _packaged("zlib1g", "libz.so.1"),
    "zopfli": _packaged("libzopfli1", "libzopfli.so.1"),
    "zstd": _packaged("libzstd1", "libzstd.so.1"),
}


class MissingError(Exception):
    """The distribution's package cannot be had; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The distribution's files of a library."""

    package: str
    version: str
    files: tuple[Path, ...]


def find(name: str, cache: Path) -> Found:
    """Return the distribution's files of the library `name`, unpacked below `cache` where it is not installed.

    Raises:
        MissingError: there is none, or it is out of reach.
    """
    packaged = PACKAGES.get(name)
    if packaged is None:
        raise MissingError("the distribution has no such package")
    installed = [_loaded_from(soname) for soname in packaged.sonames]
    files = [path for path in installed if path is not None]
    if len(files) == len(packaged.sonames):
        version = _said(["dpkg-query", "-W", "-f", "${Version}", packaged.package]) or "installed"
        return Found(package=packaged.package, version=version, files=tuple(files))
    root = cache / packaged.package
    if not root.is_dir():
        _unpack(packaged.package, root)
    files = [path for soname in packaged.sonames for path in root.rglob(soname)]
    if len(files) != len(packaged.sonames):
        raise MissingError(f"{packaged.package} has no {' or '.join(packaged.sonames)}")
    version = (root / "version").read_text()
    return Found(package=packaged.package, version=version, files=tuple(files))


def join(found: Found, output: Path) -> None:
    """Make the shared object `output`, through which the functions of all files of `found` are found."""
    output.parent.mkdir(parents=True, exist_ok=True)
    directories = dict.fromkeys(str(path.parent) for path in found.files)
    paths = [f"-Wl,-rpath,{directory}" for directory in directories]
    link(["-Wl,--no-as-needed", *map(str, found.files), *paths], output, output.parent)


def _loaded_from(soname: str) -> Path | None:
    """Return where the system's loader finds a library."""
    try:
        ctypes.CDLL(soname)
    except OSError:
        return None
    with Path("/proc/self/maps").open() as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/") and ".so" in line}
    stem = soname.partition(".so")[0]
    for path in map(Path, sorted(paths)):
        beside = path.parent / soname
        if path.name.startswith(f"{stem}.so") and beside.exists() and beside.resolve() == path.resolve():
            return beside
    return None


def _unpack(package: str, root: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise MissingError(f"{package} is not installed")
    work = root.with_name(f"{root.name}.part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    done = subprocess.run(
        ["apt-get", "download", "-o", "APT::Sandbox::User=root", package], cwd=work, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    archives = sorted(work.glob("*.deb"))
    if done.returncode != 0 or len(archives) != 1:
        raise MissingError(f"{package} is neither installed nor can it be downloaded")
    subprocess.run(["dpkg-deb", "-x", archives[0], work], check=True, capture_output=True)
    (work / "version").write_text(_said(["dpkg-deb", "-f", str(archives[0]), "Version"]))
    archives[0].unlink()
    work.rename(root)


def _said(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
