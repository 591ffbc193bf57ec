"""Calling the compiler wrappers as build systems do, in a directory of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(sysconfig.get_path("scripts"))
_START = "import sys; from visget.wrap_main import main; sys.exit(main(sys.argv[1], sys.argv[2:]))"
OBJECTS = Path(os.environ.get("VISGET_TEST_CACHE", "/tmp")) / f"visget-test-objects-{os.getuid()}"
"""Native objects and libc++ are kept from one test to the next: compiling them is no part of what is tested."""


@dataclass(frozen=True, slots=True)
class Ran:
    status: int
    out: str
    err: str


class Bench:
    """A directory with sources, and the tools."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "log"
        self.log.mkdir()
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("VISGET_")},
            "VISGET_WRAP_LOG": str(self.log),
            "VISGET_CACHE_DIR": str(OBJECTS),
        }

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def tool(self, name: str, *arguments: str, stdin: str | None = None, **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-c", _START, name, *arguments], cwd=self.root, env=self.environment | environment,
            input=stdin, capture_output=True, text=True, errors="replace", check=False, timeout=600,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def cc(self, *arguments: str, stdin: str | None = None, **environment: str) -> Ran:
        return self.tool("cc", *arguments, stdin=stdin, **environment)

    def good(self, *arguments: str, tool: str = "cc", stdin: str | None = None, **environment: str) -> Ran:
        ran = self.tool(tool, *arguments, stdin=stdin, **environment)
        assert ran.status == 0, ran.err
        return ran

    def program(self, name: str = "a.out", *arguments: str, under: tuple[str, ...] = ()) -> str:
        done = subprocess.run(
            [*under, f"./{name}", *arguments], cwd=self.root, capture_output=True, text=True, check=True, timeout=120
        )
        return done.stdout

    def calls(self) -> list[dict[str, object]]:
        path = self.log / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def visget(self, *arguments: str, cwd: str = ".", **environment: str) -> Ran:
        """Run the command ``visget``, with the console scripts that came with it."""
        assert (SCRIPTS / "visget-cc").is_file(), "install the package: its console scripts are what is tested"
        done = subprocess.run(
            [sys.executable, "-m", "visget", *arguments], cwd=self.root / cwd, env=self.environment | environment,
            capture_output=True, text=True, errors="replace", check=False, timeout=1800,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def run(self, *command: str, cwd: str = ".") -> Ran:
        """Run another program."""
        done = subprocess.run(
            command, cwd=self.root / cwd, env=self.environment, capture_output=True, text=True, errors="replace",
            check=False, timeout=1800,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)


def lacks(*programs: str) -> str | None:
    """Name the first of `programs` that is not installed."""
    for program in programs:
        if shutil.which(program) is None and not (SCRIPTS / program).is_file():
            return f"{program} is not installed"
    return None
