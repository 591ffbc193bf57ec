"""The tables of docs/benchmarks.md, rendered from the result of a run.

Invariant: render(result) depends on nothing but the result, so that a page can be made again from its JSON file.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.installs import AGAIN, COLD
from bench.speed import VISGET

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

_COMMAND = "python bench/run.py"

_STAGES = (
    "compile", "compile.parse", "compile.check", "compile.legalise", "compile.optimise", "compile.emit", "gate", "link",
    "gate-library", "answers",
)  # fmt: skip

Result = Mapping[str, Any]


def into_page(page: str, result: Result) -> str:
    """Return `page` with what stands between the markers replaced by the tables of `result`.

    Raises:
        ValueError: a marker is missing.
    """
    return between(page, BEGIN, END, render(result))


def between(page: str, begin: str, end: str, text: str) -> str:
    """Return `page` with what stands between the lines `begin` and `end` replaced by `text`.

    Raises:
        ValueError: a marker is missing.
    """
    before, first, rest = page.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise ValueError(f"the page lacks the line {begin} or {end}")
    return f"{before}{begin}\n\n{text}\n{end}{after}"


def render(result: Result) -> str:
    """Return the tables as Markdown."""
    blocks = [machine(result)]
    if "speed" in result:
        blocks.append(_speed(result["speed"], result["rounds"]))
    if "startup" in result:
        blocks.append(_startup(result["startup"]))
    if "install" in result:
        blocks.append(_install(result["install"]))
    if "size" in result:
        blocks.append(_size(result["size"]))
    return "\n".join(blocks)


def machine(result: Result) -> str:
    rows = [["date", result["date"]], *([name, text] for name, text in result["host"].items())]
    quick = ["This was a quick run: nothing here is sure.\n"] if result["quick"] else []
    return "\n".join([*quick, table(["measured on", ""], rows)])


def _speed(rows: Sequence[Result], rounds: int) -> str:
    labels = list(rows[0]["times"])
    rivals = [label for label in labels if label != VISGET]
    blocks = [
        "## Speed of installed libraries\n",
        f"Command: `{_COMMAND} --only speed`. Time of one call: median of {rounds} rounds and quartiles; for the "
        "others also how many times the time of the installed library (more than 1: visget's is faster).\n",
    ]
    for library in dict.fromkeys(row["library"] for row in rows):
        mine = [row for row in rows if row["library"] == library]
        body = [[row["function"], rate(row), *_times(row["times"], labels)] for row in mine]
        means = [f"**{statistics.geometric_mean(_ratios(mine, label)):.2f}x**" for label in rivals]
        body.append(["geometric mean", "", "", *means])
        blocks += [f"### {library}\n", table(["function", "rate", *labels], body)]
    total = ", ".join(f"{label} {statistics.geometric_mean(_ratios(rows, label)):.2f}x" for label in rivals)
    blocks.append(f"Geometric mean over all {len(rows)} functions: {total}.\n")
    slower = [
        f"{row['library']} {row['function']} ({label}: {found:.2f}x)"
        for row in rows
        for label in rivals
        if (found := ratio(row["times"], label)) < 0.95
    ]
    blocks.append(f"Slower than a rival by more than 5 %: {'; '.join(slower) or 'none'}.\n")
    wrong = [f"{row['library']} {row['function']} ({', '.join(row['differ'])})" for row in rows if row["differ"]]
    blocks.append(f"Different answers: {'; '.join(wrong) or 'none'}.\n")
    return "\n".join(blocks)


def _ratios(rows: Iterable[Result], label: str) -> list[float]:
    return [ratio(row["times"], label) for row in rows]


def ratio(times: Result, label: str) -> float:
    return times[label]["median"] / times[VISGET]["median"]


def rate(row: Result) -> str:
    if not row["bytes"]:
        return ""
    rate = row["bytes"] / row["times"][VISGET]["median"] / 1e6
    return f"{rate / 1000:.1f} GB/s" if rate >= 1000 else f"{rate:.0f} MB/s"


def _times(times: Result, labels: Iterable[str]) -> list[str]:
    return [
        spread(times[label]) + ("" if label == VISGET else f" **{ratio(times, label):.2f}x**") for label in labels
    ]


def _startup(result: Result) -> str:
    parts = [
        ("Processes", result["processes"], "python -c pass"),
        (f"Loading {result['loaded']} in a fresh process, from before the first import", result["fresh"], None),
        (f"Loading {result['loaded']} again", result["warm"], None),
        *((f"A call: {title}", each, None) for title, each in result["calls"].items()),
    ]
    blocks = ["## Starting, loading, calling\n", f"Command: `{_COMMAND} --only startup`. Median and quartiles.\n"]
    for title, each, base in parts:
        body = []
        for label, sample in each.items():
            extra = [_plus(sample["median"] - each[base]["median"])] if base else []
            body.append([f"`{label}`" if base else label, spread(sample), *extra])
        blocks += [f"### {title}\n", table(["", "time", *(["more than bare Python"] if base else [])], body)]
    return "\n".join(blocks)


def _plus(seconds: float) -> str:
    return "" if seconds == 0 else time(seconds)


def _install(rows: Sequence[Result]) -> str:
    labels = list(rows[0]["times"])
    body = [
        [f"{row['library']} ({row['units']} files)", *(spread(row["times"][label]) for label in labels)]
        for row in rows
    ]
    stages = sorted({stage for row in rows for stage in row["stages"]}, key=_stage_place)
    detail = [
        [row["library"], *(_whole(row["stages"].get(stage)) for stage in stages)]
        for row in rows
    ]
    return "\n".join(
        [
            "## Installing\n",
            f"Command: `{_COMMAND} --only install`. `{COLD}` starts with an empty store and a directory registry; "
            f"`{AGAIN}` finds everything compiled. The compilers build the same files one after the other.\n",
            table(["package", *labels], body),
            "Stages of a cold installation, from its receipt (`compile` is the whole worker process and includes those "
            "named `compile.*`); the rest is Python, fetching and verifying:\n",
            table(["package", *stages], detail),
        ]
    )


def _whole(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.0f} ms"


def _stage_place(stage: str) -> int:
    return _STAGES.index(stage) if stage in _STAGES else len(_STAGES)


def _size(rows: Sequence[Result]) -> str:
    columns = {
        "vis": ".vis", "module": "module in it", "gcc": "gcc -O2", "gcc-zstd": "the same, zstd -19",
        "installed": "installed library", "installed-zstd": "the same, zstd -19",
    }  # fmt: skip
    body = [[row["library"], *(f"{row[key]:,}" if key in row else "" for key in columns)] for row in rows]
    ratios = [row["vis"] / row["gcc"] for row in rows if "gcc" in row]
    mean = f"{statistics.geometric_mean(ratios):.2f}" if ratios else ""
    return "\n".join(
        [
            "## Size\n",
            f"Command: `{_COMMAND} --only size`. Bytes; libraries are stripped.\n",
            table(["package", *columns.values()], body),
            f"Geometric mean of .vis against gcc -O2: {mean}.\n" if mean else "",
        ]
    )


def spread(sample: Result) -> str:
    low, high = sample["quartiles"]
    unit, scale = _unit(sample["median"])
    digits = _digits(sample["median"] * scale)
    return f"{sample['median'] * scale:.{digits}f} {unit} ({low * scale:.{digits}f}-{high * scale:.{digits}f})"


def time(seconds: float) -> str:
    unit, scale = _unit(abs(seconds))
    return f"{seconds * scale:.{_digits(abs(seconds) * scale)}f} {unit}"


def _unit(seconds: float) -> tuple[str, float]:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return unit, scale
    return "ns", 1e9


def _digits(number: float) -> int:
    return 0 if number >= 100 else 1 if number >= 10 else 2


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"
