"""The commands of library authors: init, build, check, publish, yank.

Invariant: each command is one function that reads its options, calls visget.api, and prints the result.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from visget.cli_common import Ui, command, counted, printable
from visget.cli_signing import passphrase_options, signing_key
from visget.config import Settings, with_options
from visget.errors import EXIT_REFUSED, UsageError
from visget.passphrase import Passphrases

if TYPE_CHECKING:
    from visget.toolchain.inputs import Given


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

    The example builds at once; visget.toml explains the keys that most projects need.
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


@command("build", example="visget build\nvisget build path/to/project --output dist\nvisget build --choose-cleanup\n"
         "visget build --from build/compile_commands.json\nvisget build --from-bitcode lib.bc --api lib.h")
@click.argument("project", type=click.Path(path_type=Path), default=".")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Directory for the package; default: dist.")
@click.option("--cc", metavar="CLANG", help="Another clang of the same major version. [env: VISGET_CC]")
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Compilers at once. [env: VISGET_JOBS]")
@click.option("--offline", is_flag=True, default=None, help="Use only sources fetched before. [env: VISGET_OFFLINE]")
@click.option("--choose-cleanup", is_flag=True,
              help="Time the project's [[bench]] entries with and without the light clean-up, write the faster "
                   "choice into visget.toml, then build.")  # fmt: skip
@click.option("--from", "database", type=click.Path(path_type=Path), metavar="FILE",
              help="Compile what this compile_commands.json lists.")  # fmt: skip
@click.option("--from-bitcode", "bitcode", type=click.Path(path_type=Path), metavar="FILE", multiple=True,
              help="Take this LLVM bitcode, of whatever front end. Several times for several files.")  # fmt: skip
@click.option("--api", "headers", type=click.Path(path_type=Path), metavar="HEADER", multiple=True,
              help="The public header of what --from or --from-bitcode names; default: [exports] headers.")  # fmt: skip
@click.option("--test", is_flag=True, help="Also run the library's own tests, as its build system does.")
@click.option("--with", "using", type=click.Path(path_type=Path), metavar="FILE.vis", multiple=True,
              help="Take this package file for a dependency. Several times for several.")  # fmt: skip
@click.option("--registry", metavar="NAME|DIR|URL", help="Where dependencies come from. [env: VISGET_REGISTRY]")
@click.option("--keep", is_flag=True, help="Keep the directory in which the library's build system ran.")
def build(ui: Ui, settings: Settings, *, project: Path, output: Path | None, cc: str | None, jobs: int | None,
          offline: bool | None, choose_cleanup: bool, database: Path | None, bitcode: tuple[Path, ...],
          headers: tuple[Path, ...], test: bool, using: tuple[Path, ...], registry: str | None,
          keep: bool) -> None:  # fmt: skip
    """Compile the project to a portable package.

    PROJECT is a directory with a visget.toml, or that file; default: here.
    """
    from visget import api

    given = _given(database, bitcode, headers)
    if given is not None and (choose_cleanup or test):
        raise UsageError("--choose-cleanup and --test do not go with --from and --from-bitcode")
    settings = with_options(settings, cc=cc, jobs=jobs, offline=offline)
    chosen = None
    if choose_cleanup:
        from visget.tune import choose_cleanup as choose

        chosen = choose(project, settings=settings, progress=ui)
        for line in chosen.as_text().splitlines():
            ui.note(line)
    result, path = api.build(
        project, output=output, settings=settings, progress=ui, colour=ui.colour, given=given, test=test, keep=keep,
        using=using, registry=registry,
    )  # fmt: skip
    if result.warnings and ui.verbose:
        ui.quote(result.warnings)
    ui.findings(result.findings)
    manifest = result.package.manifest
    ui.result(
        {
            "package": manifest.name, "version": str(manifest.version), "file": str(path),
            "digest": result.package.digest, "size": len(result.data), "exports": list(manifest.exports),
            "imports": list(manifest.imports), "dependencies": list(manifest.dependencies),
            "uses": {use.package: dict(use.symbols) for use in manifest.uses},
            "findings": [finding.as_dict() for finding in result.findings],
            "cleanup": chosen.as_dict() if chosen else manifest.cleanup,
        },
        f"{printable(str(path))}  {len(result.data):,} bytes  {counted(len(manifest.exports), 'function')}  "
        f"sha256 {result.package.digest[:16]}...",
    )  # fmt: skip


def _given(database: Path | None, bitcode: tuple[Path, ...], headers: tuple[Path, ...]) -> Given | None:
    from visget.toolchain.inputs import Given

    if database is not None and bitcode:
        raise UsageError("give either --from or --from-bitcode")
    if database is None and not bitcode:
        if headers:
            raise UsageError("--api goes with --from or --from-bitcode", hint="see [exports] headers of visget.toml")
        return None
    if database is not None and database.is_dir():
        database /= "compile_commands.json"
    return Given(database=database, bitcode=bitcode, headers=headers)


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


@command(
    "publish",
    example="visget publish dist/mylib-1.0.vis\nvisget publish dist/mylib-1.0.vis --registry ./registry --key release\n"
    "visget publish dist/mylib-1.0.vis --passphrase-env SIGNING_PASSPHRASE",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--registry", metavar="NAME|DIR", help="The registry. [env: VISGET_REGISTRY]")
@click.option("--key", "key_name", metavar="NAME|FILE", default="default", show_default=True, help="The signing key.")
@click.option("--no-check", is_flag=True,
              help="Check only the rules, and do not compile the package and run its test vectors: for a machine that "
                   "cannot.")  # fmt: skip
@passphrase_options()
def publish(ui: Ui, settings: Settings, *, file: Path, registry: str | None, key_name: str, no_check: bool,
            passphrase: Passphrases) -> None:  # fmt: skip
    """Sign a package and put it into a registry.

    FILE first goes through all that `visget install` would do here, its own test vectors included; nothing of that is
    kept. A free name belongs to the first key that signs it.
    """
    from visget import api

    api.read_package_file(file)  # before anybody types a passphrase for nothing
    key = signing_key(settings, key_name, passphrase)
    done = api.publish(file, key=key, registry=registry, trial=not no_check, settings=settings, progress=ui)
    verb = "published" if done.fresh else "already published, nothing changed:"
    ui.result(
        done.as_dict(),
        f"{verb} {done.name} {done.version} (sha256 {done.digest[:16]}...) signed by {done.signer}"
        + (f"\n{done.name} now belongs to that key" if done.claimed else ""),
    )


@command(
    "yank",
    example="visget yank mylib==1.0 --reason 'wrong results for NaN; use 1.0.1'\nvisget yank mylib==1.0 --undo",
)
@click.argument("what", metavar="NAME==VERSION")
@click.option("--reason", metavar="TEXT", help="Why nobody should choose it any more; one line, shown to users.")
@click.option("--undo", is_flag=True, help="Put it in good standing again.")
@click.option("--registry", metavar="NAME|DIR", help="The registry. [env: VISGET_REGISTRY]")
def yank(ui: Ui, settings: Settings, *, what: str, reason: str | None, undo: bool, registry: str | None) -> None:
    """Withdraw a published version.

    It is no longer chosen, but stays for those who name it exactly or have locked it; they are shown the reason.
    """
    from visget.names import exact_version
    from visget.registries import room_of
    from visget.registry.directory import registry_directory
    from visget.registry.yank import check_reason, set_standing

    name, version = exact_version(what)
    if undo == (reason is not None):
        raise UsageError("give either --reason TEXT or --undo", hint="the reason is shown to those who still use it")
    why = None if reason is None else check_reason(reason)
    directory = registry_directory(settings.location(registry))
    changed = set_standing(directory, name, version, why, keys=room_of(settings, directory))
    now = f"{name} {version} is {'withdrawn' if why else 'in good standing'}"
    ui.result(
        {"name": name, "version": str(version), "yanked": why, "changed": changed},
        now if changed else f"nothing changed: {now}",
    )
