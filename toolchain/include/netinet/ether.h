/* <netinet/ether.h> is not in the platform interface (docs/spec/platform.md). */
#error "<netinet/ether.h> is not in the platform interface: convert the six bytes with snprintf and strtoul"
