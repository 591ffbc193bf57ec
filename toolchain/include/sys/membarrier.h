/* <sys/membarrier.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/membarrier.h> is not in the platform interface: use <stdatomic.h>"
