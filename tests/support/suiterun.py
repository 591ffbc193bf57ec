"""Public C suites through ``visget cc``: each program must do what a native build of it does, or be refused.

    python tests/support/suiterun.py --arch x86_64,aarch64,riscv64 --results results.jsonl

runs them all and prints a table; what the file of results has is not run again. ``--sample N --seed S`` takes N
programs by chance. A program is compiled once with ``visget-cc -c`` and linked for each architecture; the compiler
wrappers are called in forked children of this process, which has loaded them. The reference is gcc -O1, or else zig's
clang -O1, on this machine; where neither makes the program end well, it is skipped. A program that checks itself, ends
with 0 and prints nothing needs no reference.

The outcomes: ``pass``; ``refused`` by ``visget cc`` with a message; ``upstream``, when the same clang makes of it,
natively for that architecture, at -O1 or -O3, something else than the reference too, or nothing; ``wrong``: none of
these.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

from suites import INVALID, Program, all_programs, tcc_programs
from wrapkit import OBJECTS

ARCHITECTURES = ("x86_64", "aarch64", "riscv64")
CLASSES = ("pass", "refused", "upstream", "wrong", "skip")
_COMMON = ("-w", "-fsigned-char", "-ffp-contract=off")
_LIBRARIES = ("-lm", "-lpthread")
_SECONDS = 40
_COMPILE_SECONDS = 240
_OUTPUT = 1 << 20
_CRASHED = "it ended before its time"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one program on one architecture."""

    suite: str
    name: str
    arch: str
    kind: str
    """One of CLASSES."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program did."""

    status: int
    output: bytes


def run_program(program: Program, arches: Sequence[str]) -> list[Outcome]:
    """Return the outcomes of `program`."""
    if program.name in INVALID:
        return [Outcome(program.suite, program.name, arch, "skip", INVALID[program.name]) for arch in arches]
    with tempfile.TemporaryDirectory(prefix="visget-suite-") as directory:
        return _Case(program, Path(directory)).outcomes(arches)


class _Case:
    """One program, in a directory of its own."""

    def __init__(self, program: Program, home: Path) -> None:
        self.program = program
        self.home = home
        self.referred = False
        self.reference: Ran | None = None

    def outcomes(self, arches: Sequence[str]) -> list[Outcome]:
        objects = [str(self.home / f"{number}.o") for number in range(len(self.program.sources))]
        compiling = [
            [*self._flags(), "-c", str(source), "-o", made]
            for source, made in zip(self.program.sources, objects, strict=True)
        ]
        linking = []
        for arch in arches:
            target = [] if arch == "x86_64" else [f"--vis-target={arch}-linux-musl"]
            linking.append([*objects, "-o", str(self.home / f"vis-{arch}"), *target, *_LIBRARIES])
        said, *each = wrapped(compiling, linking, self.home)
        if said is not None:
            return [self._refused(arch, said) for arch in arches]
        return [self._linked(arch, said) for arch, said in zip(arches, each, strict=True)]

    def _flags(self) -> list[str]:
        return [*_COMMON, *self.program.flags]

    def _outcome(self, arch: str, kind: str, why: str = "") -> Outcome:
        return Outcome(self.program.suite, self.program.name, arch, kind, why)

    def _linked(self, arch: str, said: str | None) -> Outcome:
        if said is not None:
            return self._refused(arch, said)
        program = self.home / f"vis-{arch}"
        ran = self._run(program, arch)
        if self.program.checks_itself and ran == Ran(0, b""):
            return self._outcome(arch, "pass")
        expected = self._reference()
        if expected is None or ran == expected:
            return self._outcome(arch, "skip" if expected is None else "pass")
        why = f"status {ran.status}, not {expected.status}" if ran.status != expected.status else "other output"
        return self._outcome(arch, "upstream" if self._upstream(arch, expected) else "wrong", why)

    def _refused(self, arch: str, said: str) -> Outcome:
        expected = self._reference()
        if expected is None:
            return self._outcome(arch, "skip")
        kind = "wrong" if _CRASHED in said else "refused"
        return self._outcome(arch, "upstream" if self._upstream(arch, expected) else kind, reason(said))

    def _reference(self) -> Ran | None:
        """Return what the reference does; None when there is none, or it does something else each time."""
        if not self.referred:
            self.referred, self.reference = True, self._make_reference()
        return self.reference

    def _make_reference(self) -> Ran | None:
        for compiler in (["gcc"], _zig()):
            ran = self._native([*compiler, "-O1"], "x86_64")
            if ran is not None and (ran.status == 0 or (not self.program.checks_itself and ran.status > 0)):
                if self.program.checks_itself:
                    return ran
                again = self._run(self.home / "native", "x86_64")
                return ran if again == ran else None
        return None

    def _upstream(self, arch: str, expected: Ran) -> bool:
        """Tell whether the same clang, without visget, makes something else of it."""
        target = [] if arch == "x86_64" else ["-target", f"{arch}-linux-musl", "-static"]
        return any(
            self._native([*_zig(), *target, level], arch) != expected
            for level in ("-O1", "-O3")
        )

    def _native(self, compiler: Sequence[str], arch: str) -> Ran | None:
        program = self.home / "native"
        program.unlink(missing_ok=True)
        line = [*compiler, *self._flags(), *map(str, self.program.sources), "-o", str(program), *_LIBRARIES]
        try:
            done = subprocess.run(line, cwd=self.home, capture_output=True, timeout=_COMPILE_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return None
        return self._run(program, arch) if done.returncode == 0 else None

    def _run(self, program: Path, arch: str) -> Ran:
        under = [] if arch == "x86_64" else [f"qemu-{arch}"]
        place = self.home / "run"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shutil.copyfile(program, place / "program")  # so that argv[0] is the same
        (place / "program").chmod(0o755)
        try:
            done = subprocess.run(
                [*under, "./program", *self.program.arguments], cwd=place, stdin=subprocess.DEVNULL,
                capture_output=True, timeout=_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Ran(-1000, b"")
        return Ran(done.returncode, done.stdout[:_OUTPUT])


def _zig() -> list[str]:
    # By itself it defines NDEBUG when it optimises, and adds checks when it does not.
    return [sys.executable, "-m", "ziglang", "cc", "-UNDEBUG", "-fno-sanitize=undefined"]


def reason(said: str) -> str:
    """Return what a refusal is about: its first error."""
    lines = said.splitlines()
    first = next((line for line in lines if "error" in line), lines[0] if lines else "")
    return re.sub(r"^.*?error:? ?", "", first)[:160]


def wrapped(first: Sequence[Sequence[str]], then: Sequence[Sequence[str]], home: Path) -> list[str | None]:
    """Call ``visget-cc`` in a forked child: with each of `first`, and, when these succeed, with each of `then`.

    Return what the one of `first` that failed said, or None; and for each of `then` what it said, or None.
    """
    child = os.fork()
    if child == 0:
        try:
            os.chdir(home)
            os.environ["TMPDIR"] = str(home)
            os.environ["VISGET_CACHE_DIR"] = str(OBJECTS)
            if all(_call(arguments, home / "said-0") for arguments in first):
                for number, arguments in enumerate(then, 1):
                    _call(arguments, home / f"said-{number}")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return [_said(home / f"said-{number}") for number in range(len(then) + 1)]


def _call(arguments: Sequence[str], said: Path) -> bool:
    """Call ``visget-cc`` in this process; the file `said` is left empty when it succeeds."""
    from visget.wrap_main import main

    said.write_text(f"visget-cc: error: {_CRASHED}")
    file = os.open(said.with_suffix(".part"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    # What pytest has put in their place must not see it.
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    status = main("cc", arguments)
    sys.stderr.flush()
    sys.stdout.flush()
    text = said.with_suffix(".part").read_text(encoding="utf-8", errors="replace")
    said.write_text("" if status == 0 else text or f"visget-cc: error: it ended with {status}")
    return status == 0


def _said(path: Path) -> str | None:
    try:
        return path.read_text() or None
    except FileNotFoundError:
        return "visget-cc: error: it was not called"


def prepare(arches: Sequence[str]) -> None:
    """Load what the compiler wrappers load, once for all children."""
    import visget.installer.codegen
    import visget.toolchain.runtime_library
    import visget.wrap_check
    import visget.wrap_link
    import visget.wrap_lower

    visget.wrap_lower._generator()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        (home / "a.c").write_text("#include <stdio.h>\nint main(void) { puts(\"\"); return 0; }\n")
        for arch in arches:
            target = [] if arch == "x86_64" else [f"--vis-target={arch}-linux-musl"]
            wrapped([["a.c", "-o", "a", *target]], [], home)  # zig makes its C library when it is needed first
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()


def run_all(
    programs: Sequence[Program],
    arches: Sequence[str],
    *,
    jobs: int = 2,
    tell: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Return the outcomes of `programs`; `tell` is called with each when it is known."""
    prepare(arches)
    found: list[Outcome] = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        for done in as_completed([pool.submit(run_program, program, arches) for program in programs]):
            for outcome in done.result():
                found.append(outcome)
                tell(outcome)
    return found


def table(outcomes: Iterable[Outcome]) -> str:
    """Return the table of `outcomes` in Markdown."""
    counts = Counter((outcome.suite, outcome.arch, outcome.kind) for outcome in outcomes)
    lines = [f"| suite | architecture | programs | {' | '.join(CLASSES)} |", "|---|---|" + "---:|" * (len(CLASSES) + 1)]
    rows = {(suite, arch) for suite, arch, _ in counts}
    for suite, arch in sorted(rows, key=lambda row: (row[0], ARCHITECTURES.index(row[1]))):
        numbers = [counts[suite, arch, kind] for kind in CLASSES]
        lines.append(f"| {suite} | {arch} | {sum(numbers)} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines)


def _read(path: Path) -> list[Outcome]:
    return [Outcome(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def main(arguments: Sequence[str]) -> int:
    """Run the suites and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="x86_64")
    parser.add_argument("--suite", default="", help="only suites whose name begins so")
    parser.add_argument("--match", default="", help="only programs whose name matches this pattern")
    parser.add_argument("--sample", type=int, default=0, help="only so many programs, taken by chance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--again", default="", help="run again what had these outcomes, such as wrong,refused")
    given = parser.parse_args(arguments)
    arches = given.arch.split(",")
    known = [outcome for outcome in _read(given.results) if outcome.kind not in given.again.split(",")]
    given.results.write_text("".join(json.dumps(asdict(outcome)) + "\n" for outcome in known))
    done = {(outcome.suite, outcome.name, outcome.arch) for outcome in known}
    everything = tcc_programs() if given.suite.startswith("tcc") else all_programs()
    chosen = [program for program in everything
              if program.suite.startswith(given.suite) and re.search(given.match, program.name)]  # fmt: skip
    if given.sample and given.sample < len(chosen):
        chosen = random.Random(given.seed).sample(chosen, given.sample)
    left = [p for p in chosen if not all((p.suite, p.name, arch) in done for arch in arches)]
    with given.results.open("a") as file:

        def tell(outcome: Outcome) -> None:
            if (outcome.suite, outcome.name, outcome.arch) not in done:
                file.write(json.dumps(asdict(outcome)) + "\n")
                file.flush()

        run_all(left, arches, jobs=given.jobs, tell=tell)
    outcomes = _read(given.results)
    print(table(outcomes))
    for kind in ("wrong", "refused", "upstream"):
        for why, names in sorted(_by_reason(outcome for outcome in outcomes if outcome.kind == kind).items()):
            print(f"{kind}: {why}: {', '.join(sorted(names)[:12])}{' ...' if len(names) > 12 else ''} ({len(names)})")
    return 1 if any(outcome.kind == "wrong" for outcome in outcomes) else 0


def _by_reason(outcomes: Iterable[Outcome]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for outcome in outcomes:
        found.setdefault(re.sub(r"'[^']*'", "'...'", outcome.why), set()).add(f"{outcome.name}@{outcome.arch}")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
