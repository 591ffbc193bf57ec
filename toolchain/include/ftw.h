/* <ftw.h> whose functions cannot be called.
 *
 * FTW_F, FTW_D and the other type flags are numbered from 1 in one C library and from 0 in another, so a callback would
 * take directories for files. The struct stat that it is given differs too.
 */
#include_next <ftw.h>
#ifndef __VIS_FTW_H
#define __VIS_FTW_H
#ifdef __cplusplus
extern "C" {
#endif
#define __VIS_NO_FTW                                                                          \
    __attribute__((__unavailable__("the FTW_ flags have different numbers in each C library: " \
                                   "let the caller list the files")))
int ftw(const char *, int (*)(const char *, const struct stat *, int), int) __VIS_NO_FTW;
int nftw(const char *, int (*)(const char *, const struct stat *, int, struct FTW *), int, int) __VIS_NO_FTW;
#undef __VIS_NO_FTW
#ifdef __cplusplus
}
#endif
#endif
