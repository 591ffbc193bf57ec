from __future__ import annotations

import dataclasses
import json

import pytest
from installable import HEADER, TEXT, verified

from visget.installer.clibrary import STAND_IN
from visget.installer.linkers import Linker
from visget.installer.plan import Plan, Tools, plan
from visget.installer.target import baseline, make_target

HOST = make_target("x86_64", "gnu", "skylake", ["+avx2", "-avx512f"])
LINKER = Linker(kind="lld", command=("/usr/bin/ld.lld",), version="LLD 22.1.8")
TOOLS = Tools(compiler="llvmlite 0.50.0 / LLVM 22.1.0", pipeline="1", linker=LINKER, libc="glibc 2.36")
PACKAGE = verified()


def make(**changes: object) -> Plan:
    arguments = {"target": HOST, "host": HOST, "tools": TOOLS} | changes
    return plan(arguments.pop("verified", PACKAGE), arguments.pop("target"), **arguments)


def test_equal_arguments_give_equal_plans() -> None:
    assert make() == make()
    assert make(cached=True).digest == make().digest
    # Where the linker lies does not matter, only what it is.
    elsewhere = dataclasses.replace(TOOLS, linker=dataclasses.replace(LINKER, command=("/opt/ld.lld",)))
    assert make(tools=elsewhere).digest == make().digest


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("version of the package", {"verified": verified(summary="Another")}),
        ("module", {"verified": verified(text=TEXT.replace("add i32", "sub i32"))}),
        ("headers", {"verified": verified(headers={"adder.h": HEADER})}),
        ("vectors", {"verified": verified(answer=None)}),
        ("contract", {"verified": verified(fp_contract="fast")}),
        ("processor", {"target": dataclasses.replace(HOST, cpu="haswell")}),
        ("feature", {"target": dataclasses.replace(HOST, features=("+avx2", "-rtm"))}),
        ("libc", {"target": make_target("x86_64", "musl", "skylake", ["+avx2", "-avx512f"])}),
        ("architecture", {"target": baseline("riscv64", "gnu")}),
        ("compiler", {"tools": dataclasses.replace(TOOLS, compiler="llvmlite 0.51.0 / LLVM 23.1.0")}),
        ("pipeline", {"tools": dataclasses.replace(TOOLS, pipeline="2")}),
        ("linker", {"tools": dataclasses.replace(TOOLS, linker=dataclasses.replace(LINKER, version="LLD 23"))}),
        ("kind of linker", {"tools": dataclasses.replace(TOOLS, linker=dataclasses.replace(LINKER, kind="gnu"))}),
        ("no linker", {"tools": dataclasses.replace(TOOLS, linker=None)}),
        ("version of libc", {"tools": dataclasses.replace(TOOLS, libc="glibc 2.39")}),
        # Made elsewhere without checking the answers, it must not serve where they can be checked.
        ("host", {"host": baseline("aarch64", "gnu")}),
    ],
)
def test_everything_that_shapes_the_artifact_changes_its_name(what: str, changes: dict[str, object]) -> None:
    assert make(**changes).digest != make().digest, what


def test_stages_in_their_order() -> None:
    made = make()
    assert [stage.name for stage in made.stages] == ["check", "compile", "gate", "link", "gate", "answers", "receipt"]
    assert not [stage for stage in made.stages if stage.skipped]
    assert made.run_answers


def test_stages_that_are_left_out_say_why() -> None:
    made = make(target=baseline("riscv64", "musl"), tools=dataclasses.replace(TOOLS, linker=None))
    skipped = {stage.name: stage.what for stage in made.stages if stage.skipped}
    assert set(skipped) == {"link", "gate", "answers"}
    assert "no linker" in skipped["link"]
    assert "may not be able to run" in made.answers_reason
    assert make(verified=verified(answer=None)).answers_reason == "the package has no test vectors"


def test_text() -> None:
    text = make().as_text()
    assert "adder 1.2.3 for x86_64-linux-gnu:skylake" in text
    assert make().digest in text
    assert "glibc 2.36" in text
    assert "nothing to compile" not in text
    assert "nothing to compile" in make(cached=True).as_text()
    foreign = make(target=baseline("riscv64", "musl"), tools=dataclasses.replace(TOOLS, libc=STAND_IN)).as_text()
    assert "a stand-in for the C library of riscv64-linux-musl" in foreign


def test_json() -> None:
    document = json.loads(json.dumps(make().as_dict()))
    assert document["key"] == make().digest
    assert document["cached"] is False
    assert "cpu = skylake" in document["inputs"]
