"""What the end-to-end tests share: users with a home of their own, the real command line, and input data."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from visget import api
from visget.config import Settings, read_settings
from visget.errors import NetworkError, NotFoundError, UnsupportedError
from visget.runtime.library import Library
from visget.toolchain.project import read_project
from visget.toolchain.sources import source_tree
from visget.wiring import network_of

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "examples" / "recipes"
NUMERICS = ROOT / "examples" / "numerics"


class User:
    """Somebody who types commands: a store, a configuration and an environment of his own below `root`."""

    def __init__(self, root: Path, **environment: str) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("VISGET_", "PYTHON", "FORCE_COLOR"))
        } | {
            "VISGET_HOME": str(root / "home"),
            "VISGET_CONFIG_DIR": str(root / "config"),
            "VISGET_CACHE_DIR": str(root / "cache"),
            "no_proxy": "127.0.0.1",
            **environment,
        }

    def visget(self, *words: str | Path, code: int = 0, cwd: Path | None = None, **environment: str) -> str:
        """Run the command, check its exit code, and return what it wrote to stdout."""
        return self.finished(*words, code=code, cwd=cwd, **environment).stdout

    def json(self, *words: str | Path, code: int = 0, **environment: str) -> dict[str, Any]:
        """Run the command with --json and return the object."""
        found = json.loads(self.visget(*words, "--json", code=code, **environment))
        assert isinstance(found, dict)
        return found

    def finished(
        self, *words: str | Path, code: int = 0, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the command and check its exit code."""
        done = self._run("-m", "visget", *map(str, words), cwd=cwd, environment=environment)
        said = f"visget {' '.join(map(str, words))}: {done.returncode}\n{done.stderr}{done.stdout}"
        assert done.returncode == code, said
        assert "Traceback" not in done.stderr
        return done

    def python(self, program: str, *words: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program in a fresh interpreter and check its exit code; warnings are errors in it."""
        done = self._run("-W", "error", "-c", program, *words, cwd=None, environment=environment)
        assert done.returncode == code, done.stderr
        return done

    def _run(
        self, *words: str, cwd: Path | None, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words], env=self.environment | environment, cwd=cwd or self.root, text=True,
            encoding="utf-8", capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=900,
        )  # fmt: skip

    def settings(self, **environment: str) -> Settings:
        """Return the settings that the commands of this user read."""
        return read_settings(self.environment | environment)

    def load(self, name: str, version: str | None = None, **environment: str) -> Library:
        """Load an installed library into this process."""
        return api.load(name, version, settings=self.settings(**environment))

    def entry(self, name: str, version: str | None = None, **environment: str) -> Path:
        """Return the directory of the native artifact that a load would use."""
        return api.resolve(name, version, settings=self.settings(**environment))[1].path


class Shelf:
    """The recipes, each built, signed, published and installed once, when a test first asks for it."""

    def __init__(self, root: Path) -> None:
        self.user = User(root)
        self.registry = root / "registry"
        self.user.visget("registry", "init", self.registry)
        self.user.visget("key", "new", "--no-passphrase")
        self._published: dict[str, Path] = {}
        self._missing: dict[str, str] = {}
        self._installed: set[tuple[str, str | None]] = set()
        self._loaded: dict[str, Library] = {}

    def package(self, name: str) -> Path:
        """Return the published package file of a recipe; skip the test when its sources are out of reach."""
        if name in self._missing:
            pytest.skip(self._missing[name])
        if name not in self._published:
            for dependency in read_project(RECIPES / name).dependencies:
                self.package(dependency.name)
            try:
                self._fetch(name)
            except (NetworkError, UnsupportedError, NotFoundError) as error:
                self._missing[name] = f"cannot fetch the sources of {name}: {error}"
                pytest.skip(self._missing[name])
            path = self._built(name)
            self.user.visget("check", path)
            # Without the trial: every test installs what it needs, which does all of that again.
            self.user.visget("publish", "--no-check", path)
            self._published[name] = path
        return self._published[name]

    def _built(self, name: str) -> Path:
        """Build a recipe; with VISGET_TEST_PACKAGES, take what somebody who writes tests has built there before."""
        version = read_project(RECIPES / name).package.version
        before = Path(os.environ.get("VISGET_TEST_PACKAGES", "/nonexistent"), f"{name}-{version}.vis")
        if before.exists():
            return before
        # What was fetched must do: from here on nothing may touch the network.
        built = self.user.json("build", RECIPES / name, "--output", self.user.root / "dist", "--offline")
        return Path(built["file"])

    def _fetch(self, name: str) -> None:
        project = read_project(RECIPES / name)
        settings = self.user.settings()
        try:
            with source_tree(project, cache=settings.cache, network=network_of(settings)):
                pass
        except NotFoundError:
            # Debian's mirrors keep the current version only; an index of Python packages keeps all.
            if project.source is None or not project.source.label.startswith("debian:"):
                raise AssertionError(f"the sources of {name} are not where its recipe says") from None
            raise

    def install(self, name: str, target: str | None = None) -> Path:
        """Return the directory of the native artifact for `target` (None: this machine)."""
        self.package(name)
        words = [] if target is None else ["--target", target]
        if (name, target) not in self._installed:
            self.user.visget("install", name, *words)
            self._installed.add((name, target))
        environment = {} if target is None else {"VISGET_TARGET": target}
        return self.user.entry(name, **environment)

    def load(self, name: str) -> Library:
        """Return the library for this machine."""
        self.install(name)
        if name not in self._loaded:
            self._loaded[name] = self.user.load(name)
        return self._loaded[name]


def noise(size: int, seed: int) -> bytes:
    """Return bytes that do not compress."""
    return random.Random(seed).randbytes(size)


def prose(size: int, seed: int) -> bytes:
    """Return bytes that compress as text does, with some repeats from far behind."""
    rng = random.Random(seed)
    words = [rng.randbytes(rng.randint(1, 12)).hex().encode() for _ in range(500)]
    parts: list[bytes] = []
    length = 0
    while length < size:
        part = rng.choice(words) + b" "
        if rng.random() < 0.01 and length > 10_000:
            part = b"".join(parts[-rng.randint(5, 800) :][:40])
        parts.append(part)
        length += len(part)
    return b"".join(parts)[:size]


def pieces(data: bytes, seed: int, largest: int) -> list[bytes]:
    """Cut `data` at random places, empty pieces included."""
    rng = random.Random(seed)
    found, at = [], 0
    while at < len(data):
        size = rng.choice((0, 1, rng.randint(0, 64), rng.randint(0, largest)))
        found.append(data[at : at + size])
        at += size
    return found
