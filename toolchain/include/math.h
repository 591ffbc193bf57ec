/* <math.h> without the constants that differ between processors and C libraries.
 *
 * math_errhandling is 0: the functions become instructions where the processor has them, so neither errno nor a
 * floating-point exception tells of a domain or range error. Test the arguments or the result.
 * ilogb(0) and ilogb(NAN) return FP_ILOGB0 and FP_ILOGBNAN, whose values differ on AArch64: a comparison with a
 * number fixed here would be wrong there. Test the argument instead, with x == 0 and isnan(x).
 */
#include_next <math.h>
#ifndef __VIS_MATH_H
#define __VIS_MATH_H
#undef math_errhandling
#define math_errhandling 0
#undef FP_ILOGB0
#undef FP_ILOGBNAN
#define __VIS_NO_ILOGB                                                                                         \
    __attribute__((__unavailable__("its value differs between machines: test x == 0 or isnan(x) before ilogb")))
#ifdef __cplusplus
extern "C" {
#endif
extern const int FP_ILOGB0 __VIS_NO_ILOGB;
extern const int FP_ILOGBNAN __VIS_NO_ILOGB;
#ifdef __cplusplus
}
#endif
#undef __VIS_NO_ILOGB
#endif
