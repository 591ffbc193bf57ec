"""What a package may take from the C library of the user's machine: the platform interface.

Invariant: the table holds names whose meaning, arguments, structures and constants are the same in every C library
that VIS serves, seen through visget's own headers, with the signature that the neutral lowering gives them; whatever
is not in it is refused (visget.format.refused_imports has the reasons for well-known names). A name is never taken
out, nor its signature changed; what is added gets a new level. The spec is docs/spec/platform.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from visget.format.platform_iso import ISO
from visget.format.platform_program import PROGRAM
from visget.format.platform_system import SYSTEM
from visget.format.platform_text import TEXT

LEVEL = 2
"""The highest level of the platform interface that this visget knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """An allowed function, with the LLVM types of its result and parameters."""

    name: str
    result: str
    params: tuple[str, ...]
    variadic: bool = False
    level: int = 1
    """The level of the platform interface that brought it."""
    program: bool = False
    """Whether only programs may use it, and packages may not."""

    @property
    def signature(self) -> str:
        """The types as text, such as `i32 (ptr, ...)`."""
        return f"{self.result} ({', '.join([*self.params, *['...'] * self.variadic])})"


# Level 2: C++ exceptions, from libgcc_s.so.1.
_UNWINDER: tuple[tuple[str, str], ...] = (
    ("i32 (ptr)", "_Unwind_RaiseException _Unwind_Resume_or_Rethrow"),
    ("void (ptr)", "_Unwind_Resume _Unwind_DeleteException"),
    ("i32 (ptr, ptr, ptr)", "_Unwind_ForcedUnwind"),
    ("i32 (ptr, ptr)", "_Unwind_Backtrace"),
    ("ptr (ptr)", "_Unwind_GetLanguageSpecificData"),
    ("i64 (ptr, i32)", "_Unwind_GetGR"),
    ("void (ptr, i32, i64)", "_Unwind_SetGR"),
    ("void (ptr, i64)", "_Unwind_SetIP"),
    (
        "i64 (ptr)",
        "_Unwind_GetIP _Unwind_GetCFA _Unwind_GetRegionStart _Unwind_GetTextRelBase _Unwind_GetDataRelBase",
    ),
    ("i64 (ptr, ptr)", "_Unwind_GetIPInfo"),
)

_PROGRAM_DATA = "environ optarg optind opterr optopt program_invocation_name program_invocation_short_name"
_VA_LIST_FAMILY = (
    "vprintf vfprintf vsprintf vsnprintf vscanf vfscanf vsscanf vasprintf vdprintf vwprintf vfwprintf vswprintf "
    "vwscanf vfwscanf vswscanf vsyslog vwarn vwarnx verr verrx"
)
_PROCESS_WIDE = "setlocale setenv putenv unsetenv chdir fchdir umask sigaction sigprocmask system popen"

DATA = {
    "stdin": "ptr", "stdout": "ptr", "stderr": "ptr",
    # Level 2.
    "timezone": "i64", "daylight": "i32", "tzname": "[2 x ptr]", "in6addr_any": "[16 x i8]",
    "in6addr_loopback": "[16 x i8]",
    "environ": "ptr", "optarg": "ptr", "optind": "i32", "opterr": "i32", "optopt": "i32",
    "program_invocation_name": "ptr", "program_invocation_short_name": "ptr",
}  # fmt: skip
"""The allowed external data, with its type; an array of bytes stands for a structure of that size."""

PROGRAM_DATA = frozenset(_PROGRAM_DATA.split())
"""The data among them that only programs may use."""

VA_LIST_FAMILY = frozenset(_VA_LIST_FAMILY.split())
"""The imports that take a va_list, as their last parameter. Where the target's va_list is a pointer, the installer
adapts the calls."""

PROCESS_WIDE = frozenset(_PROCESS_WIDE.split())
"""The imports that change something for the whole process, or start programs. A library that uses them surprises its
host."""

BUILT_INS = {
    "__vis_va_start": "void (ptr)",
    "__vis_va_end": "void (ptr)",
    "__vis_va_copy": "void (ptr, ptr)",
    "__vis_va_arg_gp": "ptr (ptr)",
    "__vis_va_arg_fp": "ptr (ptr)",
    "__vis_va_arg_pair": "ptr (ptr, ptr)",
    "__vis_va_arg_i128": "ptr (ptr, ptr)",
    "__vis_va_arg_f128": "ptr (ptr)",
    # Level 2. A header gives them the C library's names by asm labels; they may be called, and their address taken.
    "__vis_stat": "i32 (ptr, ptr)",
    "__vis_lstat": "i32 (ptr, ptr)",
    "__vis_fstat": "i32 (i32, ptr)",
    "__vis_fstatat": "i32 (i32, ptr, ptr, i32)",
    "__vis_open": "i32 (ptr, i32, ...)",
    "__vis_openat": "i32 (i32, ptr, i32, ...)",
    "__vis_fcntl": "i32 (i32, i32, ...)",
    "__vis_atexit": "i32 (ptr)",
    "__vis_cxa_atexit": "i32 (ptr, ptr, ptr)",
    "__vis_pthread_atfork": "i32 (ptr, ptr, ptr)",
    "__vis_strerror_r": "i32 (i32, ptr, i64)",
    "__vis_basename": "ptr (ptr)",
    "__vis_eh_return_data_regno": "i32 (i32)",
}
"""The functions that the installer itself provides, with their signatures."""

AT_THE_END = frozenset(("__vis_atexit", "__vis_cxa_atexit", "__vis_pthread_atfork"))
"""The built-ins by which a library asks to be called when it is unloaded, so that code runs then."""

_SIGNATURE = re.compile(r"(.*?) \((.*)\)\Z")


def _parse(name: str, signature: str, *, level: int, program: bool) -> Import:
    match = _SIGNATURE.match(signature)
    assert match, signature  # noqa: S101 - the tables are part of the program
    params = tuple(part for part in match[2].split(", ") if part)
    fixed = tuple(part for part in params if part != "...")
    variadic = fixed != params
    return Import(name=name, result=match[1], params=fixed, variadic=variadic, level=level, program=program)


def _table() -> dict[str, Import]:
    parts = ((ISO, 1, False), (TEXT, 2, False), (SYSTEM, 2, False), (_UNWINDER, 2, False), (PROGRAM, 2, True))
    return {
        name: _parse(name, signature, level=level, program=program)
        for groups, level, program in parts
        for signature, names in groups
        for name in names.split()
    }


IMPORTS: dict[str, Import] = _table()
"""The allowed functions by name."""

_FIRST_LEVEL = frozenset(("stdin", "stdout", "stderr", *(name for name in BUILT_INS if "_va_" in name)))


def platform_level(names: Iterable[str]) -> int:
    """Return the level of the platform interface that a module needs which uses `names` (functions, data, built-ins).

    Names that are not in the tables count as level 1: they come from dependencies, or a rule refuses them.
    """
    return max((_level(name) for name in names), default=1)


def _level(name: str) -> int:
    if name in IMPORTS:
        return IMPORTS[name].level
    return 2 if (name in DATA or name in BUILT_INS) and name not in _FIRST_LEVEL else 1
