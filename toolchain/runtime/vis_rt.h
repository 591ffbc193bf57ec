/* The VIS run-time: what the compilers' own run-time libraries do on each machine, written for the neutral one.
 *
 * Everything here is computed from the definitions (IEEE 754, ISO C Annex G) with integers of 64 and 128 bits; nothing
 * may be written with an operation that would become a call of the function that it is in.
 */
#ifndef VIS_RT_H
#define VIS_RT_H

typedef unsigned long vis_u64;
typedef long vis_i64;
typedef unsigned __int128 vis_u128;
typedef __int128 vis_i128;

/* binary128: long double on the neutral machine. (The tests compile these files for x86-64 too.) */
#if __LDBL_MANT_DIG__ == 113
typedef long double vis_quad;
#else
typedef __float128 vis_quad;
#endif

static inline int vis_leading_zeros(vis_u128 x)
{
    vis_u64 high = (vis_u64)(x >> 64);
    return high ? __builtin_clzl(high) : (vis_u64)x ? 64 + __builtin_clzl((vis_u64)x) : 128;
}

/* x / 2^n; what is lost leaves a one behind, so that rounding still knows that there was something. */
static inline vis_u128 vis_shift_sticky(vis_u128 x, int n)
{
    if (n <= 0)
        return x;
    if (n >= 128)
        return x != 0;
    return x >> n | (x << (128 - n) != 0);
}

#endif
