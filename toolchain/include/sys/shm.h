/* <sys/shm.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/shm.h> is not in the platform interface: its structures differ between processors: use shm_open and mmap"
