"""Which way the units of a package come: the one place that decides.

Invariant: what the command line names wins over visget.toml; everything after this does not know the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from visget.progress import Progress
from visget.toolchain.buildsystem import build_inputs
from visget.toolchain.clang import Frontend
from visget.toolchain.compiledb import from_database
from visget.toolchain.inputs import Given, Inputs, from_bitcode, from_sources
from visget.toolchain.project import Project


@contextmanager
def provide(
    project: Project,
    frontend: Frontend,
    root: Path,
    *,
    given: Given | None,
    cc: str | None,
    jobs: int,
    cache: Path,
    prefix: Path | None,
    progress: Progress,
    colour: bool,
    test: bool,
    keep: bool,
) -> Iterator[Inputs]:
    """Provide what the package is made of, for the duration of a with block.

    Raises:
        VisgetError: as the function for each way.
    """
    if given is not None and given.bitcode:
        yield from_bitcode(project, given, root)
    elif given is not None and given.database is not None:
        yield from_database(
            project, frontend, root, given=given, cc=cc, jobs=jobs, cache=cache, prefix=prefix, progress=progress
        )
    elif project.build.system == "sources":
        yield from_sources(
            project, frontend, root, jobs=jobs, prefix=prefix, progress=progress, colour=colour
        )  # fmt: skip
    else:
        with build_inputs(
            project, frontend, root, cc=cc, jobs=jobs, cache=cache, prefix=prefix, progress=progress, test=test,
            keep=keep,
        ) as inputs:  # fmt: skip
            yield inputs
