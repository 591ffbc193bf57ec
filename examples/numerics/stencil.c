/* One step of a five-point stencil. */
#include "numerics.h"

#include <string.h>

void num_stencil(size_t rows, size_t columns, float centre, float side, const float *restrict in,
                 float *restrict out)
{
    for (size_t row = 0; row < rows; row++) {
        const float *here = in + row * columns;
        float *to = out + row * columns;
        if (row == 0 || row == rows - 1 || columns < 3) {
            memcpy(to, here, columns * sizeof *to);
            continue;
        }
        const float *above = here - columns, *below = here + columns;
        to[0] = here[0];
        for (size_t i = 1; i < columns - 1; i++)
            to[i] = centre * here[i] + side * ((above[i] + below[i]) + (here[i - 1] + here[i + 1]));
        to[columns - 1] = here[columns - 1];
    }
}
