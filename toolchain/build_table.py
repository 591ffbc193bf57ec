"""The table [build] of visget.toml: how sources become one module, by visget itself or by the library's build system.

Invariant: a Build holds only keys that its system knows; a key that would do nothing is refused, never ignored. Every
key is described in docs/reference/visget-toml.md, the systems in docs/spec/front-end.md, section 9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from visget.toolchain.flags import flag_problem, macro_problem
from visget.toolchain.toml_table import Table, suggest

System: TypeAlias = Literal["sources", "cmake", "autotools", "meson", "make"]
Language: TypeAlias = Literal["auto", "c", "c++"]
FloatingPoint: TypeAlias = Literal["contract", "strict", "fast"]
FloatCast: TypeAlias = Literal["saturate", "native"]
Cleanup: TypeAlias = Literal["light", "none"]

SYSTEMS: tuple[System, ...] = ("sources", "cmake", "autotools", "meson", "make")
_STANDARDS = tuple(
    [f"{kind}{year}" for kind in ("c", "gnu") for year in ("89", "90", "99", "11", "17", "23", "2x", "2y")]
    + [f"{kind}++{year}" for kind in ("c", "gnu") for year in ("98", "03", "11", "14", "17", "20", "23", "26")]
)
_OF_SOURCES = ("sources", "exclude", "language", "standard", "exceptions", "rtti")
_OF_SYSTEMS = ("library", "directory", "configure", "targets", "install", "tests")
_VARIABLE = re.compile(r"[A-Za-z_][\w.-]*=.*", re.DOTALL)
# What the build system is told by visget, and what would make it use another compiler.
_TAKEN: Mapping[str, tuple[str, ...]] = {
    "cmake": (
        r"-G.*", r"-[SB].*", r"-DCMAKE_(C|CXX)_COMPILER(:\w+)?=.*", r"-DCMAKE_TOOLCHAIN_FILE(:\w+)?=.*", r"--build.*",
        r"--install.*", r"-P.*", r"-E.*",
    ),
    "autotools": (r"--host(=.*)?", r"--target(=.*)?", r"(CC|CXX)=.*", r"--cache-file=.*", r"-C"),
    "meson": (r"--cross-file.*", r"--native-file.*", r"setup", r"compile"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """The table [build]: how the sources become one module. Paths are relative to the source tree."""

    system: System = "sources"
    """Who compiles: visget itself ("sources"), or the library's own build system."""
    sources: tuple[str, ...] = ()
    """Patterns of the files to compile; for the system "sources" only."""
    exclude: tuple[str, ...] = ()
    """Patterns of files that are not compiled."""
    include: tuple[str, ...] = ()
    """Directories in which #include looks, in order; for build systems, where the public headers are looked for."""
    language: Language = "auto"
    """The language of all files, or "auto" to go by their suffixes."""
    defines: tuple[str, ...] = ()
    """Macros, ``NAME`` or ``NAME=VALUE``, in the order of the file."""
    flags: tuple[str, ...] = ()
    """Further compiler flags, all of them allowed."""
    standard: str | None = None
    """The standard of the language, such as "gnu17"; None leaves it to the compiler."""
    floating_point: FloatingPoint = "contract"
    """What the optimiser may do to floating-point arithmetic."""
    float_cast: FloatCast = "saturate"
    """Whether an out-of-range conversion from floating point has one answer everywhere."""
    exceptions: bool = True
    """Whether C++ sources may throw; for the system "sources" only."""
    rtti: bool = True
    """Whether C++ sources have typeid and dynamic_cast; for the system "sources" only."""
    cleanup: Cleanup = "light"
    """How much the module is tidied before it is packed."""
    library: tuple[str, ...] = ()
    """Patterns of the archives, shared libraries and objects whose bitcode is the package."""
    directory: str = ""
    """The directory with CMakeLists.txt, configure, meson.build or Makefile."""
    configure: tuple[str, ...] = ()
    """Arguments of cmake, configure or meson; for make, variables."""
    targets: tuple[str, ...] = ()
    """What is built; empty for the build system's default."""
    install: bool = False
    """Whether the library's install target is run, into a directory of the build."""
    tests: tuple[str, ...] = ()
    """The command that ``visget build --test`` runs in the build directory; empty for the system's usual one."""


def parse_build(table: Table, *, given: bool = False) -> Build:
    """Read the table [build].

    Args:
        table: the table.
        given: whether something else than this table says what is compiled.

    Raises:
        UsageError: a key is missing, unknown, or does not belong to the system.
    """
    system = cast("System", table.choice("system", SYSTEMS, "sources"))
    for key in () if given else _OF_SYSTEMS if system == "sources" else _OF_SOURCES:
        if key in table:
            table.fail(key, *_misplaced(system, key))
    if not given:
        table.require(*(("sources", '["src/*.c"]') if system == "sources" else ("library", '["libmylib.a"]')))
    standard = table.text("standard", '"gnu17"')
    if standard is not None and standard not in _STANDARDS:
        table.fail("standard", f"{standard[:40]!r} is no standard of C or C++", suggest(standard, _STANDARDS))
    build = Build(
        system=system,
        sources=_sources(table),
        exclude=table.paths("exclude", '["src/test_*.c"]'),
        include=table.paths("include", '["include"]'),
        language=cast("Language", table.choice("language", ("auto", "c", "c++"), "auto")),
        defines=_defines(table),
        flags=_flags(table),
        standard=standard,
        floating_point=cast(
            "FloatingPoint", table.choice("floating-point", ("contract", "strict", "fast"), "contract")
        ),
        float_cast=cast("FloatCast", table.choice("float-cast", ("saturate", "native"), "saturate")),
        exceptions=table.get("exceptions", bool, "false") is not False,
        rtti=table.get("rtti", bool, "false") is not False,
        cleanup=cast("Cleanup", table.choice("cleanup", ("light", "none"), "light")),
        library=_library(table),
        directory=table.path("directory", '"build/cmake"') or "",
        configure=_configure(table, system),
        targets=_targets(table),
        install=bool(table.get("install", bool, "true")),
        tests=table.texts("tests", '["make", "check"]'),
    )
    table.done()
    if build.standard and build.language != "auto" and ("++" in build.standard) != (build.language == "c++"):
        table.fail("standard", f"{build.standard!r} is not a standard of {build.language.upper()}")
    return build


def _misplaced(system: System, key: str) -> tuple[str, str]:
    if system == "sources":
        others = ", ".join(f'"{name}"' for name in SYSTEMS[1:])
        return (
            "belongs to a build system, but visget itself compiles here",
            f"name the build system with system = {others}, or remove the key",
        )
    remedy = {
        "standard": 'leave it to the build system, or pass it a flag with flags = ["-std=..."]',
        "sources": "name what is taken from the build with library",
        "exclude": "name what is taken from the build with library",
    }
    return f"{system} itself knows this", remedy.get(key, "remove the key")


def _sources(table: Table) -> tuple[str, ...]:
    sources = table.paths("sources", '["src/*.c"]')
    if "sources" in table and not sources:
        table.fail("sources", "names no file", 'write sources = ["src/*.c"]')
    return sources


def _library(table: Table) -> tuple[str, ...]:
    if isinstance(table.peek("library"), str):
        single = table.path("library", '"libmylib.a"')
        return (single,) if single else ()
    library = table.paths("library", '["libmylib.a"]')
    if "library" in table and not library:
        table.fail("library", "names no file", 'write library = ["libmylib.a"]')
    return library


def _configure(table: Table, system: System) -> tuple[str, ...]:
    arguments = table.texts("configure", '["-DBUILD_TESTING=OFF"]')
    for index, argument in enumerate(arguments):
        place = (*table.place, "configure", index)
        if any(re.fullmatch(pattern, argument) for pattern in _TAKEN.get(system, ())):
            table.document.fail(
                place,
                f"{argument[:60]!r} is what visget itself tells {system}",
                "remove it; the compiler, the directories and the target are visget's",
            )
        if system == "make" and not _VARIABLE.fullmatch(argument):
            table.document.fail(
                place, f"{argument[:60]!r} is no variable", 'make takes NAME=VALUE here; goals belong into "targets"'
            )
    return arguments


def _targets(table: Table) -> tuple[str, ...]:
    targets = table.texts("targets", '["mylib"]')
    for index, target in enumerate(targets):
        if target.startswith("-"):
            table.document.fail(
                (*table.place, "targets", index),
                f"{target[:60]!r} is an option, not a target",
                "arguments belong into configure",
            )
    return targets


def _flags(table: Table) -> tuple[str, ...]:
    flags = table.texts("flags", '["-fno-strict-aliasing"]')
    for index, flag in enumerate(flags):
        problem = flag_problem(flag)
        if problem is not None:
            table.document.fail((*table.place, "flags", index), *problem)
    return flags


def _defines(table: Table) -> tuple[str, ...]:
    if isinstance(table.peek("defines"), list):
        return _listed_defines(table)
    macros: list[str] = []
    defines = table.table("defines")
    for name in defines:
        value = defines.peek(name)
        if value is False or not isinstance(value, str | int):
            defines.fail(name, "expected a string, an integer or true", "leave a macro out to leave it undefined")
        text = "" if value is True else f"={value}"
        problem = macro_problem(name) or _value_problem(text)
        if problem is not None:
            defines.fail(name, *problem)
        macros.append(name + text)
    return tuple(macros)


def _listed_defines(table: Table) -> tuple[str, ...]:
    texts = table.texts("defines", '["NDEBUG", "LEVEL=2"]')
    names = [text.partition("=")[0] for text in texts]
    for index, text in enumerate(texts):
        problem = macro_problem(names[index]) or _value_problem(text)
        if problem is None and names[index] in names[:index]:
            problem = (f"{names[index]} is defined twice", "remove one of the two")
        if problem is not None:
            table.document.fail((*table.place, "defines", index), *problem)
    return texts


def _value_problem(value: str) -> tuple[str, str] | None:
    if value and not value.isprintable():
        return "the value of a macro is one line without control characters", "write it without them"
    return None
