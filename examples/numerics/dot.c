/* Dot products and other reductions.
 *
 * A compiler may not reorder a floating-point sum on its own. So the order is chosen here: LANES partial sums run side
 * by side, which any vector length can hold, and the answer does not depend on the machine.
 */
#include "numerics.h"

#include <math.h>

enum { LANES = 32 };

double num_dot(size_t n, const double *x, const double *y)
{
    double part[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            part[lane] += x[i + lane] * y[i + lane];
    for (size_t lane = 0; i + lane < n; lane++)
        part[lane] += x[i + lane] * y[i + lane];
    for (size_t width = LANES / 2; width > 0; width /= 2)
        for (size_t lane = 0; lane < width; lane++)
            part[lane] += part[lane + width];
    return part[0];
}

float num_dotf(size_t n, const float *x, const float *y)
{
    float part[2 * LANES] = {0};
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        for (size_t lane = 0; lane < 2 * LANES; lane++)
            part[lane] += x[i + lane] * y[i + lane];
    for (size_t lane = 0; i + lane < n; lane++)
        part[lane] += x[i + lane] * y[i + lane];
    for (size_t width = LANES; width > 0; width /= 2)
        for (size_t lane = 0; lane < width; lane++)
            part[lane] += part[lane + width];
    return part[0];
}

static inline void include(double value, double *low, double *high, double *sum)
{
    *low = value < *low ? value : *low;
    *high = value > *high ? value : *high;
    *sum += value;
}

void num_summary(size_t n, const double *restrict x, struct num_range *restrict result)
{
    double low[LANES], high[LANES], sum[LANES];
    for (size_t lane = 0; lane < LANES; lane++) {
        low[lane] = INFINITY;
        high[lane] = -INFINITY;
        sum[lane] = 0;
    }
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            include(x[i + lane], &low[lane], &high[lane], &sum[lane]);
    for (size_t lane = 0; i + lane < n; lane++)
        include(x[i + lane], &low[lane], &high[lane], &sum[lane]);
    for (size_t lane = 1; lane < LANES; lane++) {
        low[0] = low[lane] < low[0] ? low[lane] : low[0];
        high[0] = high[lane] > high[0] ? high[lane] : high[0];
        sum[0] += sum[lane];
    }
    result->low = low[0];
    result->high = high[0];
    result->mean = n ? sum[0] / (double)n : 0;
    result->count = n;
}
