import pytest
from hypothesis import given
from hypothesis import strategies as st

from visget.format.plaintext import clean_line, clean_text, is_line, is_text


@pytest.mark.parametrize(
    "bad",
    ["\x00", "\x1b[31m", "\x07", "\r", "\x7f", "\x9b", "\u202e", "\u2066", "\u200f", "\u2028", "\ufeff", "\ud800"],
)
def test_evil_characters(bad):
    for text in (bad, f"a{bad}b", f"é{bad}"):
        assert not is_line(text)
        assert not is_text(text)
        assert is_text(clean_text(text))
        assert is_line(clean_line(text))


def test_newline_and_tab_belong_to_texts_only():
    for text in ("a\nb", "a\tb", "é\n"):
        assert is_text(text)
        assert not is_line(text)


@pytest.mark.parametrize("good", ["", "abc", "größer", "日本語", "\U0001f600", "a\u00a0b", "e\u0301", "\u200d"])
def test_good(good):
    assert is_line(good)
    assert clean_text(good) == good


@given(st.text(st.characters()))
def test_clean_is_clean(text):
    assert is_text(clean_text(text))
    assert is_line(clean_line(text))
