/* <signal.h> without what a signal handler sees of the processor, and with stacks that are large enough everywhere.
 *
 * ucontext_t and mcontext_t hold the registers of one processor. SIGSTKSZ and MINSIGSTKSZ are larger than any in use.
 */
#ifndef __VIS_SIGNAL_H
#define __VIS_SIGNAL_H
#pragma push_macro("ucontext_t")
#define ucontext_t __vis_absent_ucontext_t
#pragma push_macro("mcontext_t")
#define mcontext_t __vis_absent_mcontext_t
#pragma push_macro("sigcontext")
#define sigcontext __vis_absent_sigcontext
#pragma push_macro("greg_t")
#define greg_t __vis_absent_greg_t
#pragma push_macro("gregset_t")
#define gregset_t __vis_absent_gregset_t
#pragma push_macro("fpregset_t")
#define fpregset_t __vis_absent_fpregset_t
#pragma push_macro("__ucontext")
#define __ucontext __vis_absent___ucontext
#pragma push_macro("ucontext")
#define ucontext __vis_absent_ucontext
#include_next <signal.h>
#pragma pop_macro("ucontext_t")
#pragma pop_macro("mcontext_t")
#pragma pop_macro("sigcontext")
#pragma pop_macro("greg_t")
#pragma pop_macro("gregset_t")
#pragma pop_macro("fpregset_t")
#pragma pop_macro("__ucontext")
#pragma pop_macro("ucontext")
#undef REG_PC
#undef REG_RA
#undef REG_SP
#undef REG_TP
#undef REG_S0
#undef REG_A0
#ifdef MINSIGSTKSZ
#undef MINSIGSTKSZ
#undef SIGSTKSZ
#define MINSIGSTKSZ 16384
#define SIGSTKSZ 65536
#endif
#endif
