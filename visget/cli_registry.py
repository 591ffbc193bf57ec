"""The commands around registries: registry init, registry list, search, info.

Invariant: each command is one function that reads its options, calls the registry room, and prints the result.
"""

from __future__ import annotations

from pathlib import Path

import click

from visget.cli_common import Ui, command, printable
from visget.config import DEFAULT_REGISTRY, Settings, remember_registry


@click.group("registry", context_settings={"help_option_names": ["-h", "--help"]})
def registry() -> None:
    """Make and inspect registries."""


@command("init", example="visget registry init ./registry\nvisget registry init /srv/packages --name team")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--name", default=DEFAULT_REGISTRY, show_default=True, help="Its name in config.toml.")
def registry_init(ui: Ui, settings: Settings, *, directory: Path, name: str) -> None:
    """Make DIRECTORY an empty registry; any static web server can serve it."""
    from visget.names import parse_name
    from visget.registries import new_room
    from visget.registry.directory import init_registry

    parse_name(name)
    where = init_registry(directory.absolute(), keys=new_room(settings, name, directory.absolute()))
    remembered = remember_registry(settings, name, str(where))
    ui.result(
        {"directory": str(where), "name": name if remembered else None},
        f"made a registry in {where}"
        + (f"\nconfig.toml now calls it {name!r}" if remembered else f"\nuse it with --registry {where}"),
    )


@command("list", example="visget registry list")
def registry_list(ui: Ui, settings: Settings) -> None:
    """List the registries that config.toml names."""
    rows = sorted(settings.registries.items())
    ui.result(
        {"registries": dict(rows), "selected": settings.registry},
        lambda: ui.table(("name", "location"), rows) if rows else "no registries; make one: visget registry init DIR",
    )


registry.add_command(registry_init)
registry.add_command(registry_list)


@command("search", example="visget search hash\nvisget search XXH64")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--registry", "where", metavar="NAME|DIR|URL", help="Where to look. [env: VISGET_REGISTRY]")
def search(ui: Ui, settings: Settings, *, words: tuple[str, ...], where: str | None) -> None:
    """Find packages by name, word or exported function.

    Without a WORD all packages are listed; several WORDs must all match.
    """
    from visget.registries import reading
    from visget.registry.search import search as find

    with reading(settings, where) as source:
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
        if functions or ui.verbose:
            lines += ["", *(f"  {printable(prototype)};" for prototype in found.prototypes)]
        return "\n".join(lines)

    ui.result(found.as_dict(), text)
