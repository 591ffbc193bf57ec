import json
import os
import stat
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visget.errors import FormatError, ResourceError, TrustError, UsageError
from visget.format.keyfile import (
    PASSPHRASE_LIMIT,
    change_passphrase,
    encode_key,
    parse_key,
    passphrase_bytes,
    read_key,
    read_key_file,
    write_key,
)
from visget.format.keys import SecretKey
from visget.format.strictjson import dumps

GOOD = encode_key(SecretKey(b"\1" * 32))


def refuse_to_ask():
    raise AssertionError("the passphrase was asked for")


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_secret_stays_secret():
    key = SecretKey(b"\7" * 32)
    assert "07070707" not in repr(parse_key(encode_key(key)))
    damaged = encode_key(key).replace(b"07070707", b"0707070", 1)
    with pytest.raises(FormatError) as caught:
        parse_key(damaged)
    assert "0707" not in str(caught.value) + repr(caught.value.as_dict())


def test_file_round_trip(tmp_path):
    path = tmp_path / "key"
    key = SecretKey.generate()
    old = os.umask(0)
    try:
        write_key(path, key)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_nlink == 1
    assert names(tmp_path) == ["key"]
    assert read_key(path, refuse_to_ask).public == key.public
    assert read_key(path).sign(b"x") == key.sign(b"x")


def test_an_encrypted_file_opens_with_its_passphrase_only(tmp_path):
    path = tmp_path / "key"
    key = SecretKey.generate()
    write_key(path, key, b"one")
    text = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key.seed.hex() not in text
    assert (json.loads(text)["n"], json.loads(text)["r"], json.loads(text)["p"]) == (1 << 17, 8, 1)
    found = read_key_file(path)
    assert found.encrypted
    assert found.public == key.public
    assert read_key(path, lambda: b"one").sign(b"x") == key.sign(b"x")
    for wrong in (b"One", b"one ", b""):
        with pytest.raises(UsageError, match="passphrase is wrong") as caught:
            read_key(path, lambda wrong=wrong: wrong)
        assert caught.value.where == str(path)
    with pytest.raises(UsageError, match="no passphrase was given"):
        read_key(path)
    change_passphrase(path, key, b"two")
    assert path.read_text() != text
    with pytest.raises(UsageError, match="passphrase is wrong"):
        read_key(path, lambda: b"one")
    assert read_key(path, lambda: b"two").public == key.public
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    change_passphrase(path, key, None)
    assert read_key(path).public == key.public


def test_two_files_of_one_key_have_nothing_in_common():
    key = SecretKey(b"\2" * 32)
    one, other = (json.loads(encode_key(key, b"pass")) for _ in range(2))
    assert all(one[name] != other[name] for name in ("salt", "nonce", "secret"))


def test_another_key_is_not_replaced(tmp_path):
    path = tmp_path / "key"
    write_key(path, SecretKey(b"\1" * 32))
    with pytest.raises(UsageError, match="another key"):
        change_passphrase(path, SecretKey(b"\2" * 32), None)
    assert read_key(path).seed == b"\1" * 32


def test_never_overwrites(tmp_path):
    path = tmp_path / "key"
    write_key(path, SecretKey.generate())
    before = path.read_bytes()
    with pytest.raises(UsageError, match="never overwritten"):
        write_key(path, SecretKey.generate())
    target = tmp_path / "target"
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(UsageError):
        write_key(link, SecretKey.generate())
    assert path.read_bytes() == before
    assert not target.exists()
    assert names(tmp_path) == ["key", "link"]
    with pytest.raises(UsageError, match="no such directory"):
        write_key(tmp_path / "none" / "key", SecretKey.generate())
    with pytest.raises(UsageError, match="no such directory"):
        write_key(path / "key", SecretKey.generate())


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ResourceError, match="no space"):
        write_key(tmp_path / "key", SecretKey.generate())
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GOOD[:-1],
        GOOD.replace(b"visget-key-1", b"visget-key-2"),
        GOOD.replace(b'"none"', b'"scrypt"'),
        GOOD.replace(b"ed25519", b"rsa"),
        GOOD.replace(b'"secret":"01', b'"secret":"02'),
        GOOD.replace(b'"secret":"01', b'"secret":"0A'),
        GOOD.replace(b"{", b'{"n":1099511627776,', 1),
        GOOD.replace(b"{", b'{"kdf":"none",', 1),
        GOOD + b" " * 5000,
    ],
)
def test_damaged_files(tmp_path, data):
    path = tmp_path / "key"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(FormatError) as caught:
        read_key(path, refuse_to_ask)
    assert caught.value.where == str(path)


def test_passphrases_are_unicode_text():
    assert passphrase_bytes("a\u0308") == passphrase_bytes("\u00e4") == "ä".encode()
    assert passphrase_bytes("x" * PASSPHRASE_LIMIT)
    for bad in ("", "x" * (PASSPHRASE_LIMIT + 1), "ä" * (PASSPHRASE_LIMIT // 2 + 1), "a\0b", "a\nb", "\udc80", "\x1b"):
        with pytest.raises(UsageError) as caught:
            passphrase_bytes(bad)
        assert bad == "" or bad not in str(caught.value)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_every_text_is_a_passphrase_or_refused(text):
    try:
        data = passphrase_bytes(text)
    except UsageError:
        return
    assert data.decode() == unicodedata.normalize("NFC", text)
    assert passphrase_bytes(data.decode()) == data


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(GOOD) * 8 - 1))
def test_a_flipped_bit_never_gives_another_key(bit):
    data = bytearray(GOOD)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises((FormatError, TrustError)):
        parse_key(bytes(data)).open()


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_value_anywhere_is_a_clean_error(value):
    for name in json.loads(GOOD):
        fields = json.loads(GOOD) | {name: value}
        if fields == json.loads(GOOD):
            continue
        with pytest.raises((FormatError, TrustError)):
            parse_key(dumps(fields)).open()
