"""Running a library's own build system in a copy of its sources, with visget's compiler.

Invariant: the user's sources are never written to, and nothing is left behind but a log after a failure, or the whole
directory where that was asked for. The spec is docs/spec/front-end.md, section 9.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from visget.errors import BuildError, UsageError
from visget.files import translated
from visget.progress import Progress
from visget.toolchain.bitcode_units import DEBUG_ROOT
from visget.toolchain.buildrun import run_step
from visget.toolchain.buildtools import (
    Programs,
    Workplace,
    check_marker,
    check_step,
    environment,
    machine_scripts,
    plan_steps,
    tools_of,
)
from visget.toolchain.calls import CallLog, read_calls
from visget.toolchain.clang import CompileOptions, Frontend, package_flags
from visget.toolchain.frontend import Unit
from visget.toolchain.inputs import Inputs, compile_options, flags_of, public_headers
from visget.toolchain.members import collect, find_libraries
from visget.toolchain.paths import inside
from visget.toolchain.project import Project
from visget.toolchain.wrappers import cmake_toolchain, config_site, meson_native, write_platform, write_tools

_EPOCH = 315532800
_NOT_COPIED = frozenset((".git", ".hg", ".svn", "__pycache__"))


@contextmanager
def build_inputs(
    project: Project,
    frontend: Frontend,
    sources: Path,
    *,
    cc: str | None,
    jobs: int,
    cache: Path,
    prefix: Path | None,
    progress: Progress,
    test: bool = False,
    keep: bool = False,
) -> Iterator[Inputs]:
    """Build the library in `sources` and provide its units; its tree is there for the duration of the with block.

    Args:
        project: the project.
        frontend: the clang, for its headers and version.
        sources: the sources; they are copied.
        cc: another clang than ziglang's.
        jobs: how many processes may run at once.
        cache: where the copy is made, and the logs of failures are kept.
        prefix: where the dependencies are installed.
        progress: told what is being done.
        test: whether the library's own tests are run.
        keep: whether the copy stays when all is done.

    Raises:
        BuildError: a step failed, or the library holds what no package may.
        UnsupportedError: a program is not installed.
        UsageError: visget.toml names what is not there.
    """
    scratch = cache.absolute() / "builds" / secrets.token_hex(8)
    try:
        place = _prepare(project, sources, scratch, cache, prefix)
        yield _build(project, frontend, place, cc=cc, jobs=jobs, progress=progress, test=test, cache=cache)
    finally:
        if keep:
            progress.note(f"the build is kept in {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)


def _build(
    project: Project,
    frontend: Frontend,
    place: Workplace,
    *,
    cc: str | None,
    jobs: int,
    progress: Progress,
    test: bool,
    cache: Path,
) -> Inputs:
    build = project.build
    options = compile_options(build)
    beside = Path(sysconfig.get_path("scripts"))
    flags = wrapper_flags(options, place.root, place.prefix)
    surroundings = environment(place, beside, flags, cc=cc, cache=cache)
    programs = Programs(surroundings["PATH"])
    check_marker(project, place, programs)
    prepare_tools(place, programs)
    log = place.scratch / "build.log"
    steps = list(plan_steps(build, place, programs, jobs=jobs))
    tests = check_step(build, place, programs, jobs=jobs) if test else None
    with _kept_log(project, log, cache):
        for step in steps:
            run_step(step, surroundings, log, progress)
    calls = CallLog(read_calls(place.log), place.root, own_places(frontend, place))
    places = [place.build, place.directory, place.stage / "usr" / "lib", place.root]
    collected = collect(find_libraries(project, place.root, [one for one in places if one.is_dir()]), calls)
    if tests is not None:
        with _kept_log(project, log, cache):
            run_step(tests, surroundings, log, progress)
    include = _include(project, place)
    return Inputs(
        root=place.root,
        units=collected.units,
        options=replace(options, include=include),
        public=public_headers(project, place.root, include),
        producer=f"clang {frontend.version}",
        flags=(f"system={build.system}", *build.configure, *shared_flags(options, collected.units)),
        findings=collected.findings,
        hidden=(str(place.root), str(place.scratch)),
    )


def _foreign(prefix: Path | None) -> tuple[str, ...]:
    """Return the flags for headers of the dependencies: where they are, without a trace of that in the module."""
    return () if prefix is None else (
        f"-isystem{prefix}/include", f"-ffile-prefix-map={prefix}/include=visget/dependencies"
    )  # fmt: skip


def wrapper_flags(options: CompileOptions, root: Path, prefix: Path | None) -> list[str]:
    """Return what every call of the compiler is given, after the flags of the build system."""
    chosen = [
        flag
        for flag in package_flags(replace(options, include=()), cxx=False)
        # The language's standard and the warnings are the build system's.
        if not flag.startswith(("-std=", "-W")) or flag in options.flags
    ]
    if options.float_cast == "native":  # the wrappers saturate
        chosen.append("-fstrict-float-cast-overflow")
    paths = [f"-fmacro-prefix-map={root}/=", f"-fdebug-prefix-map={root}={DEBUG_ROOT}"]
    return [*chosen, *paths, *_foreign(prefix)]


def shared_flags(options: CompileOptions, units: list[Unit]) -> tuple[str, ...]:
    """Return the flags that all units have, for the provenance; dialects and macros are the build system's."""
    flags = flags_of(replace(options, include=()), units)
    return tuple(flag for flag in flags if not flag.startswith("-std=") or flag in options.flags)


def own_places(frontend: Frontend, place: Workplace) -> list[Path]:
    """Return the directories outside of the sources whose files may be read."""
    return [frontend.library, Path(__file__).resolve().parent, *place.roots]


def _include(project: Project, place: Workplace) -> tuple[str, ...]:
    """Return where the public headers are looked for, relative to the root: what was made before what was there."""
    root = place.root
    wanted = [place.stage / "usr" / "include", place.build, place.build / "include"]
    wanted += [root / directory for directory in project.build.include]
    wanted += [place.directory, root, place.directory / "include", root / "include"]
    there = dict.fromkeys(path.relative_to(root).as_posix() for path in wanted if path.is_dir())
    for index, directory in enumerate(project.build.include):
        if not (root / directory).is_dir():
            raise project.wrong(("build", "include", index), f"there is no directory {directory!r} after the build")
    return tuple(there)


@contextmanager
def _kept_log(project: Project, log: Path, cache: Path) -> Iterator[None]:
    """Keep the log of a failure, and say where it is."""
    try:
        yield
    except BuildError as error:
        kept = cache / "logs" / f"{project.package.name}-{project.package.version}.log"
        with translated("keep the log of the build", kept):
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, kept)
        error.where = str(kept)
        error.details["log"] = str(kept)
        raise


def _prepare(project: Project, sources: Path, scratch: Path, cache: Path, prefix: Path | None) -> Workplace:
    root = scratch / "source"
    with translated("copy the sources", scratch):
        for name in ("home", "tmp", "tools", "calls"):
            (scratch / name).mkdir(parents=True)
        copy_tree(sources, root, leave_out=(cache.resolve(),))
    try:
        directory = inside(root, project.build.directory) if project.build.directory else root
    except UsageError as error:
        raise project.wrong(("build", "directory"), error.message, error.hint) from error
    if not directory.is_dir():
        raise project.wrong(("build", "directory"), f"{project.build.directory!r} is a file")
    return Workplace(root=root.resolve(), scratch=scratch.resolve(), directory=directory.resolve(), prefix=prefix)


def copy_tree(source: Path, target: Path, *, leave_out: tuple[Path, ...] = ()) -> None:
    """Copy the files of `source` so that a build finds them as it would in a fresh archive.

    All get one time, for a time that says "newer" would make `make` run autoconf; scripts can be run.
    """

    def ignored(directory: str, names: list[str]) -> set[str]:
        return {
            name
            for name in names
            if name in _NOT_COPIED or name.endswith(".vis") or Path(directory, name).resolve() in leave_out
            or not _is_plain(Path(directory, name))
        }  # fmt: skip

    shutil.copytree(source, target, symlinks=True, ignore=ignored)
    for directory, _, names in os.walk(target, topdown=False):
        for name in names:
            path = Path(directory, name)
            if not path.is_symlink():
                with path.open("rb") as file:
                    script = file.read(2) == b"#!"
                path.chmod(0o755 if script or path.stat().st_mode & stat.S_IXUSR else 0o644)
                os.utime(path, (_EPOCH, _EPOCH))
        Path(directory).chmod(0o755)
        os.utime(directory, (_EPOCH, _EPOCH))


def _is_plain(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def prepare_tools(place: Workplace, programs: Programs) -> None:
    """Write down for every build system where its tools are, and put them under the names that Makefiles use.

    Raises:
        UnsupportedError: visget's tools are not installed.
    """
    tools = tools_of(programs)
    write_tools(place.tools, tools)
    write_platform(place.stand_in)
    with translated("prepare the build", place.scratch):
        place.toolchain.write_text(cmake_toolchain(tools, [str(root) for root in place.roots]), encoding="utf-8")
        place.native.write_text(meson_native(tools, str(place.toolchain)), encoding="utf-8")
        place.site.write_text(config_site(), encoding="utf-8")
        for name, text in machine_scripts(place).items():
            (place.tools / name).write_text(text, encoding="utf-8")
            (place.tools / name).chmod(0o755)
