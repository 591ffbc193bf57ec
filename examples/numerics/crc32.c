/* CRC-32 as in zlib, PNG and Ethernet, sixteen bytes at a time.
 *
 * The remainder of a sum is the sum of the remainders, so sixteen bytes can be looked up in sixteen tables at once. For
 * the same reason a table follows from its eight entries for single bits; the compiler works out the others.
 *
 * The sum of the sixteen is turned by one bit before each is added, and the tables are turned the other way beforehand.
 * In a plain sum of table entries compilers see work for gather instructions, which take three times as long.
 */
#include "numerics.h"

#define TURN_RIGHT(x, bits) ((x) >> (bits) | (x) << (-(bits) & 31))
#define ENTRY(i, a, b, c, d, e, f, g, h)                                                                               \
    (((i) & 128 ? (a) : 0u) ^ ((i) & 64 ? (b) : 0u) ^ ((i) & 32 ? (c) : 0u) ^ ((i) & 16 ? (d) : 0u) ^                  \
     ((i) & 8 ? (e) : 0u) ^ ((i) & 4 ? (f) : 0u) ^ ((i) & 2 ? (g) : 0u) ^ ((i) & 1 ? (h) : 0u))
#define ENTRIES4(i, ...)                                                                                               \
    ENTRY((i), __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__), ENTRY((i) + 3, __VA_ARGS__)
#define ENTRIES16(i, ...)                                                                                              \
    ENTRIES4((i), __VA_ARGS__), ENTRIES4((i) + 4, __VA_ARGS__), ENTRIES4((i) + 8, __VA_ARGS__),                        \
        ENTRIES4((i) + 12, __VA_ARGS__)
#define ENTRIES64(i, ...)                                                                                              \
    ENTRIES16((i), __VA_ARGS__), ENTRIES16((i) + 16, __VA_ARGS__), ENTRIES16((i) + 32, __VA_ARGS__),                   \
        ENTRIES16((i) + 48, __VA_ARGS__)
#define ENTRIES(...)                                                                                                   \
    {ENTRIES64(0, __VA_ARGS__), ENTRIES64(64, __VA_ARGS__), ENTRIES64(128, __VA_ARGS__), ENTRIES64(192, __VA_ARGS__)}
#define SLICE(turn, a, b, c, d, e, f, g, h)                                                                            \
    ENTRIES(TURN_RIGHT(a, turn), TURN_RIGHT(b, turn), TURN_RIGHT(c, turn), TURN_RIGHT(d, turn), TURN_RIGHT(e, turn),   \
            TURN_RIGHT(f, turn), TURN_RIGHT(g, turn), TURN_RIGHT(h, turn))

/* Row s, column j: what byte j becomes when s more bytes follow it, turned right by (s + 4) % 16 bits. The numbers are
 * those for the bytes 128, 64, ... 1: the powers of x from the 32nd on, modulo the polynomial (bits reversed). */
static const uint32_t table[16][256] = {
    SLICE(4, 0xedb88320u, 0x76dc4190u, 0x3b6e20c8u, 0x1db71064u, 0x0edb8832u, 0x076dc419u, 0xee0e612cu, 0x77073096u),
    SLICE(5, 0x3b83984bu, 0xf0794f05u, 0x958424a2u, 0x4ac21251u, 0xc8d98a08u, 0x646cc504u, 0x32366282u, 0x191b3141u),
    SLICE(6, 0xe1351b80u, 0x709a8dc0u, 0x384d46e0u, 0x1c26a370u, 0x0e1351b8u, 0x0709a8dcu, 0x0384d46eu, 0x01c26a37u),
    SLICE(7, 0xed59b63bu, 0x9b14583du, 0xa032af3eu, 0x5019579fu, 0xc5b428efu, 0x8f629757u, 0xaa09c88bu, 0xb8bc6765u),
    SLICE(8, 0xb1e6b092u, 0x58f35849u, 0xc1c12f04u, 0x60e09782u, 0x30704bc1u, 0xf580a6c0u, 0x7ac05360u, 0x3d6029b0u),
    SLICE(9, 0x1eb014d8u, 0x0f580a6cu, 0x07ac0536u, 0x03d6029bu, 0xec53826du, 0x9b914216u, 0x4dc8a10bu, 0xcb5cd3a5u),
    SLICE(10, 0x8816eaf2u, 0x440b7579u, 0xcfbd399cu, 0x67de9cceu, 0x33ef4e67u, 0xf44f2413u, 0x979f1129u, 0xa6770bb4u),
    SLICE(11, 0x533b85dau, 0x299dc2edu, 0xf9766256u, 0x7cbb312bu, 0xd3e51bb5u, 0x844a0efau, 0x4225077du, 0xccaa009eu),
    SLICE(12, 0x6655004fu, 0xde920307u, 0x82f182a3u, 0xacc04271u, 0xbbd8a218u, 0x5dec510cu, 0x2ef62886u, 0x177b1443u),
    SLICE(13, 0xe6050901u, 0x9eba07a0u, 0x4f5d03d0u, 0x27ae81e8u, 0x13d740f4u, 0x09eba07au, 0x04f5d03du, 0xefc26b3eu),
    SLICE(14, 0x77e1359fu, 0xd64819efu, 0x869c8fd7u, 0xaef6c4cbu, 0xbac3e145u, 0xb0d97382u, 0x586cb9c1u, 0xc18edfc0u),
    SLICE(15, 0x60c76fe0u, 0x3063b7f0u, 0x1831dbf8u, 0x0c18edfcu, 0x060c76feu, 0x03063b7fu, 0xec3b9e9fu, 0x9ba54c6fu),
    SLICE(0, 0xa06a2517u, 0xbd8d91abu, 0xb37e4bf5u, 0xb407a6dau, 0x5a03d36du, 0xc0b96a96u, 0x605cb54bu, 0xdd96d985u),
    SLICE(1, 0x8373efe2u, 0x41b9f7f1u, 0xcd6478d8u, 0x66b23c6cu, 0x33591e36u, 0x19ac8f1bu, 0xe16ec4adu, 0x9d0fe176u),
    SLICE(2, 0x4e87f0bbu, 0xcafb7b7du, 0x88c53e9eu, 0x44629f4fu, 0xcf89cc87u, 0x8a7c6563u, 0xa886b191u, 0xb9fbdbe8u),
    SLICE(3, 0x5cfdedf4u, 0x2e7ef6fau, 0x173f7b7du, 0xe6273e9eu, 0x73139f4fu, 0xd4314c87u, 0x87a02563u, 0xae689191u),
};

static uint32_t turn_left(uint32_t x, unsigned bits)
{
    return x << bits | x >> (32 - bits);
}

uint32_t num_crc32(uint32_t crc, const uint8_t *data, size_t size)
{
    crc = ~crc;
    for (; size >= 16; size -= 16, data += 16) {
        /* The bytes that do not depend on the last round come first; they can be looked up while it ends. */
        uint32_t sum = 0;
        for (unsigned i = 4; i < 16; i++)
            sum = turn_left(sum, 1) ^ table[15 - i][data[i]];
        for (unsigned i = 0; i < 4; i++)
            sum = turn_left(sum, 1) ^ table[15 - i][(crc >> 8 * i & 255) ^ data[i]];
        crc = sum;
    }
    for (; size > 0; size--, data++)
        crc = crc >> 8 ^ turn_left(table[0][(crc ^ *data) & 255], 4);
    return ~crc;
}
