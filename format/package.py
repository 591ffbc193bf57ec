"""A package: a container with its digest, opened once; and the same after its signature was verified.

Invariant: only verify_package() can make a VerifiedPackage, so a function that takes one cannot be handed anything
whose publisher is unknown. The specs are docs/spec/container.md and docs/spec/signature.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from visget.digest import Digest, digest_bytes
from visget.errors import FormatError, TrustError
from visget.format.container import Container, read_container
from visget.format.headers import parse_headers
from visget.format.keys import KeyId, PublicKey
from visget.format.manifest import Manifest, check_supported
from visget.format.prototypes import Api
from visget.format.signing import Statement, verify_envelope
from visget.format.vectorfit import misfits
from visget.format.vectors import VectorSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package whose structure is right; nothing is known yet about who published it."""

    data: bytes
    """The whole file."""
    digest: Digest
    """Its digest: the identity of the package."""
    container: Container
    """The same, taken apart."""

    @property
    def manifest(self) -> Manifest:
        """What the package says about itself."""
        return self.container.manifest

    @property
    def unknown_sections(self) -> tuple[str, ...]:
        """Optional sections that this version of visget does not know and ignores."""
        return self.container.unknown

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.manifest.name} {self.manifest.version} {self.digest[:12]}>"

    def section(self, kind: str) -> bytes | None:
        """Return the section `kind`, or None when the package has none.

        Raises:
            FormatError: it is damaged.
        """
        return self.container.section(kind)

    def bitcode(self) -> bytes:
        """Return the module.

        Raises:
            FormatError: it is damaged.
        """
        return self._required("bitcode")

    def api(self) -> Api:
        """Return the functions and types of the package.

        Raises:
            FormatError: the section is damaged or malformed.
        """
        return Api.parse(self._required("api"))

    def headers(self) -> dict[str, str]:
        """Return the public headers by include name; empty when there are none.

        Raises:
            FormatError: the section is damaged or malformed.
        """
        data = self.section("headers")
        return {} if data is None else parse_headers(data)

    def vectors(self) -> VectorSet | None:
        """Return the test vectors, or None when the package has none.

        Raises:
            FormatError: the section is damaged or malformed.
        """
        data = self.section("vectors")
        return None if data is None else VectorSet.parse(data)

    def text(self, kind: str) -> str | None:
        """Return the section "license" or "readme" as text; it may hold any characters.

        Raises:
            FormatError: it is damaged or not UTF-8.
        """
        data = self.section(kind)
        try:
            return None if data is None else data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(f"the section {kind} is not UTF-8 (byte {error.start})") from error

    def _required(self, kind: str) -> bytes:
        data = self.section(kind)
        if data is None:
            raise FormatError(f"the package has no section {kind}")
        return data


def open_package(data: bytes) -> Package:
    """Open the file content `data`; no section is decompressed.

    Raises:
        FormatError: it is malformed.
        UnsupportedError: it needs a newer visget.
    """
    container = read_container(data)
    check_supported(container.manifest)
    return Package(data=data, digest=digest_bytes(data), container=container)


def check_contents(package: Package) -> None:
    """Read every known section of `package` and check that they agree with the manifest and with each other.

    open_package() leaves that out, because it would decompress everything. The author's side calls this before
    anybody is given the package; a user's side calls it between the signature and the store.

    Raises:
        FormatError: a section is damaged or malformed, or contradicts another.
    """
    try:
        _check_contents(package)
    except FormatError as error:
        error.where = error.where or f"{package.manifest.name} {package.manifest.version}"
        raise


def _check_contents(package: Package) -> None:
    for kind in package.container.stored:
        package.container.check(kind)
    api = package.api()
    if strange := sorted({function.name for function in api.functions} - set(package.manifest.exports)):
        raise FormatError(f"api describes the function {strange[0]!r}, which is not among the exports")
    package.headers()
    package.text("license")
    package.text("readme")
    vectors = package.vectors()
    for misfit in misfits(vectors, api) if vectors else ():
        raise FormatError(misfit.message, where=misfit.where, hint=misfit.hint)


_SEAL = object()


class VerifiedPackage:
    """A package that keys trusted for its name have signed."""

    __slots__ = ("package", "signers")

    package: Package
    """The package."""
    signers: tuple[KeyId, ...]
    """The trusted keys that signed it, sorted."""

    def __init__(self, seal: object, package: Package, signers: tuple[KeyId, ...]) -> None:
        if seal is not _SEAL:
            raise TypeError("only verify_package() makes a VerifiedPackage")
        object.__setattr__(self, "package", package)
        object.__setattr__(self, "signers", signers)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __reduce__(self) -> str:
        raise TypeError("a VerifiedPackage cannot be pickled or copied")

    def __repr__(self) -> str:
        manifest = self.package.manifest
        return f"<VerifiedPackage {manifest.name} {manifest.version} by {', '.join(self.signers)}>"


def verify_package(
    package: Package, envelope: bytes, trusted: Iterable[PublicKey], *, threshold: int = 1
) -> VerifiedPackage:
    """Check that trusted keys have signed exactly this package.

    Args:
        package: the package.
        envelope: the content of its ``.vis.dsse`` file.
        trusted: the keys that may publish a package of this name.
        threshold: how many of them must have signed.

    Raises:
        FormatError: the envelope is malformed.
        TrustError: too few trusted keys signed it, or they signed something else.
    """
    statement, signers = verify_envelope(envelope, trusted, threshold=threshold)
    expected = Statement.of(package)
    if statement != expected:
        manifest = package.manifest
        raise TrustError(
            f"the signature is not about this package: it states {statement.name} {statement.version} with the "
            f"digest {statement.digest}, the file is {manifest.name} {manifest.version} with {package.digest}",
            where=expected.subject,
            details={"expected": statement.digest, "actual": package.digest},
        )
    return VerifiedPackage(_SEAL, package, signers)
