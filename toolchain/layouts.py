"""Whether the types at a package's boundary lie in memory everywhere as they do in its module (the rule API-007).

Invariant: sizes, alignments and offsets are clang's for each machine, computed from the same headers with the package's
own settings; only what a C program on that machine would see is compared, so the C library's headers are that
machine's own and none of visget's are used. The rule is docs/spec/front-end.md, section 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from visget.format.findings import Finding
from visget.format.prototypes import Api, CType, EnumRef, Float, Integer
from visget.toolchain.astdump import Layout, parse_layouts
from visget.toolchain.clang import CompileOptions, Frontend, foreign_flags, foreign_headers, package_flags
from visget.toolchain.ctypescope import reachable
from visget.toolchain.exported import JUDGED
from visget.toolchain.frontend import Compilers
from visget.toolchain.headers import Declared, Headers

_ERROR = ": error: "
_SHOWN = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine that C programs are compiled for, with the C library whose types differ most from the module's."""

    name: str
    triple: str
    directories: tuple[str, ...]
    """Its directories under ziglang's libc/include."""


MACHINES = (
    Machine(
        name="x86-64", triple="x86_64-linux-gnu",
        directories=("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any"),
    ),
    Machine(
        name="AArch64", triple="aarch64-linux-gnu",
        directories=("aarch64-linux-gnu", "generic-glibc", "aarch64-linux-any", "any-linux-any"),
    ),
)  # fmt: skip
"""Where the layouts are compared. RISC-V is the module's own."""


def compare_layouts(
    frontend: Frontend,
    options: CompileOptions,
    root: Path,
    headers: Headers,
    api: Api,
    includes: Sequence[str],
    machines: Sequence[Machine] = MACHINES,
) -> list[Finding]:
    """Compare the types of `api` with those of each machine.

    Args:
        frontend: the clang.
        options: the package's settings.
        root: the directory that clang runs in.
        headers: what the headers say to the module.
        api: the exported functions and their types.
        includes: the paths of the public headers, relative to `root`.
        machines: what to compare with.
    """
    text = "".join(f'#include "{path}"\n' for path in includes)
    comparison = _Comparison(headers, api)
    for machine in machines:
        command = [
            *frontend.command, *foreign_flags(frontend, machine.triple, machine.directories),
            *package_flags(options, cxx=False), *foreign_headers(options), "-fno-color-diagnostics", "-x", "c",
            "-fsyntax-only", "-Xclang", "-fdump-record-layouts-complete", "-",
        ]  # fmt: skip
        for probes in (comparison.probes(), ""):
            ran = Compilers().run(command, cwd=root, stdin=text + probes)
            if ran.returncode == 0:
                break
        if ran.returncode == 0:
            comparison.add(machine, parse_layouts(ran.stdout))
        else:
            comparison.refused(machine, next((x for x in ran.stderr.splitlines() if _ERROR in x), ""), includes)
    return comparison.findings


class _Comparison:
    """The findings while one machine after the other is looked at; each type is reported once."""

    def __init__(self, headers: Headers, api: Api) -> None:
        self.findings: list[Finding] = []
        self._headers = headers
        self._api = api
        self._records = {record.name: record for record in api.records}
        chosen = {function.name for function in api.functions}
        declared = [one for one in headers.declared if one.function.name in chosen]
        self._scalars = {
            name: (size, one)
            for one in reversed(declared)
            for name in sorted(one.names)
            if name not in JUDGED and (size := _size(headers.typedefs.get(name), api))
        }
        self._reported: set[str] = set()
        self._users: dict[str, Declared] = {}
        for one in declared:
            types = (one.function.result, *(parameter.type for parameter in one.function.parameters))
            for name in reachable(types, self._records):
                self._users.setdefault(name, one)

    def probes(self) -> str:
        """Return C that makes clang tell the sizes of the typedefs that functions use."""
        return "".join(f"struct __visget_{name} {{ char value[sizeof({name})]; }};\n" for name in sorted(self._scalars))

    def add(self, machine: Machine, layouts: Mapping[str, Layout]) -> None:
        """Compare with one machine."""
        for name, (size, one) in self._scalars.items():
            layout = layouts.get(f"struct __visget_{name}")
            if layout is not None and layout.size != size and name not in self._reported:
                self._reported.add(name)
                what = f"{name} has {layout.size} bytes on {machine.name}, but {size} in the package"
                self._found(what, one, one.file, one.function.line, "use a type with a fixed size, such as int32_t")
        for name in sorted(self._records.keys() - JUDGED):
            placed = self._headers.layouts.get(name)
            layout = layouts.get(placed.key) if placed else None
            if placed is None or layout is None or name in self._reported:
                continue
            own = not placed.file.startswith("/")
            for what in _differences(placed.layout, layout, own=own):
                self._reported.add(name)
                self._found(
                    f"{name} {what} on {machine.name}", self._users.get(name), placed.file if own else None,
                    placed.line if own else None,
                    "write the struct with members of fixed sizes and no padding bit-fields, vectors or wide _BitInt",
                )  # fmt: skip
                break

    def refused(self, machine: Machine, error: str, includes: Sequence[str]) -> None:
        """Tell that a machine's own compiler does not take the headers, so that nothing could be compared."""
        message = f"the public headers do not compile for {machine.name}"
        self.findings.append(
            Finding(
                rule="API-008", severity="warning", function=None, file=includes[0], line=None,
                message=f"{message}: {error.strip()[:_SHOWN]}" if error else message,
                remedy="keep what needs one processor's headers out of the public headers",
            )
        )

    def _found(self, message: str, one: Declared | None, file: str | None, line: int | None, remedy: str) -> None:
        self.findings.append(
            Finding(
                rule="API-007", severity="error" if one else "warning", function=one.function.name if one else None,
                file=file, line=line, message=message, remedy=remedy,
            )
        )


def _size(type_: CType | None, api: Api) -> int:
    if isinstance(type_, Integer | Float):
        return type_.size
    if isinstance(type_, EnumRef):
        return next((enum.type.size for enum in api.enums if enum.name == type_.name), 0)
    return 0


def _differences(here: Layout, there: Layout, *, own: bool) -> Iterator[str]:
    """Yield how `there` differs, so that a C program would see: in its named members, size or alignment.

    The C libraries have their own names for some members; only a struct of the package (`own`) must have the same.
    """
    ours = {slot.name: slot for slot in here.slots if slot.name}
    theirs = {slot.name: slot for slot in there.slots if slot.name}
    for name in ours.keys() & theirs.keys():
        if (ours[name].bit, ours[name].width) != (theirs[name].bit, theirs[name].width):
            yield f"has its member {name} at another place"
    if own and ours.keys() != theirs.keys():
        yield f"has other members ({', '.join(sorted(ours.keys() ^ theirs.keys())[:4])})"
    if here.size != there.size:
        yield f"has {there.size} bytes instead of {here.size}"
    if here.align != there.align:
        yield f"is aligned to {there.align} bytes instead of {here.align}"
