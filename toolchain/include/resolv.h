/* <resolv.h> is not in the platform interface (docs/spec/platform.md). */
#error "<resolv.h> is not in the platform interface: use getaddrinfo"
