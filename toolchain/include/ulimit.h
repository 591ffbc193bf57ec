/* <ulimit.h> is not in the platform interface (docs/spec/platform.md). */
#error "<ulimit.h> is not in the platform interface: use getrlimit"
