from __future__ import annotations

import subprocess
import sys

import pytest

from visget.download import Answer
from visget.errors import RegistryError, UnsupportedError, UsageError
from visget.toolchain.python_index import PipSettings, parse_page, parse_pip_settings, read_pip_settings

HELP = """\
  -i, --index-url <url>       Base URL of the Python Package Index (default
                              https://index.example/some-
                              path/simple). This should point to
  --extra-index-url <url>     Extra URLs of package indexes to use in addition
"""


def no_help() -> str:
    raise AssertionError("the help is not needed")


def test_reads_the_configuration_by_its_precedence() -> None:
    config = (
        "global.index-url='https://a.example/simple'\n"
        "global.extra-index-url='https://b.example/simple  https://c.example'\n"
        "download.index-url='https://d.example/simple'\n"
        "install.index-url='https://never.example'\n"
        ":env:.cert='/ca.pem'\n"
        "global.cert='/other.pem'\n"
    )
    assert parse_pip_settings(config, no_help) == PipSettings(
        indexes=("https://d.example/simple", "https://b.example/simple", "https://c.example"), cert="/ca.pem"
    )
    assert parse_pip_settings(config + ":env:.index-url='https://e.example'", no_help).indexes[0] == "https://e.example"


def test_the_default_is_what_the_help_shows() -> None:
    assert parse_pip_settings("", lambda: HELP).indexes == ("https://index.example/some-path/simple",)
    with pytest.raises(UnsupportedError):
        parse_pip_settings("", lambda: "no help")


def test_no_index_is_respected() -> None:
    with pytest.raises(UsageError, match="no-index"):
        parse_pip_settings("global.no-index='true'", no_help)


def test_asks_the_pip_of_this_python() -> None:
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("this Python has no pip")
    settings = read_pip_settings()
    assert all(index.startswith(("https://", "http://", "file:")) for index in settings.indexes)
    assert settings.indexes


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/vnd.pypi.simple.v1+json", b"{}"),
        ("application/vnd.pypi.simple.v1+json", b"not json"),
        ("application/vnd.pypi.simple.v1+json", b'{"files": [1]}'),
        ("application/vnd.pypi.simple.v1+json", b"[]"),
        ("text/plain", b""),
        ("", b""),
    ],
)
def test_refuses_what_is_no_index(kind: str, body: bytes) -> None:
    with pytest.raises(RegistryError):
        list(parse_page(Answer(body=body, url="https://index.example/simple/x/", content_type=kind)))
