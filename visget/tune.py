"""``visget build --choose-cleanup``: decide by measurement whether the light clean-up helps this package.

The clean-up makes packages smaller and usually changes no speed, but on some branchy floating-point code it costs up
to 1.5x (docs/adr/0003-cleanup.md). Invariant: the decision is written into visget.toml, so that building the same
sources again gives the same bytes; a build by itself never measures anything.
"""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from visget.cache.store import Store
from visget.config import Settings
from visget.errors import UsageError
from visget.files import atomic_write, translated
from visget.progress import SILENT, Progress
from visget.wiring import limits_of, linker_of, network_of, target_of

Cleanup = Literal["light", "none"]

_CHOICES: tuple[Cleanup, ...] = ("light", "none")
_ROUNDS = 5
# The smaller package wins unless it is slower than this: less is within the noise of most machines.
_WORTH = 1.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was measured and decided."""

    cleanup: Cleanup
    """What visget.toml says now."""
    seconds: dict[str, dict[str, float]]
    """Seconds of each [[bench]] entry for each form of the module: the least of several medians."""
    sizes: dict[str, int]
    """Bytes of the package in each form."""

    @property
    def ratio(self) -> float:
        """How many times slower the clean form is than the raw one: geometric mean over the entries."""
        return statistics.geometric_mean(
            self.seconds["light"][name] / self.seconds["none"][name] for name in self.seconds["none"]
        )

    def as_dict(self) -> dict[str, object]:
        """Return the choice as a JSON object."""
        return {"cleanup": self.cleanup, "ratio": self.ratio, "seconds": self.seconds, "sizes": self.sizes}

    def as_text(self) -> str:
        """Return the measurement for people."""
        lines = [
            f"  {name}: light {self.seconds['light'][name] * 1e3:.3f} ms, none {raw * 1e3:.3f} ms"
            for name, raw in self.seconds["none"].items()
        ]
        head = (
            f"cleaned up, the package takes {self.ratio:.2f}x the time and {self.sizes['light']:,} instead of "
            f"{self.sizes['none']:,} bytes: cleanup = {self.cleanup!r}"
        )
        return "\n".join([head, *lines])


def choose_cleanup(path: Path, *, settings: Settings, progress: Progress = SILENT) -> Choice:
    """Build the project both ways, time its [[bench]] entries on this machine, and write the choice into visget.toml.

    Raises:
        UsageError: the project has no [[bench]] entries.
        VisgetError: a stage failed; visget.toml is as before.
    """
    from visget.format.keys import SecretKey
    from visget.format.package import verify_package
    from visget.format.signing import sign_package
    from visget.installer.answers import time_bench
    from visget.installer.install import install_package
    from visget.installer.limits import answer_limits
    from visget.toolchain.builder import build_package
    from visget.toolchain.project import read_project

    project = read_project(path)
    if not project.benches.vectors:
        raise UsageError(
            "there is nothing to time", where=str(project.path), hint="add [[bench]] tables: calls as in [[vector]]"
        )
    if project.dependencies:
        raise project.wrong(
            ("dependencies",), "a package with dependencies cannot be timed yet", "leave --choose-cleanup out"
        )
    target, limits = target_of(settings, None), answer_limits(limits_of(settings))
    taken: dict[str, dict[str, list[float]]] = {}
    sizes: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="visget-tune-") as directory:
        libraries = {}
        for form in _CHOICES:
            built = build_package(
                replace(project, build=replace(project.build, cleanup=form)), cc=settings.cc, jobs=settings.jobs,
                cache=settings.cache, network=network_of(settings), progress=progress,
            )  # fmt: skip
            key = SecretKey.generate()
            verified = verify_package(built.package, sign_package(built.package, key), [key.public])
            entry = install_package(
                verified, target, Store.open(Path(directory, form)), linker=linker_of(settings, target),
                limits=limits_of(settings), progress=progress,
            )  # fmt: skip
            shared = entry.path / "lib" / f"lib{project.package.name}.so"
            libraries[form] = (shared if shared.exists() else shared.with_suffix(".o"), built.package.api())
            sizes[form] = len(built.data)
            taken[form] = {vector.name: [] for vector in project.benches.vectors}
        for number in range(_ROUNDS):
            progress.step("timing", project.package.name, number, _ROUNDS)
            for form, (library, api) in libraries.items():  # in turn: both meet the same disturbances
                for name, median in time_bench(library, api, project.benches, limits=limits).items():
                    taken[form][name].append(median)
    seconds = {form: {name: min(values) for name, values in times.items()} for form, times in taken.items()}
    measured = Choice(cleanup="light", seconds=seconds, sizes=sizes)
    choice = replace(measured, cleanup="none") if measured.ratio > _WORTH else measured
    _write(project.path, choice.cleanup)
    return choice


def _write(path: Path, cleanup: Cleanup) -> None:
    """Set ``cleanup`` in the table [build] of visget.toml, leaving everything else as it is."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    start = next(number for number, line in enumerate(lines) if line.split("#")[0].strip() == "[build]")
    end = next((n for n in range(start + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    setting = f'cleanup = "{cleanup}"\n'
    old = next((n for n in range(start + 1, end) if lines[n].split("=")[0].strip() == "cleanup"), None)
    if old is not None:
        lines[old] = setting
    else:
        lines.insert(start + 1, setting)
    with translated("write the choice", path):
        atomic_write(path, "".join(lines).encode())
