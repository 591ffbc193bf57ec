"""Which operations become calls of the run-time, what they compute then, and what stays as it is."""

from __future__ import annotations

import ctypes
import io
import itertools
import math
import random
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from neutral import native_object, neutral_ir

from visget.format.manifest import EPOCH
from visget.format.module import parse_text, text_of
from visget.toolchain import runtime_lowering
from visget.toolchain.clang import find_frontend
from visget.toolchain.runtime_library import with_runtime
from visget.toolchain.runtime_rewrite import lower_operations
from visget.toolchain.runtime_table import BY_NAME, ROUTINES

HEAD = 'target datalayout = "e-m:e-p:64:64-i64:64-i128:128-n32:64-S128"\ntarget triple = "riscv64-unknown-linux-musl"\n'


def body(*lines: str, more: str = "") -> str:
    inside = "".join(f"  {line}\n" for line in lines)
    return f"{HEAD}define void @f(fp128 %a, fp128 %b, i128 %c, double %d, i70 %e) {{\n{inside}  ret void\n}}\n{more}"


def lowered(*lines: str, more: str = "") -> list[str]:
    """The instructions that stand for `lines`; LLVM must accept the module before and after."""
    text = body(*lines, more=more)
    parse_text(text)
    done = lower_operations(text)
    parse_text(done.text)
    found = re.search(r"^define void @f.*?\{\n(.*?)  ret void", done.text, re.M | re.S)
    assert found is not None
    return [line.strip() for line in found[1].splitlines()]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("%r = fadd fp128 %a, %b", ["%r = call fp128 @vis_rt_addtf3(fp128 %a, fp128 %b)"]),
        (
            "%r = fdiv nnan contract fp128 0xL00000000000000003FFF000000000000, %b",
            ["%r = call fp128 @vis_rt_divtf3(fp128 0xL00000000000000003FFF000000000000, fp128 %b)"],
        ),
        ("%r = frem fp128 %a, %b", ["%r = call fp128 @vis_rt_fmodtf(fp128 %a, fp128 %b)"]),
        ("%r = udiv exact i128 %c, 10", ["%r = call i128 @vis_rt_udivti3(i128 %c, i128 10)"]),
        (
            "%r = srem i70 %e, -3",
            [
                "%vis.rt.0 = sext i70 %e to i128", "%vis.rt.1 = sext i70 -3 to i128",
                "%vis.rt.2 = call i128 @vis_rt_modti3(i128 %vis.rt.0, i128 %vis.rt.1)",
                "%r = trunc i128 %vis.rt.2 to i70",
            ],
        ),
        (
            "%r = fcmp fast une fp128 %a, %b",
            [
                "%vis.rt.0 = call signext i32 @vis_rt_cmptf2(fp128 %a, fp128 %b)", "%vis.rt.1 = and i32 %vis.rt.0, 13",
                "%r = icmp ne i32 %vis.rt.1, 0",
            ],
        ),
        ("%r = sitofp i128 %c to double", ["%r = call double @vis_rt_floattidf(i128 %c)"]),
        (
            "%r = uitofp nneg i70 %e to fp128",
            ["%vis.rt.0 = zext i70 %e to i128", "%r = call fp128 @vis_rt_floatuntitf(i128 %vis.rt.0)"],
        ),
        (
            "%r = fptoui fp128 %a to i8",
            [
                "%vis.rt.0 = call i128 @vis_rt_fixunstfti(fp128 %a, i32 signext 8)",
                "%r = trunc i128 %vis.rt.0 to i8",
            ],
        ),
        ("%r = fptosi double %d to i128", ["%r = call i128 @vis_rt_fixdfti(double %d, i32 signext 128)"]),
        ("%r = fpext double %d to fp128", ["%r = call fp128 @vis_rt_extenddftf2(double %d)"]),
        (
            "%r = fmul half 0xH3C00, 0xH4000",
            [
                "%vis.rt.2 = bitcast half 0xH3C00 to i16",
                "%vis.rt.0 = call float @vis_rt_extendhfsf2(i16 zeroext %vis.rt.2)",
                "%vis.rt.3 = bitcast half 0xH4000 to i16",
                "%vis.rt.1 = call float @vis_rt_extendhfsf2(i16 zeroext %vis.rt.3)",
                "%vis.rt.4 = fmul float %vis.rt.0, %vis.rt.1",
                "%vis.rt.5 = call zeroext i16 @vis_rt_truncsfhf2(float %vis.rt.4)",
                "%r = bitcast i16 %vis.rt.5 to half",
            ],
        ),
        (
            "%r = fptrunc double %d to bfloat",
            [
                "%vis.rt.0 = call zeroext i16 @vis_rt_truncdfbf2(double %d)",
                "%r = bitcast i16 %vis.rt.0 to bfloat",
            ],
        ),
        ("%r = fptrunc fp128 %a to float", ["%r = call float @vis_rt_trunctfsf2(fp128 %a)"]),
    ],
)  # fmt: skip
def test_instructions(line: str, wanted: list[str]) -> None:
    assert lowered(line) == wanted


@pytest.mark.parametrize(
    ("line", "declaration", "wanted"),
    [
        (
            "%r = tail call nnan double @llvm.powi.f64.i32(double %d, i32 noundef 7) #1",
            "declare double @llvm.powi.f64.i32(double, i32)\nattributes #1 = { nounwind }",
            ["%r = call double @vis_rt_powidf2(double %d, i32 signext 7)"],
        ),
        (
            "%r = call fp128 @llvm.rint.f128(fp128 nofpclass(nan) %a)", "declare fp128 @llvm.rint.f128(fp128)",
            ["%r = call fp128 @vis_rt_roundeventf(fp128 %a)"],
        ),
        (
            "%r = call i1 @llvm.is.fpclass.f128(fp128 %a, i32 3)", "declare i1 @llvm.is.fpclass.f128(fp128, i32)",
            ["%r = call zeroext i1 @vis_rt_isfpclasstf(fp128 %a, i32 signext 3)"],
        ),
        (
            "%r = call i64 @llvm.fptosi.sat.i64.f128(fp128 %a)", "declare i64 @llvm.fptosi.sat.i64.f128(fp128)",
            [
                "%vis.rt.0 = call i128 @vis_rt_fixtfti(fp128 %a, i32 signext 64)",
                "%r = trunc i128 %vis.rt.0 to i64",
            ],
        ),
        (
            "%r = call fp128 @llvm.fmuladd.f128(fp128 %a, fp128 %b, fp128 %a)",
            "declare fp128 @llvm.fmuladd.f128(fp128, fp128, fp128)",
            [
                "%vis.rt.0 = call fp128 @vis_rt_multf3(fp128 %a, fp128 %b)",
                "%r = call fp128 @vis_rt_addtf3(fp128 %vis.rt.0, fp128 %a)",
            ],
        ),
    ],
)  # fmt: skip
def test_intrinsics(line: str, declaration: str, wanted: list[str]) -> None:
    assert lowered(line, more=declaration) == wanted


@pytest.mark.parametrize(
    "line",
    [
        "%r = fneg fp128 %a",
        "%r = select i1 true, fp128 %a, fp128 %b",
        "%r = bitcast fp128 %a to i128",
        "%r = mul i128 %c, %c",
        "%r = add i70 %e, 1",
        "%r = sitofp i64 1 to double",
        "%r = fptosi double %d to i64",
        "%r = fpext float 1.0 to double",
        "%r = fcmp olt double %d, %d",
        "%r = udiv i64 7, 3",
        "%r = fadd <2 x fp128> zeroinitializer, zeroinitializer",
        "%r = udiv <2 x i128> <i128 1, i128 2>, <i128 3, i128 4>",
        "%r = sitofp <2 x i128> zeroinitializer to <2 x double>",
        "%r = fneg half 0xH3C00",
        "%r = fadd <4 x half> zeroinitializer, zeroinitializer",
    ],
)
def test_what_stays(line: str) -> None:
    """Vectors stay too; the rules of VIS-1 refuse them."""
    assert lowered(line) == [line]
    assert lower_operations(body(line)).routines == frozenset()


def test_no_constant_expression_can_need_the_run_time() -> None:
    """LLVM has none for these operations; if one comes back, the rewriting has to learn it."""
    for constant in ("fadd (fp128 0xL0, fp128 0xL0)", "udiv (i128 1, i128 2)", "sitofp (i128 1 to double)"):
        with pytest.raises(Exception, match=r"expected|supported"):
            parse_text(f"{HEAD}@g = global i128 {constant}\n")


def test_debug_locations_stay_and_other_marks_go() -> None:
    text = body("%r = fcmp olt fp128 %a, %b, !dbg !9, !fpmath !8")
    lines = [line for line in lower_operations(text).text.splitlines() if "%vis" in line or "%r" in line]
    assert len(lines) == 3
    assert all(line.endswith(", !dbg !9") for line in lines)


def test_quoted_names_and_numbers_that_exist() -> None:
    text = body(
        '%"odd, name" = fadd fp128 %a, %b',
        "%vis.rt.4 = fneg fp128 %a",
        '%x = fcmp oeq fp128 %"odd, name", %vis.rt.4',
    )
    parse_text(text)
    done = lower_operations(text).text
    parse_text(done)
    assert '%"odd, name" = call fp128 @vis_rt_addtf3(fp128 %a, fp128 %b)' in done
    assert '%vis.rt.5 = call signext i32 @vis_rt_cmptf2(fp128 %"odd, name", fp128 %vis.rt.4)' in done


def test_what_is_called_by_name() -> None:
    call = "%r = call { double, double } @__muldc3(double %d, double %d, double %d, double %d)"
    declaration = "declare { double, double } @__muldc3(double, double, double, double)\n"
    string = '@s = constant [9 x i8] c"@__muldc3"\n'
    done = lower_operations(body(call, more=declaration + string))
    assert done.routines == {"vis_rt_muldc3"}
    assert done.text.count("@vis_rt_muldc3(") == 2
    assert 'c"@__muldc3"' in done.text
    own = "define { double, double } @__muldc3(double, double, double, double) {\n  ret { double, double } poison\n}\n"
    assert "@vis_rt_" not in lower_operations(body(call, more=own)).text


BITS = """
union u { long double d; unsigned __int128 u; struct { unsigned long low, high; } w; };
#define SIGN ((unsigned __int128)1 << 127)
#define INFINITE ((unsigned __int128)0x7fff << 112)
static int infinite(long double x) { union u v = {x}; return (v.u & ~SIGN) == INFINITE; }
static int plus_infinite(long double x) { union u v = {x}; return v.u == INFINITE; }
static int zero(long double x) { union u v = {x}; return v.u << 1 == 0; }
static int finite(long double x) { union u v = {x}; return (v.u & INFINITE) != INFINITE; }
static int small(long double x) { union u v = {x}; return (v.u & INFINITE) == 0; }
static int negative(long double x) { union u v = {x}; return v.u >> 127; }
__attribute__((noinline)) static int all(long double x)
{ return infinite(x) + plus_infinite(x) * 2 + zero(x) * 4 + finite(x) * 8 + small(x) * 16 + negative(x) * 32; }
int f(long low, long high) { union u x; x.w.low = low; x.w.high = high; return all(x.d); }
"""


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_bits_of_a_long_double_are_bits(arch: str, tmp_path: Path) -> None:
    """LLVM sees classes of numbers in them, and tests a class by a comparison, which no machine has for binary128."""
    text = neutral_ir(BITS, tmp_path)
    found = with_runtime(text, find_frontend(None, epoch=EPOCH))
    symbols = ELFFile(io.BytesIO(native_object(found, arch))).get_section_by_name(".symtab")
    assert not [symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name]


def test_who_handles_no_long_doubles_is_not_held_back() -> None:
    other = "define i32 @g(i32 %x) #0 {\n  ret i32 %x\n}\nattributes #0 = { nounwind }\n"
    text = lower_operations(body("%r = fneg fp128 %a", more=other)).text
    assert "double %d, i70 %e) noimplicitfloat {" in text
    assert "define i32 @g(i32 %x) #0 {" in text
    printed = text_of(parse_text(text))
    assert lower_operations(printed).text == printed


def test_nothing_changes_where_nothing_needs_to() -> None:
    text = body("%r = add i128 %c, 1").replace("fp128 %a, fp128 %b, ", "")
    assert with_runtime(text, find_frontend(None, epoch=EPOCH)) == text


def test_twice_is_once() -> None:
    frontend = find_frontend(None, epoch=EPOCH)
    text = text_of(parse_text(body("%r = fadd fp128 %a, %b", "%s = udiv i128 %c, 3")))
    once = with_runtime(text, frontend)
    assert with_runtime(once, frontend) == once
    assert not re.search(r"^(?:declare|define (?!internal)) ?[^\n]*@vis_rt_", once, re.M)
    more = with_runtime(once.replace("ret void", "%t = fdiv fp128 %r, %b\n  ret void", 1), frontend)
    assert "@vis_rt_divtf3(fp128 %r, fp128 %b)" in more
    assert not re.search(r"^(?:declare|define (?!internal)) ?[^\n]*@vis_rt_", more, re.M)


PREDICATES = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()  # noqa: SIM905
FLOATS = (0.0, -0.0, 1.0, -1.0, 1.5, -2.75, 1e300, -1e-300, math.inf, -math.inf, math.nan)
WIDTHS = (65, 70, 100, 127, 128)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Every operation as a function of this machine."""
    lines = [HEAD]
    for name in PREDICATES:
        lines.append(
            f"define i32 @fcmp_{name}(double %x, double %y) {{\n  %a = fpext double %x to fp128\n"
            f"  %b = fpext double %y to fp128\n  %r = fcmp {name} fp128 %a, %b\n  %s = zext i1 %r to i32\n"
            "  ret i32 %s\n}"
        )
    for width, name in itertools.product(WIDTHS, ("udiv", "sdiv", "urem", "srem")):
        extend = "sext" if name[0] == "s" else "zext"
        kind = f"i{width}"
        cut = "" if width == 128 else f"  %a = trunc i128 %x to {kind}\n  %b = trunc i128 %y to {kind}\n"
        a, b = ("%x", "%y") if width == 128 else ("%a", "%b")
        wide = "%r" if width == 128 else "%w"
        lines.append(
            f"define void @{name}_{width}(ptr %p, ptr %q) {{\n  %x = load i128, ptr %p\n  %y = load i128, ptr %q\n{cut}"
            f"  %r = {name} {kind} {a}, {b}\n" + ("" if width == 128 else f"  %w = {extend} {kind} %r to i128\n")
            + f"  store i128 {wide}, ptr %p\n  ret void\n}}"
        )
    for width, (sign, name) in itertools.product((8, 63, 64, 65, 99, 128), (("s", "fptosi"), ("u", "fptoui"))):
        extend = "sext" if sign == "s" else "zext"
        widened = "" if width == 128 else f"  %w = {extend} i{width} %r to i128\n"
        lines.append(
            f"define void @{name}_{width}(double %x, ptr %p) {{\n  %a = fpext double %x to fp128\n"
            f"  %r = call i{width} @llvm.{name}.sat.i{width}.f128(fp128 %a)\n{widened}"
            f"  store i128 {'%r' if width == 128 else '%w'}, ptr %p\n  ret void\n}}\n"
            f"declare i{width} @llvm.{name}.sat.i{width}.f128(fp128)"
        )
    lines.append(
        "define i32 @overflow(ptr %p, ptr %q) {\n  %x = load i128, ptr %p\n  %y = load i128, ptr %q\n"
        "  %r = call { i128, i1 } @llvm.smul.with.overflow.i128(i128 %x, i128 %y)\n"
        "  %v = extractvalue { i128, i1 } %r, 0\n  %o = extractvalue { i128, i1 } %r, 1\n  store i128 %v, ptr %p\n"
        "  %s = zext i1 %o to i32\n  ret i32 %s\n}\n"
        "declare { i128, i1 } @llvm.smul.with.overflow.i128(i128, i128)"
    )
    directory = tmp_path_factory.mktemp("compiled")
    text = with_runtime("\n".join(lines) + "\n", find_frontend(None, epoch=EPOCH))
    (directory / "x.o").write_bytes(native_object(text_of(parse_text(text)), "x86_64"))
    subprocess.run(["gcc", "-shared", "-nostdlib", "x.o", "-o", "x.so", "-Wl,-z,defs"], cwd=directory, check=True)
    return ctypes.CDLL(str(directory / "x.so"))


class Wide(ctypes.Structure):
    """A 128-bit integer in memory."""

    _fields_ = (("low", ctypes.c_uint64), ("high", ctypes.c_uint64))
    _align_ = 16


def wide(value: int) -> Wide:
    return Wide(value & (2**64 - 1), value >> 64 & (2**64 - 1))


def number(value: Wide, *, signed: bool) -> int:
    whole = value.high << 64 | value.low
    return whole - 2**128 if signed and whole >> 127 else whole


@pytest.mark.parametrize("name", PREDICATES)
def test_comparisons(compiled: ctypes.CDLL, name: str) -> None:
    function = compiled[f"fcmp_{name}"]
    function.argtypes = [ctypes.c_double, ctypes.c_double]
    for x, y in itertools.product(FLOATS, FLOATS):
        unordered = math.isnan(x) or math.isnan(y)
        ordered = {"eq": x == y, "gt": x > y, "ge": x >= y, "lt": x < y, "le": x <= y, "ne": x not in (y,)}
        wanted = {
            "false": False, "true": True, "ord": not unordered, "uno": unordered,
            **{f"o{kind}": holds and not unordered for kind, holds in ordered.items()},
            **{f"u{kind}": holds or unordered for kind, holds in ordered.items()},
        }[name]  # fmt: skip
        assert function(x, y) == wanted, (x, y)


def _numbers(width: int, *, signed: bool) -> list[int]:
    chance = random.Random(width)
    found = {1, 2, 3, 10, 2**31, 2**32 - 1, 2**63, 2**64 - 1, 2**64, 2 ** (width - 1) - 1}
    found |= {chance.getrandbits(chance.randrange(1, width)) | 1 for _ in range(40)}
    if signed:
        return [value for value in found if value < 2 ** (width - 1)] + [-value for value in found]
    return [value for value in found if value < 2**width] + [2**width - 1]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["udiv", "sdiv", "urem", "srem"])
def test_divisions_of_every_width(compiled: ctypes.CDLL, name: str, width: int) -> None:
    signed = name[0] == "s"
    numbers = _numbers(width, signed=signed)
    for x, y in itertools.product([*numbers, 0], numbers):
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        if signed and quotient == 2 ** (width - 1):
            continue
        a, b = wide(x), wide(y)
        compiled[f"{name}_{width}"](ctypes.byref(a), ctypes.byref(b))
        assert number(a, signed=signed) == (quotient if name.endswith("div") else x - quotient * y), (x, y)


@pytest.mark.parametrize("width", [8, 63, 64, 65, 99, 128])
@pytest.mark.parametrize("name", ["fptosi", "fptoui"])
def test_saturation_at_every_width(compiled: ctypes.CDLL, name: str, width: int) -> None:
    signed = name == "fptosi"
    function = compiled[f"{name}_{width}"]
    function.argtypes = [ctypes.c_double, ctypes.c_void_p]
    least, most = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    factors = (1.0, 0.5, 1.0 - 2**-53, 1.0 + 2**-52, 4.0)
    edges = [float(edge) * factor for edge in (least, most, 1) for factor in factors]
    for x in [*FLOATS, *edges, 127.9, 128.0, 255.99, -128.5, -129.0]:
        out = wide(0)
        function(x, ctypes.addressof(out))
        wanted = 0 if math.isnan(x) else max(least, min(most, int(max(-1e300, min(1e300, x)))))
        assert number(out, signed=signed) == wanted, x


def test_products_that_do_not_fit(compiled: ctypes.CDLL) -> None:
    numbers = [*_numbers(127, signed=True), 2**126, -(2**127), 2**127 - 1, -1, 0]
    for x, y in itertools.product(numbers, numbers):
        a, b = wide(x), wide(y)
        told = compiled.overflow(ctypes.byref(a), ctypes.byref(b))
        assert told == (not -(2**127) <= x * y < 2**127), (x, y)
        assert (number(a, signed=True) - x * y) % 2**128 == 0


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Operations on both formats of 16 bits, which go in and out as integers."""
    lines = [HEAD]

    def define(name: str, kind: str, result: str, parameters: str, *inside: str) -> None:
        body = "".join(f"  {line}\n" for line in inside)
        back = "%r"
        if result == kind:
            body += f"  %o = bitcast {kind} %r to i16\n"
            back, result = "%o", "i16"
        lines.append(f"define {result} @{name}_{kind}({parameters}) {{\n{body}  ret {result} {back}\n}}")

    for kind, code in (("half", "f16"), ("bfloat", "bf16")):
        x, y = f"%x = bitcast i16 %a to {kind}", f"%y = bitcast i16 %b to {kind}"
        two = "i16 %a, i16 %b"
        for operation in ("fadd", "fsub", "fmul", "fdiv"):
            define(operation, kind, kind, two, x, y, f"%r = {operation} {kind} %x, %y")
        define("sqrt", kind, kind, "i16 %a", x, f"%r = call {kind} @llvm.sqrt.{code}({kind} %x)")
        define("copysign", kind, kind, two, x, y, f"%r = call {kind} @llvm.copysign.{code}({kind} %x, {kind} %y)")
        define("olt", kind, "i32", two, x, y, f"%c = fcmp olt {kind} %x, %y", "%r = zext i1 %c to i32")
        define("from_int", kind, kind, "i32 %a", f"%r = sitofp i32 %a to {kind}")
        define("to_int", kind, "i32", "i16 %a", x, f"%r = call i32 @llvm.fptosi.sat.i32.{code}({kind} %x)")
        define("plain", kind, "i32", "i16 %a", x, f"%r = fptosi {kind} %x to i32")
        define("widen", kind, "double", "i16 %a", x, f"%r = fpext {kind} %x to double")
        define("narrow", kind, kind, "double %a", f"%r = fptrunc double %a to {kind}")
        lines.append(
            f"declare {kind} @llvm.sqrt.{code}({kind})\ndeclare {kind} @llvm.copysign.{code}({kind}, {kind})\n"
            f"declare i32 @llvm.fptosi.sat.i32.{code}({kind})"
        )
    directory = tmp_path_factory.mktemp("small")
    text = with_runtime("\n".join(lines) + "\n", find_frontend(None, epoch=EPOCH))
    for arch in ("x86_64", "aarch64", "riscv64"):
        (directory / f"{arch}.o").write_bytes(native_object(text_of(parse_text(text)), arch))
    command = ["gcc", "-shared", "-nostdlib", "x86_64.o", "-o", "x.so", "-Wl,-z,defs"]
    subprocess.run(command, cwd=directory, check=True)
    return ctypes.CDLL(str(directory / "x.so"))


def bits_of(value: float, kind: str) -> int:
    """The nearest number of a format, as its bits."""
    with np.errstate(all="ignore"):
        if kind == "half":
            return int(np.float64(value).astype(np.float16).view(np.uint16))
        whole = int(np.float64(value).astype(np.float32).view(np.uint32))
    if math.isnan(value):
        return whole >> 16 | 0x40
    return (whole + 0x7FFF + (whole >> 16 & 1)) >> 16


def value_of(bits: int, kind: str) -> float:
    if kind == "half":
        return float(np.uint16(bits).view(np.float16))
    return float(np.uint32(bits << 16).view(np.float32))


@pytest.mark.parametrize("kind", ["half", "bfloat"])
def test_numbers_of_16_bits(small: ctypes.CDLL, kind: str) -> None:
    chance = random.Random(kind)
    corners = [0, 1, 0x8000, 0x8001, 0x3C00, 0x3F80, 0x7BFF, 0x7C00, 0xFC00, 0x7F80, 0xFF80, 0x7FC0, 0x7E00, 0x0400]
    operations = {"fadd": float.__add__, "fsub": float.__sub__, "fmul": float.__mul__, "fdiv": float.__truediv__}
    for round_number in range(4000):
        a = chance.choice(corners) if round_number % 5 == 0 else chance.getrandbits(16)
        b = chance.choice(corners) if round_number % 7 == 0 else chance.getrandbits(16)
        x, y = value_of(a, kind), value_of(b, kind)
        for name, operation in operations.items():
            got = getattr(small, f"{name}_{kind}")(a, b) & 0xFFFF
            if name == "fdiv" and y == 0:
                wanted = math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1, y)
            else:
                wanted = operation(x, y)
            if math.isnan(wanted):
                assert math.isnan(value_of(got, kind)), (name, a, b)
            else:
                assert got == bits_of(wanted, kind), (name, a, b)
        root = getattr(small, f"sqrt_{kind}")(a) & 0xFFFF
        assert math.isnan(value_of(root, kind)) if x < 0 or math.isnan(x) else root == bits_of(math.sqrt(x), kind)
        if not math.isnan(x):
            assert getattr(small, f"copysign_{kind}")(a, b) & 0xFFFF == (a & 0x7FFF) | (b & 0x8000)
        assert getattr(small, f"olt_{kind}")(a, b) == (x < y)
        whole = 0 if math.isnan(x) else max(-(2**31), min(2**31 - 1, int(max(-1e30, min(1e30, x)))))
        assert getattr(small, f"to_int_{kind}")(a) == whole, a
        if abs(x) < 2**31:
            assert getattr(small, f"plain_{kind}")(a) == int(x)
        number = chance.getrandbits(31) >> chance.randrange(31)
        assert getattr(small, f"from_int_{kind}")(number) & 0xFFFF == bits_of(float(number), kind)
        widen, narrow = getattr(small, f"widen_{kind}"), getattr(small, f"narrow_{kind}")
        widen.restype, narrow.argtypes = ctypes.c_double, [ctypes.c_double]
        assert widen(a) == x or math.isnan(x)
        if not math.isnan(x):
            assert narrow(x) & 0xFFFF == a


def test_every_routine_is_reached() -> None:
    """What no operation needs should not be there."""
    source = Path(runtime_lowering.__file__).read_text()
    composed = {f"trunc{one}{two}2" for one in ("sf", "df", "tf") for two in ("hf", "bf")}
    for name in ROUTINES.keys() - set(BY_NAME.values()):
        short = name.removeprefix("vis_rt_")
        assert short in composed or f'"{short}"' in source or f"'{short}'" in source, name
