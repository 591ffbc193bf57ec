"""The options that every command has, and that may stand before the command as well: ``visget -q build``.

Invariant: they mean the same in both places; the command counts what stood in front of it. This module is imported for
``visget --version``, so it imports nothing but click.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource


def common_options(*, home: bool) -> list[Callable[[Any], Any]]:
    """Return the decorators of the common options; `home` is for commands that read the settings."""
    options = [
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout."),
        click.option("-q", "--quiet", count=True, help="Say less; twice: only the exit code."),
        click.option("-v", "--verbose", count=True, help="Say more."),
        click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours."),
        click.option("--no-progress", is_flag=True, help="No progress bar, also on a terminal."),
    ]
    if home:
        options.insert(0, click.option("--home", metavar="DIR", help="The store. [env: VISGET_HOME]"))
    return options


def with_what_stood_before(options: dict[str, Any]) -> dict[str, Any]:
    """Return the common `options` of the running command, joined with those in front of it."""
    context = click.get_current_context()
    before = context.find_root().params if context.parent is not None else {}
    joined = dict(options)
    for name in ("quiet", "verbose"):
        joined[name] += before.get(name) or 0
    for name in ("as_json", "no_progress"):
        joined[name] = joined[name] or bool(before.get(name))
    if before.get("color") and context.get_parameter_source("color") is ParameterSource.DEFAULT:
        joined["color"] = before["color"]
    if "home" in joined:
        joined["home"] = joined["home"] or before.get("home")
    return joined
