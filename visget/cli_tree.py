"""The commands about what needs what: tree, why.

Invariant: each command is one function that reads its options, calls visget.api, and prints the result.
"""

from __future__ import annotations

import click

from visget.cli_common import Ui, command
from visget.config import Settings


@command("tree", example="visget tree\nvisget tree --json")
def tree(ui: Ui, settings: Settings) -> None:
    """Show the installed packages with what they are linked with.

    At the top is what somebody asked for; below each package is what it needs.
    """
    from visget import api
    from visget.tree import as_lines, forest

    found = forest(api.installed(settings=settings))
    ui.result(
        {"installed": [node.as_dict() for node in found]}, "\n".join(as_lines(found)) or "nothing is installed"
    )


@command("why", example="visget why zlib")
@click.argument("name")
def why(ui: Ui, settings: Settings, *, name: str) -> None:
    """Show why a package is installed.

    Each line is a way from the package to one that somebody asked for and that needs it.
    """
    from visget import api
    from visget.loading import not_installed
    from visget.names import parse_name
    from visget.tree import reasons

    everything = api.installed(settings=settings)
    found = reasons(parse_name(name), everything)
    if not found:
        raise not_installed(name, None, everything)
    lines = []
    for version, ways in found.items():
        for way in ways:
            needed = " <- ".join(way)
            lines.append(needed if len(way) > 1 else f"{needed}: it was asked for")
        if not ways:
            lines.append(f"{name} {version}: nothing needs it any more; visget uninstall {name}=={version}")
    ui.result({"name": name, "versions": {version: [list(way) for way in ways] for version, ways in found.items()}},
              "\n".join(lines))  # fmt: skip
