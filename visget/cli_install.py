"""The commands of everyday use: install, uninstall, list, use, rollback, path, pkg-config, target.

Invariant: each command is one function that reads its options, calls visget.api, and prints the result.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from visget.cli_common import Ui, command, counted, printable
from visget.config import Settings, with_options
from visget.errors import UsageError, VisgetError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from visget.cache.environment import Installed
    from visget.installer.artifact_dir import ArtifactDirectory
    from visget.installer.receipt import Linking
    from visget.installing import InstallResult


@command(
    "install",
    example="visget install xxhash\nvisget install 'zlib>=1.2,<2' --registry https://packages.example.org\n"
    "visget install lz4 --target aarch64-linux-musl\nvisget install xxhash --dry-run",
)
@click.argument("requirements", nargs=-1, required=True, metavar="NAME[==VERSION]...")
@click.option("--registry", metavar="NAME|DIR|URL", help="Where to look. [env: VISGET_REGISTRY]")
@click.option("--target", metavar="TARGET", help="What to compile for; default: this machine. [env: VISGET_TARGET]")
@click.option("--to", "place", metavar="DIR", type=click.Path(path_type=Path),
              help="Write the library, and what it needs, to this directory, which can be copied to other machines.")
@click.option("--force", is_flag=True, help="Replace another package's artifact in the directory given with --to.")
@click.option("--trust", metavar="KEY-ID", help="A key of the author, whose packages alone (or a successor's) count.")
@click.option("--link", "linking", type=click.Choice(["shared", "static"]), default="shared", show_default=True,
              help="Whether what it needs stays libraries of their own, or becomes part of its code.")  # fmt: skip
@click.option("--upgrade", is_flag=True, help="Take the newest versions of what it needs, not installed ones.")
@click.option("--reinstall", is_flag=True, help="Compile again, also when the artifact is there.")
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--offline", is_flag=True, default=None, help="Never touch the network. [env: VISGET_OFFLINE]")
def install(ui: Ui, settings: Settings, *, requirements: tuple[str, ...], registry: str | None, target: str | None,
            place: Path | None, force: bool, trust: str | None, linking: Linking, upgrade: bool, reinstall: bool,
            dry_run: bool, offline: bool | None) -> None:  # fmt: skip
    """Compile a package for this machine and install it.

    Each package is fetched and verified, compiled for this machine (or TARGET), and installed when the fresh
    code gives the answers that the package promises. What it needs is installed before it. With --to, a directory
    is written that can be copied to other machines; `visget target --list` lists what they can be.
    """
    from visget import api

    settings = with_options(settings, offline=offline)
    if place is not None:
        _check_place(place, requirements, force)
    elif force:
        raise UsageError("--force says what may happen to the directory given with --to, and there is none")
    if dry_run:
        plans = [
            api.plan(
                text, registry=registry, target=target, trust=trust, also=requirements, linking=linking,
                upgrade=upgrade, settings=settings, progress=ui,
            )
            for text in requirements
        ]
        ui.result({"plans": [plan.as_dict() for plan in plans]}, "\n\n".join(plan.as_text() for plan in plans))
        return
    done: list[InstallResult] = []
    for text in requirements:
        try:
            result = api.install(
                text, registry=registry, target=target, trust=trust, again=reinstall, also=requirements,
                linking=linking, upgrade=upgrade, settings=settings, progress=ui,
            )  # fmt: skip
        except VisgetError as error:
            error.details.setdefault("installed", [_as_dict(item) for item in done])
            if done:
                ui.note(f"installed before that: {', '.join(f'{item.name} {item.version}' for item in done)}")
            raise
        ui.close()
        for item in (*result.dependencies, result):
            if item.first_use:
                ui.note(f"first use of {item.name}: trusting its signing key {', '.join(item.signers)} from now on")
        done.append(result)
    if place is not None:
        written = api.write_artifact(done[0], place, force=force, settings=settings)
        ui.result({"installed": [_as_dict(done[0])], "directory": written.as_dict()}, _written(ui, done[0], written))
        return
    ui.result({"installed": [_as_dict(result) for result in done]}, "\n".join(_as_text(ui, item) for item in done))


def _check_place(place: Path, requirements: tuple[str, ...], force: bool) -> None:
    """Refuse a directory that cannot be written, before anything is compiled."""
    from visget.installer.artifact_dir import check_place
    from visget.names import Requirement

    if len(requirements) != 1:
        raise UsageError(
            f"--to takes one package, not {len(requirements)}", hint="give each its own directory, one after another"
        )
    check_place(place, Requirement.parse(requirements[0]).name, force=force)


def _written(ui: Ui, result: InstallResult, written: ArtifactDirectory) -> str:
    head = ui.style(f"wrote {result.name} {result.version}", bold=True)
    lines = [f"{head} for {result.target}", f"  {written.path}"]
    if ui.quiet:
        return lines[0]
    if written.packages:
        lines.append(f"  with:    {', '.join(written.packages)}")
    lines += [f"  library: {path}" for path in written.files if path.startswith(("lib/lib", "bin/"))]
    return "\n".join(lines)


def _as_dict(result: InstallResult) -> dict[str, object]:
    return {
        "name": result.name, "version": result.version, "target": result.target, "foreign": result.foreign,
        "directory": str(result.entry.path),
        "reused": result.reused, "first_use": result.first_use, "signers": list(result.signers),
        "linking": result.linking, "linked_with": dict(result.linked_with),
        "dependencies": [_as_dict(item) for item in result.dependencies],
    }  # fmt: skip


def _as_text(ui: Ui, result: InstallResult) -> str:
    head = f"{result.name} {result.version}"
    how = "already compiled" if result.reused else "compiled"
    lines = [ui.style(f"installed {head}", bold=True) + f" ({how} for {result.target})", f"  {result.entry.path}"]
    if ui.quiet:
        return lines[0]
    lines += [
        f"  needs:   {item.name} {item.version} ({'already there' if item.reused else 'compiled'})"
        for item in result.dependencies
    ]
    if result.linking == "static" and result.linked_with:
        lines.append(f"  merged:  {', '.join(f'{name} {version}' for name, version in result.linked_with)}")
    if result.foreign:
        lines.append(f"  C:       visget pkg-config --cflags --libs {result.name} --target {result.target}")
    else:
        lines.append(f"  Python:  lib = visget.load({result.name!r})")
        lines.append(f"  C:       cc main.c $(visget pkg-config --cflags --libs {result.name})")
    if ui.verbose:
        from visget.installer.receipt import read_receipt

        receipt = read_receipt(result.entry.path)
        shown = [*receipt.facts(), *((f"  {stage}", taken) for stage, taken in receipt.times())]
        lines += [f"  {label + ':':15} {printable(text)}" for label, text in shown]
    return "\n".join(lines)


@command("uninstall", example="visget uninstall xxhash\nvisget uninstall xxhash==0.8.2")
@click.argument("requirement", metavar="NAME[==VERSION]")
@click.option("--force", is_flag=True, help="Also what other packages are linked with; they keep what they need.")
def uninstall(ui: Ui, settings: Settings, *, requirement: str, force: bool) -> None:
    """Remove an installed package.

    Without a version all of them go. `visget cache gc` frees the space.
    """
    from visget import api

    removed = api.uninstall(requirement, force=force, settings=settings)
    left = api.unneeded(settings=settings)
    lines = [f"uninstalled {item.name} {item.version}" for item in removed]
    lines += [
        f"nothing needs {item.name} {item.version} any more: visget uninstall {item.name}=={item.version}"
        for item in left
    ]
    ui.result(
        {"removed": [{"name": item.name, "version": item.version} for item in removed],
         "unneeded": [{"name": item.name, "version": item.version} for item in left]},
        "\n".join(lines),
    )  # fmt: skip


@command("list", example="visget list\nvisget list --json")
def list_(ui: Ui, settings: Settings) -> None:
    """List the installed packages.

    The selected version of each is marked.
    """
    from visget import api

    found = api.installed(settings=settings)
    columns = ("name", "version", "selected", "compiled for", "linked with")
    rows = [
        (item.name, item.version, "*" if item.selected else "", ", ".join(_machines(item.natives)), _linked(item))
        for item in found
    ]
    ui.result(
        {
            "installed": [
                {"name": item.name, "version": item.version, "selected": item.selected, "package": item.package,
                 "signers": list(item.signers), "natives": dict(item.natives), "requires": dict(item.requires),
                 "static": item.static, "automatic": item.automatic}
                for item in found
            ]
        },
        lambda: ui.table(columns, rows) if rows else "nothing is installed",
    )  # fmt: skip


def _linked(item: Installed) -> str:
    listed = ", ".join(f"{name} {version}" for name, version in sorted(item.requires.items()))
    return f"{listed} (merged)" if item.static else listed


def _machines(natives: Iterable[str]) -> list[str]:
    """Say for people what the artifacts are for: this machine first, then others, then targets by their names."""
    from visget.machine import machine_id

    targets = sorted(key.removeprefix("target:") for key in natives if key.startswith("target:"))
    machines = [key for key in natives if not key.startswith("target:")]
    others = len(machines) - (machine_id() in machines)
    return [
        *(["this machine"] if machine_id() in machines else []),
        *([counted(others, "other machine")] if others else []),
        *(":".join(target.replace("-unknown-", "-").split(":")[:2]) for target in targets),
    ]


@command("use", example="visget use zlib==1.2.13")
@click.argument("requirement", metavar="NAME==VERSION")
def use(ui: Ui, settings: Settings, *, requirement: str) -> None:
    """Select one of the installed versions.

    `visget.load`, `visget path` and `visget pkg-config` mean the selected one.
    """
    from visget import api

    chosen = api.use(requirement, settings=settings)
    ui.result({"name": chosen.name, "version": chosen.version}, f"using {chosen.name} {chosen.version}")


@command("rollback", example="visget rollback zlib")
@click.argument("name")
def rollback(ui: Ui, settings: Settings, *, name: str) -> None:
    """Go back to the version that was selected before.

    Again, to the one before that.
    """
    from visget import api

    chosen = api.rollback(name, settings=settings)
    ui.result({"name": chosen.name, "version": chosen.version}, f"using {chosen.name} {chosen.version}")


@command("path", example="visget path xxhash")
@click.argument("name")
@click.option("--directory", is_flag=True, help="Print the directory of the artifact, not the library.")
def path(ui: Ui, settings: Settings, *, name: str, directory: bool) -> None:
    """Print the file of an installed library.

    It is what `ctypes.CDLL` and linkers take.
    """
    from visget import api

    if directory:
        found = api.resolve(name, settings=settings, progress=ui)[1].path
    else:
        found = api.path(name, settings=settings)
    ui.result({"name": name, "path": str(found)}, str(found), raw=True)


@command("pkg-config", example="cc main.c $(visget pkg-config --cflags --libs xxhash)")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--cflags", is_flag=True, help="Compiler flags.")
@click.option("--libs", is_flag=True, help="Linker flags.")
@click.option("--static", is_flag=True, help="Linker flags for the static archive.")
@click.option("--path", "only_path", is_flag=True, help="Directories for PKG_CONFIG_PATH.")
@click.option("--target", metavar="TARGET", help="The artifact of that target. [env: VISGET_TARGET]")
def pkg_config(ui: Ui, settings: Settings, *, names: tuple[str, ...], cflags: bool, libs: bool, static: bool,
               only_path: bool, target: str | None) -> None:  # fmt: skip
    """Print compiler and linker flags for C programs.

    Without --cflags, --libs, --static or --path, those for compiling and linking are printed.
    """
    from visget import api
    from visget.runtime.pkgconfig import compile_flags, link_flags, search_path

    settings = with_options(settings, target=target)
    entries = [(name, api.resolve(name, settings=settings, progress=ui)[1].path) for name in names]
    words: list[str] = []
    if only_path:
        words = [":".join(str(search_path(entry)) for _, entry in entries)]
    else:
        both = not (cflags or libs or static)
        if cflags or both:
            words += [flag for name, entry in entries for flag in compile_flags(entry, name)]
        if libs or static or both:
            words += [flag for name, entry in entries for flag in link_flags(entry, name, static=static)]
    ui.result({"names": list(names), "flags": words}, " ".join(words), raw=True)


@command("target", example="visget target\nvisget target --list\nVISGET_TARGET=baseline visget target --json")
@click.option("--target", "text", metavar="TARGET", help="Explain this target. [env: VISGET_TARGET]")
@click.option("--list", "list_all", is_flag=True, help="List the targets that packages can be compiled for.")
def target(ui: Ui, settings: Settings, *, text: str | None, list_all: bool) -> None:
    """Show what this machine is and what is compiled for it.

    The processor, its features and caches, the C library, and OpenCL devices.
    """
    from visget.installer.detect import detect_host
    from visget.installer.target import known_targets
    from visget.wiring import target_of

    if list_all:
        known = known_targets()
        ui.result({"targets": list(known)}, "\n".join(known))
        return
    host = detect_host()
    wanted = target_of(settings, text)
    ui.result(
        {"target": wanted.as_dict(), "host": host.as_dict(), "is_host": wanted == host.target},
        lambda: "\n".join(host.as_lines(wanted)),
    )
