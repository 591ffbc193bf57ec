"""What this machine is: the processor's features decide, its name only tunes.

Invariant: host_target() names each feature that the processor family may have as present or absent, wherever
LLVM or the kernel can tell, because virtual machines mask features that the processor's name implies. Reading
is done here; understanding what was read is done by the pure functions below and in cpuinfo.py.
"""

from __future__ import annotations

import functools
import logging
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from visget.errors import UnsupportedError
from visget.installer.cpuinfo import Cache, CpuInfo, parse_cache, parse_cpuinfo
from visget.installer.devices import DeviceList, list_devices
from visget.installer.target import (
    ARCHITECTURES,
    X86_LEVEL_FEATURES,
    Target,
    baseline,
    make_target,
    no_back_end,
    x86_level,
)
from visget.machine import libc_family

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_HIGHEST_LEVEL = list(X86_LEVEL_FEATURES)[-1]
# LLVM names that archspec's table lacks -> one with (at least) the same features.
_SAME_FEATURES = {"emeraldrapids": "sapphirerapids", "icelake-server": "icelake-client", "rocketlake": "icelake-client"}
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """This machine, for `visget target` and for receipts."""

    target: Target
    """What code for this machine is compiled for."""
    label: str
    """The microarchitecture's name for people, from archspec's table, such as ``zen4``."""
    vendor: str
    model: str
    """The processor's name in the kernel's words."""
    virtual: bool
    """Whether the kernel says that this is a virtual machine."""
    masked: tuple[str, ...]
    """Features that archspec expects of a processor with this name and that this machine lacks."""
    cores: int
    """The processors that this process may use."""
    caches: tuple[Cache, ...]
    os: str
    """The operating system with its version."""
    libc: str
    """``gnu`` or ``musl``."""
    libc_version: str
    """Empty when unknown."""
    opencl: DeviceList

    def as_dict(self) -> dict[str, object]:
        """Return the facts as the JSON object of `visget target --json`."""
        return {
            "target": self.target.as_dict(),
            "label": self.label,
            "vendor": self.vendor,
            "model": self.model,
            "virtual": self.virtual,
            "masked": list(self.masked),
            "cores": self.cores,
            "caches": [cache.as_dict() for cache in self.caches],
            "os": self.os,
            "libc": {"family": self.libc, "version": self.libc_version},
            "opencl": {
                "devices": [device.as_dict() for device in self.opencl.devices],
                "reason": self.opencl.reason or None,
            },
        }

    def as_lines(self, wanted: Target) -> list[str]:
        """Return the facts for people; `wanted` is what packages are compiled for."""
        on = [feature[1:] for feature in wanted.features if feature[0] == "+"]
        off = [feature[1:] for feature in wanted.features if feature[0] == "-"]
        caches = ", ".join(f"L{c.level} {c.kind} {_human(c.size)}" for c in self.caches)
        libc = f"{'glibc' if self.libc == 'gnu' else self.libc} {self.libc_version}".strip()
        rows = [
            ("machine", f"{self.label or self.target.arch}{', a virtual machine' if self.virtual else ''}"),
            ("processor", self.model or self.vendor),
            ("cores", str(self.cores)),
            ("caches", caches),
            ("system", f"{self.os}, {libc}"),
            *(("OpenCL", f"{d.name} ({d.platform}, {d.kind}, {d.units} units)") for d in self.opencl.devices),
            ("OpenCL", f"no device: {self.opencl.reason}" if self.opencl.reason else ""),
            ("masked", ", ".join(self.masked)),
            ("target", f"{wanted}{'' if wanted == self.target else ' (not this machine)'}"),
            ("features", " ".join(on) or f"those of {wanted.cpu}"),
            # On this machine itself that is everything that other machines have.
            ("off", "" if wanted == self.target else " ".join(off)),
        ]
        return [f"{name:<10} {text}" for name, text in rows if text]


@functools.cache
def host_target() -> Target:
    """Return the target of this machine; cheap enough for every command that compiles.

    Raises:
        UnsupportedError: this machine's platform has no back end.
    """
    arch, libc = _host_platform()
    return choose_target(arch, libc, *_ask_llvm(), parse_cpuinfo(arch, _read(_CPUINFO)))


def detect_host() -> HostFacts:
    """Return everything that is known about this machine; asks the OpenCL drivers too.

    Raises:
        UnsupportedError: this machine's platform has no back end.
    """
    target = host_target()
    info = parse_cpuinfo(target.arch, _read(_CPUINFO))
    return HostFacts(
        target=target,
        label=_label(),
        vendor=info.vendor,
        model=info.model,
        virtual=info.hypervisor,
        masked=masked_features(target, _archspec_features(target.cpu)),
        cores=len(os.sched_getaffinity(0)),
        caches=_caches(),
        os=f"{platform.system()} {platform.release()}",
        libc=target.libc,
        libc_version=platform.libc_ver()[1] if target.libc == "gnu" else "",
        opencl=list_devices(),
    )


def choose_target(arch: str, libc: str, name: str, llvm: Mapping[str, bool], info: CpuInfo) -> Target:
    """Return the target of the machine that LLVM and the kernel describe like this; a pure function.

    Args:
        arch: the processor family.
        libc: the C library.
        name: the processor in LLVM's words; empty or ``generic`` when LLVM does not know it.
        llvm: the features that LLVM found present and absent; may be empty.
        info: the kernel's account.
    """
    # LLVM asks an x86 processor itself, and knows what the kernel has enabled; the kernel's text adds nothing.
    # On Arm and RISC-V LLVM reads the same text but reports only part of what is absent.
    features = [f"{'+' if present else '-'}{feature}" for feature, present in llvm.items()]
    if arch != "x86_64" or not features:
        known = {feature[1:] for feature in features}
        features += [feature for feature in info.features if feature[1:] not in known or feature[0] == "-"]
    generic = baseline(arch, libc)
    if not features:
        return generic
    cpu = name if name not in ("", "generic", "help") else info.cpu or generic.cpu
    if arch == "x86_64":
        level = x86_level(features)
        if name in ("", "generic") or (level != _HIGHEST_LEVEL and level_of_name(name) > level):
            # Masked that much, the name's tuning (say, for 512-bit registers) is wrong too.
            cpu = level
        # LLVM lists the mode beside the features; it belongs to the triple.
        features = [feature for feature in features if feature[1:] not in ("64bit", "cmov", "cx8", "fxsr", "mmx")]
    return make_target(arch, libc, cpu, features)


def level_of_name(name: str) -> str:
    """Return the x86-64 level that archspec's table gives a processor of that name; the lowest if unknown."""
    expected = _archspec_features(name)
    # archspec writes features as the kernel does.
    spelled = {"cx16": "cx16", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "bmi": "bmi1", "lzcnt": "abm", "sahf": ""}
    best = next(iter(X86_LEVEL_FEATURES))
    for level, features in X86_LEVEL_FEATURES.items():
        wanted = {spelled.get(feature, feature) for feature in features} - {"", "cx16", "sse3", "xsave"}
        if expected and wanted <= expected:
            best = level
    return best


def masked_features(target: Target, expected: frozenset[str]) -> tuple[str, ...]:
    """Return the features in `expected` (the kernel's words) that `target` switches off."""
    off = {feature[1:].replace(".", "").replace("-", "") for feature in target.features if feature[0] == "-"}
    return tuple(sorted(name for name in expected if name.replace("_", "") in off))


def _archspec_features(name: str) -> frozenset[str]:
    """Return the features, in the kernel's words, of the processor that LLVM calls `name`; empty if unknown."""
    import archspec.cpu  # its table takes 20 ms to read

    name = _SAME_FEATURES.get(name, name)
    for entry in archspec.cpu.TARGETS.values():
        clang = {str(compiler.get("name", "")) for compiler in entry.compilers.get("clang", ())}
        if name == entry.name.replace("_", "-") or name in clang:
            return frozenset(entry.features)
    return frozenset()


def _label() -> str:
    import archspec.cpu

    try:
        return str(archspec.cpu.host().name)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        # Only a name for people is lost; archspec documents no errors for machines that it does not know.
        _log.info("archspec could not name this processor: %s", error)
        return ""


def _ask_llvm() -> tuple[str, Mapping[str, bool]]:
    import llvmlite.binding as llvm

    try:
        return llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())
    except RuntimeError as error:
        _log.info("LLVM cannot list this processor's features: %s", error)
        return "", {}


def _host_platform() -> tuple[str, str]:
    machine = platform.machine().lower()
    arch = _MACHINES.get(machine, machine)
    if sys.platform != "linux":
        raise no_back_end(f"{arch}-{platform.system().lower() or sys.platform}")
    if arch not in ARCHITECTURES:
        raise no_back_end(f"{arch}-linux")
    if sys.maxsize < 2**32:
        raise UnsupportedError(
            "this Python is a 32-bit program, and visget makes 64-bit libraries",
            hint="use a 64-bit Python",
        )
    return arch, libc_family()


def _human(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _caches() -> tuple[Cache, ...]:
    found = (
        parse_cache(*(_read(index / name) for name in ("level", "type", "size", "coherency_line_size")))
        for index in sorted(_CACHES.glob("index*"))
    )
    return tuple(cache for cache in found if cache is not None)
