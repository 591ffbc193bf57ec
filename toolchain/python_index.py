"""Finding the source distribution of one release in the Python package index that pip on this machine uses.

Invariant: nothing of the distribution is run or even opened here, and which index answers does not matter: the caller
knows the digest. The protocols are PEP 503 (HTML) and PEP 691 (JSON); pip says which index it uses.
"""

from __future__ import annotations

import ast
import difflib
import html.parser
import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import Version

from visget.download import Answer, Downloader, HttpError, shown_url
from visget.errors import NotFoundError, RegistryError, TrustError, UnsupportedError, UsageError, VisgetError

_PAGE_LIMIT = 64 << 20
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_PIP_SECONDS = 60
_HINT = "install pip for this Python (python -m ensurepip), or set VISGET_PYTHON_INDEX"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipSettings:
    """What pip on this machine is told about networks."""

    indexes: tuple[str, ...]
    """The addresses of its indexes, the main one first."""
    cert: str | None = None
    """Its certificate authorities."""
    proxy: str | None = None
    """Its proxy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """One file that an index offers."""

    name: str
    url: str
    sha256: str | None
    """Its digest as the index says."""


def read_pip_settings() -> PipSettings:
    """Ask pip for its indexes.

    Raises:
        UnsupportedError: this Python has no pip, or pip does not answer.
        UsageError: pip is told to use no index.
    """
    return parse_pip_settings(_pip("config", "list"), lambda: _pip("download", "--help"))


def parse_pip_settings(config: str, help_text: Callable[[], str]) -> PipSettings:
    """Read the output of ``pip config list``; `help_text` is called for ``pip download --help`` if need be."""
    values: dict[str, str] = {}
    # The later wins: pip lets the environment override the command's own settings, and those the global ones.
    for section in ("global", "download", ":env:"):
        for line in config.splitlines():
            key, equals, value = line.partition("=")
            if equals and key.startswith(f"{section}."):
                values[key.removeprefix(f"{section}.")] = _unquoted(value)
    if values.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        raise UsageError("pip is configured to use no package index (no-index)", hint=_HINT)
    main = values.get("index-url") or _default_index(help_text())
    extra = values.get("extra-index-url", "").split()
    return PipSettings(indexes=tuple(dict.fromkeys([main, *extra])), cert=values.get("cert"), proxy=values.get("proxy"))


def _unquoted(value: str) -> str:
    try:
        return str(ast.literal_eval(value))
    except (ValueError, SyntaxError):
        return value


def _default_index(help_text: str) -> str:
    """Find pip's own default, which its help shows: it is known to pip only."""
    # The help is wrapped to the terminal's width, also at the hyphens of an address.
    flat = " ".join(re.sub(r"-\n\s+", "-", help_text).split())
    match = re.search(r"--index-url <url> .*?\(default:? (https?://[^\s)]+)\)", flat)
    if match is None:
        raise UnsupportedError("pip does not say which package index it uses", hint=_HINT)
    return match[1]


def _pip(*args: str) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *args]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError("cannot ask pip which package index it uses", hint=_HINT) from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise UnsupportedError(f"cannot ask pip which package index it uses: {last[:200]}", hint=_HINT)
    return done.stdout


def find_sdist(name: str, version: str, sha256: str, *, indexes: Iterable[str], downloader: Downloader) -> IndexFile:
    """Return the source distribution of `name` `version` in the first index that has the one with `sha256`.

    Raises:
        NotFoundError: no index has a source distribution of this version.
        TrustError: the indexes have one, but with another digest.
        NetworkError: an index could not be reached, and no other has it.
    """
    failure: VisgetError | None = None
    others: list[IndexFile] = []
    versions: set[Version] = set()
    for index in indexes:
        try:
            files = list(_files(index, canonicalize_name(name), downloader))
        except HttpError as error:
            if error.status not in (404, 410):
                failure = error
            continue
        except RegistryError as error:
            failure = error
            continue
        for file, found in _sdists(files, name):
            versions.add(found)
            if found != Version(version):
                continue
            if file.sha256 in (None, sha256):
                return file
            others.append(file)
    if others:
        raise TrustError(
            f"the package index offers another source distribution of {name} {version} than visget.toml names",
            where=others[0].name,
            hint="compare with the author's announcement before you change source.sha256",
            details={"expected": sha256, "actual": others[0].sha256},
        )
    if failure is not None:
        raise failure
    raise NotFoundError(
        f"no package index of pip has a source distribution of {name} {version}", hint=_near(version, versions)
    )


def _near(version: str, versions: set[Version]) -> str:
    if not versions:
        return "check the name; some releases have wheels only, and wheels hold no sources"
    texts = [str(found) for found in sorted(versions, reverse=True)]
    near = difflib.get_close_matches(version, texts, n=3)
    return f"did you mean {', '.join(near)}?" if near else f"the newest is {texts[0]}"


def _sdists(files: Iterable[IndexFile], name: str) -> Iterator[tuple[IndexFile, Version]]:
    for file in files:
        try:
            found, version = parse_sdist_filename(file.name)
        except InvalidSdistFilename:
            continue
        if found == canonicalize_name(name):
            yield file, version


def _files(index: str, name: str, downloader: Downloader) -> Iterator[IndexFile]:
    """List the files of the project `name` in `index`."""
    page = f"{index.rstrip('/')}/{name}/"
    if page.startswith("file:"):
        answer = _local_page(page)
    else:
        what = f"the list of releases of {name}"
        answer = downloader.read(page, limit=_PAGE_LIMIT, what=what, accept=_ACCEPT, html=True)
    return parse_page(answer)


def local_path(url: str) -> Path:
    """Return the path that a file: address names."""
    return Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path))


def _local_page(url: str) -> Answer:
    path = local_path(url) / "index.html"
    try:
        return Answer(body=path.read_bytes(), url=url, content_type="text/html")
    except OSError as error:
        raise HttpError(f"the package index has no {path.parent.name}", status=404, where=str(path)) from error


def parse_page(answer: Answer) -> Iterator[IndexFile]:
    """Read one project page of the Simple API, in either of its forms.

    Raises:
        RegistryError: it is neither.
    """
    if answer.content_type.endswith("+json"):
        try:
            files = json.loads(answer.body)["files"]
            for file in files:
                url = urllib.parse.urljoin(answer.url, file["url"])
                yield IndexFile(name=file["filename"], url=url, sha256=file.get("hashes", {}).get("sha256"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RegistryError("the package index sends a malformed answer", where=shown_url(answer.url)) from error
        return
    if "html" not in answer.content_type:
        raise RegistryError(
            f"the package index answers with {answer.content_type or 'no media type'}, which is no list of files",
            where=shown_url(answer.url),
        )
    parser = _Anchors()
    parser.feed(answer.body.decode("utf-8", "replace"))
    for link in parser.links:
        url, _, fragment = urllib.parse.urljoin(answer.url, link).partition("#")
        digest = re.fullmatch(r"sha256=([0-9a-f]{64})", fragment)
        name = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
        yield IndexFile(name=name, url=url, sha256=digest[1] if digest else None)


class _Anchors(html.parser.HTMLParser):
    """Collects the targets of all links."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the target of a link."""
        target = dict(attrs).get("href")
        if tag == "a" and target:
            self.links.append(target)
