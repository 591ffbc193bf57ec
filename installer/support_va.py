"""The readers of variable arguments, written in LLVM IR for each target's calling convention.

The layouts are those of the System V x86-64, AAPCS64 and RISC-V psABI documents; what each built-in means is
docs/spec/vis-1.md, section 4.

How VIS-1 passes a variable argument, by its size and alignment: up to 8 bytes in one word (``gp``, or ``fp`` for
float and double), 9 to 16 bytes in two words (``pair``), 16 bytes aligned to 16 as one i128 (``i128``) or one
fp128 (``f128``), more than 16 bytes as a pointer in one word.

Invariant: pure; every function here is internal.
"""

from __future__ import annotations

from collections.abc import Mapping

from visget.installer.support_parts import BuiltIn, declare
from visget.installer.systems import MACOS, WINDOWS

_WORD = "alwaysinline mustprogress nofree nosync nounwind willreturn uwtable"

# struct { u32 gp_offset, fp_offset; ptr overflow_arg_area, reg_save_area }
_X86_64 = {
    "__vis_va_arg_gp": f"""
define internal ptr @__vis_va_arg_gp(ptr %list) {_WORD} {{
  %offset = load i32, ptr %list, align 8
  %fits = icmp ult i32 %offset, 41
  br i1 %fits, label %register, label %memory
register:
  %save.at = getelementptr inbounds i8, ptr %list, i64 16
  %save = load ptr, ptr %save.at, align 8
  %wide = zext nneg i32 %offset to i64
  %saved = getelementptr inbounds i8, ptr %save, i64 %wide
  %next.offset = add i32 %offset, 8
  store i32 %next.offset, ptr %list, align 8
  ret ptr %saved
memory:
  %area.at = getelementptr inbounds i8, ptr %list, i64 8
  %area = load ptr, ptr %area.at, align 8
  %next = getelementptr inbounds i8, ptr %area, i64 8
  store ptr %next, ptr %area.at, align 8
  ret ptr %area
}}
""",
    "__vis_va_arg_fp": f"""
define internal ptr @__vis_va_arg_fp(ptr %list) {_WORD} {{
  %offset.at = getelementptr inbounds i8, ptr %list, i64 4
  %offset = load i32, ptr %offset.at, align 4
  %fits = icmp ult i32 %offset, 161
  br i1 %fits, label %register, label %memory
register:
  %save.at = getelementptr inbounds i8, ptr %list, i64 16
  %save = load ptr, ptr %save.at, align 8
  %wide = zext nneg i32 %offset to i64
  %saved = getelementptr inbounds i8, ptr %save, i64 %wide
  %next.offset = add i32 %offset, 16
  store i32 %next.offset, ptr %offset.at, align 4
  ret ptr %saved
memory:
  %area.at = getelementptr inbounds i8, ptr %list, i64 8
  %area = load ptr, ptr %area.at, align 8
  %next = getelementptr inbounds i8, ptr %area, i64 8
  store ptr %next, ptr %area.at, align 8
  ret ptr %area
}}
""",
    # The two words are two arguments of their own: one may sit in a register and the other in memory.
    "__vis_va_arg_pair": f"""
define internal ptr @__vis_va_arg_pair(ptr %list, ptr %buffer) {_WORD} {{
  %first.at = call ptr @__vis_va_arg_gp(ptr %list)
  %first = load i64, ptr %first.at, align 8
  store i64 %first, ptr %buffer, align 8
  %second.at = call ptr @__vis_va_arg_gp(ptr %list)
  %second = load i64, ptr %second.at, align 8
  %upper = getelementptr inbounds i8, ptr %buffer, i64 8
  store i64 %second, ptr %upper, align 8
  ret ptr %buffer
}}
""",
    # The register save area is aligned to 8 only for these, hence the copy.
    "__vis_va_arg_i128": f"""
define internal ptr @__vis_va_arg_i128(ptr %list, ptr %buffer) {_WORD} {{
  %offset = load i32, ptr %list, align 8
  %fits = icmp ult i32 %offset, 33
  br i1 %fits, label %register, label %memory
register:
  %save.at = getelementptr inbounds i8, ptr %list, i64 16
  %save = load ptr, ptr %save.at, align 8
  %wide = zext nneg i32 %offset to i64
  %saved = getelementptr inbounds i8, ptr %save, i64 %wide
  %value = load i128, ptr %saved, align 8
  store i128 %value, ptr %buffer, align 8
  %next.offset = add i32 %offset, 16
  store i32 %next.offset, ptr %list, align 8
  ret ptr %buffer
memory:
  %area.at = getelementptr inbounds i8, ptr %list, i64 8
  %area = load ptr, ptr %area.at, align 8
  %bumped = getelementptr i8, ptr %area, i64 15
  %aligned = call ptr @llvm.ptrmask.p0.i64(ptr %bumped, i64 -16)
  %next = getelementptr inbounds i8, ptr %aligned, i64 16
  store ptr %next, ptr %area.at, align 8
  ret ptr %aligned
}}
""",
    "__vis_va_arg_f128": f"""
define internal ptr @__vis_va_arg_f128(ptr %list) {_WORD} {{
  %offset.at = getelementptr inbounds i8, ptr %list, i64 4
  %offset = load i32, ptr %offset.at, align 4
  %fits = icmp ult i32 %offset, 161
  br i1 %fits, label %register, label %memory
register:
  %save.at = getelementptr inbounds i8, ptr %list, i64 16
  %save = load ptr, ptr %save.at, align 8
  %wide = zext nneg i32 %offset to i64
  %saved = getelementptr inbounds i8, ptr %save, i64 %wide
  %next.offset = add i32 %offset, 16
  store i32 %next.offset, ptr %offset.at, align 4
  ret ptr %saved
memory:
  %area.at = getelementptr inbounds i8, ptr %list, i64 8
  %area = load ptr, ptr %area.at, align 8
  %bumped = getelementptr i8, ptr %area, i64 15
  %aligned = call ptr @llvm.ptrmask.p0.i64(ptr %bumped, i64 -16)
  %next = getelementptr inbounds i8, ptr %aligned, i64 16
  store ptr %next, ptr %area.at, align 8
  ret ptr %aligned
}}
""",
}


def _aarch64(name: str, *, offset_at: int, top_at: int, step: int, size: int, align: int, second: str = "") -> str:
    """Return one reader of AAPCS64's struct { ptr stack, gr_top, vr_top; i32 gr_offs, vr_offs }.

    Offsets are negative while registers are left; an argument that does not fit uses up the rest of them.
    """
    start, round_offset = "%offset", ""
    area, round_area = "%stack", ""
    if align == 16:
        area = "%stack.aligned"
        round_area = f"""  %bumped = getelementptr i8, ptr %stack, i64 15
  {area} = call ptr @llvm.ptrmask.p0.i64(ptr %bumped, i64 -16)
"""
        if step == 8:
            start = "%even"
            round_offset = f"""  %up = add i32 %offset, 15
  {start} = and i32 %up, -16
"""
    consumed = size if step == 8 else step
    return f"""
define internal ptr @{name}(ptr %list{second}) {_WORD} {{
  %offset.at = getelementptr inbounds i8, ptr %list, i64 {offset_at}
  %offset = load i32, ptr %offset.at, align 4
  %some = icmp slt i32 %offset, 0
  br i1 %some, label %try, label %memory
try:
{round_offset}  %next.offset = add i32 {start}, {consumed}
  store i32 %next.offset, ptr %offset.at, align 4
  %fits = icmp slt i32 %next.offset, 1
  br i1 %fits, label %register, label %memory
register:
  %top.at = getelementptr inbounds i8, ptr %list, i64 {top_at}
  %top = load ptr, ptr %top.at, align 8
  %wide = sext i32 {start} to i64
  %saved = getelementptr inbounds i8, ptr %top, i64 %wide
  ret ptr %saved
memory:
  %stack = load ptr, ptr %list, align 8
{round_area}  %next = getelementptr inbounds i8, ptr {area}, i64 {size}
  store ptr %next, ptr %list, align 8
  ret ptr {area}
}}
"""


_BUFFER = ", ptr %buffer"
_AARCH64 = {
    "__vis_va_arg_gp": _aarch64("__vis_va_arg_gp", offset_at=24, top_at=8, step=8, size=8, align=8),
    "__vis_va_arg_fp": _aarch64("__vis_va_arg_fp", offset_at=28, top_at=16, step=16, size=8, align=8),
    "__vis_va_arg_pair": _aarch64(
        "__vis_va_arg_pair", offset_at=24, top_at=8, step=8, size=16, align=8, second=_BUFFER
    ),
    "__vis_va_arg_i128": _aarch64(
        "__vis_va_arg_i128", offset_at=24, top_at=8, step=8, size=16, align=16, second=_BUFFER
    ),
    "__vis_va_arg_f128": _aarch64("__vis_va_arg_f128", offset_at=28, top_at=16, step=16, size=16, align=16),
}


def _riscv64(name: str, *, size: int, align: int, second: str = "") -> str:
    """Return one reader of a va_list that is a pointer to the next argument."""
    area, round_area = "%stack", ""
    if align == 16:
        area = "%aligned"
        round_area = f"""  %bumped = getelementptr i8, ptr %stack, i64 15
  {area} = call ptr @llvm.ptrmask.p0.i64(ptr %bumped, i64 -16)
"""
    return f"""
define internal ptr @{name}(ptr %list{second}) {_WORD} {{
  %stack = load ptr, ptr %list, align 8
{round_area}  %next = getelementptr inbounds i8, ptr {area}, i64 {size}
  store ptr %next, ptr %list, align 8
  ret ptr {area}
}}
"""


_RISCV64 = {
    "__vis_va_arg_gp": _riscv64("__vis_va_arg_gp", size=8, align=8),
    "__vis_va_arg_fp": _riscv64("__vis_va_arg_fp", size=8, align=8),
    "__vis_va_arg_pair": _riscv64("__vis_va_arg_pair", size=16, align=8, second=_BUFFER),
    "__vis_va_arg_i128": _riscv64("__vis_va_arg_i128", size=16, align=16, second=_BUFFER),
    "__vis_va_arg_f128": _riscv64("__vis_va_arg_f128", size=16, align=16),
}

_TEXTS: Mapping[str, Mapping[str, str]] = {"x86_64": _X86_64, "aarch64": _AARCH64, "riscv64": _RISCV64}
_MASK = declare("ptr", "llvm.ptrmask.p0.i64", "ptr, i64")


def va_built_ins(arch: str, libc: str = "") -> dict[str, BuiltIn]:
    """Return the readers of variable arguments for `arch` with the C library `libc`."""
    texts = _TEXTS[arch]
    if libc in (MACOS, WINDOWS):
        # Apple puts every variable argument into memory, Windows has them put there by va_start: 8 bytes each. Where
        # 16-byte ones lie is another matter, and those two readers are left out.
        texts = {name: _RISCV64[name] for name in ("__vis_va_arg_gp", "__vis_va_arg_fp", "__vis_va_arg_pair")}
    return {
        name: BuiltIn(
            text=text,
            needs=("__vis_va_arg_gp",) if "@__vis_va_arg_gp(ptr %list)" in text and name != "__vis_va_arg_gp" else (),
            externals=_MASK if "@llvm.ptrmask" in text else {},
        )
        for name, text in texts.items()
    }
