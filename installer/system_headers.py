"""Whether a package's headers mean on Windows what its module does: a C compiler for Windows is asked.

There, long has 32 bits and wchar_t 16. The interface in a package has sizes, but not how its headers come by them
(uint64_t is unsigned long on one system, size_t on another), so the headers themselves decide: clang, inside the
Python package ziglang, reads them with Windows's own and compares each exported function, and each struct within
its reach, with what the module has. Invariant: what does not agree, or cannot be read, is refused; the compiler is
confined like a linker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from visget.errors import CompileError, UnsupportedError
from visget.files import translated
from visget.format.abi_classes import reachable
from visget.format.package import Package
from visget.format.prototypes import (
    Api,
    Array,
    CType,
    EnumRef,
    Function,
    FunctionType,
    Integer,
    Pointer,
    Record,
    RecordRef,
    c_text,
)
from visget.installer.link_run import run_linker
from visget.installer.linkers import Linker
from visget.installer.sandbox import Mode
from visget.installer.target import Target

_SIZES = {1: "char", 2: "short", 4: "int", 8: "long long"}
_FAILED = re.compile(r"static assertion failed[^:\n]*: ([A-Za-z_]\w*|struct \w+|union \w+)!")
_FAILED_PLAIN = re.compile(r"error: ([^\n]*)")
_NAME = re.compile(r"(?:(?:struct|union) )?[A-Za-z_]\w*\Z")


def headers_agree(package: Package, linker: Linker, target: Target, scratch: Path, sandbox: Mode) -> None:
    """Refuse a package whose headers declare something else on Windows than its module has.

    Args:
        package: the package.
        linker: zig's linker for Windows, whose compiler is used.
        target: the target.
        scratch: an empty directory.
        sandbox: what must confine the compiler.

    Raises:
        UnsupportedError: they do; the functions are named.
    """
    api = package.api()
    exports = frozenset(package.manifest.exports)
    headers = package.headers()
    lines = [f'#include "{name}"' for name in sorted(headers)]
    lines += _assertions(api, [one for one in api.functions if one.name in exports])
    with translated("prepare the look at the headers", scratch):
        for name, text in headers.items():
            file = scratch.joinpath("include", *PurePosixPath(name).parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        (scratch / "check.c").write_text("\n".join(lines) + "\n", encoding="utf-8")
    compiler = Linker(kind=linker.kind, command=(linker.command[0], "cc"), version=linker.version)
    words = [
        "-target", "x86_64-windows-gnu", "-std=gnu11", "-w", "-ferror-limit=0", "-fno-caret-diagnostics", "-Iinclude",
        "-c", "check.c", "-o", "check.obj",
    ]  # fmt: skip
    try:
        run_linker(compiler, words, [], "check.obj", target, scratch, sandbox)
    except CompileError as error:
        raise _differ(package, target, str(error.details.get("stderr", "")) or error.message) from None


def _differ(package: Package, target: Target, complaints: str) -> UnsupportedError:
    label = f"{package.manifest.name} {package.manifest.version}"
    names = list(dict.fromkeys(_FAILED.findall(complaints)))
    if names:
        listed = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
        what = f"{listed}: other types or another layout there (long has 32 bits, wchar_t has 16)"
    else:
        found = _FAILED_PLAIN.search(complaints)
        what = f"its headers cannot be read there: {found[1][:300] if found else complaints[-300:]}"
    return UnsupportedError(
        f"{label} cannot be made for {target.platform}: {what}",
        where=label,
        hint="its author can use types of a fixed size, such as int64_t, in the public headers",
        details={"package": label, "target": target.platform, "functions": names},
    )


def _assertions(api: Api, functions: list[Function]) -> Iterator[str]:
    records: dict[str, Record] = {}
    for function in functions:
        parameters = tuple(parameter.type for parameter in function.parameters)
        kind = FunctionType(function.result, parameters, function.variadic)
        wanted = c_text(_wide(kind))
        yield (f"_Static_assert(__builtin_types_compatible_p(__typeof__({function.name}), {wanted}), "
               f'"{function.name}!");')  # fmt: skip
        for inner, _ in reachable([kind], api):
            record = api.record(inner.name) if isinstance(inner, RecordRef) else None
            if record is not None and record.complete and _NAME.match(record.name):
                records[record.name] = record
            if (
                isinstance(inner, EnumRef)
                and (enum := api.enum(inner.name))
                and _NAME.match(enum.name.removeprefix("enum "))
            ):
                yield f'_Static_assert(sizeof({enum.name}) == {enum.type.size}, "{function.name}!");'
    for name, record in records.items():
        yield f'_Static_assert(sizeof({name}) == {record.size}, "{name}!");'
        for field in record.fields:
            if field.name and field.bits is None:
                yield f'_Static_assert(__builtin_offsetof({name}, {field.name}) == {field.offset}, "{name}!");'
                if not isinstance(field.type, FunctionType):
                    size = _size(field.type, api)
                    if size:
                        yield f'_Static_assert(sizeof((({name} *)0)->{field.name}) == {size}, "{name}!");'
                    if isinstance(field.type, Pointer):
                        text = c_text(_wide(field.type))
                        yield (f"_Static_assert(__builtin_types_compatible_p(__typeof__((({name} *)0)->{field.name}), "
                               f'{text}), "{name}!");')  # fmt: skip


def _wide(kind: CType) -> CType:
    """Return `kind` with the integer types that have its sizes on Windows."""
    if isinstance(kind, Integer) and "long" in kind.name and kind.size in _SIZES:
        return replace(kind, name=f"{'' if kind.signed else 'unsigned '}{_SIZES[kind.size]}")
    if isinstance(kind, Pointer):
        return replace(kind, target=_wide(kind.target))
    if isinstance(kind, Array):
        return replace(kind, element=_wide(kind.element))
    if isinstance(kind, FunctionType):
        return replace(kind, result=_wide(kind.result), parameters=tuple(map(_wide, kind.parameters)))
    return kind


def _size(kind: CType, api: Api) -> int:
    if isinstance(kind, Array):
        return kind.length * _size(kind.element, api)
    if isinstance(kind, RecordRef):
        record = api.record(kind.name)
        return record.size if record else 0
    if isinstance(kind, EnumRef):
        enum = api.enum(kind.name)
        return enum.type.size if enum else 0
    if isinstance(kind, Pointer):
        return 8
    return getattr(kind, "size", 0)
