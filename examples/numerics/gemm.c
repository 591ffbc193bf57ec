/* C = alpha * A * B + beta * C in single precision, blocked for caches and registers.
 *
 * The matrices are cut so that a block of A stays in the second-level cache and a strip of B in the first. Both are
 * copied into the order in which the innermost loop reads them, edges filled up with zeros, so that this loop has no
 * special cases: it keeps a tile of ROWS x COLUMNS sums in registers. The sums over k are taken in the same order on
 * every machine.
 */
#include "numerics.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 6,     /* of a tile */
    COLUMNS = 16, /* of a tile */
    K_BLOCK = 256,
    M_BLOCK = 96,  /* a multiple of ROWS */
    N_BLOCK = 1024 /* a multiple of COLUMNS */
};

/* Copies `rows` x `depth` of A into strips of ROWS rows, column after column. */
static void pack_a(size_t rows, size_t depth, const float *restrict a, size_t stride, float *restrict packed)
{
    for (size_t top = 0; top < rows; top += ROWS) {
        size_t count = rows - top < ROWS ? rows - top : ROWS;
        for (size_t p = 0; p < depth; p++)
            for (size_t i = 0; i < ROWS; i++)
                *packed++ = i < count ? a[(top + i) * stride + p] : 0;
    }
}

/* Copies `depth` x `columns` of B into strips of COLUMNS columns, row after row. */
static void pack_b(size_t depth, size_t columns, const float *restrict b, size_t stride, float *restrict packed)
{
    for (size_t left = 0; left < columns; left += COLUMNS) {
        size_t count = columns - left < COLUMNS ? columns - left : COLUMNS;
        for (size_t p = 0; p < depth; p++, packed += COLUMNS) {
            memcpy(packed, b + p * stride + left, count * sizeof *packed);
            memset(packed + count, 0, (COLUMNS - count) * sizeof *packed);
        }
    }
}

/* GCC would unroll the innermost loop before it looks for vectors, and then finds none: the code is 30 times slower. */
#if defined(__GNUC__) && !defined(__clang__)
#define KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define KEEP_LOOP
#endif

/* Adds up one tile of A * B into `tile`. */
static void multiply(size_t depth, const float *restrict a, const float *restrict b, float tile[restrict ROWS][COLUMNS])
{
    float sum[ROWS][COLUMNS] = {{0}};
    for (size_t p = 0; p < depth; p++, a += ROWS, b += COLUMNS)
        for (size_t i = 0; i < ROWS; i++) {
            KEEP_LOOP
            for (size_t j = 0; j < COLUMNS; j++)
                sum[i][j] += a[i] * b[j];
        }
    memcpy(tile, sum, sizeof sum);
}

static void scale(size_t count, float beta, float *c)
{
    if (beta == 0)
        memset(c, 0, count * sizeof *c);
    else if (beta != 1)
        for (size_t i = 0; i < count; i++)
            c[i] *= beta;
}

int num_gemm(size_t m, size_t n, size_t k, float alpha, const float *restrict a, const float *restrict b, float beta,
             float *restrict c)
{
    float tile[ROWS][COLUMNS];
    float *packed_a = malloc(sizeof(float) * M_BLOCK * K_BLOCK);
    float *packed_b = malloc(sizeof(float) * N_BLOCK * K_BLOCK);
    if (!packed_a || !packed_b) {
        free(packed_a);
        free(packed_b);
        return -1;
    }
    scale(m * n, beta, c);
    for (size_t left = 0; left < n; left += N_BLOCK) {
        size_t columns = n - left < N_BLOCK ? n - left : N_BLOCK;
        for (size_t first = 0; first < k; first += K_BLOCK) {
            size_t depth = k - first < K_BLOCK ? k - first : K_BLOCK;
            pack_b(depth, columns, b + first * n + left, n, packed_b);
            for (size_t top = 0; top < m; top += M_BLOCK) {
                size_t rows = m - top < M_BLOCK ? m - top : M_BLOCK;
                pack_a(rows, depth, a + top * k + first, k, packed_a);
                for (size_t j = 0; j < columns; j += COLUMNS)
                    for (size_t i = 0; i < rows; i += ROWS) {
                        size_t high = rows - i < ROWS ? rows - i : ROWS;
                        size_t wide = columns - j < COLUMNS ? columns - j : COLUMNS;
                        float *to = c + (top + i) * n + left + j;
                        multiply(depth, packed_a + i * depth, packed_b + j * depth, tile);
                        for (size_t row = 0; row < high; row++)
                            for (size_t column = 0; column < wide; column++)
                                to[row * n + column] += alpha * tile[row][column];
                    }
            }
        }
    }
    free(packed_a);
    free(packed_b);
    return 0;
}
