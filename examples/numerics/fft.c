/* The fast Fourier transform of a power of two of complex numbers.
 *
 * Stockham's algorithm with passes of radix 4, and one of radix 2 where needed: each pass reads one pair of arrays and
 * writes the other, already in the right order, so there is no bit reversal. Real and imaginary parts are apart, which
 * lets all inner loops run over neighbouring elements.
 */
#include "numerics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct num_fft {
    size_t n;
    double *spare_re, *spare_im;
    double *twiddles; /* for each pass of radix 4: cos and sin of 1, 2 and 3 times the angle, six arrays in a row */
};

num_fft *num_fft_new(size_t n)
{
    if (n == 0 || (n & (n - 1)) || n > NUM_FFT_MAX)
        return NULL;
    num_fft *plan = malloc(sizeof *plan);
    /* The passes have n/4, n/16, ... twiddles of six numbers: less than 2 n altogether. */
    double *memory = malloc(sizeof(double) * 4 * n);
    if (!plan || !memory) {
        free(plan);
        free(memory);
        return NULL;
    }
    plan->n = n;
    plan->spare_re = memory;
    plan->spare_im = memory + n;
    plan->twiddles = memory + 2 * n;
    double *w = plan->twiddles;
    for (size_t length = n; length >= 4; length /= 4) {
        size_t quarter = length / 4;
        for (size_t factor = 1; factor <= 3; factor++, w += 2 * quarter)
            for (size_t p = 0; p < quarter; p++) {
                double angle = 6.283185307179586 * (double)(factor * p) / (double)length;
                w[p] = cos(angle);
                w[quarter + p] = -sin(angle);
            }
    }
    return plan;
}

void num_fft_free(num_fft *plan)
{
    if (plan) {
        free(plan->spare_re);
        free(plan);
    }
}

/* One butterfly of radix 4: reads x[i], x[i + step], ... and writes y[o], y[o + apart], ...; the outputs but the first
 * are turned by the twiddles (c1, s1), (c2, s2), (c3, s3). */
#define BUTTERFLY(i, step, o, apart, c1, s1, c2, s2, c3, s3)                                                           \
    do {                                                                                                               \
        double ar = xr[i], ai = xi[i], br = xr[(i) + (step)], bi = xi[(i) + (step)];                                   \
        double cr = xr[(i) + 2 * (step)], ci = xi[(i) + 2 * (step)];                                                   \
        double dr = xr[(i) + 3 * (step)], di = xi[(i) + 3 * (step)];                                                   \
        double acr = ar + cr, aci = ai + ci, amr = ar - cr, ami = ai - ci;                                             \
        double bdr = br + dr, bdi = bi + di, bmr = br - dr, bmi = bi - di;                                             \
        double r1 = amr + bmi, i1 = ami - bmr, r2 = acr - bdr, i2 = aci - bdi, r3 = amr - bmi, i3 = ami + bmr;         \
        yr[o] = acr + bdr;                                                                                             \
        yi[o] = aci + bdi;                                                                                             \
        yr[(o) + (apart)] = r1 * (c1) - i1 * (s1);                                                                     \
        yi[(o) + (apart)] = r1 * (s1) + i1 * (c1);                                                                     \
        yr[(o) + 2 * (apart)] = r2 * (c2) - i2 * (s2);                                                                 \
        yi[(o) + 2 * (apart)] = r2 * (s2) + i2 * (c2);                                                                 \
        yr[(o) + 3 * (apart)] = r3 * (c3) - i3 * (s3);                                                                 \
        yi[(o) + 3 * (apart)] = r3 * (s3) + i3 * (c3);                                                                 \
    } while (0)

/* The first pass: every butterfly has its own twiddles, and the loop runs over them. */
static void first_pass(size_t quarter, const double *restrict w, const double *restrict xr, const double *restrict xi,
                       double *restrict yr, double *restrict yi)
{
    for (size_t p = 0; p < quarter; p++)
        BUTTERFLY(p, quarter, 4 * p, 1, w[p], w[quarter + p], w[2 * quarter + p], w[3 * quarter + p],
                  w[4 * quarter + p], w[5 * quarter + p]);
}

/* A later pass: `stride` butterflies share their twiddles, and the loop runs over those. */
static inline void next_pass(size_t quarter, size_t stride, const double *restrict w, const double *restrict xr,
                             const double *restrict xi, double *restrict yr, double *restrict yi)
{
    for (size_t p = 0; p < quarter; p++) {
        double c1 = w[p], s1 = w[quarter + p], c2 = w[2 * quarter + p], s2 = w[3 * quarter + p];
        double c3 = w[4 * quarter + p], s3 = w[5 * quarter + p];
        for (size_t q = 0; q < stride; q++)
            BUTTERFLY(q + stride * p, stride * quarter, q + stride * 4 * p, stride, c1, s1, c2, s2, c3, s3);
    }
}

/* The last pass when the number of factors of two is odd. */
static void last_pass(size_t half, const double *restrict xr, const double *restrict xi, double *restrict yr,
                      double *restrict yi)
{
    for (size_t q = 0; q < half; q++) {
        double ar = xr[q], ai = xi[q], br = xr[q + half], bi = xi[q + half];
        yr[q] = ar + br;
        yi[q] = ai + bi;
        yr[q + half] = ar - br;
        yi[q + half] = ai - bi;
    }
}

void num_fft_run(num_fft *plan, enum num_direction direction, double *restrict re, double *restrict im)
{
    size_t n = plan->n;
    /* The inverse is the forward transform with the parts exchanged. */
    double *to_re = direction == NUM_INVERSE ? im : re, *to_im = direction == NUM_INVERSE ? re : im;
    double *xr = to_re, *xi = to_im, *yr = plan->spare_re, *yi = plan->spare_im, *swap;
    const double *w = plan->twiddles;
    size_t length = n, stride = 1;
    for (; length >= 4; length /= 4, stride *= 4) {
        size_t quarter = length / 4;
        if (stride == 1)
            first_pass(quarter, w, xr, xi, yr, yi);
        else if (stride == 4)
            next_pass(quarter, 4, w, xr, xi, yr, yi);
        else
            next_pass(quarter, stride, w, xr, xi, yr, yi);
        w += 6 * quarter;
        swap = xr, xr = yr, yr = swap;
        swap = xi, xi = yi, yi = swap;
    }
    if (length == 2) {
        last_pass(n / 2, xr, xi, yr, yi);
        xr = yr;
        xi = yi;
    }
    double factor = direction == NUM_INVERSE ? 1.0 / (double)n : 1.0;
    if (xr != to_re || factor != 1.0)
        for (size_t i = 0; i < n; i++) {
            to_re[i] = xr[i] * factor;
            to_im[i] = xi[i] * factor;
        }
}
