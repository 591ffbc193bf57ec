"""Names that a package may not export: those of the C library, of the program, and of Python.

Invariant: a library with such an export could take the place of a function that the rest of the process calls.
The list holds every function and variable that musl or glibc give to programs and that does not start with an
underscore; names that start with two underscores, or one and a capital letter, belong to the C implementation
anyway. The spec is docs/spec/vis-1.md, section 5.
"""

from __future__ import annotations

import re

_C_LIBRARY_NAMES = """
a64l abort abs accept accept4 access acct acos acosf acosh acoshf acoshl acosl addmntent adjtime adjtimex
aio_cancel aio_error aio_fsync aio_read aio_return aio_suspend aio_write alarm aligned_alloc alphasort
arch_prctl asctime asctime_r asin asinf asinh asinhf asinhl asinl asprintf at_quick_exit atan atan2 atan2f
atan2l atanf atanh atanhf atanhl atanl atexit atof atoi atol atoll basename bcmp bcopy bind
bind_textdomain_codeset bindtextdomain brk bsd_signal bsearch btowc bzero c16rtomb c32rtomb cabs cabsf cabsl
cachectl cacheflush cacos cacosf cacosh cacoshf cacoshl cacosl call_once calloc capget capset carg cargf cargl
casin casinf casinh casinhf casinhl casinl catan catanf catanh catanhf catanhl catanl catclose catgets catopen
cbrt cbrtf cbrtl ccos ccosf ccosh ccoshf ccoshl ccosl ceil ceilf ceill cexp cexpf cexpl cfgetispeed
cfgetospeed cfmakeraw cfree cfsetispeed cfsetospeed cfsetspeed chdir chmod chown chroot cimag cimagf cimagl
clearenv clearerr clearerr_unlocked clock clock_adjtime clock_getcpuclockid clock_getres clock_settime clog
clogf clogl clone close closedir closelog cnd_broadcast cnd_destroy cnd_init cnd_signal cnd_timedwait cnd_wait
confstr conj conjf conjl connect copy_file_range copysign copysignf copysignl cos cosf cosh coshf coshl cosl
cpow cpowf cpowl cproj cprojf cprojl creal crealf creall creat crypt crypt_r csin csinf csinh csinhf csinhl
csinl csqrt csqrtf csqrtl ctan ctanf ctanh ctanhf ctanhl ctanl ctermid ctime ctime_r cuserid daemon daylight
dcgettext dcngettext delete_module dgettext difftime dirfd dirname div dl_iterate_phdr dladdr dlclose dlerror
dlinfo dlopen dlsym dn_comp dn_expand dn_skipname dngettext dprintf drand48 drem dremf dup dup2 dup3 duplocale
eaccess ecvt encrypt endgrent endhostent endmntent endnetent endprotoent endpwent endservent endspent
endusershell endutent endutxent environ epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_wait erand48
erf erfc erfcf erfcl erff erfl err error error_at_line errx ether_aton ether_aton_r ether_hostton ether_line
ether_ntoa ether_ntoa_r ether_ntohost euidaccess eventfd eventfd_read eventfd_write execl execle execlp execv
execve execvp execvpe exit exp exp10 exp10f exp10l exp2 exp2f exp2l expf expl explicit_bzero expm1 expm1f
expm1l fabs fabsf fabsl faccessat fallocate fanotify_init fanotify_mark fchdir fchmod fchmodat fchown fchownat
fclose fcntl fcvt fdatasync fdim fdimf fdiml fdopen fdopendir feclearexcept fegetenv fegetexceptflag
fegetround feholdexcept feof feof_unlocked feraiseexcept ferror ferror_unlocked fesetenv fesetexceptflag
fesetround fetestexcept feupdateenv fexecve fflush fflush_unlocked ffs ffsl ffsll fgetc fgetc_unlocked
fgetgrent fgetln fgetpos fgetpwent fgets fgets_unlocked fgetspent fgetwc fgetwc_unlocked fgetws
fgetws_unlocked fgetxattr fileno fileno_unlocked finite finitef flistxattr flock flockfile floor floorf floorl
fma fmaf fmal fmax fmaxf fmaxl fmemopen fmin fminf fminl fmod fmodf fmodl fmtmsg fnmatch fopen fopencookie
fork forkpty fpathconf fprintf fpurge fputc fputc_unlocked fputs fputs_unlocked fputwc fputwc_unlocked fputws
fputws_unlocked fread fread_unlocked free freeaddrinfo freeifaddrs freelocale fremovexattr freopen frexp
frexpf frexpl fscanf fseek fseeko fsetpos fsetxattr fstatfs fstatvfs fsync ftell ftello ftime ftok ftruncate
ftrylockfile ftw funlockfile futimens futimes fwide fwprintf fwrite fwrite_unlocked fwscanf gai_strerror gcvt
get_avphys_pages get_current_dir_name get_nprocs get_nprocs_conf get_phys_pages getaddrinfo getauxval getc
getc_unlocked getchar getchar_unlocked getcwd getdate getdate_err getdelim getdents getdomainname
getdtablesize getegid getentropy getenv geteuid getgid getgrent getgrgid getgrgid_r getgrnam getgrnam_r
getgrouplist getgroups gethostbyaddr gethostbyaddr_r gethostbyname gethostbyname2 gethostbyname2_r
gethostbyname_r gethostent gethostid gethostname getifaddrs getitimer getline getloadavg getlogin getlogin_r
getmntent getmntent_r getnameinfo getnetbyaddr getnetbyname getnetent getopt getopt_long getopt_long_only
getpagesize getpass getpeername getpgid getpgrp getpid getppid getpriority getprotobyname getprotobynumber
getprotoent getpwent getpwnam getpwnam_r getpwuid getpwuid_r getrandom getresgid getresuid getrlimit getrusage
gets getservbyname getservbyname_r getservbyport getservbyport_r getservent getsid getsockname getsockopt
getspent getspnam getspnam_r getsubopt gettext gettid gettimeofday getuid getusershell getutent getutid
getutline getutxent getutxid getutxline getw getwc getwc_unlocked getwchar getwchar_unlocked getxattr glob
globfree gmtime gnu_get_libc_version grantpt h_errno hasmntopt hcreate hcreate_r hdestroy hdestroy_r herror
hsearch hsearch_r hstrerror htonl htons hypot hypotf hypotl iconv iconv_close iconv_open if_freenameindex
if_indextoname if_nameindex if_nametoindex ilogb ilogbf ilogbl imaxabs imaxdiv in6addr_any in6addr_loopback
index inet_addr inet_aton inet_lnaof inet_makeaddr inet_netof inet_network inet_ntoa inet_ntop inet_pton
init_module initgroups initstate inotify_add_watch inotify_init inotify_init1 inotify_rm_watch insque ioctl
ioperm iopl isalnum isalnum_l isalpha isalpha_l isascii isastream isatty isblank isblank_l iscntrl iscntrl_l
isdigit isdigit_l isgraph isgraph_l islower islower_l isprint isprint_l ispunct ispunct_l issetugid isspace
isspace_l isupper isupper_l iswalnum iswalnum_l iswalpha iswalpha_l iswblank iswblank_l iswcntrl iswcntrl_l
iswctype iswctype_l iswdigit iswdigit_l iswgraph iswgraph_l iswlower iswlower_l iswprint iswprint_l iswpunct
iswpunct_l iswspace iswspace_l iswupper iswupper_l iswxdigit iswxdigit_l isxdigit isxdigit_l j0 j0f j1 j1f jn
jnf jrand48 kill killpg klogctl l64a labs lchmod lchown lckpwdf lcong48 ldexp ldexpf ldexpl ldiv lfind lgamma
lgamma_r lgammaf lgammaf_r lgammal lgammal_r lgetxattr link linkat lio_listio listen listxattr llabs lldiv
llistxattr llrint llrintf llrintl llround llroundf llroundl localeconv localtime lockf log log10 log10f log10l
log1p log1pf log1pl log2 log2f log2l logb logbf logbl logf login_tty logl longjmp lrand48 lremovexattr lrint
lrintf lrintl lround lroundf lroundl lsearch lseek lsetxattr lstat lutimes madvise main mallinfo malloc
malloc_trim malloc_usable_size mallopt mblen mbrlen mbrtoc16 mbrtoc32 mbrtowc mbsinit mbsnrtowcs mbsrtowcs
mbstowcs mbtowc memalign membarrier memccpy memchr memcmp memcpy memfd_create memmem memmove mempcpy memrchr
memset mincore mkdir mkdirat mkdtemp mkfifo mkfifoat mknod mknodat mkostemp mkostemps mkstemp mkstemps mktemp
mktime mlock mlock2 mlockall mmap modf modff modfl mount mprotect mq_close mq_getattr mq_notify mq_open
mq_receive mq_send mq_setattr mq_timedreceive mq_timedsend mq_unlink mrand48 mremap msgctl msgget msgrcv
msgsnd msync mtx_destroy mtx_init mtx_lock mtx_timedlock mtx_trylock mtx_unlock munlock munlockall munmap
name_to_handle_at nan nanf nanl nanosleep nearbyint nearbyintf nearbyintl newlocale nextafter nextafterf
nextafterl nexttoward nexttowardf nexttowardl nftw ngettext nice nl_langinfo nl_langinfo_l nrand48 ns_get16
ns_get32 ns_initparse ns_name_uncompress ns_parserr ns_put16 ns_put32 ns_skiprr ntohl ntohs open
open_by_handle_at open_memstream open_wmemstream openat opendir openlog openpty optarg opterr optind optopt
optreset pathconf pause pclose perror personality pipe pipe2 pivot_root poll popen posix_close posix_fadvise
posix_fallocate posix_madvise posix_memalign posix_openpt posix_spawn posix_spawn_file_actions_addchdir_np
posix_spawn_file_actions_addclose posix_spawn_file_actions_adddup2 posix_spawn_file_actions_addfchdir_np
posix_spawn_file_actions_addopen posix_spawn_file_actions_destroy posix_spawn_file_actions_init
posix_spawnattr_destroy posix_spawnattr_getflags posix_spawnattr_getpgroup posix_spawnattr_getschedparam
posix_spawnattr_getschedpolicy posix_spawnattr_getsigdefault posix_spawnattr_getsigmask posix_spawnattr_init
posix_spawnattr_setflags posix_spawnattr_setpgroup posix_spawnattr_setschedparam
posix_spawnattr_setschedpolicy posix_spawnattr_setsigdefault posix_spawnattr_setsigmask posix_spawnp pow pow10
pow10f pow10l powf powl ppoll prctl pread preadv preadv2 printf prlimit process_vm_readv process_vm_writev
program_invocation_name program_invocation_short_name pselect psiginfo psignal pthread_atfork
pthread_attr_destroy pthread_attr_getdetachstate pthread_attr_getguardsize pthread_attr_getinheritsched
pthread_attr_getschedparam pthread_attr_getschedpolicy pthread_attr_getscope pthread_attr_getstack
pthread_attr_getstacksize pthread_attr_init pthread_attr_setdetachstate pthread_attr_setguardsize
pthread_attr_setinheritsched pthread_attr_setschedparam pthread_attr_setschedpolicy pthread_attr_setscope
pthread_attr_setstack pthread_attr_setstacksize pthread_barrier_destroy pthread_barrier_init
pthread_barrier_wait pthread_barrierattr_destroy pthread_barrierattr_getpshared pthread_barrierattr_init
pthread_barrierattr_setpshared pthread_cancel pthread_cond_broadcast pthread_cond_destroy pthread_cond_init
pthread_cond_signal pthread_cond_wait pthread_condattr_destroy pthread_condattr_getclock
pthread_condattr_getpshared pthread_condattr_init pthread_condattr_setclock pthread_condattr_setpshared
pthread_create pthread_detach pthread_equal pthread_exit pthread_getaffinity_np pthread_getattr_default_np
pthread_getattr_np pthread_getconcurrency pthread_getcpuclockid pthread_getname_np pthread_getschedparam
pthread_getspecific pthread_join pthread_key_create pthread_key_delete pthread_kill pthread_mutex_consistent
pthread_mutex_destroy pthread_mutex_getprioceiling pthread_mutex_init pthread_mutex_lock
pthread_mutex_setprioceiling pthread_mutex_trylock pthread_mutex_unlock pthread_mutexattr_destroy
pthread_mutexattr_getprotocol pthread_mutexattr_getpshared pthread_mutexattr_getrobust
pthread_mutexattr_gettype pthread_mutexattr_init pthread_mutexattr_setprotocol pthread_mutexattr_setpshared
pthread_mutexattr_setrobust pthread_mutexattr_settype pthread_once pthread_rwlock_destroy pthread_rwlock_init
pthread_rwlock_rdlock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock pthread_rwlock_unlock
pthread_rwlock_wrlock pthread_rwlockattr_destroy pthread_rwlockattr_getpshared pthread_rwlockattr_init
pthread_rwlockattr_setpshared pthread_self pthread_setaffinity_np pthread_setattr_default_np
pthread_setcancelstate pthread_setcanceltype pthread_setconcurrency pthread_setname_np pthread_setschedparam
pthread_setschedprio pthread_setspecific pthread_sigmask pthread_spin_destroy pthread_spin_init
pthread_spin_lock pthread_spin_trylock pthread_spin_unlock pthread_testcancel pthread_tryjoin_np ptrace
ptsname ptsname_r putc putc_unlocked putchar putchar_unlocked putenv putgrent putpwent puts putspent pututline
pututxline putw putwc putwc_unlocked putwchar putwchar_unlocked pvalloc pwrite pwritev pwritev2 qecvt qsort
qsort_r quick_exit quotactl raise rand rand_r random read readahead readdir readdir_r readlink readlinkat
readv realloc reallocarray realpath reboot recv recvfrom recvmmsg recvmsg regcomp regerror regexec regfree
register_printf_function remainder remainderf remainderl remap_file_pages remove removexattr remque remquo
remquof remquol rename renameat res_init res_mkquery res_query res_querydomain res_search res_send rewind
rewinddir rindex rint rintf rintl riscv_flush_icache rmdir round roundeven roundevenf roundf roundl sbrk scalb
scalbf scalbln scalblnf scalblnl scalbn scalbnf scalbnl scandir scanf sched_get_priority_max
sched_get_priority_min sched_getaffinity sched_getcpu sched_getparam sched_getscheduler sched_rr_get_interval
sched_setaffinity sched_setparam sched_setscheduler sched_yield secure_getenv seed48 seekdir select sem_close
sem_destroy sem_getvalue sem_init sem_open sem_post sem_timedwait sem_trywait sem_unlink sem_wait semctl
semget semop semtimedop send sendfile sendmmsg sendmsg sendto setbuf setbuffer setdomainname setegid setenv
seteuid setfsgid setfsuid setgid setgrent setgroups sethostent sethostname setitimer setjmp setkey setlinebuf
setlocale setlogmask setmntent setnetent setns setpgid setpgrp setpriority setprotoent setpwent setregid
setresgid setresuid setreuid setrlimit setservent setsid setsockopt setspent setstate settimeofday setuid
setusershell setutent setutxent setvbuf setxattr shm_open shm_unlink shmat shmctl shmdt shmget shutdown
sigaction sigaddset sigaltstack sigandset sigdelset sigemptyset sigfillset sighold sigignore siginterrupt
sigisemptyset sigismember siglongjmp signal signalfd signgam significand significandf sigorset sigpause
sigpending sigprocmask sigqueue sigrelse sigset sigsetjmp sigsuspend sigtimedwait sigwait sigwaitinfo sin
sincos sincosf sincosl sinf sinh sinhf sinhl sinl sleep snprintf sockatmark socket socketpair splice sprintf
sqrt sqrtf sqrtl srand srand48 srandom sscanf stat statfs statvfs statx stderr stdin stdout stime stpcpy
stpncpy strcasecmp strcasecmp_l strcasestr strcat strchr strchrnul strcmp strcoll strcoll_l strcpy strcspn
strdup strerror strerror_l strerror_r strfmon strfmon_l strftime strftime_l strlcat strlcpy strlen strncasecmp
strncasecmp_l strncat strncmp strncpy strndup strnlen strpbrk strptime strrchr strsep strsignal strspn strstr
strtod strtod_l strtof strtof_l strtoimax strtok strtok_r strtol strtold strtold_l strtoll strtoul strtoull
strtoumax strverscmp strxfrm strxfrm_l swab swapoff swapon swprintf swscanf symlink symlinkat sync
sync_file_range syncfs syscall sysconf sysinfo syslog system tan tanf tanh tanhf tanhl tanl tcdrain tcflow
tcflush tcgetattr tcgetpgrp tcgetsid tcgetwinsize tcsendbreak tcsetattr tcsetpgrp tcsetwinsize tdelete
tdestroy tee telldir tempnam textdomain tfind tgamma tgammaf tgammal thrd_create thrd_current thrd_detach
thrd_equal thrd_exit thrd_join thrd_sleep thrd_yield time timegm timer_create timer_delete timer_getoverrun
timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times timespec_get timezone tmpfile
tmpnam toascii tolower tolower_l toupper toupper_l towctrans towctrans_l towlower towlower_l towupper
towupper_l trunc truncate truncf truncl tsearch tss_create tss_delete tss_get tss_set ttyname ttyname_r twalk
tzname tzset ualarm ulckpwdf ulimit umask umount umount2 uname ungetc ungetwc unlink unlinkat unlockpt
unsetenv unshare updwtmp updwtmpx uselocale usleep utime utimensat utimes utmpname utmpxname valloc vasprintf
vdprintf verr verrx versionsort vfork vfprintf vfscanf vfwprintf vfwscanf vhangup vmsplice vprintf vscanf
vsnprintf vsprintf vsscanf vswprintf vswscanf vsyslog vwarn vwarnx vwprintf vwscanf wait wait3 wait4 waitid
waitpid warn warnx wcpcpy wcpncpy wcrtomb wcscasecmp wcscasecmp_l wcscat wcschr wcscmp wcscoll wcscoll_l
wcscpy wcscspn wcsdup wcsftime wcsftime_l wcslen wcsncasecmp wcsncasecmp_l wcsncat wcsncmp wcsncpy wcsnlen
wcsnrtombs wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod wcstof wcstoimax wcstok wcstol wcstold wcstoll
wcstombs wcstoul wcstoull wcstoumax wcswcs wcswidth wcsxfrm wcsxfrm_l wctob wctomb wctrans wctrans_l wctype
wctype_l wcwidth wmemchr wmemcmp wmemcpy wmemmove wmemset wordexp wordfree wprintf write writev wscanf y0 y0f
y1 y1f yn ynf
"""
_C_LIBRARY = frozenset(_C_LIBRARY_NAMES.split())

_PROGRAM = frozenset(
    ("_init", "_fini", "_start", "_exit", "_end", "_edata", "_etext", "_tolower", "_toupper", "_environ")
)

_IMPLEMENTATION = re.compile(r"_[_A-Z]")


def why_reserved(name: str) -> str | None:
    """Return whose name `name` is, or None when a package may export it."""
    if name in _C_LIBRARY:
        return "the C library or the program"
    if name in _PROGRAM:
        return "the start-up code or the linker"
    if name.startswith(("Py", "_Py")):
        return "Python"
    if name.startswith("_Z"):
        return 'C++ (only extern "C" functions can be exported)'
    if name.startswith("__vis_"):
        return "visget"
    if _IMPLEMENTATION.match(name):
        return "the C implementation"
    return None
