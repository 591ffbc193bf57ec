#ifndef PROBE_H
#define PROBE_H

/* Returns a + b. */
int probe_add(int a, int b);

/* Returns the first element of x. */
double probe_first(const double *x);

#endif
