"""The hidden command ``tuf-conformance``: visget's client of registries behind the protocol of the public test suite.

Invariant: the exit code is 0 when the whole request was fulfilled and 1 otherwise; nothing is asked of the network
by ``init``. The suite is github.com/theupdateframework/tuf-conformance, its protocol the file CLIENT-CLI.md in it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from visget.errors import EXIT_FAILED, VisgetError

_DIRECTORY = click.Path(path_type=Path, file_okay=False)


@click.group("tuf-conformance", hidden=True)
@click.option("--metadata-dir", type=_DIRECTORY, required=True)
@click.option("--metadata-url")
@click.option("--target-name", "target_names", multiple=True)
@click.option("--target-base-url")
@click.option("--target-dir", type=_DIRECTORY)
@click.pass_context
def tuf_conformance(ctx: click.Context, /, **options: object) -> None:
    """Act as the client under test of the TUF conformance suite."""
    ctx.obj = options


@tuf_conformance.command()
@click.argument("root", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_context
def init(ctx: click.Context, root: Path) -> None:
    """Trust a root."""
    from visget.registry.tuf_general import start

    _finish(lambda: start(ctx.obj["metadata_dir"], root))


@tuf_conformance.command()
@click.pass_context
def refresh(ctx: click.Context) -> None:
    """Update the metadata."""
    from visget.registry.tuf_general import refresh as update

    _finish(lambda: update(ctx.obj["metadata_dir"], ctx.obj["metadata_url"]))


@tuf_conformance.command()
@click.pass_context
def download(ctx: click.Context) -> None:
    """Update the metadata and fetch targets."""
    from visget.registry.tuf_general import download as fetch

    asked = ctx.obj
    where = asked["metadata_dir"], asked["metadata_url"], asked["target_base_url"], asked["target_dir"]
    _finish(lambda: fetch(*where, list(asked["target_names"])))


def _finish(call: Callable[[], None]) -> None:
    try:
        call()
    except (VisgetError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(EXIT_FAILED)
