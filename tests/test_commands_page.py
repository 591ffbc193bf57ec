"""docs/reference/commands.md says what the commands say."""

from __future__ import annotations

import commandspage


def test_the_page_is_up_to_date():
    written = commandspage.PAGE.read_text(encoding="utf-8")
    assert written == commandspage.page(), "run: python tests/support/commandspage.py"


def test_every_command_has_its_section_and_an_example():
    text = commandspage.page()
    for words in ("visget install", "visget registry rotate-root", "visget key new", "visget cache gc"):
        section = text.partition(f"# {words}\n")[2].partition("\n#")[0]
        assert f"```\n{words} " in section
        assert "For example:" in section
    assert "| `-q, --quiet` |" in text
    assert text.count("`--no-progress`") == 1, "the common options stand there once"
