/* Reads a zlib stream from standard input, tells what was in it, and compresses that again in several ways.
 * The test made the stream with Python's zlib, and decompresses with it what this program prints. */
#include "noise.h"
#include "zlib.h"

static int deflate_in_pieces(const char *label, int level, int window, const unsigned char *data, size_t size) {
    unsigned char out[1000], *all = malloc(compressBound(size) + 1000);
    size_t total = 0, at = 0;
    z_stream stream = {0};
    int status = deflateInit2(&stream, level, Z_DEFLATED, window, 9, Z_DEFAULT_STRATEGY);
    if (all == NULL || status != Z_OK) {
        return 1;
    }
    while (status == Z_OK) {
        size_t piece = size - at < 777 ? size - at : 777;
        stream.next_in = (unsigned char *)data + at;
        stream.avail_in = (uInt)piece;
        at += piece;
        do {
            stream.next_out = out;
            stream.avail_out = sizeof out;
            status = deflate(&stream, at == size ? Z_FINISH : Z_NO_FLUSH);
            for (size_t i = 0; i < sizeof out - stream.avail_out; i++) {
                all[total++] = out[i];
            }
        } while (status == Z_OK && stream.avail_out == 0);
        if (status == Z_BUF_ERROR) {
            status = Z_OK;
        }
    }
    print_hex(label, all, total);
    free(all);
    return status != Z_STREAM_END || deflateEnd(&stream) != Z_OK;
}

int main(void) {
    size_t packed_size;
    unsigned char *packed = everything(&packed_size);
    uLongf size = 1 << 20;
    unsigned char *data = malloc(size);
    int failed = 0;
    if (data == NULL || uncompress(data, &size, packed, (uLong)packed_size) != Z_OK) {
        printf("uncompress failed\n");
        return 1;
    }
    printf("version %s\n", zlibVersion());
    printf("content %lu %08lx %08lx\n", (unsigned long)size, crc32(0, data, (uInt)size), adler32(1, data, (uInt)size));
    printf("combined %08lx\n", crc32_combine(crc32(0, data, 100), crc32(0, data + 100, (uInt)size - 100), (z_off_t)size - 100));
    for (int level = 0; level <= 9; level += 3) {
        uLongf room = compressBound(size);
        unsigned char *out = malloc(room);
        if (out == NULL || compress2(out, &room, data, size, level) != Z_OK) {
            return 1;
        }
        print_hex("zlib", out, room);
        free(out);
    }
    failed |= deflate_in_pieces("raw", 5, -15, data, size);
    failed |= deflate_in_pieces("gzip", 9, 31, data, size);
    packed[packed_size / 2] ^= 0x10;
    size = 1 << 20;
    printf("damaged %s\n", zError(uncompress(data, &size, packed, (uLong)packed_size)));
    free(data);
    free(packed);
    return failed;
}
