/* <regex.h> whose functions cannot be called.
 *
 * regmatch_t is 8 bytes in one C library and 16 in another, and re_nsub sits at offset 0 or 48 of regex_t: calls would
 * link and then read and write the wrong bytes. Including the header is harmless; using it is a compile error.
 */
#include_next <regex.h>
#ifndef __VIS_REGEX_H
#define __VIS_REGEX_H
#ifdef __cplusplus
extern "C" {
#endif
#define __VIS_NO_REGEX                                                                                  \
    __attribute__((__unavailable__("regex_t and regmatch_t have a different layout in each C library: " \
                                   "bring a regular expression library of your own")))
int regcomp(regex_t *__restrict, const char *__restrict, int) __VIS_NO_REGEX;
int regexec(const regex_t *__restrict, const char *__restrict, size_t, regmatch_t *__restrict, int) __VIS_NO_REGEX;
void regfree(regex_t *) __VIS_NO_REGEX;
size_t regerror(int, const regex_t *__restrict, char *__restrict, size_t) __VIS_NO_REGEX;
#undef __VIS_NO_REGEX
#ifdef __cplusplus
}
#endif
#endif
