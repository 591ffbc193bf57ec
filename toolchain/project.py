"""visget.toml: what an author says about a package, parsed once into values.

Invariant: a Project is complete and consistent as far as the file alone can tell; whether the named files exist is
found out in the source tree (visget/toolchain/paths.py). Every key is described in docs/reference/visget-toml.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, cast

from packaging.version import Version

from visget.errors import UsageError
from visget.format.vectors import VectorSet
from visget.names import PackageName, parse_name, parse_version
from visget.toolchain.flags import flag_problem, macro_problem
from visget.toolchain.origin import Source, parse_source
from visget.toolchain.toml_lines import Place
from visget.toolchain.toml_table import Document, Table, read_document, show_place, suggest

PROJECT_FILE = "visget.toml"

Language: TypeAlias = Literal["auto", "c", "c++"]
FloatingPoint: TypeAlias = Literal["contract", "strict", "fast"]
FloatCast: TypeAlias = Literal["saturate", "native"]
Cleanup: TypeAlias = Literal["light", "none"]

_TABLES = ("package", "source", "build", "exports", "vector", "bench")
_SUMMARY_LIMIT = 200
_STANDARDS = tuple(
    [f"{kind}{year}" for kind in ("c", "gnu") for year in ("89", "90", "99", "11", "17", "23", "2x", "2y")]
    + [f"{kind}++{year}" for kind in ("c", "gnu") for year in ("98", "03", "11", "14", "17", "20", "23", "26")]
)
_SYMBOL_PATTERN = re.compile(r"[A-Za-z0-9_*?\[\]!]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageInfo:
    """The table [package]: what readers and registries see."""

    name: PackageName
    """The name under which the package is installed."""
    version: Version
    """The version of the package."""
    summary: str
    """One line for lists and searches."""
    license: str
    """An SPDX expression in its canonical spelling."""
    homepage: str | None = None
    """Where readers find more."""
    readme: str | None = None
    """A text file, beside visget.toml or in the source tree."""
    license_files: tuple[str, ...] = ()
    """The files with the text of the licence, beside visget.toml or in the source tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """The table [build]: how the sources become one module. Paths are relative to the source tree."""

    sources: tuple[str, ...]
    """Patterns of the files to compile."""
    exclude: tuple[str, ...] = ()
    """Patterns of files that are not compiled."""
    include: tuple[str, ...] = ()
    """Directories in which #include looks, in order."""
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
    cleanup: Cleanup = "light"
    """How much the module is tidied before it is packed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exports:
    """The table [exports]: what the package offers."""

    headers: tuple[str, ...]
    """The public headers by the names under which programs include them."""
    functions: tuple[str, ...] = ("*",)
    """Patterns of the functions to export, among those that the headers declare."""
    exclude: tuple[str, ...] = ()
    """Patterns of functions that are not exported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One visget.toml."""

    path: Path
    """The file."""
    package: PackageInfo
    build: Build
    exports: Exports
    source: Source | None = None
    """Where the source tree comes from; None means the directory of the file itself."""
    vectors: VectorSet = VectorSet()  # noqa: RUF009 - a frozen value
    """The calls that an installed library must answer right."""
    benches: VectorSet = VectorSet()  # noqa: RUF009 - a frozen value
    """The calls that are timed when the build is tuned; they do not travel."""
    document: Document | None = field(default=None, compare=False, repr=False)
    """The text of the file, which knows its lines."""

    @property
    def directory(self) -> Path:
        """The directory of visget.toml."""
        return self.path.parent

    def where(self, *place: str | int) -> str:
        """Return ``file:line`` of a key: ``where("build", "sources", 0)``."""
        return str(self.path) if self.document is None else self.document.where(place)

    def wrong(self, place: Place, problem: str, hint: str | None = None) -> UsageError:
        """Return the error for the key at `place`."""
        key = show_place(place)
        return UsageError(f"{key}: {problem}", hint=hint, where=self.where(*place), details={"key": key})


def read_project(path: Path) -> Project:
    """Read `path`, which is a visget.toml or a directory that holds one.

    Raises:
        UsageError: it cannot be read, or says something wrong; file, line and key are named.
    """
    if path.is_dir():
        path = path / PROJECT_FILE
    elif not path.exists() and path.name != PROJECT_FILE:
        raise UsageError(
            "there is no such project",
            where=str(path),
            hint=f"give a directory with a {PROJECT_FILE}, or that file; `visget init` writes one",
        )
    document = read_document(path)
    # First, or a misspelt table would be reported as a missing one.
    document.only(_TABLES)
    document.require("package", "{ ... }")
    return Project(
        path=path,
        package=_package(document.table("package")),
        source=parse_source(document.table("source")) if "source" in document else None,
        build=_build(document.table("build")),
        exports=_exports(document.table("exports")),
        vectors=_vectors(document, "vector"),
        benches=_vectors(document, "bench"),
        document=document.document,
    )


def _package(table: Table) -> PackageInfo:
    try:
        name = parse_name(table.needed("name", '"my-library"'))
    except UsageError as error:
        if error.where:  # it has its place already
            raise
        table.parsed("name", error)
    try:
        version = parse_version(table.needed("version", '"1.0.0"'))
    except UsageError as error:
        if error.where:
            raise
        table.parsed("version", error)
    info = PackageInfo(
        name=name,
        version=version,
        summary=table.needed("summary", '"What it does, in one line"', limit=_SUMMARY_LIMIT),
        license=_license(table),
        homepage=_homepage(table),
        readme=table.path("readme", '"README.md"'),
        license_files=_license_files(table),
    )
    table.done()
    return info


def _license(table: Table) -> str:
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    text = table.needed("license", '"MIT"')
    try:
        return canonicalize_license_expression(text)
    except InvalidLicenseExpression:
        table.fail(
            "license",
            f"{text[:80]!r} is no SPDX licence expression",
            'write an SPDX identifier such as "MIT", "BSD-3-Clause" or "Zlib", or "LicenseRef-Something"',
        )


def _homepage(table: Table) -> str | None:
    text = table.text("homepage", '"https://..."')
    if text is not None and not re.fullmatch(r"https?://[^\s/]+\S*", text):
        table.fail("homepage", f"{text[:80]!r} is no http:// or https:// address")
    return text


def _license_files(table: Table) -> tuple[str, ...]:
    if isinstance(table.peek("license-file"), str):
        single = table.path("license-file", '"LICENSE"')
        return (single,) if single else ()
    return table.paths("license-file", '"LICENSE"')


def _build(table: Table) -> Build:
    table.require("sources", '["src/*.c"]')
    sources = table.paths("sources", '["src/*.c"]')
    if not sources:
        table.fail("sources", "names no file", 'write sources = ["src/*.c"]')
    standard = table.text("standard", '"gnu17"')
    if standard is not None and standard not in _STANDARDS:
        table.fail("standard", f"{standard[:40]!r} is no standard of C or C++", suggest(standard, _STANDARDS))
    build = Build(
        sources=sources,
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
        cleanup=cast("Cleanup", table.choice("cleanup", ("light", "none"), "light")),
    )
    table.done()
    if build.standard and build.language != "auto" and ("++" in build.standard) != (build.language == "c++"):
        table.fail("standard", f"{build.standard!r} is not a standard of {build.language.upper()}")
    return build


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


def _exports(table: Table) -> Exports:
    table.require("headers", '["my_library.h"]')
    headers = table.paths("headers", '["my_library.h"]')
    if not headers:
        table.fail("headers", "names no header", "the public headers tell which functions there are, and their types")
    for index, header in enumerate(headers):
        if "*" in header or "?" in header:
            table.document.fail(
                (*table.place, "headers", index),
                f"{header!r} is a pattern",
                "name each header as programs include it; their order is the order of inclusion",
            )
    exports = Exports(
        headers=headers,
        functions=_symbol_patterns(table, "functions") if "functions" in table else ("*",),
        exclude=_symbol_patterns(table, "exclude"),
    )
    table.done()
    return exports


def _symbol_patterns(table: Table, key: str) -> tuple[str, ...]:
    patterns = table.texts(key, '["mylib_*"]')
    for index, pattern in enumerate(patterns):
        if not _SYMBOL_PATTERN.fullmatch(pattern):
            table.document.fail(
                (*table.place, key, index),
                f"{pattern[:60]!r} is no pattern for function names",
                "use names of C functions, with * and ? for what varies",
            )
    if key == "functions" and not patterns:
        table.fail(key, "names no function", "leave it out to export every function of the headers")
    return patterns


def _vectors(document: Table, key: str) -> VectorSet:
    tables = document.get(key, list, "...")
    if tables is None:
        return VectorSet()
    try:
        return VectorSet.from_toml(tables, key=key)
    except UsageError as error:
        raise _placed(document, key, tables, error) from error


def _placed(document: Table, key: str, tables: Sequence[object], error: UsageError) -> UsageError:
    """Give an error of the vectors the line of the vector and step that it names (format/vectorjson.py)."""
    place: tuple[str | int, ...] = (key,)
    match = re.match(rf"{key} (?:(\d+)|'(.*)')(?:, step (\d+))?", error.where or error.message)
    if match is not None:
        names = [table.get("name") if isinstance(table, dict) else None for table in tables]
        index = int(match[1]) - 1 if match[1] else names.index(match[2]) if match[2] in names else None
        if index is not None:
            place = (key, index, *(("steps", int(match[3]) - 1) if match[3] else ()))
    return UsageError(
        error.message,
        hint=error.hint,
        where=document.document.where(place),
        details={**error.details, "key": error.where or key},
    )
