"""What starting, loading and calling cost, against bare Python and bare ctypes.

Fresh processes are started in turn on one core. In them, time is taken from before the first import, so that what
`visget.load` imports counts. Calls are measured in this process on functions that do nothing.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.timing import calls_in_turn, in_turn, one_core
from bench.workplace import PROBE, Workplace
from visget import api

# In a fresh process: seconds from before the first import to each point.
_LOAD = """
import time
begun = time.perf_counter()
import visget
library = visget.load({name!r})
loaded = time.perf_counter()
library[{function!r}]
print(loaded - begun, time.perf_counter() - begun)
"""
_CDLL = """
import time
begun = time.perf_counter()
import ctypes
library = ctypes.CDLL({path!r})
loaded = time.perf_counter()
function = library[{function!r}]
function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_uint64
print(loaded - begun, time.perf_counter() - begun)
"""


def measure_startup(
    place: Workplace, library: str, function: str, *, rounds: int, quick: bool, say: Callable[[str], None]
) -> dict[str, object]:
    """Return the rows of all tables about starting.

    Args:
        place: where packages are installed.
        library: the package that is loaded.
        function: one of its functions.
        rounds: how many processes of each kind are started.
        quick: take less time, with less sure results.
        say: told what is being done.
    """
    say("startup: processes")
    with one_core():
        processes = _processes(place, rounds)
        say(f"startup: loading {library}")
        fresh = _fresh(place, library, function, rounds)
        warm = _warm(place, library, rounds, quick=quick)
        say("startup: calls")
        calls = _calls(place, rounds, quick=quick)
    return {"loaded": library, "processes": processes, "fresh": fresh, "warm": warm, "calls": calls}


def _processes(place: Workplace, rounds: int) -> dict[str, object]:
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        'python -c "import ctypes"': [sys.executable, "-c", "import ctypes"],
        'python -c "import visget"': [sys.executable, "-c", "import visget"],
        "visget --version": [sys.executable, "-m", "visget", "--version"],
        "visget --help": [sys.executable, "-m", "visget", "--help"],
    }
    for command in commands.values():
        _process(command, place)
    samples = in_turn(
        {label: lambda command=command: _process(command, place)[0] for label, command in commands.items()}, rounds
    )
    return {label: sample.as_dict() for label, sample in samples.items()}


def _process(command: list[str], place: Workplace) -> tuple[float, str]:
    begun = time.perf_counter()
    done = subprocess.run(
        command, env=place.environ(), cwd=place.directory, check=True, stdout=subprocess.PIPE, text=True
    )
    return time.perf_counter() - begun, done.stdout


def _fresh(place: Workplace, library: str, function: str, rounds: int) -> dict[str, object]:
    place.installed(library)
    path = str(api.path(library, settings=place.settings))
    scripts = {
        "visget.load": _LOAD.format(name=library, function=function),
        "ctypes.CDLL": _CDLL.format(path=path, function=function),
    }
    first: dict[str, list[float]] = {label: [] for label in scripts}

    def once(label: str) -> float:
        _, said = _process([sys.executable, "-c", scripts[label]], place)
        loaded, called = map(float, said.split())
        first[label].append(called)
        return loaded

    for label in scripts:
        once(label)
        first[label].clear()
    samples = in_turn({label: lambda label=label: once(label) for label in scripts}, rounds)
    rows: dict[str, object] = {f"import and {label}": sample.as_dict() for label, sample in samples.items()}
    firsts = in_turn({label: iter(values).__next__ for label, values in first.items()}, rounds)
    rows |= {f"import, {label} and a typed function": sample.as_dict() for label, sample in firsts.items()}
    return rows


def _warm(place: Workplace, library: str, rounds: int, *, quick: bool) -> dict[str, object]:
    path = str(api.path(library, settings=place.settings))
    samples = calls_in_turn(
        {
            "visget.load, again in the same process": lambda: api.load(library, settings=place.settings),
            "ctypes.CDLL, again in the same process": lambda: ctypes.CDLL(path),
        },
        rounds, least=0.002 if quick else 0.02,
    )  # fmt: skip
    return {label: sample.as_dict() for label, sample in samples.items()}


def _calls(place: Workplace, rounds: int, *, quick: bool) -> dict[str, object]:
    place.installed(PROBE)
    typed = api.load(PROBE, settings=place.settings)
    path = str(typed.path)
    least = 0.005 if quick else 0.1
    numbers = _bare(path, "probe_add", [ctypes.c_int, ctypes.c_int], ctypes.c_int)
    address = _bare(path, "probe_first", [ctypes.c_void_p], ctypes.c_double)
    checked = _bare(path, "probe_first", [np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")], ctypes.c_double)
    add, first, x = typed.probe_add, typed.probe_first, np.ones(8)
    groups: dict[str, dict[str, Callable[[], object]]] = {
        "two arguments of type int": {"visget": lambda: add(2, 3), "ctypes, argtypes": lambda: numbers(2, 3)},
        "one NumPy array of double": {
            "visget": lambda: first(x),
            "ctypes, array.ctypes.data": lambda: address(x.ctypes.data),
            "ctypes, numpy.ctypeslib.ndpointer": lambda: checked(x),
        },
        "the loop alone": {"an empty Python function": lambda: None},
    }
    return {
        title: {label: sample.as_dict() for label, sample in calls_in_turn(calls, rounds, least=least).items()}
        for title, calls in groups.items()
    }


def _bare(path: str, name: str, argtypes: list[Any], restype: Any) -> Any:
    function = ctypes.CDLL(path)[name]
    function.argtypes, function.restype = argtypes, restype
    return function
