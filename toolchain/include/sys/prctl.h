/* <sys/prctl.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/prctl.h> is not in the platform interface: it belongs to one kernel: for the name of a thread use pthread_setname_np"
