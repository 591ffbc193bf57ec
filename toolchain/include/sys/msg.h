/* <sys/msg.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/msg.h> is not in the platform interface: its structures differ between processors: use pipes or sockets"
