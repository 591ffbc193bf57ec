/* Arithmetic on binary128, correctly rounded to nearest even. */
#include "vis_quad.h"

EXTERN vis_quad vis_rt_addtf3(vis_quad x, vis_quad y)
{
    vis_u128 a = bits_of(x), b = bits_of(y);
    if (is_nan(a) || is_nan(b))
        return nan_of(a, b);
    if ((a & ~SIGN) < (b & ~SIGN)) {
        vis_u128 other = a;
        a = b;
        b = other;
    }
    int differ = (a ^ b) >> 127 != 0;
    if (exponent_of(a) == TOP)
        return differ && exponent_of(b) == TOP ? invalid() : number_of(a);
    int exponent = exponent_of(a) ? exponent_of(a) : 1, lower = exponent_of(b) ? exponent_of(b) : 1;
    vis_u128 larger = (exponent_of(a) ? (a & FRACTION) | ONE : a & FRACTION) << 3;
    vis_u128 smaller = (exponent_of(b) ? (b & FRACTION) | ONE : b & FRACTION) << 3;
    smaller = vis_shift_sticky(smaller, exponent - lower);
    vis_u128 s = differ ? larger - smaller : larger + smaller;
    return rounded(s == 0 && differ ? 0 : a & SIGN, exponent, s);
}

EXTERN vis_quad vis_rt_subtf3(vis_quad x, vis_quad y)
{
    vis_u128 b = bits_of(y);
    return vis_rt_addtf3(x, is_nan(b) ? y : number_of(b ^ SIGN));
}

EXTERN vis_quad vis_rt_multf3(vis_quad x, vis_quad y)
{
    vis_u128 a = bits_of(x), b = bits_of(y), sign = (a ^ b) & SIGN;
    if (is_nan(a) || is_nan(b))
        return nan_of(a, b);
    a &= ~SIGN;
    b &= ~SIGN;
    if (a == INFINITE || b == INFINITE)
        return a == 0 || b == 0 ? invalid() : number_of(sign | INFINITE);
    if (a == 0 || b == 0)
        return number_of(sign);
    int exponent, other;
    a = significand_of(a, &exponent);
    b = significand_of(b, &other);
    vis_u64 a_high = (vis_u64)(a >> 64), a_low = (vis_u64)a, b_high = (vis_u64)(b >> 64), b_low = (vis_u64)b;
    vis_u128 low = (vis_u128)a_low * b_low, high = (vis_u128)a_high * b_high;
    /* Both factors have 113 bits, so that the sum of the cross products has no carry. */
    vis_u128 cross = (vis_u128)a_high * b_low + (vis_u128)a_low * b_high + (low >> 64);
    high += cross >> 64;
    low = cross << 64 | (vis_u64)low;
    /* The product has its leading one at bit 224 or 225; of 256 bits the upper 147 are left. */
    return rounded(sign, exponent + other - BIAS, high << 19 | low >> 109 | (low << 19 != 0));
}

EXTERN vis_quad vis_rt_divtf3(vis_quad x, vis_quad y)
{
    vis_u128 a = bits_of(x), b = bits_of(y), sign = (a ^ b) & SIGN;
    if (is_nan(a) || is_nan(b))
        return nan_of(a, b);
    a &= ~SIGN;
    b &= ~SIGN;
    if ((a == INFINITE && b == INFINITE) || (a == 0 && b == 0))
        return invalid();
    if (a == INFINITE || b == 0)
        return number_of(sign | INFINITE);
    if (a == 0 || b == INFINITE)
        return number_of(sign);
    int exponent, other;
    a = significand_of(a, &exponent);
    b = significand_of(b, &other);
    exponent -= other - BIAS;
    if (a < b) {
        a <<= 1;
        exponent--;
    }
    /* Now 1 <= a / b < 2. Digits of 14 bits: a remainder below b has 113 bits, and there is room for 14 more. The
     * estimate from the upper halves is at most one too large, and never too small. */
    vis_u128 quotient = 1;
    vis_u64 divisor = (vis_u64)(b >> 64); /* 49 bits */
    a -= b;
    for (int digits = 0; digits < 115; ) {
        int width = digits + 14 <= 115 ? 14 : 115 - digits;
        a <<= width;
        vis_u64 guess = (vis_u64)(a >> 64) / divisor;
        vis_u128 product = guess * b;
        while (product > a) {
            product -= b;
            guess--;
        }
        a -= product;
        quotient = (quotient << width) + guess;
        digits += width;
    }
    return rounded(sign, exponent, quotient | (a != 0));
}

/* The remainder of a division whose quotient is cut off: exact, with the sign of x. */
EXTERN vis_quad vis_rt_fmodtf(vis_quad x, vis_quad y)
{
    vis_u128 a = bits_of(x), b = bits_of(y), sign = a & SIGN;
    if (is_nan(a) || is_nan(b))
        return nan_of(a, b);
    a &= ~SIGN;
    b &= ~SIGN;
    if (a == INFINITE || b == 0)
        return invalid();
    if (a < b)
        return x;
    int exponent, other;
    a = significand_of(a, &exponent);
    b = significand_of(b, &other);
    for (;;) {
        if (a >= b)
            a -= b;
        if (exponent == other || a == 0)
            break;
        a <<= 1;
        exponent--;
    }
    return rounded(sign, other, a << 3);
}

EXTERN vis_quad vis_rt_sqrttf(vis_quad x)
{
    vis_u128 a = bits_of(x);
    if (is_nan(a))
        return nan_of(a, a);
    if (a << 1 == 0 || a == INFINITE)
        return x;
    if (a & SIGN)
        return invalid();
    int exponent;
    a = significand_of(a, &exponent);
    exponent -= BIAS;
    if (exponent & 1) {
        a <<= 1;
        exponent--;
    }
    /* The square root of 1 <= a < 4, a bit at a time: for each, two bits of a. */
    vis_u128 root = 0, rest = 0;
    a <<= 14;
    for (int bit = 0; bit < 116; bit++) {
        rest = rest << 2 | a >> 126;
        a <<= 2;
        vis_u128 trial = root << 2 | 1;
        root <<= 1;
        if (rest >= trial) {
            rest -= trial;
            root |= 1;
        }
    }
    return rounded(0, exponent / 2 + BIAS, root | (rest != 0));
}

/* 1: less, 2: equal, 4: greater, 8: one of them is a NaN. */
EXTERN int vis_rt_cmptf2(vis_quad x, vis_quad y)
{
    vis_u128 a = bits_of(x), b = bits_of(y);
    if (is_nan(a) || is_nan(b))
        return 8;
    if (a == b || (a | b) << 1 == 0)
        return 2;
    if ((a ^ b) & SIGN)
        return a & SIGN ? 1 : 4;
    return (a < b) != (a >> 127 != 0) ? 1 : 4;
}

/* Classes as LLVM numbers them: signaling and quiet NaN, -infinity, -normal, -subnormal, -0, +0, ..., +infinity. */
EXTERN _Bool vis_rt_isfpclasstf(vis_quad x, int classes)
{
    vis_u128 a = bits_of(x);
    int exponent = exponent_of(a), kind;
    if (is_nan(a))
        return classes >> (a & QUIET ? 1 : 0) & 1;
    kind = exponent == TOP ? 0 : exponent ? 1 : a & FRACTION ? 2 : 3;
    return classes >> (a & SIGN ? 2 + kind : 9 - kind) & 1;
}

EXTERN vis_quad vis_rt_extenddftf2(double x)
{
    union { double value; vis_u64 bits; } number = { x };
    vis_u128 sign = (vis_u128)(number.bits >> 63) << 127, fraction = number.bits & 0xfffffffffffffu;
    int exponent = (int)(number.bits >> 52 & 0x7ff);
    if (exponent == 0x7ff)
        return number_of(sign | INFINITE | fraction << 60 | (fraction ? QUIET : 0));
    if (exponent == 0)
        return rounded(sign, BIAS - 1022, fraction << 63); /* a subnormal of double is a normal number here */
    return number_of(sign | (vis_u128)(exponent - 1023 + BIAS) << 112 | fraction << 60);
}

/* The bits of x in a format with `width` bits of fraction and exponents up to 2 * bias. */
static vis_u64 narrowed(vis_u128 a, int width, int bias)
{
    int exponent = exponent_of(a) - BIAS + bias, top = 2 * bias + 1;
    vis_u64 limit = (vis_u64)top << width;
    if (is_nan(a))
        return limit | (vis_u64)1 << (width - 1) | (vis_u64)((a & FRACTION) >> (112 - width));
    if (exponent >= top)
        return limit;
    /* The leading one goes to bit width + 2; below it, two bits for rounding. Numbers so small that this one has no
     * leading one become zero in any case. */
    vis_u128 s = (a & FRACTION) | ONE;
    s = vis_shift_sticky(s, 110 - width + (exponent < 1 ? 1 - exponent : 0));
    if (exponent < 1)
        exponent = 1;
    vis_u64 result = (vis_u64)(s >> 2) + ((vis_u64)(exponent - 1) << width);
    int below = (int)s & 3;
    return result + (below > 2 || (below == 2 && (result & 1)));
}

EXTERN double vis_rt_trunctfdf2(vis_quad x)
{
    vis_u128 a = bits_of(x);
    union { vis_u64 bits; double value; } number = { narrowed(a, 52, 1023) | (vis_u64)(a >> 127) << 63 };
    return number.value;
}

EXTERN float vis_rt_trunctfsf2(vis_quad x)
{
    vis_u128 a = bits_of(x);
    union { unsigned bits; float value; } number = { (unsigned)narrowed(a, 23, 127) | (unsigned)(a >> 127) << 31 };
    return number.value;
}

EXTERN unsigned short vis_rt_trunctfhf2(vis_quad x)
{
    vis_u128 a = bits_of(x);
    return (unsigned short)(narrowed(a, 10, 15) | (vis_u64)(a >> 127) << 15);
}

EXTERN unsigned short vis_rt_trunctfbf2(vis_quad x)
{
    vis_u128 a = bits_of(x);
    return (unsigned short)(narrowed(a, 7, 127) | (vis_u64)(a >> 127) << 15);
}

EXTERN vis_quad vis_rt_floatuntitf(vis_u128 x)
{
    return rounded(0, BIAS + 115, x);
}

EXTERN vis_quad vis_rt_floattitf(vis_i128 x)
{
    return rounded(x < 0 ? SIGN : 0, BIAS + 115, x < 0 ? -(vis_u128)x : (vis_u128)x);
}

/* The integer part of |x|; *beyond tells that it has more than `bits` bits. */
static vis_u128 whole_part(vis_u128 a, int bits, int *beyond)
{
    int exponent = exponent_of(a) - BIAS;
    vis_u128 s = (a & FRACTION) | ONE;
    *beyond = exponent >= bits;
    if (exponent < 0 || *beyond)
        return 0;
    return exponent > 112 ? s << (exponent - 112) : s >> (112 - exponent);
}

/* To a signed integer of `bits` bits; what does not fit becomes the nearest one that does, a NaN becomes 0. */
EXTERN vis_i128 vis_rt_fixtfti(vis_quad x, int bits)
{
    vis_u128 a = bits_of(x), limit = (vis_u128)1 << (bits - 1);
    int beyond, negative = a >> 127 != 0;
    vis_u128 whole = whole_part(a, bits - 1, &beyond);
    if (is_nan(a))
        return 0;
    if (beyond)
        whole = limit - !negative;
    return (vis_i128)(negative ? -whole : whole);
}

EXTERN vis_u128 vis_rt_fixunstfti(vis_quad x, int bits)
{
    vis_u128 a = bits_of(x);
    int beyond;
    vis_u128 whole = whole_part(a, bits, &beyond);
    if (is_nan(a) || a & SIGN)
        return 0;
    return beyond ? ~(vis_u128)0 >> (128 - bits) : whole;
}

/* To an integral number: 0 towards zero, 1 down, 2 up, 3 to the nearest, of two to the even one, 4 to the nearest, of two
 * to the one away from zero. */
static vis_quad integral(vis_quad x, int mode)
{
    vis_u128 a = bits_of(x), sign = a & SIGN;
    int exponent = exponent_of(a) - BIAS;
    if (is_nan(a))
        return nan_of(a, a);
    if (exponent >= 112)
        return x;
    int away = mode == 1 ? sign != 0 : mode == 2 ? sign == 0 : 0;
    if (exponent < 0) {
        if ((a & ~SIGN) == 0)
            return x;
        if (exponent == -1 && mode >= 3)
            away = mode == 4 || (a & FRACTION) != 0; /* at least one half */
        return number_of(away ? sign | (vis_u128)BIAS << 112 : sign);
    }
    vis_u128 unit = ONE >> exponent, lost = a & (unit - 1);
    a -= lost;
    if (mode >= 3)
        /* Between 1 and 2 the unit is the last bit of the exponent: BIAS is odd, and so is 1. */
        away = lost > unit >> 1 || (lost == unit >> 1 && (mode == 4 || a & unit));
    return number_of(away && lost ? a + unit : a);
}

EXTERN vis_quad vis_rt_trunctf(vis_quad x)
{
    return integral(x, 0);
}

EXTERN vis_quad vis_rt_floortf(vis_quad x)
{
    return integral(x, 1);
}

EXTERN vis_quad vis_rt_ceiltf(vis_quad x)
{
    return integral(x, 2);
}

EXTERN vis_quad vis_rt_roundeventf(vis_quad x)
{
    return integral(x, 3);
}

EXTERN vis_quad vis_rt_roundtf(vis_quad x)
{
    return integral(x, 4);
}

/* The larger and the smaller one; a NaN counts as missing. */
EXTERN vis_quad vis_rt_fmaxtf(vis_quad x, vis_quad y)
{
    int order = vis_rt_cmptf2(x, y);
    if (order == 8)
        return is_nan(bits_of(x)) ? y : x;
    return order == 1 || (order == 2 && bits_of(x) & SIGN) ? y : x;
}

EXTERN vis_quad vis_rt_fmintf(vis_quad x, vis_quad y)
{
    int order = vis_rt_cmptf2(x, y);
    if (order == 8)
        return is_nan(bits_of(x)) ? y : x;
    return order == 4 || (order == 2 && bits_of(y) & SIGN) ? y : x;
}

/* x * 2^n */
EXTERN vis_quad vis_rt_ldexptf(vis_quad x, int n)
{
    vis_u128 a = bits_of(x);
    if (is_nan(a))
        return nan_of(a, a);
    if (a << 1 == 0 || exponent_of(a) == TOP)
        return x;
    int exponent;
    vis_u128 s = significand_of(a, &exponent);
    n = n > 40000 ? 40000 : n < -40000 ? -40000 : n;
    return rounded(a & SIGN, exponent + n, s << 3);
}
