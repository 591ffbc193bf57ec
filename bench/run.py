"""The command: measure, write the numbers as JSON, and put the tables into docs/benchmarks.md.

``python bench/run.py``, or ``python -m bench`` at the root of the repository.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if not __package__:
    # Started as a file: Python then looks for modules beside it instead of above it.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench.host import describe_host
from bench.installs import measure_installs
from bench.page import into_page, render
from bench.sizes import measure_sizes
from bench.speed import measure_speed
from bench.startup import measure_startup
from bench.workplace import Workplace

PARTS = ("speed", "startup", "install", "size")
LIBRARIES = ("numerics", "xxhash", "zlib", "lz4", "kissfft")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(argv)
    if options.render is not None:
        result = json.loads(options.render.read_text())
    else:
        parts = [part for part in PARTS if part in (options.only or PARTS)]
        names = options.library or (["numerics"] if options.quick else list(LIBRARIES))
        result = measure(parts, names, quick=options.quick, rounds=options.rounds, say=_say)
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    if options.write_page is not None:
        options.write_page.write_text(into_page(options.write_page.read_text(), result))
    print(render(result))
    return 0


def measure(
    parts: Sequence[str], names: Sequence[str], *, quick: bool, rounds: int | None, say: Callable[[str], None]
) -> dict[str, Any]:
    """Do the measurements named `parts` and return everything as one JSON object."""
    result: dict[str, Any] = {
        "format": 1, "quick": quick, "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "host": describe_host(), "rounds": rounds or (2 if quick else 9),
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="visget-bench-") as directory:
        place = Workplace(Path(directory))
        if "speed" in parts:
            result["speed"] = measure_speed(place, names, rounds=result["rounds"], quick=quick, say=say)
        if "startup" in parts:
            library, function = ("xxhash", "XXH64") if "xxhash" in names else ("numerics", "num_crc32")
            starts = rounds or (2 if quick else 31)
            result["startup"] = measure_startup(place, library, function, rounds=starts, quick=quick, say=say)
        if "install" in parts:
            result["install"] = measure_installs(place, names, rounds=rounds or (1 if quick else 5), say=say)
        if "size" in parts:
            result["size"] = measure_sizes(place, names)
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python bench/run.py", description="Measure visget.")
    parser.add_argument("--only", action="append", choices=PARTS, help="do this part; may be repeated")
    parser.add_argument("--library", action="append", choices=LIBRARIES, help="this library; may be repeated")
    parser.add_argument("--quick", action="store_true", help="a small run that shows that everything works")
    parser.add_argument("--rounds", type=int, metavar="N", help="measure everything N times")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single value")
    parser.add_argument("--render", type=Path, metavar="FILE", help="measure nothing; read what --json wrote")
    parser.add_argument("--write-page", type=Path, metavar="FILE", help="put the tables between the page's markers")
    return parser


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
