#include "probe.h"

int probe_add(int a, int b)
{
    return a + b;
}

double probe_first(const double *x)
{
    return x[0];
}
