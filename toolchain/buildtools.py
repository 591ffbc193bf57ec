"""The command lines with which a library's own build system is run, and the environment in which it runs.

Invariant: pure but for looking up programs. The same project gives the same commands; the environment holds nothing of
the user's, so that two people's builds differ in their paths only, and those are mapped away
(docs/spec/front-end.md, section 9).
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from visget.errors import UnsupportedError
from visget.toolchain.build_table import Build
from visget.toolchain.project import Project
from visget.toolchain.wrappers import TOOL_NAMES, tool_variables

BUILD_DIRECTORY = "visget-build"
"""Where cmake and meson build, inside the copy of the sources."""
STAGE_DIRECTORY = "visget-stage"
"""Where the install target puts what it installs, as if it were the root of a machine."""
PREFIX = "/usr"
"""The prefix that the library is told."""
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
"""Where programs are looked for after those beside Python."""
MACHINE = "riscv64"
"""The processor that builds are told they run on, whatever it is: that of the neutral target."""
_UNAME = """\
#!/bin/sh
# Every build is told the same about its machine: what depends on that would depend on who builds.
[ $# -gt 0 ] || set -- -s
told=
for word; do
  case "$word" in
    -a|--all) told="Linux visget 6.1.0 #1 {machine} GNU/Linux" ;;
    -s|--kernel-name) told="$told Linux" ;;
    -n|--nodename) told="$told visget" ;;
    -r|--kernel-release) told="$told 6.1.0" ;;
    -v|--kernel-version) told="$told #1" ;;
    -m|-p|-i|--machine|--processor|--hardware-platform) told="$told {machine}" ;;
    -o|--operating-system) told="$told GNU/Linux" ;;
    -sm|-ms) told="$told Linux {machine}" ;;
    -sr|-rs) told="$told Linux 6.1.0" ;;
    *) exec /bin/uname "$@" ;;
  esac
done
echo "${{told# }}"
"""
_MARKERS: Mapping[str, tuple[str, ...]] = {
    "cmake": ("CMakeLists.txt",),
    "autotools": ("configure",),
    "meson": ("meson.build",),
    "make": ("Makefile", "makefile", "GNUmakefile"),
}
_SOURCES: Mapping[str, str] = {
    "cmake": "`pip install cmake` beside visget, or your distribution's package cmake",
    "ninja": "`pip install ninja` beside visget, or your distribution's package ninja-build",
    "meson": "`pip install meson ninja` beside visget, or your distribution's package meson",
    "make": "your distribution's package make",
    "autoreconf": "your distribution's packages autoconf, automake and libtool",
    "ctest": "`pip install cmake` beside visget, or your distribution's package cmake",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """The directories of one build."""

    root: Path
    """The copy of the sources; everything that belongs to the package lies inside."""
    scratch: Path
    """The directory around it: home, temporary files, tools, logs."""
    directory: Path
    """Where the build files of the library are."""
    prefix: Path | None = None
    """Where the dependencies are installed."""

    @property
    def build(self) -> Path:
        """Where cmake and meson build."""
        return self.root / BUILD_DIRECTORY

    @property
    def stage(self) -> Path:
        """Where the install target writes."""
        return self.root / STAGE_DIRECTORY

    @property
    def tools(self) -> Path:
        """The directory that holds visget's tools under their usual names."""
        return self.scratch / "tools"

    @property
    def log(self) -> Path:
        """The directory of the wrappers' log."""
        return self.scratch / "calls"

    @property
    def stand_in(self) -> Path:
        """What stands for this machine's own libraries where a build system looks for files."""
        return self.scratch / "platform"

    @property
    def toolchain(self) -> Path:
        """The file that tells cmake its tools."""
        return self.scratch / "toolchain.cmake"

    @property
    def native(self) -> Path:
        """The file that tells meson its tools."""
        return self.scratch / "native.ini"

    @property
    def site(self) -> Path:
        """The file that tells configure scripts what is so on every platform."""
        return self.scratch / "config.site"

    @property
    def roots(self) -> tuple[Path, ...]:
        """The only places outside of the sources in which libraries are found."""
        return (self.stand_in, *((self.prefix,) if self.prefix else ()))

    def path(self, beside: Path) -> str:
        """Return PATH, where `beside` is the directory of the programs that came with visget's Python."""
        return ":".join([str(self.tools), str(beside), *SYSTEM_PATH])


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One program that is run."""

    phase: str
    """What is being done, in -ing."""
    command: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    """What is added to the environment of the build."""


class Programs:
    """Finds programs in the build's PATH."""

    def __init__(self, path: str) -> None:
        self._path = path

    def find(self, name: str) -> str | None:
        """Return the path of the program `name`."""
        return shutil.which(name, path=self._path)

    def need(self, name: str) -> str:
        """Return the path of the program `name`.

        Raises:
            UnsupportedError: it is not installed.
        """
        found = self.find(name)
        if found is None:
            raise UnsupportedError(
                f"this package is built with {name}, which is not installed",
                hint=f"install it: {_SOURCES.get(name, name)}; looked in {self._path.replace(':', ', ')}",
            )
        return found


def check_marker(project: Project, place: Workplace, programs: Programs) -> None:
    """Refuse a directory without the files of the build system.

    Raises:
        UsageError: visget.toml names another build system than the library has, or another directory.
    """
    build = project.build
    if any((place.directory / name).is_file() for name in _MARKERS[build.system]):
        return
    unmade = build.system == "autotools" and (place.directory / "configure.ac").is_file()
    if unmade and programs.find("autoreconf"):
        return
    others = [system for system, names in _MARKERS.items() if any((place.directory / n).is_file() for n in names)]
    if unmade:
        hint = (
            "there is configure.ac only: take the release archive, in which upstream has run autoconf, or install "
            "autoconf, automake and libtool here"
        )
    elif others:
        hint = f'there is {_found(place.directory, others[0])}: system = "{others[0]}"'
    else:
        wanted = _MARKERS[build.system][0]
        near = sorted(path.parent.relative_to(place.root).as_posix() for path in place.root.glob(f"*/**/{wanted}"))
        hint = f'it is in {", ".join(near[:4])}: name one with directory = "..."' if near else "look at the sources"
    key = ("build", "directory") if build.directory else ("build", "system")
    where = build.directory or "the source tree"
    raise project.wrong(key, f"there is no {' or '.join(_MARKERS[build.system])} in {where}", hint)


def _found(directory: Path, system: str) -> str:
    return next(name for name in _MARKERS[system] if (directory / name).is_file())


def tools_of(programs: Programs) -> dict[str, str]:
    """Return the path of each tool of visget's.

    Raises:
        UnsupportedError: they are not installed beside visget's Python.
    """
    found = {name: programs.find(f"visget-{name}") for name in TOOL_NAMES}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise UnsupportedError(
            f"visget-{missing[0]} is not installed", hint="install visget again: pip install 'visget[author]'"
        )
    return {name: path for name, path in found.items() if path is not None}


def machine_scripts(place: Workplace) -> dict[str, str]:
    """Return the programs that tell a build about its machine, by their names."""
    known = all(b"riscv64" in path.read_bytes() for path in place.root.rglob("config.guess") if path.is_file())
    # A configure script from before RISC-V would give up; it has to be told of another machine.
    machine = MACHINE if known else platform.machine()
    return {
        "uname": _UNAME.format(machine=machine),
        "arch": f"#!/bin/sh\necho {machine}\n",
        "hostname": "#!/bin/sh\necho visget\n",
    }


def environment(place: Workplace, beside: Path, flags: Sequence[str], *, cc: str | None, cache: Path) -> dict[str, str]:
    """Return the whole environment of the build.

    Args:
        place: the directories.
        beside: the directory of the programs of visget's Python.
        flags: what every call of the compiler is given.
        cc: another clang than ziglang's.
        cache: where the wrappers keep what they have compiled for programs, such as the C++ library.
    """
    scratch = place.scratch
    packages = ":".join(str(root / "lib" / "pkgconfig") for root in place.roots)
    return {
        "PATH": place.path(beside),
        "HOME": str(scratch / "home"),
        "TMPDIR": str(scratch / "tmp"),
        "XDG_CACHE_HOME": str(scratch / "home" / ".cache"),
        "LC_ALL": "C",
        "LANG": "C",
        "TZ": "UTC",
        "TERM": "dumb",
        "SOURCE_DATE_EPOCH": "315532800",
        "ZERO_AR_DATE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "CCACHE_DISABLE": "1",
        # `git describe` in a build must not find a repository around this one.
        "GIT_CEILING_DIRECTORIES": str(scratch),
        "PKG_CONFIG_LIBDIR": packages,
        "PKG_CONFIG_PATH": packages,
        "CONFIG_SITE": str(place.site),
        # By name, so that no path of this machine is written into the library.
        **tool_variables({name: f"visget-{name}" for name in TOOL_NAMES}),
        "VISGET_WRAP_LOG": str(place.log),
        "VISGET_WRAP_ROOT": str(place.root),
        "VISGET_WRAP_FLAGS": "\n".join(flags),
        "VISGET_CACHE_DIR": str(cache.absolute()),
        **({"VISGET_CC": cc} if cc else {}),
    }


def plan_steps(build: Build, place: Workplace, programs: Programs, *, jobs: int) -> tuple[Step, ...]:
    """Return what is run to build the library.

    Raises:
        UnsupportedError: a program is not installed.
    """
    if build.system == "cmake":
        return _cmake(build, place, programs, jobs)
    if build.system == "meson":
        return _meson(build, place, programs, jobs)
    return _make(build, place, programs, jobs)


def _cmake(build: Build, place: Workplace, programs: Programs, jobs: int) -> tuple[Step, ...]:
    cmake = programs.need("cmake")
    ninja = programs.find("ninja")
    generator = ("Ninja", ninja) if ninja else ("Unix Makefiles", programs.need("make"))
    configure = (
        cmake, "-S", str(place.directory), "-B", str(place.build), "-G", generator[0],
        f"-DCMAKE_MAKE_PROGRAM={generator[1]}",
        f"-DCMAKE_TOOLCHAIN_FILE={place.toolchain}",
        "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_INSTALL_PREFIX={PREFIX}", "-DCMAKE_INSTALL_LIBDIR=lib",
        "-DBUILD_SHARED_LIBS=OFF",
        *((f"-DCMAKE_PREFIX_PATH={place.prefix}",) if place.prefix else ()),
        # By name: CMake calls it through a shell, to which a path with a space means something else.
        "-DFETCHCONTENT_FULLY_DISCONNECTED=ON", "-DCMAKE_UNAME:STRING=uname",
        *build.configure,
    )  # fmt: skip
    make = (
        cmake, "--build", str(place.build), "--parallel", str(jobs),
        *(("--target", *build.targets) if build.targets else ()),
    )  # fmt: skip
    steps = [
        Step(phase="configuring", command=configure, cwd=place.root),
        Step(phase="making", command=make, cwd=place.root),
    ]
    if build.install:
        install = (cmake, "--install", str(place.build))
        environment = {"DESTDIR": str(place.stage)}
        steps.append(Step(phase="installing", command=install, cwd=place.root, environment=environment))
    return tuple(steps)


def _meson(build: Build, place: Workplace, programs: Programs, jobs: int) -> tuple[Step, ...]:
    meson = programs.need("meson")
    programs.need("ninja")
    configure = (
        meson, "setup", "--native-file", str(place.native), "--prefix", PREFIX, "--libdir", "lib",
        "--buildtype", "plain", "--default-library", "static", "--wrap-mode", "nodownload", *build.configure,
        str(place.build), str(place.directory),
    )  # fmt: skip
    make = (meson, "compile", "-C", str(place.build), "-j", str(jobs), *build.targets)
    steps = [
        Step(phase="configuring", command=configure, cwd=place.root),
        Step(phase="making", command=make, cwd=place.root),
    ]
    if build.install:
        install = (meson, "install", "-C", str(place.build), "--no-rebuild", "--destdir", str(place.stage))
        steps.append(Step(phase="installing", command=install, cwd=place.root))
    return tuple(steps)


def _make(build: Build, place: Workplace, programs: Programs, jobs: int) -> tuple[Step, ...]:
    make = programs.need("make")
    steps = []
    variables: tuple[str, ...] = ()
    if build.system == "autotools":
        if not (place.directory / "configure").is_file():
            prepare = (programs.need("autoreconf"), "--force", "--install")
            steps.append(Step(phase="preparing", command=prepare, cwd=place.directory))
        command = ("./configure", f"--prefix={PREFIX}", *build.configure)
        steps.append(Step(phase="configuring", command=command, cwd=place.directory, environment=_flags(place)))
    else:
        variables = build.configure
    steps.append(
        Step(phase="making", command=(make, f"-j{jobs}", *variables, *build.targets), cwd=place.directory)
    )
    if build.install:
        command = (make, *variables, f"DESTDIR={place.stage}", "install")
        steps.append(Step(phase="installing", command=command, cwd=place.directory))
    return tuple(steps)


def _flags(place: Workplace) -> dict[str, str]:
    if place.prefix is None:
        return {}
    return {"CPPFLAGS": f"-I{place.prefix}/include", "LDFLAGS": f"-L{place.prefix}/lib"}


def check_step(build: Build, place: Workplace, programs: Programs, *, jobs: int) -> Step:
    """Return what runs the library's own tests.

    Raises:
        UnsupportedError: a program is not installed.
    """
    out_of_tree = build.system in ("cmake", "meson")
    command = build.tests
    if not command:
        usual = {
            "cmake": ("ctest", "--output-on-failure", "-j", str(jobs)),
            "meson": ("meson", "test", "--print-errorlogs"),
        }
        command = usual.get(build.system, ("make", "check"))
    program = command[0]
    if "/" not in program:
        program = programs.need(program)
    return Step(
        phase="testing", command=(program, *command[1:]), cwd=place.build if out_of_tree else place.directory
    )
