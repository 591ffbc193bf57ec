/* The VIS run-time, compiled for this machine, beside the compiler's own: random and awkward operands. */
#include <math.h>
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "int128.c"
#undef INFINITE
#include "int128_float.c"
#include "powi.c"
#define exponent_of complex_exponent_of
#include "complex.c"
#undef exponent_of
#undef INFINITE
#define whole_part quad_whole_part
#include "float128.c"
#include "float128_math.c"
#define narrowed small_narrowed
#include "half.c"
#undef narrowed

static unsigned long state = 88172645463325252u;
static unsigned long word(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
static int failures;
static void complain(const char *what, const void *a, const void *b, const void *got, const void *want, size_t size)
{
    if (failures++ > 20)
        return;
    const unsigned char *all[] = { a, b, got, want };
    printf("%s", what);
    for (int i = 0; i < 4; i++) {
        printf(" ");
        for (size_t n = size; all[i] && n--;)
            printf("%02x", all[i][n]);
    }
    printf("\n");
}

static vis_u128 wide(void)
{
    static const unsigned long corners[] = { 0, 1, 2, 3, 0x7fffffff, 0x80000000u, 0xffffffffu, 0x100000000u,
                                             0x7fffffffffffffffu, 0x8000000000000000u, 0xffffffffffffffffu };
    unsigned long high = word() % 3 ? word() >> word() % 64 : corners[word() % 11];
    unsigned long low = word() % 3 ? word() >> word() % 64 : corners[word() % 11];
    vis_u128 x = (vis_u128)(word() % 4 ? high : 0) << 64 | low;
    return word() % 4 ? x : -x;
}

static vis_quad quad(void)
{
    vis_u128 x = (vis_u128)word() << 64 | word();
    unsigned long kind = word() % 16;
    vis_u128 fraction = x << 16 >> 16;
    int exponent = (int)(x >> 112) & TOP;
    if (kind < 5)
        exponent = 16383 + (int)(word() % 240) - 120;
    else if (kind < 7)
        exponent = (int)(word() % 120);
    else if (kind < 8)
        exponent = TOP - (int)(word() % 4);
    switch (word() % 8) {
    case 0: fraction = 0; break;
    case 1: fraction = FRACTION; break;
    case 2: fraction >>= word() % 112; break;
    case 3: fraction &= ~(vis_u128)0 << word() % 112; break;
    case 4: fraction = (vis_u128)1 << word() % 112; break;
    }
    return number_of((x & SIGN) | (vis_u128)exponent << 112 | fraction);
}

static double real(void)
{
    union { unsigned long bits; double value; } x = { word() };
    if (word() % 2)
        x.bits = (x.bits & 0x800fffffffffffffu) | (1023 - 200 + word() % 400) << 52;
    if (word() % 4 == 0)
        x.bits &= ~0ul << word() % 52;
    if (word() % 8 == 0)
        x.bits &= 0xfff0000000000000u;
    if (word() % 16 == 0)
        x.bits = (x.bits & 0x8000000000000000u) | (word() % 2 ? 0x7ff0000000000000u : 0);
    if (word() % 16 == 0)
        x.bits &= 0x800fffffffffffffu;
    return x.value;
}

static void same_quad(const char *what, vis_quad a, vis_quad b, vis_quad got, vis_quad want)
{
    if (is_nan(bits_of(want)) ? !is_nan(bits_of(got)) : memcmp(&got, &want, 16) != 0)
        complain(what, &a, &b, &got, &want, 16);
}
static void same_wide(const char *what, vis_u128 a, vis_u128 b, vis_u128 got, vis_u128 want)
{
    if (got != want)
        complain(what, &a, &b, &got, &want, 16);
}
static void same_double(const char *what, double a, double b, double got, double want)
{
    if (isnan(want) ? !isnan(got) : memcmp(&got, &want, 8) != 0)
        complain(what, &a, &b, &got, &want, 8);
}
static void same_float(const char *what, double a, float got, float want)
{
    if (isnan(want) ? !isnan(got) : memcmp(&got, &want, 4) != 0)
        complain(what, &a, &a, &got, &want, 4);
}

static void integers(void)
{
    vis_u128 a = wide(), b = wide();
    vis_i128 x = (vis_i128)a, y = (vis_i128)b, native;
    int beyond = __builtin_mul_overflow(x, y, &native);
    same_wide("mulov", a, b, vis_rt_mulovti(x, y), beyond);
    same_double("floatuntidf", (double)a, 0, vis_rt_floatuntidf(a), (double)a);
    same_double("floattidf", (double)x, 0, vis_rt_floattidf(x), (double)x);
    same_float("floatuntisf", (double)a, vis_rt_floatuntisf(a), (float)a);
    same_float("floattisf", (double)x, vis_rt_floattisf(x), (float)x);
    same_quad("floatuntitf", 0, 0, vis_rt_floatuntitf(a), (__float128)a);
    same_quad("floattitf", 0, 0, vis_rt_floattitf(x), (__float128)x);
    if (b == 0)
        return;
    same_wide("udiv", a, b, vis_rt_udivti3(a, b), a / b);
    same_wide("urem", a, b, vis_rt_umodti3(a, b), a % b);
    if (y == -1 && a == SIGN)
        return;
    same_wide("sdiv", a, b, (vis_u128)vis_rt_divti3(x, y), (vis_u128)(x / y));
    same_wide("srem", a, b, (vis_u128)vis_rt_modti3(x, y), (vis_u128)(x % y));
}

static void quads(void)
{
    vis_quad a = quad(), b = quad();
    if (word() % 8 == 0)
        b = number_of(bits_of(a) ^ (word() % 2 ? SIGN : 0) ^ (word() % 2 ? word() % 8 : 0));
    same_quad("add", a, b, vis_rt_addtf3(a, b), a + b);
    same_quad("sub", a, b, vis_rt_subtf3(a, b), a - b);
    same_quad("mul", a, b, vis_rt_multf3(a, b), a * b);
    same_quad("div", a, b, vis_rt_divtf3(a, b), a / b);
    int order = a < b ? 1 : a == b ? 2 : a > b ? 4 : 8;
    same_wide("cmp", bits_of(a), bits_of(b), vis_rt_cmptf2(a, b), order);
    same_double("trunctfdf", (double)a, 0, vis_rt_trunctfdf2(a), (double)a);
    same_float("trunctfsf", (double)a, vis_rt_trunctfsf2(a), (float)a);
    double d = real();
    same_quad("extenddf", d, 0, vis_rt_extenddftf2(d), d);
    /* What does not fit becomes the nearest number that does. */
    int width = 1 + (int)(word() % 128);
    vis_u128 most = ~(vis_u128)0 >> (128 - width), half = most / 2;
    __float128 above = (__float128)((vis_u128)1 << (width - 1)), numbers[2] = { a, d };
    for (int i = 0; i < 2; i++) {
        __float128 x = numbers[i];
        vis_u128 whole = x != x ? 0 : x >= above ? half : x <= -above ? ~half : (vis_u128)(vis_i128)x;
        vis_u128 natural = !(x > 0) ? 0 : x >= 2 * above ? most : (vis_u128)x;
        same_wide("fix", bits_of(x), width, (vis_u128)(i ? vis_rt_fixdfti(d, width) : vis_rt_fixtfti(a, width)), whole);
        same_wide("fixuns", bits_of(x), width, i ? vis_rt_fixunsdfti(d, width) : vis_rt_fixunstfti(a, width), natural);
    }
    int n = (int)(word() % 70) - 35;
    same_double("powidf", d, n, vis_rt_powidf2(d, n), __builtin_powi(d, n));
    same_float("powisf", d, vis_rt_powisf2((float)d, n), __builtin_powif((float)d, n));
}

/* Annex G.5.1 for what is not two finite numbers: infinite by finite, finite by infinite, something by zero. */
static int right_kind(double a, double b, double c, double d, double real, double imaginary)
{
    int above = isinf(a) || isinf(b), below = isinf(c) || isinf(d);
    if (above && isfinite(c) && isfinite(d))
        return isinf(real) || isinf(imaginary);
    if (isfinite(a) && isfinite(b) && below)
        return real == 0 && imaginary == 0;
    if (c == 0 && d == 0 && (a != 0 || b != 0) && a == a && b == b)
        return isinf(real) || isinf(imaginary);
    return 1;
}

static void products(void)
{
    double a = real(), b = real(), c = real(), d = real();
    _Complex double x, y, want, got;
    __real__ x = a, __imag__ x = b, __real__ y = c, __imag__ y = d;
    want = x * y;
    got = vis_rt_muldc3(a, b, c, d);
    same_double("muldc3 real", a, c, __real__ got, __real__ want);
    same_double("muldc3 imaginary", b, d, __imag__ got, __imag__ want);
    _Complex float u = x, v = y, small = u * v;
    _Complex float mine = vis_rt_mulsc3(__real__ u, __imag__ u, __real__ v, __imag__ v);
    same_float("mulsc3 real", a, __real__ mine, __real__ small);
    same_float("mulsc3 imaginary", b, __imag__ mine, __imag__ small);

    /* Quotients may differ in the last places: compare with a division in binary128, and the special cases by kind. */
    got = vis_rt_divdc3(a, b, c, d);
    mine = vis_rt_divsc3(__real__ u, __imag__ u, __real__ v, __imag__ v);
    small = u / v;
    want = x / y;
    if (isfinite(a) && isfinite(b) && isfinite(c) && isfinite(d) && (c != 0 || d != 0)) {
        __float128 p = a, q = b, r = c, s = d, norm = r * r + s * s;
        __float128 real = (p * r + q * s) / norm, imaginary = (q * r - p * s) / norm;
        __float128 size = real * real + imaginary * imaginary;
        __float128 off = (__real__ got - real) * (__real__ got - real)
            + (__imag__ got - imaginary) * (__imag__ got - imaginary);
        if (size < 0x1p2040Q && size > 0x1p-1900Q && !(off <= size * 0x1p-100Q))
            complain("divdc3", &x, &y, &got, &want, 16);
    } else if (!right_kind(a, b, c, d, __real__ got, __imag__ got)) {
        complain("divdc3 kind", &x, &y, &got, &want, 16);
    }
    if (isfinite(__real__ u) && isfinite(__imag__ u) && isfinite(__real__ v) && isfinite(__imag__ v) && v != 0) {
        __float128 p = __real__ u, q = __imag__ u, r = __real__ v, s = __imag__ v, norm = r * r + s * s;
        float real = (float)((p * r + q * s) / norm), imaginary = (float)((q * r - p * s) / norm);
        float size = fabsf(real) + fabsf(imaginary);
        if (isfinite(size) && size > 0x1p-120f
            && !(fabsf(__real__ mine - real) + fabsf(__imag__ mine - imaginary) <= size * 0x1p-22f))
            complain("divsc3", &u, &v, &mine, &small, 8);
    } else if (!right_kind(__real__ u, __imag__ u, __real__ v, __imag__ v, __real__ mine, __imag__ mine)) {
        complain("divsc3 kind", &u, &v, &mine, &small, 8);
    }
}

/* What the compiler has no function for, from the definitions. */
static void definitions(void)
{
    vis_quad a = quad(), b = quad();
    if (word() % 8 == 0)
        a = (vis_quad)(long)(word() >> word() % 64) / (word() % 2 ? 2 : -2); /* halves */
    vis_quad root = vis_rt_sqrttf(a);
    if (a < 0)
        same_quad("sqrt", a, a, root, number_of(INFINITE | QUIET));
    if (a > 0 && a < number_of(INFINITE) && a > 0x1p-8000Q && a < 0x1p8000Q) {
        /* root - u/2 < exact root < root + u/2, in squares: (root ± u/2)² against a, with 226 bits in two numbers. */
        vis_quad up = number_of(bits_of(root) + 1), down = number_of(bits_of(root) - 1);
        vis_quad square = root * root;
        if (!(down * root <= a && a <= up * root && square < a * (1 + 0x1p-110Q) && square > a * (1 - 0x1p-110Q)))
            complain("sqrt", &a, &a, &root, &root, 16);
    }
    __float128 top = 0x1p100Q;
    if (a > -top && a < top) {
        vis_i128 cut = (vis_i128)a;
        __float128 whole = (__float128)cut, less = a < whole ? whole - 1 : whole, more = a > whole ? whole + 1 : whole;
        vis_u128 sign = bits_of(a) & SIGN;
        same_quad("trunc", a, a, vis_rt_trunctf(a), number_of((bits_of(whole) & ~SIGN) | sign));
        same_quad("floor", a, a, vis_rt_floortf(a), less == 0 ? number_of(sign) : less);
        same_quad("ceil", a, a, vis_rt_ceiltf(a), more == 0 ? number_of(sign) : more);
        __float128 under = a - less, over = more - a;
        __float128 away = under < over ? less : over < under ? more : a < 0 ? less : more;
        __float128 even = under < over ? less : over < under ? more : ((vis_i128)less & 1) == 0 ? less : more;
        same_quad("round", a, a, vis_rt_roundtf(a), away == 0 ? number_of(sign) : away);
        same_quad("roundeven", a, a, vis_rt_roundeventf(a), even == 0 ? number_of(sign) : even);
    }
    if (a > -top && a < top && b > 0x1p-20Q && b < top) {
        __float128 rest = vis_rt_fmodtf(a, b), whole = (a - rest) / b;
        int good = rest == 0 ? (bits_of(rest) & SIGN) == (bits_of(a) & SIGN)
                             : (rest < 0) == (a < 0) && rest < b && -rest < b;
        /* Exact where the quotient has less than 112 bits: it is a whole number, and multiplied it gives a - rest. */
        if (whole < 0x1p50Q && whole > -0x1p50Q && b * 0x1p52Q == (__float128)(vis_i128)(b * 0x1p52Q)
            && bits_of(b) << 76 == 0)
            good = good && whole == (__float128)(vis_i128)whole && whole * b == a - rest;
        if (!good)
            complain("fmod", &a, &b, &rest, &whole, 16);
    }
    vis_quad larger = vis_rt_fmaxtf(a, b), smaller = vis_rt_fmintf(a, b);
    if (a == a && b == b && (a != 0 || b != 0)) {
        same_quad("fmax", a, b, larger, a < b ? b : a);
        same_quad("fmin", a, b, smaller, a < b ? a : b);
    }
    int n = (int)(word() % 400) - 200;
    __float128 factor = 1;
    for (int i = n; i > 0; i--)
        factor *= 2;
    for (int i = n; i < 0; i++)
        factor /= 2;
    same_quad("ldexp", a, n, vis_rt_ldexptf(a, n), a * factor);
    vis_u128 bits = bits_of(a);
    int kind = is_nan(bits) ? !!(bits & QUIET) : (a > number_of(FRACTION | (vis_u128)(TOP - 1) << 112)) ? 9
        : a >= number_of(ONE) ? 8 : a > 0 ? 7 : a == 0 ? (bits & SIGN ? 5 : 6) : a > -number_of(ONE) ? 4
        : a >= -number_of(FRACTION | (vis_u128)(TOP - 1) << 112) ? 3 : 2;
    for (int i = 0; i < 10; i++)
        same_wide("isfpclass", bits, i, vis_rt_isfpclasstf(a, 1 << i), i == kind);
}

static void mathematics(void)
{
    vis_quad a = quad(), b = quad(), got;
    if (word() % 4 == 0)
        b = number_of(bits_of(a) ^ (word() % 2 ? SIGN : 0) ^ (word() % 2 ? word() % 8 : 0));
    vis_u128 bits = bits_of(a);
    int power, kind = is_nan(bits) ? FP_NAN : a - a != 0 ? FP_INFINITE : a == 0 ? FP_ZERO
        : a < number_of(ONE) && a > -number_of(ONE) ? FP_SUBNORMAL : FP_NORMAL;
    same_wide("fpclassify", bits, 0, vis_rt_fpclassifytf(a), kind);
    same_wide("signbit", bits, 0, vis_rt_signbittf(a), bits >> 127);
    if (!is_nan(bits_of(vis_rt_nantf("7"))))
        complain("nan", 0, 0, 0, 0, 0);
    got = vis_rt_frexptf(a, &power);
    if (kind == FP_NORMAL || kind == FP_SUBNORMAL) {
        __float128 size = got < 0 ? -got : got;
        same_quad("frexp", a, power, vis_rt_ldexptf(got, power), a);
        if (!(size >= 0.5Q && size < 1))
            complain("frexp", &a, &b, &got, &got, 16);
        same_wide("ilogb", bits, 0, vis_rt_ilogbtf(a), power - 1);
        same_quad("logb", a, a, vis_rt_logbtf(a), power - 1);
    } else {
        same_quad("frexp", a, a, got, a);
        same_quad("logb", a, a, vis_rt_logbtf(a), kind == FP_NAN ? a : kind == FP_ZERO ? -1 / 0.0 : 1 / 0.0);
        same_wide("ilogb", bits, 0, vis_rt_ilogbtf(a), kind == FP_INFINITE ? 0x7fffffff : -0x7fffffff - 1);
    }
    long far = (long)word() >> (word() % 2 ? 50 : 10);
    same_quad("scalbln", a, far, vis_rt_scalblntf(a, far), vis_rt_ldexptf(a, far > 99999 ? 99999 : far < -99999 ? -99999 : far));
    same_quad("modf", a, a, vis_rt_modftf(a) + vis_rt_trunctf(a), a);
    same_quad("fdim", a, b, vis_rt_fdimtf(a, b), a != a || b != b ? a + b : a > b ? a - b : 0);
    got = vis_rt_nextaftertf(a, b);
    if (a == a && b == b && a != b) {
        if (!(a < b ? got > a && got <= b : got < a && got >= b))
            complain("nextafter", &a, &b, &got, &got, 16);
        /* Nothing lies between. */
        vis_quad back = vis_rt_nextaftertf(got, a);
        if (back != a)
            complain("nextafter back", &a, &b, &got, &back, 16);
    } else if (a == a && b == b) {
        same_quad("nextafter", a, b, got, b);
    }
    if (a == a && b > 0 && b < number_of(INFINITE) && a - a == 0) {
        got = vis_rt_remaindertf(a, b);
        vis_quad cut = vis_rt_fmodtf(a, b), size = got < 0 ? -got : got;
        /* The same residue, and no more than half of b. */
        if (!(size <= b - size && (got == cut || got == cut - b || got == cut + b)))
            complain("remainder", &a, &b, &got, &cut, 16);
        if (size == b - size && size != 0) {
            vis_quad twice = vis_rt_fmodtf(a, b + b);
            int odd = twice >= b || twice <= -b;
            if ((got < 0) != ((a < 0) != odd))
                complain("remainder half", &a, &b, &got, &cut, 16);
        }
    }
}

static void fused(void)
{
    vis_quad a = quad(), b = quad(), c = quad();
    switch (word() % 6) {
    case 0: c = -(a * b); break;
    case 1: c = number_of(bits_of(-(a * b)) ^ word() % 16); break;
    case 2: c = number_of((bits_of(a * b) & ~FRACTION) | (bits_of(c) & FRACTION)); break;
    case 3: c = a * b * number_of(((vis_u128)(BIAS - 130 + word() % 260)) << 112); break;
    }
    vis_quad got = vis_rt_fmatf(a, b, c);
    same_quad("fma", a, b, got, fmaq(a, b, c));
    /* And without that library: a product of few digits is exact, so that only the sum is rounded. */
    a = number_of(bits_of(a) >> 60 << 60);
    b = number_of(bits_of(b) >> 60 << 60);
    if (a * b - a * b == 0 && (a * b > 0x1p-16000Q || a * b < -0x1p-16000Q))
        same_quad("fma exact", a, b, vis_rt_fmatf(a, b, c), a * b + c);
}

static unsigned short bits_of_half(_Float16 x)
{
    unsigned short bits;
    memcpy(&bits, &x, 2);
    return bits;
}

static void same_half(const char *what, double x, unsigned short got, unsigned short want)
{
    if ((want & 0x7fff) > 0x7c00 ? (got & 0x7fff) <= 0x7c00 : got != want)
        complain(what, &x, &x, &got, &want, 2);
}

/* bfloat16 is the upper half of a float; of two neighbours the nearer one, of two as near the even one. */
static void same_brain(const char *what, __float128 x, unsigned short got)
{
    union { unsigned bits; float value; } at = { (unsigned)got << 16 }, down = at, up = at;
    if (x != x) {
        if (at.value == at.value)
            complain(what, &x, &x, &got, &got, 2);
        return;
    }
    up.bits += 0x10000;
    down.bits -= (at.bits & 0x7fffffff) ? 0x10000 : 0;
    __float128 here = at.value, above = up.value, below = down.value, size = x < 0 ? -x : x;
    if (isinf(at.value))
        here = at.value < 0 ? -0x1p128Q : 0x1p128Q;
    if (isinf(up.value))
        above = up.value < 0 ? -0x1p128Q : 0x1p128Q;
    __float128 off = here < x ? x - here : here - x, more = above < x ? x - above : above - x;
    __float128 less = below < x ? x - below : below - x;
    int fits = isinf(at.value) ? size >= 0x1.ffp127Q || off <= less
                               : off <= more && off <= less && !((off == more || off == less) && off && (got & 1));
    if (!fits || (size != 0 && (x < 0) != (got >> 15)))
        complain(what, &x, &x, &got, &got, 2);
}

static void halves(void)
{
    double d = real();
    if (word() % 4) {
        union { double value; unsigned long bits; } x = { d };
        x.bits = (x.bits & 0x800fffffffffffffu) | (1023 - 28 + word() % 48) << 52;
        if (word() % 2)
            x.bits &= ~0ul << (38 + word() % 8);
        d = x.value;
    }
    same_half("truncdfhf", d, vis_rt_truncdfhf2(d), bits_of_half((_Float16)d));
    same_half("truncsfhf", d, vis_rt_truncsfhf2((float)d), bits_of_half((_Float16)(float)d));
    same_half("trunctfhf", d, vis_rt_trunctfhf2(d), bits_of_half((_Float16)d));
    same_brain("truncdfbf", d, vis_rt_truncdfbf2(d));
    same_brain("truncsfbf", (float)d, vis_rt_truncsfbf2((float)d));
    same_brain("trunctfbf", d, vis_rt_trunctfbf2(d));
    unsigned short bits = (unsigned short)word();
    _Float16 half;
    memcpy(&half, &bits, 2);
    same_float("extendhfsf", bits, vis_rt_extendhfsf2(bits), (float)half);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 10000;
    for (long i = 0; i < rounds; i++) {
        integers();
        quads();
        products();
        definitions();
        halves();
        mathematics();
        fused();
    }
    printf("%d failures in %ld rounds\n", failures, rounds);
    return failures != 0;
}
