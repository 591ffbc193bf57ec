"""`visget build`: from a project's visget.toml to the file of its package.

Invariant: a package file appears complete, by one rename, and only when the package keeps every rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from visget.config import Settings, read_settings
from visget.progress import SILENT, Progress
from visget.wiring import network_of

if TYPE_CHECKING:
    from visget.toolchain.builder import BuildResult
    from visget.toolchain.inputs import Given


def build(project: Path, *, output: Path | None = None, settings: Settings | None = None,
          progress: Progress = SILENT, colour: bool = False, given: Given | None = None, test: bool = False,
          keep: bool = False, using: Sequence[Path] = (), registry: str | None = None
          ) -> tuple[BuildResult, Path]:  # fmt: skip
    """Build the project whose visget.toml is at `project` and write ``NAME-VERSION.vis``.

    Args:
        project: a visget.toml, or the directory that holds it.
        output: the directory to write into; None means ``dist`` beside visget.toml.
        colour: whether clang may use colours in its messages.
        given: what is compiled or taken in the place of what [build] says.
        test: whether the library's own tests are run, where its own build system builds it.
        keep: whether the directory of its build stays.
        using: package files of dependencies, in the place of what a registry has.
        registry: where the other dependencies come from; None means the configured one.

    Raises:
        UsageError: visget.toml is wrong. BuildError: clang refused a source. RefusedError: a VIS rule is broken.
    """
    from dataclasses import replace

    from visget.files import atomic_write, translated
    from visget.surroundings import surroundings_of
    from visget.toolchain.builder import build_package
    from visget.toolchain.project import read_project

    settings = settings or read_settings()
    path = project / "visget.toml" if project.is_dir() else project
    parsed = read_project(path, given=given is not None, headers=given is not None and bool(given.headers))
    if given is not None:  # it is here already
        parsed = replace(parsed, source=None)
    elif test and parsed.build.system == "sources":
        raise parsed.wrong(("build",), "there are no tests to run: visget itself compiles this library",
                           "leave out --test; [[vector]] tables are tests that travel with the package")
    with surroundings_of(
        parsed, given=using, registry=registry, settings=settings, progress=progress
    ) as surroundings:  # fmt: skip
        result = build_package(
            parsed, given=given, test=test, keep=keep, cc=settings.cc, jobs=settings.jobs, cache=settings.cache,
            network=network_of(settings), progress=progress, colour=colour, surroundings=surroundings,
        )  # fmt: skip
    manifest = result.package.manifest
    directory = output or path.parent / "dist"
    written = directory / f"{manifest.name}-{manifest.version}.vis"
    with translated("write the package", written):
        directory.mkdir(parents=True, exist_ok=True)
        atomic_write(written, result.data)
    return result, written
