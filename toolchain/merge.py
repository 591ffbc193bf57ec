"""From compiled units to the one module of a package.

Invariant: the same units in the same order give the same bytes, on any machine. Only the exported functions are
visible; everything that they do not reach is gone. Optimisation belongs to the installer: the light clean-up only
removes what no processor needs (docs/spec/front-end.md, section 6).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from visget.errors import BuildError
from visget.format.lines import LineTable, extract_lines, strip_debug
from visget.format.module import bitcode_of, link, parse_text, text_of
from visget.toolchain.clang import Frontend
from visget.toolchain.cleanup import LIGHT, SWEEP, run_passes
from visget.toolchain.frontend import Unit
from visget.toolchain.normalise import internal_text, neutral_text, resolved_aliases, strong_definitions
from visget.toolchain.runtime_library import with_runtime

_UNMARKED = re.compile(r"^(declare (?:noundef )?)i32 @(?!llvm\.)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The finished module of a package."""

    text: str
    """Its LLVM IR, as LLVM prints it, without debug records."""
    bitcode: bytes
    """The same as bitcode."""
    lines: LineTable
    """Which source line each instruction comes from."""


def merge_units(units: Sequence[Unit]) -> str:
    """Return the text of one module made of all `units`, in neutral form, with debug records.

    Raises:
        BuildError: two units define the same symbol, or LLVM cannot merge them.
    """
    _refuse_duplicates(units)
    return text_of(link(neutral_text(unit.text) for unit in units))


def _refuse_duplicates(units: Sequence[Unit]) -> None:
    """Name both files of every symbol that is defined twice; LLVM would name one symbol and no file."""
    owners: dict[str, str] = {}
    clashes: list[str] = []
    for unit in units:
        for name in strong_definitions(unit.text):
            place = f"{unit.source} ({unit.origin})" if unit.origin else unit.source
            if name in owners:
                clashes.append(f"{name} is defined in {owners[name]} and in {place}")
            else:
                owners[name] = place
    if clashes:
        more = f" ({len(clashes)} symbols in all)" if len(clashes) > 1 else ""
        raise BuildError(
            f"{clashes[0]}{more}",
            hint="make one of the two static, or leave one file out"
            + (" with [build] exclude" if not any(unit.origin for unit in units) else " of the library"),
            details={"duplicates": clashes},
        )


def finish(
    merged: str, *, exports: Iterable[str], cleanup: Literal["light", "none"], frontend: Frontend | None = None
) -> Built:
    """Turn the merged text into the package's module, in which only `exports` can be seen from outside.

    Args:
        merged: the text of all units.
        exports: the symbols that stay visible.
        cleanup: whether the light clean-up runs.
        frontend: compiles what the module needs of the VIS run-time; None leaves the module without.
    """
    exports = tuple(exports)
    module = parse_text(internal_text(resolved_aliases(merged, exports), exports))
    if cleanup == "light":
        run_passes(module, LIGHT)
    run_passes(module, SWEEP)
    text = text_of(module)
    if frontend is not None and (complete := with_runtime(text, frontend)) != text:
        # What was replaced leaves declarations behind.
        module = parse_text(complete)
        run_passes(module, SWEEP)
        text = text_of(module)
    # The clean-up turns fprintf into fputc and the like, and leaves out that an int arrives sign-extended.
    text = _UNMARKED.sub(r"\1signext i32 @", text)
    lines = extract_lines(text)
    final = parse_text(strip_debug(text))
    return Built(text=text_of(final), bitcode=bitcode_of(final), lines=lines)
