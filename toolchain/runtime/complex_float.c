/* Functions of <complex.h> on float, by those on double: C libraries pass two floats in other registers on x86-64 than the
 * neutral machine does, but two doubles alike everywhere. */
#include "vis_rt.h"

#define ONE(NAME)                                                               \
    _Complex double NAME(_Complex double);                                      \
    _Complex float vis_rt_##NAME##f(_Complex float z)                           \
    {                                                                           \
        return (_Complex float)NAME((_Complex double)z);                        \
    }
#define REAL(NAME)                                                              \
    double NAME(_Complex double);                                               \
    float vis_rt_##NAME##f(_Complex float z)                                    \
    {                                                                           \
        return (float)NAME((_Complex double)z);                                 \
    }

ONE(cacos) ONE(cacosh) ONE(casin) ONE(casinh) ONE(catan) ONE(catanh) ONE(ccos) ONE(ccosh) ONE(cexp) ONE(clog) ONE(conj)
ONE(cproj) ONE(csin) ONE(csinh) ONE(csqrt) ONE(ctan) ONE(ctanh)
REAL(cabs) REAL(carg) REAL(cimag) REAL(creal)

_Complex double cpow(_Complex double, _Complex double);
_Complex float vis_rt_cpowf(_Complex float a, _Complex float b)
{
    return (_Complex float)cpow((_Complex double)a, (_Complex double)b);
}
