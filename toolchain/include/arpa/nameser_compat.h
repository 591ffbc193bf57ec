/* <arpa/nameser_compat.h> is not in the platform interface (docs/spec/platform.md). */
#error "<arpa/nameser_compat.h> is not in the platform interface: use getaddrinfo"
