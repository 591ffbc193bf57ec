"""The commands of lock files and bundles: lock, sync, bundle.

Invariant: each command is one function that reads its options, calls visget.locking or visget.bundling, and prints
the result.
"""

from __future__ import annotations

from pathlib import Path

import click

from visget.cli_common import Ui, command, counted
from visget.config import Settings, with_options
from visget.errors import UsageError
from visget.lockfile import LOCK_NAME

_FILE = click.option(
    "--file", "path", type=click.Path(path_type=Path), metavar="FILE", default=LOCK_NAME, show_default=True,
    help="The lock file.",
)  # fmt: skip


@command(
    "lock",
    example="visget lock 'xxhash>=0.8' zlib\nvisget lock --upgrade\nvisget lock --check",
)
@click.argument("requirements", nargs=-1, metavar="[NAME[==VERSION]]...")
@_FILE
@click.option("--registry", metavar="NAME|DIR|URL", help="Where the named packages come from. [env: VISGET_REGISTRY]")
@click.option("--trust", metavar="KEY-ID", help="The key that must own the packages that are locked now.")
@click.option("--upgrade", is_flag=True, help="Look for newer versions: of the named packages, else of all.")
@click.option("--check", is_flag=True, help="Change nothing; exit code 7 when the file is out of date.")
@click.option("--offline", is_flag=True, default=None, help="Never touch the network. [env: VISGET_OFFLINE]")
def lock(ui: Ui, settings: Settings, *, requirements: tuple[str, ...], path: Path, registry: str | None,
         trust: str | None, upgrade: bool, check: bool, offline: bool | None) -> None:  # fmt: skip
    """Write down which packages to install, to the byte.

    Without a NAME the file is made to answer the requirements that it has. Packages that still satisfy theirs stay.
    """
    from visget.locking import check_lock, update_lock

    settings = with_options(settings, offline=offline)
    if check:
        if upgrade or registry is not None or trust is not None:
            raise UsageError("--check changes nothing, so it takes none of --upgrade, --registry, --trust")
        found = check_lock(path, requirements, settings=settings, progress=ui)
        ui.result(
            {"file": str(path), "packages": len(found.packages), "written": False},
            f"{path} is up to date: {counted(len(found.packages), 'package')}",
        )
        return
    done = update_lock(
        path, requirements, registry=registry, trust=trust, upgrade=upgrade, settings=settings, progress=ui
    )
    lines = [*map(str, done.changes), f"{'wrote' if done.written else 'nothing changed in'} {path}"]
    ui.result(
        {
            "file": str(path), "packages": len(done.lock.packages), "written": done.written,
            "changes": [{"name": item.name, "before": item.before, "after": item.after} for item in done.changes],
        },
        "\n".join(lines),
    )  # fmt: skip


@command("sync", example="visget sync\nvisget sync --locked\nvisget sync --frozen --offline")
@_FILE
@click.option("--locked", is_flag=True, help="Exit code 7 when the lock file is out of date.")
@click.option("--frozen", is_flag=True, help="Do not look whether it is, and ask no registry for what is here.")
@click.option("--registry", metavar="NAME|DIR|URL", help="Where to fetch from: a mirror or a bundle.")
@click.option("--target", metavar="TARGET", help="What to compile for; default: this machine. [env: VISGET_TARGET]")
@click.option("--offline", is_flag=True, default=None, help="Never touch the network. [env: VISGET_OFFLINE]")
def sync(ui: Ui, settings: Settings, *, path: Path, locked: bool, frozen: bool, registry: str | None,
         target: str | None, offline: bool | None) -> None:  # fmt: skip
    """Install what the lock file says, to the byte.

    Each package is installed and selected. A lock file that does not answer its requirements is brought up to date
    first, unless --locked or --frozen says otherwise.
    """
    from visget.locking import Mode
    from visget.locking import sync as run

    if locked and frozen:
        raise UsageError("--locked and --frozen exclude each other", hint="give one of them")
    settings = with_options(settings, offline=offline)
    mode: Mode = "locked" if locked else "frozen" if frozen else "update"
    found, done = run(path, mode=mode, registry=registry, target=target, settings=settings, progress=ui)
    ui.result(
        {
            "file": str(path),
            "installed": [
                {"name": item.name, "version": item.version, "target": item.target, "reused": item.reused,
                 "directory": str(item.entry.path)}
                for item in done
            ],
        },
        "\n".join(
            [f"{item.name} {item.version} ({'was here' if item.reused else 'compiled'})" for item in done]
            + [f"{counted(len(found.packages), 'package')} as {path} says"]
        ),
    )  # fmt: skip


@command(
    "bundle",
    example="visget bundle xxhash 'zlib>=1.2' -o ./bundle\nvisget bundle --file visget.lock -o ./bundle\n"
    "visget install xxhash --registry ./bundle --offline\nvisget sync --frozen --registry ./bundle",
)
@click.argument("requirements", nargs=-1, metavar="[NAME[==VERSION]]...")
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, metavar="DIR",
              help="The bundle: a directory that is new or empty.")  # fmt: skip
@click.option("--file", "path", type=click.Path(path_type=Path), metavar="FILE",
              help="Take the versions of this lock file; without a NAME, all its packages.")  # fmt: skip
@click.option("--registry", metavar="NAME|DIR|URL", help="Where to look. [env: VISGET_REGISTRY]")
def bundle(ui: Ui, settings: Settings, *, requirements: tuple[str, ...], output: Path, path: Path | None,
           registry: str | None) -> None:  # fmt: skip
    """Pack packages for a machine without network.

    The bundle is a small registry with the signed metadata of the real one. Its lock file fixes what is in it.
    """
    from visget.bundling import make_bundle

    done = make_bundle(
        output, requirements, lock_file=path, registry=registry, settings=settings, progress=ui
    )
    packages = [{"name": item.name, "version": str(item.version), "digest": item.digest} for item in done.lock.packages]
    ui.result(
        {"directory": str(output), "packages": packages, "files": done.files, "bytes": done.size},
        "\n".join(
            [f"{item['name']} {item['version']}" for item in packages]
            + [f"{counted(len(packages), 'package')} in {output}, {done.size:,} bytes"]
        ),
    )
