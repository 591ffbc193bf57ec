"""The source tree of a project: its own directory, or what it fetches, unpacked for one build.

Invariant: a fetched tree is unpacked afresh for each use and removed afterwards, so that what the digest in visget.toml
names is what is compiled, whatever was done to earlier trees.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from visget.digest import Digest
from visget.download import NetworkOptions
from visget.errors import UsageError
from visget.files import translated
from visget.progress import SILENT, Progress
from visget.toolchain.extract import extract
from visget.toolchain.fetch import Archive, fetch_archives
from visget.toolchain.origin import Additions
from visget.toolchain.paths import expand, inside
from visget.toolchain.project import Project
from visget.toolchain.toml_lines import Place


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
        with _at(project, ("source", "subdir")):
            root = inside(tree, source.subdir) if source.subdir else tree
        if not root.is_dir():
            raise project.wrong(("source", "subdir"), f"{source.subdir!r} is a file")
        _add(project, source.additions, root)
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


def _add(project: Project, additions: Additions, root: Path) -> None:
    """Lay what visget.toml adds beside the files of upstream."""
    if additions.overlay:
        with _at(project, ("source", "overlay")):
            overlay = inside(project.directory, additions.overlay)
            for name in expand(overlay, ["**/*"]):
                _copy(overlay / name, root, name)
    for name, original in additions.copies:
        with _at(project, ("source", "copy", name)):
            _copy(inside(root, original), root, name)


def _copy(original: Path, root: Path, name: str) -> None:
    target = root / name
    if target.is_symlink() or target.exists():
        raise UsageError(f"{name!r} is there already", hint="the files of upstream stay as they are: take another name")
    if not original.is_file():
        raise UsageError(f"{original.name!r} is not a file")
    with translated("add a file to the sources", target):
        target.parent.mkdir(parents=True, exist_ok=True)
        inside(root, target.parent.relative_to(root).as_posix())
        shutil.copyfile(original, target)


def find_sources(project: Project, root: Path) -> tuple[str, ...]:
    """Return the files to compile, relative to `root` and sorted.

    Raises:
        UsageError: a pattern matches nothing, or everything is excluded.
    """
    build = project.build
    found = _expanded(project, root, "sources", build.sources) - _expanded(project, root, "exclude", build.exclude)
    if not found:
        raise project.wrong(("build", "exclude"), "leaves no source file", "make its patterns narrower")
    for index, directory in enumerate(build.include):
        with _at(project, ("build", "include", index)):
            if not inside(root, directory).is_dir():
                raise UsageError(f"{directory!r} is a file, not a directory", hint="name the directory it is in")
    return tuple(sorted(found))


def _expanded(project: Project, root: Path, key: str, patterns: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for index, pattern in enumerate(patterns):
        with _at(project, ("build", key, index)):
            found.update(expand(root, [pattern]))
    return found


@contextmanager
def _at(project: Project, place: Place) -> Iterator[None]:
    """Say of an error in the with block which line of visget.toml it comes from."""
    try:
        yield
    except UsageError as error:
        raise project.wrong(place, error.message, error.hint) from error


def find_headers(project: Project, root: Path, include: Sequence[str] | None = None) -> dict[str, Path]:
    """Return the public headers by the names under which programs include them.

    Each is looked for in the directories of `include` (by default ``build.include``), in order, then at the root.

    Raises:
        UsageError: a header is not there.
    """
    found: dict[str, Path] = {}
    directories = project.build.include if include is None else include
    for index, name in enumerate(project.exports.headers):
        key: Place = ("exports", "headers", index)
        places = [root / directory for directory in directories] + [root]
        place = next((place for place in places if (place / name).is_file()), None)
        if place is None:
            raise project.wrong(
                key,
                f"there is no {name!r} in build.include or the source tree",
                _header_hint(root, name),
            )
        with _at(project, key):
            inside(root, (place / name).relative_to(root).as_posix())
        found[name] = place / name
    return found


def _header_hint(root: Path, name: str) -> str:
    """Say where in the tree there is a header of that name."""
    found = sorted(path.relative_to(root).as_posix() for path in root.rglob(PurePosixPath(name).name))
    directories = [path.removesuffix(f"/{name}") for path in found if path.endswith(f"/{name}")]
    if directories:
        return f"it is in {', '.join(directories[:4])}: write include = [{directories[0]!r}]".replace("'", '"')
    if found:
        return f"there is {', '.join(found[:4])}; write the name as a program includes it"
    return "write the name as a program includes it, and list its directory in build.include"


def find_text(project: Project, root: Path, name: str, key: Place = ("package",)) -> Path:
    """Return the readme or licence file `name`: beside visget.toml, else in the source tree.

    Args:
        project: the project.
        root: the source tree.
        name: the relative path of the file.
        key: where visget.toml names it.

    Raises:
        UsageError: it is in neither.
    """
    for place in (project.directory, root):
        if (place / name).is_file():
            with _at(project, key):
                return inside(place, name)
    raise project.wrong(
        key,
        f"there is no {name!r} beside {project.path.name} or in the source tree",
        "write the file, or leave the key out",
    )
