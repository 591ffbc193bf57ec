/* <sys/swap.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/swap.h> is not in the platform interface: it belongs to one kernel"
