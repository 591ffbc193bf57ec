/* <sys/stropts.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/stropts.h> is not in the platform interface: STREAMS are gone"
