/* <mqueue.h> is not in the platform interface (docs/spec/platform.md). */
#error "<mqueue.h> is not in the platform interface: its numbers differ between systems: use pipes or sockets"
