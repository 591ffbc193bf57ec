/* <monetary.h> is not in the platform interface (docs/spec/platform.md). */
#error "<monetary.h> is not in the platform interface: use localeconv and snprintf"
