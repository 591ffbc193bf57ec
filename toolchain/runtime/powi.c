/* x to a whole power, by squaring. */
#include "vis_rt.h"

#define POWER(NAME, TYPE)                                                       \
    TYPE NAME(TYPE x, int n)                                                    \
    {                                                                           \
        unsigned left = n < 0 ? -(unsigned)n : (unsigned)n;                     \
        TYPE result = left & 1 ? x : 1;                                         \
        while (left >>= 1) {                                                    \
            x *= x;                                                             \
            if (left & 1)                                                       \
                result *= x;                                                    \
        }                                                                       \
        return n < 0 ? 1 / result : result;                                     \
    }

POWER(vis_rt_powisf2, float)
POWER(vis_rt_powidf2, double)
