"""What ``visget info`` tells about a package, put together from the registry's index and the package itself.

Invariant: everything shown about the inside of a published package comes from bytes whose signature was verified;
for a file on disk nothing is verified and the description says so.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from visget.api import open_package_file
from visget.cache.environment import Environment
from visget.cache.store import Store
from visget.config import Settings, read_settings
from visget.errors import CacheError, FormatError, ResourceError
from visget.names import Requirement
from visget.obtain import obtain
from visget.progress import SILENT, Progress
from visget.wiring import machine_key

if TYPE_CHECKING:
    from visget.format.package import Package
    from visget.installer.receipt import Receipt


_ROUNDING = {
    "off": "strict: the same bits on every machine",
    "on": "contract: a product and a sum may be fused where the machine can",
    "fast": "fast: sums may be reordered",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A package, described."""

    package: Package
    """The package."""
    versions: tuple[str, ...]
    """All published versions, newest first; empty for a file."""
    owners: tuple[str, ...]
    """Ids of the keys that own the name; empty for a file."""
    signers: tuple[str, ...]
    """Ids of the keys that signed this version; empty for a file, whose signature is not checked."""
    here: tuple[Receipt, ...] = ()
    """How its artifacts in this store were made; empty when it is not installed."""

    @property
    def name(self) -> str:
        """The package's name."""
        return self.package.manifest.name

    @property
    def version(self) -> str:
        """The version described."""
        return str(self.package.manifest.version)

    @property
    def summary(self) -> str:
        """One line about it."""
        return self.package.manifest.summary

    @property
    def prototypes(self) -> list[str]:
        """The C prototype of every exported function."""
        return [function.prototype for function in self.package.api().functions]

    def facts(self) -> list[tuple[str, str]]:
        """Return label and text of each line that people see."""
        manifest = self.package.manifest
        vectors = self.package.vectors()
        made = manifest.provenance
        lines = [
            ("license", manifest.license),
            ("homepage", manifest.homepage or "-"),
            ("versions", ", ".join(self.versions) or "(a file, not published)"),
            ("owners", ", ".join(self.owners) or "-"),
            ("signed by", ", ".join(self.signers) or "(not checked)"),
            ("profile", f"{manifest.profile}, bitcode of LLVM {manifest.epoch}, platform {manifest.platform}"),
            ("rounding", _ROUNDING[manifest.fp_contract]),
            ("exports", f"{len(manifest.exports)}: {_some(manifest.exports)}"),
            ("imports", _some(manifest.imports) or "nothing"),
            ("links as", f"-l{manifest.link_name}"),
            ("dependencies", ", ".join(manifest.dependencies) or "none"),
            *((f"uses {use.package}", f"{len(use.symbols)}: {_some(tuple(name for name, _ in use.symbols))}")
              for use in manifest.uses),
            ("headers", ", ".join(self.package.headers()) or "none"),
            ("answer check", f"test vectors: {len(vectors.vectors)}" if vectors else "no test vectors"),
            ("built from", made.source or "local sources"),
            ("built by", made.compiler),
            ("size", f"{len(self.package.data):,} bytes"),
            ("sha256", self.package.digest),
        ]
        return [(label, text) for label, text in lines if text]

    def as_dict(self) -> dict[str, object]:
        """Return the description as the JSON object that ``--json`` prints."""
        manifest = self.package.manifest
        vectors = self.package.vectors()
        return {
            "name": self.name, "version": self.version, "summary": self.summary, "license": manifest.license,
            "homepage": manifest.homepage, "versions": list(self.versions), "owners": list(self.owners),
            "signers": list(self.signers), "profile": manifest.profile, "epoch": manifest.epoch,
            "fp_contract": manifest.fp_contract, "exports": list(manifest.exports),
            "imports": list(manifest.imports), "dependencies": list(manifest.dependencies),
            "uses": {use.package: dict(use.symbols) for use in manifest.uses}, "platform": manifest.platform,
            "library": manifest.link_name,
            "prototypes": self.prototypes, "headers": sorted(self.package.headers()),
            "vectors": len(vectors.vectors) if vectors else 0, "source": manifest.provenance.source,
            "compiler": manifest.provenance.compiler, "size": len(self.package.data), "digest": self.package.digest,
            "sections": {entry.kind: entry.stored_size for entry in manifest.sections},
            "installed": [
                {"target": str(receipt.target), "compiler": receipt.compiler, "level": receipt.level,
                 "linker": receipt.linker, "libc": receipt.libc, "sandbox": receipt.sandbox,
                 "answers": receipt.answers, "vectors": receipt.vectors, "reason": receipt.reason,
                 "milliseconds": dict(receipt.milliseconds), "sizes": dict(receipt.sizes), "linking": receipt.linking,
                 "dependencies": {item.name: item.version for item in receipt.dependencies}}
                for receipt in self.here
            ],
        }  # fmt: skip


def _some(names: tuple[str, ...], limit: int = 8) -> str:
    return ", ".join(names[:limit]) + (f", and {len(names) - limit} more" if len(names) > limit else "")


def describe(what: str, *, registry: str | None = None, settings: Settings | None = None,
             progress: Progress = SILENT) -> Description:  # fmt: skip
    """Describe a published package, or the .vis file at `what`.

    Raises:
        NotFoundError: there is no such package or file.
        TrustError: the published package is not signed by its owner.
    """
    settings = settings or read_settings()
    if what.endswith(".vis"):
        package = open_package_file(Path(what))
        here = installed_here(package, settings)
        return Description(package=package, versions=(), owners=(), signers=(), here=here)
    found = obtain(Requirement.parse(what), registry=registry, settings=settings, progress=progress, remember=False)
    return Description(
        package=found.verified.package, versions=found.versions, owners=found.owners,
        signers=tuple(found.verified.signers), here=installed_here(found.verified.package, settings),
    )  # fmt: skip


def installed_here(package: Package, settings: Settings) -> tuple[Receipt, ...]:
    """Return the receipts of the artifacts of `package` in the store, that for this machine first."""
    from visget.installer.receipt import read_receipt

    if not settings.home.is_dir():
        return ()
    store = Store.open(settings.home)
    machine = machine_key(settings, None)
    receipts = []
    for item in Environment(store).installed():
        if item.package == package.digest:
            for _, key in sorted(item.natives.items(), key=lambda native: (native[0] != machine, native[0])):
                # What is damaged or gone is made again when it is needed, and says nothing until then.
                with contextlib.suppress(FormatError, ResourceError, CacheError):
                    receipts.append(read_receipt(store.native_path(key)))
    return tuple(receipts)
