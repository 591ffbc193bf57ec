/* <sys/reg.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/reg.h> is not in the platform interface: it holds the registers of one processor"
