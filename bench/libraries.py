"""The command that measures the real libraries: all recipes, against gcc, clang and the distribution's packages.

``python -m bench.libraries --cache DIR --json FILE --write-page docs/benchmarks.md``. Each library is measured in a
process of its own and has a result file of its own below the cache, so that one that fails is a row that says so, and a
run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.host import describe_host
from bench.libraries_page import BEGIN, END, render_libraries
from bench.library_run import all_names, is_done, measure_library
from bench.page import between
from bench.testresults import results_of
from bench.workplace import ROOT

_PATIENCE = 1200.0
"""The seconds that one library may take."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(argv)
    cache = options.cache.absolute()
    if options.one is not None:
        rounds = options.rounds or (1 if options.quick else 5)
        measure_library(
            options.one, cache, _output(cache, options.one, quick=options.quick), quick=options.quick,
            rounds=rounds, say=_say,
        )  # fmt: skip
        return 0
    if options.render is not None:
        result = json.loads(options.render.read_text())
        if options.tests:
            result["tests"] = results_of(options.tests)
    else:
        names = options.library or all_names()
        result = measure_all(names, cache, quick=options.quick, rounds=options.rounds, again=options.again)
        result["tests"] = results_of(options.tests)
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    text = render_libraries(result)
    if options.write_page is not None:
        options.write_page.write_text(between(options.write_page.read_text(), BEGIN, END, text))
    print(text)
    return 0


def measure_all(
    names: Sequence[str], cache: Path, *, quick: bool, rounds: int | None, again: bool
) -> dict[str, Any]:
    """Measure the libraries one after the other and return everything as one JSON object."""
    libraries = []
    for number, name in enumerate(names, 1):
        output = _output(cache, name, quick=quick)
        if again or not is_done(output, name, quick=quick):
            _say(f"[{number}/{len(names)}] {name}")
            output.unlink(missing_ok=True)
            begun = time.perf_counter()
            ended = _measure_apart(name, cache, quick=quick, rounds=rounds)
            _say(f"[{number}/{len(names)}] {name}: {time.perf_counter() - begun:.0f} s{ended and ': ' + ended}")
        else:
            ended = ""
        libraries.append(_read(output, name, ended))
    return {
        "format": 1, "quick": quick, "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "host": describe_host(), "libraries": libraries,
    }  # fmt: skip


def _measure_apart(name: str, cache: Path, *, quick: bool, rounds: int | None) -> str:
    """Measure a library in a process of its own; return how that ended when it did not end well."""
    words = ["--one", name, "--cache", str(cache)]
    words += ["--quick"] if quick else []
    words += ["--rounds", str(rounds)] if rounds else []
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bench.libraries", *words], cwd=ROOT, check=False, timeout=_PATIENCE,
            stdin=subprocess.DEVNULL, stdout=sys.stderr,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"stopped after {_PATIENCE:.0f} s"
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}"
    return f"ended with code {done.returncode}" if done.returncode else ""


def _read(output: Path, name: str, ended: str) -> dict[str, Any]:
    """Return the result of a library, as far as it got."""
    values: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {"library": name, "errors": {}}
    if ended:
        values["errors"][values.get("doing", "start")] = ended
    return values


def _output(cache: Path, name: str, *, quick: bool) -> Path:
    return cache / "results" / ("quick" if quick else "full") / f"{name}.json"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.libraries", description="Measure the real libraries.")
    parser.add_argument("--cache", type=Path, default=Path("bench-cache"), metavar="DIR",
                        help="where packages, rival builds and results are kept")  # fmt: skip
    parser.add_argument("--library", action="append", choices=all_names(), help="this one; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small data, one round: shows that everything works")
    parser.add_argument("--rounds", type=int, metavar="N", help="time every operation N times")
    parser.add_argument("--again", action="store_true", help="measure what has a result already, too")
    parser.add_argument("--tests", type=Path, action="append", default=[], metavar="XML",
                        help="what `pytest tests/recipes --junitxml` wrote; may be repeated")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single value")
    parser.add_argument("--render", type=Path, metavar="FILE", help="measure nothing; read what --json wrote")
    parser.add_argument("--write-page", type=Path, metavar="FILE", help="put the tables between the page's markers")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
