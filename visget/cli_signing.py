"""What the commands that use a signing key share: the options that say where its passphrase comes from, and its file.

Invariant: no option takes a passphrase itself (visget/passphrase.py says why).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from visget.config import Settings
from visget.errors import UsageError
from visget.passphrase import Passphrases, passphrases

if TYPE_CHECKING:
    from visget.format.keys import SecretKey

Function = TypeVar("Function", bound=Callable[..., Any])


def passphrase_options(
    prefix: str = "passphrase", noun: str = "the key's passphrase"
) -> Callable[[Function], Function]:
    """Give a command the three options that name a place, and its function that place.

    The function gets a Passphrases under the name `prefix` with the hyphens written as underscores.

    Args:
        prefix: how the options begin, without the hyphens before it.
        noun: what comes from there, for the help.
    """
    name = prefix.replace("-", "_")

    def wrap(function: Function) -> Function:
        @functools.wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            fd, file, env = (options.pop(f"{name}_{kind}") for kind in ("fd", "file", "env"))
            options[name] = passphrases(fd=fd, file=file, env=env, prefix=f"--{prefix}")
            return function(*args, **options)

        made: Any = run
        for option in (
            click.option(f"--{prefix}-env", metavar="NAME", help=f"Environment variable that holds {noun}."),
            click.option(f"--{prefix}-file", type=click.Path(path_type=Path), metavar="FILE",
                         help=f"Read {noun} from this file; it must be yours alone."),
            click.option(f"--{prefix}-fd", type=click.IntRange(min=0), metavar="N",
                         help=f"Read {noun} from this open descriptor; default: the terminal."),
        ):  # fmt: skip
            made = option(made)
        return made  # type: ignore[no-any-return]  # the wrapped function, with click's parameters on it

    return wrap


def key_path(settings: Settings, name: str) -> Path:
    """Return the file of the key that `name`, a name or a file, means.

    Raises:
        UsageError: it is neither.
    """
    from visget.names import parse_name

    if "/" in name or name.endswith(".key"):
        return Path(name)
    return settings.keys / f"{parse_name(name)}.key"


def signing_key(settings: Settings, name: str, source: Passphrases) -> SecretKey:
    """Return the key that `name`, a name or a file, means, asking for its passphrase when it has one.

    Raises:
        UsageError: there is no such key, or no passphrase, or the wrong one.
        TrustError, FormatError: its file is not fit.
    """
    path = key_path(settings, name)
    if not path.exists():
        raise UsageError(
            f"there is no signing key {name!r}", where=str(path), hint=f"make one: visget key new {name}"
        )
    return source.open(path)
