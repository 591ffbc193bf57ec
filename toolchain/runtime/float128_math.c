/* Functions of <math.h> on binary128 whose results are exact, or a matter of bits. (Arithmetic on vis_quad that is written
 * here becomes calls of float128.c.) */
#include "vis_quad.h"

vis_quad vis_rt_trunctf(vis_quad), vis_rt_fmodtf(vis_quad, vis_quad), vis_rt_ldexptf(vis_quad, int);

/* FP_NAN, FP_INFINITE, FP_ZERO, FP_SUBNORMAL, FP_NORMAL are 0 to 4. */
EXTERN int vis_rt_fpclassifytf(vis_quad x)
{
    vis_u128 a = bits_of(x);
    int exponent = exponent_of(a);
    if (exponent == TOP)
        return is_nan(a) ? 0 : 1;
    return exponent ? 4 : a & FRACTION ? 3 : 2;
}

EXTERN int vis_rt_signbittf(vis_quad x)
{
    return bits_of(x) >> 127 != 0;
}

EXTERN vis_quad vis_rt_nantf(const char *tag)
{
    (void)tag;
    return number_of(INFINITE | QUIET);
}

/* FP_ILOGB0 and FP_ILOGBNAN are the least int. */
EXTERN int vis_rt_ilogbtf(vis_quad x)
{
    vis_u128 a = bits_of(x);
    int exponent;
    if (is_nan(a) || a << 1 == 0)
        return -0x7fffffff - 1;
    if (exponent_of(a) == TOP)
        return 0x7fffffff;
    significand_of(a, &exponent);
    return exponent - BIAS;
}

EXTERN vis_quad vis_rt_logbtf(vis_quad x)
{
    vis_u128 a = bits_of(x);
    if (is_nan(a))
        return nan_of(a, a);
    if (a << 1 == 0)
        return number_of(SIGN | INFINITE);
    if (exponent_of(a) == TOP)
        return number_of(INFINITE);
    return (vis_quad)vis_rt_ilogbtf(x);
}

EXTERN vis_quad vis_rt_scalblntf(vis_quad x, long n)
{
    return vis_rt_ldexptf(x, n > 40000 ? 40000 : n < -40000 ? -40000 : (int)n);
}

EXTERN vis_quad vis_rt_frexptf(vis_quad x, int *power)
{
    vis_u128 a = bits_of(x);
    int exponent;
    *power = 0;
    if (a << 1 == 0 || exponent_of(a) == TOP)
        return is_nan(a) ? nan_of(a, a) : x;
    vis_u128 s = significand_of(a, &exponent);
    *power = exponent - (BIAS - 1);
    return number_of((a & SIGN) | (vis_u128)(BIAS - 1) << 112 | (s & FRACTION));
}

/* What x has behind the point, with its sign. */
EXTERN vis_quad vis_rt_modftf(vis_quad x)
{
    vis_u128 a = bits_of(x);
    if (is_nan(a))
        return nan_of(a, a);
    vis_u128 part = exponent_of(a) == TOP ? 0 : bits_of(x - vis_rt_trunctf(x));
    return number_of((part & ~SIGN) | (a & SIGN));
}

EXTERN vis_quad vis_rt_fdimtf(vis_quad x, vis_quad y)
{
    vis_u128 a = bits_of(x), b = bits_of(y);
    if (is_nan(a) || is_nan(b))
        return nan_of(a, b);
    return x > y ? x - y : number_of(0);
}

EXTERN vis_quad vis_rt_nextaftertf(vis_quad x, vis_quad y)
{
    vis_u128 a = bits_of(x), b = bits_of(y);
    if (is_nan(a) || is_nan(b))
        return nan_of(a, b);
    if (x == y)
        return y;
    if (a << 1 == 0)
        return number_of((b & SIGN) | 1);
    return number_of((x < y) == (a >> 127 == 0) ? a + 1 : a - 1);
}

/* x - n * y for the whole n nearest to x / y, of two the even one: exact. */
EXTERN vis_quad vis_rt_remaindertf(vis_quad x, vis_quad y)
{
    vis_u128 a = bits_of(x), b = bits_of(y), sign = a & SIGN;
    if (is_nan(a) || is_nan(b))
        return nan_of(a, b);
    if (exponent_of(a) == TOP || b << 1 == 0)
        return invalid();
    if (exponent_of(b) == TOP)
        return x;
    vis_quad size = number_of(b & ~SIGN), rest = number_of(a & ~SIGN);
    /* Below twice |y|, so that it shows whether the quotient is odd. (Twice |y| may be infinite, and then x is below.) */
    rest = vis_rt_fmodtf(rest, size + size);
    int odd = rest >= size;
    if (odd)
        rest -= size;
    vis_quad twice = rest + rest;
    if (twice > size || (twice == size && odd))
        rest -= size;
    return number_of(bits_of(rest) ^ sign);
}
