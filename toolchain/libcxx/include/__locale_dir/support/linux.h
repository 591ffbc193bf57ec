/* What libc++ asks of the C library's locales, in terms of VIS-1's platform interface.
 *
 * libc++ includes this header by this name where it would include its own for Linux. Two things are different here.
 * There is no function with the suffix _l: every call makes the locale the thread's own for its duration, since that
 * is what all C libraries have. And long double goes to and from text as a double: C libraries do not agree on its
 * format, so no long double may reach one (docs/spec/front-end.md, "C++").
 */
#ifndef __VIS_LIBCXX_LOCALE_H
#define __VIS_LIBCXX_LOCALE_H

#include <__config>
#include <__cstddef/size_t.h>
#include <__std_mbstate_t.h>
#include <clocale>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctype.h>
#include <string.h>
#include <time.h>
#if _LIBCPP_HAS_WIDE_CHARACTERS
#  include <cwchar>
#  include <wctype.h>
#endif

#pragma GCC system_header

#define _LIBCPP_COLLATE_MASK LC_COLLATE_MASK
#define _LIBCPP_CTYPE_MASK LC_CTYPE_MASK
#define _LIBCPP_MONETARY_MASK LC_MONETARY_MASK
#define _LIBCPP_NUMERIC_MASK LC_NUMERIC_MASK
#define _LIBCPP_TIME_MASK LC_TIME_MASK
#define _LIBCPP_MESSAGES_MASK LC_MESSAGES_MASK
/* Each library has an "all" of its own, and glibc refuses another's. */
#define _LIBCPP_ALL_MASK                                                                                              \
  (LC_COLLATE_MASK | LC_CTYPE_MASK | LC_MONETARY_MASK | LC_NUMERIC_MASK | LC_TIME_MASK | LC_MESSAGES_MASK)
#define _LIBCPP_LC_ALL LC_ALL

_LIBCPP_BEGIN_NAMESPACE_STD
namespace __locale {

using __locale_t _LIBCPP_NODEBUG = ::locale_t;

/* Makes a locale the thread's own until the end of the block. */
class __use {
public:
  _LIBCPP_HIDE_FROM_ABI explicit __use(::locale_t __wanted) : __before_(::uselocale(__wanted)) {}
  _LIBCPP_HIDE_FROM_ABI ~__use() {
    if (__before_)
      ::uselocale(__before_);
  }
  __use(const __use&)            = delete;
  __use& operator=(const __use&) = delete;

private:
  ::locale_t __before_;
};

inline _LIBCPP_HIDE_FROM_ABI float __strtof(const char* __text, char** __end, __locale_t __l) {
  __use __now(__l);
  return ::strtof(__text, __end);
}

inline _LIBCPP_HIDE_FROM_ABI double __strtod(const char* __text, char** __end, __locale_t __l) {
  __use __now(__l);
  return ::strtod(__text, __end);
}

inline _LIBCPP_HIDE_FROM_ABI long double __strtold(const char* __text, char** __end, __locale_t __l) {
  return __locale::__strtod(__text, __end, __l);
}

/* An argument of printf as it may reach the C library. */
template <class _Tp>
inline _LIBCPP_HIDE_FROM_ABI _Tp __printable(_Tp __value) {
  return __value;
}
inline _LIBCPP_HIDE_FROM_ABI double __printable(long double __value) { return static_cast<double>(__value); }

/* A copy of one of libc++'s own formats, all of them short, without the modifier of long double. */
struct __narrow_format {
  _LIBCPP_HIDE_FROM_ABI explicit __narrow_format(const char* __format) {
    size_t __n = 0;
    for (; *__format && __n + 1 < sizeof(__text_); ++__format)
      if (*__format != 'L')
        __text_[__n++] = *__format;
    __text_[__n] = 0;
  }
  char __text_[32];
};

template <class... _Args>
inline _LIBCPP_HIDE_FROM_ABI int
__snprintf(char* __to, size_t __size, __locale_t __l, const char* __format, _Args... __args) {
  __use __now(__l);
  return ::snprintf(__to, __size, __narrow_format(__format).__text_, __locale::__printable(__args)...);
}

template <class... _Args>
inline _LIBCPP_HIDE_FROM_ABI int __asprintf(char** __to, __locale_t __l, const char* __format, _Args... __args) {
  int __size = __locale::__snprintf(nullptr, 0, __l, __format, __args...);
  if (__size < 0 || !(*__to = static_cast<char*>(::malloc(static_cast<size_t>(__size) + 1))))
    return -1;
  return __locale::__snprintf(*__to, static_cast<size_t>(__size) + 1, __l, __format, __args...);
}

#if defined(_LIBCPP_BUILDING_LIBRARY)
using __lconv_t _LIBCPP_NODEBUG = std::lconv;

inline _LIBCPP_HIDE_FROM_ABI __locale_t __newlocale(int __mask, const char* __name, __locale_t __base) {
  return ::newlocale(__mask, __name, __base);
}
inline _LIBCPP_HIDE_FROM_ABI void __freelocale(__locale_t __l) { ::freelocale(__l); }
inline _LIBCPP_HIDE_FROM_ABI char* __setlocale(int __category, const char* __name) {
  return ::setlocale(__category, __name);
}
inline _LIBCPP_HIDE_FROM_ABI __lconv_t* __localeconv(__locale_t& __l) {
  __use __now(__l);
  return ::localeconv();
}

inline _LIBCPP_HIDE_FROM_ABI int __toupper(int __c, __locale_t __l) {
  __use __now(__l);
  return ::toupper(__c);
}
inline _LIBCPP_HIDE_FROM_ABI int __tolower(int __c, __locale_t __l) {
  __use __now(__l);
  return ::tolower(__c);
}
inline _LIBCPP_HIDE_FROM_ABI int __strcoll(const char* __a, const char* __b, __locale_t __l) {
  __use __now(__l);
  return ::strcoll(__a, __b);
}
inline _LIBCPP_HIDE_FROM_ABI size_t __strxfrm(char* __to, const char* __from, size_t __n, __locale_t __l) {
  __use __now(__l);
  return ::strxfrm(__to, __from, __n);
}
inline _LIBCPP_HIDE_FROM_ABI size_t
__strftime(char* __to, size_t __size, const char* __format, const tm* __time, __locale_t __l) {
  __use __now(__l);
  return ::strftime(__to, __size, __format, __time);
}
inline _LIBCPP_HIDE_FROM_ABI size_t __mb_len_max(__locale_t __l) {
  __use __now(__l);
  return MB_CUR_MAX;
}

#  if _LIBCPP_HAS_WIDE_CHARACTERS
inline _LIBCPP_HIDE_FROM_ABI int __iswctype(wint_t __c, wctype_t __type, __locale_t __l) {
  __use __now(__l);
  return ::iswctype(__c, __type);
}
#    define __VIS_WIDE(__result, __name)                                                                              \
      inline _LIBCPP_HIDE_FROM_ABI __result __##__name(wint_t __c, __locale_t __l) {                                  \
        __use __now(__l);                                                                                             \
        return ::__name(__c);                                                                                         \
      }
__VIS_WIDE(int, iswspace)
__VIS_WIDE(int, iswprint)
__VIS_WIDE(int, iswcntrl)
__VIS_WIDE(int, iswupper)
__VIS_WIDE(int, iswlower)
__VIS_WIDE(int, iswalpha)
__VIS_WIDE(int, iswblank)
__VIS_WIDE(int, iswdigit)
__VIS_WIDE(int, iswpunct)
__VIS_WIDE(int, iswxdigit)
__VIS_WIDE(wint_t, towupper)
__VIS_WIDE(wint_t, towlower)
__VIS_WIDE(int, wctob)
#    undef __VIS_WIDE

inline _LIBCPP_HIDE_FROM_ABI int __wcscoll(const wchar_t* __a, const wchar_t* __b, __locale_t __l) {
  __use __now(__l);
  return ::wcscoll(__a, __b);
}
inline _LIBCPP_HIDE_FROM_ABI size_t __wcsxfrm(wchar_t* __to, const wchar_t* __from, size_t __n, __locale_t __l) {
  __use __now(__l);
  return ::wcsxfrm(__to, __from, __n);
}
inline _LIBCPP_HIDE_FROM_ABI wint_t __btowc(int __c, __locale_t __l) {
  __use __now(__l);
  return ::btowc(__c);
}
inline _LIBCPP_HIDE_FROM_ABI size_t __wcrtomb(char* __to, wchar_t __c, mbstate_t* __state, __locale_t __l) {
  __use __now(__l);
  return ::wcrtomb(__to, __c, __state);
}
inline _LIBCPP_HIDE_FROM_ABI size_t
__mbrtowc(wchar_t* __to, const char* __from, size_t __n, mbstate_t* __state, __locale_t __l) {
  __use __now(__l);
  return ::mbrtowc(__to, __from, __n, __state);
}
inline _LIBCPP_HIDE_FROM_ABI int __mbtowc(wchar_t* __to, const char* __from, size_t __n, __locale_t __l) {
  __use __now(__l);
  return ::mbtowc(__to, __from, __n);
}
inline _LIBCPP_HIDE_FROM_ABI size_t __mbrlen(const char* __from, size_t __n, mbstate_t* __state, __locale_t __l) {
  __use __now(__l);
  return ::mbrlen(__from, __n, __state);
}
inline _LIBCPP_HIDE_FROM_ABI size_t
__mbsrtowcs(wchar_t* __to, const char** __from, size_t __n, mbstate_t* __state, __locale_t __l) {
  __use __now(__l);
  return ::mbsrtowcs(__to, __from, __n, __state);
}
inline _LIBCPP_HIDE_FROM_ABI size_t
__mbsnrtowcs(wchar_t* __to, const char** __from, size_t __bytes, size_t __n, mbstate_t* __state, __locale_t __l) {
  __use __now(__l);
  return ::mbsnrtowcs(__to, __from, __bytes, __n, __state);
}
inline _LIBCPP_HIDE_FROM_ABI size_t
__wcsnrtombs(char* __to, const wchar_t** __from, size_t __chars, size_t __n, mbstate_t* __state, __locale_t __l) {
  __use __now(__l);
  return ::wcsnrtombs(__to, __from, __chars, __n, __state);
}
#  endif
#endif

} // namespace __locale
_LIBCPP_END_NAMESPACE_STD

#endif
