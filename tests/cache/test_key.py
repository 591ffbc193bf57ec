import pytest

from visget.cache.key import ActionKey
from visget.digest import digest_bytes


def test_the_encoding_is_the_one_of_the_spec():
    key = ActionKey().add("kind", "native").add("opt", 3)
    assert key.encode() == (
        b"visget-key-1\n"
        b"\x04\0\0\0\0\0\0\0kind\x06\0\0\0\0\0\0\0native"
        b"\x03\0\0\0\0\0\0\0opt\x01\0\0\0\0\0\0\x003"
    )
    assert key.digest == "621c541fce2c19e581af71ae3e1f583c896d4e932eadde962d963ed600d3d7a8"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([("a", "bc")], [("ab", "c")]),
        ([("a", "b"), ("c", "d")], [("a", "bcd")]),
        ([("a", ""), ("b", "")], [("b", ""), ("a", "")]),
        ([("cpu", "x"), ("features", "")], [("cpu", "x"), ("features", "+avx2")]),
        ([("a", b"\0")], [("a", b"")]),
    ],
)
def test_different_descriptions_have_different_keys(one, other):
    def digest(fields):
        key = ActionKey()
        for label, value in fields:
            key = key.add(label, value)
        return key.digest

    assert digest(one) != digest(other)


def test_a_label_is_used_once():
    with pytest.raises(ValueError, match="'cpu' is already"):
        ActionKey().add("cpu", "a").add("cpu", "b")


def test_the_trace_reads_well():
    key = ActionKey().add("cpu", "znver4").add("flag", True).add("module", b"\xde\xad\xbe\xef").add("n", 7)
    assert key.trace == (
        "cpu = znver4",
        "flag = true",
        f"module = sha256:{digest_bytes(bytes.fromhex('deadbeef'))} (4 bytes)",
        "n = 7",
    )


def test_keys_are_values():
    base = ActionKey().add("a", 1)
    assert base.add("b", 2) != base.add("b", 3)
    assert base == ActionKey().add("a", 1)
    assert len(base.fields) == 1
