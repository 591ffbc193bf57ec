"""Where everything is measured: a temporary store, registry and key, and the packages in it.

Invariant: the user's own store and configuration are neither read nor changed; only the cache of fetched sources is
shared, so that they are fetched once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from visget import api
from visget.cache.entry import NativeEntry
from visget.config import Settings, read_settings
from visget.format.keyfile import write_key
from visget.format.keys import SecretKey
from visget.format.package import Package
from visget.registry.directory import init_registry
from visget.toolchain.project import Project, read_project

ROOT = Path(__file__).resolve().parents[1]

PROBE = "probe"
"""The package of functions that do nothing."""

PROJECTS: Mapping[str, Path] = {
    PROBE: ROOT / "bench" / "probe",
    "numerics": ROOT / "examples" / "numerics",
    **{path.parent.name: path.parent for path in sorted((ROOT / "examples" / "recipes").glob("*/visget.toml"))},
}
"""Where the visget.toml of each package is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A package in the registry."""

    project: Project
    package: Package
    size: int
    """Bytes of the .vis file."""

    @property
    def name(self) -> str:
        return self.project.package.name


class Workplace:
    """A directory with a registry, a key and a store."""

    def __init__(self, directory: Path, *, packages: Callable[[str], Path] | None = None) -> None:
        """Make an empty one in `directory`.

        Args:
            directory: where everything is.
            packages: where the package file of a name is kept; one that is there already is not built again.
        """
        self.directory = directory
        self._packages = packages or (lambda _: directory / "dist")
        user = read_settings({key: value for key, value in os.environ.items() if key == "VISGET_CACHE_DIR"})
        network = read_settings()
        self.settings: Settings = network._replace(
            home=directory / "store", config=directory / "config", cache=user.cache, registries={},
            registry=str(directory / "registry"), target=None,
        )  # fmt: skip
        init_registry(directory / "registry", keys=self.settings.config / "registries" / "default")
        self.settings.keys.mkdir(parents=True, mode=0o700)
        self._key = self.settings.keys / "default.key"
        write_key(self._key, SecretKey.generate())
        self._published: dict[str, Published] = {}
        self._entries: dict[str, NativeEntry] = {}

    def published(self, name: str) -> Published:
        """Return the package `name`, built and published now if it is not yet."""
        if name not in self._published:
            project = read_project(PROJECTS[name] / "visget.toml")
            for dependency in project.dependencies:
                self.published(dependency.name)
            kept = self._packages(name)
            file = kept / f"{name}-{project.package.version}.vis"
            if not file.exists():
                api.build(PROJECTS[name], output=kept, settings=self.settings)
            # Whether it works here is seen when it is installed.
            api.publish(file, key=self._key, trial=False, settings=self.settings)
            self._published[name] = Published(
                project=project, package=api.open_package_file(file), size=file.stat().st_size
            )
        return self._published[name]

    def installed(self, name: str) -> NativeEntry:
        """Return the native entry of `name`, installed now if it is not yet."""
        if name not in self._entries:
            self.published(name)
            self._entries[name] = api.install(name, settings=self.settings).entry
        return self._entries[name]

    def environ(self, home: Path | None = None) -> dict[str, str]:
        """Return the environment of a `visget` process that works here, or with another store."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.directory),
            "VISGET_HOME": str(home or self.settings.home),
            "VISGET_CONFIG_DIR": str(self.settings.config),
            "VISGET_CACHE_DIR": str(self.settings.cache),
            "VISGET_REGISTRY": str(self.directory / "registry"),
        }
