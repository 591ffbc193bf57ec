/* <utmpx.h> is not in the platform interface (docs/spec/platform.md). */
#error "<utmpx.h> is not in the platform interface: its structure differs between C libraries"
