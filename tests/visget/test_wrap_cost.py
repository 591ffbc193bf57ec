"""What a call that only compiles loads: a build makes thousands of them."""

from __future__ import annotations

import subprocess
import sys
import time

from wrapkit import Bench

_FORBIDDEN = (
    "llvmlite", "click", "rich", "cryptography", "zstandard", "urllib3", "json", "tempfile", "hashlib", "shutil",
    "asyncio", "logging", "concurrent", "visget.config", "visget.format", "visget.installer", "visget.cli",
    "visget.wrap_link", "visget.wrap_lower", "visget.toolchain.driver_asm", "visget.toolchain.diagnostics",
    "visget.toolchain.portable_switches", "visget.toolchain.frontend",
)  # fmt: skip
_CODE = """
import sys
from visget.wrap_main import main
status = main("cc", sys.argv[1:])
assert status == 0
sys.stderr.write(" ".join(sorted(sys.modules)))
"""


def test_a_compilation_loads_almost_nothing(tmp_path):
    bench = Bench(tmp_path)
    bench.write({"x.c": "#include <stdio.h>\nint f(void) { return puts(\"x\"); }\n"})
    environment = bench.environment | {"VISGET_WRAP_LOG": ""}
    done = subprocess.run(
        [sys.executable, "-c", _CODE, "-O2", "-c", "x.c"], cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    before = subprocess.run(
        [sys.executable, "-c", "import sys; sys.stderr.write(' '.join(sorted(sys.modules)))"], capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    loaded = set(done.stderr.split()) - set(before.stderr.split())
    wrong = [name for name in loaded if any(name == one or name.startswith(f"{one}.") for one in _FORBIDDEN)]
    assert wrong == []
    # An editable installation has loaded a dozen of these by itself, before.
    assert len(loaded) < 80, sorted(loaded)


def test_the_start_takes_less_than_fifty_milliseconds_of_processor():
    """Of the processor's time, the best of several: other programs run at the same time."""
    code = "import time; a = time.process_time(); import visget.wrap_main; print(time.process_time() - a)"
    best = 9.0
    deadline = time.monotonic() + 20
    while best >= 0.05 and time.monotonic() < deadline:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        best = min(best, float(done.stdout))
    assert best < 0.05
