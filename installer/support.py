"""The VIS built-ins of a target, and how a module gets those that it uses.

Built-ins are IR text that is appended to the legalised module; the optimiser inlines them away. What each means is
docs/spec/vis-1.md, section 4; where each is written: visget.installer.support_va, support_shims, support_files and
support_process.

Invariant: pure; what is added defines only what was asked for and what that needs, all of it internal; each symbol
that it takes from the C library is declared once, and means the C library's even where the module has an internal
symbol of the same name.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping

from visget.errors import UnsupportedError
from visget.format.imports import BUILT_INS
from visget.installer.legalise import ARCHITECTURES, add_destructor, outside_strings
from visget.installer.support_files import file_built_ins
from visget.installer.support_parts import BuiltIn
from visget.installer.support_process import process_built_ins
from visget.installer.support_shims import shims
from visget.installer.support_systems import system_built_ins
from visget.installer.support_va import va_built_ins
from visget.installer.systems import MACOS, NAMES, WINDOWS

_DECLARED = re.compile(r"^declare [^\n]*?@([-\w$.]+)\(", re.MULTILINE)
_OWN = re.compile(
    r"^(?:define (?:internal|private) [^\n]*?@([-\w$.]+)\(|@([-\w$.]+) = (?:internal|private) )", re.MULTILINE
)
_VISIBLE = re.compile(r"^define (?!internal |private )[^\n]*?@([-\w$.]+)\(", re.MULTILINE)


@functools.cache
def built_ins(arch: str, libc: str) -> Mapping[str, BuiltIn]:
    """Return the built-ins for `arch` with the C library `libc` ("gnu", "musl", or a system's name), by name."""
    if arch not in ARCHITECTURES:
        return {}
    found = va_built_ins(arch, libc) | shims(arch, libc) | file_built_ins(arch) | process_built_ins(arch, libc)
    if libc not in NAMES:
        return found
    known = NAMES[libc].built_ins
    kept = {name: part for name, part in found.items() if name in known or name not in BUILT_INS}
    return kept | system_built_ins(libc)


def with_support(text: str, arch: str, libc: str, wanted: Iterable[str]) -> str:
    """Replace the declarations of the built-ins `wanted` in the module `text` by their definitions.

    Raises:
        UnsupportedError: a built-in is not known to this version of visget.
    """
    parts = _closure(built_ins(arch, libc), wanted, f"{arch}-{libc}" if libc in NAMES else arch)
    if not parts:
        return text
    names = "|".join(re.escape(name) for name in sorted(parts))
    text = re.sub(rf"^declare [^\n]*@(?:{names})\([^\n]*\n", "", text, flags=re.MULTILINE)
    externals = {name: line for part in parts.values() for name, line in part.externals.items()}
    for name in sorted({found[1] or found[2] for found in _OWN.finditer(text)} & externals.keys()):
        text = _renamed(text, name)
    # What the module shows to others takes the C library's place for its own calls too, as in any program.
    missing = externals.keys() - set(_DECLARED.findall(text)) - set(_VISIBLE.findall(text))
    support = "".join(part.text for _, part in sorted(parts.items()))
    if (arch == "aarch64" and libc != MACOS) or libc == WINDOWS:
        # Nobody extends small integers there (visget.installer.legalise).
        support = support.replace(" signext", "")
        externals = {name: line.replace(" signext", "") for name, line in externals.items()}
    for part in parts.values():
        if part.finaliser is not None:
            text = add_destructor(text, part.finaliser)
    lines = "".join(f"{externals[name]}\n" for name in sorted(missing))
    return f"{text.rstrip()}\n{support}\n{lines}"


def _closure(library: Mapping[str, BuiltIn], wanted: Iterable[str], where: str) -> dict[str, BuiltIn]:
    found: dict[str, BuiltIn] = {}
    pending = sorted(wanted)
    unknown = [name for name in pending if name not in library]
    if unknown:
        raise UnsupportedError(
            f"the package needs the VIS built-in {unknown[0]}, which this version of visget does not have for {where}",
            hint="install a newer visget, or ask the author for a version of the package that does without it",
            details={"builtins": unknown},
        )
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = library[name]
            pending.extend(library[name].needs)
    return found


def _renamed(text: str, name: str) -> str:
    """Give the module's own symbol `name` another one, so that the built-ins can reach the C library's."""
    other = f"{name}.vis"
    while f"@{other}" in text:
        other += ".vis"
    pattern = re.compile(rf"@{re.escape(name)}(?![-\w$.])")
    return outside_strings(text, (f"@{name}",), lambda piece: pattern.sub(f"@{other}", piece))
