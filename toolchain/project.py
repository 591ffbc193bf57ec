"""visget.toml: what an author says about a package, parsed once into values.

Invariant: a Project is complete and consistent as far as the file alone can tell; whether the named files exist is
found out in the source tree (visget/toolchain/paths.py). Every key is described in docs/reference/visget-toml.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import Version

from visget.errors import UsageError
from visget.format.manifest import LIBRARY_NAME
from visget.format.vectors import VectorSet
from visget.names import SYSTEM_LIBRARIES, PackageName, parse_name, parse_version
from visget.toolchain.build_table import Build, parse_build
from visget.toolchain.origin import Source, parse_source
from visget.toolchain.toml_lines import Place
from visget.toolchain.toml_table import Document, Table, read_document, show_place

PROJECT_FILE = "visget.toml"

_TABLES = ("package", "source", "build", "dependencies", "exports", "vector", "bench")
_SUMMARY_LIMIT = 200
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
    library: str | None = None
    """The name by which C programs link it, where that is not the package's."""
    readme: str | None = None
    """A text file, beside visget.toml or in the source tree."""
    license_files: tuple[str, ...] = ()
    """The files with the text of the licence, beside visget.toml or in the source tree."""


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
class Dependency:
    """An entry of the table [dependencies]: a package that this one calls."""

    name: PackageName
    """Its name."""
    specifier: str
    """Which of its versions will do, in the notation of PEP 440; empty for any."""


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
    dependencies: tuple[Dependency, ...] = ()
    """The packages whose functions this one calls, sorted by name."""
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


def read_project(path: Path, *, given: bool = False, headers: bool = False) -> Project:
    """Read `path`, which is a visget.toml or a directory that holds one.

    Args:
        path: the file or directory.
        given: whether something else than the table [build] says what is compiled.
        headers: whether something else than the table [exports] names the public headers.

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
        build=parse_build(document.table("build"), given=given),
        dependencies=_dependencies(document.table("dependencies")),
        exports=_exports(document.table("exports"), given=headers),
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
        library=_library(table, name),
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


def _library(table: Table, name: str) -> str | None:
    text = table.text("library", '"z"', limit=64)
    if text is not None and not LIBRARY_NAME.match(text):
        table.fail("library", f"{text[:60]!r} is no name for a linker's -l", 'write what stands after -l, such as "z"')
    if text in SYSTEM_LIBRARIES:
        table.fail("library", f"lib{text} belongs to the system", "give the library a name of its own")
    return None if text == name else text


def _license_files(table: Table) -> tuple[str, ...]:
    if isinstance(table.peek("license-file"), str):
        single = table.path("license-file", '"LICENSE"')
        return (single,) if single else ()
    return table.paths("license-file", '"LICENSE"')


def _dependencies(table: Table) -> tuple[Dependency, ...]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    found: dict[str, Dependency] = {}
    for key in table:
        try:
            name = parse_name(key)
        except UsageError as error:
            table.parsed(key, error)
        text = table.get(key, str, '">=1.2,<2"') or ""
        try:
            specifier = str(SpecifierSet("" if text.strip() == "*" else text))
        except InvalidSpecifier:
            table.fail(key, f"{text[:60]!r} is no range of versions", 'write one such as ">=1.2,<2", "==1.3.1" or "*"')
        if name in found:
            table.fail(key, f"{name} is there twice", "remove one of the two")
        found[name] = Dependency(name=name, specifier=specifier)
    return tuple(found[name] for name in sorted(found))


def _exports(table: Table, *, given: bool) -> Exports:
    if not given:
        table.require("headers", '["my_library.h"]')
    headers = table.paths("headers", '["my_library.h"]')
    if not headers and not given:
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
