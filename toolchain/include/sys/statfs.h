/* <sys/statfs.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/statfs.h> is not in the platform interface: use <sys/statvfs.h>"
