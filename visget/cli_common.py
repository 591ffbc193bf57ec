"""What every command shares: options, output for people and machines, progress, and the mapping of errors.

Invariant: only the cli modules print and exit. Results go to stdout, everything else to stderr; with ``--json``
stdout holds exactly one JSON object, also when the command fails. Text that comes from packages passes through
printable(), and whole results and what a compiler says through shown(), so that nobody can send escape sequences to
a terminal. In JSON such characters are escapes anyway.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from visget.cli_options import common_options, with_what_stood_before
from visget.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, ResourceError, UsageError, VisgetError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

    from visget.format.findings import Finding

Command = TypeVar("Command", bound=Callable[..., Any])

# Control, format (bidi), surrogate and private characters: nothing of these belongs in a name or a summary.
_UNPRINTABLE = frozenset(["Cc", "Cf", "Cs", "Co"])


# Off a terminal, long work says this often that it is still alive.
_LINE_SECONDS = 10.0


def counted(number: int, noun: str) -> str:
    """Return `number` with its noun, in the plural where it is one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """Return `text` with control and bidirectional characters written as escapes; newlines become spaces."""
    return "".join(
        " " if char in "\n\t" else f"\\u{ord(char):04x}" if unicodedata.category(char) in _UNPRINTABLE else char
        for char in text
    )


# Weights and colours, as click.style() and compilers write them: all that is left of a terminal's language.
_STYLE = re.compile(r"(\x1b\[[01]?(?:;[01])?(?:;?[39][0-7])?m)")


def shown(text: str, *, styles: bool) -> str:
    """Return the lines of `text` with escapes for what does more to a terminal than break a line.

    Args:
        text: what is to be shown.
        styles: whether weights and colours in it are meant.
    """
    pieces = _STYLE.split(text) if styles else [text]
    # Every second piece is a style. A tab may stay: it moves text, and hides none.
    return "".join(
        piece if number % 2 else "\n".join("\t".join(map(printable, line.split("\t"))) for line in piece.split("\n"))
        for number, piece in enumerate(pieces)
    )


class Ui:
    """How one run of a command talks: it knows about --json, -q, -v, colours and terminals."""

    def __init__(self, *, as_json: bool, quiet: int, verbose: int, color: str, progress: bool) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.verbose = verbose
        self.color = color
        self._progress = progress
        self._bar: RichProgress | None = None
        self._tasks: dict[str, Any] = {}
        self._last: tuple[str, float] = ("", 0.0)

    # ---- results -------------------------------------------------------------------------------------
    def result(
        self, data: Mapping[str, object], text: str | Callable[[], str] | None = None, *, raw: bool = False
    ) -> None:
        """Print the result of the command: `data` with --json, else `text`.

        Args:
            data: the result for machines.
            text: the same for people.
            raw: `text` is for machines too, such as a path for a shell's $(...), and not changed.
        """
        self.close()
        if self.as_json:
            click.echo(json.dumps(data, indent=2, sort_keys=True, ensure_ascii=True))
        elif text is not None and self.quiet < 2:
            color = self._colored(sys.stdout)
            words = text() if callable(text) else text
            click.echo(words if raw else shown(words, styles=color), color=color)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
        """Return a plain aligned table, cut nowhere, that pipes as well as it reads."""
        lines = [tuple(columns), *(tuple(printable(cell) for cell in row) for row in rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
        shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
                 for line in lines]  # fmt: skip
        shown[0] = self.style(shown[0], bold=True)
        return "\n".join(shown)

    def style(self, text: str, **how: Any) -> str:
        """Return `text` in a colour or weight when colours are on for stdout."""
        return click.style(text, **how) if self._colored(sys.stdout) else text

    @property
    def colour(self) -> bool:
        """Whether messages on stderr may have colours."""
        return self._colored(sys.stderr)

    def _colored(self, stream: Any) -> bool:
        if self.color != "auto":
            return self.color == "always"
        return console_color(stream)

    # ---- messages ------------------------------------------------------------------------------------
    def note(self, text: str) -> None:
        """Print one line for people on stderr unless they asked for quiet."""
        if self.quiet < 1:
            self._echo(printable(text))

    def warn(self, text: str) -> None:
        """Print a warning on stderr."""
        if self.quiet < 2:
            self._echo(self._label("warning", "yellow") + printable(text))

    def quote(self, text: str) -> None:
        """Print what a compiler said as it shows that itself, colours included; but it quotes sources."""
        self._echo(shown(text.rstrip("\n"), styles=self.colour))

    def findings(self, findings: Iterable[Finding]) -> None:
        """Print findings of the VIS rules, one block each, on stderr."""
        for finding in findings:
            if self.quiet < 2 and not self.as_json:
                self._echo("\n".join(printable(line) for line in finding.render().splitlines()))

    def fail(self, error: VisgetError) -> None:
        """Print `error`: what happened, where, why, and what to do next."""
        self.close()
        if self.as_json:
            click.echo(json.dumps(error.as_dict(), indent=2, sort_keys=True, ensure_ascii=True, default=_as_json))
            return
        if self.quiet >= 2:
            return
        stderr = error.details.get("stderr")
        if isinstance(stderr, str) and stderr.strip():
            self.quote(stderr)
        findings = error.details.get("findings")
        if isinstance(findings, list):
            for finding in findings:
                render = getattr(finding, "render", None)
                self._echo("\n".join(printable(x) for x in (render() if render else str(finding)).splitlines()))
        # A message that names the place itself, such as the package, must not name it twice.
        where = f"{printable(error.where)}: " if error.where and error.where not in error.message else ""
        first, *rest = error.message.splitlines() or [""]
        self._echo(self._label("error", "red") + where + printable(first))
        for line in rest:
            self._echo("  " + printable(line))
        if error.hint:
            self._echo(self._label("hint", "cyan") + printable(error.hint))

    def interrupted(self) -> None:
        """Say that the command was interrupted (Ctrl-C)."""
        self.close()
        text = "interrupted; nothing was left half done, run the same command to go on"
        if self.as_json:
            error = VisgetError(text).as_dict() | {"error": "Interrupted", "exit_code": EXIT_INTERRUPTED}
            click.echo(json.dumps(error, indent=2, sort_keys=True))
        elif self.quiet < 2:
            self._echo(text)

    def _label(self, word: str, color: str) -> str:
        text = f"{word}: "
        return click.style(text, fg=color, bold=True) if self._colored(sys.stderr) else text

    def _echo(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text, err=True, color=self._colored(sys.stderr))

    # ---- progress (visget.progress.Progress) -----------------------------------------------------------
    def step(self, phase: str, detail: str = "", done: int = 0, total: int | None = None) -> None:
        """Show progress: a bar on a terminal, one line for each phase elsewhere."""
        if self.quiet or (self.as_json and not sys.stderr.isatty()):
            return
        detail = printable(detail)
        if self._progress and sys.stderr.isatty():
            bar = self._open_bar()
            if phase not in self._tasks:
                self._tasks[phase] = bar.add_task(phase, total=total, detail=detail)
            bar.update(self._tasks[phase], completed=done, total=total, detail=detail)
            return
        last, when = self._last
        now = time.monotonic()
        what = f"{phase} {detail}" if self.verbose else phase
        if what != last or now - when > _LINE_SECONDS:
            count = f" {done}/{total}" if total and total > 1 and done else ""
            click.echo(f"{phase}{count}{' ' + detail if detail else ''}", err=True)
            self._last = (what, now)

    def _open_bar(self) -> RichProgress:
        if self._bar is None:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24),
                TextColumn("{task.fields[detail]}", markup=False), TimeElapsedColumn(),
                console=self._console(), transient=True,
            )  # fmt: skip
            self._bar.start()
        return self._bar

    def _console(self) -> Console:
        from rich.console import Console

        return Console(stderr=True, no_color=not self._colored(sys.stderr))

    def close(self) -> None:
        """Take the progress bar off the screen."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            self._tasks.clear()


def console_color(stream: Any) -> bool:
    """Return whether colours suit `stream`: NO_COLOR and FORCE_COLOR, then whether it is a terminal."""
    from visget.config import color_wish

    wish = color_wish()
    return bool(stream.isatty()) if wish is None else wish


def _as_json(value: object) -> object:
    as_dict = getattr(value, "as_dict", None)
    return as_dict() if as_dict is not None else str(value)


def asked_for(words: Sequence[str]) -> Ui:
    """Return how the output was asked for by a command line that click could not parse."""
    flags = [word for word in words if word.startswith("-")]
    bundles = [word for word in flags if re.fullmatch("-[qv]+", word)]
    quiet = flags.count("--quiet") + sum(word.count("q") for word in bundles)
    color = re.search(r"(?:^| )--color[ =](always|never)(?: |$)", " ".join(words))
    return Ui(as_json="--json" in flags, quiet=quiet, verbose=0, color=color[1] if color else "auto", progress=False)


def split_message(text: str) -> tuple[str, str | None]:
    """Return a message of click in the style of all other messages: a lower-case first letter, and the hint apart."""
    message, _, meant = text.partition("Did you mean ")
    if message.endswith("("):  # several guesses stand in parentheses
        message, meant = message[:-1], meant.strip().removesuffix(")")
    message = message.strip().removesuffix(".")
    if message[:1].isupper() and not message[:2].isupper():
        message = message[0].lower() + message[1:]
    return message, f"did you mean {meant}" if meant else None


def command(
    name: str, *, example: str, settings: bool | Literal["or default"] = True
) -> Callable[[Command], click.Command]:
    """Make a function a command with the options that every command has.

    The function is called with the Ui first and, unless `settings` is false, the Settings second.

    Args:
        name: the word on the command line.
        example: what ``--help`` shows under "Example"; one command a line.
        settings: whether the command reads the settings; "or default": it goes on when they are wrong, and is
            called with the error, or None, as the third argument.
    """

    def wrap(function: Command) -> click.Command:
        @functools.wraps(function)
        def run(**options: Any) -> None:
            options = with_what_stood_before(options)
            ui = Ui(
                as_json=options.pop("as_json"), quiet=options.pop("quiet"), verbose=options.pop("verbose"),
                color=options.pop("color"), progress=not options.pop("no_progress"),
            )  # fmt: skip
            home = options.pop("home", None)
            sys.exit(guarded(ui, lambda: _call(function, ui, settings, home, options)))

        text = "\b\nExample:\n" + "\n".join(f"  {line}" for line in example.splitlines())
        common = common_options(home=bool(settings))
        made: Any = run
        for option in reversed(common):
            made = option(made)
        finished = click.command(name, epilog=text, context_settings={"help_option_names": ["-h", "--help"]})(made)
        # click puts the decorator nearest to the function last; a command's own options come first in its help.
        finished.params = finished.params[len(common) :] + finished.params[: len(common)]
        return finished

    return wrap


def _call(function: Any, ui: Ui, wants: bool | str, home: str | None, options: Any) -> int | None:
    if not wants:
        code: int | None = function(ui, **options)
        return code
    from visget.config import read_settings, read_settings_or_default

    given = (read_settings(home=home),) if wants is True else read_settings_or_default(home=home)
    result: int | None = function(ui, *given, **options)
    return result


def guarded(ui: Ui, call: Callable[[], int | None]) -> int:
    """Run `call` and return the exit code; errors of visget are printed, never raised further."""
    try:
        code = call() or 0
    except VisgetError as error:
        ui.fail(error)
        return error.exit_code
    except click.ClickException as error:
        ui.fail(UsageError(error.format_message()))
        return EXIT_USAGE
    except KeyboardInterrupt:
        ui.interrupted()
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`visget list | head`): nothing to tell anybody.
        sys.stderr.close()
        return EXIT_FAILED
    except OSError as error:
        # Each place that touches files says more than this; here only so that no traceback ever reaches a person.
        failed = ResourceError(
            f"the system refused: {error.strerror or error}", where=str(error.filename) if error.filename else None,
            hint="free space, permissions and paths are the usual reasons; `visget doctor` looks at them",
        )  # fmt: skip
        ui.fail(failed)
        return failed.exit_code
    finally:
        ui.close()
    return code
