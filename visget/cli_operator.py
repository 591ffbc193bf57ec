"""The commands of registry operators, in the group ``visget registry``: init, sign, apply, refresh, rotations.

Invariant: each command is one function that reads its options, calls the registry room, and prints the result; keys
stay in the operator's room and in the files that the holders name.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from visget.cli_common import Ui, command, counted
from visget.cli_signing import passphrase_options, signing_key
from visget.config import DEFAULT_REGISTRY, Settings, check_location, remember_registry
from visget.passphrase import Passphrases

if TYPE_CHECKING:
    from visget.format.keys import PublicKey, SecretKey
    from visget.registry.directory import Ceremony
    from visget.registry.roots import Staged

_KEY = "KEY-ID|NAME|FILE"


@command(
    "init",
    example="visget registry init ./registry\nvisget registry init /srv/packages --name team\n"
    "visget registry init /srv/packages --threshold 2 --root-key vk1... --root-key vk1... --root-key mine",
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--name", default=DEFAULT_REGISTRY, show_default=True, help="Its name in config.toml.")
@click.option("--root-key", "root_keys", multiple=True, metavar=_KEY, help="A key that signs roots; repeat it.")
@click.option("--threshold", type=click.IntRange(1), default=1, show_default=True, help="How many must sign a root.")
@click.option("--targets-key", "targets_keys", multiple=True, metavar=_KEY, help="A key that signs the top role.")
@click.option("--targets-threshold", type=click.IntRange(1), default=1, show_default=True,
              help="How many must sign the top role.")  # fmt: skip
@click.option("--timestamp-days", type=click.IntRange(1, 365), default=14, show_default=True,
              help="For how long an old state may pass as the current one.")  # fmt: skip
@passphrase_options()
def registry_init(ui: Ui, settings: Settings, *, directory: Path, name: str, root_keys: tuple[str, ...],
                  threshold: int, targets_keys: tuple[str, ...], targets_threshold: int, timestamp_days: int,
                  passphrase: Passphrases) -> None:  # fmt: skip
    """Make DIRECTORY an empty registry; any static web server can serve it.

    All keys are made, outside of DIRECTORY. With --root-key the holders of those keys sign the root instead: the
    ones whose key files are here sign now, the others with `visget registry sign`.
    """
    from visget.names import parse_name
    from visget.registries import new_room
    from visget.registry.directory import init_registry
    from visget.registry.tuf_repository import Periods

    parse_name(name)
    directory = directory.absolute()
    check_location(str(directory))
    ceremony = _ceremony(settings, root_keys, threshold, targets_keys, targets_threshold, passphrase)
    periods = Periods(
        timestamp=timestamp_days, snapshot=2 * timestamp_days, bins=max(Periods().bins, 2 * timestamp_days)
    )
    keys = new_room(settings, name, directory)
    where = init_registry(directory, keys=keys, ceremony=ceremony, periods=periods)
    remembered = remember_registry(settings, name, str(where)) or settings.registries.get(name) == str(where)
    fingerprint, waiting = _begun(settings, where, keys)
    lines = [f"made a registry in {where}" if fingerprint else f"prepared a registry in {where}"]
    lines.append(f"config.toml now calls it {name!r}" if remembered else f"use it with --registry {where}")
    lines.append(f"its keys are in {keys}")
    if fingerprint:
        lines.append(f"its root, by which others know it: {fingerprint}")
    lines += [f"waiting: {text}" for text in waiting]
    if waiting:
        lines.append(f"each holder: visget registry sign {keys / 'staged'}/*.json --key KEY")
        lines.append(f"then:        visget registry apply {where}")
    ui.result(
        {"directory": str(where), "name": name if remembered else None, "keys": str(keys),
         "fingerprint": fingerprint, "waiting": waiting},
        "\n".join(lines),
    )  # fmt: skip


def _begun(settings: Settings, directory: Path, keys: Path) -> tuple[str | None, list[str]]:
    """Return the fingerprint of the new registry, which this user trusts from now on, or what it waits for."""
    from visget.registries import trust_own
    from visget.registry.upkeep import waiting

    lacking = waiting(keys) if keys.exists() else []
    return (None, lacking) if lacking else (trust_own(settings, directory), [])


def _ceremony(settings: Settings, root: tuple[str, ...], threshold: int, targets: tuple[str, ...],
              targets_threshold: int, passphrase: Passphrases) -> Ceremony | None:  # fmt: skip
    from visget.errors import UsageError
    from visget.registry.directory import Ceremony
    from visget.registry.roots import Holders

    if not root:
        if targets or threshold != 1 or targets_threshold != 1:
            raise UsageError(
                "thresholds and --targets-key are for registries whose holders are named",
                hint="name every holder of a root key: --root-key KEY-ID, repeated",
            )
        return None
    at_hand: list[SecretKey] = []
    root_holders = Holders(keys=_public(settings, root, passphrase, at_hand), threshold=threshold)
    top = None
    if targets:
        top = Holders(keys=_public(settings, targets, passphrase, at_hand), threshold=targets_threshold)
    return Ceremony(root=root_holders, targets=top, at_hand=tuple(at_hand))


def _public(
    settings: Settings, texts: tuple[str, ...], passphrase: Passphrases, at_hand: list[SecretKey]
) -> tuple[PublicKey, ...]:
    from visget.format.keys import parse_key_id

    found = []
    for text in texts:
        if text.startswith("vk1") and len(text) == 55:
            found.append(parse_key_id(text))
        else:
            at_hand.append(secret := signing_key(settings, text, passphrase))
            found.append(secret.public)
    return tuple(found)


@command("sign", example="visget registry sign staged/1.root.json staged/1.targets.json --key root")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--key", default="default", show_default=True, metavar="NAME|FILE", help="The key of a holder.")
@passphrase_options()
def registry_sign(ui: Ui, settings: Settings, *, files: tuple[Path, ...], key: str, passphrase: Passphrases) -> None:
    """Sign documents that wait for it: roots, and top roles.

    Needs nothing but the files and the key, so that it can be done on a machine without network. Documents that
    others sign are left alone.
    """
    from visget.registry.roots import sign_file, signable
    from visget.registry.tuf_keys import KeySigner

    signer = KeySigner(signing_key(settings, key, passphrase))
    mine, others = signable(files, signer.public)
    documents = [sign_file(path, signer) for path in mine]
    for text in others:
        ui.note(f"left alone: {text}")
    ui.result(
        {"signer": signer.public.id, "documents": [_facts(item) for item in documents], "left": others},
        lambda: "\n".join(_described(item) for item in documents) + f"\nsigned by {signer.public.id}",
    )


def _facts(item: Staged) -> dict[str, object]:
    signed = item.metadata.signed
    return {
        "file": str(item.path), "role": item.role, "version": item.version, "expires": signed.expires.isoformat(),
        "signatures": len(item.metadata.signatures),
    }  # fmt: skip


def _described(item: Staged) -> str:
    from visget.registry.roots import holders_of

    signed = item.metadata.signed
    lines = [f"{item.path.name}: {item.role} {item.version}, until {signed.expires:%Y-%m-%d}"]
    if item.role == "root":
        for role in ("root", "targets", "timestamp"):
            holders = holders_of(signed, role)
            lines.append(f"  {role}: {holders.threshold} of {', '.join(key.id for key in holders.keys)}")
    return "\n".join(lines)


@command("apply", example="visget registry apply team\nvisget registry apply /srv/packages")
@click.argument("which", metavar="NAME|DIR")
def registry_apply(ui: Ui, settings: Settings, *, which: str) -> None:
    """Put signed documents in force: a new registry's, a rotation's, a renewal's."""
    from visget.registries import directory_and_room, trust_own
    from visget.registry.upkeep import apply_staged

    directory, keys = directory_and_room(settings, which)
    apply_staged(directory, keys)
    fingerprint = trust_own(settings, directory)
    ui.result(
        {"directory": str(directory), "fingerprint": fingerprint},
        f"{directory} is in order\nits root, by which others know it: {fingerprint}",
    )


@command("refresh", example="visget registry refresh team\nvisget registry refresh /srv/packages --force")
@click.argument("which", metavar="[NAME|DIR]", required=False)
@click.option("--force", is_flag=True, help="Sign everything anew, not only what has passed half of its time.")
@click.option("--restored", is_flag=True, help="The directory was restored from a copy on purpose: go on from there.")
def registry_refresh(ui: Ui, settings: Settings, *, which: str | None, force: bool, restored: bool) -> None:
    """Renew the signatures of a registry and remove files that nothing names any more.

    For cron: once a day is enough. Publishing renews them too.
    """
    from visget.registries import directory_and_room
    from visget.registry.upkeep import refresh

    directory, keys = directory_and_room(settings, which)
    done = refresh(directory, keys, force=force, restored=restored)
    expires = datetime.datetime.fromtimestamp(done.expires, datetime.UTC)
    for text in done.waiting:
        ui.warn(f"waiting: {text}")
    ui.result(
        {"directory": str(directory), "renewed": list(done.renewed), "expires": expires.isoformat(),
         "waiting": list(done.waiting), "removed": done.removed},
        f"{'renewed ' + ', '.join(done.renewed) if done.renewed else 'nothing was due'}; all signatures hold until "
        f"{expires:%Y-%m-%d}" + (f"; removed {counted(done.removed, 'old file')}" if done.removed else ""),
    )  # fmt: skip


@command("rotate-online", example="visget registry rotate-online team")
@click.argument("which", metavar="NAME|DIR")
def rotate_online(ui: Ui, settings: Settings, *, which: str) -> None:
    """Replace the key that signs what changes, as after a suspicion that somebody has it.

    Clients accept the old key no longer; packages and their authors are not affected.
    """
    from visget.registries import directory_and_room
    from visget.registry.upkeep import rotate_online as rotate

    directory, keys = directory_and_room(settings, which)
    _report(ui, directory, keys, rotate(directory, keys), "the online key was replaced, and everything signed anew")


@command("rotate-root", example="visget registry rotate-root team --threshold 2 --root-key vk1... --root-key vk1...")
@click.argument("which", metavar="NAME|DIR")
@click.option("--root-key", "root_keys", multiple=True, required=True, metavar=_KEY, help="A new holder; repeat it.")
@click.option("--threshold", type=click.IntRange(1), default=1, show_default=True, help="How many must sign a root.")
@passphrase_options()
def rotate_root(ui: Ui, settings: Settings, *, which: str, root_keys: tuple[str, ...], threshold: int,
                passphrase: Passphrases) -> None:  # fmt: skip
    """Hand the root to other keys; the old holders and the new ones sign that.

    Users need to do nothing: their clients follow the chain of roots.
    """
    from visget.registries import directory_and_room
    from visget.registry.roots import Holders, sign_file, staged
    from visget.registry.tuf_keys import KeySigner
    from visget.registry.upkeep import finish_staged
    from visget.registry.upkeep import rotate_root as rotate

    directory, keys = directory_and_room(settings, which)
    at_hand: list[SecretKey] = []
    holders = Holders(keys=_public(settings, root_keys, passphrase, at_hand), threshold=threshold)
    waiting = rotate(directory, keys, holders)
    for document in staged(keys / "staged"):
        for secret in at_hand:
            sign_file(document.path, KeySigner(secret))
    if at_hand:
        waiting = finish_staged(directory, keys)
    _report(ui, directory, keys, waiting, "the root has new holders")


def _report(ui: Ui, directory: Path, keys: Path, waiting: list[str], done: str) -> None:
    lines = [f"waiting: {text}" for text in waiting]
    if waiting:
        lines.append(f"each holder: visget registry sign {keys / 'staged'}/*.json --key KEY")
        lines.append(f"then:        visget registry apply {directory}")
    ui.result({"directory": str(directory), "waiting": waiting}, "\n".join(lines) if waiting else done)
