/* <libgen.h> with the basename of POSIX: one C library has another function by that name. */
#ifndef __VIS_LIBGEN_H
#define __VIS_LIBGEN_H
#include_next <libgen.h>
#ifdef __cplusplus
extern "C" {
#endif
__typeof__(basename) basename __asm__("__vis_basename");
#ifdef __cplusplus
}
#endif
#endif
