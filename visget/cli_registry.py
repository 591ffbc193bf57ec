"""The commands around registries: registry add, registry list, search, info; visget/cli_operator.py has the others.

Invariant: each command is one function that reads its options, calls the registry room, and prints the result.
"""

from __future__ import annotations

from pathlib import Path

import click

from visget.cli_common import Ui, command, counted, printable
from visget.cli_operator import (
    registry_apply,
    registry_init,
    registry_refresh,
    registry_sign,
    rotate_online,
    rotate_root,
)
from visget.config import Settings, check_location, remember_registry
from visget.errors import UsageError


@click.group("registry", context_settings={"help_option_names": ["-h", "--help"]})
def registry() -> None:
    """Make, trust and inspect registries."""


@command(
    "add",
    example="visget registry add team https://packages.example.org --fingerprint 9bbf...\n"
    "visget registry add team https://packages.example.org --root root.json --mirror https://mirror.example.net",
)
@click.argument("name")
@click.argument("location", metavar="URL|DIR")
@click.option("--root", type=click.Path(path_type=Path, dir_okay=False), help="A file of its root.")
@click.option("--fingerprint", metavar="SHA256", help="The fingerprint of one of its roots.")
@click.option("--mirror", "mirrors", multiple=True, metavar="URL", help="A copy to fall back to; repeat it.")
def registry_add(ui: Ui, settings: Settings, *, name: str, location: str, root: Path | None,
                 fingerprint: str | None, mirrors: tuple[str, ...]) -> None:  # fmt: skip
    """Trust a registry and call it NAME in config.toml.

    Ask its operator for the fingerprint, over another way than this network. Given again, it replaces what was
    known about the location.
    """
    from visget.names import parse_name
    from visget.registries import adding

    parse_name(name)
    if root is not None and fingerprint is not None:
        raise UsageError("give either --root or --fingerprint")
    check_location(location)
    known = settings.registries.get(name)
    if known not in (None, location):
        raise UsageError(f"config.toml calls another registry {name!r}: {known}", hint="choose another name")
    with adding(settings, location, root=root, fingerprint=fingerprint, mirrors=mirrors, progress=ui) as source:
        count = len(source.names())
        identity = source.identity
    remember_registry(settings, name, location)
    ui.result(
        {"name": name, "location": location, "identity": identity, "mirrors": list(mirrors), "packages": count},
        f"{name} is {location}, {counted(count, 'package')}\nits root: {identity}",
    )


@command("list", example="visget registry list")
def registry_list(ui: Ui, settings: Settings) -> None:
    """List the registries that config.toml names, and how each came to be trusted."""
    from visget.registries import known

    found = {name: known(settings, location) for name, location in sorted(settings.registries.items())}
    rows = [
        (name, settings.registries[name], item.identity if item else "-", item.how if item else "not met yet")
        for name, item in found.items()
    ]
    details = {
        name: {"identity": item.identity, "trusted": item.how, "mirrors": list(item.mirrors)}
        for name, item in found.items() if item is not None
    }  # fmt: skip
    ui.result(
        {"registries": dict(sorted(settings.registries.items())), "selected": settings.registry, "known": details},
        lambda: ui.table(("name", "location", "root", "trusted"), rows) if rows else _NONE,
    )


_NONE = "no registries; make one: visget registry init DIR, or trust one: visget registry add NAME URL"

for _command in (
    registry_init, registry_add, registry_list, registry_refresh, registry_sign, registry_apply, rotate_online,
    rotate_root,
):  # fmt: skip
    registry.add_command(_command)


@command("search", example="visget search hash\nvisget search XXH64")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--registry", "where", metavar="NAME|DIR|URL", help="Where to look. [env: VISGET_REGISTRY]")
def search(ui: Ui, settings: Settings, *, words: tuple[str, ...], where: str | None) -> None:
    """Find packages by name, word or exported function.

    Without a WORD all packages are listed; several WORDs must all match.
    """
    from visget.registries import reading
    from visget.registry.search import search as find

    with reading(settings, where, ui) as source:
        hits = find(source, words)
    rows = [(hit.name, hit.version, hit.summary + (f"  [{hit.matched}]" if hit.matched else "")) for hit in hits]
    ui.result(
        {"packages": [hit.as_dict() for hit in hits]},
        lambda: ui.table(("name", "version", "summary"), rows) if rows else "nothing found",
    )


@command("info", example="visget info xxhash\nvisget info xxhash==0.8.2 --json\nvisget info dist/mylib-1.0.vis")
@click.argument("what", metavar="NAME[==VERSION]|FILE.vis")
@click.option("--registry", "where", metavar="NAME|DIR|URL", help="Where to look. [env: VISGET_REGISTRY]")
@click.option("--functions", is_flag=True, help="Show the prototype of every exported function.")
def info(ui: Ui, settings: Settings, *, what: str, where: str | None, functions: bool) -> None:
    """Show what a package is, exports and needs.

    Of a FILE.vis on the disk the signature is not checked.
    """
    from visget.describe import describe

    found = describe(what, registry=where, settings=settings, progress=ui)

    def text() -> str:
        lines = [ui.style(f"{found.name} {found.version}", bold=True) + "  " + printable(found.summary)]
        lines += [f"  {label + ':':13} {printable(value)}" for label, value in found.facts()]
        for receipt in found.here:
            lines += ["", ui.style("  installed here", bold=True)]
            lines += [f"    {label + ':':11} {printable(value)}" for label, value in receipt.facts()]
        if functions or ui.verbose:
            lines += ["", *(f"  {printable(prototype)};" for prototype in found.prototypes)]
        return "\n".join(lines)

    ui.result(found.as_dict(), text)
