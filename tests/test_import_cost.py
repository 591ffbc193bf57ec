"""What must not be imported on the paths whose start-up time users feel."""

import subprocess
import sys

import pytest

HEAVY = [
    "llvmlite", "cryptography", "zstandard", "urllib3", "rich", "numpy", "ziglang", "elftools", "archspec",
    "securesystemslib",
]  # fmt: skip


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", code + "\nimport sys; print('\\n'.join(sys.modules))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import visget",
        "import visget.cli",
        "import visget.api",
        "import visget.runtime.library",
        "from visget.cli import main; import sys; sys.argv = ['visget', '--version']\n"
        "try: main()\nexcept SystemExit: pass",
    ],
)
def test_nothing_heavy(code):
    loaded = modules_after(code)
    assert [name for name in HEAVY if name in loaded] == []


def test_import_visget_is_almost_nothing():
    assert modules_after("import visget") - modules_after("import typing, __future__") == {"visget", "visget.version"}
