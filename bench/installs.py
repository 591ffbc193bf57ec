"""Time of installing: cold, repeated, and against compiling the same sources with ordinary compilers.

Each cold installation is a fresh `visget install` process with an empty store and a directory registry, so that the
time includes the start of Python, fetching, verifying, checking, compiling in the worker, linking and the answer
check. The rival compiles file after file and links; fetching and unpacking sources is not counted for it.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.native import build, compilers, sources
from bench.timing import in_turn
from bench.workplace import Workplace
from visget.installer.receipt import Receipt

COLD, AGAIN = "visget install", "visget install, again"


def measure_installs(
    place: Workplace, names: Iterable[str], *, rounds: int, say: Callable[[str], None]
) -> list[dict[str, object]]:
    """Return one row for each package."""
    rows = []
    for name in names:
        say(f"install: {name}")
        rows.append(_row(place, name, rounds))
    return rows


def _row(place: Workplace, name: str, rounds: int) -> dict[str, object]:
    project = place.published(name).project
    place.installed(name)
    home = place.directory / "cold"
    stages: list[dict[str, int]] = []

    def cold() -> float:
        shutil.rmtree(home, ignore_errors=True)
        taken = install_cold(place, name, home)
        (receipt,) = home.glob("native/*/*/receipt.json")
        stages.append(dict(Receipt.parse(receipt.read_bytes()).milliseconds))
        return taken

    with sources(project, place.settings) as (root, files):
        things: dict[str, Callable[[], float]] = {
            COLD: cold,
            AGAIN: lambda: install_cold(place, name, place.settings.home),
        }
        for compiler in compilers():
            output = place.directory / "timed" / name / f"{compiler.family}.so"
            things[compiler.label] = lambda compiler=compiler, output=output: build(
                compiler, project, root, files, output
            )
        samples = in_turn(things, rounds)
    return {
        "library": name,
        "units": len(files),
        "times": {label: sample.as_dict() for label, sample in samples.items()},
        "stages": {stage: statistics.median(each[stage] for each in stages) / 1000 for stage in stages[0]},
    }


def install_cold(place: Workplace, name: str, home: Path) -> float:
    """Run `visget install` with the store `home` and return the seconds."""
    command = [sys.executable, "-m", "visget", "install", "--no-progress", "-q", name]
    begun = time.perf_counter()
    subprocess.run(command, env=place.environ(home), check=True, stdout=subprocess.DEVNULL, cwd=place.directory)
    return time.perf_counter() - begun
