/* <fenv.h> of an implementation without access to the floating-point environment, as ISO C allows.
 *
 * The numbers of the rounding modes and exceptions, and the size of fenv_t, differ on every processor, and an
 * optimiser moves operations over the calls anyway: code that works by luck on one machine answers wrongly on
 * another. So only round-to-nearest exists, FE_ALL_EXCEPT is 0, and code that asks `#ifdef FE_UPWARD` takes its
 * portable branch. Naming one of the missing constants is a compile error that says so.
 */
#ifndef __VIS_FENV_H
#define __VIS_FENV_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int __mode;
} fenv_t;
typedef unsigned int fexcept_t;

#define FE_TONEAREST 0
#define FE_ALL_EXCEPT 0
#define FE_DFL_ENV ((const fenv_t *)0)

#define __VIS_NO_FENV                                                                                       \
    __attribute__((__unavailable__("VIS-1 code rounds to nearest and cannot see floating-point exceptions: "    \
                                   "test for them with #ifdef, or compute the rounded result directly")))
extern const int FE_DOWNWARD __VIS_NO_FENV;
extern const int FE_UPWARD __VIS_NO_FENV;
extern const int FE_TOWARDZERO __VIS_NO_FENV;
extern const int FE_DIVBYZERO __VIS_NO_FENV;
extern const int FE_INEXACT __VIS_NO_FENV;
extern const int FE_INVALID __VIS_NO_FENV;
extern const int FE_OVERFLOW __VIS_NO_FENV;
extern const int FE_UNDERFLOW __VIS_NO_FENV;
#undef __VIS_NO_FENV

static __inline int fegetround(void) { return FE_TONEAREST; }
static __inline int fesetround(int __mode) { return __mode != FE_TONEAREST; }
static __inline int feclearexcept(int __which) { return __which != 0; }
static __inline int feraiseexcept(int __which) { return __which != 0; }
static __inline int fetestexcept(int __which) { return (void)__which, 0; }
static __inline int fegetexceptflag(fexcept_t *__flags, int __which) { return *__flags = 0, __which != 0; }
static __inline int fesetexceptflag(const fexcept_t *__flags, int __which) { return (void)__flags, __which != 0; }
static __inline int fegetenv(fenv_t *__env) { return __env->__mode = FE_TONEAREST, 0; }
static __inline int feholdexcept(fenv_t *__env) { return __env->__mode = FE_TONEAREST, 0; }
static __inline int fesetenv(const fenv_t *__env) { return (void)__env, 0; }
static __inline int feupdateenv(const fenv_t *__env) { return (void)__env, 0; }

#ifdef __cplusplus
}
#endif

#endif
