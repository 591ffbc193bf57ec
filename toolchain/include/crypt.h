/* <crypt.h> is not in the platform interface (docs/spec/platform.md). */
#error "<crypt.h> is not in the platform interface: not every C library has it: bring the function along"
