"""The command ``visget``: which commands there are, and nothing else.

Invariant: a command's module is imported only when that command runs, so that ``visget --version`` and
``visget --help`` start as fast as click does. The commands live in the modules that COMMANDS names;
docs/reference/commands.md describes them, docs/reference/exit-codes.md the exit codes.
"""

from __future__ import annotations

import importlib
import sys

import click

from visget.cli_options import common_options
from visget.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE
from visget.nearest import nearest
from visget.version import __version__

# name: (module, attribute, one line of help). The help is written twice, here and in the command, so that the
# list can be printed without importing the commands; tests/visget/test_cli.py compares the two.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "init": ("cli_author", "init", "Write a commented visget.toml and a small example."),
    "build": ("cli_author", "build", "Compile the project to a portable package."),
    "check": ("cli_author", "check", "Check a package against the VIS rules."),
    "key": ("cli_key", "key", "Make and list signing keys."),
    "publish": ("cli_author", "publish", "Sign a package and put it into a registry."),
    "owner": ("cli_owner", "owner", "Show and change who may publish under a name."),
    "yank": ("cli_author", "yank", "Withdraw a published version."),
    "trust": ("cli_trust", "trust", "Say whose packages are the right ones."),
    "registry": ("cli_registry", "registry", "Make, trust and inspect registries."),
    "search": ("cli_registry", "search", "Find packages by name, word or exported function."),
    "info": ("cli_registry", "info", "Show what a package is, exports and needs."),
    "install": ("cli_install", "install", "Compile a package for this machine and install it."),
    "lock": ("cli_lock", "lock", "Write down which packages to install, to the byte."),
    "sync": ("cli_lock", "sync", "Install what the lock file says, to the byte."),
    "bundle": ("cli_lock", "bundle", "Pack packages for a machine without network."),
    "uninstall": ("cli_install", "uninstall", "Remove an installed package."),
    "list": ("cli_install", "list_", "List the installed packages."),
    "tree": ("cli_tree", "tree", "Show the installed packages with what they are linked with."),
    "why": ("cli_tree", "why", "Show why a package is installed."),
    "use": ("cli_install", "use", "Select one of the installed versions."),
    "rollback": ("cli_install", "rollback", "Go back to the version that was selected before."),
    "path": ("cli_install", "path", "Print the file of an installed library."),
    "pkg-config": ("cli_install", "pkg_config", "Print compiler and linker flags for C programs."),
    "target": ("cli_install", "target", "Show what this machine is and what is compiled for it."),
    "cache": ("cli_cache", "cache", "Look after the store of packages and native libraries."),
    "demo": ("cli_demo", "demo", "Build, publish, install and check an example, start to end."),
    "doctor": ("cli_doctor", "doctor", "Check this installation and explain each finding."),
    "completions": ("cli_doctor", "completions", "Print the shell's completion script."),
}

# These take everything after their name as it is, options included: they stand for other programs.
TOOLS: dict[str, str] = {
    "cc": "Compile C to neutral objects; link programs that run here.",
    "c++": "The same for C++.",
    "ar": "Make and read static libraries of neutral objects.",
    "ranlib": "Write the index of a static library.",
    "nm": "List the symbols of neutral objects and of native files.",
    "configure": "Run a configure script with visget's compiler.",
    "cmake": "Run CMake with visget's compiler.",
    "meson": "Run Meson with visget's compiler.",
    "make": "Run make with visget's compiler.",
}
COMPILERS = ("cc", "c++", "ar", "ranlib", "nm")

# Not for people: what test suites call.
HIDDEN: dict[str, tuple[str, str]] = {"tuf-conformance": ("cli_conformance", "tuf_conformance")}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in COMMANDS and cmd_name not in HIDDEN:
            return None
        module, attribute = HIDDEN[cmd_name] if cmd_name in HIDDEN else COMMANDS[cmd_name][:2]
        found: click.Command = getattr(importlib.import_module(f"visget.{module}"), attribute)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])
        with formatter.section("Compiler wrappers"):
            formatter.write_dl(list(TOOLS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was probably meant."""
        if args and args[0] not in COMMANDS and args[0] not in HIDDEN and not args[0].startswith("-"):
            if args[0] in TOOLS:
                raise click.UsageError(f"{args[0]} has to be the first word: visget {args[0]} ...", ctx)
            close = nearest(args[0], COMMANDS)
            raise click.UsageError(
                f"there is no command {args[0]!r}." + (f" Did you mean {close[0]!r}?" if close else ""), ctx
            )
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n  visget demo\n  visget install xxhash && python -c "
    "'import visget; print(visget.load(\"xxhash\").XXH64(b\"abc\", 3, 0))'",
)
@click.version_option(__version__, prog_name="visget", message="%(prog)s %(version)s")
@click.pass_context
def visget(ctx: click.Context, /, **_: object) -> None:
    """Native libraries whose packages hold no machine code: compiled on arrival, for exactly this machine."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _with_option in common_options(home=True):
    _with_option(visget)  # click appends it to the group's own


def main() -> None:
    """Run the command line."""
    if len(sys.argv) > 1 and sys.argv[1] in TOOLS:
        sys.exit(_run_tool(sys.argv[1], sys.argv[2:]))
    try:
        code = visget(prog_name="visget", standalone_mode=False)
    except click.exceptions.Exit as done:
        code = done.exit_code
    except click.ClickException as error:
        code = _usage_error(error)
    except (click.Abort, KeyboardInterrupt):
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        code = EXIT_FAILED
    sys.exit(code)


def _run_tool(name: str, arguments: list[str]) -> int:
    """Run a compiler or a build tool, which knows its own options."""
    if name in COMPILERS:
        from visget.wrap_main import main as compiler

        return compiler(name, arguments)
    from visget.errors import VisgetError
    from visget.wrap_build import run_build_tool

    try:
        return run_build_tool(name, arguments)
    except VisgetError as error:
        from visget.cli_common import asked_for

        asked_for([]).fail(error)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _usage_error(error: click.ClickException) -> int:
    """Report what click could not parse as every other error is reported, and return the exit code."""
    from visget.cli_common import asked_for, split_message
    from visget.errors import UsageError

    ui = asked_for(sys.argv[1:])
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and not ui.as_json and ui.quiet < 2:
        error.show()
        return EXIT_USAGE
    message, hint = split_message(error.format_message())
    if context is not None and not isinstance(error, click.exceptions.NoArgsIsHelpError):
        hint = (f"{hint} " if hint else "") + f"`{context.command_path} --help` shows what there is"
    ui.fail(UsageError(message, hint=hint))
    return EXIT_USAGE


if __name__ == "__main__":
    main()
