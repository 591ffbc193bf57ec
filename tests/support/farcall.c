/* Runs on a foreign processor and does what a Python test tells it: calls functions, reads and writes memory.
 *
 * Requests arrive on stdin, replies leave on what was stdout; what the library prints goes to stderr. All numbers are
 * little-endian. A callback is a request in the other direction, during which requests are served as usual.
 * The protocol is written down in machines.py.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int in = 0, out;

static void get(void *to, size_t size) {
    for (char *at = to; size;) {
        ssize_t got = read(in, at, size);
        if (got <= 0)
            _exit(0);
        at += got;
        size -= (size_t)got;
    }
}

static void put(const void *from, size_t size) {
    for (const char *at = from; size;) {
        ssize_t done = write(out, at, size);
        if (done <= 0)
            _exit(0);
        at += done;
        size -= (size_t)done;
    }
}

static uint64_t word(void) {
    uint64_t value;
    get(&value, sizeof value);
    return value;
}

static void reply(uint64_t value) {
    put(&value, sizeof value);
}

/* Integers and doubles fill registers of their own in both calling conventions, whatever their order; what is beyond
 * eight integers lies on the stack. So this one shape calls every function without structs by value. */
#define INTS                                                                                                       \
    uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double, double, double, double, \
        double, double, double, double, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t
typedef uint64_t (*whole_function)(INTS);
typedef double (*real_function)(INTS);
#define PASSED                                                                                                   \
    i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], i[8], i[9], \
        i[10], i[11], i[12], i[13], i[14], i[15]

static void call(void) {
    uint64_t function = word(), real = word(), i[16], result;
    double d[8], number;
    get(i, sizeof i);
    get(d, sizeof d);
    if (real) {
        number = ((real_function)function)(PASSED);
        memcpy(&result, &number, sizeof result);
    } else {
        result = ((whole_function)function)(PASSED);
    }
    put("r", 1);
    reply(result);
}

static uint64_t serve(void) {
    for (;;) {
        char request;
        get(&request, 1);
        uint64_t address, size;
        char name[512], *memory;
        switch (request) {
        case 'S': /* the address of a symbol */
            size = word();
            if (size >= sizeof name)
                abort();
            get(name, size);
            name[size] = 0;
            reply((uint64_t)dlsym(RTLD_DEFAULT, name));
            break;
        case 'A': /* new memory */
            size = word();
            memory = malloc(size ? size : 1);
            if (!memory)
                abort();
            reply((uint64_t)memory);
            break;
        case 'F':
            free((void *)word());
            break;
        case 'W':
            address = word();
            size = word();
            get((void *)address, size);
            break;
        case 'R':
            address = word();
            size = word();
            put((void *)address, size);
            break;
        case 'L': /* the length of a string */
            reply(strlen((char *)word()));
            break;
        case 'C':
            call();
            break;
        case 'Y': /* the result of a callback */
            return word();
        default:
            abort();
        }
    }
}

static uint64_t called(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                       uint64_t g, uint64_t h, double p, double q, double r, double s) {
    uint64_t ints[] = {number, a, b, c, d, e, f, g, h};
    double doubles[] = {p, q, r, s};
    put("c", 1);
    put(ints, sizeof ints);
    put(doubles, sizeof doubles);
    return serve();
}

#define CALLBACK(n)                                                                                              \
    static uint64_t callback_##n(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, \
                                 uint64_t h, double p, double q, double r, double s) {                            \
        return called(n - 100, a, b, c, d, e, f, g, h, p, q, r, s);                                                     \
    }
#define TEN(M, n) M(n##0) M(n##1) M(n##2) M(n##3) M(n##4) M(n##5) M(n##6) M(n##7) M(n##8) M(n##9)
#define ALL(M) TEN(M, 10) TEN(M, 11) TEN(M, 12) TEN(M, 13) TEN(M, 14) TEN(M, 15) TEN(M, 16) TEN(M, 17) TEN(M, 18) TEN(M, 19)
ALL(CALLBACK)
#define ADDRESS(n) (uint64_t)callback_##n,

int main(int argc, char **argv) {
    const uint64_t callbacks[] = {ALL(ADDRESS)};
    out = dup(1);
    dup2(2, 1);
    for (int i = 1; i < argc; i++)
        if (!dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL)) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    put("farcall1", 8);
    put(callbacks, sizeof callbacks);
    serve();
    return 0;
}
