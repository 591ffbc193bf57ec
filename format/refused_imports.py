"""Well-known functions that a package may not import, each with its reason and a way out.

Invariant: everything outside visget.format.imports is refused anyway; the names here would compile and link, and
then be silently wrong on some target, or be missing on some system, so they deserve a sentence of their own. The
spec is docs/spec/platform.md, section 6.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """Why a name is not allowed, and what to use instead."""

    why: str
    instead: str


_WRONG_GROUPS: tuple[tuple[str, str, str], ...] = (
    (
        "fegetround fesetround feclearexcept feraiseexcept fetestexcept fegetenv fesetenv feholdexcept feupdateenv "
        "fegetexceptflag fesetexceptflag feenableexcept fedisableexcept fegetexcept __flt_rounds",
        "the FE_ constants and fenv_t differ on every architecture, so it would set the wrong mode or overrun memory",
        "Remove the use of <fenv.h>; results follow round-to-nearest.",
    ),
    (
        "regcomp regexec regerror regfree",
        "regmatch_t and regex_t are laid out differently by C libraries, so it would read the wrong fields",
        "Bundle a regular expression library (PCRE2, TRE) with the package.",
    ),
    (
        "ftw nftw ftw64 nftw64",
        "its type flags (FTW_F, FTW_D) are numbered differently by C libraries, and it hands out struct stat",
        "Walk the directory with opendir, readdir and lstat, or let the caller pass the names.",
    ),
    (
        "stat lstat fstat fstatat",
        "struct stat is laid out differently on every architecture, so it would read the wrong fields",
        "Include <sys/stat.h> instead of declaring it by hand: visget's header gives the portable form.",
    ),
    (
        "stat64 lstat64 fstat64 fstatat64 statx __xstat __fxstat __lxstat __fxstatat",
        "struct stat is laid out differently on every architecture, so it would read the wrong fields",
        "Use stat, lstat, fstat or fstatat of <sys/stat.h>, whose sizes have 64 bits.",
    ),
    (
        "statfs fstatfs statfs64 fstatfs64 statvfs64 fstatvfs64",
        "struct statfs belongs to one operating system",
        "Use statvfs or fstatvfs of <sys/statvfs.h>.",
    ),
    (
        "open openat fcntl",
        "flags such as O_NOFOLLOW and O_DIRECTORY have other values on other architectures: a check could vanish",
        "Include <fcntl.h> instead of declaring it by hand: visget's header gives the portable form.",
    ),
    (
        "open64 openat64 creat64 fcntl64 lseek64 pread64 pwrite64 ftruncate64 truncate64 fopen64 fseeko64 ftello64 "
        "mmap64 readdir64 readdir64_r scandir64 alphasort64 mkstemp64 tmpfile64 freopen64 getrlimit64 setrlimit64 "
        "lockf64 sendfile64 posix_fadvise64 posix_fallocate64 glob64",
        "only some C libraries have the 64-bit names",
        "Use the name without 64: offsets and sizes have 64 bits in it.",
    ),
    (
        "setjmp _longjmp __sigsetjmp sigsetjmp siglongjmp __longjmp_chk",
        "C libraries spell it otherwise, and the signal mask makes it slow",
        "Include <setjmp.h>, and use setjmp and longjmp.",
    ),
    (
        "vasnprintf __vsnprintf_chk __vfprintf_chk __vsprintf_chk obstack_vprintf",
        "it takes a va_list, which is a pointer on some targets and a structure on others, and has no adapter",
        "Format with vsnprintf into a buffer and pass the text on.",
    ),
    (
        "cabsf cargf cimagf crealf cexpf clogf csqrtf cpowf csinf ccosf ctanf casinf cacosf catanf "
        "csinhf ccoshf ctanhf casinhf cacoshf catanhf conjf cprojf",
        "_Complex float is passed and returned in other registers on x86-64: the result is silently wrong",
        "Use the _Complex double function.",
    ),
    (
        "cabsl cargl cimagl creall cexpl clogl csqrtl cpowl csinl ccosl ctanl casinl cacosl catanl csinhl ccoshl "
        "ctanhl casinhl cacoshl catanhl conjl cprojl",
        "long double has 80 bits on x86-64 and 128 elsewhere: the argument is read wrongly",
        "Use the _Complex double function.",
    ),
    (
        "__udivti3 __divti3 __umodti3 __modti3 __udivmodti4 __divmodti4 __multi3 __muloti4 __mulodi4 __ashlti3 "
        "__lshrti3 __ashrti3 __addtf3 __subtf3 __multf3 __divtf3 __negtf2 __eqtf2 __netf2 __lttf2 __letf2 __gttf2 "
        "__getf2 __unordtf2 __extenddftf2 __extendsftf2 __trunctfdf2 "
        "__trunctfsf2 __fixtfdi __fixtfsi __fixunstfdi __fixunstfsi __floatditf __floatsitf __floatunditf "
        "__floatunsitf __extendhfsf2 __truncsfhf2 __truncdfhf2 "
        "__truncsfbf2 __truncdfbf2 __floattidf __floattisf __floatuntidf __floatuntisf __fixdfti __fixsfti "
        "__fixunsdfti __fixunssfti __powidf2 __powisf2 __powitf2 __mulsc3 __divsc3 __muldc3 __divdc3 "
        "__popcountdi2 __popcountsi2 __clzdi2 __ctzdi2 "
        "__ffsdi2 __paritydi2 __bswapdi2 __bswapsi2 __cmpdi2 __ucmpdi2 __clear_cache __enable_execute_stack",
        "it belongs to a compiler's run-time library (libgcc, compiler-rt), which users do not have",
        "Build with `visget build`, which puts visget's own run-time functions into the package where C needs them; "
        "do not call these by hand.",
    ),
    (
        "__atomic_load __atomic_store __atomic_exchange __atomic_compare_exchange __atomic_is_lock_free "
        "__atomic_load_16 __atomic_store_16 __atomic_exchange_16 __atomic_compare_exchange_16 __atomic_fetch_add_16 "
        "__sync_val_compare_and_swap_16 atomic_thread_fence",
        "it belongs to libatomic, which users do not have; it stands for an atomic of more than 8 bytes",
        "Use a lock, or an atomic of at most 8 bytes.",
    ),
    (
        "strtold wcstold frexpl ldexpl modfl fabsl sqrtl sinl cosl tanl asinl acosl atanl atan2l sinhl coshl tanhl "
        "asinhl acoshl atanhl expl exp2l exp10l expm1l logl log2l log10l log1pl powl floorl ceill truncl roundl rintl "
        "nearbyintl fmodl remainderl remquol fmal fmaxl fminl fdiml hypotl cbrtl erfl erfcl tgammal lgammal lgammal_r "
        "copysignl nanl nextafterl nexttoward nexttowardf nexttowardl scalbnl scalblnl lroundl llroundl lrintl "
        "llrintl ilogbl logbl sincosl strtold_l qecvt __fpclassifyl __signbitl __isinfl __isnanl __finitel",
        "long double has 80 bits on x86-64 and 128 elsewhere: the argument is read wrongly",
        "Use the double function.",
    ),
    (
        "ilogb ilogbf",
        "FP_ILOGB0 and FP_ILOGBNAN differ between architectures",
        "Use logb, or frexp, whose results are the same everywhere.",
    ),
    (
        "roundeven roundevenf pow10 pow10f",
        "not every C library has it",
        "Use rint or nearbyint, which round to even in the default mode; for pow10 use exp10.",
    ),
    (
        "atexit __cxa_atexit __dso_handle",
        "a library can be unloaded before the program ends, and atexit is not in glibc's shared library",
        "Include <stdlib.h> instead of declaring it by hand: visget's header gives the portable form.",
    ),
    (
        "at_quick_exit on_exit __cxa_at_quick_exit __cxa_thread_atexit __cxa_thread_atexit_impl",
        "not every C library has it",
        "Use atexit or __attribute__((destructor)), or export a clean-up function.",
    ),
    (
        "pthread_atfork __register_atfork strerror_r __xpg_strerror_r basename __xpg_basename",
        "it has another name, or does something else, in each C library",
        "Include its header instead of declaring it by hand: visget's header gives the portable form.",
    ),
    ("gets tmpnam tempnam mktemp cuserid", "it cannot be used safely", "Use fgets, tmpfile, mkstemp."),
    (
        "epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait semctl semget semop semtimedop shmctl shmget "
        "shmat shmdt msgctl msgget msgrcv msgsnd getcontext setcontext makecontext swapcontext getutxent setutxent "
        "getutxline endutxent pututxline sendmmsg recvmmsg "
        "sched_getparam sched_setparam sched_getscheduler sched_setscheduler cfsetospeed cfsetispeed cfgetospeed "
        "cfgetispeed cfsetspeed fopencookie timer_create mq_open aio_read aio_write",
        "it uses a structure or constants that differ between targets",
        "Use the POSIX function that the platform interface has (poll for epoll, pthreads for the others); "
        "docs/spec/platform.md lists it.",
    ),
    (
        "syscall getauxval ptrace prctl personality clone unshare setns brk sbrk vhangup reboot mount umount umount2 "
        "ioperm iopl",
        "its numbers belong to one kernel on one architecture",
        "Use the function of the C library that does it.",
    ),
    (
        "__environ __progname signgam optreset h_errno",
        "it belongs to the program or to one C library",
        "Let the caller pass the value; for signgam use lgamma_r.",
    ),
    (
        "__stack_chk_fail __stack_chk_guard",
        "the stack protector needs support of the C library that differs between targets",
        "Build without -fstack-protector.",
    ),
    (
        "strlcpy strlcat wcslcpy wcslcat fgetln issetugid arc4random arc4random_buf arc4random_uniform posix_close "
        "getdents res_init ns_initparse crypt encrypt setkey tcgetwinsize tcsetwinsize stime ftime membarrier",
        "not every C library has it",
        "Define it in the package under a name of its own.",
    ),
)

WRONG: dict[str, Wrong] = {
    name: Wrong(why=why, instead=instead) for names, why, instead in _WRONG_GROUPS for name in names.split()
}
"""The refused names."""
