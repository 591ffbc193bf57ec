"""Where a passphrase comes from: the terminal, a file descriptor, a file, or a variable of the environment.

Invariants: a passphrase is never an argument of a command, where every user of the machine could read it, and never
echoed; without a terminal nothing is ever asked, so that no script hangs. The rules are docs/spec/key-file.md,
section "Passphrases".
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from visget.config import environment_variable
from visget.errors import TrustError, UsageError

if TYPE_CHECKING:
    from visget.format.keys import SecretKey

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Passphrases:
    """The one place that the user named, or the terminal when none was."""

    option: str | None
    """The option that named it; None for the terminal."""
    _read: Callable[[str], str]

    @property
    def available(self) -> bool:
        """Whether asking makes sense: a place was named, or there is a terminal."""
        return self.option is not None or sys.stdin.isatty()

    def ask(self, prompt: str) -> bytes:
        """Return the passphrase; on a terminal `prompt` is shown and nothing is echoed.

        Raises:
            UsageError: there is none to be had, or it is empty.
        """
        from visget.format.keyfile import passphrase_bytes

        try:
            return passphrase_bytes(self._read(prompt))
        except UsageError as error:
            error.where = error.where or self.option
            raise

    def ask_new(self, name: str) -> bytes:
        """Return a new passphrase for the key `name`; on a terminal it has to be typed twice.

        Raises:
            UsageError: there is none to be had, it is empty, or the two differ.
        """
        first = self.ask(f"new passphrase for the key {name}: ")
        if self.option is None and self.ask("the same again: ") != first:
            raise UsageError("the two passphrases differ; nothing was written", hint="run the command again")
        return first

    def open(self, path: Path) -> SecretKey:
        """Return the key in the file `path`, asking for its passphrase when it has one.

        Raises:
            UsageError: there is no such file, or no passphrase, or the wrong one.
            TrustError: others can read the file; or it is not encrypted although a passphrase was given.
            FormatError: it is not a key file.
        """
        from visget.format.keyfile import WrongPassphraseError, read_key, read_key_file

        if not read_key_file(path).encrypted:
            if self.option is not None:
                raise TrustError(
                    f"the key file is not encrypted, but {self.option} gives a passphrase for it: somebody may have "
                    "put another key in its place",
                    where=str(path),
                    hint="if you made it with --no-passphrase yourself, leave the option out",
                )
            return read_key(path)
        prompt = f"passphrase for {path.name}: "
        for _ in range(_TRIES - 1 if self.option is None else 0):
            try:
                return read_key(path, functools.partial(self.ask, prompt))
            except WrongPassphraseError:
                prompt = f"that is not it; passphrase for {path.name}: "
        return read_key(path, functools.partial(self.ask, prompt))


def passphrases(
    *, fd: int | None = None, file: Path | None = None, env: str | None = None, prefix: str = "--passphrase"
) -> Passphrases:
    """Return the place that the options name.

    Args:
        fd: an open file descriptor; its first line counts.
        file: a file that only its owner can read, of one line.
        env: the name of a variable of the environment.
        prefix: how the options are called in messages.

    Raises:
        UsageError: more than one is given.
    """
    given: list[tuple[str, Callable[[str], str]]] = []
    if fd is not None:
        given.append((f"{prefix}-fd {fd}", lambda _: _from_descriptor(fd)))
    if file is not None:
        given.append((f"{prefix}-file", lambda _: _from_file(file)))
    if env is not None:
        given.append((f"{prefix}-env", lambda _: _from_variable(env)))
    if len(given) > 1:
        raise UsageError(
            f"a passphrase comes from one place, not from {' and '.join(option for option, _ in given)}",
            hint="give one of these options",
        )
    if not given:
        return Passphrases(option=None, _read=lambda prompt: _from_terminal(prompt, prefix))
    return Passphrases(option=given[0][0], _read=given[0][1])


def _from_terminal(prompt: str, prefix: str) -> str:
    # Standard input decides, and not whether the process has some terminal: a script must never be asked.
    if not sys.stdin.isatty():
        raise UsageError(
            "a passphrase is needed, and there is no terminal to ask for it",
            hint=f"name where it comes from: {prefix}-fd N, {prefix}-file FILE or {prefix}-env NAME",
        )
    import getpass

    try:
        return getpass.getpass(prompt)
    except EOFError:
        raise UsageError("no passphrase was typed") from None


def _from_descriptor(descriptor: int) -> str:
    from visget.format.keyfile import PASSPHRASE_LIMIT

    data = b""
    try:
        # Byte by byte: what follows the line belongs to somebody else, perhaps to the next option.
        while len(data) <= PASSPHRASE_LIMIT and (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
            data += byte
    except OSError as error:
        raise UsageError(
            f"cannot read a passphrase from the file descriptor {descriptor}: {error.strerror}",
            hint="open it for the command, as in: visget ... --passphrase-fd 3 3< <(pass show visget)",
        ) from error
    return _text(data)


def _from_file(path: Path) -> str:
    from visget.format.keyfile import PASSPHRASE_LIMIT, read_private

    return _text(read_private(path, what="the passphrase file", limit=PASSPHRASE_LIMIT + 2).removesuffix(b"\n"))


def _from_variable(name: str) -> str:
    text = environment_variable(name)
    if text is None:
        raise UsageError(
            f"the environment has no variable {name[:80]!r}",
            hint="the option takes the variable's name, never the passphrase itself",
        )
    return text


def _text(data: bytes) -> str:
    try:
        return data.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("the passphrase is not UTF-8") from None
