/* Input that C and Python make alike: the high bytes of a linear congruential generator. */
#ifndef NOISE_H
#define NOISE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint32_t noise_step(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 24;
}

static inline unsigned char *noise(size_t size, uint32_t seed) {
    unsigned char *data = malloc(size + 1);
    if (data == NULL) {
        abort();
    }
    for (size_t i = 0; i < size; i++) {
        data[i] = (unsigned char)noise_step(&seed);
    }
    return data;
}

/* All of standard input; *size becomes its length. */
static inline unsigned char *everything(size_t *size) {
    size_t room = 1 << 16, used = 0, got;
    unsigned char *data = malloc(room);
    while (data != NULL && (got = fread(data + used, 1, room - used, stdin)) > 0) {
        used += got;
        if (used == room) {
            room *= 2;
            data = realloc(data, room);
        }
    }
    if (data == NULL) {
        abort();
    }
    *size = used;
    return data;
}

static inline void print_hex(const char *label, const unsigned char *data, size_t size) {
    printf("%s ", label);
    for (size_t i = 0; i < size; i++) {
        printf("%02x", data[i]);
    }
    printf("\n");
}

#endif
