/* numerics: a small library of numerical kernels in plain portable C.
 *
 * It is the example of visget: every function here is written so that a compiler can use whatever vector
 * instructions the machine has, and none of them names one.
 *
 * Matrices are stored by rows without gaps. Arrays that a function reads must not overlap those that it writes.
 */
#ifndef NUMERICS_H
#define NUMERICS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define NUM_RESTRICT __restrict
#else
#define NUM_RESTRICT restrict
#endif

/* The version of this interface. */
#define NUM_VERSION 1
#define NUM_VERSION_TEXT "1.0.0"

/* The longest transform that num_fft_new() accepts. */
#define NUM_FFT_MAX 16777216

/* Which way a Fourier transform goes. */
enum num_direction {
    NUM_FORWARD = 0, /* from time to frequency, with exp(-2 pi i j k / n) */
    NUM_INVERSE = 1  /* back again, divided by n */
};

/* The smallest, the largest and the mean of an array; see num_summary(). */
struct num_range {
    double low;   /* the smallest element */
    double high;  /* the largest element */
    double mean;  /* the mean of all elements */
    size_t count; /* how many elements there were */
};

/* A prepared Fourier transform of one length: num_fft_new() makes it, num_fft_free() frees it. */
typedef struct num_fft num_fft;

/* Adds a times x to y, element by element: y[i] += a * x[i].
 *
 * n: how many elements x and y have.
 */
void num_saxpy(size_t n, float a, const float *NUM_RESTRICT x, float *NUM_RESTRICT y);

/* Returns the dot product of x and y: the sum of x[i] * y[i].
 *
 * The sum is taken in 32 interleaved parts, in the same order on every machine.
 */
double num_dot(size_t n, const double *x, const double *y);

/* Returns the dot product of x and y in single precision, summed as in num_dot(). */
float num_dotf(size_t n, const float *x, const float *y);

/* Finds the smallest, the largest and the mean element of x.
 *
 * For n = 0 low is positive infinity, high negative infinity and mean 0. NaN elements make mean NaN and are
 * otherwise passed over.
 */
void num_summary(size_t n, const double *NUM_RESTRICT x, struct num_range *NUM_RESTRICT result);

/* Multiplies matrices: C = alpha * A * B + beta * C.
 *
 * A has m rows and k columns, B has k rows and n columns, C has m rows and n columns. With beta = 0 what C held
 * does not matter, not even NaN.
 *
 * Returns 0, or -1 if there is not enough memory.
 */
int num_gemm(size_t m, size_t n, size_t k, float alpha, const float *NUM_RESTRICT a, const float *NUM_RESTRICT b,
             float beta, float *NUM_RESTRICT c);

/* Makes one step of a five-point stencil on a grid: out = centre * in + side * (the sum of the four neighbours).
 *
 * Points on the border have no four neighbours and are copied. With centre = 0 and side = 0.25 this is a step of
 * Jacobi's method for the Laplace equation.
 */
void num_stencil(size_t rows, size_t columns, float centre, float side, const float *NUM_RESTRICT in,
                 float *NUM_RESTRICT out);

/* Prepares Fourier transforms of n complex numbers; n is a power of two up to NUM_FFT_MAX.
 *
 * Returns NULL if n is something else or there is not enough memory.
 */
num_fft *num_fft_new(size_t n);

/* Transforms the n complex numbers re[i] + im[i] * i in place.
 *
 * One plan may be used by one thread at a time.
 */
void num_fft_run(num_fft *plan, enum num_direction direction, double *NUM_RESTRICT re, double *NUM_RESTRICT im);

/* Frees a plan; NULL is allowed. */
void num_fft_free(num_fft *plan);

/* Continues the CRC-32 of zlib, PNG and Ethernet over more bytes.
 *
 * crc: 0 for the first bytes, then what the last call returned.
 */
uint32_t num_crc32(uint32_t crc, const uint8_t *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
