"""What the tests of bad input and of the command line share: one small published package, and ways to run visget.

`run()` calls the real main() in this process (fast, for tables); `spawn()` starts a real process (for signals, kills
and pipes). Neither sees the machine's own settings. `snapshot()` is how a test proves that nothing was changed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import registrykit
from click.testing import CliRunner
from packagekit import key as fixed_key
from registrykit import stored

from visget.cli import main
from visget.digest import digest_bytes

TOML = """\
[package]
name = "tiny"
version = "{version}"
summary = "Adds numbers"
license = "MIT"

[build]
sources = ["*.c"]

[exports]
headers = ["tiny.h"]

[[vector]]
name = "sum"
steps = [{{ call = "tiny_add", args = [{{ int = 2 }}, {{ int = 40 }}], returns = {{ int = 42 }} }}]
"""
HEADER = "int tiny_add(int a, int b);\n"
SOURCE = '#include "tiny.h"\n\nint tiny_add(int a, int b)\n{\n    return a + b;\n}\n'

# What a person may have set and a test must not see.
_FOREIGN = ("VISGET_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONWARNINGS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The object on stdout; fails unless stdout holds exactly that."""
        value = json.loads(self.out)
        assert isinstance(value, dict), self.out
        return value

    @property
    def text(self) -> str:
        """What a person sees, without a trace of Python."""
        assert "Traceback" not in self.err, self.err
        return self.out + self.err


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The directories of one user, and what is published there."""

    root: Path
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def config(self) -> Path:
        return self.root / "config"

    @property
    def registry(self) -> Path:
        return self.root / "registry"

    @property
    def environ(self) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
        return clean | {
            "VISGET_HOME": str(self.home),
            "VISGET_CONFIG_DIR": str(self.config),
            "VISGET_CACHE_DIR": str(self.root / "cache"),
            "VISGET_REGISTRY": str(self.registry),
            "TERM": "xterm",
            **self.variables,
        }

    def with_env(self, **variables: str) -> Place:
        """Return the same place with further environment variables."""
        return dataclasses.replace(self, variables={**self.variables, **variables})

    def run(self, *args: object) -> Outcome:
        """Run the command in this process; an exception that leaves main() is a failure of the test."""
        words = ["visget", *map(str, args)]
        runner = CliRunner()
        with (
            runner.isolation(env={**dict.fromkeys(os.environ), **self.environ}) as (out, err, _),
            mock.patch.object(sys, "argv", words),
        ):
            code: object = 0
            try:
                main()
            except SystemExit as done:
                code = done.code or 0
            sys.stdout.flush()
            sys.stderr.flush()
            texts = out.getvalue().decode(), err.getvalue().decode()
        assert isinstance(code, int), code
        return Outcome(code=code, out=texts[0], err=texts[1])

    def spawn(self, *args: object, **options: Any) -> subprocess.Popen[str]:
        """Start the command as a process that leads a group of its own."""
        words = [sys.executable, "-m", "visget", *map(str, args)]
        given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        given |= {"text": True, "env": self.environ, "start_new_session": True} | options
        # A shell starts what it runs in the background with Ctrl-C ignored, and children inherit that.
        return subprocess.Popen(words, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **given)

    def process(self, *args: object, **options: Any) -> Outcome:
        """Run the command as a process to its end."""
        child = self.spawn(*args, **options)
        out, err = child.communicate(timeout=120)
        return Outcome(code=child.returncode, out=out or "", err=err or "")

    # ---- what changed ----------------------------------------------------------------------------------
    def store_files(self) -> dict[str, str]:
        """Every file of the store but locks and what a client remembers of registries that it has verified."""
        passing = re.compile(r"locks/|trust/(at|[0-9a-f]{64})/")
        return {path: facts for path, facts in snapshot(self.home).items() if not passing.match(path)}

    def state(self) -> dict[str, dict[str, str]]:
        """Everything that a refused command must leave alone."""
        registry = {path: facts for path, facts in snapshot(self.registry).items() if path != ".lock"}
        return {"store": self.store_files(), "registry": registry, "config": snapshot(self.config)}

    def natives(self) -> list[str]:
        """The keys of the compiled artifacts."""
        room = self.home / "native" / "v1"
        return sorted(path.name for path in room.iterdir()) if room.is_dir() else []

    def blob(self, suffix: str = ".vis") -> Path:
        """The only blob of that kind in the registry."""
        (found,) = stored(self.registry, suffix.removeprefix("."))
        return found


def snapshot(root: Path) -> dict[str, str]:
    """Return what every file below `root` is, by path: kind, mode and digest. Directories are not files."""
    found = {}
    for path in sorted(root.rglob("*")):
        facts = path.lstat()
        if stat.S_ISDIR(facts.st_mode):
            continue
        what = digest_bytes(path.read_bytes()) if stat.S_ISREG(facts.st_mode) else stat.filemode(facts.st_mode)
        found[str(path.relative_to(root))] = f"{stat.S_IMODE(facts.st_mode):04o} {what}"
    return found


def write_project(root: Path, *, toml: str | None = None, version: str = "1.0", **files: str) -> Path:
    """Write the project tiny into `root`; keyword arguments are further files or other contents (tiny_c, tiny_h)."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "visget.toml").write_text(TOML.format(version=version) if toml is None else toml)
    texts = {"tiny_h": HEADER, "tiny_c": SOURCE} | files
    for name, text in texts.items():
        stem, _, suffix = name.rpartition("_")
        (root / f"{stem}.{suffix}").write_text(text)
    return root


def key_file(path: Path, name: str) -> Path:
    """Write packagekit.key(name) as an unencrypted key file, as docs/spec/key-file.md describes it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = hashlib.sha256(name.encode()).hexdigest()
    public = bytes(fixed_key(name).public.raw).hex()
    document = {"format": "visget-key-1", "kdf": "none", "algorithm": "ed25519", "secret": secret, "public": public}
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


def publish_tiny(root: Path) -> Place:
    """Make a user with a key and a registry that holds tiny 1.0; nothing is installed."""
    place = Place(root=root)
    project = write_project(root / "project")
    key_file(place.config / "keys" / "default.key", "author")
    for words in (("build", project), ("registry", "init", place.registry),
                  ("publish", project / "dist" / "tiny-1.0.vis")):  # fmt: skip
        outcome = place.run(*words)
        assert outcome.code == 0, outcome
    return place


def slow_source(functions: int) -> tuple[str, str]:
    """Return a header and a source that clang and LLVM need some seconds for."""
    names = [f"tiny_f{number}" for number in range(functions)]
    header = HEADER + "".join(f"double {name}(double *x, int n);\n" for name in names)
    loops = "for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) s += x[i] * x[j] + s / {0};"
    body = "{{ double s = {0}; " + loops + " return s; }}\n"
    return header, SOURCE + "".join(f"double {n}(double *x, int n) {body.format(i + 1)}" for i, n in enumerate(names))


def offspring(parent: int) -> list[str]:
    """Return the command lines of living processes whose group is led by `parent`, or that are workers of it."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        line = b" ".join(words).decode(errors="replace")
        mine = int(fields[2]) == parent or (str(parent).encode() in words and "visget.installer" in line)
        if mine and fields[0] not in "ZX":
            found.append(line)
    return found


def left_alive(parent: int, seconds: float = 5.0) -> list[str]:
    """Return what is still alive of the dead process `parent` after `seconds`."""
    deadline = time.monotonic() + seconds
    while (left := offspring(parent)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


# ---- a registry that lies -------------------------------------------------------------------------------


def edit_index(registry: Path, name: str = "tiny", **changes: Any) -> None:
    """Change what the index says: `owners`, or facts of the newest version; digests and sizes are the caller's."""

    def edit(index: dict[str, Any]) -> None:
        if "owners" in changes:
            index["owners"] = changes.pop("owners")
        index["versions"][-1].update(changes)

    registrykit.edit_index(registry, name, edit)


def plant(registry: Path, *, vis: bytes | None = None, dsse: bytes | None = None) -> None:
    """Offer other files as the newest version, with an index that agrees with them."""
    changes: dict[str, object] = {}
    newest = json.loads(registrykit.index_file(registry, "tiny").read_bytes())["versions"][-1]["version"]
    for kind, size, data in (("vis", "size", vis), ("dsse", "dsse_size", dsse)):
        if data is not None:
            changes |= {kind: registrykit.put_file(registry, f"pkg__tiny__{newest}.{kind}", data), size: len(data)}
    edit_index(registry, **changes)


def overwrite(path: Path, data: bytes) -> None:
    """Change a file that is read-only."""
    mode = stat.S_IMODE(path.stat().st_mode)
    path.chmod(0o600)
    path.write_bytes(data)
    path.chmod(mode)


def flipped(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 1 << offset % 8]) + data[offset + 1 :]
