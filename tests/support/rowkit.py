"""What the tests of the numbered rows share: a registry to spoil, files that its author really signed, and refusals."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import registrykit
from badkit import Outcome, Place, plant
from formatkit import assemble, entry, frame
from packagekit import key

from visget.digest import digest_bytes
from visget.format.dsse import Envelope
from visget.format.manifest import Manifest, SectionEntry
from visget.format.package import open_package
from visget.format.signing import PAYLOAD_TYPE, Statement
from visget.registry.tuf_names import bin_of, index_target

Part = tuple[SectionEntry, bytes]


def copy_of(published: Place, root: Path) -> Place:
    """Return a new user with a registry of his own to spoil."""
    shutil.copytree(published.registry, root / "registry")
    shutil.copytree(published.config, root / "config")
    return Place(root=root)


def refused(place: Place, *words: object, codes: tuple[int, ...], says: str = "", prints: bool = False) -> Outcome:
    """Run a command that must fail with one of `codes` and leave everything as it was; JSON it `prints`."""
    place.run("list")  # so that the store is there before and after
    before = place.state()
    outcome = place.run(*words)
    assert outcome.code in codes, outcome
    if prints:
        assert outcome.json["exit_code"] == outcome.code
    else:
        assert outcome.out == ""
        assert re.search(r"^error: \S", outcome.text, re.M), outcome
    assert says in outcome.err, outcome
    assert place.natives() == []
    assert place.state() == before
    return outcome


def parts_of(data: bytes) -> tuple[Manifest, dict[str, Part]]:
    """Take a good package apart: its manifest, and the entry and frame of each section."""
    container = open_package(data).container
    parts = {item.kind: (item, bytes(container.stored[item.kind])) for item in container.manifest.sections}
    return container.manifest, parts


def put_together(manifest: Manifest, parts: dict[str, Part], tail: bytes = b"", length: int | None = None) -> bytes:
    """Return a package of these parts; nothing is checked."""
    described = replace(manifest, sections=tuple(item for item, _ in parts.values()))
    return assemble(described.encode(), *(stored for _, stored in parts.values()), tail, length=length)


def with_section(data: bytes, kind: str, content: bytes, stored: bytes | None = None, **changes: object) -> bytes:
    """Return the package with another section `kind`, whose digests fit unless `changes` say otherwise."""
    manifest, parts = parts_of(data)
    stored = frame(content) if stored is None else stored
    parts[kind] = entry(kind, content, stored, **changes), stored
    return put_together(manifest, parts)


def signed(data: bytes, version: str = "1.0") -> bytes:
    """Return the author's signature of any bytes as the package tiny."""
    statement = Statement(
        subject=f"tiny-{version}.vis", digest=digest_bytes(data), name="tiny", version=version,
        profile="vis-1", epoch=22,
    )  # fmt: skip
    unsigned = Envelope(kind=PAYLOAD_TYPE, payload=statement.encode(), signatures={})
    return unsigned.signed_with(key("author")).encode()


def offer(place: Place, data: bytes) -> None:
    """Offer any bytes as the package tiny 1.0: listed by the registry, and signed by the author."""
    plant(place.registry, vis=data, dsse=signed(data))


def tuf_files(place: Place) -> dict[str, Path]:
    """The files of the registry that an installation of tiny reads, by role."""
    registry = place.registry
    role = bin_of(index_target("tiny"))  # type: ignore[arg-type]

    def newest(name: str) -> Path:
        return max((registry / "tuf").glob(f"*.{name}.json"), key=lambda path: int(path.name.partition(".")[0]))

    (record,) = (registry / "t").glob("*.own__*")
    return {
        "root": newest("root"), "timestamp": registry / "tuf" / "timestamp.json", "snapshot": newest("snapshot"),
        "targets": newest("targets"), "bin": newest(role), "index": registrykit.index_file(registry, "tiny"),
        "owner record": record,
    }  # fmt: skip
