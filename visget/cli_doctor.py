"""The commands doctor and completions.

Invariant: doctor ends with exit code 1 only when it found a problem, not for a warning.
"""

from __future__ import annotations

import click

from visget.cli_common import Ui, command, printable
from visget.config import Settings
from visget.errors import EXIT_FAILED, UsageError

_MARK = {"ok": ("ok", "green"), "warning": ("warn", "yellow"), "problem": ("FAIL", "red")}


@command("doctor", example="visget doctor\nvisget doctor --json", settings="or default")
def doctor(ui: Ui, settings: Settings, wrong: UsageError | None) -> int:
    """Check this installation and explain each finding."""
    from visget.doctor import examine

    found = list(examine(settings, wrong))
    lines = []
    for item in found:
        word, color = _MARK[item.status]
        lines.append(f"{ui.style(word.rjust(4), fg=color)}  {item.subject + ':':12} {printable(item.text)}")
        if item.remedy and item.status != "ok":
            lines.append(f"      {'':12} {printable(item.remedy)}")
    problems = sum(item.status == "problem" for item in found)
    lines += ["", f"{problems} problem(s)" if problems else "visget can work here"]
    ui.result({"findings": [item.as_dict() for item in found], "problems": problems}, "\n".join(lines))
    return EXIT_FAILED if problems else 0


@command("completions", example='eval "$(visget completions bash)"\nvisget completions fish | source', settings=False)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completions(ui: Ui, *, shell: str) -> None:
    """Print the shell's completion script.

    In the shell: eval "$(visget completions bash)", also from its start-up file.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    text = kind(click.get_current_context().find_root().command, {}, "visget", "_VISGET_COMPLETE").source()
    ui.result({"shell": shell, "script": text}, text, raw=True)
