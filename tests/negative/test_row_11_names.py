"""Row 11: a name that leaves its directory, or is another name in disguise, is refused wherever names meet files.

There is one rule for names (docs/spec/manifest.md), and one for include names (docs/spec/api.md); this file holds
them against every place that makes a path of a name. The names of a registry's files are in the registry's tests.
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from badkit import Place, snapshot
from packagekit import key, package

from visget.errors import FormatError, RegistryError, UsageError, VisgetError
from visget.format.container import read_container
from visget.format.headers import check_include_name, parse_headers
from visget.format.manifest import Manifest
from visget.format.strictjson import dumps
from visget.lockfile import read_lock
from visget.names import Requirement, parse_name
from visget.registry.protocol import parse_names, parse_releases

HOSTILE = {
    "parent": "..",
    "parent of a parent": "../../etc/passwd",
    "inner parent": "a/../b",
    "dot": ".",
    "absolute": "/etc/passwd",
    "absolute of windows": "C:\\x",
    "backslash": "..\\x",
    "NUL": "zlib\0",
    "NUL inside": "zl\0ib",
    "percent": "%2e%2e",
    "percent slash": "..%2fx",
    "5000 characters": "a" * 5000,
    "NFC": unicodedata.normalize("NFC", "zlib\u00e9"),
    "NFD": unicodedata.normalize("NFD", "zlib\u00e9"),
    "fullwidth": "\uff5alib",
    "dotless": "zl\u0131b",
    "kelvin": "\u212aey",
    "trailing dot": "zlib.",
    "trailing blank": "zlib ",
    "trailing newline": "zlib\n",
    "device": "con",
    "numbered device": "lpt1",
    "upper case": "ZLIB",
    "hidden": ".zlib",
    "option": "-zlib",
    "empty": "",
    "tilde": "~root",
    "variable": "$HOME",
    "bidi": "zlib\u202e",
    "surrogate": "zlib\udc80",
}
EACH = pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)


@EACH
def test_row_11_the_rule(name):
    with pytest.raises(UsageError):
        parse_name(name)
    # A blank around the name belongs to the requirement, not to the name.
    if name.strip() == name:
        with pytest.raises(UsageError):
            Requirement.parse(f"{name}==1.0")


@EACH
def test_row_11_in_a_manifest(name):
    """Well signed, but the name would be a path: the package does not even open."""
    fields = json.loads(read_container(package().data).manifest.encode())
    with pytest.raises(FormatError):
        Manifest.parse(json.dumps(fields | {"name": name}).encode())
    with pytest.raises(FormatError):
        Manifest.parse(json.dumps(fields | {"dependencies": [f"{name}>=1"]}).encode())


@EACH
def test_row_11_in_the_documents_of_a_registry(name):
    listed = {"format": 1, "packages": [{"name": name, "latest": "1.0", "summary": "", "functions": []}]}
    with pytest.raises(RegistryError):
        parse_names(json.dumps(listed).encode(), "here")
    index = {"format": 1, "name": name, "owners": [key().public.id], "versions": []}
    with pytest.raises(RegistryError):
        parse_releases(json.dumps(index).encode(), parse_name("zlib"), "here")


@EACH
def test_row_11_in_a_lock_file(tmp_path, name):
    path = tmp_path / "visget.lock"
    quoted = json.dumps(name)
    for text in (
        f"version = 1\nrequirements = [{quoted}]\n",
        f'version = 1\n[[registry]]\nidentity = "sha256:{"0" * 64}"\nlocation = "/x"\n'
        f'[[package]]\nname = {quoted}\nversion = "1"\n'
        f'registry = "sha256:{"0" * 64}"\ndigest = "sha256:{"0" * 64}"\nowners = ["{key().public.id}"]\n',
    ):
        path.write_text(text)
        if name.strip() != name and "requirements" in text and name != "zlib\n":
            continue
        with pytest.raises(UsageError) as caught:
            read_lock(path)
        assert str(path) in str(caught.value.where)


# No command line can hold a NUL, and none of a UTF-8 terminal a surrogate.
TYPED = {label: name for label, name in HOSTILE.items() if "\0" not in name and "\udc80" not in name}


@pytest.mark.parametrize("name", TYPED.values(), ids=TYPED)
def test_row_11_on_the_command_line(tmp_path, name):
    """Whatever is made of a name, nothing appears outside the user's own directories, and nothing inside either."""
    place = Place(root=tmp_path / "user")
    place.root.mkdir()
    before = snapshot(tmp_path)
    for words in (
        ("key", "new", "--no-passphrase", "--", name), ("install", "--", name), ("lock", "--", name),
        ("uninstall", "--", name), ("use", "--", name), ("rollback", "--", name), ("path", "--", name),
    ):  # fmt: skip
        # A key may be given as a file, so a path is no refusal there.
        if words[0] == "key" and "/" in name:
            continue
        outcome = place.run(*words)
        assert outcome.code != 0, (words, outcome)
        assert "Traceback" not in outcome.err
    made = [path for path in snapshot(tmp_path) if path not in before]
    assert all(path.startswith("user/home/") for path in made), made
    assert not [path for path in made if Path(path).suffix in (".key", ".lock", ".vis")]


INCLUDE = {
    name: value
    for name, value in HOSTILE.items()
    if name not in ("upper case",)  # "ZLIB" is a fine name of a header
} | {
    "device with a suffix": "con.h",
    "device below": "sys/AUX.h",
    "device with two suffixes": "nul.tar.h",
    "directory with a dot": "sys./x.h",
    "deep": "a/b/c/d/e.h",
    "empty component": "a//b.h",
    "slash at the end": "a/",
}


@pytest.mark.parametrize("name", INCLUDE.values(), ids=INCLUDE)
def test_row_11_include_names(name):
    with pytest.raises(FormatError):
        check_include_name(name)
    with pytest.raises(VisgetError):
        parse_headers(dumps({name: "int x;"}) if "\udc80" not in name else b'{"\\udc80":""}')


@pytest.mark.parametrize("name", ["conf.h", "sys/auxv.h", "com.h", "null.h", "lpt10.h", "console/con_.h"])
def test_row_11_include_names_that_only_resemble(name):
    check_include_name(name)
