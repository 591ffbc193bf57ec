"""Functions of libc that take a va_list, on targets where a va_list is a pointer.

A VIS module passes the address of its own 32-byte list; such a libc wants the pointer that is inside. Invariant: pure;
every function here is internal. The family is docs/spec/pipeline.md, section "Legalisation".
"""

from __future__ import annotations

from visget.installer.legalise import VA_FAMILY
from visget.installer.support_parts import BuiltIn, declare
from visget.installer.systems import MACOS, WINDOWS

POINTER_LISTS = frozenset(["riscv64", MACOS, WINDOWS])
"""The architectures, and the systems, whose va_list is a pointer."""

_I32 = "signext i32"
_PARAMETERS = {
    "vprintf": (_I32, "ptr"),
    "vfprintf": (_I32, "ptr, ptr"),
    "vsprintf": (_I32, "ptr, ptr"),
    "vsnprintf": (_I32, "ptr, i64, ptr"),
    "vdprintf": (_I32, "i32 signext, ptr"),
    "vasprintf": (_I32, "ptr, ptr"),
    "vscanf": (_I32, "ptr"),
    "vfscanf": (_I32, "ptr, ptr"),
    "vsscanf": (_I32, "ptr, ptr"),
    "vwprintf": (_I32, "ptr"),
    "vfwprintf": (_I32, "ptr, ptr"),
    "vswprintf": (_I32, "ptr, i64, ptr"),
    "vwscanf": (_I32, "ptr"),
    "vfwscanf": (_I32, "ptr, ptr"),
    "vswscanf": (_I32, "ptr, ptr"),
    "vsyslog": ("void", "i32 signext, ptr"),
    "verr": ("void", "i32 signext, ptr"),
    "verrx": ("void", "i32 signext, ptr"),
    "vwarn": ("void", "ptr"),
    "vwarnx": ("void", "ptr"),
}


def shims(arch: str, libc: str) -> dict[str, BuiltIn]:
    """Return the adapters that `arch` needs with the C library `libc`."""
    if not POINTER_LISTS & {arch, libc}:
        return {}
    return {f"__vis_{name}": _shim(name, *_PARAMETERS[name]) for name in VA_FAMILY}


def _shim(name: str, result: str, parameters: str) -> BuiltIn:
    """Return a function that passes libc the pointer inside a va_list instead of the list's address."""
    values = [f"{kind} %a{number}" for number, kind in enumerate(parameters.split(", "))]
    signature = ", ".join([*values, "ptr %list"])
    arguments = ", ".join([*values, "ptr %next"])
    if result == "void":
        call = f"  call void @{name}({arguments})\n  ret void"
    else:
        call = f"  %result = call {result} @{name}({arguments})\n  ret i32 %result"
    text = f"""
define internal {result} @__vis_{name}({signature}) uwtable {{
  %next = load ptr, ptr %list, align 8
{call}
}}
"""
    return BuiltIn(text=text, externals=declare(result, name, f"{parameters}, ptr"))
