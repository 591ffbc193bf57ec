"""The commands around signing keys: key new, list, show, change-passphrase.

Invariant: each command is one function that reads its options, calls visget.format.keyfile, and prints the result;
no secret and no passphrase is ever printed.
"""

from __future__ import annotations

import click

from visget.cli_common import Ui, command
from visget.cli_signing import key_path, passphrase_options
from visget.config import Settings
from visget.errors import UsageError
from visget.passphrase import Passphrases


@click.group("key", context_settings={"help_option_names": ["-h", "--help"]})
def key() -> None:
    """Make and list signing keys."""


@command(
    "new",
    example="visget key new\nvisget key new release --passphrase-file ~/.secret\n"
    "visget key new ci --no-passphrase",
)
@click.argument("name", default="default")
@click.option("--no-passphrase", is_flag=True, help="Do not encrypt the key file.")
@passphrase_options()
def key_new(ui: Ui, settings: Settings, *, name: str, no_passphrase: bool, passphrase: Passphrases) -> None:
    """Make a signing key called NAME (default: "default").

    Its file is encrypted under a passphrase, which is asked for twice on a terminal.
    """
    from visget.files import translated
    from visget.format.keyfile import write_key
    from visget.format.keys import SecretKey

    path = key_path(settings, name)
    if path.exists():  # before anybody is asked for a passphrase
        raise UsageError(
            "there is a key of that name already; a key is never overwritten",
            where=str(path), hint="use that key, or choose another name",
        )  # fmt: skip
    _one_wish(passphrase, no_passphrase, "--passphrase")
    words = None if no_passphrase else passphrase.ask_new(name)
    secret = SecretKey.generate()
    if path.parent == settings.keys:
        with translated("make the directory of keys", settings.keys):
            settings.keys.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_key(path, secret, words)
    ui.result(
        {"name": name, "file": str(path), "id": secret.public.id, "encrypted": words is not None},
        f"wrote {path}\npublic key id: {secret.public.id}\n\n"
        "Back this file up and show it to nobody: whoever has it "
        + ("and its passphrase " if words is not None else "")
        + "can publish in your name.",
    )


@command("list", example="visget key list")
def key_list(ui: Ui, settings: Settings) -> None:
    """List the signing keys of this account.

    No passphrase is needed: the public halves are in the clear.
    """
    from visget.format.keyfile import read_key_file

    found = sorted(settings.keys.glob("*.key")) if settings.keys.is_dir() else []
    files = [(path, read_key_file(path)) for path in found]
    ui.result(
        {
            "keys": [
                {"name": path.stem, "id": file.public.id, "file": str(path), "encrypted": file.encrypted}
                for path, file in files
            ]
        },
        lambda: ui.table(
            ("name", "id", "passphrase", "file"),
            [(path.stem, file.public.id, _protection(file.encrypted), str(path)) for path, file in files],
        )
        if files
        else "no keys; make one: visget key new",
    )


@command("show", example="visget key show\nvisget key show release --json")
@click.argument("name", default="default", metavar="[NAME|FILE]")
def key_show(ui: Ui, settings: Settings, *, name: str) -> None:
    """Show the public half of a signing key.

    The id is what others pin: `visget install NAME --trust ID`.
    """
    from visget.format.keyfile import read_key_file

    path = key_path(settings, name)
    file = read_key_file(path)
    ui.result(
        {"name": path.stem, "id": file.public.id, "public": file.public.raw.hex(), "file": str(path),
         "encrypted": file.encrypted},
        f"{file.public.id}\n  file:       {path}\n  passphrase: {_protection(file.encrypted)}",
    )  # fmt: skip


@command(
    "change-passphrase",
    example="visget key change-passphrase\nvisget key change-passphrase release --passphrase-env OLD "
    "--new-passphrase-env NEW\nvisget key change-passphrase ci --no-passphrase",
)
@click.argument("name", default="default", metavar="[NAME|FILE]")
@passphrase_options(noun="the present passphrase")
@passphrase_options("new-passphrase", "the new passphrase")
@click.option("--no-passphrase", is_flag=True, help="Leave the key file unencrypted.")
def key_change(ui: Ui, settings: Settings, *, name: str, passphrase: Passphrases, new_passphrase: Passphrases,
               no_passphrase: bool) -> None:  # fmt: skip
    """Give a key file another passphrase, its first, or none.

    The key stays the same. Copies of the old file still open with the old passphrase.
    """
    from visget.format.keyfile import change_passphrase

    path = key_path(settings, name)
    _one_wish(new_passphrase, no_passphrase, "--new-passphrase")
    secret = passphrase.open(path)
    change_passphrase(path, secret, None if no_passphrase else new_passphrase.ask_new(path.stem))
    ui.result(
        {"name": path.stem, "file": str(path), "id": secret.public.id, "encrypted": not no_passphrase},
        f"{path} is {'no longer encrypted' if no_passphrase else 'encrypted under the new passphrase'}",
    )


for one in (key_new, key_list, key_show, key_change):
    key.add_command(one)


def _one_wish(source: Passphrases, none: bool, prefix: str) -> None:
    if none and source.option is not None:
        raise UsageError(f"--no-passphrase and {source.option} exclude each other", hint="give one of them")
    if not none and not source.available:
        raise UsageError(
            "a new passphrase is needed, and there is no terminal to ask for it",
            hint=f"say where it comes from with {prefix}-fd N, {prefix}-file FILE or {prefix}-env NAME, or leave the "
            "file unencrypted with --no-passphrase",
        )


def _protection(encrypted: bool) -> str:
    return "yes" if encrypted else "none"
