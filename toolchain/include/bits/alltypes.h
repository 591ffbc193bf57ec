/* The types of the C library that are laid out differently on some machine, each as large and as aligned as the
 * largest in use. The C library's header follows for all others; this file is read several times, as that one is.
 *
 * In use today (bytes): pthread_mutex_t, mtx_t 40 and 48; pthread_attr_t 56 and 64; attributes of mutexes, conditions
 * and barriers 4 and 8; sem_t 32, aligned to 4 and 8. pthread_t is a pointer in one C library and an integer in
 * another, which are passed alike.
 */
#if defined(__NEED_pthread_t) && !defined(__DEFINED_pthread_t)
#define __DEFINED_pthread_t
typedef unsigned long pthread_t;
#endif

#if defined(__NEED_pthread_attr_t) && !defined(__DEFINED_pthread_attr_t)
#define __DEFINED_pthread_attr_t
typedef struct {
    union {
        int __vis_words[24];
        long __vis_align;
    } __vis_u;
} pthread_attr_t;
#endif

#if defined(__NEED_pthread_mutex_t) && !defined(__DEFINED_pthread_mutex_t)
#define __DEFINED_pthread_mutex_t
typedef struct {
    union {
        int __vis_words[16];
        long __vis_align;
    } __vis_u;
} pthread_mutex_t;
#endif

#if defined(__NEED_mtx_t) && !defined(__DEFINED_mtx_t)
#define __DEFINED_mtx_t
typedef struct {
    union {
        int __vis_words[16];
        long __vis_align;
    } __vis_u;
} mtx_t;
#endif

#if defined(__NEED_pthread_mutexattr_t) && !defined(__DEFINED_pthread_mutexattr_t)
#define __DEFINED_pthread_mutexattr_t
typedef struct {
    unsigned long __vis_word;
} pthread_mutexattr_t;
#endif

#if defined(__NEED_pthread_condattr_t) && !defined(__DEFINED_pthread_condattr_t)
#define __DEFINED_pthread_condattr_t
typedef struct {
    unsigned long __vis_word;
} pthread_condattr_t;
#endif

#if defined(__NEED_pthread_barrierattr_t) && !defined(__DEFINED_pthread_barrierattr_t)
#define __DEFINED_pthread_barrierattr_t
typedef struct {
    unsigned long __vis_word;
} pthread_barrierattr_t;
#endif

#if defined(__NEED_pthread_rwlockattr_t) && !defined(__DEFINED_pthread_rwlockattr_t)
#define __DEFINED_pthread_rwlockattr_t
typedef struct {
    unsigned long __vis_word;
} pthread_rwlockattr_t;
#endif

#include_next <bits/alltypes.h>
