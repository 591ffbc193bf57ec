/* <arpa/nameser.h> is not in the platform interface (docs/spec/platform.md). */
#error "<arpa/nameser.h> is not in the platform interface: use getaddrinfo"
