"""Edits of neutral IR text that make it mean the same thing under the conventions of one target.

VIS-1 modules follow one neutral convention (that of LP64D RISC-V Linux). Three things cannot be left to LLVM's
back ends: how a variable argument list is laid out, who extends small integers in registers, and where the list
of constructors lives. This module rewrites them; what it cannot rewrite it reports as a built-in that
visget/installer/support.py must define.

Invariant: pure text to text; nothing inside a quoted string is ever changed. The conventions are written down in
docs/spec/pipeline.md, section "Legalisation".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from visget.errors import CompileError, UnsupportedError
from visget.installer.systems import LINUX, MACOS, WINDOWS

ARCHITECTURES = ("x86_64", "aarch64", "riscv64")
"""The architectures that neutral IR can be legalised for."""

PERSONALITY = "__gxx_personality_v0"
"""The function of C++ that reads the tables of landing pads, where the module defines it itself."""

VA_FAMILY = (
    "vprintf", "vfprintf", "vsprintf", "vsnprintf", "vdprintf", "vasprintf",
    "vscanf", "vfscanf", "vsscanf",
    "vwprintf", "vfwprintf", "vswprintf", "vwscanf", "vfwscanf", "vswscanf",
    "vsyslog", "verr", "verrx", "vwarn", "vwarnx",
)  # fmt: skip
"""The functions of libc that are handed a va_list."""

_PIECES = re.compile(r'("[^"]*")')
_END = r"(?![-\w$.])"
_EXTENSION = re.compile(r" (?:signext|zeroext)" + _END)
_VA_CALL = re.compile(r"@__vis_va_(start|end|copy)\(")
_VA_DECLARATION = re.compile(r"^declare [^\n]*@__vis_va_(?:start|end|copy)\([^\n]*\n", re.MULTILINE)
_VA_ANY = re.compile(r"@(__vis_va_(?:start|end|copy))" + _END)
_BUILTIN = re.compile(r"@(__vis_[-\w$.]+)")
_VA_NAME = re.compile(r"@(" + "|".join(VA_FAMILY) + r")" + _END)
_DEFINED = re.compile(r"^define [^\n]*?@([-\w$.]+)\(", re.MULTILINE)
_STRUCTORS = re.compile(
    r"^@llvm\.global_(ctors|dtors) = appending (?:[a-z_]+ )*global \[\d+ x \{ i32, ptr, ptr \}\] (.*)\n", re.MULTILINE
)
_DESTRUCTORS = re.compile(
    r"^@llvm\.global_(dtors) = appending (?:[a-z_]+ )*global \[\d+ x \{ i32, ptr, ptr \}\] (.*)\n", re.MULTILINE
)
_STRUCTOR = re.compile(r'\{ i32, ptr, ptr \} \{ i32 (\d+), ptr (@(?:[-\w$.]+|"[^"]*")), ptr [^{}]* \}')
_USED = re.compile(
    r'^@llvm\.compiler\.used = appending (?:[a-z_]+ )*global \[(\d+) x ptr\] \[(.*)\], section "llvm\.metadata"\n',
    re.MULTILINE,
)

_DEFINE_LINE = re.compile(r"^define [^\n]*\bi8\b[^\n]*", re.MULTILINE)
_FUNCTION_ALIAS = re.compile(r"^@([-\w$.]+) = [^\n\"]*\balias [^\n\"]*, ptr @([-\w$.]+)$", re.MULTILINE)
_BYTE_PARAMETER = re.compile(r"\bi8((?: [a-z]+)*?) signext" + _END)
_BYTE_RESULT = re.compile(r' signext ((?:noundef )?)i8 @([-\w$.]+|"[^"\n]*")\(')
# A musttail call hands the result on as it is.
_BYTE_CALL = re.compile(
    r"^(  (?:%[^\s]+ = )?(?:tail |notail )?call(?: [a-z]+)*?) signext((?: noundef)?) (i8 [@%(])", re.MULTILINE
)

_PERSONALITY = re.compile(f"@{PERSONALITY}" + _END)
_DEFAULT_PRIORITY = 65535
_VA_INTRINSICS = {
    "start": "declare void @llvm.va_start.p0(ptr)\n",
    "end": "declare void @llvm.va_end.p0(ptr)\n",
    "copy": "declare void @llvm.va_copy.p0(ptr, ptr)\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Legalised:
    """IR text that follows a target's conventions, and the VIS built-ins that it still lacks."""

    text: str
    builtins: frozenset[str]


def legalise(text: str, arch: str, system: str = LINUX, *, chars: frozenset[str] = frozenset()) -> Legalised:
    """Rewrite the neutral module `text` for `arch`.

    Constructors are not touched here, because the optimiser can still run many of them at compile time as long as
    it knows them: see :func:`place_constructors`.

    Args:
        text: the module as LLVM prints it.
        arch: the architecture.
        system: the operating system (visget.installer.systems).
        chars: the exported functions whose C result is a plain char.

    Raises:
        UnsupportedError: there are no rules for `arch`.
        CompileError: the module uses a built-in in a way that VIS-1 does not allow.
    """
    if arch not in ARCHITECTURES:
        raise UnsupportedError(
            f"neutral code cannot be translated for the architecture {arch} yet",
            hint="choose one of: " + ", ".join(ARCHITECTURES),
        )
    text = _rewrite_va(text)
    if (arch == "aarch64" and system != MACOS) or system == WINDOWS:
        # AAPCS64 and Windows callers leave the high bits of small integers undefined, so the callee must not trust
        # them. Apple's extend them, as RISC-V's do.
        text = outside_strings(text, (" signext", " zeroext"), lambda piece: _EXTENSION.sub("", piece))
    if arch == "riscv64" or system in (MACOS, WINDOWS):
        text = _shim_va_family(text)
    if arch == "riscv64":
        text = _distrust_bytes(text, chars)
    return Legalised(text=text, builtins=frozenset(_symbols(text, _BUILTIN)))


def place_constructors(text: str) -> str:
    """Turn llvm.global_ctors and llvm.global_dtors into entries of .init_array and .fini_array.

    LLVM's C interface offers no way to ask for .init_array, and without asking the lists come out as .ctors and
    .dtors, which most linkers and every current loader ignore: the constructors would silently never run.
    """
    entries: list[tuple[str, str, str]] = []

    def collect(found: re.Match[str]) -> str:
        kind, initializer = found[1], found[2]
        section = ".init_array" if kind == "ctors" else ".fini_array"
        listed = [(int(priority), symbol) for priority, symbol in _STRUCTOR.findall(initializer)]
        if len(listed) != initializer.count("{ i32, ptr, ptr } {"):
            raise CompileError(
                f"the list of {'constructors' if kind == 'ctors' else 'destructors'} of the module has a form that "
                "visget does not know",
                hint="report this package to its author and to visget: it should have been refused as it was built",
            )
        for priority, symbol in listed:
            suffix = "" if priority == _DEFAULT_PRIORITY else f".{priority:05d}"
            entries.append((f"@__vis_{kind}.{len(entries)}", symbol, section + suffix))
        return ""

    text = _STRUCTORS.sub(collect, text)
    if not entries:
        return text
    lines = "".join(
        f'{name} = internal constant ptr {symbol}, section "{section}", align 8\n' for name, symbol, section in entries
    )
    # Nothing refers to these entries; this list keeps them. (llvm.used would keep them too, but it also marks the
    # sections SHF_GNU_RETAIN, which older linkers do not know.)
    used = [f"ptr {name}" for name, _, _ in entries]

    def extend(found: re.Match[str]) -> str:
        return _used(int(found[1]) + len(used), ", ".join([found[2], *used]))

    text, merged = _USED.subn(extend, text)
    if not merged:
        lines += _used(len(used), ", ".join(used))
    return text.rstrip("\n") + "\n\n" + lines


def _used(count: int, items: str) -> str:
    return f'@llvm.compiler.used = appending global [{count} x ptr] [{items}], section "llvm.metadata"\n'


def name_personality(text: str, exports: Iterable[str]) -> str:
    """Name the module's own function for landing pads after the package's `exports`.

    Code reaches it through a variable that is named after it and that linkers fold with others of that name. Under the
    usual name, a C++ program that is linked with the package's archive would use its own function for the package's
    tables, or the other way round. (This comes after optimisation, because LLVM knows the usual name.)
    """
    mark = hashlib.sha256("\n".join(sorted(exports)).encode()).hexdigest()[:16]

    def rename(found: re.Match[str]) -> str:
        return f"@vis_personality_{mark}"

    return outside_strings(text, (f"@{PERSONALITY}",), lambda piece: _PERSONALITY.sub(rename, piece))


def add_destructor(text: str, function: str) -> str:
    """Put `function` of the module `text` in front of llvm.global_dtors.

    What stands first there runs last (of those without a priority), as what crtbegin.o registers does.
    """
    entry = f"{{ i32, ptr, ptr }} {{ i32 {_DEFAULT_PRIORITY}, ptr @{function}, ptr null }}"

    def prepend(found: re.Match[str]) -> str:
        items = found[2].removeprefix("[").removesuffix("]") if found[2] != "zeroinitializer" else ""
        return _destructors(found[2].count("{ i32, ptr, ptr } {") + 1, ", ".join(filter(None, [entry, items])))

    text, found = _DESTRUCTORS.subn(prepend, text)
    return text if found else text.rstrip("\n") + "\n\n" + _destructors(1, entry)


def _destructors(count: int, items: str) -> str:
    return f"@llvm.global_dtors = appending global [{count} x {{ i32, ptr, ptr }}] [{items}]\n"


def _rewrite_va(text: str) -> str:
    if "@__vis_va_" not in text:
        return text
    kinds: set[str] = set()

    def rename(found: re.Match[str]) -> str:
        kinds.add(found[1])
        return f"@llvm.va_{found[1]}.p0("

    text = _VA_DECLARATION.sub("", text)
    text = outside_strings(text, ("@__vis_va_",), lambda piece: _VA_CALL.sub(rename, piece))
    left = sorted(_symbols(text, _VA_ANY))
    if left:
        raise CompileError(
            f"the module uses {left[0]} as a value; it can only be called",
            hint="in C, use va_start, va_end and va_copy of <stdarg.h> as they are, never through a pointer",
        )
    known = "".join(_VA_INTRINSICS[kind] for kind in sorted(kinds) if f"declare void @llvm.va_{kind}.p0(" not in text)
    return text.rstrip("\n") + "\n\n" + known


def _shim_va_family(text: str) -> str:
    """Send calls that pass a va_list to libc through shims that pass the pointer inside it."""
    own = frozenset(_DEFINED.findall(text))
    # The shims declare the functions themselves, with the types of the C standard.
    text = re.sub(
        r"^declare [^\n]*@(" + "|".join(VA_FAMILY) + r")\([^\n]*\n",
        lambda found: found[0] if found[1] in own else found[0].replace(f"@{found[1]}(", f"@__vis_{found[1]}("),
        text,
        flags=re.MULTILINE,
    )

    def rename(found: re.Match[str]) -> str:
        return found[0] if found[1] in own else f"@__vis_{found[1]}"

    return outside_strings(text, tuple("@" + name for name in VA_FAMILY), lambda piece: _VA_NAME.sub(rename, piece))


def _distrust_bytes(text: str, chars: frozenset[str]) -> str:
    """Stop trusting how other people's code extended a byte, and return a plain char as C compilers there expect it.

    For VIS plain char is signed; for C compilers on RISC-V it is unsigned. Both sides believe in an extension that
    the other side does not make: a table indexed with such a char would be read out of bounds.
    """
    chars = chars | {found[2] for found in _FUNCTION_ALIAS.finditer(text) if found[1] in chars}

    def define(found: re.Match[str]) -> str:
        line = _BYTE_PARAMETER.sub(r"i8\1", found[0])
        name = _BYTE_RESULT.search(line)
        if name is not None and name[2].strip('"') in chars:
            line = f"{line[: name.start()]} zeroext {name[1]}i8 @{line[name.start(2) :]}"
        return line

    text = _DEFINE_LINE.sub(define, text)
    return _BYTE_CALL.sub(r"\1\2 \3", text)


def _symbols(text: str, pattern: re.Pattern[str]) -> set[str]:
    """Return what `pattern` finds outside strings, on lines that hold a built-in."""
    found: set[str] = set()

    def note(piece: str) -> str:
        found.update(pattern.findall(piece))
        return piece

    outside_strings(text, ("@__vis_",), note)
    return found


def outside_strings(text: str, needles: tuple[str, ...], edit: Callable[[str], str]) -> str:
    """Apply `edit` to the parts of `text` outside quotes, on the lines that hold one of `needles`."""
    if not any(needle in text for needle in needles):
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not any(needle in line for needle in needles):
            continue
        if '"' in line:
            # In LLVM's text a quote inside a string is written \22, so quotes always come in pairs.
            pieces = _PIECES.split(line)
            pieces[::2] = [edit(piece) for piece in pieces[::2]]
            lines[number] = "".join(pieces)
        else:
            lines[number] = edit(line)
    return "\n".join(lines)
