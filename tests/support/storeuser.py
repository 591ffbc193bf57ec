"""A user with the library `adder` in the store: quick to install, without a registry."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from installable import verified

from visget.cache.store import Store
from visget.config import Settings, read_settings
from visget.format.package import VerifiedPackage
from visget.format.signing import sign_package
from visget.installing import InstallResult, install_verified
from visget.progress import SILENT
from visget.wiring import store_of, target_of

ADDER = verified()
_FOREIGN = ("VISGET_", "XDG_")


class StoreUser:
    """Directories of one user below `root`."""

    def __init__(self, root: Path, **variables: str) -> None:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
        self.environ = clean | {
            "VISGET_HOME": str(root / "home"),
            "VISGET_CONFIG_DIR": str(root / "config"),
            "VISGET_CACHE_DIR": str(root / "cache"),
            **variables,
        }

    @property
    def settings(self) -> Settings:
        return read_settings(self.environ)

    @property
    def store(self) -> Store:
        return store_of(self.settings)

    def install(self, package: VerifiedPackage = ADDER) -> InstallResult:
        """Do what `visget install` does after it has verified a package."""
        from installable import KEY

        store, settings = self.store, self.settings
        with store.in_use():
            store.put_envelope(store.put_package(package.package.data), sign_package(package.package, KEY))
            return install_verified(
                package, store, target_of(settings, None), source="", first_use=False, settings=settings,
                progress=SILENT,
            )  # fmt: skip

    def python(self, code: str, **options: object) -> subprocess.CompletedProcess[str]:
        """Run a program in a process of its own."""
        return subprocess.run(
            [sys.executable, "-c", code], env=self.environ, capture_output=True, text=True, timeout=120, **options
        )  # type: ignore[call-overload]

    def works(self) -> bool:
        done = self.python("import visget; print(visget.load('adder').adder_add(40, 2))")
        assert done.returncode == 0, done.stderr
        return done.stdout == "42\n"

    def quarantine(self) -> list[str]:
        return sorted(path.name for path in (self.store.root / "quarantine").iterdir())


def overwrite(path: Path, data: bytes) -> None:
    """Change a read-only file in place."""
    mode = path.stat().st_mode
    path.chmod(0o600)
    path.write_bytes(data)
    path.chmod(mode)
