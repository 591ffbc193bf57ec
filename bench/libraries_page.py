"""The tables of the real libraries, rendered from the result of a run.

Invariant: render_libraries(result) depends on nothing but the result.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.distribution import LABEL
from bench.page import machine, rate, ratio, spread, table, time
from bench.rivals import NATIVE, TIMED
from bench.speed import VISGET
from bench.testresults import MACHINES

BEGIN, END = "<!-- libraries: begin -->", "<!-- libraries: end -->"
RIVALS = (*NATIVE, LABEL)
_NONE = "–"
_REASON = 200

Result = Mapping[str, Any]


def render_libraries(result: Result) -> str:
    """Return the tables as Markdown."""
    libraries = result["libraries"]
    tests = result.get("tests", {})
    heads = [
        "library", "builds", *MACHINES, ".vis : .so", "install", "clang -O3", "install : clang",
        *(f"speed : {label}" for label in RIVALS),
    ]  # fmt: skip
    blocks = [
        machine(result),
        "### All libraries\n",
        table(heads, [overview(each, tests.get(each["library"], {})) for each in libraries] + [_means(libraries)]),
        "### Size\n",
        "Bytes; libraries are stripped. The distribution may split a library, or put more into it.\n",
        table(["library", ".vis", "installed .so", *NATIVE, LABEL], [_sizes(each) for each in libraries]),
        "### Building and installing\n",
        "`visget install` with an empty store against compiling and linking the same sources with clang -O3 "
        "-march=native, one file after the other; both with the dependencies. Configuring apart.\n",
        table(["library", "how", "visget install", "clang: compile and link", "clang: configure"],
              [_installs(each) for each in libraries]),
        "### Operations\n",
        "Time of one call, median and quartiles; for the others also how many times the time of the installed library "
        "(more than 1: visget's is faster).\n",
        table(["library", "operation", "rate", VISGET, *RIVALS],
              [_operation(each["library"], row) for each in libraries for row in each.get("speed", ())]),
        _spent(libraries),
        _notes("Slower than a rival by more than 5 %", _slower(libraries)),
        _notes("Different answers", _different(libraries)),
        _notes("Not measured", _missing(libraries)),
    ]  # fmt: skip
    return "\n".join(blocks)


def overview(each: Result, tests: Mapping[str, str]) -> list[str]:
    """Return the row of a library: what was not found out is a dash, what failed says where."""
    builds = "**no**" if "package" in each["errors"] else "yes" if "package" in each else _NONE
    size, made = each.get("size", {}), compiled(each)
    install = each.get("install")
    return [
        each["library"], builds, *(tests.get(name, _NONE) for name in MACHINES),
        _times(_quotient(size.get("vis"), size.get(NATIVE[0]) or size.get("installed"))),
        _NONE if install is None else time(install["median"]),
        _NONE if made is None else time(made),
        _times(_quotient(install and install["median"], made)),
        *(_times(mean(each, label)) for label in RIVALS),
    ]  # fmt: skip


def _means(libraries: Sequence[Result]) -> list[str]:
    sizes = [_quotient(each.get("size", {}).get("vis"), each.get("size", {}).get(NATIVE[0])) for each in libraries]
    installs = [_quotient((each.get("install") or {}).get("median"), compiled(each)) for each in libraries]
    speeds = [[mean(each, label) for each in libraries] for label in RIVALS]
    return [
        "**geometric mean**", "", "", "", "", _times(_geometric(sizes)), "", "", _times(_geometric(installs)),
        *(_times(_geometric(each)) for each in speeds),
    ]  # fmt: skip


def compiled(each: Result) -> float | None:
    """Return the seconds that clang took to compile and link the library and those that it needs."""
    facts = (each.get("rivals") or {}).get("found", {}).get(TIMED)
    return None if facts is None else float(facts["making"] + facts.get("needs", 0.0))


def mean(each: Result, label: str) -> float | None:
    """Return how many times the time of the installed library a rival takes, over all operations."""
    rows = [row for row in each.get("speed") or () if VISGET in row["times"] and label in row["times"]]
    return _geometric([ratio(row["times"], label) for row in rows])


def _geometric(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value]
    return statistics.geometric_mean(known) if known else None


def _quotient(one: float | None, two: float | None) -> float | None:
    return one / two if one and two else None


def _times(value: float | None) -> str:
    return _NONE if value is None else f"{value:.2f}x"


def _sizes(each: Result) -> list[str]:
    size = each.get("size") or {}
    labels = ("vis", "installed", *NATIVE, LABEL)
    return [each["library"], *(f"{size[label]:,}" if label in size else _NONE for label in labels)]


def _installs(each: Result) -> list[str]:
    package, install = each.get("package") or {}, each.get("install")
    facts = (each.get("rivals") or {}).get("found", {}).get(TIMED)
    needs = package.get("dependencies")
    return [
        each["library"] + (f" (with {', '.join(needs)})" if needs else ""), package.get("system", _NONE),
        _NONE if install is None else spread(install),
        _NONE if (made := compiled(each)) is None else time(made),
        time(facts["configuring"]) if facts and facts["configuring"] else "",
    ]  # fmt: skip


def _operation(library: str, row: Result) -> list[str]:
    times = row["times"]
    if VISGET not in times:
        return [library, row["function"], "", "**failed**", *(_NONE for _ in RIVALS)]
    others = [
        f"{spread(times[label])} **{ratio(times, label):.2f}x**" if label in times else _NONE for label in RIVALS
    ]
    return [library, row["function"], rate(row), spread(times[VISGET]), *others]


def _rows(libraries: Sequence[Result]) -> Iterable[tuple[str, Result]]:
    return ((each["library"], row) for each in libraries for row in each.get("speed") or ())


def _slower(libraries: Sequence[Result]) -> list[str]:
    return [
        f"{library}: {row['function']} ({label}: {ratio(row['times'], label):.2f}x)"
        for library, row in _rows(libraries) if VISGET in row["times"]
        for label in RIVALS if label in row["times"] and ratio(row["times"], label) < 0.95
    ]  # fmt: skip


def _different(libraries: Sequence[Result]) -> list[str]:
    return [
        f"{library}: {row['function']} ({', '.join(row['differ'])})"
        for library, row in _rows(libraries) if row["differ"]
    ]


def _missing(libraries: Sequence[Result]) -> list[str]:
    found = []
    for each in libraries:
        reasons = {**each["errors"], **(each.get("rivals") or {}).get("missing", {})}
        found += [f"{each['library']}, {what}: {_short(why)}" for what, why in reasons.items()]
        for row in each.get("speed") or ():
            found += [
                f"{each['library']}: {row['function']}, {label}: {_short(why)}"
                for label, why in row.get("failed", {}).items()
            ]
    return found


def _spent(libraries: Sequence[Result]) -> str:
    stages: dict[str, float] = {}
    for each in libraries:
        for stage, seconds in each.get("seconds", {}).items():
            stages[stage] = stages.get(stage, 0.0) + seconds
    said = ", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in stages.items())
    return f"The measurement took {sum(stages.values()) / 60:.1f} minutes: {said}.\n" if said else ""


def _short(text: str) -> str:
    """Return the end of a reason in one line, without paths, for the page is public."""
    line = " ".join(word.rsplit("/", 1)[-1] for word in text.split()).replace("|", "/")
    return line if len(line) <= _REASON else f"... {line[-_REASON:]}"


def _notes(title: str, items: Sequence[str]) -> str:
    if not items:
        return f"{title}: none.\n"
    return "\n".join([f"{title}:\n", *(f"* {item}" for item in items), ""])
