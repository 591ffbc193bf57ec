"""What a module takes from Android, macOS or Windows: renamed, written here, or translated.

The tables are visget.installer.systems. A function that is called otherwise there becomes a call of an internal
one that calls it. Where the numbers of errors differ, each access to errno translates them; it must be a plain
load or store of what `__errno_location` returns. Invariant: pure text to text; what cannot be rewritten for
certain is refused. The spec is docs/spec/targets.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from visget.errors import UnsupportedError
from visget.format.imports import IMPORTS
from visget.installer.support_parts import BuiltIn, declare
from visget.installer.systems import ANDROID, LINUX, MACOS, NAMES, WINDOWS

_PREFIX = "__vis_to_"
_INNER = "alwaysinline nounwind willreturn memory(none)"
_END = r"(?![-\w$.])"
_PIECES = re.compile(r'("[^"\n]*")')
_DEFINED = re.compile(r"^define [^\n]*?@([-\w$.]+)\(|^@([-\w$.]+) = (?!external )", re.MULTILINE)
_REFUSED = (
    (re.compile(r"^@[^\n\"]* = [^\n\"]*\bthread_local\b", re.MULTILINE), "thread-local variables", NAMES.keys()),
    (re.compile(r"^(?:define [^\n]*\bpersonality\b|  [^\n\"]*\b(?:invoke|landingpad)\b)", re.MULTILINE),
     "C++ exceptions", NAMES.keys()),
    (re.compile(r"^@llvm\.global_dtors\b", re.MULTILINE), "destructors", {MACOS, WINDOWS}),
    (re.compile(r"^@llvm\.global_ctors\b", re.MULTILINE), "constructors", {WINDOWS}),
)  # fmt: skip
_ERRNO = re.compile(r"^ +(%[-\w$.]+) = [^\n\"]*\bcall [^\n\"]*ptr @__errno_location\(\)[^\n]*$", re.MULTILINE)
_BODY = re.compile(r"^define [^\n]*\{\n(?:.*\n)*?\}$", re.MULTILINE)
_STREAM = re.compile(r"\bload ptr, ptr @(stdin|stdout|stderr)(?:, align \d+)?(?:, ![\w.]+ ![\w.]+)*$", re.MULTILINE)
_TOGETHER = {"sin.f64": "sin", "cos.f64": "cos", "sin.f32": "sinf", "cos.f32": "cosf"}
_STREAMS = {"stdin": 0, "stdout": 1, "stderr": 2}

# Neutral number -> the system's own, where they differ. 1 to 34 agree, but for 11 on macOS.
ERRORS: Mapping[str, Mapping[int, int]] = {
    MACOS: {
        11: 35, 35: 11, 36: 63, 37: 77, 38: 78, 39: 66, 40: 62, 42: 91, 43: 90, 61: 96, 71: 100, 74: 94, 75: 84, 84: 92,
        88: 38, 89: 39, 90: 40, 91: 41, 92: 42, 93: 43, 95: 45, 97: 47, 98: 48, 99: 49, 100: 50, 101: 51, 102: 52,
        103: 53,
        104: 54, 105: 55, 106: 56, 107: 57, 110: 60, 111: 61, 113: 65, 114: 37, 115: 36, 116: 70, 122: 69, 125: 89,
        130: 105, 131: 104,
    },
    WINDOWS: {
        35: 36, 36: 38, 37: 39, 38: 40, 39: 41, 40: 114, 42: 122, 43: 111, 61: 120, 71: 134, 74: 104, 75: 132, 84: 42,
        88: 128, 89: 109, 90: 115, 91: 136, 92: 123, 93: 135, 95: 130, 97: 102, 98: 100, 99: 101, 100: 116, 101: 118,
        102: 117, 103: 106, 104: 108, 105: 119, 106: 113, 107: 126, 110: 138, 111: 107, 113: 110, 114: 103, 115: 112,
        125: 105, 130: 133, 131: 127,
    },
}  # fmt: skip
_OWN_NUMBERS = 1000
"""What is added to a system's number that no neutral one stands for, so that it equals none of them."""


def adapt(text: str, system: str) -> str:
    """Return the neutral module `text` with what it takes from the C library as `system` has it.

    Raises:
        UnsupportedError: it has something that code for that system cannot have.
    """
    if system == LINUX:
        return text
    for pattern, what, systems in _REFUSED:
        if system in systems and pattern.search(text):
            raise UnsupportedError(
                f"the package has {what}, which visget does not make for {system} yet",
                hint="ask its author for a version without them, or choose a Linux target",
            )
    names = NAMES[system]
    own = frozenset(found[1] or found[2] for found in _DEFINED.finditer(text))
    if system in ERRORS and "__errno_location" not in own:
        text = _translate_errno(text, system)
    if system == WINDOWS:
        text = _streams(text, own)
    changes = {name: _PREFIX + name for name in (*names.renamed, *names.written)}
    changes |= {name: there for name, there in names.data.items() if there and there != name}
    changes = {name: there for name, there in changes.items() if name not in own}
    if system == WINDOWS:
        changes |= {f"llvm.{name}": f"{_PREFIX}{plain}" for name, plain in _TOGETHER.items()}
    # A symbol of the module's own that has a name of the system's makes room for that.
    changes |= {name: f"{name}.vis" for name in own & frozenset(names.data.values())}
    return _rename(text, changes)


def _rename(text: str, changes: Mapping[str, str]) -> str:
    pattern = re.compile(r"@(" + "|".join(sorted(map(re.escape, changes), key=len, reverse=True)) + ")" + _END)
    pieces = _PIECES.split(text)
    pieces[::2] = [pattern.sub(lambda found: f"@{changes[found[1]]}", piece) for piece in pieces[::2]]
    return "".join(pieces)


def _translate_errno(text: str, system: str) -> str:
    if "@__errno_location" not in text:
        return text
    count = 0

    def body(found: re.Match[str]) -> str:
        nonlocal count
        lines = found[0].split("\n")
        places = set(_ERRNO.findall(found[0]))
        # Anything but a direct call would hand errno's address to code that is not looked at.
        direct = sum("@__errno_location" in line for line in lines)
        if direct != len(_ERRNO.findall(found[0])):
            raise _errno_escapes(system)
        for number, line in enumerate(lines):
            used = places & set(re.findall(r"%[-\w$.]+", line))
            if not used or _ERRNO.match(line):
                continue
            count += 1
            value = f"%vis.errno.{count}"
            load = re.match(r"( +)(%[-\w$.]+) = load i32, ptr (%[-\w$.]+)(,[^\n]*)?$", line)
            store = re.match(r"( +)store i32 ([^ ,]+), ptr (%[-\w$.]+)(,[^\n]*)?$", line)
            if load and {load[3]} == used:
                lines[number] = (f"{load[1]}{value} = load i32, ptr {load[3]}{load[4] or ''}\n"
                                 f"{load[1]}{load[2]} = call i32 @__vis_errno_in(i32 {value})")  # fmt: skip
            elif store and {store[3]} == used and store[2] not in places:
                lines[number] = (f"{store[1]}{value} = call i32 @__vis_errno_out(i32 {store[2]})\n"
                                 f"{store[1]}store i32 {value}, ptr {store[3]}{store[4] or ''}")  # fmt: skip
            else:
                raise _errno_escapes(system)
        return "\n".join(lines)

    changed = _BODY.sub(body, text)
    outside = _BODY.sub("", text)
    if "@__errno_location" in re.sub(r"^declare [^\n]*$", "", outside, flags=re.MULTILINE):
        raise _errno_escapes(system)
    if not count:
        return changed
    return changed.rstrip("\n") + "\n\ndeclare i32 @__vis_errno_in(i32)\ndeclare i32 @__vis_errno_out(i32)\n"


def _errno_escapes(system: str) -> UnsupportedError:
    return UnsupportedError(
        f"the package uses the address of errno, whose numbers are others on {system}",
        hint="its author can read and write errno itself; or choose a Linux target",
    )


def _streams(text: str, own: frozenset[str]) -> str:
    """Replace what reads stdin, stdout and stderr, which are no variables on Windows, by calls."""
    text = _STREAM.sub(lambda m: m[0] if m[1] in own else f"call ptr @__vis_stream_{m[1]}()", text)
    for name in _STREAMS.keys() - own:
        text = re.sub(rf"^@{name} = external [^\n]*\n", "", text, flags=re.MULTILINE)
        if re.search(rf"@{name}{_END}", "".join(_PIECES.split(text)[::2])):
            raise UnsupportedError(
                f"the package uses the address of {name}, which is no variable on Windows",
                hint="its author can use the stream itself; or choose another target",
            )
    used = sorted(set(re.findall(r"@__vis_stream_(\w+)\(", text)))
    return text.rstrip("\n") + "\n" + "".join(f"declare ptr @__vis_stream_{name}()\n" for name in used)


def system_built_ins(system: str) -> dict[str, BuiltIn]:
    """Return the functions that stand for what is called otherwise on `system`, or is not there."""
    names = NAMES[system]
    found = {f"{_PREFIX}{name}": _calling(name, there) for name, there in names.renamed.items()}
    written = _WRITTEN | _asserts(system)
    if system in ERRORS:
        found |= _errors(system)
        written |= {"strerror": _strerror()}
    if system == WINDOWS:
        written |= {name: _calling(name, name) for name in _TOGETHER.values()}
        found |= {f"__vis_stream_{name}": _stream(name, number) for name, number in _STREAMS.items()}
    if system == MACOS:
        found["__vis_open"] = _OPEN
    return found | {f"{_PREFIX}{name}": written[name] for name in names.written}


def _calling(name: str, there: str) -> BuiltIn:
    """Return a function with the signature of the import `name` that calls `there`."""
    known = IMPORTS[name]
    values = ", ".join(f"{kind} %a{number}" for number, kind in enumerate(known.params))
    call = f"call {known.result} @{there}({values})"
    end = f"  {call}\n  ret void" if known.result == "void" else f"  %r = {call}\n  ret {known.result} %r"
    text = f"\ndefine internal {known.result} @{_PREFIX}{name}({values}) alwaysinline uwtable {{\n{end}\n}}\n"
    return BuiltIn(text=text, externals=declare(known.result, there, ", ".join(known.params)))


# FP_NAN, FP_INFINITE, FP_ZERO, FP_SUBNORMAL and FP_NORMAL are 0 to 4; the masks are those of llvm.is.fpclass.
def _classify(name: str, kind: str, suffix: str) -> BuiltIn:
    test = f"@llvm.is.fpclass.{suffix}"
    return BuiltIn(
        text=f"""
define internal i32 @{_PREFIX}{name}({kind} %x) {_INNER} {{
  %nan = call i1 {test}({kind} %x, i32 3)
  %infinite = call i1 {test}({kind} %x, i32 516)
  %zero = call i1 {test}({kind} %x, i32 96)
  %subnormal = call i1 {test}({kind} %x, i32 144)
  %a = select i1 %subnormal, i32 3, i32 4
  %b = select i1 %zero, i32 2, i32 %a
  %c = select i1 %infinite, i32 1, i32 %b
  %d = select i1 %nan, i32 0, i32 %c
  ret i32 %d
}}
""",
        externals={f"llvm.is.fpclass.{suffix}": f"declare i1 {test}({kind}, i32 immarg)"},
    )


def _sign(name: str, kind: str, bits: int) -> BuiltIn:
    narrow = f"  %r = trunc i{bits} %s to i32\n  ret i32 %r" if bits > 32 else "  ret i32 %s"
    return BuiltIn(
        text=f"""
define internal i32 @{_PREFIX}{name}({kind} %x) {_INNER} {{
  %i = bitcast {kind} %x to i{bits}
  %s = lshr i{bits} %i, {bits - 1}
{narrow}
}}
"""
    )


_WRITTEN = {
    "__fpclassify": _classify("__fpclassify", "double", "f64"),
    "__fpclassifyf": _classify("__fpclassifyf", "float", "f32"),
    "__signbit": _sign("__signbit", "double", 64),
    "__signbitf": _sign("__signbitf", "float", 32),
    "bcmp": BuiltIn(
        text=f"""
define internal i32 @{_PREFIX}bcmp(ptr %a, ptr %b, i64 %n) alwaysinline uwtable {{
  %r = call i32 @memcmp(ptr %a, ptr %b, i64 %n)
  ret i32 %r
}}
""",
        externals=declare("i32", "memcmp", "ptr, ptr, i64"),
    ),
}


def _asserts(system: str) -> dict[str, BuiltIn]:
    parameters = "ptr %what, ptr %file, i32 %line, ptr %in"
    head = f"\ndefine internal void @{_PREFIX}__assert_fail({parameters}) noreturn uwtable {{\n"
    if system == ANDROID:
        body = "  call void @__assert2(ptr %file, i32 %line, ptr %in, ptr %what)\n  unreachable\n}\n"
        externals = declare("void", "__assert2", "ptr, i32, ptr, ptr")
    elif system == MACOS:
        body = "  call void @__assert_rtn(ptr %in, ptr %file, i32 %line, ptr %what)\n  unreachable\n}\n"
        externals = declare("void", "__assert_rtn", "ptr, ptr, i32, ptr")
    else:
        body = """  %stream = call ptr @__acrt_iob_func(i32 2)
  %a = call i32 @fputs(ptr %file, ptr %stream)
  %b = call i32 @fputs(ptr @__vis_assert_text, ptr %stream)
  %c = call i32 @fputs(ptr %what, ptr %stream)
  call void @abort()
  unreachable
}
@__vis_assert_text = internal constant [21 x i8] c": assertion failed: \\00"
"""
        externals = (
            declare("ptr", "__acrt_iob_func", "i32")
            | declare("i32", "fputs", "ptr, ptr")
            | declare("void", "abort", "")
        )
    return {"__assert_fail": BuiltIn(text=head + body, externals=externals)}


def _strerror() -> BuiltIn:
    text = f"""
define internal ptr @{_PREFIX}strerror(i32 %error) uwtable {{
  %own = call i32 @__vis_errno_out(i32 %error)
  %r = call ptr @strerror(i32 %own)
  ret ptr %r
}}
"""
    return BuiltIn(text=text, needs=("__vis_errno_out",), externals=declare("ptr", "strerror", "i32"))


def _errors(system: str) -> dict[str, BuiltIn]:
    """Return the translations of the numbers of errors: from the system's to the neutral ones, and back."""
    to = ERRORS[system]
    back = {own: neutral for neutral, own in to.items()}
    # A number that one side has no name for stays apart from all that have one.
    return {
        "__vis_errno_in": _switch("__vis_errno_in", back, f"add i32 %e, {_OWN_NUMBERS}"),
        "__vis_errno_out": _switch("__vis_errno_out", to, f"sub i32 %e, {_OWN_NUMBERS}", guard=True),
    }


def _switch(name: str, table: Mapping[int, int], other: str, *, guard: bool = False) -> BuiltIn:
    cases = "\n".join(f"    i32 {given}, label %v{given}" for given in sorted(table))
    blocks = "\n".join(f"v{given}:\n  ret i32 {result}" for given, result in sorted(table.items()))
    # What is neither in the table nor among the common ones: the first number was made of a system's own.
    far = f"  %made = icmp sgt i32 %e, {_OWN_NUMBERS}\n  %r = select i1 %made, i32 %o, i32 %e\n" if guard else ""
    text = f"""
define internal i32 @{name}(i32 %e) nounwind willreturn memory(none) {{
  switch i32 %e, label %other [
{cases}
  ]
other:
  %same = icmp ult i32 %e, 35
  br i1 %same, label %keep, label %apart
keep:
  ret i32 %e
apart:
  %o = {other}
{far}  ret i32 {"%r" if guard else "%o"}
{blocks}
}}
"""
    return BuiltIn(text=text)


def _stream(name: str, number: int) -> BuiltIn:
    text = f"""
define internal ptr @__vis_stream_{name}() alwaysinline uwtable {{
  %r = call ptr @__acrt_iob_func(i32 {number})
  ret ptr %r
}}
"""
    return BuiltIn(text=text, externals=declare("ptr", "__acrt_iob_func", "i32"))


# Neutral flag of open() -> macOS's. The access modes agree; a flag that is not here makes the call fail.
OPEN_FLAGS = {
    0o100: 0x200, 0o200: 0x800, 0o400: 0x20000, 0o1000: 0x400, 0o2000: 0x8, 0o4000: 0x4, 0o10000: 0x400000,
    0o100000: 0, 0o200000: 0x100000, 0o400000: 0x100, 0o2000000: 0x1000000, 0o4000000: 0x80,
}  # fmt: skip


def _open() -> BuiltIn:
    lines = ["  %f0 = and i32 %flags, 3"]
    for number, (neutral, own) in enumerate(OPEN_FLAGS.items(), 1):
        lines.append(f"  %b{number} = and i32 %flags, {neutral}")
        lines.append(f"  %s{number} = icmp ne i32 %b{number}, 0")
        lines.append(f"  %m{number} = select i1 %s{number}, i32 {own}, i32 0")
        lines.append(f"  %f{number} = or i32 %f{number - 1}, %m{number}")
    known = 3 | sum(OPEN_FLAGS)
    newline = "\n"
    text = f"""
define internal i32 @__vis_open(ptr %path, i32 %flags, ...) uwtable {{
  %list = alloca [4 x i64], align 16
  call void @llvm.va_start.p0(ptr %list)
  %word.at = call ptr @__vis_va_arg_gp(ptr %list)
  %word = load i64, ptr %word.at, align 8
  call void @llvm.va_end.p0(ptr %list)
  %mode = trunc i64 %word to i32
  %odd = and i32 %flags, {~known & 0xFFFFFFFF}
  %bad = icmp ne i32 %odd, 0
  br i1 %bad, label %refuse, label %go
refuse:
  %errno = call ptr @__error()
  store i32 22, ptr %errno, align 4
  ret i32 -1
go:
{newline.join(lines)}
  %r = call i32 (ptr, i32, ...) @open(ptr %path, i32 %f{len(OPEN_FLAGS)}, i32 %mode)
  ret i32 %r
}}
"""
    return BuiltIn(
        text=text,
        needs=("__vis_va_arg_gp",),
        externals=declare("void", "llvm.va_start.p0", "ptr") | declare("void", "llvm.va_end.p0", "ptr")
        | declare("i32", "open", "ptr, i32, ...") | declare("ptr", "__error", ""),
    )  # fmt: skip


_OPEN = _open()
