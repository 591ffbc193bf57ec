/* What every unit of a VIS module sees first: a va_list that every machine can fill.
 *
 * The processors disagree about va_list (one pointer on RISC-V, 24 bytes on x86-64, 32 bytes on AArch64), so a
 * va_start compiled for one of them would overwrite the stack of another. Here a va_list has room for all of them
 * and is touched only through the built-ins below, which the installer defines for the real target
 * (docs/spec/front-end.md, section 5).
 *
 * va_arg(ap, T) asks for the place of the next argument. Where that is depends only on what T is, as the neutral
 * target passes it:
 *   up to 8 bytes              one general slot (__vis_va_arg_gp), or one floating slot (__vis_va_arg_fp)
 *   9 to 16 bytes              two general slots (__vis_va_arg_pair), or an aligned pair (__vis_va_arg_i128)
 *   long double                one quad-precision slot (__vis_va_arg_f128)
 *   more than 16 bytes         one general slot that holds a pointer to the value
 *   nothing (an empty struct)  no slot
 */
#ifndef __VIS_PREFIX_H
#define __VIS_PREFIX_H

/* For sources that want to know that they are compiled for no machine in particular: the profile, VIS-1. */
#define __VIS__ 1

#ifdef __cplusplus
extern "C" {
#endif

struct __vis_va_tag {
    unsigned long __opaque[4];
};
typedef struct __vis_va_tag __vis_va_list[1];

/* Values that arrive in two registers are put together here. */
struct __vis_va_pair {
    unsigned long __words[2] __attribute__((__aligned__(16)));
};

#define __VIS_BUILTIN __attribute__((__nothrow__))
void __vis_va_start(struct __vis_va_tag *) __VIS_BUILTIN;
void __vis_va_end(struct __vis_va_tag *) __VIS_BUILTIN;
void __vis_va_copy(struct __vis_va_tag *, struct __vis_va_tag *) __VIS_BUILTIN;
void *__vis_va_arg_gp(struct __vis_va_tag *) __VIS_BUILTIN;
void *__vis_va_arg_fp(struct __vis_va_tag *) __VIS_BUILTIN;
void *__vis_va_arg_pair(struct __vis_va_tag *, void *) __VIS_BUILTIN;
void *__vis_va_arg_i128(struct __vis_va_tag *, void *) __VIS_BUILTIN;
void *__vis_va_arg_f128(struct __vis_va_tag *) __VIS_BUILTIN;
#undef __VIS_BUILTIN

#ifdef __cplusplus
}
#endif

#define __builtin_va_list __vis_va_list
#define __builtin_va_start(ap, ...) __vis_va_start(ap)
#define __builtin_va_end(ap) __vis_va_end(ap)
#define __builtin_va_copy(to, from) __vis_va_copy(to, from)

/* 8 is what the compiler answers for float, double and long double. The conditions are constants, so only the one
 * call that is meant remains. */
#define __VIS_IS_REAL(T) (__builtin_classify_type(*(T *)0) == 8)
#define __VIS_VA_PLACE(ap, T, pair)                                         \
    (sizeof(T) == 0   ? (void *)(pair)                                      \
     : sizeof(T) > 16 ? *(void **)__vis_va_arg_gp(ap)                       \
     : sizeof(T) > 8  ? (__VIS_IS_REAL(T)       ? __vis_va_arg_f128(ap)     \
                         : __alignof__(T) == 16 ? __vis_va_arg_i128(ap, pair) \
                                                : __vis_va_arg_pair(ap, pair)) \
     : __VIS_IS_REAL(T) ? __vis_va_arg_fp(ap)                               \
                        : __vis_va_arg_gp(ap))

#ifdef __cplusplus
template <class __T>
inline __attribute__((__always_inline__)) __T __vis_va_next(struct __vis_va_tag *__ap) {
    struct __vis_va_pair __pair;
    return *(__T *)__VIS_VA_PLACE(__ap, __T, __pair.__words);
}
#define __builtin_va_arg(ap, ...) (__vis_va_next<__VA_ARGS__>(ap))
#else
#define __builtin_va_arg(ap, ...)                                                   \
    (*(__typeof__(__VA_ARGS__) *)__VIS_VA_PLACE(ap, __typeof__(__VA_ARGS__),        \
                                                ((struct __vis_va_pair){{0}}).__words))
#endif

#endif
