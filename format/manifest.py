"""The manifest: what a package says about itself and about each of its sections.

Invariant: a Manifest that parse() returned is in normal form in every field, and parse(encode(m)) == m. The spec is
docs/spec/manifest.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from packaging.version import Version

from visget.digest import Digest, parse_digest
from visget.errors import UnsupportedError, UsageError
from visget.format.plaintext import clean_line
from visget.format.strictjson import INTEGER_LIMIT, Reader, dumps, loads
from visget.names import SYSTEM_LIBRARIES, PackageName, Requirement, parse_name, parse_version

MANIFEST_FORMAT = "visget-manifest-1"
MANIFEST_LIMIT = 1 << 20
SUMMARY_LIMIT = 200
SECTIONS_LIMIT = 64
PROFILE = "vis-1"
"""The VIS profile that this version of visget reads and writes."""
EPOCH = 22
"""The newest bitcode epoch (LLVM major version) that this version of visget reads; it writes the same."""
PLATFORM = 2
"""The newest platform interface (docs/spec/platform.md) that this version of visget knows."""

FpContract = Literal["off", "on", "fast"]
Cleanup = Literal["light", "none"]

_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\Z")
_LICENSE = re.compile(r"[A-Za-z0-9.+() -]{1,256}\Z")
_HOMEPAGE = re.compile(r"https?://[!-~]{1,500}\Z")
_PROFILE = re.compile(r"vis-[1-9][0-9]{0,2}\Z")
_KIND = re.compile(r"[a-z][a-z0-9-]{0,31}\Z")
LIBRARY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+.-]{0,63}\Z")
_SIGNATURE = re.compile(r"[A-Za-z0-9_%.,()\[\]{}<> ]{1,1023}\)\Z")
_KEYS = (
    "name version summary license homepage profile epoch exports imports dependencies fp_contract constructors "
    "cleanup provenance sections"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What the package was built from, and with what."""

    compiler: str
    """The compiler and its version, such as ``clang 22.1.8``."""
    flags: tuple[str, ...]
    """The compiler options that shape code, without paths."""
    source_digest: Digest
    """The digest of the source archive, or of the list of source files where the sources were local."""
    source: str | None = None
    """Where the sources came from, such as ``pypi:xxhash==4.1.0``; None for local files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionEntry:
    """One section of the container, as the manifest describes it."""

    kind: str
    """What it is; the kinds are listed in docs/spec/container.md."""
    critical: bool
    """Whether a reader that does not know the kind must refuse the package."""
    size: int
    """Bytes when decompressed."""
    sha256: Digest
    """The digest of the decompressed bytes."""
    stored_size: int
    """Bytes in the container."""
    stored_sha256: Digest
    """The digest of the bytes in the container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a module takes from one of the packages that it depends on."""

    package: PackageName
    """The package."""
    symbols: tuple[tuple[str, str], ...]
    """Each function with its LLVM type, such as ``("crc32", "i64 (i64, ptr, i32)")``, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a package says about itself."""

    name: PackageName
    """The package's name."""
    version: Version
    """Its version."""
    summary: str
    """One line that says what it is."""
    license: str
    """An SPDX licence expression."""
    homepage: str | None = None
    """An http or https address for people."""
    profile: str = PROFILE
    """The VIS profile of the module."""
    epoch: int = EPOCH
    """The LLVM major version whose bitcode writer made the module."""
    exports: tuple[str, ...] = ()
    """The symbols it defines for others, sorted."""
    imports: tuple[str, ...] = ()
    """The symbols it needs from the C library, sorted."""
    dependencies: tuple[str, ...] = ()
    """Other packages it needs, as requirements, sorted by name."""
    fp_contract: FpContract = "on"
    """Whether a product and a sum may be fused: never, within a statement, or anywhere."""
    constructors: bool = False
    """Whether code runs when the library is loaded."""
    cleanup: Cleanup = "light"
    """Whether the module was cleaned before it was packed."""
    provenance: Provenance
    """What it was built from."""
    sections: tuple[SectionEntry, ...] = ()
    """The sections of the container in their order."""
    platform: int = 1
    """The platform interface that the module needs."""
    library: str | None = None
    """The name by which C programs link it, where that is not the package's: ``z`` for zlib."""
    uses: tuple[Use, ...] = ()
    """What the module takes from its dependencies, sorted by package."""

    @property
    def used(self) -> dict[str, str]:
        """The functions that the module takes from its dependencies, with their LLVM types."""
        return {symbol: signature for use in self.uses for symbol, signature in use.symbols}

    @property
    def link_name(self) -> str:
        """The name by which C programs link it (``-lNAME``)."""
        return self.library or self.name

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Manifest:
        """Parse the manifest part of a container.

        Raises:
            FormatError: it breaks a rule of docs/spec/manifest.md.
            UnsupportedError: it is of a later format.
        """
        reader = Reader(loads(data, what="the manifest", limit=MANIFEST_LIMIT), "manifest")
        if (format_ := reader.line("format")) != MANIFEST_FORMAT:
            if re.fullmatch(r"visget-manifest-[1-9][0-9]{0,3}", format_):
                raise _too_new(f"the package has a {format_}; this visget knows {MANIFEST_FORMAT}")
            raise reader.fail("format", f"must be {MANIFEST_FORMAT!r}")
        manifest = cls(
            name=_name(reader),
            version=_version(reader),
            summary=reader.line("summary", SUMMARY_LIMIT),
            license=_matching(reader, "license", _LICENSE, "an SPDX licence expression"),
            homepage=_homepage(reader),
            profile=_matching(reader, "profile", _PROFILE, "the name of a VIS profile"),
            epoch=reader.integer("epoch", 1, 999),
            exports=_symbols(reader, "exports"),
            imports=_symbols(reader, "imports"),
            dependencies=_dependencies(reader),
            fp_contract=_fp_contract(reader),
            constructors=reader.boolean("constructors"),
            cleanup="none" if reader.choice("cleanup", ("light", "none")) == "none" else "light",
            provenance=_provenance(reader.object("provenance")),
            sections=_sections(reader),
            platform=reader.integer("platform", 2, 999) if "platform" in reader else 1,
            library=_library(reader) if "library" in reader else None,
            uses=_uses(reader.object("uses")) if "uses" in reader else (),
        )
        reader.done()
        _check_uses(manifest, reader)
        if both := sorted(set(manifest.exports) & set(manifest.imports)):
            raise reader.fail("imports", f"holds {both[0]!r}, which is among the exports too")
        return manifest

    def encode(self) -> bytes:
        """Return the manifest as strict JSON."""
        value: dict[str, object] = {name: getattr(self, name) for name in _KEYS.split()}
        value["format"] = MANIFEST_FORMAT
        value["version"] = str(self.version)
        value["provenance"] = {
            name: getattr(self.provenance, name) for name in ("compiler", "flags", "source_digest", "source")
        }
        value["sections"] = [
            {
                "kind": entry.kind,
                "critical": entry.critical,
                "size": entry.size,
                "sha256": entry.sha256,
                "stored_size": entry.stored_size,
                "stored_sha256": entry.stored_sha256,
            }
            for entry in self.sections
        ]
        # Absent is the one spelling of what every package was before these keys were there.
        if self.platform > 1:
            value["platform"] = self.platform
        if self.library is not None and self.library != self.name:
            value["library"] = self.library
        if self.uses:
            value["uses"] = {use.package: dict(use.symbols) for use in self.uses}
        return dumps(value)


def check_supported(manifest: Manifest) -> None:
    """Refuse a package that needs a newer visget than this one.

    Raises:
        UnsupportedError: its VIS profile, bitcode epoch or platform interface is unknown here.
    """
    if manifest.profile != PROFILE:
        raise _too_new(
            f"{manifest.name} {manifest.version} is written for the profile {manifest.profile}; "
            f"this visget knows {PROFILE}"
        )
    if manifest.epoch > EPOCH:
        raise _too_new(
            f"{manifest.name} {manifest.version} holds bitcode of LLVM {manifest.epoch}; "
            f"this visget reads LLVM {EPOCH} and older"
        )
    if manifest.platform > PLATFORM:
        raise _too_new(
            f"{manifest.name} {manifest.version} needs platform interface {manifest.platform}; "
            f"this visget knows {PLATFORM}"
        )


def parse_license(text: str) -> str:
    """Return the SPDX expression `text` in its normal form; for the author's side.

    Raises:
        UsageError: SPDX does not know it.
    """
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        return str(canonicalize_license_expression(text))
    except InvalidLicenseExpression as error:
        raise UsageError(
            f"{clean_line(text)[:80]!r} is not an SPDX licence expression",
            hint="write an identifier of https://spdx.org/licenses, such as BSD-2-Clause, or MIT OR Apache-2.0; "
            "LicenseRef-NAME for a licence that is not listed there",
        ) from error


def _too_new(why: str) -> UnsupportedError:
    return UnsupportedError(why, hint="a newer visget can use it: pip install -U visget")


def _matching(reader: Reader, name: str, pattern: re.Pattern[str], what: str) -> str:
    value = reader.line(name)
    if not pattern.match(value):
        raise reader.fail(name, f"must be {what}, not {value[:80]!r}")
    return value


def _name(reader: Reader) -> PackageName:
    try:
        return parse_name(reader.line("name"))
    except UsageError as error:
        raise reader.fail("name", f"is refused: {error.message}") from error


def _version(reader: Reader) -> Version:
    text = reader.line("version", 128)
    try:
        version = parse_version(text)
    except UsageError as error:
        raise reader.fail("version", f"is refused: {error.message}") from error
    # One version has one spelling, so that one package has one name everywhere.
    if str(version) != text:
        raise reader.fail("version", f"must be in normal form: {str(version)!r}, not {text!r}")
    return version


def _homepage(reader: Reader) -> str | None:
    if reader.any("homepage") is None:
        return None
    return _matching(reader, "homepage", _HOMEPAGE, "an http or https address")


def _fp_contract(reader: Reader) -> FpContract:
    match reader.choice("fp_contract", ("off", "on", "fast")):
        case "off":
            return "off"
        case "fast":
            return "fast"
        case _:
            return "on"


def _symbols(reader: Reader, name: str) -> tuple[str, ...]:
    values = reader.lines(name, 256)
    for number, value in enumerate(values):
        if not _SYMBOL.match(value):
            raise reader.fail(f"{name}[{number}]", f"must be a C identifier, not {value[:80]!r}")
        if number and values[number - 1] >= value:
            raise reader.fail(f"{name}[{number}]", "is not in sorted order, or is there twice")
    return values


def _dependencies(reader: Reader) -> tuple[str, ...]:
    values = reader.lines("dependencies", 256)
    names: list[str] = []
    for number, value in enumerate(values):
        place = f"dependencies[{number}]"
        try:
            requirement = Requirement.parse(value)
        except UsageError as error:
            raise reader.fail(place, f"is refused: {error.message}") from error
        if str(requirement) != value:
            raise reader.fail(place, f"must be in normal form: {str(requirement)!r}, not {value!r}")
        if names and names[-1] >= requirement.name:
            raise reader.fail(place, "is not in sorted order, or names a package twice")
        names.append(requirement.name)
    return values


def _library(reader: Reader) -> str:
    library = _matching(reader, "library", LIBRARY_NAME, "a name as after -l")
    if library in SYSTEM_LIBRARIES:
        raise reader.fail("library", f"is {library!r}, the name of a library of the system")
    if library == reader.any("name"):
        raise reader.fail("library", "is the package's name, and then is left out")
    return library


def _uses(reader: Reader) -> tuple[Use, ...]:
    uses = []
    for name in sorted(reader.names()):
        place = reader.object(name)
        symbols = []
        for symbol in sorted(place.names()):
            if not _SYMBOL.match(symbol):
                raise place.fail(None, f"must have C identifiers as keys, not {symbol[:80]!r}")
            symbols.append((symbol, _matching(place, symbol, _SIGNATURE, "the LLVM type of a function")))
        if not symbols:
            raise reader.fail(name, "is empty, and then is left out")
        uses.append(Use(package=PackageName(name), symbols=tuple(symbols)))
    if not uses:
        raise reader.fail(None, "is empty, and then is left out")
    return tuple(uses)


def _check_uses(manifest: Manifest, reader: Reader) -> None:
    needed = {Requirement.parse(text).name for text in manifest.dependencies}
    if manifest.name in needed:
        raise reader.fail("dependencies", "names the package itself")
    owners: dict[str, str] = {}
    for use in manifest.uses:
        if use.package not in needed:
            raise reader.fail("uses", f"names {use.package!r}, which is not among the dependencies")
        for symbol, _ in use.symbols:
            if symbol in manifest.exports or symbol in manifest.imports:
                raise reader.fail("uses", f"holds {symbol!r}, which is among the exports or the imports too")
            if symbol in owners:
                raise reader.fail("uses", f"holds {symbol!r} of {owners[symbol]} and of {use.package}")
            owners[symbol] = use.package


def _digest(reader: Reader, name: str) -> Digest:
    try:
        return parse_digest(reader.line(name))
    except ValueError as error:
        raise reader.fail(name, f"is {error}") from error


def _provenance(reader: Reader) -> Provenance:
    provenance = Provenance(
        compiler=reader.line("compiler", 200),
        flags=reader.lines("flags"),
        source_digest=_digest(reader, "source_digest"),
        source=reader.nullable_line("source", 1000),
    )
    reader.done()
    return provenance


def _sections(reader: Reader) -> tuple[SectionEntry, ...]:
    entries: list[SectionEntry] = []
    for item in reader.objects("sections"):
        entry = SectionEntry(
            kind=_matching(item, "kind", _KIND, "the kind of a section"),
            critical=item.boolean("critical"),
            size=item.integer("size", 1, INTEGER_LIMIT),
            sha256=_digest(item, "sha256"),
            stored_size=item.integer("stored_size", 1, INTEGER_LIMIT),
            stored_sha256=_digest(item, "stored_sha256"),
        )
        item.done()
        if any(entry.kind == other.kind for other in entries):
            raise item.fail("kind", f"is {entry.kind!r} a second time")
        entries.append(entry)
        if len(entries) > SECTIONS_LIMIT:
            raise reader.fail("sections", f"has more than {SECTIONS_LIMIT} elements")
    return tuple(entries)
