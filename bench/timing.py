"""Timing several things in turn, so that all of them meet the same disturbances.

Invariant: in every round each thing is measured once; the round after begins with the next thing, so that none always
follows the same other. What is reported are medians with quartiles and the range; every single value goes into the
JSON file. Nothing here ever decides whether a result is good.
"""

from __future__ import annotations

import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The seconds that one thing took, once for each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        if len(self.seconds) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high

    def as_dict(self) -> dict[str, object]:
        low, high = self.quartiles
        return {
            "median": self.median, "quartiles": [low, high], "range": [min(self.seconds), max(self.seconds)],
            "seconds": list(self.seconds),
        }  # fmt: skip


def in_turn(things: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Sample]:
    """Let each thing measure itself (it returns seconds) once in each of `rounds` rounds."""
    names = list(things)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            taken[name].append(things[name]())
    return {name: Sample(seconds=tuple(values)) for name, values in taken.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A call that needs preparation, anew for each measurement."""

    begin: Callable[[], Callable[[], object]]
    """Prepares and returns the call."""
    end: Callable[[], object]
    """Gives back what begin() has taken."""

    def seconds(self, repeat: int) -> float:
        """Return the seconds of one of `repeat` calls, after one that warms up."""
        call = self.begin()
        try:
            call()
            return _seconds(call, repeat)
        finally:
            self.end()


def calls_in_turn(calls: Mapping[str, Callable[[], object]], rounds: int, *, least: float) -> dict[str, Sample]:
    """Return the seconds of one call of each, measured in turn; see prepared_in_turn()."""
    prepared = {label: Prepared(begin=lambda call=call: call, end=lambda: None) for label, call in calls.items()}
    return prepared_in_turn(prepared, rounds, least=least)


def prepared_in_turn(calls: Mapping[str, Prepared], rounds: int, *, least: float) -> dict[str, Sample]:
    """Return the seconds of one call of each, measured in turn.

    Args:
        calls: what is called.
        rounds: how often each is measured.
        least: a measurement repeats the call, the same number of times for all, for about that many seconds.
    """
    fastest = min(call.seconds(1) for call in calls.values())
    repeat = max(1, math.ceil(least / max(fastest, 1e-8)))
    return in_turn({name: lambda call=call: call.seconds(repeat) for name, call in calls.items()}, rounds)


def _seconds(call: Callable[[], object], repeat: int) -> float:
    numbers = range(repeat)
    collecting = gc.isenabled()
    gc.disable()
    try:
        begun = time.perf_counter()
        for _ in numbers:
            call()
        return (time.perf_counter() - begun) / repeat
    finally:
        if collecting:
            gc.enable()


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process, and those that it starts, on one core: moving between cores costs time at random."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
