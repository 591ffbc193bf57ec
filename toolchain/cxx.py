"""Linking the C++ run-time library into a module: what of libc++ and libc++abi it needs, and nothing else.

Invariant: the same module and the same library give the same result, whatever the cache holds. Afterwards no symbol of
C++ is undefined, but for what the library does not have; that is a finding of VIS-502 later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from visget.format.module import link, text_of
from visget.progress import SILENT, Progress
from visget.toolchain.clang import Frontend
from visget.toolchain.cxxlibrary import SETS, CxxLibrary, LibraryUnit, open_library
from visget.toolchain.irnames import Names, names_of, reachable

# new and delete; what lies in std and __cxxabiv1, its tables and thunks too; type information of numbers. Not the
# author's own: looking for a symbol that the library does not have would compile all of it.
_CXX = re.compile(
    r"_Z(?:n[wa]|d[la]|(?:T[VTISC]|GV|GR|T[hvc][0-9nv_]*_)?(?:N[KVRO]*)?(?:St|10__cxxabiv1)"
    r"|T[IS]P?K?(?:D[a-z]|[a-z])\Z)|__cxa_|__gxx_personality_v0\Z|__dynamic_cast\Z|__dso_handle\Z|vis_cxx_"
)
_UNDEFINED = re.compile(r"^(?:declare [^\n@]*@([\w.$]+)\(|@([\w.$]+) = external )", re.M)


def needs_cxx(names: Iterable[str]) -> bool:
    """Tell whether one of the undefined symbols `names` belongs to the C++ run-time library."""
    return any(_CXX.match(name) for name in names)


def with_cxx_runtime(
    text: str,
    *,
    frontend: Frontend,
    cache: Path,
    exports: Iterable[str] | None = None,
    jobs: int = 1,
    progress: Progress = SILENT,
) -> str:
    """Return the neutral module `text` together with what it needs of the C++ run-time library.

    Args:
        text: a module, all of whose units are merged.
        frontend: the compiler; the library is compiled with it, once.
        cache: a directory that keeps the compiled library.
        exports: the symbols that are used from outside; None means all.
        jobs: how many compilers may run at once.
        progress: told about compilation.

    Raises:
        BuildError: the library does not compile.
        ResourceError: the cache cannot be written.
    """
    if not needs_cxx(one or other for one, other in _UNDEFINED.findall(text)):
        return text
    names = names_of(text)
    needed = chosen_units(
        names,
        names.offered if exports is None else exports,
        open_library(frontend, cache=cache, jobs=jobs),
        progress=progress,
    )
    if not needed:
        return text
    progress.step("linking the C++ library", f"{len(needed)} unit{'' if len(needed) == 1 else 's'}")
    # The library's constructors come first.
    return text_of(link([*(unit.text() for unit in needed), text]))


def chosen_units(
    names: Names, start: Iterable[str], library: CxxLibrary, *, progress: Progress = SILENT
) -> list[LibraryUnit]:
    """Return the units of `library` that a module with `names` needs, in the library's order."""
    _, missing = reachable(names, start)
    taken: dict[str, LibraryUnit] = {}
    known: list[LibraryUnit] = []
    offers: dict[str, LibraryUnit] = {}
    entered: dict[str, set[str]] = {}
    for number in range(len(SETS)):
        if not needs_cxx(missing):
            break
        known += (more := library.units(number, progress))
        for unit in more:
            for name in unit.names.offered:
                offers.setdefault(name, unit)
        while wanted := {name for name in missing if name in offers}:
            missing -= wanted
            for unit in {offers[name].source: offers[name] for name in wanted}.values():
                taken[unit.source] = unit
                start_here = entered.setdefault(unit.source, set())
                start_here |= {name for name in wanted if offers[name] is unit}
                _, outside = reachable(unit.names, start_here)
                missing |= {name for name in outside if not _is_settled(name, names, offers, entered)}
    return [unit for unit in known if unit.source in taken]


def _is_settled(name: str, names: Names, offers: dict[str, LibraryUnit], entered: dict[str, set[str]]) -> bool:
    """Tell whether `name` is defined by the module or was taken from its unit already."""
    if name in names.entities:
        return True
    unit = offers.get(name)
    return unit is not None and name in entered.get(unit.source, ())
