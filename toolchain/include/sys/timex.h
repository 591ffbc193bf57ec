/* <sys/timex.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/timex.h> is not in the platform interface: the clock is the system's business"
