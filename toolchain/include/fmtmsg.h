/* <fmtmsg.h> is not in the platform interface (docs/spec/platform.md). */
#error "<fmtmsg.h> is not in the platform interface: use fprintf"
