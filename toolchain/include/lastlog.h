/* <lastlog.h> is not in the platform interface (docs/spec/platform.md). */
#error "<lastlog.h> is not in the platform interface: who logged in is the program's business"
