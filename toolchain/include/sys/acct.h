/* <sys/acct.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/acct.h> is not in the platform interface: accounting is the system's business"
