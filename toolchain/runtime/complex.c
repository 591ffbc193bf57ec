/* Products and quotients of complex numbers as ISO C Annex G wants them: an infinity of one part is an infinity of the
 * whole, also where the naive formula gives two NaNs. Compilers call these functions, the first two only for such NaNs.
 */
#include "vis_rt.h"

#define INFINITE(x) (__builtin_fabs(x) == __builtin_inf())
#define NOT_A_NUMBER(x) ((x) != (x))

/* 1 with x's sign for infinities, 0 with x's sign for the rest. */
static double boxed(double x)
{
    return __builtin_copysign(INFINITE(x) ? 1.0 : 0.0, x);
}

static double unsigned_nan_to_zero(double x)
{
    return NOT_A_NUMBER(x) ? __builtin_copysign(0.0, x) : x;
}

/* Annex G.5.1: the parts of (a + bi)(c + di) when both came out as NaN; returns whether they are to be replaced. */
static int recover_product(double a, double b, double c, double d, double *real, double *imaginary)
{
    int again = 0;
    double ac = a * c, bd = b * d, ad = a * d, bc = b * c;
    if (INFINITE(a) || INFINITE(b)) {
        a = boxed(a);
        b = boxed(b);
        c = unsigned_nan_to_zero(c);
        d = unsigned_nan_to_zero(d);
        again = 1;
    }
    if (INFINITE(c) || INFINITE(d)) {
        c = boxed(c);
        d = boxed(d);
        a = unsigned_nan_to_zero(a);
        b = unsigned_nan_to_zero(b);
        again = 1;
    }
    if (!again && (INFINITE(ac) || INFINITE(bd) || INFINITE(ad) || INFINITE(bc))) {
        a = unsigned_nan_to_zero(a);
        b = unsigned_nan_to_zero(b);
        c = unsigned_nan_to_zero(c);
        d = unsigned_nan_to_zero(d);
        again = 1;
    }
    if (again) {
        *real = __builtin_inf() * (a * c - b * d);
        *imaginary = __builtin_inf() * (a * d + b * c);
    }
    return again;
}

static _Complex double pair(double real, double imaginary)
{
    _Complex double result;
    __real__ result = real;
    __imag__ result = imaginary;
    return result;
}

static _Complex float small_pair(double real, double imaginary)
{
    _Complex float result;
    __real__ result = (float)real;
    __imag__ result = (float)imaginary;
    return result;
}

_Complex double vis_rt_muldc3(double a, double b, double c, double d)
{
    double real = a * c - b * d, imaginary = a * d + b * c;
    if (NOT_A_NUMBER(real) && NOT_A_NUMBER(imaginary))
        recover_product(a, b, c, d, &real, &imaginary);
    return pair(real, imaginary);
}

_Complex float vis_rt_mulsc3(float a, float b, float c, float d)
{
    float real = a * c - b * d, imaginary = a * d + b * c;
    if (NOT_A_NUMBER(real) && NOT_A_NUMBER(imaginary)) {
        double x, y;
        /* An overflow of float is one of the infinities that count, and double has none there. */
        float ac = a * c, bd = b * d, ad = a * d, bc = b * c;
        if (recover_product(a, b, c, d, &x, &y))
            return small_pair(x, y);
        if (INFINITE(ac) || INFINITE(bd) || INFINITE(ad) || INFINITE(bc)) {
            double p = unsigned_nan_to_zero(a), q = unsigned_nan_to_zero(b), r = unsigned_nan_to_zero(c),
                   s = unsigned_nan_to_zero(d);
            return small_pair(__builtin_inf() * (p * r - q * s), __builtin_inf() * (p * s + q * r));
        }
    }
    return small_pair(real, imaginary);
}

/* x * 2^n. The steps keep every factor a normal number; only the last product can be rounded. */
static double scaled(double x, int n)
{
    const double up = 0x1p1000, down = 0x1p-1000;
    for (; n > 1000; n -= 1000)
        x *= up;
    for (; n < -1000; n += 1000)
        x *= down;
    union { vis_u64 bits; double value; } factor = { (vis_u64)(n + 1023) << 52 };
    return x * factor.value;
}

/* floor(log2(x)) of a positive finite number. */
static int exponent_of(double x)
{
    union { double value; vis_u64 bits; } number = { x };
    int exponent = (int)(number.bits >> 52 & 0x7ff);
    return exponent ? exponent - 1023 : 11 - 1022 - __builtin_clzl(number.bits);
}

/* Annex G.5.1: what is left to do when both parts of a quotient are NaN. */
static void recover_quotient(double a, double b, double c, double d, double *real, double *imaginary)
{
    if (c == 0 && d == 0 && (!NOT_A_NUMBER(a) || !NOT_A_NUMBER(b))) {
        *real = __builtin_copysign(__builtin_inf(), c) * a;
        *imaginary = __builtin_copysign(__builtin_inf(), c) * b;
    } else if ((INFINITE(a) || INFINITE(b)) && c - c == 0 && d - d == 0) {
        a = boxed(a);
        b = boxed(b);
        *real = __builtin_inf() * (a * c + b * d);
        *imaginary = __builtin_inf() * (b * c - a * d);
    } else if ((INFINITE(c) || INFINITE(d)) && a - a == 0 && b - b == 0) {
        c = boxed(c);
        d = boxed(d);
        *real = 0.0 * (a * c + b * d);
        *imaginary = 0.0 * (b * c - a * d);
    }
}

_Complex double vis_rt_divdc3(double a, double b, double c, double d)
{
    double larger = __builtin_fabs(c) > __builtin_fabs(d) ? __builtin_fabs(c) : __builtin_fabs(d);
    double x = a, y = b, u = c, v = d;
    int shift = 0, shift_up = 0;
    if (larger > 0 && larger < __builtin_inf()) {
        shift = exponent_of(larger); /* so that squares neither overflow nor vanish */
        u = scaled(c, -shift);
        v = scaled(d, -shift);
        double top = __builtin_fabs(a) > __builtin_fabs(b) ? __builtin_fabs(a) : __builtin_fabs(b);
        if (top > 0 && top < __builtin_inf()) {
            shift_up = exponent_of(top);
            x = scaled(a, -shift_up);
            y = scaled(b, -shift_up);
        }
    }
    double squares = u * u + v * v;
    double real = scaled((x * u + y * v) / squares, shift_up - shift);
    double imaginary = scaled((y * u - x * v) / squares, shift_up - shift);
    if (NOT_A_NUMBER(real) && NOT_A_NUMBER(imaginary))
        recover_quotient(a, b, c, d, &real, &imaginary);
    return pair(real, imaginary);
}

_Complex float vis_rt_divsc3(float a, float b, float c, float d)
{
    /* In double, neither the products nor the squares of floats can overflow or vanish. */
    double x = a, y = b, u = c, v = d, squares = u * u + v * v;
    double real = (x * u + y * v) / squares, imaginary = (y * u - x * v) / squares;
    if (NOT_A_NUMBER(real) && NOT_A_NUMBER(imaginary))
        recover_quotient(x, y, u, v, &real, &imaginary);
    return small_pair(real, imaginary);
}
