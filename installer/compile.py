"""The parent's side of checking and compiling a package: nothing here ever parses bitcode.

Invariant: `compile_package` takes a VerifiedPackage only, so code whose author is unknown is never compiled; a
package that breaks a VIS rule is refused, not compiled. A worker that dies takes nothing with it: the error says
which package, at which stage, how it ended and what to do. The protocol is docs/spec/worker.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from visget.errors import CompileError, FormatError, RefusedError, ResourceError, UnsupportedError, VisgetError
from visget.format.findings import Finding, errors
from visget.format.package import Package, VerifiedPackage
from visget.format.plaintext import clean_line, clean_text
from visget.installer.binding import Binding
from visget.installer.child import ChildError, Reply, run_child
from visget.installer.frames import Flow, Frame, Part
from visget.installer.limits import DEFAULT_LIMITS, Limits
from visget.installer.sandbox import Level
from visget.installer.systems import CONVENTIONS
from visget.installer.target import Target
from visget.progress import SILENT, Progress

PIPELINE = "5"
"""Changes whenever the same package, target and LLVM may give other code; enters every cache key."""

_WORKER = "visget.installer.worker"
_STAGES = ("parse", "check", "legalise", "optimise", "emit")
_PHRASES = {
    "start": "starting",
    "parse": "reading the bitcode",
    "check": "checking the VIS rules",
    "legalise": "translating to the target's conventions",
    "optimise": "optimising",
    "emit": "generating machine code",
}
_FAMILIES: dict[str, type[VisgetError]] = {
    family.__name__: family for family in (CompileError, FormatError, RefusedError, ResourceError, UnsupportedError)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A package compiled for one target."""

    object: bytes
    """The object file."""
    compiler: str
    """Which compiler made it, such as ``llvmlite 0.50.0 / LLVM 22.1.0``."""
    level: int
    """The optimisation level."""
    seconds: dict[str, float]
    """How long each stage took."""
    findings: tuple[Finding, ...]
    """What the VIS rules warned about."""
    sandbox: Level
    """What confined the compiler."""
    types: Mapping[str, str] = field(default_factory=dict)
    """The LLVM type of each export."""


def check_package(package: Package, limits: Limits = DEFAULT_LIMITS) -> list[Finding]:
    """Return everything that the VIS rules have to say about `package`, judged in a worker process.

    Raises:
        FormatError: the bitcode is malformed.
        CompileError: LLVM crashed on it.
        ResourceError: it took too much time or memory.
    """
    return _findings(_ask(package, {"op": "check", **_about(package, None)}, limits, SILENT))


def compile_package(
    verified: VerifiedPackage,
    target: Target,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress = SILENT,
    *,
    binding: Binding | None = None,
    merged: Sequence[tuple[VerifiedPackage, Binding]] = (),
    level: int = 3,
) -> Compiled:
    """Compile `verified` for `target` in a worker process.

    Args:
        verified: the package.
        target: what it is compiled for.
        limits: what the worker may use.
        progress: told about the stages.
        binding: under which names it is linked with others; None for code that is not.
        merged: the packages that it depends on, when their code is to become part of its own; what one of them
            depends on stands before it.
        level: the optimisation level.

    Raises:
        FormatError: the bitcode is malformed.
        RefusedError: it breaks a VIS rule; ``details["findings"]`` holds all of them.
        UnsupportedError: the package needs a newer visget, or the target has no back end.
        CompileError: LLVM crashed.
        TooSlowError: it needed too much time.
        ResourceError: it needed too much memory.
    """
    package = verified.package
    request: dict[str, object] = {
        "op": "compile", "triple": target.triple, "cpu": target.cpu, "features": target.flattened,
        "level": level, **_about(package, binding), "merge": [_about(one.package, its) for one, its in merged],
    }  # fmt: skip
    reply = _ask(package, request, limits, progress, [one.package for one, _ in merged])
    findings = _findings(reply)
    if errors(findings):
        raise _refused(package, findings)
    if len(reply.parts) != 1 or not reply.parts[0].startswith(CONVENTIONS[target.system].magic):
        raise CompileError(
            f"the compile worker answered without an object file for {_label(package)}",
            hint="run `visget doctor`; this is a bug of visget",
        )
    return Compiled(
        object=reply.parts[0],
        compiler=clean_line(str(reply.head.get("compiler", "")))[:200],
        level=level,
        seconds=_seconds(reply.head.get("seconds")),
        findings=tuple(findings),
        sandbox=reply.sandbox,
        types=_types(reply.head.get("types"), package),
    )


def compiler_identity() -> str:
    """Name the compiler exactly enough for a cache key, without loading it where that can be avoided."""
    from visget.installer.codegen import compiler_identity as identity

    return identity()


class TooSlowError(ResourceError):
    """A worker ran out of time; with less optimisation it may be enough.

    Invariant: it never reaches a user as it is; who gives up raises final().
    """

    def final(self) -> ResourceError:
        """Return the error for the user, once no further try is left."""
        return ResourceError(self.message, hint=self.hint, where=self.where, details=self.details)


def _about(package: Package, binding: Binding | None) -> dict[str, object]:
    """Return what the worker has to know about one module."""
    manifest = package.manifest
    return {
        "label": _label(package),
        "name": manifest.name,
        "exports": list(manifest.exports),
        "imports": list(manifest.imports),
        "uses": manifest.used,
        "uses_of": {use.package: dict(use.symbols) for use in manifest.uses},
        "profile": manifest.profile,
        "fp_contract": manifest.fp_contract,
        "tag": binding.tag if binding else "",
        "taken": dict(binding.taken) if binding else {},
    }


def _ask(
    package: Package,
    request: dict[str, object],
    limits: Limits,
    progress: Progress,
    others: Sequence[Package] = (),
) -> Reply:
    # The worker parses all three: they come from the package, and the parent has no need to look at them, nor to
    # hold them.
    sections = [_flow(package, kind) for kind in ("bitcode", "lines", "api")]
    sections += [_flow(other, kind) for other in others for kind in ("bitcode", "api")]

    def on_stage(frame: Frame) -> None:
        stage = str(frame.head["stage"])
        if stage in _STAGES:
            progress.step("compiling", _PHRASES[stage], _STAGES.index(stage), len(_STAGES))

    try:
        reply = run_child(_WORKER, request, sections, limits, on_stage)
    except ChildError as error:
        raise _explain(package, error, limits) from error
    if reply.head["status"] != "ok":
        raise _reported(package, reply.head)
    return reply


def _flow(package: Package, kind: str) -> Part:
    container = package.container
    if kind not in container.stored:
        return b""
    return Flow(size=container.entry(kind).size, chunks=container.pieces(kind))


def _explain(package: Package, died: ChildError, limits: Limits) -> VisgetError:
    """Turn the death of a worker into an error about the package."""
    doing = _PHRASES.get(died.stage_name, died.stage_name)
    text = f"while {doing}, the compile worker for {_label(package)} failed: {died.message}"
    details = {"stage": died.stage_name, "cause": died.cause, "stderr": died.errors[-2000:]}
    where = _label(package)
    if died.cause == "time":
        hint = "raise the limit with VISGET_COMPILE_SECONDS, or install on a faster machine"
        return TooSlowError(text, hint=hint, where=where, details=details)
    if died.cause == "memory":
        hint = f"raise the limit with VISGET_COMPILE_MEMORY_MB (now {limits.memory >> 20})"
        return ResourceError(text, hint=hint, where=where, details=details)
    if died.cause == "forbidden":
        hint = "a module that makes LLVM do this is hostile or meets a grave bug of LLVM; nothing was changed"
        return CompileError(text, hint=hint, where=where, details=details)
    reason = _last_line(died.errors)
    if reason:
        text += f"; LLVM said: {reason}"
    if died.stage is None:
        hint = "run `visget doctor`: the worker could not even start"
    else:
        hint = "the package is malformed or meets a bug of LLVM; nothing was changed. Please tell its author"
    return CompileError(text, hint=hint, where=where, details=details)


def _reported(package: Package, head: dict[str, Any]) -> VisgetError:
    """Turn an error that the worker reported into the same error here; its texts are not trusted."""
    name = str(head.get("error"))
    message = clean_line(str(head.get("message", "")))[:2000]
    hint = head.get("hint")
    where = _label(package)
    if name == "MemoryError":
        return ResourceError(
            f"compiling {where} needed more memory than allowed", where=where, hint="raise VISGET_COMPILE_MEMORY_MB"
        )
    family = _FAMILIES.get(name)
    if family is None:
        return CompileError(
            f"the compile worker failed on {where}: {message}",
            where=where,
            hint="this is a bug of visget; please report it with the package's name and version",
            details={"at": [clean_line(str(item))[:200] for item in _listed(head.get("at"))]},
        )
    return family(
        f"{where}: {message}",
        hint=clean_text(str(hint))[:2000] if hint else None,
        where=where,
        details={"by": "worker"},
    )


def _refused(package: Package, findings: Sequence[Finding]) -> RefusedError:
    bad = errors(findings)
    first = bad[0].render().splitlines()[0]
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return RefusedError(
        f"{_label(package)} breaks {len(bad)} rule{'s' if len(bad) > 1 else ''} of VIS-1: {first}{more}",
        where=_label(package),
        hint="only its author can mend it; `visget check FILE.vis` shows all findings",
        details={"findings": [finding.as_dict() for finding in findings]},
    )


def _findings(reply: Reply) -> list[Finding]:
    found = []
    for item in _listed(reply.head.get("findings")):
        line = item.get("line")
        found.append(
            Finding(
                rule=clean_line(str(item.get("rule")))[:40],
                severity="warning" if item.get("severity") == "warning" else "error",
                function=_optional(item.get("function")),
                file=_optional(item.get("file")),
                line=line if isinstance(line, int) else None,
                message=clean_line(str(item.get("message")))[:2000],
                remedy=clean_text(str(item.get("remedy")))[:2000],
            )
        )
    return found


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _optional(value: object) -> str | None:
    return clean_line(value)[:400] if isinstance(value, str) else None


def _seconds(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    return {clean_line(str(name))[:40]: float(taken) for name, taken in value.items() if isinstance(taken, int | float)}


def _types(value: object, package: Package) -> dict[str, str]:
    """Return the types of the exports, as far as the worker, which is not trusted, tells them."""
    told = value if isinstance(value, dict) else {}
    return {name: clean_line(str(told[name]))[:1024] for name in package.manifest.exports if name in told}


def _last_line(errors_text: str) -> str:
    lines = [line.strip() for line in errors_text.splitlines() if line.strip()]
    # Stack dumps follow the reason; the reason is the line that names an error or an assertion.
    told = [line for line in lines if "LLVM ERROR" in line or "Assertion" in line or "error:" in line]
    return clean_line((told or lines or [""])[-1])[:300]


def _label(package: Package) -> str:
    return f"{package.manifest.name} {package.manifest.version}"
