/* <signal.h> without what a signal handler sees of the processor, and with stacks that are large enough everywhere.
 *
 * ucontext_t and mcontext_t hold the registers of one processor. SIGSTKSZ and MINSIGSTKSZ are larger than any in use.
 */
#ifndef __VIS_SIGNAL_H
#define __VIS_SIGNAL_H
#pragma push_macro("ucontext_t")
#pragma push_macro("mcontext_t")
#define ucontext_t __vis_absent_ucontext_t
#define mcontext_t __vis_absent_mcontext_t
#include_next <signal.h>
#pragma pop_macro("ucontext_t")
#pragma pop_macro("mcontext_t")
#ifdef MINSIGSTKSZ
#undef MINSIGSTKSZ
#undef SIGSTKSZ
#define MINSIGSTKSZ 16384
#define SIGSTKSZ 65536
#endif
#endif
