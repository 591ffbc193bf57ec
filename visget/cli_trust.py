"""The commands about whom to believe: trust list, pin, accept, forget.

Invariant: each command is one function that reads its options, calls visget.trusting, and prints the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from visget.cli_common import Ui, command
from visget.config import Settings

if TYPE_CHECKING:
    from visget.registry.trust import Pin

_registry = click.option("--registry", metavar="NAME|DIR|URL", help="The registry. [env: VISGET_REGISTRY]")


@click.group("trust", context_settings={"help_option_names": ["-h", "--help"]})
def trust() -> None:
    """Say whose packages are the right ones."""


@command("list", example="visget trust list\nvisget trust list --json")
def trust_list(ui: Ui, settings: Settings) -> None:
    """List the owners that are pinned, for each registry and name."""
    from visget.trusting import pins_of

    found = pins_of(settings).all()
    ui.result(
        {"pins": {registry: {name: _as_dict(pin) for name, pin in names.items()} for registry, names in found.items()}},
        lambda: ui.table(
            ("registry", "name", "record", "how", "keys"),
            [
                (registry if len(registry) != 64 else f"{registry[:16]}...", name,
                 str(pin.record.seq) if pin.record else "-", pin.how, ", ".join(key.id for key in pin.keys))
                for registry, names in found.items() for name, pin in names.items()
            ],
        )
        if any(found.values())
        else "nobody is pinned yet; the first installation of a package pins its owner",
    )  # fmt: skip


@command("pin", example="visget trust pin xxhash vk1q...")
@click.argument("name")
@click.argument("key_id", metavar="KEY-ID")
@_registry
def trust_pin(ui: Ui, settings: Settings, *, name: str, key_id: str, registry: str | None) -> None:
    """Believe only the owner of KEY-ID about NAME.

    Get the key id from the author, not from the registry: `visget key show` prints it. Owners to whom that key hands
    the name over are believed too.
    """
    from visget.format.keys import parse_key_id
    from visget.names import parse_name
    from visget.registries import reading
    from visget.trusting import pin

    package, key = parse_name(name), parse_key_id(key_id)
    with reading(settings, registry) as source:
        made = pin(source, package, key, settings=settings)
        where = source.identity
    ui.result(
        {"registry": where, "name": package, **_as_dict(made)},
        f"{package} is pinned to {', '.join(item.id for item in made.keys)}",
    )


@command("accept", example="visget trust accept xxhash vk1q...")
@click.argument("name")
@click.argument("key_id", metavar="KEY-ID")
@_registry
def trust_accept(ui: Ui, settings: Settings, *, name: str, key_id: str, registry: str | None) -> None:
    """Accept a new owner of NAME whom only the registry's operators vouch for.

    That happens when an author has lost every key. Ask the author, on another way than this registry, whether KEY-ID is
    the new one.
    """
    from visget.format.keys import parse_key_id
    from visget.names import parse_name
    from visget.registries import reading
    from visget.trusting import accept

    package, key = parse_name(name), parse_key_id(key_id)
    with reading(settings, registry) as source:
        before, after = accept(source, package, key, settings=settings)
        where = source.identity
    ui.result(
        {"registry": where, "name": package, **_as_dict(after),
         "before": [item.id for item in before.keys] if before else []},
        f"{package} belongs to {', '.join(item.id for item in after.keys)} from now on",
    )  # fmt: skip


@command("forget", example="visget trust forget xxhash")
@click.argument("name")
@_registry
def trust_forget(ui: Ui, settings: Settings, *, name: str, registry: str | None) -> None:
    """Forget who owns NAME.

    The next installation believes the registry again (or, under trust-policy = "pinned", refuses the name).
    """
    from visget.names import parse_name
    from visget.registries import reading
    from visget.trusting import forget

    package = parse_name(name)
    with reading(settings, registry) as source:
        where = source.identity
    gone = forget(where, package, settings=settings)
    ui.result(
        {"registry": where, "name": package, "forgotten": _as_dict(gone)},
        f"forgot that {package} belongs to {', '.join(item.id for item in gone.keys)}",
    )


for one in (trust_list, trust_pin, trust_accept, trust_forget):
    trust.add_command(one)


def _as_dict(pin: Pin) -> dict[str, object]:
    return {
        "keys": [key.id for key in pin.keys], "record": pin.record.seq if pin.record else None,
        "sha256": pin.record.sha256 if pin.record else None, "how": pin.how,
    }  # fmt: skip
