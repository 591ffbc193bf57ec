"""The fixed facts of the profile VIS-1 (docs/spec/vis-1.md, sections 1 and 2)."""

from __future__ import annotations

PROFILE = "vis-1"

BITCODE_EPOCH = 22
"""The LLVM major version whose bitcode this visget writes; it reads this and all older epochs."""

TRIPLE = "riscv64-unknown-linux-musl"
"""The neutral triple. It names a data model and a lowering of calls, not the machine that will run the code."""

DATALAYOUT = "e-m:e-p:64:64-i64:64-i128:128-n32:64-S128"
"""The neutral data layout: little-endian, 64-bit pointers, natural alignment up to 16."""
