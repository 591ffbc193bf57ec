"""``visget demo``: the whole main job on a real input, in a temporary directory, with nothing to answer.

It builds examples/numerics, publishes it with a new key into a new registry, installs it for this machine and for
the architecture's generic baseline, checks every function against NumPy or zlib, and times both artifacts.
Invariant: a mismatch is never hidden, and nothing outside the temporary directory changes.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from visget import api
from visget.config import Settings, remember_registry
from visget.errors import UnsupportedError
from visget.progress import SILENT, Progress

if TYPE_CHECKING:
    from visget.demo_checks import Case

_ROUNDS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One function: whether its answers are right, and how fast the two artifacts are."""

    function: str
    """Its name and input size."""
    against: str
    """The reference."""
    error: str
    """How far it is from the reference; "equal" when bit for bit the same."""
    right: bool
    """Whether that is close enough."""
    tuned_us: float
    """Median microseconds of a call of the artifact for this machine."""
    generic_us: float
    """The same for the generic baseline."""

    @property
    def ratio(self) -> float:
        """How many times faster the tuned artifact is."""
        return self.generic_us / self.tuned_us

    def as_dict(self) -> dict[str, object]:
        """Return the line as a JSON object."""
        return {
            "function": self.function, "against": self.against, "error": self.error, "right": self.right,
            "tuned_us": round(self.tuned_us, 3), "generic_us": round(self.generic_us, 3),
            "ratio": round(self.ratio, 3),
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the demo did and found."""

    directory: Path
    """Where it worked."""
    package: str
    """Name and version."""
    size: int
    """Bytes of the .vis file."""
    target: str
    """What the tuned artifact was compiled for."""
    generic: str
    """What the baseline artifact was compiled for."""
    seconds: dict[str, float]
    """Seconds of each stage."""
    lines: tuple[Line, ...]
    """One for each checked function."""

    @property
    def right(self) -> bool:
        """Whether every answer was right."""
        return all(line.right for line in self.lines)

    @property
    def ratio(self) -> float:
        """The geometric mean of the speed-ups."""
        return statistics.geometric_mean(line.ratio for line in self.lines)

    def as_dict(self) -> dict[str, object]:
        """Return the receipt as the JSON object that ``--json`` prints."""
        return {
            "directory": str(self.directory), "package": self.package, "size": self.size, "target": self.target,
            "generic": self.generic, "right": self.right, "ratio": round(self.ratio, 3),
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "functions": [line.as_dict() for line in self.lines],
        }  # fmt: skip


def run_demo(directory: Path, *, settings: Settings, progress: Progress = SILENT) -> Receipt:
    """Do the whole main job inside `directory`.

    Args:
        directory: an existing, empty directory; the store, the registry and the key are made in it.
        settings: the user's settings, of which only limits, linker and compiler are kept.
        progress: told what is going on.

    Raises:
        UnsupportedError: NumPy or ziglang is not installed.
        VisgetError: a stage failed.
    """
    from visget.demo_checks import cases
    from visget.format.keyfile import write_key
    from visget.format.keys import SecretKey
    from visget.registries import trust_own
    from visget.registry.directory import init_registry
    from visget.runtime.library import open_library

    _require("numpy", "demo")
    _require("ziglang", "author")
    # A fixed target or registry of the user must not change what the demo shows.
    own = settings._replace(
        home=directory / "store", cache=directory / "cache", config=directory / "config",
        registry=None, registries={}, target=None,
    )  # fmt: skip
    seconds: dict[str, float] = {}
    sources = importlib.resources.files("visget.examples") / "numerics"
    with importlib.resources.as_file(sources) as project, _timed(seconds, "build"):
        built, package = api.build(project, output=directory / "dist", settings=own, progress=progress)
    with _timed(seconds, "publish"):
        registry = init_registry(directory / "registry", keys=own.config / "registries" / "default")
        own.keys.mkdir(parents=True, mode=0o700)
        key = own.keys / "default.key"
        write_key(key, SecretKey.generate())
        remember_registry(own, "default", str(registry))
        own = own._replace(registries={"default": str(registry)})
        trust_own(own, registry)
        # The installation that follows does what the trial would.
        api.publish(package, key=key, trial=False, settings=own, progress=progress)
    manifest = built.package.manifest
    with _timed(seconds, "install"):
        tuned = api.install(manifest.name, settings=own, progress=progress)
    with _timed(seconds, "install for the generic baseline"):
        generic = api.install(manifest.name, target="baseline", settings=own, progress=progress)
    with _timed(seconds, "load"):
        library = api.load(manifest.name, settings=own)
    plain = open_library(generic.entry.path, name=generic.name, version=generic.version)
    with _timed(seconds, "check and time"):
        pairs = list(zip(cases(library), cases(plain), strict=True))
        lines = []
        for number, (mine, theirs) in enumerate(pairs):
            progress.step("checking answers and timing", mine.function, number, len(pairs))
            lines.append(_line(mine, theirs))
    return Receipt(
        directory=directory, package=f"{manifest.name} {manifest.version}", size=len(built.data),
        target=tuned.target, generic=generic.target, seconds=seconds, lines=tuple(lines),
    )  # fmt: skip


def _line(tuned: Case, generic: Case) -> Line:
    error, right = tuned.check()
    _, also_right = generic.check()
    fast, slow = _medians(tuned, generic)
    return Line(
        function=tuned.function, against=tuned.against, error=error, right=right and also_right,
        tuned_us=fast * 1e6, generic_us=slow * 1e6,
    )  # fmt: skip


def _medians(one: Case, other: Case) -> tuple[float, float]:
    """Return the median seconds of a call of each, measured in turn so that both meet the same disturbances."""
    begun = time.perf_counter()
    one.call()
    repeat = max(1, min(2000, int(0.01 / max(time.perf_counter() - begun, 1e-7))))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for case, taken in zip((one, other), times, strict=True):
            case.renew()
            begun = time.perf_counter()
            for _ in range(repeat):
                case.call()
            taken.append((time.perf_counter() - begun) / repeat)
    return statistics.median(times[0]), statistics.median(times[1])


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - begun


def _require(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise UnsupportedError(
            f"the demo needs {module}, which is not installed", hint=f"pip install 'visget[{extra}]'"
        )
