"""The word that was probably meant."""

from __future__ import annotations

import pytest

from visget.nearest import nearest

KNOWN = ["lz4", "tiny", "xxhash", "zlib", "zstd"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("tyni", ["tiny"]),  # two letters changed places: half of what difflib wants of four letters
        ("itny", ["tiny"]),
        ("zlbi", ["zlib"]),
        ("l4z", ["lz4"]),
        ("tiyn", ["tiny"]),
        ("tin", ["tiny"]),
        ("xxhahs", ["xxhash"]),
        ("xxhas", ["xxhash"]),
        ("tiny", ["tiny"]),
        ("frobnicate", []),
        ("ynit", []),  # all four letters elsewhere: that is another word
    ],
)
def test_the_nearest_word(typed, meant):
    assert nearest(typed, KNOWN) == meant


def test_an_exchange_comes_before_what_only_looks_alike():
    assert nearest("tyni", ["tynia", "tiny"], n=2) == ["tiny", "tynia"]
    assert nearest("tyni", ["tynia", "tiny"]) == ["tiny"]


def test_words_that_stand_there_twice_are_named_once():
    assert nearest("tinx", ["tiny", "tiny"], n=3) == ["tiny"]
