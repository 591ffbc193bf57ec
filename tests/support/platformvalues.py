"""The numbers and layouts that headers give: visget's, and those of every C library and processor that ziglang knows.

Invariant: clang computes every value, by folding enumerators; what does not compile for a machine has no value there.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from platformkit import compiler, frontend, includable, includes

from visget.toolchain.astdump import Node, parse_tree, place
from visget.toolchain.clang import OVERLAY, foreign_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A processor and C library, with the directories of their headers."""

    name: str
    triple: str
    directories: tuple[str, ...]


MACHINES = tuple(
    Machine(name=f"{processor}-{libc}", triple=f"{processor}-linux-{libc}", directories=directories)
    for processor, libc, directories in (
        ("x86_64", "gnu", ("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any")),
        ("aarch64", "gnu", ("aarch64-linux-gnu", "generic-glibc", "aarch64-linux-any", "any-linux-any")),
        ("riscv64", "gnu", ("riscv-linux-gnu", "generic-glibc", "riscv-linux-any", "any-linux-any")),
        ("x86_64", "musl", ("x86_64-linux-musl", "generic-musl", "x86-linux-any", "any-linux-any")),
        ("aarch64", "musl", ("aarch64-linux-musl", "generic-musl", "aarch64-linux-any", "any-linux-any")),
        ("riscv64", "musl", ("riscv64-linux-musl", "generic-musl", "riscv-linux-any", "any-linux-any")),
    )
)


def _command(machine: Machine | None, *flags: str) -> list[str]:
    if machine is None:
        return compiler("-D_GNU_SOURCE", *flags)
    library = foreign_flags(frontend(), machine.triple, machine.directories)
    return [*frontend().command, *library, "-w", "-D_GNU_SOURCE", *flags, "-x", "c", "-"]


def _run(machine: Machine | None, source: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = _command(machine, *flags)
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False, timeout=300)


@functools.cache
def _headers(machine: Machine | None) -> str:
    """Return the lines that include what the machine has of the headers."""
    lines = "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in includable())
    return lines if machine else includes(includable())


def evaluate(machine: Machine | None, expressions: Mapping[str, str]) -> dict[str, int]:
    """Return the values of the C expressions that are constant on `machine` (None: the neutral one), by name."""
    lines = [f"enum {{ vis_{number} = ({text}) }};\n" for number, text in enumerate(expressions.values())]
    done = _run(machine, _headers(machine) + "".join(lines), "-fsyntax-only", "-ferror-limit=0", "-Xclang",
                "-ast-dump=json", "-Xclang", "-ast-dump-filter=vis_")  # fmt: skip
    values: dict[int, int] = {}
    for node in _documents(done.stdout):
        if node.get("kind") == "EnumConstantDecl" and "isInvalid" not in node:
            folded = next(_folded(node), None)
            if folded is not None:
                values[int(node["name"].removeprefix("vis_"))] = int(folded)
    return {name: values[number] for number, name in enumerate(expressions) if number in values}


def _folded(node: Node) -> Iterator[str]:
    for part in node.get("inner", ()):
        if part.get("kind") == "ConstantExpr":
            yield str(part["value"])
        yield from _folded(part)


def _documents(text: str) -> Iterable[Node]:
    decoder, position = json.JSONDecoder(), 0
    while (position := text.find("{", position)) >= 0:
        node, position = decoder.raw_decode(text, position)
        yield node


@functools.cache
def names() -> tuple[str, ...]:
    """Return the macros without parameters and the enumerators that the headers of the neutral machine define."""
    before, after = (_run(None, text, "-dM", "-E").stdout for text in ("", _headers(None)))
    defined = re.compile(r"^#define (\w+) \S", re.M)
    found = set(defined.findall(after)) - set(defined.findall(before))
    for node in _declarations():
        if node["kind"] == "EnumDecl":
            found.update(part["name"] for part in node.get("inner", ()) if part["kind"] == "EnumConstantDecl")
    kept = re.compile(r"(?!__|_[A-Z])\w+\Z|_(?:SC|PC|CS|POSIX|POSIX2|XOPEN|IO\w)_")
    return tuple(sorted(name for name in found if kept.match(name)))


@functools.cache
def _declarations() -> tuple[Node, ...]:
    done = _run(None, _headers(None), "-fsyntax-only", "-Xclang", "-ast-dump=json")
    assert done.returncode == 0, done.stderr
    roots = (str(frontend().library / "libc" / "include" / "any-linux-any"), str(frontend().library / "include"))
    ours = (node for node in parse_tree(done.stdout) if not place(node)[0].startswith(roots))
    return tuple(node for node in ours if node["kind"] in ("EnumDecl", "RecordDecl", "TypedefDecl"))


@functools.cache
def layouts() -> Mapping[str, str]:
    """Return expressions for the size, alignment, sign and offsets of each type of the C library's headers."""
    expressions: dict[str, str] = {}
    for node in _declarations():
        name = node.get("name", "")
        if not name or name.startswith("_") or str(OVERLAY / "vis") in place(node)[0]:
            continue
        if node["kind"] == "TypedefDecl":
            expressions[f"sizeof {name}"] = f"sizeof({name})"
            expressions[f"alignof {name}"] = f"_Alignof({name})"
            expressions[f"sign of {name}"] = f"({name})-1 < 0"
        elif node["kind"] == "RecordDecl" and node.get("completeDefinition"):
            kind = f"{node['tagUsed']} {name}"
            expressions[f"sizeof {kind}"] = f"sizeof({kind})"
            expressions[f"alignof {kind}"] = f"_Alignof({kind})"
            for part in node.get("inner", ()):
                field = part.get("name", "")
                if part["kind"] == "FieldDecl" and field and not field.startswith("_"):
                    expressions[f"offset {kind} {field}"] = f"__builtin_offsetof({kind}, {field})"
                    expressions[f"width {kind} {field}"] = f"sizeof((({kind} *)0)->{field})"
    return expressions
