/* <complex.h> with the functions of `float complex` and `long double complex` out of reach.
 *
 * A `float complex` comes back in one register on x86-64 and in two elsewhere, so neutral code would read garbage;
 * `long double` is a different type on every processor. `double complex` is passed alike everywhere.
 * crealf, cimagf and conjf of the C library are replaced by the compiler's own operators.
 */
#include_next <complex.h>
#ifndef __VIS_COMPLEX_H
#define __VIS_COMPLEX_H

#ifdef __cplusplus
extern "C" {
#endif

#define __VIS_NO_CF                                                                             \
    __attribute__((__unavailable__("float complex is passed differently on each processor: "    \
                                   "use the double complex function of the same name without f")))
#define __VIS_NO_CL                                                                             \
    __attribute__((__unavailable__("long double is a different type on each processor: "        \
                                   "use the double complex function of the same name without l")))
#define __VIS_COMPLEX(name)                              \
    float _Complex name##f(float _Complex) __VIS_NO_CF;  \
    long double _Complex name##l(long double _Complex) __VIS_NO_CL;
__VIS_COMPLEX(cacos)
__VIS_COMPLEX(casin)
__VIS_COMPLEX(catan)
__VIS_COMPLEX(ccos)
__VIS_COMPLEX(csin)
__VIS_COMPLEX(ctan)
__VIS_COMPLEX(cacosh)
__VIS_COMPLEX(casinh)
__VIS_COMPLEX(catanh)
__VIS_COMPLEX(ccosh)
__VIS_COMPLEX(csinh)
__VIS_COMPLEX(ctanh)
__VIS_COMPLEX(cexp)
__VIS_COMPLEX(clog)
__VIS_COMPLEX(csqrt)
__VIS_COMPLEX(cproj)
float _Complex cpowf(float _Complex, float _Complex) __VIS_NO_CF;
long double _Complex cpowl(long double _Complex, long double _Complex) __VIS_NO_CL;
float cabsf(float _Complex) __VIS_NO_CF;
float cargf(float _Complex) __VIS_NO_CF;
long double cabsl(long double _Complex) __VIS_NO_CL;
long double cargl(long double _Complex) __VIS_NO_CL;
#undef __VIS_COMPLEX
#undef __VIS_NO_CF
#undef __VIS_NO_CL

#undef crealf
#undef cimagf
#undef conjf
#define crealf(z) (__real__(float _Complex)(z))
#define cimagf(z) (__imag__(float _Complex)(z))
#define conjf(z) (~(float _Complex)(z))

#ifdef __cplusplus
}
#endif

#endif
