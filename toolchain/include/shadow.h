/* <shadow.h> is not in the platform interface (docs/spec/platform.md). */
#error "<shadow.h> is not in the platform interface: passwords are the program's business"
