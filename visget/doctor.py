"""``visget doctor``: look at this installation and explain each finding.

Invariant: a check changes nothing that lasts, never raises because of what it finds, and each finding that is not
fine names its remedy.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from visget.config import Settings
from visget.errors import VisgetError
from visget.wiring import store_of

if TYPE_CHECKING:
    from visget.installer.target import Target

Status = Literal["ok", "warning", "problem"]

_LOW_SPACE = 1 << 30
_DAYS_LEFT = 3.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One thing that was looked at."""

    subject: str
    """What."""
    status: Status
    """How it is."""
    text: str
    """What was found."""
    remedy: str | None = None
    """What to do about it."""

    def as_dict(self) -> dict[str, object]:
        """Return the finding as a JSON object."""
        return {"subject": self.subject, "status": self.status, "text": self.text, "remedy": self.remedy}


def examine(settings: Settings, wrong: VisgetError | None = None) -> Iterator[Diagnosis]:
    """Yield one finding after the other; each check is guarded by itself.

    Args:
        settings: the settings, or what is left of them.
        wrong: why that is not all of them.
    """
    if wrong is not None:
        yield Diagnosis(
            subject="settings", status="problem",
            text=f"{wrong.where}: {wrong.message}" if wrong.where else wrong.message,
            remedy=wrong.hint or "mend it; until then every other command stops there, and this one uses the defaults",
        )  # fmt: skip
    checks: list[tuple[str, Callable[[Settings], Iterator[Diagnosis]]]] = [
        ("python", _python), ("compiler", _compiler), ("front end", _front_end), ("linker", _linker),
        ("target", _target), ("store", _store), ("keys", _keys), ("registries", _registries),
        ("self test", _self_test), ("devices", _devices), ("sandbox", _sandbox),
    ]  # fmt: skip
    for subject, check in checks:
        try:
            yield from check(settings)
        except VisgetError as error:
            yield Diagnosis(subject=subject, status="problem", text=error.message, remedy=error.hint)


def _python(_: Settings) -> Iterator[Diagnosis]:
    yield Diagnosis(
        subject="python", status="ok",
        text=f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}",
    )  # fmt: skip


def _compiler(_: Settings) -> Iterator[Diagnosis]:
    from visget.format.module import BITCODE_EPOCH
    from visget.installer.compile import compiler_identity

    yield Diagnosis(
        subject="compiler", status="ok", text=f"{compiler_identity()}; reads bitcode up to LLVM {BITCODE_EPOCH}"
    )


def _front_end(_: Settings) -> Iterator[Diagnosis]:
    if importlib.util.find_spec("ziglang") is None:
        yield Diagnosis(
            subject="front end", status="warning", text="ziglang is not installed; only authors need it",
            remedy="to build packages: pip install 'visget[author]'",
        )  # fmt: skip
        return
    yield Diagnosis(subject="front end", status="ok", text=f"ziglang {importlib.metadata.version('ziglang')}")


def _linker(settings: Settings) -> Iterator[Diagnosis]:
    from visget.installer.detect import host_target
    from visget.installer.linkers import find_linker

    linker = find_linker(settings.linker, host_target())
    if linker is None:
        yield Diagnosis(
            subject="linker", status="warning",
            text="no linker: libraries are loaded by LLVM's own, and C programs can use only the static archive",
            remedy="install ld, lld or a C compiler, or pip install 'visget[author]'",
        )  # fmt: skip
        return
    yield Diagnosis(subject="linker", status="ok", text=str(linker))


def _target(settings: Settings) -> Iterator[Diagnosis]:
    from visget.installer.detect import detect_host
    from visget.wiring import target_of

    facts = detect_host()
    wanted: Target = target_of(settings, None)
    if wanted != facts.target:
        yield Diagnosis(
            subject="target", status="warning", text=f"packages are compiled for {wanted.key()}, not for this machine",
            remedy="unset VISGET_TARGET or the key `target` in config.toml if that is not meant",
        )  # fmt: skip
    if facts.masked:
        names = ", ".join(facts.masked[:6])
        yield Diagnosis(
            subject="target", status="warning",
            text=f"a processor called {facts.target.cpu} normally has {names}; this "
            f"{'virtual ' if facts.virtual else ''}machine does not",
            remedy="nothing to do: packages use what is there. In a virtual machine, pass the host's features through",
        )  # fmt: skip
    yield Diagnosis(subject="target", status="ok", text=f"{facts.label} ({facts.model}), {facts.cores} cores")


def _store(settings: Settings) -> Iterator[Diagnosis]:
    store = store_of(settings)
    free = shutil.disk_usage(store.root).free
    if not os.access(store.root, os.W_OK):
        yield Diagnosis(
            subject="store", status="problem", text=f"{store.root} cannot be written",
            remedy="choose another place with VISGET_HOME",
        )  # fmt: skip
    elif free < _LOW_SPACE:
        yield Diagnosis(
            subject="store", status="warning", text=f"only {free >> 20} MiB are free at {store.root}",
            remedy="visget cache gc --all",
        )  # fmt: skip
    else:
        yield Diagnosis(subject="store", status="ok", text=f"{store.root}, {free >> 30} GiB free")


def _keys(settings: Settings) -> Iterator[Diagnosis]:
    from visget.format.keyfile import read_key_file

    found = sorted(settings.keys.glob("*.key")) if settings.keys.is_dir() else []
    for path in found:
        yield Diagnosis(subject="keys", status="ok", text=f"{path.stem}: {read_key_file(path).public.id}")
    if found and stat.S_IMODE(settings.keys.stat().st_mode) & 0o077:
        yield Diagnosis(
            subject="keys", status="warning", text=f"{settings.keys} can be read by others",
            remedy=f"chmod 700 {settings.keys}",
        )  # fmt: skip


def _registries(settings: Settings) -> Iterator[Diagnosis]:
    from visget.registries import reading

    if not settings.registries and settings.registry is None:
        yield Diagnosis(
            subject="registries", status="warning", text="no registry is configured",
            remedy="visget registry init DIR makes one; --registry names one for a single command",
        )  # fmt: skip
    for name, location in sorted(settings.registries.items()):
        with reading(settings, name) as source:
            count = len(source.names())
            left = (source.view.expires - time.time()) / 86400
        if left < _DAYS_LEFT:
            yield Diagnosis(
                subject="registries", status="warning",
                text=f"the signatures of {name} hold for {max(left, 0):.0f} more days; then nothing is accepted",
                remedy="its operator renews them: visget registry refresh",
            )  # fmt: skip
        yield Diagnosis(subject="registries", status="ok", text=f"{name}: {location} ({count} packages)")


def _self_test(settings: Settings) -> Iterator[Diagnosis]:
    """Compile, link and call one function, with the real worker and linker, in a temporary directory."""
    from visget.installer.selftest import compile_one_function

    milliseconds = compile_one_function(linker=settings.linker)
    yield Diagnosis(
        subject="self test", status="ok", text=f"compiled, linked and called a function in {milliseconds:.0f} ms"
    )


def _devices(_: Settings) -> Iterator[Diagnosis]:
    from visget.installer.devices import list_devices

    found = list_devices()
    if not found.devices:
        yield Diagnosis(subject="devices", status="ok", text=f"no OpenCL device: {found.reason}")
    for device in found.devices:
        yield Diagnosis(subject="devices", status="ok", text=f"{device.kind}: {device.name} ({device.platform})")


def _sandbox(settings: Settings) -> Iterator[Diagnosis]:
    """Try everything that the children of an installation must not do."""
    from visget.installer.sandbox import lacking
    from visget.installer.sandbox_probe import probe_sandbox
    from visget.wiring import limits_of

    if settings.sandbox == "off":
        yield Diagnosis(
            subject="sandbox", status="warning",
            text="switched off: compilers and fresh libraries can read and write whatever you can",
            remedy="unset VISGET_SANDBOX or the key `sandbox` in config.toml",
        )  # fmt: skip
        return
    report = probe_sandbox(limits_of(settings))
    for trial in report.broken:
        yield Diagnosis(
            subject="sandbox", status="problem", text=f"{trial}, which must be impossible ({trial.outcome})",
            remedy="install only packages whose authors you trust, and report this with `visget doctor --json`",
        )  # fmt: skip
    if missing := lacking(report.level):
        doing = ", ".join(sorted({str(trial) for trial in report.open}))
        yield Diagnosis(
            subject="sandbox", status="warning", text=f"{report.level}: {missing}" + (f" ({doing})" if doing else ""),
            remedy="install packages only from authors you trust; see SECURITY.md",
        )  # fmt: skip
    denied = sum(trial.denied for trial in report.trials)
    if not report.broken:
        yield Diagnosis(
            subject="sandbox", status="ok",
            text=f"{report.level}: {denied} of {len(report.trials)} forbidden things were tried and denied",
        )  # fmt: skip
