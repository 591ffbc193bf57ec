/* <locale.h> without LC_ALL_MASK, which glibc's newlocale refuses when it has another C library's value. */
#include_next <locale.h>
#ifndef __VIS_LOCALE_H
#define __VIS_LOCALE_H
#undef LC_ALL_MASK
#ifdef __cplusplus
extern "C" {
#endif
extern const int LC_ALL_MASK __attribute__((__unavailable__(
    "its value differs between C libraries: combine the masks that you need, such as LC_NUMERIC_MASK")));
#ifdef __cplusplus
}
#endif
#endif
