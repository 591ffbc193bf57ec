/* <mntent.h> is not in the platform interface (docs/spec/platform.md). */
#error "<mntent.h> is not in the platform interface: what is mounted is the program's business"
