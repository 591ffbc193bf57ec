/* 128-bit integers to and from float and double; numbers that do not fit become the nearest one that does. */
#include "vis_rt.h"

/* 2^n for -1022 <= n <= 1023. */
static double power_of_two(int n)
{
    union { vis_u64 bits; double value; } power = { (vis_u64)(n + 1023) << 52 };
    return power.value;
}

/* The upper 64 bits of what is not zero, the lowest of them sticky: more than enough to be rounded once. */
static vis_u64 leading_word(vis_u128 x, int *exponent)
{
    int zeros = vis_leading_zeros(x);
    *exponent = 64 - zeros;
    return (vis_u64)vis_shift_sticky(x << zeros, 64);
}

double vis_rt_floatuntidf(vis_u128 x)
{
    int exponent;
    vis_u64 word = leading_word(x, &exponent);
    return x ? (double)word * power_of_two(exponent) : 0.0;
}

float vis_rt_floatuntisf(vis_u128 x)
{
    int exponent;
    vis_u64 word = leading_word(x, &exponent);
    /* The exponent of a float would not do for 2^64. The product is exact, but for what is infinite in float. */
    return x ? (float)((double)(float)word * power_of_two(exponent)) : 0.0f;
}

double vis_rt_floattidf(vis_i128 x)
{
    return x < 0 ? -vis_rt_floatuntidf(-(vis_u128)x) : vis_rt_floatuntidf((vis_u128)x);
}

float vis_rt_floattisf(vis_i128 x)
{
    return x < 0 ? -vis_rt_floatuntisf(-(vis_u128)x) : vis_rt_floatuntisf((vis_u128)x);
}

/* The integer part of |x| in *whole; returns 0 when it has more than `bits` bits. */
static int whole_part(double x, int bits, vis_u128 *whole)
{
    union { double value; vis_u64 bits; } number = { x };
    int exponent = (int)(number.bits >> 52 & 0x7ff) - 1023;
    vis_u128 significand = (number.bits & 0xfffffffffffffu) | 0x10000000000000u;
    *whole = 0;
    if (exponent < 0)
        return 1;
    if (exponent >= bits)
        return 0;
    *whole = exponent > 52 ? significand << (exponent - 52) : significand >> (52 - exponent);
    return 1;
}

vis_i128 vis_rt_fixdfti(double x, int bits)
{
    vis_u128 whole, limit = (vis_u128)1 << (bits - 1);
    if (x != x)
        return 0;
    if (!whole_part(x, bits - 1, &whole))
        return (vis_i128)(x < 0 ? -limit : limit - 1);
    return (vis_i128)(x < 0 ? -whole : whole);
}

vis_u128 vis_rt_fixunsdfti(double x, int bits)
{
    vis_u128 whole;
    if (!(x > 0))
        return 0;
    if (!whole_part(x, bits, &whole))
        return ~(vis_u128)0 >> (128 - bits);
    return whole;
}
