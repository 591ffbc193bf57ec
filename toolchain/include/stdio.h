/* <stdio.h> with limits that hold for every C library.
 *
 * BUFSIZ: setbuf(stream, buffer) lets the C library of the machine write its own BUFSIZ bytes into the buffer, and
 * glibc's is 8192. With a smaller constant here that would be memory corruption, so this is the largest in use.
 * FOPEN_MAX and TMP_MAX promise a minimum: these are the smallest in use.
 * L_tmpnam, L_ctermid and L_cuserid below are buffer sizes and already the largest in use.
 */
#include_next <stdio.h>
#ifndef __VIS_STDIO_H
#define __VIS_STDIO_H
#undef BUFSIZ
#define BUFSIZ 8192
#undef FOPEN_MAX
#define FOPEN_MAX 16
#undef TMP_MAX
#define TMP_MAX 10000
#endif
