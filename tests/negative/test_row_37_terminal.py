"""Row 37: nothing that a package, a registry, a server, a source file or a file name says can drive a terminal.

The rule is checked on every byte that a command writes: no control character but the end of a line, nothing that
reorders or hides text, and no line of its own for a forged message. JSON keeps the text, as escapes of JSON.
"""

import http.server
import io
import json
import logging
import threading
import unicodedata

import pytest
from badkit import TOML, Outcome, Place, edit_index, publish_tiny, write_project
from formatkit import assemble
from registrykit import sign_target
from rowkit import copy_of, offer, parts_of, refused, with_section

from visget import api
from visget.cli_common import shown
from visget.config import read_settings
from visget.errors import (
    EXIT_FAILED,
    EXIT_NOT_FOUND,
    EXIT_REFUSED,
    EXIT_REGISTRY,
    EXIT_TRUST,
    EXIT_UNSUPPORTED,
    EXIT_USAGE,
)

# Sets the title, rings, colours, turns text around, returns to the start of the line, forges a message.
EVIL = "\x1b]0;owned\x07\x1b[31m\u202eder\u2066\x9b2J\u200b\u00ad\rA\nerror: forged"
LINE = EVIL.replace("\n", " ").replace("\r", " ")
# Passes the rules for texts, and still is not seen.
SOFT = "a\u200bb\u00ad\ue000\U000e0041\u200d"


def harmless(text: str) -> bool:
    hidden = {repr(char) for char in text if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co")}
    assert hidden == set(), text
    assert not any(line.startswith("error: forged") for line in text.splitlines()), text
    return True


def said(outcome: Outcome) -> str:
    """All that the command wrote, when it is fit for a terminal."""
    assert harmless(outcome.text)
    return outcome.text


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    return publish_tiny(tmp_path_factory.mktemp("terminal"))


@pytest.fixture
def place(tmp_path, published) -> Place:
    return copy_of(published, tmp_path)


def with_manifest(place: Place, **changes: object) -> bytes:
    manifest, parts = parts_of(place.blob().read_bytes())
    value = json.loads(manifest.encode()) | changes
    return assemble(json.dumps(value).encode(), *(stored for _, stored in parts.values()))


# ---- packages ------------------------------------------------------------------------------------------------

MANIFEST = {
    "name": {"name": EVIL},
    "version": {"version": EVIL},
    "summary": {"summary": EVIL},
    "license": {"license": EVIL},
    "homepage": {"homepage": "https://example.org/" + EVIL},
    "an export": {"exports": [EVIL]},
    "a dependency": {"dependencies": [EVIL]},
    "a choice": {"fp_contract": EVIL},
    "an unknown key": {EVIL: 1},
    "a kind of section": {"sections": [{"kind": EVIL}]},
}


@pytest.mark.parametrize("what", MANIFEST)
def test_row_37_in_a_manifest_that_the_author_signed(place, tmp_path, what):
    data = with_manifest(place, **MANIFEST[what])
    file = tmp_path / "evil.vis"
    file.write_bytes(data)
    for command in ("check", "info", "publish"):
        said(refused(place, command, file, codes=(EXIT_REFUSED,)))
    offer(place, data)
    said(refused(place, "install", "tiny", codes=(EXIT_REFUSED,)))
    outcome = place.run("install", "tiny", "--json")
    assert outcome.json["exit_code"] == EXIT_REFUSED
    assert outcome.out.isascii()


def test_row_37_what_is_not_seen_is_shown_where_it_is_allowed(place, tmp_path):
    file = tmp_path / "soft.vis"
    file.write_bytes(with_manifest(place, summary=SOFT, version="2.0"))
    escaped = "a\\u200bb\\u00ad\\ue000\\ue0041\\u200d"
    assert escaped in said(place.run("info", file))
    said(place.run("publish", file))
    assert escaped in said(place.run("search"))
    assert escaped in said(place.run("info", "tiny"))
    outcome = place.run("info", "tiny", "--json")
    assert outcome.json["summary"] == SOFT, "JSON has the text itself,"
    assert outcome.out.isascii(), "written as escapes"


@pytest.mark.parametrize("section", ["license", "readme"])
def test_row_37_the_texts_of_a_package_may_hold_anything_and_are_never_printed(place, section):
    offer(place, with_section(place.blob().read_bytes(), section, EVIL.encode()))
    for words in (("install", "tiny"), ("info", "tiny"), ("list",), ("install", "tiny", "-v"), ("info", "tiny", "-v")):
        outcome = place.run(*words)
        assert outcome.code == 0, outcome
        assert "owned" not in said(outcome)
    (key,) = place.natives()
    if section == "license":
        assert (place.home / "native" / "v1" / key / "LICENSE").read_bytes() == EVIL.encode()


@pytest.mark.parametrize("section", ["api", "headers", "vectors"])
def test_row_37_in_other_sections(place, section):
    content = json.dumps({EVIL: EVIL, "format": EVIL}).encode()
    offer(place, with_section(place.blob().read_bytes(), section, content))
    said(refused(place, "install", "tiny", codes=(EXIT_REFUSED,)))


# ---- registries and servers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["summary", "yanked"])
def test_row_37_in_the_index_of_a_registry(place, field):
    edit_index(place.registry, **{field: EVIL})
    said(refused(place, "install", "tiny", codes=(EXIT_REGISTRY,)))
    edit_index(place.registry, **{field: SOFT})
    outcome = place.run("install", "tiny==1.0")
    assert outcome.code == 0
    assert ("a\\u200bb" in said(outcome)) == (field == "yanked")


@pytest.mark.parametrize("target", ["idx__tiny.json", "names.json"])
def test_row_37_in_keys_that_a_registry_signed(place, target):
    sign_target(place.registry, target, json.dumps({EVIL: EVIL, "format": EVIL}).encode())
    words = ("install", "tiny") if target.startswith("idx") else ("search", "tiny")
    said(refused(place, *words, codes=(EXIT_REGISTRY,)))


def test_row_37_in_the_answers_of_a_server(place, tmp_path):
    evil = LINE.encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kinds = {
                "/a/": b"HTTP/1.1 500 " + evil + b"\r\nContent-Length: 0\r\n\r\n",
                "/b/": b"HTTP/1.1 302 Found\r\nLocation: " + evil + b"\r\nContent-Length: 0\r\n\r\n",
                "/c/": b"HTTP/1.1 200 OK\r\nContent-Type: text/html " + evil + b"\r\nContent-Length: 1\r\n\r\nx",
                "/d/": b"HTTP/1.1 200 OK\r\nContent-Encoding: " + evil + b"\r\nContent-Length: 1\r\n\r\nx",
                "/e/": b"HTTP/1.1 403 " + evil + b"\r\n" + evil + b": " + evil + b"\r\n\r\n",
                "/f/": b"HTTP/1.1 503 x\r\nRetry-After: 9999" + evil + b"\r\nContent-Length: 0\r\n\r\n",
                "/g/": evil + b"\r\n\r\n",
            }
            self.wfile.write(next(answer for start, answer in kinds.items() if self.path.startswith(start)))
            self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            for way in "abcdefg":
                url = f"http://127.0.0.1:{server.server_port}/{way}"
                user = Place(root=tmp_path / way, variables={"no_proxy": "127.0.0.1"})
                words = ("registry", "add", "shop", url, "--fingerprint", "0" * 64)
                said(refused(user, *words, codes=(EXIT_REGISTRY, EXIT_TRUST)))
        finally:
            server.shutdown()
            thread.join()


# ---- sources and compilers -----------------------------------------------------------------------------------

ADD = "int tiny_add(int a, int b) { return a + b; }\n"
SOURCES = {
    "the line at fault": f'#include "tiny.h"\nint tiny_add(int a, int b) {{ return a + "{LINE}" + oops; }}\n',
    "#error": f"#error {LINE}\n",
    "a header's name": f'#include "{LINE}.h"\n',
    "an identifier": "int tiny_add(int a, int b) { return a\u202eb\u200bc; }\n",
    "#line": f'#line 7 "\\033]0;owned\\a{LINE}.c"\nint tiny_add(int a, int b) {{ return oops; }}\n',
}


@pytest.mark.parametrize("what", SOURCES)
def test_row_37_in_what_the_compiler_says(place, tmp_path, what):
    project = write_project(tmp_path / "project", tiny_c=SOURCES[what])
    text = said(refused(place, "build", project, codes=(EXIT_FAILED,)))
    assert ": error: " in text or "fatal error: " in text, "the compiler is quoted"
    outcome = place.run("build", project, "--json")
    assert outcome.out.isascii()
    assert "stderr" in outcome.json["details"]


def test_row_37_in_warnings(place, tmp_path):
    warns = f'#include "tiny.h"\n#line 7 "\\033]0;owned\\a{LINE}.c"\n#pragma message("{LINE}")\n{ADD}'
    outcome = place.run("build", write_project(tmp_path / "project", tiny_c=warns), "-v")
    assert outcome.code == 0
    said(outcome)


def test_row_37_in_findings(place, tmp_path):
    head = f'#include "tiny.h"\n#line 7 "\\033]0;owned\\a{LINE}.c"\n'
    asm = head + 'int tiny_add(int a, int b) { __asm__("nop"); return a; }\n'
    text = said(refused(place, "build", write_project(tmp_path / "asm", tiny_c=asm), codes=(EXIT_REFUSED,)))
    assert "error[VIS-301] in tiny_add()" in text
    odd = 'int odd(void) __asm__("o\\033]0;\\add\\nerror: forged");\nint odd(void) { return 1; }\n'
    named = f'#include "tiny.h"\n{odd}int tiny_add(int a, int b) {{ return a + odd(); }}\n'
    text = said(refused(place, "build", write_project(tmp_path / "named", tiny_c=named), codes=(EXIT_REFUSED,)))
    assert "error[VIS-201]" in text


def test_row_37_in_the_name_of_a_source_file(place, tmp_path):
    project = write_project(tmp_path / "project")
    (project / f"{EVIL}.c").write_text("int f(void) { return x; }\n")
    text = said(refused(place, "build", project, codes=(EXIT_USAGE,)))
    assert "characters that are not shown" in text
    (project / f"{EVIL}.c").rename(project.parent / "gone.c")
    (project / "b\udcff.c").write_text("int f(void);\n")
    said(refused(place, "build", project, codes=(EXIT_USAGE,)))


def test_row_37_in_visget_toml(place, tmp_path):
    escaped = json.dumps(EVIL)[1:-1]
    for number, (old, new) in enumerate((("tiny", escaped), ("Adds numbers", escaped), ("MIT", LINE))):
        project = write_project(tmp_path / str(number), toml=TOML.format(version="1.0").replace(old, new, 1))
        said(refused(place, "build", project, codes=(EXIT_USAGE,)))
    odd = TOML.format(version="1.0").replace("license =", f'"{escaped}" =')
    said(refused(place, "build", write_project(tmp_path / "key", toml=odd), codes=(EXIT_USAGE,)))


def test_row_37_colours_of_a_compiler_stay_and_nothing_else():
    text = "\x1b[1mtiny.c:1:2: \x1b[0m\x1b[0;1;31merror: \x1b[0mno\n\tx\x1b[2J\x1b[8m\x1b]0;t\x07\r\x9b1m"
    assert shown(text, styles=True) == (
        "\x1b[1mtiny.c:1:2: \x1b[0m\x1b[0;1;31merror: \x1b[0mno\n\tx"
        "\\u001b[2J\\u001b[8m\\u001b]0;t\\u0007\\u000d\\u009b1m"
    )
    assert harmless(shown(text, styles=False).replace("\t", ""))


# ---- what is typed, set, or lies in the store ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((EVIL,), EXIT_USAGE),
        (("install", EVIL), EXIT_USAGE),
        (("install", "--" + EVIL), EXIT_USAGE),
        (("install", "tiny", "--target", EVIL), EXIT_UNSUPPORTED),
        (("install", "tiny", "--registry", EVIL), EXIT_USAGE),
        (("install", "tiny", "--trust", EVIL), EXIT_TRUST),
        (("check", EVIL), EXIT_NOT_FOUND),
        (("build", EVIL), EXIT_USAGE),
        (("path", EVIL), EXIT_USAGE),
        (("key", "new", EVIL), EXIT_USAGE),
        (("yank", "tiny==1.0", "--reason", EVIL), EXIT_USAGE),
        (("registry", "add", "shop", EVIL), EXIT_USAGE),
        (("trust", "pin", EVIL, EVIL), EXIT_USAGE),
        (("lock", EVIL), EXIT_USAGE),
    ],
    ids=lambda value: value[0][:8] if isinstance(value, tuple) else None,
)
def test_row_37_in_words_of_the_command_line(place, words, code):
    said(refused(place, *words, codes=(code,)))


@pytest.mark.parametrize("name", ["VISGET_REGISTRY", "VISGET_TARGET", "VISGET_LINKER", "VISGET_SANDBOX"])
def test_row_37_in_settings(place, name):
    place = place.with_env(**{name: EVIL})
    outcome = place.run("install", "tiny")
    assert outcome.code != 0
    said(outcome)
    if name == "VISGET_REGISTRY":
        said(place.run("doctor"))


def test_row_37_in_names_of_files_in_the_store_and_in_the_log(place):
    assert place.run("install", "tiny").code == 0
    (key,) = place.natives()
    planted = place.home / "native" / "v1" / key / EVIL
    planted.write_text("")
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger("visget").addHandler(handler)
    try:
        assert api.load("tiny", settings=read_settings(place.environ)).tiny_add(2, 40) == 42, "it was made again"
    finally:
        logging.getLogger("visget").removeHandler(handler)
    assert "does not belong to it" in log.getvalue()
    assert harmless(log.getvalue())
    (place.home / "native" / "v1" / key / EVIL).write_text("")
    outcome = place.run("cache", "verify")
    assert outcome.code == EXIT_FAILED
    assert "does not belong to it" in said(outcome)
    said(place.run("cache", "gc", "--all"))
