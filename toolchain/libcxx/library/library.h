/* Put in front of each source of libc++ and libc++abi when they are compiled for VIS-1 (toolchain/cxxlibrary.py).
 *
 * No long double may reach the C library, whose format for it differs between processors; what libc++ prints and
 * reads goes through a double.
 */
#ifndef __VIS_LIBCXX_LIBRARY_H
#define __VIS_LIBCXX_LIBRARY_H

/* Which registers carry an exception to its handler is the target's affair: the installer knows. */
extern "C" int __vis_eh_return_data_regno(int);
#define __builtin_eh_return_data_regno __vis_eh_return_data_regno

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

static inline long double vis_strtold(const char *text, char **end) { return strtod(text, end); }
static inline long double vis_wcstold(const wchar_t *text, wchar_t **end) { return wcstod(text, end); }

static inline int vis_sscanf(const char *text, const char *, long double *to) {
  double value;
  int result = sscanf(text, "%lf", &value);
  if (result == 1)
    *to = value;
  return result;
}

/* An object, since no long double may be passed as a variable argument either. libc++ prints one alone, by a short
 * format. */
static constexpr struct vis_snprintf_type {
  template <class... Arguments>
  int operator()(char *to, size_t size, const char *format, Arguments... arguments) const {
    return snprintf(to, size, format, arguments...);
  }
  int operator()(char *to, size_t size, const char *format, long double value) const {
    char narrow[16];
    size_t length = 0;
    for (; *format && length + 1 < sizeof narrow; ++format)
      if (*format != 'L')
        narrow[length++] = *format;
    narrow[length] = 0;
    return snprintf(to, size, narrow, static_cast<double>(value));
  }
} vis_snprintf = {};

#define strtold vis_strtold
#define wcstold vis_wcstold
#define sscanf vis_sscanf
#define snprintf vis_snprintf

#endif
