/* <sys/cachectl.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/cachectl.h> is not in the platform interface: use __builtin___clear_cache in programs; packages write no code"
