"""The C interface of a package, from clang's reading of its public headers.

Invariant: every function, type and constant comes from a public header as clang understands it with the package's own
settings; sizes and offsets are clang's, never computed here. Whether the module really defines the functions is
checked in visget.toolchain.exported. The spec is docs/spec/api.md.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from visget.errors import BuildError
from visget.format.plaintext import clean_line
from visget.format.prototypes import (
    Api,
    Bool,
    CType,
    EnumRef,
    Float,
    Function,
    FunctionType,
    Integer,
    Parameter,
    Pointer,
    Record,
    RecordRef,
    Typedef,
)
from visget.toolchain.astdump import Node, children, parse_layouts, parse_tree, place
from visget.toolchain.clang import CompileOptions, Frontend
from visget.toolchain.constants import evaluate_constants, evaluate_enums
from visget.toolchain.ctypescope import HeaderScope, PlacedLayout, reachable
from visget.toolchain.declarators import adjusted, declare, parse_type, split_function
from visget.toolchain.docs import documentation
from visget.toolchain.frontend import Compilers, clang_command, parse_dependencies


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One function that a public header declares, with what the API check needs beyond the Function."""

    function: Function
    """Its description."""
    names: frozenset[str]
    """The typedefs that its types go through, and those in the records it uses; "va_list" and "vector" too."""
    file: str
    """The header's path relative to the root."""
    prototyped: bool
    """Whether its parameters are declared; ``int f()`` in C says nothing about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headers:
    """What the public headers say."""

    declared: tuple[Declared, ...]
    """Their functions, in the order of the headers."""
    variables: tuple[str, ...]
    """Their extern variables, which a package cannot export."""
    api: Api
    """All types and constants, without the functions."""
    layouts: Mapping[str, PlacedLayout]
    """How each complete record lies in memory, by its name."""
    typedefs: Mapping[str, CType]
    """What each typedef stands for."""
    public_types: frozenset[str]
    """The records and enums that a public header itself defines or declares."""
    included: tuple[str, ...]
    """The files that they read, as paths relative to the root where they are inside of it, sorted."""
    files: Mapping[str, str]
    """The text of each public header by its include name."""


# Bodies of inline functions say nothing about the interface, and may nest deeper than a JSON reader goes.
_NO_BODIES = ("-Xclang", "-skip-function-bodies")


class HeaderReader:
    """Runs clang over the public headers of one package."""

    def __init__(self, frontend: Frontend, options: CompileOptions, root: Path, headers: Mapping[str, str]) -> None:
        self.root = root
        self.headers = headers
        """Path of each public header relative to the root, by its include name."""
        self.includes = "".join(f'#include "{path}"\n' for path in headers.values())
        self._command = [*clang_command(frontend, options, root, cxx=False), "-fno-color-diagnostics", "-x", "c"]
        self._compilers = Compilers()

    def run(self, *flags: str, source: str | None = None) -> tuple[int, str, str]:
        """Run clang over `source`, or over all headers; return its status, output and messages."""
        text = self.includes if source is None else source
        ran = self._compilers.run([*self._command, *flags, "-"], cwd=self.root, stdin=text)
        return ran.returncode, ran.stdout, ran.stderr

    def read(self, *flags: str) -> str:
        """Return what clang prints about the headers.

        Raises:
            BuildError: they do not compile.
        """
        status, stdout, stderr = self.run(*flags)
        if status != 0:
            raise BuildError(
                "the public headers do not compile as C",
                where=", ".join(self.headers.values()),
                hint="a public header must stand on its own; C++ parts belong under #ifdef __cplusplus",
                details={"stderr": stderr, "files": list(self.headers.values())},
            )
        return stdout


def read_headers(frontend: Frontend, options: CompileOptions, root: Path, headers: Mapping[str, str]) -> Headers:
    """Read the public headers (include name → path relative to `root`).

    Raises:
        BuildError: they do not compile as C.
    """
    # A flag may choose the standard of C++ sources, which would not do here.
    flags = tuple(flag for flag in options.flags if not re.match(r"-std=.*\+\+", flag))
    options = replace(options, language="c", flags=flags)
    reader = HeaderReader(frontend, options, root, headers)
    tree = parse_tree(reader.read("-fsyntax-only", "-Xclang", "-ast-dump=json", "-fparse-all-comments", *_NO_BODIES))
    layouts = parse_layouts(reader.read("-fsyntax-only", "-Xclang", "-fdump-record-layouts-complete"))
    public = {path: name for name, path in headers.items()}
    files = {name: (root / path).read_text(encoding="utf-8", errors="replace") for name, path in headers.items()}
    scope = HeaderScope(tree, layouts, public)
    docs: dict[str, str] = {}
    for name, path in headers.items():
        docs |= documentation([node for node in tree if posixpath.normpath(place(node)[0]) == path], files[name])
    declared: dict[str, Declared] = {}
    for node, path in _public(tree, public, "FunctionDecl"):
        found = _declared(node, scope, docs.get(str(node.get("id")), ""), header=public[path], file=path)
        if found is not None:
            declared[found.function.name] = _merged(declared.get(found.function.name), found)
    variables = [
        str(node.get("name"))
        for node, _ in _public(tree, public, "VarDecl")
        if node.get("storageClass") == "extern" and "name" in node
    ]
    records = scope.records()
    enums = evaluate_enums(reader, scope.enums())
    constants = evaluate_constants(reader, public, scope.loose_constants())
    return Headers(
        declared=tuple(_with_record_names(one, records, scope) for one in declared.values()),
        variables=tuple(dict.fromkeys(variables)),
        api=Api(
            records=tuple(records.values()), enums=tuple(enums), constants=tuple(constants),
            typedefs=tuple(_typedefs(tree, public, scope)),
        ),
        layouts=scope.layouts(),
        typedefs=scope.typedefs(),
        public_types=scope.public_types(),
        included=_included(reader.read("-M", "-MT", "headers"), root),
        files=files,
    )


def _included(rule: str, root: Path) -> tuple[str, ...]:
    names = {posixpath.normpath(name) for name in parse_dependencies(rule)}
    return tuple(sorted(posixpath.relpath(name, root) if name.startswith(f"{root}/") else name for name in names))


def _public(tree: Sequence[Node], public: Mapping[str, str], kind: str) -> Iterator[tuple[Node, str]]:
    for node in tree:
        if node.get("kind") == kind:
            path = posixpath.normpath(place(node)[0])
            if path in public:
                yield node, path


def _typedefs(tree: Sequence[Node], public: Mapping[str, str], scope: HeaderScope) -> Iterator[Typedef]:
    """Yield the typedefs of the public headers that name something a program can make, or call back through."""
    seen: set[str] = set()
    for node, _ in _public(tree, public, "TypedefDecl"):
        name = str(node["name"])
        parsed = scope.typedef(name)
        if parsed is None or name in seen:  # C may say the same twice
            continue
        seen.add(name)
        match parsed.type:
            case RecordRef(own) | EnumRef(own) if own == name:
                continue  # the only name of a type without a tag is its own name already
            case RecordRef() | EnumRef() | Bool() | Integer() | Float() | Pointer(FunctionType()):
                yield Typedef(name=name, type=parsed.type)


def _declared(node: Node, scope: HeaderScope, doc: str, *, header: str, file: str) -> Declared | None:
    """Return the function that `node` declares, or None where it is one that only the header itself defines."""
    defined = any(children(node, "CompoundStmt"))
    if defined or node.get("storageClass") == "static" or node.get("inline"):
        return None
    symbol = str(node.get("mangledName") or node["name"]).removeprefix("\x01")
    spelling = str(node["type"]["qualType"])
    result_c, listed = split_function(spelling)
    whole = parse_type(spelling, scope)
    result = parse_type(result_c, scope)
    parameters, names = [], result.names | whole.names
    for child in children(node, "ParmVarDecl"):
        c = str(child["type"]["qualType"])
        parsed = adjusted(parse_type(c, scope))
        names |= parsed.names
        parameters.append(Parameter(name=str(child.get("name", "")), c=clean_line(c), type=parsed.type))
    variadic = bool(node.get("variadic"))
    written = [declare(parameter.c, parameter.name) for parameter in parameters] + ["..."] * variadic
    function = Function(
        name=symbol,
        prototype=clean_line(declare(result_c, f"{symbol}({', '.join(written) or 'void'})")),
        doc=doc,
        result_c=clean_line(result_c),
        result=result.type,
        parameters=tuple(parameters),
        variadic=variadic,
        line=place(node)[1] or None,
        header=header,
    )
    return Declared(function=function, names=names, file=file, prototyped=bool(listed.strip()) or variadic)


def _merged(before: Declared | None, found: Declared) -> Declared:
    """Return the more telling of two declarations of one function, with the documentation of either."""
    if before is None:
        return found

    def told(one: Declared) -> int:
        return sum(bool(parameter.name) for parameter in one.function.parameters) + one.prototyped

    better, other = (found, before) if told(found) > told(before) else (before, found)
    return replace(better, function=replace(better.function, doc=better.function.doc or other.function.doc))


def _with_record_names(one: Declared, records: Mapping[str, Record], scope: HeaderScope) -> Declared:
    used = reachable(
        (one.function.result, *(parameter.type for parameter in one.function.parameters)), records
    )
    return replace(one, names=one.names.union(*(scope.record_names(name) for name in used)))

