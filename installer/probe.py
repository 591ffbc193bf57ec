"""Asking LLVM whether it knows a processor and its features.

LLVM only warns about names that it does not know, on the process's standard error, and compiles generic code;
for a processor without 64-bit mode it ends the process. Invariant: a target that check_target() returns was
accepted by LLVM word for word. The question is asked in a child process, which runs main() below: it gets three
lines on standard input (triple, processor, features), and LLVM's complaints come back on standard error.
"""

from __future__ import annotations

import difflib
import functools
import re
import subprocess
import sys

from visget.errors import ResourceError, UnsupportedError
from visget.installer.child import python_command
from visget.installer.target import Target

_TIMEOUT = 60.0
_UNKNOWN = re.compile(r"'([^']*)' is not a recognized (processor|feature)")
_TABLE_ENTRY = re.compile(r"^  (\S+) +- ")


def check_target(target: Target) -> Target:
    """Return `target` when LLVM knows its processor and every one of its features.

    Raises:
        UnsupportedError: it does not; the message names the word and the nearest that it knows.
    """
    # To LLVM this word is not a name but a request for its tables.
    asked = {target.cpu, *(feature[1:] for feature in target.features)}
    if "help" in asked:
        raise UnsupportedError(f"LLVM knows no processor or feature 'help' for {target.arch}", hint="leave it out")
    status, text = _ask(target.triple, target.cpu, target.flattened)
    for match in _UNKNOWN.finditer(text):
        word, kind = match[1].lstrip("+-"), match[2]
        cpus, features = known_names(target.triple)
        known = cpus if kind == "processor" else features
        near = difflib.get_close_matches(word, known, n=3, cutoff=0.5)
        raise UnsupportedError(
            f"LLVM knows no {kind} {word!r} for {target.arch}"
            + (f"; did you mean {' or '.join(map(repr, near))}?" if near else ""),
            hint=f"{target.arch} has {', '.join(known[:8])} and {max(len(known) - 8, 0)} more; "
            "`host` and `baseline` always exist",
            details={kind: word, "known": list(known)},
        )
    if status != 0:
        raise UnsupportedError(
            f"LLVM makes no 64-bit code for the processor {target.cpu!r} with these features",
            hint="name a 64-bit processor of the family, or use the baseline",
            details={"target": target.key(), "llvm": text[-400:]},
        )
    return target


@functools.cache
def known_names(triple: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the processors and of the features that LLVM knows for `triple`."""
    _, text = _ask(triple, "help", "")
    processors, _, features = text.partition("Available features for this target:")
    return _names(processors), _names(features)


def _names(table: str) -> tuple[str, ...]:
    return tuple(match[1] for line in table.splitlines() if (match := _TABLE_ENTRY.match(line)))


def _ask(triple: str, cpu: str, features: str) -> tuple[int, str]:
    question = f"{triple}\n{cpu}\n{features}\n".encode()
    try:
        done = subprocess.run(
            python_command("visget.installer.probe"),
            input=question,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ResourceError(f"LLVM did not answer within {_TIMEOUT:.0f} s about {triple}") from error
    return done.returncode, done.stderr.decode("utf-8", "replace")


def main(_parent: int) -> None:
    """Make one function for the target on standard input; the program of the child process."""
    import llvmlite.binding as llvm

    triple, cpu, features = sys.stdin.read().splitlines()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=0, reloc="pic", codemodel="small"
    )
    if cpu != "help":
        module = llvm.parse_assembly("define double @f(double %x) {\n  %y = fadd double %x, %x\n  ret double %y\n}\n")
        module.triple = triple
        module.data_layout = str(machine.target_data)
        machine.emit_object(module)
