/* <sys/mount.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/mount.h> is not in the platform interface: what is mounted is the system's business"
