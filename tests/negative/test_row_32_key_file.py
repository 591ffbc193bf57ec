"""Row 32: a key file with a wrong passphrase, absurd parameters, wide permissions, or that is no file of ours.

Everything is refused in a moment and without asking for a passphrase that the answer does not depend on.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from pathlib import Path

import pytest
from badkit import Place

from visget.errors import EXIT_REFUSED, EXIT_TRUST, EXIT_USAGE, FormatError, TrustError, UsageError
from visget.format import keyfile
from visget.format.keyfile import encode_key, parse_key, read_key, write_key
from visget.format.keys import SecretKey

KEY = SecretKey(b"\5" * 32)
SEALED = encode_key(KEY, b"right")


def refuse_to_ask() -> bytes:
    raise AssertionError("the passphrase was asked for although the file is refused anyway")


def with_fields(**changed: object) -> bytes:
    fields = json.loads(SEALED) | changed
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_row_32_wrong_passphrase(tmp_path):
    path = put(tmp_path / "k.key", SEALED)
    with pytest.raises(UsageError, match="the passphrase is wrong, or the key file was changed"):
        read_key(path, lambda: b"wrong")
    assert read_key(path, lambda: b"right").public == KEY.public


ABSURD = {
    "n = 2^40": {"n": 1 << 40},
    "n = 2^53": {"n": 1 << 53},
    "n = 2^21": {"n": 1 << 21},
    "n no power of two": {"n": (1 << 17) + 1},
    "n between": {"n": 3 << 16},
    "n negative": {"n": -(1 << 17)},
    "n = 0": {"n": 0},
    "n = 1": {"n": 1},
    "n a text": {"n": "131072"},
    "n true": {"n": True},
    "r = 2^30": {"r": 1 << 30},
    "r = 0": {"r": 0},
    "r = 1": {"r": 1},
    "p = 2^30": {"p": 1 << 30},
    "p = 5": {"p": 5},
    "p = 0": {"p": 0},
    "no salt": {"salt": ""},
    "salt too short": {"salt": "00" * 15},
    "salt too long": {"salt": "00" * 17},
    "nonce too short": {"nonce": "00" * 11},
    "secret too short": {"secret": "00" * 32},
    "no tag": {"secret": "00" * 47},
    "no n": {"n": None},
    "no cipher": {"cipher": None},
    "other cipher": {"cipher": "none"},
    "other kdf": {"kdf": "pbkdf2"},
    "other algorithm": {"algorithm": "none"},
    "extra field": {"note": "x"},
}


@pytest.mark.parametrize("changed", ABSURD.values(), ids=ABSURD)
def test_row_32_absurd_parameters_cost_no_work(tmp_path, changed, monkeypatch):
    monkeypatch.setattr(keyfile._Sealing, "_derive", lambda *_: pytest.fail("work was done"))
    begun = time.monotonic()
    with pytest.raises(FormatError):
        read_key(put(tmp_path / "k.key", with_fields(**changed)), refuse_to_ask)
    assert time.monotonic() - begun < 1


def test_row_32_largest_integers(tmp_path):
    data = SEALED.replace(b"131072", b"9" * 6000)
    with pytest.raises(FormatError):
        read_key(put(tmp_path / "k.key", data), refuse_to_ask)


@pytest.mark.parametrize("n", [2, 1 << 10, 1 << 14, 1 << 16])
def test_row_32_weaker_derivation_is_refused(tmp_path, n):
    """Whoever can write the file must not get the passphrase tried under a cheap derivation."""
    with pytest.raises(FormatError, match="outside"):
        read_key(put(tmp_path / "k.key", with_fields(n=n)), refuse_to_ask)


def test_row_32_changed_parameters_do_not_open(tmp_path):
    """The parameters are authenticated: another public key or larger work does not open with the right passphrase."""
    stranger = SecretKey(b"\6" * 32)
    for changed in ({"p": 2}, {"public": stranger.public.raw.hex()}, {"salt": "00" * 16}, {"nonce": "00" * 12}):
        with pytest.raises(UsageError, match="changed"):
            read_key(put(tmp_path / "k.key", with_fields(**changed)), lambda: b"right")


def test_row_32_encryption_taken_away(tmp_path):
    """An encrypted file cannot be turned into an unencrypted one, and a passphrase never goes with one."""
    for changed in (
        {"kdf": "none"},
        {"kdf": "none", "n": None, "r": None, "p": None, "salt": None, "cipher": None, "nonce": None},
    ):
        with pytest.raises(FormatError):
            read_key(put(tmp_path / "k.key", with_fields(**changed)), refuse_to_ask)
    place = Place(root=tmp_path, variables={"PW": "right"})
    (place.config / "keys").mkdir(parents=True, mode=0o700)
    path = place.config / "keys" / "default.key"
    write_key(path, SecretKey.generate())
    outcome = place.run("key", "change-passphrase", "--passphrase-env", "PW", "--no-passphrase")
    assert outcome.code == EXIT_TRUST
    assert "another key in its place" in outcome.err


@pytest.mark.parametrize("length", [0, 1, 10, 100, 200, len(SEALED) - 1])
def test_row_32_truncated(tmp_path, length):
    with pytest.raises(FormatError):
        read_key(put(tmp_path / "k.key", SEALED[:length]), refuse_to_ask)


def test_row_32_every_truncation():
    for length in range(len(SEALED)):
        with pytest.raises(FormatError):
            parse_key(SEALED[:length])


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o644, 0o660, 0o777])
def test_row_32_readable_by_others(tmp_path, mode):
    path = put(tmp_path / "k.key", SEALED)
    path.chmod(mode)
    with pytest.raises(TrustError, match=f"mode {mode:04o}") as caught:
        read_key(path, refuse_to_ask)
    assert caught.value.hint is not None
    assert "chmod 600" in caught.value.hint


def test_row_32_links_pipes_and_devices(tmp_path):
    path = put(tmp_path / "k.key", SEALED)
    (tmp_path / "link.key").symlink_to(path)
    os.mkfifo(tmp_path / "fifo.key", 0o600)
    (tmp_path / "directory.key").mkdir()
    begun = time.monotonic()
    with pytest.raises(TrustError, match="symbolic link"):
        read_key(tmp_path / "link.key", refuse_to_ask)
    for name in ("fifo.key", "directory.key"):
        with pytest.raises(TrustError, match="not a plain file"):
            read_key(tmp_path / name, refuse_to_ask)
    with pytest.raises(TrustError, match="not a plain file"):
        read_key(Path("/dev/zero"), refuse_to_ask)
    with pytest.raises(UsageError, match="no such key file"):
        read_key(tmp_path / "none.key", refuse_to_ask)
    with pytest.raises(UsageError, match="no such key file"):
        read_key(path / "below.key", refuse_to_ask)
    assert time.monotonic() - begun < 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_row_32_somebody_elses_file(tmp_path):
    path = put(tmp_path / "k.key", SEALED)
    os.chown(path, 12345, -1)
    with pytest.raises(TrustError, match="belongs to somebody else"):
        read_key(path, refuse_to_ask)


def test_row_32_somebody_elses_file_without_being_root(tmp_path, monkeypatch):
    path = put(tmp_path / "k.key", SEALED)
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(TrustError, match="belongs to somebody else"):
        read_key(path, refuse_to_ask)


# ---- where passphrases come from -----------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path):
    return Place(root=tmp_path)


def key_file(place: Place, name: str = "default") -> Path:
    return place.config / "keys" / f"{name}.key"


def test_row_32_every_source(place, tmp_path):
    secret = tmp_path / "secret"
    put(secret, b"from a file\n")
    reader, writer = os.pipe()
    os.write(writer, "from a descriptor ä\nsecond line\n".encode())
    sources = {
        "f": ("file", secret, b"from a file"),
        "d": ("fd", reader, "from a descriptor ä".encode()),
        "e": ("env", "PHRASE", b"from a variable"),
    }
    place = place.with_env(PHRASE="from a variable")
    for name, (kind, value, expected) in sources.items():
        outcome = place.run("key", "new", name, f"--passphrase-{kind}", value)
        assert outcome.code == 0, outcome
        assert read_key(key_file(place, name), lambda expected=expected: expected)
        assert expected.decode() not in outcome.text
    # The descriptor was read to the end of the line only; the writer is still there, and nobody waited for it.
    changed = place.run("key", "change-passphrase", "e", "--passphrase-env", "PHRASE", "--new-passphrase-fd", reader)
    assert changed.code == 0, changed
    assert read_key(key_file(place, "e"), lambda: b"second line")
    os.close(writer)
    os.close(reader)


def test_row_32_no_terminal_and_no_option_is_a_usage_error(place):
    for words in (("key", "new"), ("key", "new", "--json")):
        outcome = place.run(*words)
        assert outcome.code == EXIT_USAGE
        for option in ("--passphrase-fd", "--passphrase-file", "--passphrase-env", "--no-passphrase"):
            assert option in outcome.text
    assert not key_file(place).exists()
    assert place.with_env(PW="x").run("key", "new", "--passphrase-env", "PW").code == 0
    outcome = place.run("key", "change-passphrase", "--no-passphrase")
    assert outcome.code == EXIT_USAGE
    assert "there is no terminal to ask for it" in outcome.err


def test_row_32_bad_sources(place, tmp_path):
    open_to_all = tmp_path / "wide"
    put(open_to_all, b"x").chmod(0o644)
    link = tmp_path / "link"
    link.symlink_to(put(tmp_path / "good", b"x"))
    os.mkfifo(tmp_path / "fifo", 0o600)
    put(tmp_path / "empty", b"\n")
    put(tmp_path / "lines", b"one\ntwo\n")
    put(tmp_path / "long", b"x" * 2000)
    put(tmp_path / "binary", b"\xff\xfe")
    place = place.with_env(EMPTY="")
    table = [
        (EXIT_TRUST, "mode 0644", "file", open_to_all),
        (EXIT_TRUST, "symbolic link", "file", link),
        (EXIT_TRUST, "not a plain file", "file", tmp_path / "fifo"),
        (EXIT_USAGE, "no such passphrase file", "file", tmp_path / "none"),
        (EXIT_USAGE, "is empty", "file", tmp_path / "empty"),
        (EXIT_USAGE, "control character", "file", tmp_path / "lines"),
        (EXIT_USAGE, "more than 1024 bytes", "file", tmp_path / "long"),
        (EXIT_USAGE, "not UTF-8", "file", tmp_path / "binary"),
        (EXIT_USAGE, "has no variable 'UNSET'", "env", "UNSET"),
        (EXIT_USAGE, "is empty", "env", "EMPTY"),
        (EXIT_USAGE, "file descriptor 987", "fd", 987),
        (EXIT_USAGE, "", "fd", -1),
    ]
    for code, text, kind, value in table:
        outcome = place.run("key", "new", f"--passphrase-{kind}", value)
        assert outcome.code == code, outcome
        assert text in outcome.err
        assert not key_file(place).exists()
    outcome = place.run("key", "new", "--passphrase-env", "HOME", "--passphrase-fd", "3")
    assert outcome.code == EXIT_USAGE
    assert "comes from one place" in outcome.err
    outcome = place.run("key", "new", "--passphrase-env", "HOME", "--no-passphrase")
    assert outcome.code == EXIT_USAGE
    assert "exclude each other" in outcome.err


def test_row_32_never_on_the_command_line(place):
    """No command takes the passphrase itself."""
    for words in (("key", "new"), ("key", "change-passphrase"), ("publish", "x.vis")):
        assert place.run(*words, "--passphrase", "secret").code == EXIT_USAGE
        assert place.run(*words, "--passphrase=secret").code == EXIT_USAGE


def test_row_32_listing_needs_no_passphrase(place):
    place = place.with_env(PW="x")
    made = place.run("key", "new", "--passphrase-env", "PW", "--json").json
    assert made["encrypted"] is True
    assert place.run("key", "new", "plain", "--no-passphrase").code == 0
    listed = place.run("key", "list", "--json").json["keys"]
    assert [(row["name"], row["encrypted"]) for row in listed] == [("default", True), ("plain", False)]
    assert listed[0]["id"] == made["id"]
    shown = place.run("key", "show", "--json").json
    assert shown["id"] == made["id"]
    assert made["id"] in place.run("key", "show").out
    assert json.loads(key_file(place, "plain").read_text())["secret"] not in place.run("key", "show", "plain").text
    assert place.run("key", "show", "nosuch").code == EXIT_USAGE
    put(key_file(place, "bad"), b"{}")
    assert place.run("key", "list").code == EXIT_REFUSED
    assert "bad.key" in place.run("key", "list").err


def on_a_terminal(place: Place, typed: list[str], *words: str) -> tuple[int, str]:
    """Run visget on a terminal of its own, answer each prompt, and return the exit code and the whole screen."""
    import pty
    import sys

    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "visget", *words], place.environ)  # noqa: S606
    screen = b""
    answers, answered = iter(typed), 0
    watchdog = threading.Timer(100, os.kill, (pid, 9))
    watchdog.start()
    try:
        while True:
            try:
                part = os.read(terminal, 1024)
            except OSError:
                break
            if not part:
                break
            screen += part
            # A prompt is complete with its blank; getpass has switched the echo off before it prompts.
            for _ in range(len(re.findall(rb"(?:passphrase for [^:]*|the same again): ", screen)) - answered):
                os.write(terminal, next(answers).encode() + b"\n")
                answered += 1
    finally:
        watchdog.cancel()
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), screen.decode()


def test_row_32_on_a_terminal_it_is_typed_twice_and_not_shown(place):
    code, screen = on_a_terminal(place, ["sesame", "sesame"], "key", "new")
    assert code == 0, screen
    assert screen.count("passphrase for the key default") == 1
    assert screen.count("the same again") == 1
    assert "sesame" not in screen
    assert read_key(key_file(place), lambda: b"sesame")
    # Three tries, then it is over.
    code, screen = on_a_terminal(place, ["a", "b", "c"], "key", "change-passphrase", "--no-passphrase")
    assert code == EXIT_USAGE, screen
    assert screen.count("that is not it") == 2
    code, screen = on_a_terminal(place, ["a", "sesame"], "key", "change-passphrase", "--no-passphrase")
    assert code == 0, screen
    assert read_key(key_file(place))


def test_row_32_on_a_terminal_a_slip_writes_nothing(place):
    code, screen = on_a_terminal(place, ["sesame", "sesam"], "key", "new")
    assert code == EXIT_USAGE, screen
    assert "differ" in screen
    assert not key_file(place).exists()
