"""The commands about who owns a name: owner list, add, remove, rotate, threshold, recover, sign, submit.

Invariant: each command is one function that reads its options, calls visget.owning, and prints the result.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from visget.cli_common import Ui, command, counted, printable
from visget.cli_signing import key_path, passphrase_options, signing_key
from visget.config import Settings
from visget.errors import UsageError
from visget.passphrase import Passphrases

if TYPE_CHECKING:
    from visget.format.keys import PublicKey, SecretKey
    from visget.owning import Proposed, Wish

_registry = click.option("--registry", metavar="NAME|DIR|URL", help="The registry. [env: VISGET_REGISTRY]")
_revoke = click.option("--revoke", metavar="REASON", help="The key is not safe any more: refuse it for ever.")
_disown = click.option("--disown", multiple=True, metavar="VERSION",
                       help="A published version that the owner does not vouch for any more.")  # fmt: skip


def _changing(function: Any) -> Any:
    """Add the options of every command that makes a change."""
    options: list[Callable[[Any], Any]] = [
        click.option("--key", "keys", multiple=True, metavar="NAME|FILE", default=("default",), show_default=True,
                     help="A signing key; several times: several keys."),
        click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE",
                     help="Write the change to FILE, also when it could be submitted at once."),
        _registry,
        passphrase_options(),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@click.group("owner", context_settings={"help_option_names": ["-h", "--help"]})
def owner() -> None:
    """Show and change who may publish under a name."""


@command("list", example="visget owner list xxhash")
@click.argument("name")
@_registry
def owner_list(ui: Ui, settings: Settings, *, name: str, registry: str | None) -> None:
    """List the owner records of NAME, the newest last."""
    from visget.names import parse_name
    from visget.owning import owner_of

    found = owner_of(parse_name(name), registry=registry, settings=settings)
    state, records = found.state, found.records

    def text() -> str:
        lines = [f"{state.name}: {state.threshold} of {counted(len(state.keys), 'key')} must sign"]
        lines += [f"  {key.id}" for key in state.keys]
        lines += [f"  {item.key.id}  revoked: {printable(item.reason)}" for item in state.record.revoked]
        rows = [
            (str(item.record.seq), f"{item.record.threshold} of {len(item.record.keys)}",
             "operators" if item.record.recovery else "owner", item.digest[:16])
            for item in records
        ]  # fmt: skip
        return "\n".join([*lines, "", ui.table(("record", "threshold", "made by", "sha256"), rows)])

    ui.result(
        {
            "name": state.name, "record": state.seq, "sha256": state.digest, "threshold": state.threshold,
            "keys": [key.id for key in state.keys],
            "revoked": [
                {"key": item.key.id, "reason": item.reason, "refuse_after": item.refuse_after}
                for item in state.record.revoked
            ],
            "records": [
                {"record": item.record.seq, "sha256": item.digest, "threshold": item.record.threshold,
                 "keys": [key.id for key in item.record.keys], "recovery": item.record.recovery}
                for item in records
            ],
        },
        text,
    )  # fmt: skip


@command("add", example="visget owner add xxhash vk1q... --key release")
@click.argument("name")
@click.argument("key_id", metavar="KEY-ID|NAME|FILE")
@_changing
def owner_add(ui: Ui, settings: Settings, *, name: str, key_id: str, keys: tuple[str, ...], output: Path | None,
              registry: str | None, passphrase: Passphrases) -> None:  # fmt: skip
    """Let another key publish under NAME too.

    A key of this account signs the change as well, so that users can pin it from now on.
    """
    from visget.owning import Wish

    secrets = _secrets(settings, keys, passphrase)
    if not _is_id(key_id):
        _public(settings, key_id)
        secrets.append(signing_key(settings, key_id, passphrase))
    wish = Wish(add=(_public(settings, key_id),))
    _change(ui, settings, name, wish, secrets, output, registry)


@command("remove", example="visget owner remove xxhash vk1q...\n"
                           "visget owner remove xxhash vk1q... --revoke 'stolen laptop' --disown 6.6.6")  # fmt: skip
@click.argument("name")
@click.argument("key_id", metavar="KEY-ID|NAME|FILE")
@_revoke
@_disown
@_changing
def owner_remove(ui: Ui, settings: Settings, *, name: str, key_id: str, revoke: str | None, disown: tuple[str, ...],
                 keys: tuple[str, ...], output: Path | None, registry: str | None,
                 passphrase: Passphrases) -> None:  # fmt: skip
    """Let a key publish under NAME no longer.

    What only that key has signed is signed anew by the others, unless it is disowned.
    """
    from visget.owning import Wish

    wish = Wish(remove=(_public(settings, key_id),), revoke=revoke, disown=disown)
    _change(ui, settings, name, wish, _secrets(settings, keys, passphrase), output, registry)


@command("rotate", example="visget owner rotate xxhash --to new\nvisget owner rotate xxhash --to vk1q... --key old")
@click.argument("name")
@click.option("--to", "target", required=True, metavar="NAME|FILE|KEY-ID", help="The key that takes its place.")
@_revoke
@_disown
@_changing
def owner_rotate(ui: Ui, settings: Settings, *, name: str, target: str, revoke: str | None, disown: tuple[str, ...],
                 keys: tuple[str, ...], output: Path | None, registry: str | None,
                 passphrase: Passphrases) -> None:  # fmt: skip
    """Put another key in the place of --key.

    A key of this account signs at once. Of another person's key the id is enough: the change is written to a file,
    which that person signs with `visget owner sign`.
    """
    from visget.owning import Wish

    old = _secrets(settings, keys, passphrase)
    secrets = [*old, *([] if _is_id(target) else [signing_key(settings, target, passphrase)])]
    wish = Wish(add=(_public(settings, target),), remove=(old[0].public,), revoke=revoke, disown=disown)
    _change(ui, settings, name, wish, secrets, output, registry)


@command("threshold", example="visget owner threshold xxhash 2 --key mine --key release")
@click.argument("name")
@click.argument("number", type=click.IntRange(min=1))
@_changing
def owner_threshold(ui: Ui, settings: Settings, *, name: str, number: int, keys: tuple[str, ...],
                    output: Path | None, registry: str | None, passphrase: Passphrases) -> None:  # fmt: skip
    """Set how many keys must sign each package and each change."""
    from visget.owning import Wish

    secrets = _secrets(settings, keys, passphrase)
    _change(ui, settings, name, Wish(threshold=number), secrets, output, registry)


@command("recover", example="visget owner recover xxhash --to vk1q... --key /media/offline/targets.key")
@click.argument("name")
@click.option("--to", "target", required=True, metavar="KEY-ID|NAME|FILE", help="The key that will own the name.")
@_revoke
@_disown
@_changing
def owner_recover(ui: Ui, settings: Settings, *, name: str, target: str, revoke: str | None, disown: tuple[str, ...],
                  keys: tuple[str, ...], output: Path | None, registry: str | None,
                  passphrase: Passphrases) -> None:  # fmt: skip
    """Give NAME to a new key because its owner has lost every old one (for operators).

    --key is the registry's offline targets key. The new owner signs too. Whoever knows the old owner is stopped until
    they say `visget trust accept`.
    """
    from visget.names import parse_name
    from visget.owning import Wish, owner_of

    state = owner_of(parse_name(name), registry=registry, settings=settings).state
    new = _public(settings, target)
    secrets = _secrets(settings, keys, passphrase)
    if not _is_id(target):
        secrets.append(signing_key(settings, target, passphrase))
    gone = tuple(key for key in state.keys if key != new)
    wish = Wish(add=(new,), remove=gone, revoke=revoke, threshold=1, disown=disown, recovery=True)
    _change(ui, settings, name, wish, secrets, output, registry)


@command("sign", example="visget owner sign xxhash-owner-2.json --key mine\nvisget owner sign dist/xxhash-1.0.vis")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--key", "keys", multiple=True, metavar="NAME|FILE", default=("default",), show_default=True,
              help="A signing key; several times: several keys.")  # fmt: skip
@_registry
@passphrase_options()
def owner_sign(ui: Ui, settings: Settings, *, file: Path, keys: tuple[str, ...], registry: str | None,
               passphrase: Passphrases) -> None:  # fmt: skip
    """Add signatures to a change of owner, or to a package that several keys must sign.

    FILE is changed (a change of owner) or gets FILE.dsse beside it (a package).
    """
    from visget.owning import read_change, sign_change, write_change

    if file.suffix == ".vis":
        from visget import api

        path, signers = api.sign(file, _secrets(settings, keys, passphrase))
        ui.result(
            {"file": str(path), "signers": list(signers)}, f"{path} is signed by {', '.join(signers)}\n"
            f"when enough have signed: visget publish {file}"
        )  # fmt: skip
        return
    secrets = _secrets(settings, keys, passphrase)
    proposed = read_change(
        file, registry=registry, settings=settings, keys=[secret.public for secret in secrets]
    )
    if proposed.believed:
        known = ", ".join(key.id for key in proposed.state.keys)
        ui.warn(f"only the registry says that {proposed.state.name} belongs to {known}: compare that with its holder "
                "before you pass this on")  # fmt: skip
    for statement in proposed.change.statements(proposed.state):
        ui.note(f"this signs {statement.name} {statement.version} anew (sha256 {statement.digest[:16]}...)")
    proposed = sign_change(proposed, secrets)
    write_change(proposed, file)
    _report(ui, proposed, file, submitted=False)


@command("submit", example="visget owner submit xxhash-owner-2.json --registry ./registry")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--registry", metavar="NAME|DIR", help="The registry. [env: VISGET_REGISTRY]")
def owner_submit(ui: Ui, settings: Settings, *, file: Path, registry: str | None) -> None:
    """Put a change of owner that enough keys have signed into a registry."""
    from visget.owning import read_change, submit_change

    proposed = read_change(file, registry=registry, settings=settings)
    submit_change(proposed, registry=registry, settings=settings)
    _report(ui, proposed, None, submitted=True)


for one in (
    owner_list, owner_add, owner_remove, owner_rotate, owner_threshold, owner_recover, owner_sign, owner_submit,
):  # fmt: skip
    owner.add_command(one)


def _change(
    ui: Ui, settings: Settings, name: str, wish: Wish, secrets: list[SecretKey], output: Path | None,
    registry: str | None,
) -> None:  # fmt: skip
    from visget.names import parse_name
    from visget.owning import propose_change, submit_change, write_change

    package = parse_name(name)
    proposed = propose_change(package, wish, secrets, registry=registry, settings=settings)
    if proposed.missing.nothing and output is None:
        submit_change(proposed, registry=registry, settings=settings)
        _report(ui, proposed, None, submitted=True)
        return
    path = output or Path(f"{package}-owner-{proposed.change.record.record.seq}.json")
    write_change(proposed, path)
    _report(ui, proposed, path, submitted=False)


def _report(ui: Ui, proposed: Proposed, path: Path | None, *, submitted: bool) -> None:
    record, missing = proposed.change.record.record, proposed.missing
    lines = [f"{record.name} belongs to {', '.join(key.id for key in record.keys)}"
             + (f"; {record.threshold} of them must sign" if len(record.keys) > 1 else "")
             if submitted else f"wrote {path}"]  # fmt: skip
    if submitted and proposed.change.packages:
        lines.append(f"{counted(len(proposed.change.packages), 'published version')} signed anew")
    if not submitted and missing.nothing:
        lines.append(f"enough keys have signed; next: visget owner submit {path}")
    elif not submitted:
        lines.append(f"waits for signatures of {', '.join(key.id for key in missing.waiting)}")
        lines.append(f"next: visget owner sign {path} --key NAME")
    if record.threshold == len(record.keys) > 1:
        ui.warn("every key must sign: whoever loses one loses the name; add a spare key with `visget owner add`")
    ui.result(
        {
            "name": record.name, "record": record.seq, "keys": [key.id for key in record.keys],
            "threshold": record.threshold, "submitted": submitted, "file": str(path) if path else None,
            "signed_anew": len(proposed.change.packages),
            "missing": {"old": missing.old, "new": missing.new, "packages": missing.packages,
                        "waiting": [key.id for key in missing.waiting]},
        },
        "\n".join(lines),
    )  # fmt: skip


def _is_id(text: str) -> bool:
    return text.startswith("vk1") and len(text) == 55


def _public(settings: Settings, text: str) -> PublicKey:
    from visget.format.keyfile import read_key_file
    from visget.format.keys import parse_key_id

    if _is_id(text):
        return parse_key_id(text)
    path = key_path(settings, text)
    if not path.exists():
        raise UsageError(
            f"{text[:80]!r} is neither the id of a key nor a key of this account", where=str(path),
            hint="a key id is vk1 and 52 lower-case letters and digits; `visget key list` lists yours",
        )  # fmt: skip
    return read_key_file(path).public


def _secrets(settings: Settings, names: tuple[str, ...], passphrase: Passphrases) -> list[SecretKey]:
    return [signing_key(settings, name, passphrase) for name in names]
