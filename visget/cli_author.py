"""The commands of library authors: init, build, check, key, publish.

Invariant: each command is one function that reads its options, calls visget.api, and prints the result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from visget.cli_common import Ui, command, counted
from visget.config import Settings, with_options
from visget.errors import EXIT_REFUSED, UsageError


@command(
    "init",
    example="visget init mylib\nvisget init mylib --lib c++",
    settings=False,
)
@click.argument("name")
@click.option("--lib", "language", type=click.Choice(["c", "c++"]), default="c", show_default=True, help="Language.")
@click.option("--directory", type=click.Path(path_type=Path), help="Where to write; default: NAME.")
def init(ui: Ui, *, name: str, language: Literal["c", "c++"], directory: Path | None) -> None:
    """Write a commented visget.toml and a small example.

    The example builds at once, and every key of visget.toml is explained in it.
    """
    from visget.names import parse_name
    from visget.toolchain.template import init_project

    package = parse_name(name)
    where = directory or Path(name)
    written = init_project(where, package, language)
    ui.result(
        {"directory": str(where), "files": [str(path) for path in written]},
        "\n".join([*(f"wrote {path}" for path in written), "", "Next:", f"  visget build {where}"]),
    )


@command("build", example="visget build\nvisget build path/to/project --output dist\nvisget build --choose-cleanup")
@click.argument("project", type=click.Path(path_type=Path), default=".")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Directory for the package; default: dist.")
@click.option("--cc", metavar="CLANG", help="Another clang of the same major version. [env: VISGET_CC]")
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Compilers at once. [env: VISGET_JOBS]")
@click.option("--offline", is_flag=True, default=None, help="Use only sources fetched before. [env: VISGET_OFFLINE]")
@click.option("--choose-cleanup", is_flag=True,
              help="Time the project's [[bench]] entries with and without the light clean-up, write the faster "
                   "choice into visget.toml, then build.")  # fmt: skip
def build(ui: Ui, settings: Settings, *, project: Path, output: Path | None, cc: str | None, jobs: int | None,
          offline: bool | None, choose_cleanup: bool) -> None:  # fmt: skip
    """Compile the project to a portable package.

    PROJECT is a directory with a visget.toml, or that file; default: here.
    """
    from visget import api

    settings = with_options(settings, cc=cc, jobs=jobs, offline=offline)
    chosen = None
    if choose_cleanup:
        from visget.tune import choose_cleanup as choose

        chosen = choose(project, settings=settings, progress=ui)
        for line in chosen.as_text().splitlines():
            ui.note(line)
    result, path = api.build(project, output=output, settings=settings, progress=ui, colour=ui.colour)
    if result.warnings and ui.verbose:
        ui.note(result.warnings)
    ui.findings(result.findings)
    for note in result.notes if ui.verbose else ():
        ui.note(note)
    manifest = result.package.manifest
    ui.result(
        {
            "package": manifest.name, "version": str(manifest.version), "file": str(path),
            "digest": result.package.digest, "size": len(result.data), "exports": list(manifest.exports),
            "imports": list(manifest.imports), "findings": [finding.as_dict() for finding in result.findings],
            "cleanup": chosen.as_dict() if chosen else manifest.cleanup,
        },
        f"{path}  {len(result.data):,} bytes  {counted(len(manifest.exports), 'function')}  "
        f"sha256 {result.package.digest[:16]}...",
    )  # fmt: skip


@command("check", example="visget check dist/mylib-1.0.vis")
@click.argument("file", type=click.Path(path_type=Path))
def check(ui: Ui, settings: Settings, *, file: Path) -> int:
    """Check a package against the VIS rules.

    FILE is held against the package format and every VIS rule; all findings are printed.
    """
    from visget import api

    package, findings = api.check(file, settings=settings)
    errors = sum(finding.severity == "error" for finding in findings)
    ui.findings(findings)
    name = f"{package.manifest.name} {package.manifest.version}"
    ui.result(
        {"package": package.manifest.name, "version": str(package.manifest.version), "digest": package.digest,
         "profile": package.manifest.profile, "errors": errors,
         "findings": [finding.as_dict() for finding in findings]},
        f"{name}: {counted(errors, 'error')}, {counted(len(findings) - errors, 'warning')} against "
        f"{package.manifest.profile}",
    )  # fmt: skip
    return EXIT_REFUSED if errors else 0


@click.group("key", context_settings={"help_option_names": ["-h", "--help"]})
def key() -> None:
    """Make and list signing keys."""


@command("new", example="visget key new\nvisget key new release")
@click.argument("name", default="default")
def key_new(ui: Ui, settings: Settings, *, name: str) -> None:
    """Make a signing key called NAME (default: "default")."""
    from visget.files import translated
    from visget.format.keys import SecretKey, write_key

    path = _key_path(settings, name)
    secret = SecretKey.generate()
    with translated("make the directory of keys", settings.keys):
        settings.keys.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_key(path, secret)
    ui.result(
        {"name": name, "file": str(path), "id": secret.public.id},
        f"wrote {path}\npublic key id: {secret.public.id}\n\n"
        "Back this file up and show it to nobody: whoever has it can publish in your name.",
    )


@command("list", example="visget key list")
def key_list(ui: Ui, settings: Settings) -> None:
    """List the signing keys of this account."""
    from visget.format.keys import read_key

    found = sorted(settings.keys.glob("*.key")) if settings.keys.is_dir() else []
    rows = [(path.stem, read_key(path).public.id, str(path)) for path in found]
    ui.result(
        {"keys": [{"name": name, "id": key_id, "file": file} for name, key_id, file in rows]},
        lambda: ui.table(("name", "id", "file"), rows) if rows else "no keys; make one: visget key new",
    )


key.add_command(key_new)
key.add_command(key_list)


def _key_path(settings: Settings, name: str) -> Path:
    from visget.names import parse_name

    return settings.keys / f"{parse_name(name)}.key"


@command(
    "publish",
    example="visget publish dist/mylib-1.0.vis\nvisget publish dist/mylib-1.0.vis --registry ./registry --key release",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--registry", metavar="NAME|DIR", help="The registry. [env: VISGET_REGISTRY]")
@click.option("--key", "key_name", metavar="NAME|FILE", default="default", show_default=True, help="The signing key.")
def publish(ui: Ui, settings: Settings, *, file: Path, registry: str | None, key_name: str) -> None:
    """Sign a package and put it into a registry.

    FILE is checked first, as `visget check` does. A free name belongs to the first key that signs it.
    """
    from visget import api

    key_file = Path(key_name) if "/" in key_name or key_name.endswith(".key") else _key_path(settings, key_name)
    if not key_file.exists():
        raise UsageError(
            f"there is no signing key {key_name!r}", where=str(key_file), hint=f"make one: visget key new {key_name}"
        )
    done = api.publish(file, key=key_file, registry=registry, settings=settings, progress=ui)
    verb = "published" if done.fresh else "already published, nothing changed:"
    ui.result(
        done.as_dict(),
        f"{verb} {done.name} {done.version} (sha256 {done.digest[:16]}...) signed by {done.signer}"
        + (f"\n{done.name} now belongs to that key" if done.claimed else ""),
    )
