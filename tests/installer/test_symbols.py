"""What the code generator calls of its own accord is in the table, for everything that VIS-1 lets a module say."""

from __future__ import annotations

import io

import pytest
from elftools.elf.elffile import ELFFile
from neutral import native_object
from viscases import module_text

from visget.format.verifier import check_module
from visget.installer.symbols import COMPILER_MADE

ONE = """acos asin atan canonicalize
    ceil cos cosh exp exp10 exp2 fabs floor log log10 log2 nearbyint rint round sin sinh sqrt
    tan tanh trunc""".split()  # noqa: SIM905
TWO = "atan2 copysign maximum maximumnum maxnum minimum minimumnum minnum pow".split()  # noqa: SIM905
THREE = ["fma", "fmuladd"]
TYPES = {"f32": "float", "f64": "double", "v4f32": "<4 x float>", "v3f64": "<3 x double>"}
WIDE = """
define i64 @m(i64 %a, i64 %b, i128 %c, i128 %d, i32 %s, ptr %p) {
  %x = mul i128 %c, %d
  %sh = zext i32 %s to i128
  %y = shl i128 %x, %sh
  %z = ashr i128 %y, %sh
  %w = lshr i128 %z, %sh
  %o = call {i128, i1} @llvm.umul.with.overflow.i128(i128 %w, i128 %c)
  %q = extractvalue {i128, i1} %o, 0
  %k = call i128 @llvm.ctpop.i128(i128 %q)
  %l = call i128 @llvm.ctlz.i128(i128 %q, i1 false)
  %e = add i128 %k, %l
  store i128 %e, ptr %p
  ret i64 0
}
define half @h(half %x, half %y, i1 %c) {
  %n = fneg half %x
  %s = select i1 %c, half %n, half %y
  ret half %s
}
define void @qq(ptr %p, i1 %c) {
  %x = load fp128, ptr %p
  %n = fneg fp128 %x
  %a = call fp128 @llvm.fabs.f128(fp128 %n)
  %b = call fp128 @llvm.copysign.f128(fp128 %a, fp128 %n)
  %s = select i1 %c, fp128 %b, fp128 %x
  store fp128 %s, ptr %p
  ret void
}
declare {i128, i1} @llvm.umul.with.overflow.i128(i128, i128)
declare i128 @llvm.ctpop.i128(i128)
declare i128 @llvm.ctlz.i128(i128, i1)
declare fp128 @llvm.fabs.f128(fp128)
declare fp128 @llvm.copysign.f128(fp128, fp128)
"""


def _mathematics() -> str:
    lines = []
    for suffix, kind in TYPES.items():
        for names, count in ((ONE, 1), (TWO, 2), (THREE, 3)):
            arguments = ", ".join(f"{kind} %a{n}" for n in range(count))
            for name in names:
                lines += [
                    f"define internal {kind} @{name}_{suffix}({arguments}) {{",
                    f"  %r = call {kind} @llvm.{name}.{suffix}({arguments})\n  ret {kind} %r\n}}",
                    f"declare {kind} @llvm.{name}.{suffix}({', '.join([kind] * count)})",
                ]
    return "\n".join(lines)


@pytest.mark.parametrize("level", [1, 3])
@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_every_call_that_the_code_generator_makes_is_known(arch: str, level: int) -> None:
    text = module_text(f"{_mathematics()}\n{WIDE}")
    assert {finding.rule for finding in check_module(text, exports=[])} <= {"VIS-209", "VIS-314"}
    content = native_object(text.replace("define internal ", "define "), arch, level=level)
    symbols = ELFFile(io.BytesIO(content)).get_section_by_name(".symtab")
    undefined = {symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"} - {""}
    assert "sinf" in undefined and "pow" in undefined
    assert undefined <= COMPILER_MADE
