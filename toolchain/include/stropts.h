/* <stropts.h> is not in the platform interface (docs/spec/platform.md). */
#error "<stropts.h> is not in the platform interface: STREAMS are gone"
