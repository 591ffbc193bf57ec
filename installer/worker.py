"""The compile worker: the only process that lets LLVM see a package's bitcode at install time.

``python -I -S -c ... visget.installer.worker`` (visget/installer/child.py builds the command) reads one request,
gives up its rights, and checks or compiles one module. Invariant: nothing is compiled that breaks a VIS rule. The
requests and replies are docs/spec/worker.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

# Everything is imported before enter(), also what others import late: then, files can no longer be opened.
from visget.errors import RefusedError, UsageError
from visget.format import apicheck, apijson  # noqa: F401
from visget.format.findings import Finding, errors
from visget.format.lines import LineTable
from visget.format.module import check_envelope, link, parse_bitcode, text_of
from visget.format.prototypes import Api, plain_char_results
from visget.format.verifier import check_module
from visget.installer.binding import Binding, Merged, bind, bind_inside, check_types, export_types
from visget.installer.codegen import Machine, compiler_identity, generate
from visget.installer.frames import Frame
from visget.installer.policies import compiling
from visget.installer.sandbox import Level, enter
from visget.installer.serve import Announce, Reply, serve


def main(parent: int) -> None:
    """Serve one request for the process `parent`."""
    serve(parent, _enter, work)


def _enter(request: Frame) -> Level:
    return enter(compiling(os.getpid()), request.head["limits"])


def work(request: Frame, announce: Announce) -> Reply:
    """Carry out the request `op` "check" or "compile"."""
    head = request.head
    bitcode, lines, api, *others = request.parts
    if head["op"] not in ("check", "compile"):
        raise UsageError(f"the compile worker cannot {head['op']!r}")
    started = time.perf_counter()
    interface = Api.parse(api) if api else None
    text, findings = _check(bitcode, lines, interface, head, announce)
    seconds = {"check": time.perf_counter() - started}
    answer: dict[str, object] = {
        "findings": [finding.as_dict() for finding in findings],
        "compiler": compiler_identity(),
    }
    if head["op"] == "check" or errors(findings):
        return {**answer, "seconds": seconds}, ()
    answer["types"] = export_types(text, head["exports"])
    binding = _binding(head)
    if others:
        text = _merged(text, others, head, announce)
        binding = binding and Binding(tag=binding.tag)
    if binding:
        text = bind(text, head["exports"], binding)
    machine = Machine(triple=head["triple"], cpu=head["cpu"], features=head["features"], level=head["level"])
    made = generate(
        text, machine, exports=head["exports"], announce=announce, chars=plain_char_results(interface)
    )
    return {**answer, "seconds": {**seconds, **made.seconds}}, (made.object,)


def _check(
    bitcode: bytes, lines: bytes, api: Api | None, head: dict[str, Any], announce: Announce
) -> tuple[str, Sequence[Finding]]:
    announce("parse")
    check_envelope(bitcode)
    text = text_of(parse_bitcode(bitcode))
    announce("check")
    found = check_module(
        text,
        exports=head["exports"],
        imports=head["imports"],
        lines=LineTable.parse(lines) if lines else None,
        api=api,
        fp_contract=head["fp_contract"],
        profile=head["profile"],
        uses=head["uses"],
    )
    return text, found


def _binding(head: dict[str, Any]) -> Binding | None:
    return Binding(tag=head["tag"], taken=head["taken"]) if head.get("tag") else None


def _merged(text: str, others: Sequence[bytes], head: dict[str, Any], announce: Announce) -> str:
    """Return one module made of `text` and of the modules that it depends on, each held to the rules too."""
    modules: list[Merged] = []
    types: dict[str, dict[str, str]] = {}
    described: list[dict[str, Any]] = [*head["merge"], head]
    parts = iter(others)
    for about in described:
        own = text
        if about is not head:
            bitcode, api = next(parts), next(parts)
            own, findings = _check(bitcode, b"", Api.parse(api) if api else None, about, announce)
            if bad := errors(findings):
                raise RefusedError(f"{about['label']}, which it depends on, breaks VIS-1: {bad[0].render()}")
            types[about["name"]] = export_types(own, about["exports"])
        for name, symbols in about["uses_of"].items():
            there = next(other["label"] for other in described if other["name"] == name)
            check_types(about["label"], there, sorted(symbols.items()), types[name])
        binding = _binding(about)
        assert binding is not None  # noqa: S101 - the parent gives each module a tag when modules are merged
        modules.append(Merged(own, about["exports"], binding))
    return text_of(link(bind_inside(modules)))
