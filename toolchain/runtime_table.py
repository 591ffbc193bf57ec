"""The functions of the VIS run-time: in which file of toolchain/runtime each is, and its signature in LLVM IR.

Invariant: a function's declaration here is that of the neutral lowering of its C definition. What they compute is
docs/spec/front-end.md, section 8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine:
    """One function of the run-time."""

    name: str
    file: str
    """Its file in toolchain/runtime."""
    result: str
    """The type of its result, with attributes, such as ``signext i32``."""
    parameters: tuple[str, ...]
    """The types of its parameters, with attributes behind them, such as ``i32 signext``."""

    @property
    def declaration(self) -> str:
        """Its declaration."""
        return f"declare {self.result} @{self.name}({', '.join(self.parameters)})"

    def call(self, *values: str) -> str:
        """Return the text of a call with `values`."""
        arguments = ", ".join(f"{kind} {value}" for kind, value in zip(self.parameters, values, strict=True))
        return f"call {self.result} @{self.name}({arguments})"


_TABLE = """
int128.c        i128 (i128, i128)           udivti3 umodti3 divti3 modti3
int128.c        signext i32 (i128, i128)    mulovti
int128_float.c  double (i128)               floattidf floatuntidf
int128_float.c  float (i128)                floattisf floatuntisf
int128_float.c  i128 (double, i32 signext)  fixdfti fixunsdfti
powi.c          float (float, i32 signext)  powisf2
powi.c          double (double, i32 signext)  powidf2
complex.c       { double, double } (double, double, double, double)  muldc3 divdc3
complex.c       { float, float } (float, float, float, float)  mulsc3 divsc3
complex_float.c  { float, float } (float, float)  cacosf cacoshf casinf casinhf catanf catanhf ccosf ccoshf cexpf
complex_float.c  { float, float } (float, float)  clogf conjf cprojf csinf csinhf csqrtf ctanf ctanhf
complex_float.c  { float, float } (float, float, float, float)  cpowf
complex_float.c  float (float, float)       cabsf cargf cimagf crealf
float128.c      fp128 (fp128, fp128)        addtf3 subtf3 multf3 divtf3 fmodtf fmaxtf fmintf
float128.c      fp128 (fp128)               sqrttf trunctf floortf ceiltf roundeventf roundtf
float128.c      fp128 (fp128, i32 signext)  ldexptf
float128.c      signext i32 (fp128, fp128)  cmptf2
float128.c      zeroext i1 (fp128, i32 signext)  isfpclasstf
float128.c      fp128 (double)              extenddftf2
float128.c      double (fp128)              trunctfdf2
float128.c      float (fp128)               trunctfsf2
float128.c      zeroext i16 (fp128)         trunctfhf2 trunctfbf2
float128_math.c  signext i32 (fp128)        fpclassifytf signbittf ilogbtf
float128_math.c  fp128 (fp128)              logbtf modftf
float128_math.c  fp128 (fp128, fp128)       fdimtf nextaftertf remaindertf
float128_math.c  fp128 (fp128, fp128, fp128)  fmatf
float128_math.c  fp128 (fp128, i64)         scalblntf
float128_math.c  fp128 (fp128, ptr)         frexptf
float128_math.c  fp128 (ptr)                nantf
half.c          float (i16 zeroext)         extendhfsf2
half.c          zeroext i16 (float)         truncsfhf2 truncsfbf2
half.c          zeroext i16 (double)        truncdfhf2 truncdfbf2
float128.c      fp128 (i128)                floattitf floatuntitf
float128.c      i128 (fp128, i32 signext)   fixtfti fixunstfti
"""
_ROW = re.compile(r"(\S+) +(.*?) \((.*?)\) +(.*)")


def _rows() -> dict[str, Routine]:
    found = {}
    for row in _TABLE.strip().splitlines():
        match = _ROW.fullmatch(row)
        assert match is not None, row  # noqa: S101 - the table above is part of this file
        for short in match[4].split():
            name = f"vis_rt_{short}"
            found[name] = Routine(name=name, file=match[1], result=match[2], parameters=tuple(match[3].split(", ")))
    return found


ROUTINES: dict[str, Routine] = _rows()
"""The run-time, by name."""

_BY_SAME_NAME = "muldc3 divdc3 mulsc3 divsc3 udivti3 umodti3 divti3 modti3 powisf2 powidf2".split()  # noqa: SIM905
_LONG_DOUBLE = (  # noqa: SIM905
    "logb fdim fma nextafter remainder scalbln frexp nan ilogb fmod fmax fmin sqrt trunc floor ceil round roundeven "
    "ldexp"
).split()
BY_NAME = {
    **{f"__{name}": f"vis_rt_{name}" for name in _BY_SAME_NAME},
    **{f"{name}l": f"vis_rt_{name}tf" for name in _LONG_DOUBLE},
    **{name.removeprefix("vis_rt_"): name for name, routine in ROUTINES.items() if routine.file == "complex_float.c"},
    "scalbnl": "vis_rt_ldexptf", "rintl": "vis_rt_roundeventf", "nearbyintl": "vis_rt_roundeventf",
    "dreml": "vis_rt_remaindertf", "__fpclassifyl": "vis_rt_fpclassifytf", "__signbitl": "vis_rt_signbittf",
}  # fmt: skip
"""What clang or a package calls by name, and what stands for it."""
