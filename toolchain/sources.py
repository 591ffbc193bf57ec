"""The source tree of a project: its own directory, or what it fetches, unpacked for one build.

Invariant: a fetched tree is unpacked afresh for each use and removed afterwards, so that what the digest in visget.toml
names is what is compiled, whatever was done to earlier trees.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from visget.digest import Digest
from visget.download import NetworkOptions
from visget.errors import UsageError
from visget.files import translated
from visget.progress import SILENT, Progress
from visget.toolchain.extract import extract
from visget.toolchain.fetch import Archive, fetch_archives
from visget.toolchain.paths import expand, inside
from visget.toolchain.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTree:
    """Sources that lie ready to be compiled."""

    root: Path
    """The directory that the paths of visget.toml are relative to."""
    digest: Digest | None = None
    """The digest that visget.toml names; None for local sources."""
    label: str | None = None
    """What provenance says of a fetched source, such as ``pypi:xxhash==4.1.0``."""


@contextmanager
def source_tree(
    project: Project, *, cache: Path, network: NetworkOptions | None = None, progress: Progress = SILENT
) -> Iterator[SourceTree]:
    """Provide the sources of `project` for the duration of a with block.

    Args:
        project: the project.
        cache: where downloads are kept, and where trees are unpacked.
        network: how to reach the network.
        progress: told what is fetched.

    Raises:
        TrustError: a fetched file has another digest than visget.toml names.
        FormatError: an archive is damaged, or wants to write where it must not.
        UsageError: ``subdir`` is not in the archive.
        NetworkError: a source could not be fetched.
        NotFoundError: no server has it.
    """
    source = project.source
    if source is None:
        yield SourceTree(root=project.directory)
        return
    archives = fetch_archives(source, cache=cache, network=network or NetworkOptions(), progress=progress)
    tree = cache / "trees" / secrets.token_hex(8)
    try:
        progress.step("unpacking", source.label)
        _unpack(archives, tree, progress)
        root = inside(tree, source.subdir) if source.subdir else tree
        if not root.is_dir():
            raise UsageError(f"source.subdir: {source.subdir!r} is a file", where=str(project.path))
        yield SourceTree(root=root, digest=source.sha256, label=source.label)
    finally:
        shutil.rmtree(tree, ignore_errors=True)


def _unpack(archives: tuple[Archive, ...], tree: Path, progress: Progress) -> None:
    for archive in archives:
        target = tree / archive.directory if archive.directory else tree
        if archive.directory and target.exists():
            with translated("unpack an archive", target):
                shutil.rmtree(target)  # a component of a Debian package replaces its placeholder
        result = extract(archive.path, target)
        if result.skipped:
            progress.note(f"left out {len(result.skipped)} links of the archive that lead nowhere in it")


def find_sources(project: Project, root: Path) -> tuple[str, ...]:
    """Return the files to compile, relative to `root` and sorted.

    Raises:
        UsageError: a pattern matches nothing, or everything is excluded.
    """
    try:
        found = expand(root, project.build.sources, project.build.exclude)
    except UsageError as error:
        raise UsageError(f"build.sources: {error.message}", hint=error.hint, where=error.where) from error
    if not found:
        raise UsageError("build.exclude leaves no source file", where=str(project.path))
    for directory in project.build.include:
        if not inside(root, directory).is_dir():
            raise UsageError(f"build.include: {directory!r} is a file, not a directory", where=str(root))
    return found


def find_headers(project: Project, root: Path) -> dict[str, Path]:
    """Return the public headers by the names under which programs include them.

    Each is looked for in the directories of ``build.include``, in order, then at the root.

    Raises:
        UsageError: a header is not there.
    """
    found: dict[str, Path] = {}
    for name in project.exports.headers:
        places = [root / directory for directory in project.build.include] + [root]
        place = next((place for place in places if (place / name).is_file()), None)
        if place is None:
            raise UsageError(
                f"exports.headers: there is no {name!r} in build.include or the source tree",
                where=str(project.path),
                hint="write the name as a program includes it, and list its directory in build.include",
            )
        inside(root, (place / name).relative_to(root).as_posix())
        found[name] = place / name
    return found


def find_text(project: Project, root: Path, name: str) -> Path:
    """Return the readme or licence file `name`: beside visget.toml, else in the source tree.

    Raises:
        UsageError: it is in neither.
    """
    for place in (project.directory, root):
        if (place / name).is_file():
            return inside(place, name)
    raise UsageError(f"there is no {name!r} beside {project.path.name} or in the source tree", where=str(project.path))
