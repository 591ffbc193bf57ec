/* The one system call that libc++ makes, as a name for what futex.cpp does without it. */
#ifndef __VIS_LIBCXX_SYSCALL_H
#define __VIS_LIBCXX_SYSCALL_H
#include <unistd.h>
#define SYS_futex 0
extern "C" long vis_cxx_futex(
    int call, const void *word, int operation, int value, const void *timeout = 0, int = 0, int = 0);
#define syscall vis_cxx_futex
#endif
