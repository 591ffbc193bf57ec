"""Registries in directories with owner chains, honest ones and seized ones, and settings for their users."""

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ownerkit import NAME, THIEF
from packagekit import claim

from visget.config import Settings, read_settings
from visget.digest import digest_bytes
from visget.format.keys import SecretKey
from visget.format.owner import SignedRecord
from visget.format.package import Package
from visget.format.signing import sign_package
from visget.registry.directory import init_registry, publish
from visget.registry.editing import editing
from visget.registry.operator import sibling
from visget.registry.protocol import Release, Releases
from visget.registry.tuf_names import envelope_target, package_target

_TEMPLATE: list[Path] = []


def shop(directory: Path) -> Path:
    """Return a registry at `directory` whose keys lie beside it; made once in each test session and copied."""
    if not _TEMPLATE:
        made = Path(tempfile.mkdtemp(prefix="visget-shop-")) / "registry"
        atexit.register(shutil.rmtree, made.parent, ignore_errors=True)
        _TEMPLATE.append(init_registry(made))
    shutil.copytree(sibling(_TEMPLATE[0]), sibling(directory))
    return shutil.copytree(_TEMPLATE[0], directory)


def sell(root: Path, item: Package, *keys: SecretKey) -> Package:
    """Publish a package as its author would."""
    publish(root, item, sign_package(item, *keys), claim=claim(item, *keys))
    return item


def seize(root: Path, records: Sequence[bytes], items: Sequence[tuple[Package, bytes]]) -> None:
    """Make a registry say anything about a name, all of it properly signed with every key of the registry."""
    with editing(root) as editor:
        versions = []
        for item, envelope in items:
            manifest = item.manifest
            editor.change.write(package_target(manifest.name, manifest.version), item.data)
            editor.change.write(envelope_target(manifest.name, manifest.version), envelope)
            sizes = {"size": len(item.data), "dsse_size": len(envelope)}
            versions.append(Release.of(manifest, vis=item.digest, dsse=digest_bytes(envelope), **sizes))
        listed = SignedRecord.parse(records[-1]).record.keys if records else (THIEF.public,)
        editor.put_index(
            Releases(
                name=NAME, owners=listed, versions=tuple(versions), records=editor.put_records(NAME, list(records))
            )
        )


def settings_in(directory: Path, **options: object) -> Settings:
    """Return the settings of a user who has nothing yet."""
    return read_settings(
        {"VISGET_HOME": str(directory / "home"), "VISGET_CONFIG_DIR": str(directory / "config"),
         "VISGET_CACHE_DIR": str(directory / "cache")}
    )._replace(**options)  # type: ignore[arg-type]  # fmt: skip
