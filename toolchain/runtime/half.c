/* Formats of 16 bits: binary16 (10 bits of fraction) and bfloat16 (7, with the exponents of float). They travel as
 * integers here. Calculations are made in float, which has more than twice their digits, so that rounding its result
 * again gives what rounding once would have given. */
#include "vis_rt.h"

float vis_rt_extendhfsf2(unsigned short x)
{
    unsigned sign = (unsigned)(x & 0x8000) << 16, exponent = x >> 10 & 0x1f, fraction = x & 0x3ff;
    union { unsigned bits; float value; } number;
    if (exponent == 0) {
        number.value = (float)fraction * 0x1p-24f; /* exact */
        number.bits |= sign;
        return number.value;
    }
    unsigned quiet = exponent == 0x1f && fraction ? 0x400000 : 0;
    exponent += exponent == 0x1f ? 255 - 31 : 127 - 15;
    number.bits = sign | exponent << 23 | fraction << 13 | quiet;
    return number.value;
}

/* The bits of x in a format with `width` bits of fraction and exponents up to 2 * bias, rounded to nearest even. */
static unsigned short narrowed(double x, int width, int bias)
{
    union { double value; vis_u64 bits; } number = { x };
    vis_u64 fraction = number.bits & 0xfffffffffffffu;
    int exponent = (int)(number.bits >> 52 & 0x7ff) - 1023 + bias, top = 2 * bias + 1;
    unsigned sign = (unsigned)(number.bits >> 48) & 0x8000, limit = (unsigned)top << width;
    if (x != x)
        return (unsigned short)(sign | limit | 1u << (width - 1) | (unsigned)(fraction >> (52 - width)));
    if (exponent >= top)
        return (unsigned short)(sign | limit);
    /* The leading one goes to bit width + 2, or lower: then the number is subnormal, or vanishes. */
    int shift = 50 - width + (exponent < 1 ? 1 - exponent : 0);
    unsigned s = (unsigned)vis_shift_sticky(fraction | 0x10000000000000u, shift);
    if (exponent < 1)
        exponent = 1;
    unsigned result = (s >> 2) + ((unsigned)(exponent - 1) << width), below = s & 3;
    return (unsigned short)(sign | (result + (below > 2 || (below == 2 && (result & 1)))));
}

unsigned short vis_rt_truncsfhf2(float x)
{
    return narrowed((double)x, 10, 15);
}

unsigned short vis_rt_truncdfhf2(double x)
{
    return narrowed(x, 10, 15);
}

unsigned short vis_rt_truncsfbf2(float x)
{
    return narrowed((double)x, 7, 127);
}

unsigned short vis_rt_truncdfbf2(double x)
{
    return narrowed(x, 7, 127);
}
