"""Damaged bitcode, the same for the same number: what a hostile author or a bad disk may send."""

from __future__ import annotations

import functools
import random

from visget.format.module import bitcode_of, parse_text
from visget.format.profile import DATALAYOUT, TRIPLE

EXPORTS = ("rich_parse", "rich_sum")
IMPORTS = ("memcmp", "pow")

# A bit of everything that the reader knows: types, constants, metadata, attributes, all kinds of instructions.
RICH = f"""
source_filename = "vis"
target datalayout = "{DATALAYOUT}"
target triple = "{TRIPLE}"

%pair = type {{ i32, [3 x double], ptr }}
%node = type {{ ptr, %pair, i8 }}

@table = internal unnamed_addr constant [5 x i32] [i32 1, i32 -2, i32 300, i32 undef, i32 2147483647], align 16
@text = private unnamed_addr constant [6 x i8] c"hello\\00"
@state = internal global %node {{ ptr @table, %pair {{ i32 7, [3 x double] [double 1.0, double 0x7FF8000000000000,
  double -0.0], ptr null }}, i8 1 }}, align 8
@jump = internal constant [2 x ptr] [ptr @twice, ptr @half]

declare signext i32 @memcmp(ptr captures(none), ptr captures(none), i64) #1
declare double @pow(double, double) #1
declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly, ptr noalias readonly, i64, i1 immarg)
declare i32 @llvm.ctpop.i32(i32)
declare {{ i32, i1 }} @llvm.sadd.with.overflow.i32(i32, i32)

define internal signext i32 @twice(i32 signext %x) #0 {{
  %y = shl nsw i32 %x, 1
  ret i32 %y
}}

define internal signext i32 @half(i32 signext %x) #0 {{
  %y = sdiv exact i32 %x, 2
  ret i32 %y
}}

define signext i32 @rich_parse(ptr noundef %s, i64 noundef %n) #0 {{
entry:
  %room = alloca [64 x i8], align 16
  %short = icmp ult i64 %n, 64
  %len = select i1 %short, i64 %n, i64 64
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %room, ptr align 1 %s, i64 %len, i1 false)
  %same = call signext i32 @memcmp(ptr %room, ptr @text, i64 5)
  %first = load i8, ptr %room, align 16, !tbaa !3
  switch i8 %first, label %other [
    i8 43, label %plus
    i8 45, label %minus
    i8 48, label %other
  ]
plus:
  br label %other
minus:
  %neg = sub nsw i32 0, %same
  br label %other
other:
  %v = phi i32 [ %same, %plus ], [ %neg, %minus ], [ 0, %entry ], [ 0, %entry ]
  %index = and i32 %v, 1
  %wide = zext i32 %index to i64
  %slot = getelementptr inbounds [2 x ptr], ptr @jump, i64 0, i64 %wide
  %function = load ptr, ptr %slot, align 8
  %r = tail call signext i32 %function(i32 signext %v)
  %bits = call i32 @llvm.ctpop.i32(i32 %r)
  %both = call {{ i32, i1 }} @llvm.sadd.with.overflow.i32(i32 %bits, i32 %v)
  %sum = extractvalue {{ i32, i1 }} %both, 0
  %over = extractvalue {{ i32, i1 }} %both, 1
  br i1 %over, label %never, label %end, !prof !6
never:
  unreachable
end:
  %old = atomicrmw add ptr @state, i64 1 seq_cst, align 8
  %frozen = freeze i32 %sum
  ret i32 %frozen
}}

define double @rich_sum(ptr noundef %values, i64 noundef %n) #0 {{
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %acc = phi <2 x double> [ zeroinitializer, %0 ], [ %more, %loop ]
  %place = getelementptr inbounds <2 x double>, ptr %values, i64 %i
  %pair = load <2 x double>, ptr %place, align 8
  %swapped = shufflevector <2 x double> %pair, <2 x double> poison, <2 x i32> <i32 1, i32 0>
  %more = fadd <2 x double> %acc, %swapped
  %next = add nuw nsw i64 %i, 1
  %last = icmp eq i64 %next, %n
  br i1 %last, label %out, label %loop, !llvm.loop !5
out:
  %x = extractelement <2 x double> %more, i32 0
  %y = extractelement <2 x double> %more, i64 1
  %z = call double @pow(double %x, double %y)
  br label %done
done:
  %result = phi double [ 0.000000e+00, %0 ], [ %z, %out ]
  ret double %result
}}

attributes #0 = {{ nounwind "vis" }}
attributes #1 = {{ nounwind }}

!llvm.module.flags = !{{!0}}
!0 = !{{i32 8, !"PIC Level", i32 2}}
!1 = !{{!"root"}}
!2 = !{{!"char", !1, i64 0}}
!3 = !{{!2, !2, i64 0}}
!4 = !{{!"llvm.loop.mustprogress"}}
!5 = distinct !{{!5, !4}}
!6 = !{{!"branch_weights", i32 1, i32 2000}}
"""


@functools.cache
def seed() -> bytes:
    """Return the sound module."""
    return bitcode_of(parse_text(RICH))


def mutant(number: int) -> bytes:
    """Return the damaged module `number`."""
    dice = random.Random(number)
    data = bytearray(seed())
    for _ in range(dice.choice((1, 1, 2, 4, 8))):
        kind = dice.random()
        if kind < 0.6:
            bit = dice.randrange(len(data) * 8)
            data[bit // 8] ^= 1 << bit % 8
        elif kind < 0.8:
            data[dice.randrange(len(data))] = dice.randrange(256)
        elif kind < 0.9:
            start = dice.randrange(len(data) // 4) * 4
            data[start : start + 4] = dice.choice((b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f", b"\0\0\0\x80"))
        elif kind < 0.95:
            start = dice.randrange(len(data) // 4) * 4
            source = dice.randrange(len(data) // 4) * 4
            data[start : start + 16] = data[source : source + 16]
        else:
            del data[dice.randrange(8, len(data)) & ~3 :]
            data += bytes(16 - len(data)) if len(data) < 16 else b""
    return bytes(data)
