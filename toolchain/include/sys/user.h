/* <sys/user.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/user.h> is not in the platform interface: it holds the registers of one processor"
