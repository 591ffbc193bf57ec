/* <sys/io.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/io.h> is not in the platform interface: ports belong to one processor"
