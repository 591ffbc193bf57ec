/* <sys/reboot.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/reboot.h> is not in the platform interface: it belongs to one kernel"
