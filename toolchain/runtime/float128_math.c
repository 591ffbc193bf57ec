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

/* 256 bits, for a product with all its digits. */
typedef struct { vis_u128 high, low; } double_word;

static double_word shifted_right(double_word x, int n)
{
    double_word result;
    if (n <= 0)
        return x;
    if (n >= 128) {
        result.high = 0;
        result.low = vis_shift_sticky(x.high, n - 128) | (x.low != 0);
    } else {
        result.high = x.high >> n;
        result.low = x.high << (128 - n) | vis_shift_sticky(x.low, n);
    }
    return result;
}

static double_word shifted_left(double_word x, int n)
{
    double_word result = { n ? x.high << n | x.low >> (128 - n) : x.high, x.low << n };
    return result;
}

/* x * y + z, rounded once. */
EXTERN vis_quad vis_rt_fmatf(vis_quad x, vis_quad y, vis_quad z)
{
    vis_u128 a = bits_of(x), b = bits_of(y), c = bits_of(z), sign = (a ^ b) & SIGN;
    int special = exponent_of(a) == TOP || exponent_of(b) == TOP || exponent_of(c) == TOP;
    /* Infinities, NaNs and zeros: two roundings are none. */
    if (special || a << 1 == 0 || b << 1 == 0)
        return exponent_of(c) == TOP && !is_nan(c) && exponent_of(a) != TOP && exponent_of(b) != TOP ? z : x * y + z;
    if (c << 1 == 0 && (exponent_of(a) + exponent_of(b) > BIAS + 200))
        return x * y;
    int e_a, e_b, e_c;
    a = significand_of(a, &e_a);
    b = significand_of(b, &e_b);
    vis_u64 a_high = (vis_u64)(a >> 64), a_low = (vis_u64)a, b_high = (vis_u64)(b >> 64), b_low = (vis_u64)b;
    vis_u128 low = (vis_u128)a_low * b_low, cross = (vis_u128)a_high * b_low + (vis_u128)a_low * b_high + (low >> 64);
    double_word product = { (vis_u128)a_high * b_high + (cross >> 64), cross << 64 | (vis_u64)low }, other, sum;
    /* Leading ones go to bit 252: there is room for a carry, and 27 bits below the product. */
    int zeros = vis_leading_zeros(product.high), exponent = e_a + e_b - 2 * BIAS + (31 - zeros);
    product = shifted_left(product, zeros - 3);
    if (c << 1 == 0) {
        other.high = other.low = 0;
        e_c = exponent;
    } else {
        other.high = significand_of(c, &e_c) << 12;
        other.low = 0;
        e_c -= BIAS;
    }
    if (exponent >= e_c) {
        other = shifted_right(other, exponent - e_c);
    } else {
        product = shifted_right(product, e_c - exponent);
        exponent = e_c;
    }
    if (sign == (c & SIGN)) {
        sum.low = product.low + other.low;
        sum.high = product.high + other.high + (sum.low < product.low);
    } else {
        int less = product.high < other.high || (product.high == other.high && product.low < other.low);
        if (less) {
            double_word swap = product;
            product = other;
            other = swap;
            sign ^= SIGN;
        }
        sum.low = product.low - other.low;
        sum.high = product.high - other.high - (product.low < other.low);
        if (sum.high == 0 && sum.low == 0)
            return number_of(0);
    }
    zeros = sum.high ? vis_leading_zeros(sum.high) : 128 + vis_leading_zeros(sum.low);
    if (zeros >= 128) {
        sum.high = sum.low;
        sum.low = 0;
        exponent -= 128;
        zeros -= 128;
    }
    sum = shifted_left(sum, zeros);
    /* The leading one is at bit 127 of the upper half, and 12 places too high for rounded(). */
    return rounded(sign, exponent + 3 - zeros + BIAS, vis_shift_sticky(sum.high | (sum.low != 0), 12));
}
