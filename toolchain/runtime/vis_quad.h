/* The bits of binary128 (long double of the neutral machine), and rounding to it.
 *
 * A number is 1 bit of sign, 15 of exponent (biased by 16383) and 112 of fraction. Significands have their leading one
 * at bit 112; while a result is being made it is at bit 115, and the three bits below bit 3 say how to round, the last of
 * them standing for everything that was shifted out.
 */
#ifndef VIS_QUAD_H
#define VIS_QUAD_H

#include "vis_rt.h"

/* Called, never inlined: LLVM would find floating-point operations in the bits of a caller's numbers. */
#define EXTERN __attribute__((noinline))

#define BIAS 16383
#define TOP 0x7fff
#define ONE ((vis_u128)1 << 112)
#define SIGN ((vis_u128)1 << 127)
#define FRACTION (ONE - 1)
#define INFINITE ((vis_u128)TOP << 112)
#define QUIET ((vis_u128)1 << 111)

static inline vis_u128 bits_of(vis_quad x)
{
    union { vis_quad value; vis_u128 bits; } number = { x };
    return number.bits;
}

static inline vis_quad number_of(vis_u128 bits)
{
    union { vis_u128 bits; vis_quad value; } number = { bits };
    return number.value;
}

static inline int exponent_of(vis_u128 x)
{
    return (int)(x >> 112) & TOP;
}

static inline int is_nan(vis_u128 x)
{
    return (x & ~SIGN) > INFINITE;
}

/* The first operand that is a NaN, quiet. */
static inline vis_quad nan_of(vis_u128 a, vis_u128 b)
{
    return number_of((is_nan(a) ? a : b) | QUIET);
}

static inline vis_quad invalid(void)
{
    return number_of(INFINITE | QUIET);
}

/* The significand of a number that is not zero, leading one at bit 112; subnormal numbers get exponents below 1. */
static inline vis_u128 significand_of(vis_u128 x, int *exponent)
{
    *exponent = exponent_of(x);
    x &= FRACTION;
    if (*exponent)
        return x | ONE;
    int shift = vis_leading_zeros(x) - 15;
    *exponent = 1 - shift;
    return x << shift;
}

/* s * 2^(exponent - BIAS - 115), rounded. */
static inline vis_quad rounded(vis_u128 sign, int exponent, vis_u128 s)
{
    if (s == 0)
        return number_of(sign);
    int shift = vis_leading_zeros(s) - 12;
    s = shift > 0 ? s << shift : vis_shift_sticky(s, -shift);
    exponent -= shift;
    if (exponent >= TOP)
        return number_of(sign | INFINITE);
    if (exponent < 1) {
        s = vis_shift_sticky(s, 1 - exponent);
        exponent = 1; /* and no leading one at bit 115 */
    }
    int below = (int)s & 7;
    s = (s >> 3) + ((vis_u128)(exponent - 1) << 112);
    /* A carry out of the fraction makes the exponent one larger, up to infinity: just what is wanted. */
    return number_of(sign | (s + (below > 4 || (below == 4 && (s & 1)))));
}

#endif
