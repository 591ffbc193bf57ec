/* Division of 128-bit integers, and whether their products fit. */
#include "vis_rt.h"

/* (high, low) / divisor for high < divisor, whose highest bit is set: two digits of 32 bits, each estimated from the
 * upper half of the divisor and then at most twice too large (Knuth, The Art of Computer Programming, 4.3.1). */
static vis_u64 divide_two_words(vis_u64 high, vis_u64 low, vis_u64 divisor, vis_u64 *rest)
{
    const vis_u64 upper = divisor >> 32, lower = divisor & 0xffffffffu;
    vis_u64 quotient = 0;
    for (int digit = 0; digit < 2; digit++) {
        vis_u64 next = digit ? low & 0xffffffffu : low >> 32;
        vis_u64 guess = high / upper, left = high % upper;
        while (guess >> 32 || guess * lower > (left << 32 | next)) {
            guess--;
            left += upper;
            if (left >> 32)
                break;
        }
        high = (high << 32 | next) - guess * divisor;
        quotient = quotient << 32 | guess;
    }
    *rest = high;
    return quotient;
}

static vis_u128 divide(vis_u128 n, vis_u128 d, vis_u128 *rest)
{
    vis_u64 d_high = (vis_u64)(d >> 64), d_low = (vis_u64)d, n_high = (vis_u64)(n >> 64), n_low = (vis_u64)n, left;
    if (d_high == 0) {
        if (n_high == 0) {
            *rest = n_low % d_low;
            return n_low / d_low;
        }
        vis_u64 first = n_high / d_low; /* division by zero does here what it does in 64 bits */
        int shift = d_low ? __builtin_clzl(d_low) : 0;
        n_high %= d_low;
        vis_u64 high = (vis_u64)(((vis_u128)n_high << 64 | n_low) << shift >> 64);
        vis_u64 second = divide_two_words(high, n_low << shift, d_low << shift, &left);
        *rest = left >> shift;
        return (vis_u128)first << 64 | second;
    }
    if (n < d) {
        *rest = n;
        return 0;
    }
    int shift = __builtin_clzl(d_high);
    vis_u64 divisor = (vis_u64)(d << shift >> 64);
    /* Of half the dividend, so that it is smaller than the divisor; too large by one at most. */
    vis_u64 guess = divide_two_words(n_high >> 1, (vis_u64)(n >> 1), divisor, &left);
    vis_u64 quotient = (vis_u64)((vis_u128)guess << shift >> 63);
    if (quotient)
        quotient--;
    vis_u128 remainder = n - quotient * d;
    if (remainder >= d) {
        quotient++;
        remainder -= d;
    }
    *rest = remainder;
    return quotient;
}

vis_u128 vis_rt_udivti3(vis_u128 a, vis_u128 b)
{
    vis_u128 rest;
    return divide(a, b, &rest);
}

vis_u128 vis_rt_umodti3(vis_u128 a, vis_u128 b)
{
    vis_u128 rest;
    divide(a, b, &rest);
    return rest;
}

static vis_u128 size_of(vis_i128 x)
{
    return x < 0 ? -(vis_u128)x : (vis_u128)x;
}

vis_i128 vis_rt_divti3(vis_i128 a, vis_i128 b)
{
    vis_u128 rest, quotient = divide(size_of(a), size_of(b), &rest);
    return (vis_i128)((a < 0) != (b < 0) ? -quotient : quotient);
}

vis_i128 vis_rt_modti3(vis_i128 a, vis_i128 b)
{
    vis_u128 rest;
    divide(size_of(a), size_of(b), &rest);
    return (vis_i128)(a < 0 ? -rest : rest);
}

/* Whether the product of two signed numbers is none of 128 bits. */
int vis_rt_mulovti(vis_i128 a, vis_i128 b)
{
    vis_u128 x = size_of(a), y = size_of(b), product = x * y;
    vis_u64 x_high = (vis_u64)(x >> 64), y_high = (vis_u64)(y >> 64);
    if (x_high && y_high)
        return 1;
    /* One of the cross products is zero, and that of the upper halves: what is left must not carry. */
    vis_u128 cross = (vis_u128)x_high * (vis_u64)y + (vis_u128)y_high * (vis_u64)x;
    if (cross >> 64 || product >> 64 < (vis_u64)cross)
        return 1;
    int negative = (a < 0) != (b < 0);
    return product > ((vis_u128)1 << 127) - !negative;
}
