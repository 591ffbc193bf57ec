/* Prints Fourier transforms of noise as exact hexadecimal numbers. The test compares them with NumPy's. */
#include "kfc.h"
#include "kiss_fft.h"
#include "kiss_fftnd.h"
#include "kiss_fftr.h"
#include "noise.h"

static float *samples(size_t count, uint32_t seed) {
    float *values = malloc(count * sizeof *values);
    if (values == NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = ((float)noise_step(&seed) - 127.5f) / 128.0f;
    }
    return values;
}

static void print_complex(const char *label, int size, const kiss_fft_cpx *values, int count) {
    printf("%s %d", label, size);
    for (int i = 0; i < count; i++) {
        printf(" %a %a", values[i].r, values[i].i);
    }
    printf("\n");
}

int main(void) {
    static const int sizes[] = {1, 2, 8, 30, 97, 128, 210};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int size = sizes[i];
        kiss_fft_cpx *in = (kiss_fft_cpx *)samples(2 * (size_t)size, (uint32_t)size);
        kiss_fft_cpx *out = malloc((size_t)size * sizeof *out);
        for (int inverse = 0; inverse < 2; inverse++) {
            kiss_fft_cfg plan = kiss_fft_alloc(size, inverse, NULL, NULL);
            if (plan == NULL || out == NULL) {
                return 2;
            }
            kiss_fft(plan, in, out);
            print_complex(inverse ? "inverse" : "forward", size, out, size);
            kiss_fft_free(plan);
        }
        kfc_fft(size, in, out);
        print_complex("forward", size, out, size);
        free(in);
        free(out);
    }
    {
        int size = 60;
        float *in = samples((size_t)size, 60);
        kiss_fft_cpx out[31];
        kiss_fftr_cfg plan = kiss_fftr_alloc(size, 0, NULL, NULL);
        if (plan == NULL) {
            return 2;
        }
        kiss_fftr(plan, in, out);
        print_complex("real", size, out, 31);
        kiss_fftr_free(plan);
        free(in);
    }
    {
        int shape[2] = {4, 6};
        kiss_fft_cpx *in = (kiss_fft_cpx *)samples(48, 24), out[24];
        kiss_fftnd_cfg plan = kiss_fftnd_alloc(shape, 2, 0, NULL, NULL);
        if (plan == NULL) {
            return 2;
        }
        kiss_fftnd(plan, in, out);
        print_complex("plane", 24, out, 24);
        free(plan);
        free(in);
    }
    kfc_cleanup();
    printf("fast %d\n", kiss_fft_next_fast_size(1025));
    /* Complains on standard error, and gives nothing. */
    printf("odd %s\n", kiss_fftr_alloc(15, 0, NULL, NULL) == NULL ? "refused" : "allowed");
    return 0;
}
