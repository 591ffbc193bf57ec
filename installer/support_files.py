"""Built-ins for files: struct stat as VIS-1 lays it out, and the flags of open and fcntl.

VIS-1 means by struct stat and by O_* what Linux means by them on its newer architectures (its "generic" system call
table, RISC-V among them): docs/spec/platform.md. x86-64 has an older struct, AArch64 has four flags in each other's
place. Invariant: pure; every function here is internal; `out` is written only where the C library's function succeeds.
"""

from __future__ import annotations

from visget.installer.support_parts import BuiltIn, declare

# Offsets of the C library's struct stat on x86-64 and of the neutral one: the same fields in another order, and three
# of other sizes. How many links a file has and how large its blocks are fits 32 bits: the kernel has no more.
_NEUTRAL_STAT = """
define internal signext i32 @__vis_neutral_stat(i32 signext %result, ptr %raw, ptr %out) \
alwaysinline nounwind uwtable {
  %failed = icmp ne i32 %result, 0
  br i1 %failed, label %done, label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %out, ptr align 8 %raw, i64 16, i1 false)
  %links.at = getelementptr inbounds i8, ptr %raw, i64 16
  %links = load i64, ptr %links.at, align 8
  %links.small = trunc i64 %links to i32
  %links.to = getelementptr inbounds i8, ptr %out, i64 20
  store i32 %links.small, ptr %links.to, align 4
  %mode.at = getelementptr inbounds i8, ptr %raw, i64 24
  %mode = load i32, ptr %mode.at, align 8
  %mode.to = getelementptr inbounds i8, ptr %out, i64 16
  store i32 %mode, ptr %mode.to, align 8
  %owner.at = getelementptr inbounds i8, ptr %raw, i64 28
  %owner = load i64, ptr %owner.at, align 4
  %owner.to = getelementptr inbounds i8, ptr %out, i64 24
  store i64 %owner, ptr %owner.to, align 8
  %device.at = getelementptr inbounds i8, ptr %raw, i64 40
  %device = load i64, ptr %device.at, align 8
  %device.to = getelementptr inbounds i8, ptr %out, i64 32
  store i64 %device, ptr %device.to, align 8
  %pad.to = getelementptr inbounds i8, ptr %out, i64 40
  store i64 0, ptr %pad.to, align 8
  %size.at = getelementptr inbounds i8, ptr %raw, i64 48
  %size = load i64, ptr %size.at, align 8
  %size.to = getelementptr inbounds i8, ptr %out, i64 48
  store i64 %size, ptr %size.to, align 8
  %block.at = getelementptr inbounds i8, ptr %raw, i64 56
  %block = load i64, ptr %block.at, align 8
  %block.small = and i64 %block, 4294967295
  %block.to = getelementptr inbounds i8, ptr %out, i64 56
  store i64 %block.small, ptr %block.to, align 8
  %rest.at = getelementptr inbounds i8, ptr %raw, i64 64
  %rest.to = getelementptr inbounds i8, ptr %out, i64 64
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %rest.to, ptr align 8 %rest.at, i64 56, i1 false)
  %unused.to = getelementptr inbounds i8, ptr %out, i64 120
  store i64 0, ptr %unused.to, align 8
  br label %done
done:
  ret i32 %result
}
"""
_NEUTRAL_FLAGS = """
define internal signext i32 @__vis_native_flags(i32 signext %flags) alwaysinline nounwind willreturn memory(none) {
  %others = and i32 %flags, -245761
  %down = lshr i32 %flags, 2
  %low = and i32 %down, 49152
  %up = shl i32 %flags, 2
  %high = and i32 %up, 196608
  %half = or i32 %others, %low
  %all = or i32 %half, %high
  ret i32 %all
}
"""
# What open() and fcntl() are given behind their fixed arguments is one word, or nothing: then it is not looked at.
_WORD = """  %list = alloca [4 x i64], align 16
  call void @llvm.va_start.p0(ptr %list)
  %word.at = call ptr @__vis_va_arg_gp(ptr %list)
  %word = load i64, ptr %word.at, align 8
  call void @llvm.va_end.p0(ptr %list)
"""
_VARIABLE = declare("void", "llvm.va_start.p0", "ptr") | declare("void", "llvm.va_end.p0", "ptr")
_COPY = declare("void", "llvm.memcpy.p0.p0.i64", "ptr, ptr, i64, i1")
_STATS = {
    "stat": ("ptr %path", "ptr"),
    "lstat": ("ptr %path", "ptr"),
    "fstat": ("i32 signext %file", "ptr"),
    "fstatat": ("i32 signext %directory, ptr %path", "ptr, i32 signext %flags"),
}


def file_built_ins(arch: str) -> dict[str, BuiltIn]:
    """Return the built-ins for files for `arch`."""
    swaps = arch == "aarch64"
    found = {f"__vis_{name}": _stat(name, arch, before, after) for name, (before, after) in _STATS.items()}
    found["__vis_open"] = _open("open", "ptr %path", swaps)
    found["__vis_openat"] = _open("openat", "i32 signext %directory, ptr %path", swaps)
    found["__vis_fcntl"] = _fcntl(swaps)
    if arch == "x86_64":
        found["__vis_neutral_stat"] = BuiltIn(text=_NEUTRAL_STAT, externals=_COPY)
    if swaps:
        found["__vis_native_flags"] = BuiltIn(text=_NEUTRAL_FLAGS)
    return found


def _stat(name: str, arch: str, before: str, after: str) -> BuiltIn:
    buffer = after.replace("ptr", "ptr %out", 1)
    types = ", ".join(_type(item) for item in f"{before}, {after}".split(", "))
    head = f"\ndefine internal signext i32 @__vis_{name}({before}, {buffer}) uwtable {{\n"
    externals = declare("signext i32", name, types)
    if arch != "x86_64":
        call = f"  %result = call signext i32 @{name}({before}, {buffer})\n  ret i32 %result\n}}\n"
        return BuiltIn(text=head + call, externals=externals)
    raw = after.replace("ptr", "ptr %raw", 1)
    text = f"""{head}  %raw = alloca [144 x i8], align 16
  %result = call signext i32 @{name}({before}, {raw})
  %told = call signext i32 @__vis_neutral_stat(i32 signext %result, ptr %raw, ptr %out)
  ret i32 %told
}}
"""
    return BuiltIn(text=text, needs=("__vis_neutral_stat",), externals=externals)


def _open(name: str, before: str, swaps: bool) -> BuiltIn:
    types = ", ".join(_type(item) for item in before.split(", "))
    flags = "%native" if swaps else "%flags"
    swap = "  %native = call signext i32 @__vis_native_flags(i32 signext %flags)\n" if swaps else ""
    text = f"""
define internal signext i32 @__vis_{name}({before}, i32 signext %flags, ...) uwtable {{
{_WORD}  %mode = trunc i64 %word to i32
{swap}  %result = call signext i32 ({types}, i32, ...) @{name}({before}, i32 signext {flags}, i32 signext %mode)
  ret i32 %result
}}
""".replace(f"({types}, i32, ...)", f"({types.replace(' signext', '')}, i32, ...)")
    needs = ("__vis_va_arg_gp", "__vis_native_flags") if swaps else ("__vis_va_arg_gp",)
    return BuiltIn(
        text=text, needs=needs, externals=_VARIABLE | declare("signext i32", name, f"{types}, i32 signext, ...")
    )


def _fcntl(swaps: bool) -> BuiltIn:
    call = "%result = call signext i32 (i32, i32, ...) @fcntl(i32 signext %file, i32 signext %command, i64"
    if not swaps:
        body = f"  {call} %word)\n  ret i32 %result\n"
    else:
        # F_GETFL is 3, F_SETFL is 4; an error is negative.
        body = f"""  %sets = icmp eq i32 %command, 4
  %given = trunc i64 %word to i32
  %native = call signext i32 @__vis_native_flags(i32 signext %given)
  %wide = zext i32 %native to i64
  %argument = select i1 %sets, i64 %wide, i64 %word
  {call} %argument)
  %gets = icmp eq i32 %command, 3
  %worked = icmp sge i32 %result, 0
  %flags = and i1 %gets, %worked
  %neutral = call signext i32 @__vis_native_flags(i32 signext %result)
  %told = select i1 %flags, i32 %neutral, i32 %result
  ret i32 %told
"""
    text = f"""
define internal signext i32 @__vis_fcntl(i32 signext %file, i32 signext %command, ...) uwtable {{
{_WORD}{body}}}
"""
    needs = ("__vis_va_arg_gp", "__vis_native_flags") if swaps else ("__vis_va_arg_gp",)
    externals = _VARIABLE | declare("signext i32", "fcntl", "i32 signext, i32 signext, ...")
    return BuiltIn(text=text, needs=needs, externals=externals)


def _type(parameter: str) -> str:
    """Return a parameter without its name."""
    return " ".join(word for word in parameter.split() if not word.startswith("%"))
