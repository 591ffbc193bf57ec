"""The command ``visget demo``.

Invariant: exit code 1 exactly when an answer was wrong.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from visget.cli_common import Ui, command
from visget.config import Settings
from visget.errors import EXIT_FAILED

if TYPE_CHECKING:
    from visget.demo import Receipt


@command("demo", example="visget demo\nvisget demo --keep ./demo\nvisget demo --json")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Work in DIR and leave everything there.")
def demo(ui: Ui, settings: Settings, *, keep: Path | None) -> int:
    """Build, publish, install and check an example, start to end.

    Every function is compared with NumPy or zlib; then the code tuned for this machine is timed against the
    same package compiled for the baseline of its architecture.
    """
    from visget.demo import run_demo
    from visget.errors import UsageError
    from visget.files import translated

    if keep is None:
        with tempfile.TemporaryDirectory(prefix="visget-demo-") as directory:
            receipt = run_demo(Path(directory), settings=settings, progress=ui)
    else:
        with translated("make the demo's directory", keep):
            if keep.exists() and not (keep.is_dir() and not any(keep.iterdir())):
                raise UsageError("this is no empty directory", where=str(keep), hint="name a new one")
            keep.mkdir(parents=True, exist_ok=True, mode=0o700)
        receipt = run_demo(keep.absolute(), settings=settings, progress=ui)
    facts = receipt.as_dict()
    if keep is None:
        facts["directory"] = None  # it is gone by now
    ui.result(facts, lambda: _text(ui, receipt, keep))
    return 0 if receipt.right else EXIT_FAILED


def _text(ui: Ui, receipt: Receipt, keep: Path | None) -> str:
    rows = [
        (
            line.function, "yes" if line.right else "NO", f"{line.error} ({line.against})", f"{line.tuned_us:.1f} us",
            f"{line.generic_us:.1f} us", f"{line.ratio:.2f}x",
        )
        for line in receipt.lines
    ]  # fmt: skip
    stages = ", ".join(f"{name} {value:.2f} s" for name, value in receipt.seconds.items())
    lines = [
        f"{receipt.package}: one package of {receipt.size:,} bytes, no machine code in it",
        f"  compiled for this machine: {receipt.target}",
        f"  and for the baseline:      {receipt.generic}",
        f"  {stages}",
        "",
        ui.table(("function", "right", "error", "this machine", "baseline", "speed-up"), rows),
        "",
        ui.style(
            f"every answer is right; tuned for this machine it is {receipt.ratio:.2f}x as fast as the baseline"
            if receipt.right
            else "WRONG ANSWERS: see the rows that say NO",
            bold=True,
        ),
    ]
    if keep is not None:
        lines += ["", "Everything is kept. Try:", f"  export VISGET_HOME={receipt.directory}/store",
                  f"  export VISGET_CONFIG_DIR={receipt.directory}/config", "  visget list",
                  "  python3 -c 'import visget; help(visget.load(\"numerics\").num_gemm)'"]  # fmt: skip
    return "\n".join(lines)
