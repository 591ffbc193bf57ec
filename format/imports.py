"""What a package may take from the C library of the user's machine: the table of allowed imports.

Invariant: the table holds names whose meaning, arguments, structures and constants are the same in every C library
that VIS serves, with the signature that the neutral lowering gives them; whatever is not in it is refused. Names
that would compile, link and then be silently wrong are listed too, each with its reason and a way out.
The spec is docs/spec/vis-1.md, section 6.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """An allowed function, with the LLVM types of its result and parameters."""

    name: str
    result: str
    params: tuple[str, ...]
    variadic: bool = False

    @property
    def signature(self) -> str:
        """The types as text, such as `i32 (ptr, ...)`."""
        return f"{self.result} ({', '.join([*self.params, *['...'] * self.variadic])})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """Why a name is not allowed, and what to use instead."""

    why: str
    instead: str



# Names by signature. Every i32 is int or unsigned int, every i64 is long, size_t, time_t or an 8-byte struct.
_GROUPS: tuple[tuple[str, str], ...] = (
    # <string.h>, and what C23 and the clean-up of calls add to it
    ("ptr (ptr, ptr, i64)", "memcpy memmove mempcpy strncpy strncat stpncpy"),
    ("ptr (ptr, i32, i64)", "memset memchr memrchr"),
    ("i32 (ptr, ptr, i64)", "memcmp bcmp strncmp"),
    ("ptr (ptr, ptr, i32, i64)", "memccpy"),
    ("ptr (ptr, ptr)", "strcpy strcat strpbrk strstr strtok stpcpy"),
    ("i32 (ptr, ptr)", "strcmp strcoll"),
    ("ptr (ptr, i32)", "strchr strrchr"),
    ("i64 (ptr, ptr)", "strspn strcspn"),
    ("i64 (ptr, ptr, i64)", "strxfrm"),
    ("i64 (ptr, i64)", "strnlen"),
    ("i64 (ptr)", "strlen"),
    ("ptr (i32)", "strerror"),
    ("ptr (ptr)", "strdup"),
    ("ptr (ptr, i64)", "strndup"),
    # <ctype.h>
    (
        "i32 (i32)",
        "isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit "
        "tolower toupper",
    ),
    # <stdlib.h>, <inttypes.h>
    ("ptr (i64)", "malloc"),
    ("ptr (i64, i64)", "calloc aligned_alloc"),
    ("ptr (ptr, i64)", "realloc"),
    ("void (ptr)", "free"),
    ("void (ptr, i64, i64, ptr)", "qsort"),
    ("ptr (ptr, ptr, i64, i64, ptr)", "bsearch"),
    ("i32 (i32)", "abs"),
    ("i64 (i64)", "labs llabs imaxabs"),
    ("i64 (i32, i32)", "div"),
    ("[2 x i64] (i64, i64)", "ldiv lldiv imaxdiv"),
    ("i32 (ptr)", "atoi"),
    ("i64 (ptr)", "atol atoll"),
    ("double (ptr)", "atof"),
    ("i64 (ptr, ptr, i32)", "strtol strtoll strtoul strtoull strtoimax strtoumax"),
    ("double (ptr, ptr)", "strtod"),
    ("float (ptr, ptr)", "strtof"),
    ("i32 ()", "rand"),
    ("void (i32)", "srand exit _Exit"),
    ("void ()", "abort"),
    ("ptr (ptr)", "getenv"),
    # <assert.h>, <errno.h>
    ("void (ptr, ptr, i32, ptr)", "__assert_fail"),
    ("ptr ()", "__errno_location"),
    # <stdio.h>
    ("i32 (ptr, ...)", "printf scanf"),
    ("i32 (ptr, ptr, ...)", "fprintf sprintf fscanf sscanf"),
    ("i32 (ptr, i64, ptr, ...)", "snprintf"),
    ("i32 (ptr, ptr)", "vprintf vscanf"),
    ("i32 (ptr, ptr, ptr)", "vfprintf vsprintf vfscanf vsscanf"),
    ("i32 (ptr, i64, ptr, ptr)", "vsnprintf"),
    ("ptr (ptr, ptr)", "fopen"),
    ("ptr (ptr, ptr, ptr)", "freopen"),
    ("ptr ()", "tmpfile"),
    ("i32 (ptr)", "fclose fflush feof ferror fgetc getc puts remove"),
    ("i32 (ptr, ptr)", "fputs rename fgetpos fsetpos"),
    ("i32 (i32, ptr)", "fputc putc ungetc"),
    ("i32 (i32)", "putchar"),
    ("i32 ()", "getchar"),
    ("ptr (ptr, i32, ptr)", "fgets"),
    ("i64 (ptr, i64, i64, ptr)", "fread fwrite"),
    ("i32 (ptr, i64, i32)", "fseek"),
    ("i64 (ptr)", "ftell"),
    ("void (ptr)", "rewind clearerr perror"),
    ("void (ptr, ptr)", "setbuf"),
    ("i32 (ptr, ptr, i32, i64)", "setvbuf"),
    # <time.h>, <locale.h>
    ("i64 (ptr)", "time mktime"),
    ("i64 ()", "clock"),
    ("double (i64, i64)", "difftime"),
    ("ptr (ptr)", "gmtime localtime asctime ctime"),
    ("i64 (ptr, i64, ptr, ptr)", "strftime"),
    ("ptr ()", "localeconv"),
    # <math.h>; exp10 is what the clean-up makes of pow(10, x)
    (
        "double (double)",
        "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 exp10 expm1 fabs floor lgamma log "
        "log10 log1p log2 logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc",
    ),
    ("double (double, double)", "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"),
    ("double (double, double, double)", "fma"),
    ("double (double, ptr)", "frexp modf"),
    ("double (double, i32)", "ldexp scalbn"),
    ("double (double, i64)", "scalbln"),
    ("double (double, double, ptr)", "remquo"),
    ("i64 (double)", "lround llround lrint llrint"),
    ("double (ptr)", "nan"),
    ("i32 (double)", "__fpclassify __signbit"),
    (
        "float (float)",
        "acosf acoshf asinf asinhf atanf atanhf cbrtf ceilf cosf coshf erff erfcf expf exp2f exp10f expm1f fabsf "
        "floorf lgammaf logf log10f log1pf log2f logbf nearbyintf rintf roundf sinf sinhf sqrtf tanf tanhf tgammaf "
        "truncf",
    ),
    ("float (float, float)", "atan2f copysignf fdimf fmaxf fminf fmodf hypotf nextafterf powf remainderf"),
    ("float (float, float, float)", "fmaf"),
    ("float (float, ptr)", "frexpf modff"),
    ("float (float, i32)", "ldexpf scalbnf"),
    ("float (float, i64)", "scalblnf"),
    ("float (float, float, ptr)", "remquof"),
    ("i64 (float)", "lroundf llroundf lrintf llrintf"),
    ("float (ptr)", "nanf"),
    ("i32 (float)", "__fpclassifyf __signbitf"),
    # <complex.h>, double only
    ("double (double, double)", "cabs carg cimag creal"),
    (
        "{ double, double } (double, double)",
        "cacos cacosh casin casinh catan catanh ccos ccosh cexp clog conj cproj csin csinh csqrt ctan ctanh",
    ),
    ("{ double, double } (double, double, double, double)", "cpow"),
)

DATA = {"stdin": "ptr", "stdout": "ptr", "stderr": "ptr"}
"""The allowed external data, with its type."""

VA_LIST_FAMILY = frozenset(("vprintf", "vfprintf", "vsprintf", "vsnprintf", "vscanf", "vfscanf", "vsscanf"))
"""The imports that take a va_list. Where the target's va_list is a pointer, the installer adapts the calls."""

BUILT_INS = {
    "__vis_va_start": "void (ptr)",
    "__vis_va_end": "void (ptr)",
    "__vis_va_copy": "void (ptr, ptr)",
    "__vis_va_arg_gp": "ptr (ptr)",
    "__vis_va_arg_fp": "ptr (ptr)",
    "__vis_va_arg_pair": "ptr (ptr, ptr)",
    "__vis_va_arg_i128": "ptr (ptr, ptr)",
    "__vis_va_arg_f128": "ptr (ptr)",
}
"""The functions that the installer itself provides, with their signatures."""

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
        "Use _Complex double functions, or write real and imaginary parts out; -fcx-limited-range does it for * and /.",
    ),
    (
        "__muldc3 __divdc3",
        "it belongs to a compiler's run-time library, which users do not have",
        "Build with -fcx-limited-range, or write real and imaginary parts out.",
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
        "Use __attribute__((destructor)), or export a clean-up function; for C++ pass -fno-c++-static-destructors.",
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

_SIGNATURE = re.compile(r"(.*?) \((.*)\)\Z")


def _parse(name: str, signature: str) -> Import:
    match = _SIGNATURE.match(signature)
    assert match, signature  # noqa: S101 - the table above is part of this file
    params = tuple(part for part in match[2].split(", ") if part)
    fixed = tuple(part for part in params if part != "...")
    return Import(name=name, result=match[1], params=fixed, variadic=fixed != params)


IMPORTS: dict[str, Import] = {
    name: _parse(name, signature) for signature, names in _GROUPS for name in names.split()
}
"""The allowed functions by name."""

WRONG: dict[str, Wrong] = {
    name: Wrong(why=why, instead=instead) for names, why, instead in _WRONG_GROUPS for name in names.split()
}
"""Names that are refused for a reason of their own."""
