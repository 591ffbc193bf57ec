"""What distinguishes this machine's processor, read cheaply from the operating system.

A home directory may be shared by machines with different processors. The store remembers, for each *machine
id*, which native artifact serves it; computing the id must therefore be cheap and must not need LLVM, for it is
on the path of ``visget.load``. Invariant: equal ids mean that the operating system reports the same
architecture, processor model, feature flags and C library.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import NewType

from visget.digest import digest_bytes

MachineId = NewType("MachineId", str)
"""16 hexadecimal characters."""

# The lines of the first processor's block in /proc/cpuinfo that tell processors apart (x86, Arm, RISC-V).
_KEYS = frozenset(
    [
        "vendor_id", "cpu family", "model", "flags",
        "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features",
        "isa", "mmu", "uarch", "mvendorid", "marchid", "mimpid",
    ]
)


def machine_id_of(architecture: str, system: str, cpuinfo: str, libc: str) -> MachineId:
    """Return the id that belongs to these facts; a pure function, tested with recorded hosts."""
    facts = [architecture, system, libc]
    for line in cpuinfo.partition("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        if key.strip() in _KEYS:
            facts.append(f"{key.strip()}={' '.join(sorted(value.split()))}")
    return MachineId(digest_bytes("\n".join(facts).encode())[:16])


@functools.cache
def libc_version() -> str:
    """Return the GNU C library's name and version, such as "glibc 2.36"; "musl" for any other on Linux, else "".

    The version belongs to the id because a library is linked with the symbol versions of the machine that linked it.
    """
    if sys.platform != "linux":
        return ""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "musl"
    except (ValueError, OSError):
        return "musl"


def libc_family() -> str:
    """Return "gnu" or "musl" on Linux, else an empty string."""
    version = libc_version()
    return "gnu" if version.startswith("glibc") else version


@functools.cache
def machine_id() -> MachineId:
    """Return the id of the machine that this process runs on."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        cpuinfo = ""
    return machine_id_of(os.uname().machine, sys.platform, cpuinfo, libc_version())
