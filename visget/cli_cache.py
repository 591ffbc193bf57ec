"""The command ``visget cache``: look after the store.

Invariant: nothing here is ever needed to make visget work again; a damaged store heals by itself.
"""

from __future__ import annotations

import click

from visget.cli_common import Ui, command
from visget.config import Settings


@click.group("cache", context_settings={"help_option_names": ["-h", "--help"]})
def cache() -> None:
    """Look after the store of packages and native libraries."""


@command("dir", example="visget cache dir")
def cache_dir(ui: Ui, settings: Settings) -> None:
    """Print the directory of the store."""
    ui.result({"home": str(settings.home), "downloads": str(settings.cache)}, str(settings.home))


@command("size", example="visget cache size")
def cache_size(ui: Ui, settings: Settings) -> None:
    """Print how much space the store takes, by kind."""
    from visget.cache.store import Store

    sizes = Store.open(settings.home).size()
    rows = [(kind, f"{bytes_ / 1e6:.1f} MB") for kind, bytes_ in sizes.items()]
    total = sum(sizes.values())
    ui.result(
        {"sizes": sizes, "total": total, "limit": settings.cache_limit_mb << 20},
        lambda: ui.table(("kind", "size"), [*rows, ("total", f"{total / 1e6:.1f} MB")]),
    )


@command("verify", example="visget cache verify")
def cache_verify(ui: Ui, settings: Settings) -> int:
    """Read every file of the store; take damaged entries away, so that they are made again when needed."""
    from visget.cache.store import Store

    report = Store.open(settings.home).check(progress=ui)
    ui.result(report.as_dict(), report.as_text)
    return 1 if report.damaged else 0


@command("gc", example="visget cache gc\nvisget cache gc --all --dry-run")
@click.option("--all", "everything", is_flag=True, help="Also what was used lately, unless it is installed.")
@click.option("--days", type=click.IntRange(min=0), default=7, show_default=True, help="Keep what was used since.")
@click.option("--dry-run", is_flag=True, help="Name what would go and change nothing.")
def cache_gc(ui: Ui, settings: Settings, *, everything: bool, days: int, dry_run: bool) -> None:
    """Remove packages and native libraries that no installed version needs."""
    from visget.cache.trim import collect_garbage

    report = collect_garbage(
        settings.home, max_age_days=0 if everything else days, limit=settings.cache_limit_mb << 20, dry_run=dry_run
    )
    ui.result(report.as_dict(), report.as_text)


for _command in (cache_dir, cache_size, cache_verify, cache_gc):
    cache.add_command(_command)
