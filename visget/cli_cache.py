"""The command ``visget cache``: look after the store.

Invariant: nothing here is ever needed to make visget work again; a damaged store heals by itself.
"""

from __future__ import annotations

import click

from visget.cli_common import Ui, command
from visget.config import Settings
from visget.errors import EXIT_FAILED


@click.group("cache", context_settings={"help_option_names": ["-h", "--help"]})
def cache() -> None:
    """Look after the store of packages and native libraries."""


@command("dir", example="visget cache dir")
def cache_dir(ui: Ui, settings: Settings) -> None:
    """Print the directory of the store."""
    ui.result({"home": str(settings.home), "downloads": str(settings.cache)}, str(settings.home), raw=True)


@command("size", example="visget cache size")
def cache_size(ui: Ui, settings: Settings) -> None:
    """Print how much space the store takes, by kind."""
    from visget.wiring import store_of

    parts = store_of(settings).size()
    total = sum(part.size for part in parts)
    rows = [(part.kind, str(part.entries), _megabytes(part.size)) for part in parts]
    ui.result(
        {
            "parts": [{"kind": part.kind, "entries": part.entries, "bytes": part.size} for part in parts],
            "total": total, "limit": settings.cache_limit_mb << 20,
        },
        lambda: ui.table(("kind", "entries", "size"), [*rows, ("total", "", _megabytes(total))]),
    )  # fmt: skip


@command("verify", example="visget cache verify")
def cache_verify(ui: Ui, settings: Settings) -> int:
    """Read every file of the store; take damaged entries away, so that they are made again when needed."""
    from visget.wiring import store_of

    report = store_of(settings).check()
    lines = [
        f"{damage.kind} {damage.name}: {damage.reason}{' (moved to quarantine)' if damage.moved else ''}"
        for damage in report.damaged
    ]
    ui.result(
        {"checked": report.checked, "damaged": [damage._asdict() for damage in report.damaged]},
        "\n".join([*lines, f"{report.checked} checked, {len(report.damaged)} damaged"]),
    )
    return EXIT_FAILED if report.damaged else 0


@command("gc", example="visget cache gc\nvisget cache gc --all --dry-run")
@click.option("--all", "everything", is_flag=True, help="Also what was used lately, unless it is installed.")
@click.option("--days", type=click.IntRange(min=0), default=7, show_default=True, help="Keep what was used since.")
@click.option("--dry-run", is_flag=True, help="Name what would go and change nothing.")
def cache_gc(ui: Ui, settings: Settings, *, everything: bool, days: int, dry_run: bool) -> None:
    """Remove packages and native libraries that no installed version needs."""
    from visget.wiring import store_of

    report = store_of(settings).gc(
        max_age=0.0 if everything else days * 86400.0, max_bytes=settings.cache_limit_mb << 20, dry_run=dry_run
    )
    verb = "would remove" if dry_run else "removed"
    lines = [f"{verb} {item.kind} {item.path.name}  {_megabytes(item.size)}" for item in report.removed]
    if report.over_bytes:
        over = _megabytes(report.over_bytes)
        ui.warn(f"what is installed is {over} above the limit; uninstall something to shrink it")
    ui.result(
        {
            "removed": [{"kind": item.kind, "name": item.path.name, "bytes": item.size} for item in report.removed],
            "freed": report.freed_bytes, "kept": report.kept_bytes, "dry_run": dry_run,
        },
        "\n".join([*lines, f"{verb} {_megabytes(report.freed_bytes)}, kept {_megabytes(report.kept_bytes)}"]),
    )  # fmt: skip


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


for _command in (cache_dir, cache_size, cache_verify, cache_gc):
    cache.add_command(_command)
