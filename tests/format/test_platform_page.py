"""docs/spec/platform.md says what the tables and the headers say."""

from __future__ import annotations

from platformpage import PAGE, expected


def test_the_page_is_what_the_tables_and_headers_make_of_it() -> None:
    assert PAGE.read_text() == expected(), "run: python tests/support/platformpage.py"
