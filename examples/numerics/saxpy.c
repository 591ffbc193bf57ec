/* y += a * x. The simplest loop that vectorises. */
#include "numerics.h"

void num_saxpy(size_t n, float a, const float *restrict x, float *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}
