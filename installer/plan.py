"""What installing a package for a target will do, and under which key the result is kept.

Invariant: pure; a plan is a value made from values, so `--dry-run` prints exactly what an installation would
follow. Everything that can influence the artifact is a field of the key: equal keys mean interchangeable artifacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from visget.cache.key import ActionKey
from visget.digest import Digest
from visget.format.package import Package, VerifiedPackage
from visget.installer.clibrary import STAND_IN
from visget.installer.linkers import Linker
from visget.installer.receipt import Linking
from visget.installer.target import Target

LAYOUT = "3"
"""Changes whenever the files of an artifact, or what the gates and the answer check demand, change."""
FULL, HURRIED = 3, 1
"""The optimisation level, and the one after a first try that took too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A package that another one is linked with."""

    verified: VerifiedPackage
    """The package."""
    key: Digest | None
    """The action key of its artifact for the same target; None when its code becomes part of the other's."""

    @property
    def name(self) -> str:
        """The package's name."""
        return self.verified.package.manifest.name

    @property
    def version(self) -> str:
        """Its version."""
        return str(self.verified.package.manifest.version)

    @property
    def label(self) -> str:
        """The package in messages."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What does the work; each of these is part of the key."""

    compiler: str
    """The compiler's name and version."""
    pipeline: str
    """The version of the way from module to object."""
    linker: Linker | None
    """None: the object file is kept as it is."""
    libc: str
    """The C library that will be linked against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of an installation."""

    name: str
    """``check``, ``compile``, ``gate``, ``link``, ``answers`` or ``receipt``."""
    what: str
    """What happens, for people."""
    skipped: bool = False
    """Whether it is left out; `what` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps, and the name of what comes out."""

    label: str
    """The package in messages, such as ``xxhash 3.5.0``."""
    target: Target
    tools: Tools
    key: ActionKey
    stages: tuple[Stage, ...]
    run_answers: bool
    """Whether this machine can run the code and the package has vectors."""
    answers_reason: str
    """Why the vectors are not run; empty when they are."""
    cached: bool = False
    """Whether the artifact was in the store when the plan was made."""
    dependencies: tuple[Dependency, ...] = ()
    """What it is linked with: the packages that it names, or, to merge them, all; a package after its own."""
    linking: Linking = "shared"
    """How it is linked with them."""
    level: int = FULL
    """The optimisation level."""

    @property
    def digest(self) -> Digest:
        """The name of the artifact in the store."""
        return self.key.digest

    def as_dict(self) -> dict[str, object]:
        """Return the plan as a JSON object."""
        return {
            "package": self.label,
            "target": self.target.as_dict(),
            "key": self.digest,
            "cached": self.cached,
            "compiler": self.tools.compiler,
            "linker": self.tools.linker.identity if self.tools.linker else None,
            "linking": self.linking,
            "dependencies": [
                {"name": item.name, "version": item.version, "key": item.key} for item in self.dependencies
            ],
            "stages": [{"name": s.name, "what": s.what, "skipped": s.skipped} for s in self.stages],
            "inputs": list(self.key.trace),
        }

    def as_text(self) -> str:
        """Return the plan for people."""
        lines = [f"{self.label} for {self.target}", f"  key      {self.digest}"]
        if self.dependencies:
            how = "merged with" if self.linking == "static" else "linked with"
            lines.append(f"  needs    {how} {', '.join(item.label for item in self.dependencies)}")
        if self.cached:
            return "\n".join([*lines, "  store    has it already; nothing to compile"])
        lines += [f"  {s.name:<8} {'skipped: ' if s.skipped else ''}{s.what}" for s in self.stages]
        return "\n".join(lines)


def plan(
    verified: VerifiedPackage,
    target: Target,
    *,
    host: Target,
    tools: Tools,
    cached: bool = False,
    dependencies: Sequence[Dependency] = (),
    linking: Linking = "shared",
    hurried: float | None = None,
) -> Plan:
    """Return the plan for installing `verified` for `target`.

    Args:
        verified: the package.
        target: what it is compiled for.
        host: this machine, which decides whether the answers can be checked here.
        tools: what does the work.
        cached: whether the store has the artifact; it changes nothing but the wording.
        dependencies: what it is linked with.
        linking: how.
        hurried: after so many seconds the level FULL was given up, so that the level is HURRIED.
    """
    package = verified.package
    manifest = package.manifest
    vectors = digest_of(package, "vectors")
    if vectors is None:
        reason = "the package has no test vectors"
    elif not target.runs_on(host):
        reason = "this machine may not be able to run code for that target"
    else:
        reason = ""
    key = ActionKey()
    for label, value in (
        ("layout", LAYOUT),
        ("package", package.digest),
        # Contained in the package's digest; named so that a trace tells what differs.
        ("name", manifest.name),
        ("version", str(manifest.version)),
        *((kind, digest_of(package, kind) or "none") for kind in ("bitcode", "api", "headers", "license", "vectors")),
        ("fp-contract", manifest.fp_contract),
        ("signers", " ".join(verified.signers)),
        ("triple", target.triple),
        ("cpu", target.cpu),
        ("features", target.flattened),
        ("compiler", tools.compiler),
        ("pipeline", tools.pipeline),
        ("level", str(FULL) if hurried is None else f"{HURRIED} after {hurried:g} s"),
        ("linker", tools.linker.identity if tools.linker else "none"),
        ("libc", tools.libc if tools.linker else "none"),
        ("answers", "no vectors" if vectors is None else "not run" if reason else "run"),
        ("linking", linking if dependencies else "none"),
        ("dependencies", "\n".join(map(_shaping, dependencies)) or "none"),
    ):
        key = key.add(label, value)
    return Plan(
        label=f"{manifest.name} {manifest.version}",
        target=target,
        tools=tools,
        key=key,
        stages=tuple(_stages(target, tools, reason)),
        run_answers=not reason,
        answers_reason=reason,
        cached=cached,
        dependencies=tuple(dependencies),
        linking=linking,
        level=FULL if hurried is None else HURRIED,
    )


def _shaping(dependency: Dependency) -> str:
    """Return all of a dependency that shapes whoever is linked with it."""
    verified = dependency.verified
    return f"{dependency.label} {dependency.key or verified.package.digest + ' ' + ' '.join(verified.signers)}"


def digest_of(package: Package, kind: str) -> Digest | None:
    """Return the digest of the section `kind` of `package`, or None when it has none."""
    return next((entry.sha256 for entry in package.manifest.sections if entry.kind == kind), None)


def _stages(target: Target, tools: Tools, reason: str) -> Sequence[Stage]:
    linker = tools.linker
    return (
        Stage(name="check", what="judge the module by the rules of VIS-1, in a worker process"),
        Stage(name="compile", what=f"optimise it for {target.cpu} and generate code with {tools.compiler}"),
        Stage(name="gate", what="look through the object file"),
        Stage(
            name="link",
            what=f"a shared library with {linker}, {_against(tools, target)}" if linker else "there is no linker",
            skipped=linker is None,
        ),
        Stage(
            name="gate",
            what="look through the library" if linker else "there is no library",
            skipped=linker is None,
        ),
        Stage(
            name="answers",
            what=reason or "run the package's test vectors in a process of its own",
            skipped=bool(reason),
        ),
        Stage(name="receipt", what="write down how it was made, and publish it in the store"),
    )


def _against(tools: Tools, target: Target) -> str:
    return f"against {tools.libc if tools.libc != STAND_IN else f'a stand-in for the C library of {target.platform}'}"
