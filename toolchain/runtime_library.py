"""Linking the VIS run-time into a module: the functions of it that the module needs, as internal code.

Invariant: the same module and compiler give the same result. A module that needs nothing stays as it is, and afterwards
nothing of the run-time is missing. What the run-time is for: docs/spec/front-end.md, section 8.
"""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

from visget.errors import BuildError
from visget.format.module import link, parse_text, text_of
from visget.toolchain.clang import ENVIRONMENT, Frontend, path_flags, system_flags
from visget.toolchain.cleanup import LIGHT, SWEEP, run_passes
from visget.toolchain.normalise import internal_text, neutral_text
from visget.toolchain.runtime_rewrite import lower_operations
from visget.toolchain.runtime_table import ROUTINES

RUNTIME = Path(__file__).resolve().parent / "runtime"
"""Where the run-time's sources are."""

_TIMEOUT = 120.0
_VISIBLE = re.compile(r"^define (?!internal )(?=[^\n@]*@vis_rt_)", re.MULTILINE)
_FLAGS = ("-std=gnu17", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror")
# LLVM must not find floating-point operations in the bits of a long double, for they would be calls of the very
# functions that these are. Elsewhere the mark would spread with the code to callers, which then are not vectorised.
_MORE_FLAGS = dict.fromkeys(("float128.c", "float128_math.c"), ("-mno-implicit-float",))


def with_runtime(text: str, frontend: Frontend) -> str:
    """Return the neutral module `text` with calls of the run-time where back ends would call a compiler's.

    What it calls is part of the result, as internal functions.

    Raises:
        BuildError: the run-time does not compile, which means that the compiler is not clang 22 as LLVM made it.
    """
    lowered = lower_operations(text)
    if not lowered.routines:
        return lowered.text
    merged = text_of(link([lowered.text, runtime_text(frontend, lowered.routines)]))
    return _VISIBLE.sub("define internal ", merged)


@functools.lru_cache(maxsize=64)
def runtime_text(frontend: Frontend, routines: frozenset[str]) -> str:
    """Return a module in which `routines` can be seen, with what they need."""
    texts: dict[str, str] = {}
    wanted = {ROUTINES[name].file for name in routines}
    while more := sorted(wanted - texts.keys()):
        for name in more:
            # Arithmetic on long doubles inside the run-time needs the run-time.
            lowered = lower_operations(_compiled(frontend, name))
            texts[name] = lowered.text
            wanted |= {ROUTINES[routine].file for routine in lowered.routines}
    module = link([text for _, text in sorted(texts.items())])
    module = parse_text(internal_text(text_of(module), routines))
    run_passes(module, LIGHT)
    run_passes(module, SWEEP)
    return text_of(module)


@functools.lru_cache(maxsize=16)
def _compiled(frontend: Frontend, name: str) -> str:
    command = [
        *frontend.command, *system_flags(frontend, cxx=False), *path_flags(frontend, RUNTIME), *_FLAGS,
        *_MORE_FLAGS.get(name, ()), "-S", "-emit-llvm", "-o", "-", name,
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=RUNTIME, env=dict(ENVIRONMENT), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", timeout=_TIMEOUT, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise BuildError(
            f"the run-time library of visget ({name}) does not compile",
            hint="packages are built with the clang of the package ziglang; leave --cc out",
            details={"stderr": done.stderr},
        )
    return neutral_text(done.stdout)
