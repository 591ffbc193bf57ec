/* <sys/sem.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/sem.h> is not in the platform interface: its structures differ between processors: use <semaphore.h>"
