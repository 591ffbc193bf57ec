"""The platform interface as the neutral compiler sees it: what the headers declare, and with which LLVM types.

The headers are those that packages are compiled with: visget's own in front of ziglang's copies of musl's. Nothing
here knows a name of the interface; it asks clang.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from visget.format.irtext import scan
from visget.format.manifest import EPOCH
from visget.format.module import parse_text, text_of
from visget.toolchain.astdump import Node, parse_tree, place
from visget.toolchain.clang import OVERLAY, Frontend, find_frontend, system_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A function or variable that a header declares."""

    name: str
    headers: tuple[str, ...]
    """The headers that declare it, as they are included."""
    kind: str
    """``function`` or ``data``."""
    label: str
    """The name of the symbol, where it is another one."""
    unavailable: bool
    type: str
    """Its C type."""


@functools.cache
def frontend() -> Frontend:
    """Return ziglang's clang, or skip."""
    pytest.importorskip("ziglang")
    return find_frontend(None, epoch=EPOCH)


def musl() -> Path:
    """Return the directory of musl's headers."""
    return frontend().library / "libc" / "include" / "generic-musl"


@functools.cache
def headers() -> tuple[str, ...]:
    """Return every header of the C library that can be included, as it is included."""
    names = {str(path.relative_to(root)) for root in (musl(), OVERLAY) for path in root.rglob("*.h")}
    return tuple(sorted(name for name in names if not name.startswith(("bits/", "vis"))))


def compiler(*flags: str, cxx: bool = False, own: bool = True) -> list[str]:
    """Return clang's command line for a unit on standard input; `own` says whether visget's headers stand in front."""
    language = "c++" if cxx else "c"
    system = system_flags(frontend(), cxx=cxx)
    if not own:
        place_of_ours = system.index(str(OVERLAY))
        del system[place_of_ours - 1 : place_of_ours + 1]
    return [*frontend().command, *system, "-w", *flags, "-x", language, "-"]


def run(source: str, *flags: str, cxx: bool = False, own: bool = True) -> subprocess.CompletedProcess[str]:
    """Compile `source`."""
    command = compiler(*flags, cxx=cxx, own=own)
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False, timeout=120)


@functools.cache
def includable() -> tuple[str, ...]:
    """Return the headers that are not refused as a whole (`#error`)."""
    return tuple(name for name in headers() if not _refused(name))


def _refused(name: str) -> bool:
    own = OVERLAY / name
    return own.is_file() and re.search(r"^#\s*error|vis_no_intrinsics", own.read_text(), re.M) is not None


def includes(names: Iterable[str]) -> str:
    """Return the lines that include `names`."""
    return "".join(f"#include <{name}>\n" for name in names)


@functools.cache
def declared() -> Mapping[str, Declared]:
    """Return what the headers declare in C, by name; kernel headers and clang's own left out."""
    return _declared(includable(), own=True)


@functools.cache
def declared_by_musl() -> Mapping[str, Declared]:
    """Return what musl's headers alone declare in C, by name."""
    names = (str(path.relative_to(musl())) for path in musl().rglob("*.h"))
    return _declared(tuple(sorted(name for name in names if not name.startswith("bits/"))), own=False)


def _declared(names: tuple[str, ...], *, own: bool) -> Mapping[str, Declared]:
    done = run(includes(names), "-D_GNU_SOURCE", "-fsyntax-only", "-Xclang", "-ast-dump=json", own=own)
    assert done.returncode == 0, done.stderr
    found: dict[str, Declared] = {}
    for node in parse_tree(done.stdout):
        variable = node["kind"] == "VarDecl"
        if not (variable or node["kind"] == "FunctionDecl") or node.get("storageClass") == "static" or "init" in node:
            continue
        name, header, parts = node["name"], _header(node), node.get("inner", ())
        before = found.get(name)
        labelled = any(part.get("kind") == "AsmLabelAttr" for part in parts)
        label = node["mangledName"].lstrip("\x01") if labelled else ""
        found[name] = Declared(
            name=name,
            headers=tuple(dict.fromkeys([*(before.headers if before else ()), *([header] if header else [])])),
            kind="data" if variable else "function",
            label=label or (before.label if before else ""),
            unavailable=any(part.get("kind") == "UnavailableAttr" for part in parts)
            or (before is not None and before.unavailable),
            type=node["type"]["qualType"],
        )
    return {name: item for name, item in found.items() if item.headers and not name.startswith(("__vis_", "__tg_"))}


@functools.cache
def long_types() -> frozenset[str]:
    """Return the functions that take or return a long double or a _Complex float: rules refuse them by their types."""
    return frozenset(
        name for name, item in declared_by_musl().items() if re.search(r"long double|_Complex float", item.type)
    )


def _header(node: Node) -> str:
    path = place(node)[0]
    for root in (str(musl()), str(OVERLAY)):
        if path.startswith(root + "/"):
            return path.removeprefix(root + "/")
    return ""


def signatures(names: Iterable[str], *, cxx: bool = False) -> dict[str, str]:
    """Return the LLVM types of the functions `names`, as the headers declare them."""
    wanted = list(names)
    lines = [includes(includable()), *(f"#undef {name}\n" for name in wanted)]
    lines.append(f"void *table[] = {{{''.join(f'(void *){name},' for name in wanted)}}};\n")
    done = run("".join(lines), "-D_GNU_SOURCE", "-S", "-emit-llvm", "-o", "-", cxx=cxx)
    assert done.returncode == 0, done.stderr
    module = scan(text_of(parse_text(done.stdout)))
    return {function.name: function.signature for function in module.functions if function.declared}
