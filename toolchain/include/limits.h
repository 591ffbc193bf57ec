/* <limits.h> with limits that hold for every C library.
 *
 * MB_LEN_MAX is the size of buffers that wctomb and wcrtomb fill: this is the largest in use (glibc).
 * NGROUPS_MAX is the size of a buffer for getgroups: this is Linux's.
 * PTHREAD_STACK_MIN would be refused as a stack size by glibc on AArch64 unless it is the largest in use.
 * The other constants that differ between C libraries (LINE_MAX, RE_DUP_MAX, NL_*MAX, ...) promise a minimum, and the
 * values below are the smallest in use; or they are buffer sizes (HOST_NAME_MAX), and the values are the largest.
 */
#include_next <limits.h>
#undef MB_LEN_MAX
#define MB_LEN_MAX 16
#ifdef PTHREAD_STACK_MIN
#undef PTHREAD_STACK_MIN
#define PTHREAD_STACK_MIN 131072
#endif
#ifdef LINE_MAX
#undef LINE_MAX
#define LINE_MAX 2048
#endif
#ifdef NGROUPS_MAX
#undef NGROUPS_MAX
#define NGROUPS_MAX 65536
#endif
