/* Reads an LZ4 frame from standard input, tells what was in it, and compresses that again in several ways.
 * The test made the frame with Python's lz4, and decompresses with it what this program prints. */
#include <string.h>

#include "lz4.h"
#include "lz4frame.h"
#include "lz4hc.h"
#include "noise.h"

int main(void) {
    size_t frame_size, at = 0, size = 0, room = 1 << 20, hint = 1;
    unsigned char *frame = everything(&frame_size), *data = malloc(room), *back = malloc(room), *out;
    LZ4F_dctx *context = NULL;
    if (data == NULL || back == NULL || LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) {
        return 2;
    }
    while (hint != 0 && at < frame_size) {
        size_t taken = frame_size - at < 1234 ? frame_size - at : 1234, given = room - size;
        hint = LZ4F_decompress(context, data + size, &given, frame + at, &taken, NULL);
        if (LZ4F_isError(hint)) {
            printf("decompress: %s\n", LZ4F_getErrorName(hint));
            return 1;
        }
        at += taken;
        size += given;
    }
    LZ4F_freeDecompressionContext(context);
    printf("version %s\n", LZ4_versionString());
    printf("content %zu\n", size);
    print_hex("data", data, size);

    int bound = LZ4_compressBound((int)size), packed;
    out = malloc((size_t)bound);
    if (out == NULL) {
        return 2;
    }
    packed = LZ4_compress_default((const char *)data, (char *)out, (int)size, bound);
    print_hex("block", out, (size_t)packed);
    if (LZ4_decompress_safe((const char *)out, (char *)back, packed, (int)room) != (int)size ||
        memcmp(data, back, size) != 0) {
        printf("the block does not come back\n");
        return 1;
    }
    packed = LZ4_compress_HC((const char *)data, (char *)out, (int)size, bound, LZ4HC_CLEVEL_MAX);
    print_hex("block", out, (size_t)packed);
    free(out);

    LZ4F_preferences_t wish;
    memset(&wish, 0, sizeof wish);
    wish.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
    wish.frameInfo.contentSize = size;
    room = LZ4F_compressFrameBound(size, &wish);
    out = malloc(room);
    if (out == NULL) {
        return 2;
    }
    room = LZ4F_compressFrame(out, room, data, size, &wish);
    print_hex("frame", out, room);
    free(out);
    free(back);
    free(data);
    free(frame);
    return LZ4F_isError(room) ? 1 : 0;
}
