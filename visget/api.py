"""The whole story, one screen per verb: build, check, publish, install, load and what lies between.

The command line and Python programs call the same functions. Invariant: this module only connects the rooms; it
holds no knowledge of formats, compilers or file layouts. ``load``, ``path`` and ``resolve`` live in
visget/loading.py, which imports far less.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from visget.building import build
from visget.cache.environment import Environment, Installed
from visget.config import Settings, read_settings
from visget.errors import CompileError, NotFoundError, RefusedError, VisgetError
from visget.installing import InstallResult, write_artifact
from visget.loading import load, not_installed, path, resolve
from visget.names import Requirement, parse_name, parse_version
from visget.progress import SILENT, Progress
from visget.recall import Listener, question, recall, remember
from visget.wiring import limits_of, linker_of, store_of, target_of

if TYPE_CHECKING:
    from visget.format.findings import Finding
    from visget.format.keys import SecretKey
    from visget.format.package import Package, VerifiedPackage
    from visget.installer.plan import Dependency, Plan
    from visget.installer.receipt import Linking
    from visget.registry.directory import Published


__all__ = [
    "InstallResult",
    "build",
    "check",
    "install",
    "installed",
    "load",
    "open_package_file",
    "path",
    "plan",
    "publish",
    "read_package_file",
    "resolve",
    "rollback",
    "sign",
    "uninstall",
    "unneeded",
    "use",
    "write_artifact",
]


# ---- authors ---------------------------------------------------------------------------------------------


def check(path: Path, *, settings: Settings | None = None) -> tuple[Package, list[Finding]]:
    """Check the package file at `path` against its format and the VIS rules, in a worker process.

    Returns:
        The package and every finding, errors and warnings alike.

    Raises:
        FormatError: the file is not a well-formed container.
        NotFoundError: there is no such file.
    """
    from visget.installer.compile import check_package

    settings = settings or read_settings()
    package = open_package_file(path)
    return package, check_package(package, limits=limits_of(settings))


def read_package_file(path: Path) -> bytes:
    """Return the bytes of a .vis file; of one that is too large only as many as show that.

    Raises:
        NotFoundError: there is none at `path`.
    """
    from visget.format.container import FILE_LIMIT

    try:
        with path.open("rb") as stream:
            return stream.read(FILE_LIMIT + 1)
    except OSError as error:
        raise NotFoundError(
            f"cannot read the package file: {error.strerror}",
            where=str(path),
            hint="`visget build` writes one into dist/",
        ) from error


def open_package_file(path: Path) -> Package:
    """Return the package in the .vis file at `path`; its signature is not looked at.

    Raises:
        FormatError: the file is not a well-formed container.
        NotFoundError: there is no such file.
    """
    from visget.format.package import open_package

    data = read_package_file(path)
    try:
        return open_package(data)
    except VisgetError as error:
        error.where = error.where or str(path)
        raise


def sign(path: Path, keys: Sequence[SecretKey]) -> tuple[Path, tuple[str, ...]]:
    """Sign the package file at `path` with each of `keys`, and keep the signatures beside it for `publish`.

    Returns:
        The signature file, and the ids of all keys that have signed it by now.

    Raises:
        FormatError, NotFoundError: it is no package file.
        TrustError: the signatures beside it are about another package.
    """
    from visget.files import atomic_write, translated
    from visget.format.signing import envelope_key_ids, sign_package

    package = open_package_file(path)
    beside = signature_file(path)
    envelope = _with_signatures_beside(sign_package(package, *keys), path)
    with translated("write the signatures", beside):
        atomic_write(beside, envelope)
    return beside, tuple(sorted(envelope_key_ids(envelope)))


def signature_file(path: Path) -> Path:
    """Return where the signatures of the package file `path` are collected before it is published."""
    return path.with_name(f"{path.name}.dsse")


def _with_signatures_beside(envelope: bytes, path: Path) -> bytes:
    """Return `envelope` with the signatures that others have put beside the package file `path`."""
    from visget.format.signing import join_signatures

    try:
        collected = signature_file(path).read_bytes()
    except FileNotFoundError:
        return envelope
    except OSError as error:
        raise NotFoundError(
            f"cannot read the signatures: {error.strerror}", where=str(signature_file(path))
        ) from error
    return join_signatures(envelope, collected)


def publish(path: Path, *, key: Path | SecretKey, registry: str | None = None, trial: bool = True,
            settings: Settings | None = None, progress: Progress = SILENT) -> Published:  # fmt: skip
    """Check, sign and publish the package file at `path`.

    Args:
        path: a .vis file.
        key: the author's signing key, or its file when that is not encrypted.
        registry: name or directory of the registry; None means the configured one.
        trial: first do with it on this machine all that an installation does, its test vectors included, and keep
            nothing of that; otherwise only the VIS rules are checked.

    Raises:
        FormatError: the package is malformed.
        RefusedError: the package breaks a VIS rule.
        CompileError: it cannot be compiled here, or does not give its own expected answers.
        TrustError: the name belongs to another key.
        RegistryError: other bytes were published under this version, or the registry cannot be written.
    """
    from visget.format.keyfile import read_key
    from visget.format.owner import first_record
    from visget.format.package import check_contents, verify_package
    from visget.format.signing import sign_package
    from visget.registries import room_of
    from visget.registry.directory import publish as put
    from visget.registry.directory import registry_directory

    settings = settings or read_settings()
    directory = registry_directory(settings.location(registry))
    secret = read_key(key) if isinstance(key, Path) else key
    progress.step("checking", path.name)
    package = open_package_file(path)
    check_contents(package)
    signed = sign_package(package, secret)
    if trial:
        _try(verify_package(package, signed, [secret.public]), path, registry, settings, progress)
    else:
        _refuse_rule_breaker(path, settings)
    progress.step("publishing", f"{package.manifest.name} {package.manifest.version}")
    envelope = _with_signatures_beside(signed, path)
    claim = first_record(package.manifest.name, secret).encode()
    return put(directory, package, envelope, keys=room_of(settings, directory), claim=claim)


def _try(
    verified: VerifiedPackage, path: Path, registry: str | None, settings: Settings, progress: Progress
) -> None:
    """Let the package go through what an installation here would do."""
    store = store_of(settings)
    needs: Sequence[Dependency] = ()
    with store.in_use():
        if verified.package.manifest.dependencies:
            from visget.requiring import compile_needs

            needs = compile_needs(verified.package, registry, settings=settings, progress=progress)
        _try_with(verified, needs, path, settings, progress)


def _try_with(
    verified: VerifiedPackage, needs: Sequence[Dependency], path: Path, settings: Settings, progress: Progress
) -> None:
    from visget.installer.detect import host_target
    from visget.installer.trial import try_package

    linker, store = linker_of(settings, host_target()), store_of(settings)
    try:
        try_package(
            verified, store, linker=linker, limits=limits_of(settings), progress=progress, dependencies=needs
        )
    except RefusedError as error:
        if "findings" in error.details:
            _refuse_rule_breaker(path, settings)
        raise
    except CompileError as error:
        if "vector" in error.details:
            error.hint = "nothing was published; mend the code or the [[vector]] in visget.toml and build it again"
        raise


def _refuse_rule_breaker(path: Path, settings: Settings) -> None:
    """Refuse a package that breaks a VIS rule, with all findings."""
    package, findings = check(path, settings=settings)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise RefusedError(
            f"{package.manifest.name} {package.manifest.version} breaks VIS rules: {len(errors)} in all",
            where=str(path), details={"findings": errors}, hint="build it again with `visget build`",
        )  # fmt: skip


# ---- users -----------------------------------------------------------------------------------------------


def install(
    text: str,
    *,
    registry: str | None = None,
    target: str | None = None,
    trust: str | None = None,
    again: bool = False,
    also: Sequence[str] = (),
    linking: Linking = "shared",
    upgrade: bool = False,
    settings: Settings | None = None,
    progress: Progress = SILENT,
) -> InstallResult:
    """Fetch, verify, compile and install the newest version that satisfies the requirement `text`, and what it needs.

    Args:
        text: ``NAME``, ``NAME==1.2`` or ``NAME>=1.2,<2``.
        registry: name, directory or URL of the registry; None means the configured one.
        target: what to compile for; None means the setting, else this machine.
        trust: the id of the key that must have signed it; None means the pinned or the registry's owner.
        again: compile it again, also when the store has the artifact.
        also: other requirements that the versions of what it needs have to satisfy.
        linking: "static" makes the code of what it needs part of its own.
        upgrade: take the newest versions of what it needs, also where an installed one would do.

    Raises:
        NotFoundError, TrustError, RefusedError, CompileError, UnsupportedError, NetworkError: see their classes.
    """
    settings = settings or read_settings()
    others = sorted({*also} - {text})
    asked = None if target is not None else question(settings, text, registry, trust, others, linking, upgrade)
    if not again and (known := recall(asked, settings)) is not None:
        return known
    # Late, because all this is not needed when nothing has changed.
    from visget.requiring import install_chain, obtain_chain

    requirement = Requirement.parse(text)
    wanted = target_of(settings, target)
    store = store_of(settings)
    progress = listener = Listener(progress)
    with store.in_use():  # garbage collection waits until the environment refers to what was fetched and compiled
        chain = obtain_chain(
            requirement, registry=registry, trust=trust, also=[Requirement.parse(one) for one in also],
            upgrade=upgrade, settings=settings, progress=progress,
        )  # fmt: skip
        result = install_chain(
            chain, store, wanted, settings=settings, progress=progress, linking=linking, again=again
        )
        if not listener.heard:
            remember(asked, chain, result, settings)
        return result


def plan(text: str, *, registry: str | None = None, target: str | None = None, trust: str | None = None,
         also: Sequence[str] = (), linking: Linking = "shared", upgrade: bool = False,
         settings: Settings | None = None, progress: Progress = SILENT) -> Plan:  # fmt: skip
    """Return what `install` with the same arguments would do; nothing is compiled or installed."""
    from visget.installer.install import plan_package
    from visget.requiring import obtain_chain, plan_needs

    settings = settings or read_settings()
    requirement = Requirement.parse(text)
    wanted = target_of(settings, target)
    store = store_of(settings)
    chain = obtain_chain(
        requirement, registry=registry, trust=trust, also=[Requirement.parse(one) for one in also], upgrade=upgrade,
        settings=settings, progress=progress, remember=False,
    )  # fmt: skip
    return plan_package(
        chain.asked.verified, wanted, store, linker=linker_of(settings, wanted), limits=limits_of(settings),
        linking=linking,
        dependencies=list(plan_needs(chain, store, wanted, settings=settings, linking=linking)),
    )  # fmt: skip


def installed(*, settings: Settings | None = None) -> list[Installed]:
    """Return everything that is installed, sorted by name and version."""
    return Environment(store_of(settings or read_settings())).installed()


def uninstall(text: str, *, force: bool = False, settings: Settings | None = None) -> list[Installed]:
    """Remove the installed versions that satisfy the requirement `text` and return them.

    Args:
        text: the requirement.
        force: also versions that other packages are linked with; these keep the artifacts that they need.

    Raises:
        NotFoundError: none does.
        UsageError: another package is linked with one of them.
    """
    settings = settings or read_settings()
    environment = Environment(store_of(settings))
    doomed = _matching(text, environment)
    return [gone for item in doomed for gone in environment.remove(item.name, item.version, force=force)]


def unneeded(*, settings: Settings | None = None) -> list[Installed]:
    """Return what was installed only because something else needed it, and nothing does any more."""
    everything = installed(settings=settings)
    needed = {one for item in everything if not item.static for one in item.requires.items()}
    return [item for item in everything if item.automatic and (item.name, item.version) not in needed]


def use(text: str, *, settings: Settings | None = None) -> Installed:
    """Select the newest installed version that satisfies the requirement `text`.

    Raises:
        NotFoundError: none does.
    """
    settings = settings or read_settings()
    environment = Environment(store_of(settings))
    chosen = max(_matching(text, environment), key=lambda item: parse_version(item.version))
    return environment.select(chosen.name, chosen.version)


def rollback(name: str, *, settings: Settings | None = None) -> Installed:
    """Select the version of `name` that was selected before the last change.

    Raises:
        NotFoundError: it is not installed, or there is nothing to go back to.
    """
    settings = settings or read_settings()
    return Environment(store_of(settings)).rollback(parse_name(name))


def _matching(text: str, environment: Environment) -> list[Installed]:
    wanted = Requirement.parse(text)
    everything = environment.installed()
    found = [
        item
        for item in everything
        if item.name == wanted.name and wanted.specifier.contains(item.version, prereleases=True)
    ]
    if not found:
        raise not_installed(wanted.name, str(wanted.specifier).removeprefix("==") or None, everything)
    return found
