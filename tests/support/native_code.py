"""Small native code for the tests of the installer: LLVM assembly in, object files out."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from visget.installer.gate import Promise
from visget.installer.linkers import zig_program
from visget.installer.target import Target, baseline

HOST_ARCH = llvm.get_default_triple().split("-")[0]
GENERIC = baseline(HOST_ARCH, "gnu")

SIMPLE = """
@calls = internal global i32 0
@table = internal constant [4 x i32] [i32 1, i32 2, i32 4, i32 8]

declare i64 @strlen(ptr)
declare double @pow(double, double)

define i32 @add(i32 %a, i32 %b) {
  %n = load i32, ptr @calls
  %m = add i32 %n, 1
  store i32 %m, ptr @calls
  %c = add i32 %a, %b
  ret i32 %c
}
define i32 @pick(i64 %i) {
  %p = getelementptr i32, ptr @table, i64 %i
  %v = load i32, ptr %p
  ret i32 %v
}
define double @power(double %x, double %y) {
  %r = call double @pow(double %x, double %y)
  ret double %r
}
define i64 @length(ptr %s) {
  %r = call i64 @strlen(ptr %s)
  ret i64 %r
}
"""
EXPORTS = frozenset(["add", "length", "pick", "power"])
IMPORTS = frozenset(["pow", "strlen"])


@functools.cache
def object_of(text: str, target: Target = GENERIC) -> bytes:
    """Compile LLVM assembly for `target`."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.flattened, opt=2, reloc="pic", codemodel="small"
    )
    module = llvm.parse_assembly(text, context=llvm.create_context())
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return bytes(machine.emit_object(module))


def promise(
    exports: frozenset[str] = EXPORTS,
    imports: frozenset[str] = IMPORTS,
    target: Target = GENERIC,
    constructors: bool = False,
) -> Promise:
    return Promise(
        label="sample 1.0", target=target, exports=exports, imports=imports, constructors=constructors
    )


def exported(text: str) -> frozenset[str]:
    """Return the functions that LLVM assembly defines for others."""
    return frozenset(re.findall(r"^define (?!internal)[^@]*@(\w+)", text, re.MULTILINE))


def zig() -> Path:
    program = zig_program()
    if program is None:
        pytest.skip("ziglang is not installed")
    return program


def qemu(arch: str) -> list[str]:
    """Return the command that runs programs for `arch`; skip the test where there is none."""
    if arch == HOST_ARCH:
        return []
    program = shutil.which(f"qemu-{arch}")
    if program is None:
        pytest.skip(f"qemu-{arch} (Debian: qemu-user) is not installed")
    return [program]


def cross_compile(platform: str, source: Path, output: Path, *more: str) -> None:
    """Compile a C program with the compiler inside ziglang; it builds a C library first, and keeps it in the home."""
    done = subprocess.run(
        [zig(), "cc", "-target", platform, source, "-o", output, *more],
        cwd=output.parent,
        env={"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "ZIG_LOCAL_CACHE_DIR": str(output.parent / "zig")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
