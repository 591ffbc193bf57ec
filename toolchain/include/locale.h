/* <locale.h> whose LC_ALL_MASK is understood everywhere: the categories of POSIX.
 *
 * C libraries define it as the sum of all the categories that they know, and one refuses another's.
 */
#ifndef __VIS_LOCALE_H
#define __VIS_LOCALE_H
#include_next <locale.h>
#undef LC_ALL_MASK
#define LC_ALL_MASK \
    (LC_CTYPE_MASK | LC_NUMERIC_MASK | LC_TIME_MASK | LC_COLLATE_MASK | LC_MONETARY_MASK | LC_MESSAGES_MASK)
#endif
