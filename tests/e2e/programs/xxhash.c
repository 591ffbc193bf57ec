/* Prints the hashes of noise of many sizes: one line for each size. The test compares them with Python's xxhash. */
#include <inttypes.h>
#include <string.h>

#include "noise.h"
#include "xxhash.h"

int main(void) {
    static const size_t sizes[] = {0, 1, 3, 4, 8, 9, 16, 17, 32, 100, 128, 129, 240, 241, 1024, 1025, 4096, 100003};
    unsigned char *data = noise(100003, 42);
    XXH3_state_t *state = XXH3_createState();
    XXH64_state_t *older = XXH64_createState();
    if (state == NULL || older == NULL) {
        return 2;
    }
    printf("version %u\n", XXH_versionNumber());
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = sizes[i], half = size / 3;
        XXH128_hash_t wide = XXH3_128bits_withSeed(data, size, 5), streamed;
        XXH3_128bits_reset_withSeed(state, 5);
        XXH3_128bits_update(state, data, half);
        XXH3_128bits_update(state, data + half, size - half);
        streamed = XXH3_128bits_digest(state);
        XXH64_reset(older, 7);
        XXH64_update(older, data, half);
        XXH64_update(older, data + half, size - half);
        if (!XXH128_isEqual(wide, streamed) || XXH64_digest(older) != XXH64(data, size, 7)) {
            printf("the stream differs at %zu\n", size);
            return 1;
        }
        printf("%zu %08" PRIx32 " %016" PRIx64 " %016" PRIx64 " %016" PRIx64 "%016" PRIx64 "\n", size,
               (uint32_t)XXH32(data, size, 3), (uint64_t)XXH64(data, size, 7), (uint64_t)XXH3_64bits(data, size),
               (uint64_t)wide.high64, (uint64_t)wide.low64);
    }
    XXH3_freeState(state);
    XXH64_freeState(older);
    free(data);
    return 0;
}
