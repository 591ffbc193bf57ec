/* <sys/timeb.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/timeb.h> is not in the platform interface: use clock_gettime"
