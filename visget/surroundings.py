"""What a build sees of its dependencies: a prefix with their headers and libraries, and the types of their functions.

Invariant: what a package records of a dependency is what the dependency's own module has, as the compile worker told it
when it was compiled here. The prefix is for this machine and for the time of the build; nothing of it gets into the
package.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from visget.cache.entry import NativeEntry
from visget.config import Settings
from visget.digest import digest_bytes
from visget.errors import NotFoundError, UsageError, VisgetError
from visget.files import translated
from visget.names import Requirement
from visget.progress import SILENT, Progress
from visget.requiring import Shelves, compile_chain, needed, obtain_candidate, progress_clashes
from visget.resolving import Candidate, ConflictError, Wanted, in_order, resolve
from visget.wiring import store_of

if TYPE_CHECKING:
    from visget.format.manifest import Manifest
    from visget.format.package import Package, VerifiedPackage
    from visget.toolchain.project import Project
    from visget.toolchain.uses import Surroundings

PREFIX_FILE = "visget-prefix.json"
"""What tells the compiler wrappers that a directory is such a prefix."""


@contextmanager
def surroundings_of(
    project: Project,
    *,
    given: Sequence[Path] = (),
    registry: str | None = None,
    settings: Settings,
    progress: Progress = SILENT,
) -> Iterator[Surroundings]:
    """Provide the dependencies of `project` for the duration of a with block.

    Args:
        project: what visget.toml says.
        given: package files to take in the place of what a registry has, or for what none has.
        registry: where the others come from; None means the configured one.
        settings: where things are.
        progress: told what is being done.

    Raises:
        UsageError: a package file is none of the dependencies, or of a version that will not do.
        ConflictError: no set of versions is what everybody needs.
        VisgetError: as install().
    """
    from visget.installer.detect import host_target
    from visget.installer.documents import EXPORTS_FILE, read_exports
    from visget.toolchain.uses import ALONE, Provided, Surroundings

    if not project.dependencies:
        if given:
            raise project.wrong(("dependencies",), "there are none, so --with has nothing to provide")
        yield ALONE
        return
    store = store_of(settings)
    with store.in_use():
        packages = _packages(project, given, registry, settings, progress)
        there = compile_chain(packages, store, host_target(), settings=settings, progress=progress)
        provided = []
        for one in project.dependencies:
            dependency, entry = there[one.name]
            exports = read_exports(entry.content(EXPORTS_FILE))
            provided.append(Provided(name=one.name, version=dependency.version, exports=exports))
        with tempfile.TemporaryDirectory(prefix="visget-prefix-") as scratch:
            prefix = Path(scratch).resolve()
            with translated("make the prefix of the dependencies", prefix):
                make_prefix(prefix, {name: (one.verified.package, entry) for name, (one, entry) in there.items()})
            yield Surroundings(prefix=prefix, provided=tuple(provided))


def make_prefix(prefix: Path, packages: Mapping[str, tuple[Package, NativeEntry]]) -> None:
    """Fill the directory `prefix` with what compilers, linkers, pkg-config and CMake look for."""
    from visget.format.strictjson import dumps
    from visget.installer.pkgconfig import pkgconfig_text

    include, library = prefix / "include", prefix / "lib"
    (library / "pkgconfig").mkdir(parents=True)
    include.mkdir()
    described = {}
    owners: dict[str, str] = {}
    for name, (package, entry) in packages.items():
        manifest = package.manifest
        if (other := owners.setdefault(f"-l{manifest.link_name}", name)) != name:
            raise _clash(f"both are linked with -l{manifest.link_name}", other, name)
        for file in entry.files:
            if file.path.startswith("include/"):
                target = prefix / file.path
                other = owners.setdefault(file.path.casefold(), name)
                if other != name and (not target.is_file() or target.read_bytes() != entry.content(file.path)):
                    raise _clash(f"both have a header {file.path.removeprefix('include/')}", other, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(entry.path / file.path, target)
            elif file.path.startswith("lib/") and file.path.endswith(".so"):
                # Where a library lies, it also looks for those that it is linked with.
                (prefix / file.path).symlink_to(entry.path / file.path)
        text = pkgconfig_text(manifest, shared=True, requires=[one for one in needed(package) if one in packages])
        for module in _modules(manifest):
            (library / "pkgconfig" / f"{module}.pc").write_text(text, encoding="utf-8")
        described[name] = {"version": str(manifest.version), "library": manifest.link_name}
    (prefix / PREFIX_FILE).write_bytes(dumps({"packages": described}))


def _clash(what: str, one: str, other: str) -> ConflictError:
    return ConflictError(
        f"{one} and {other} cannot be built with together: {what}",
        hint="leave one of them out of [dependencies], and build with it in a package of its own",
        details={"packages": [one, other]},
    )


def _modules(manifest: Manifest) -> list[str]:
    """Return the names by which build systems ask pkg-config for a library: there is no one custom."""
    names = [manifest.name, f"lib{manifest.name}", manifest.link_name, f"lib{manifest.link_name}"]
    return list(dict.fromkeys(name for name in names if not name.startswith("liblib")))


def _packages(
    project: Project, given: Sequence[Path], registry: str | None, settings: Settings, progress: Progress
) -> list[VerifiedPackage]:
    """Return every package that the build needs, each after what it needs itself."""
    own: dict[str, VerifiedPackage] = {one.package.manifest.name: one for one in map(_own_package, given)}
    wanted = [Requirement.parse(f"{one.name}{one.specifier}") for one in project.dependencies]
    known: set[str] = {one.name for one in wanted}
    for name, one in own.items():
        known |= set(needed(one.package))
        fitting = [want for want in wanted if want.name == name]
        version = one.package.manifest.version
        if fitting and not fitting[0].specifier.contains(version, prereleases=True):
            raise UsageError(f"--with gives {name} {version}, but {fitting[0]} is wanted", where=str(project.path))
    if strangers := sorted(own.keys() - known):
        raise UsageError(
            f"--with gives {strangers[0]}, which is not among the dependencies",
            where=str(project.path),
            hint=f'add it to [dependencies]: {strangers[0]} = "*"',
        )
    roots = [one for one in wanted if one.name not in own]
    roots += [
        one
        for item in own.values()
        for one in map(Requirement.parse, item.package.manifest.dependencies)
        if one.name not in own
    ]
    found = dict(own)
    if roots:
        found |= _obtained(roots, registry, settings, progress, project)
    order = in_order(
        {name: [one for one in needed(item.package) if one in found] for name, item in found.items()},
        {name: f"{name} {item.package.manifest.version}" for name, item in found.items()},
    )
    packages = [found[name] for name in order]
    progress_clashes([one.package for one in packages], progress)
    return packages


def _obtained(
    roots: Sequence[Requirement], registry: str | None, settings: Settings, progress: Progress, project: Project
) -> dict[str, VerifiedPackage]:
    try:
        location = settings.location(registry)
    except VisgetError as error:
        error.hint = f"{error.hint}; or give the package files: visget build --with NAME-VERSION.vis"
        raise
    with Shelves(settings, progress) as shelves:
        try:
            chosen: tuple[Candidate, ...] = resolve(
                [Wanted(requirement=one, registry=location) for one in roots], shelves
            )
        except NotFoundError as error:
            error.where = error.where or str(project.path)
            raise
        return {
            one.name: obtain_candidate(one, shelves, settings=settings, progress=progress).verified for one in chosen
        }


def _own_package(path: Path) -> VerifiedPackage:
    """Open a package file that the author names himself: his word is all the trust there is, and all that is needed.

    An installer compiles what is signed, so this is signed here and now, with a key that nobody else accepts.
    """
    from visget.format.container import FILE_LIMIT
    from visget.format.keys import SecretKey
    from visget.format.package import open_package, verify_package
    from visget.format.signing import sign_package

    try:
        with path.open("rb") as stream:
            package = open_package(stream.read(FILE_LIMIT + 1))
    except OSError as error:
        raise NotFoundError(f"cannot read the package file: {error.strerror}", where=str(path)) from error
    except VisgetError as error:
        error.where = error.where or str(path)
        raise
    key = SecretKey(bytes.fromhex(digest_bytes(b"visget build --with")))
    return verify_package(package, sign_package(package, key), [key.public])

