/* <sys/timerfd.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/timerfd.h> is not in the platform interface: it belongs to one kernel: use the timeout of poll"
