"""What was measured on, and with what; in general words.

Invariant: no host name, no path, no serial number: the page is public.
"""

from __future__ import annotations

import platform

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from bench.native import compilers
from visget.installer.detect import detect_host
from visget.version import __version__


def describe_host() -> dict[str, str]:
    """Return facts about machine and tools, by what they are."""
    host = detect_host()
    caches = (f"L{cache.level} {cache.size >> 10} KiB" for cache in host.caches if cache.kind != "instruction")
    facts = {
        "processor": f"{host.model or host.vendor} ({host.label}){', in a virtual machine' if host.virtual else ''}",
        "cores": str(host.cores),
        "caches": ", ".join(dict.fromkeys(caches)),
        "operating system": f"{_system()}, Linux {'.'.join(platform.release().split('.')[:2])}",
        "C library": " ".join(platform.libc_ver()),
        "Python": f"{platform.python_version()}, NumPy {np.__version__}",
        "visget": f"{__version__}, llvmlite {llvmlite.__version__} (LLVM {'.'.join(map(str, llvm.llvm_version_info))})",
        "compilers": ", ".join(dict.fromkeys(compiler.version for compiler in compilers())),
    }
    return {name: text for name, text in facts.items() if text}


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return platform.system()
