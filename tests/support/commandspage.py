"""docs/reference/commands.md, written from the commands themselves.

``python tests/support/commandspage.py`` writes the page; tests/test_commands_page.py fails when it is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from visget.cli import COMMANDS, COMPILERS, TOOLS
from visget.cli import visget as top
from visget.cli_options import common_options

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "commands.md"
HEAD = """# Commands

Every command, as `--help` shows it; the page is written from the commands by `python tests/support/commandspage.py`.
Exit codes are [listed here](exit-codes.md), settings and their environment variables [here](configuration.md).
"""
COMMON = """## Options of every command

They stand behind the command or before it (`visget -q build`).
"""

WRAPPERS = """## Compiler wrappers

They stand for other programs and know those programs' options, so `--help` and all else after their name is passed on;
{} are also programs of their own (`visget-cc` ...). What they do is in
[the guide to building](../guides/building.md).

| command | what it does |
|---|---|
"""


def page() -> str:
    """Return the whole page."""
    context = click.Context(top, info_name="visget")
    parts = [HEAD, "| command | what it does |", "|---|---|"]
    parts += [f"| [`{name}`](#visget-{name}) | {text} |" for name, (_, _, text) in COMMANDS.items()]
    parts += ["", COMMON, *_table(_common()), ""]
    words = ", ".join(f"`{name}`" for name in COMPILERS)
    parts += [WRAPPERS.format(words) + "\n".join(f"| `visget {name}` | {text} |" for name, text in TOOLS.items()), ""]
    for name in COMMANDS:
        command = top.get_command(context, name)
        assert command is not None
        parts += _command(command, click.Context(command, info_name=name, parent=context))
    return "\n".join(parts).rstrip() + "\n"


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"{'##' if context.parent and not context.parent.parent else '###'} {context.command_path}\n"
    yield from (_plain(text) + "\n" for text in (command.help or "").split("\n\n"))
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _command(inner, click.Context(inner, info_name=name, parent=context))
        return
    own = [option for option in command.params if isinstance(option, click.Option) and not _is_common(option)]
    example = (command.epilog or "").replace("\b", "").partition("Example:")[2]
    arguments = " ".join(command.collect_usage_pieces(context))
    yield f"```\n{context.command_path} {arguments}\n```"
    if own:
        yield ""
        yield from _table(own)
    yield "\nFor example:\n\n```\n" + "\n".join(line.strip() for line in example.strip().splitlines()) + "\n```\n"


def _table(options: list[click.Option]) -> Iterator[str]:
    yield "| option | meaning |"
    yield "|---|---|"
    for option in options:
        record = option.get_help_record(click.Context(top))
        assert record is not None
        spelled, text = record
        yield f"| `{spelled.replace('|', chr(92) + '|')}` | {_plain(text).replace('|', chr(92) + '|')} |"


def _plain(text: str) -> str:
    # A placeholder such as FILE.dsse is no HTML; backticks keep their meaning. Lines were broken for terminals.
    return re.sub(r"\s+", " ", text).strip()


def _common() -> list[click.Option]:
    @click.command()
    def bare() -> None:
        """Nothing."""

    command: click.Command = bare
    for with_option in common_options(home=True):
        command = with_option(command)
    return [option for option in command.params if isinstance(option, click.Option)]


_COMMON = {tuple(option.opts) for option in _common()}


def _is_common(option: click.Option) -> bool:
    return tuple(option.opts) in _COMMON


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
