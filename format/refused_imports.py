"""Well-known functions that a package may not import, each with its reason and a way out.

Invariant: everything outside visget.format.imports is refused anyway; the names here would compile and link, and
then be silently wrong on some target, or be missing on some system, so they deserve a sentence of their own. The
spec is docs/spec/vis-1.md, section 6.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """Why a name is not allowed, and what to use instead."""

    why: str
    instead: str


_LATER = "A later version of the profile may bring it; for now leave out the source file or feature that needs it."

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
        "Let the caller walk the directory and pass the names.",
    ),
    (
        "stat lstat fstat fstatat stat64 lstat64 fstat64 fstatat64 statx statfs fstatfs statvfs fstatvfs __xstat "
        "__fxstat __lxstat",
        "struct stat is laid out differently on every architecture, so it would read the wrong fields",
        "Use fopen, fseek and ftell for the size of a file, or let the caller pass what it knows.",
    ),
    (
        "open openat creat open64 openat64 fcntl fcntl64",
        "flags such as O_NOFOLLOW and O_DIRECTORY have other values on other architectures: a check could vanish",
        'Use fopen (mode "x" for exclusive creation).',
    ),
    (
        "newlocale uselocale duplocale freelocale setlocale",
        "LC_ALL_MASK differs between C libraries, and the locale belongs to the program, not to a library",
        "Parse and print numbers in the C locale yourself, or let the caller set the locale.",
    ),
    (
        "setjmp _setjmp sigsetjmp __sigsetjmp longjmp _longjmp siglongjmp __longjmp_chk",
        "jmp_buf differs on every target, and a jump across frames of the caller's language corrupts it",
        "Return error codes; many libraries have a define for that. This version of the profile has no setjmp.",
    ),
    (
        "vwprintf vfwprintf vswprintf vwscanf vfwscanf vswscanf vasprintf vdprintf vsyslog vwarn vwarnx verr verrx "
        "vasnprintf __vsnprintf_chk __vfprintf_chk __vsprintf_chk obstack_vprintf",
        "it takes a va_list, which is a pointer on some targets and a structure on others, and has no adapter",
        "Format with vsnprintf into a buffer and pass the text on.",
    ),
    (
        "__mulsc3 __divsc3 cabsf cargf cimagf crealf cexpf clogf csqrtf cpowf csinf ccosf ctanf casinf cacosf catanf "
        "csinhf ccoshf ctanhf casinhf cacoshf catanhf conjf cprojf",
        "_Complex float is passed and returned in other registers on x86-64: the result is silently wrong",
        "Use _Complex double functions, and write products and quotients out in real and imaginary parts.",
    ),
    (
        "__muldc3 __divdc3",
        "it belongs to a compiler's run-time library, which users do not have",
        "Write products and quotients out in real and imaginary parts, or compile with -fcx-limited-range.",
    ),
    (
        "__udivti3 __divti3 __umodti3 __modti3 __udivmodti4 __divmodti4 __multi3 __muloti4 __mulodi4 __ashlti3 "
        "__lshrti3 __ashrti3 __addtf3 __subtf3 __multf3 __divtf3 __extenddftf2 __extendsftf2 __trunctfdf2 "
        "__trunctfsf2 __fixtfdi __fixtfsi __floatditf __floatsitf __extendhfsf2 __truncsfhf2 __truncdfhf2 "
        "__truncsfbf2 __truncdfbf2 __floattidf __floattisf __floatuntidf __floatuntisf __fixdfti __fixsfti "
        "__fixunsdfti __fixunssfti __powidf2 __powisf2 __powitf2 __popcountdi2 __popcountsi2 __clzdi2 __ctzdi2 "
        "__ffsdi2 __paritydi2 __bswapdi2 __bswapsi2 __cmpdi2 __ucmpdi2 __clear_cache __enable_execute_stack",
        "it belongs to a compiler's run-time library (libgcc, compiler-rt), which users do not have",
        "Use 64-bit integers, float and double, and the __builtin_ form of bit operations.",
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
        "expl exp2l exp10l expm1l logl log2l log10l log1pl powl floorl ceill truncl roundl rintl nearbyintl fmodl "
        "remainderl fmal fmaxl fminl fdiml hypotl cbrtl erfl erfcl tgammal lgammal copysignl nanl nextafterl "
        "nexttoward nexttowardf nexttowardl scalbnl scalblnl lroundl llroundl lrintl llrintl ilogbl logbl "
        "__fpclassifyl __signbitl __isinfl __isnanl __finitel",
        "long double has 80 bits on x86-64 and 128 elsewhere: the argument is read wrongly",
        "Use the double function.",
    ),
    (
        "ilogb ilogbf",
        "FP_ILOGB0 and FP_ILOGBNAN differ between architectures",
        "Use logb, or frexp, whose results are the same everywhere.",
    ),
    (
        "roundeven roundevenf",
        "musl does not have it",
        "Use rint or nearbyint, which round to even in the default mode.",
    ),
    (
        "atexit at_quick_exit on_exit __cxa_atexit __cxa_thread_atexit __cxa_thread_atexit_impl __dso_handle",
        "a library can be unloaded before the program ends, and atexit is not in glibc's shared library",
        "Use __attribute__((destructor)), or export a clean-up function; in C++ [[clang::no_destroy]] does it.",
    ),
    (
        "system popen pclose execl execle execlp execv execve execvp execvpe fork vfork posix_spawn posix_spawnp "
        "wait waitpid",
        "a library of this profile does not start programs",
        "Leave it to the caller.",
    ),
    ("gets tmpnam mktemp", "it cannot be used safely", "Use fgets, tmpfile."),
    (
        "signal raise sigaction sigprocmask pthread_sigmask sigaltstack sigemptyset sigaddset kill alarm",
        "signals belong to the program, and their structures and sizes differ between targets",
        "Leave signals to the caller.",
    ),
    (
        "pthread_create pthread_join pthread_detach pthread_self pthread_equal pthread_once pthread_key_create "
        "pthread_getspecific pthread_setspecific pthread_key_delete pthread_mutex_init pthread_mutex_destroy "
        "pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock pthread_mutexattr_init "
        "pthread_mutexattr_settype pthread_mutexattr_destroy pthread_cond_init pthread_cond_destroy "
        "pthread_cond_wait pthread_cond_timedwait pthread_cond_signal pthread_cond_broadcast pthread_attr_init "
        "pthread_attr_destroy pthread_attr_setstacksize pthread_attr_setdetachstate pthread_rwlock_init "
        "pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_unlock pthread_rwlock_destroy "
        "pthread_barrier_init pthread_barrier_wait pthread_barrier_destroy pthread_atfork pthread_cancel "
        "pthread_exit pthread_condattr_init sem_init sem_wait sem_post sem_destroy thrd_create thrd_join mtx_init "
        "mtx_lock mtx_unlock mtx_destroy cnd_init cnd_wait cnd_signal call_once tss_create",
        "the structures of threads have other sizes on other targets, so initialising one can overrun memory",
        "Use the single-threaded build of the library; <stdatomic.h> up to 8 bytes is allowed.",
    ),
    (
        "wcslen wcscpy wcsncpy wcscat wcscmp wcsncmp wcschr wcsrchr wcsstr wmemcpy wmemmove wmemset wmemcmp wmemchr "
        "mbstowcs wcstombs mbtowc wctomb mbrtowc wcrtomb mbsrtowcs wcsrtombs mblen mbrlen btowc wctob towlower "
        "towupper iswalpha iswdigit iswspace iswupper iswlower iswalnum iswprint iswpunct fgetwc fputwc fgetws fputws "
        "wprintf fwprintf swprintf wscanf fwscanf swscanf wcstol wcstod wcstoul wcsftime wcscoll wcsxfrm "
        "__ctype_get_mb_cur_max",
        "wchar_t has another size or sign on other targets",
        "Use UTF-8 in char, or uint32_t with functions of your own.",
    ),
    (
        "getrusage epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait semctl semget semop shmctl shmget shmat "
        "msgctl msgget sysinfo getcontext setcontext makecontext swapcontext getutxent setutxent getutxline "
        "sched_getparam sched_setparam tcgetattr tcsetattr cfsetospeed cfsetispeed cfgetospeed cfgetispeed ioctl",
        "it uses a structure or constants that differ between targets",
        _LATER,
    ),
    (
        "read write close lseek lseek64 pread pwrite mmap munmap mprotect msync ftruncate truncate unlink access "
        "mkdir rmdir opendir readdir closedir getcwd chdir isatty dup dup2 pipe select poll socket connect bind "
        "listen accept send recv sendto recvfrom setsockopt getsockopt getaddrinfo freeaddrinfo gethostname "
        "nanosleep usleep sleep gettimeofday clock_gettime clock_getres getpid getppid getuid geteuid getgid "
        "sysconf getpagesize syscall getrandom arc4random uname gmtime_r localtime_r ctime_r asctime_r strtok_r "
        "strerror_r fdopen fileno fseeko ftello getline getdelim posix_memalign memalign valloc strcasecmp "
        "strncasecmp strsep mkstemp realpath readlink symlink link chmod chown umask rand_r random srandom "
        "drand48 srand48 lrand48 setenv putenv unsetenv dlopen dlsym dlclose open_memstream fmemopen flockfile "
        "funlockfile getc_unlocked putc_unlocked timespec_get",
        "it is not ISO C, and this version of the profile has ISO C only",
        "Leave out the source file or feature that needs it (most libraries have a define), or use the ISO C function.",
    ),
    (
        "environ __environ program_invocation_name timezone daylight tzname optarg optind opterr optopt signgam "
        "__progname getopt getopt_long",
        "it belongs to the program, not to a library",
        "Let the caller pass the value; getenv is allowed.",
    ),
    (
        "__stack_chk_fail __stack_chk_guard",
        "the stack protector needs support of the C library that differs between targets",
        "Build without -fstack-protector.",
    ),
    (
        "strlcpy strlcat fgetln issetugid reallocarray explicit_bzero qsort_r asprintf",
        "not every C library has it",
        "Define it in the package under a name of its own.",
    ),
)

WRONG: dict[str, Wrong] = {
    name: Wrong(why=why, instead=instead) for names, why, instead in _WRONG_GROUPS for name in names.split()
}
"""The refused names."""
