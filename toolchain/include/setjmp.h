/* <setjmp.h> whose jmp_buf is large enough for every C library, with room to spare.
 *
 * In use today: 200 bytes (glibc, x86-64), 312 (glibc, AArch64), 344 (musl, RISC-V). setjmp and longjmp do not touch the
 * signal mask. sigsetjmp is missing on purpose: it has a different name in each C library.
 */
#ifndef __VIS_SETJMP_H
#define __VIS_SETJMP_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct __vis_jmp_buf {
    unsigned long __words[64] __attribute__((__aligned__(16)));
} jmp_buf[1];

/* C libraries agree about these two symbols. */
int setjmp(jmp_buf) __asm__("_setjmp") __attribute__((__returns_twice__));
int _setjmp(jmp_buf) __attribute__((__returns_twice__));
void longjmp(jmp_buf, int) __attribute__((__noreturn__));
void _longjmp(jmp_buf, int) __asm__("longjmp") __attribute__((__noreturn__));

/* ISO C says that setjmp is a macro. */
#define setjmp setjmp

#ifdef __cplusplus
}
#endif

#endif
