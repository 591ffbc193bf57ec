/* <aio.h> is not in the platform interface (docs/spec/platform.md). */
#error "<aio.h> is not in the platform interface: use threads, or poll"
