/* <utmp.h> is not in the platform interface (docs/spec/platform.md). */
#error "<utmp.h> is not in the platform interface: its structure differs between C libraries"
