"""Operating systems besides Linux with glibc or musl: what a package may take from each, and under which name.

Android, macOS and Windows have a part of the platform interface (visget.format.imports) only. This module says
which: `Names.same` holds what has the same name and signature there, `Names.renamed` what is called otherwise, and
`Names.written` what visget.installer.support_systems writes itself. Invariant: pure; what is in none of them is
not available, and a package that needs it is refused for that system. A name is in a table only where its
arguments, structures and constants are those of the platform interface. The spec is docs/spec/targets.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from visget.format.platform_iso import ISO

LINUX, ANDROID, MACOS, WINDOWS = "linux", "android", "macos", "windows"

_ISO = frozenset(name for _, names in ISO for name in names.split())
# What visget writes for each of them: their tables of float classes, and the name of assert's helper, differ.
_CLASSES = frozenset(["__fpclassify", "__fpclassifyf", "__signbit", "__signbitf"])
_WRITTEN = _CLASSES | {"__assert_fail", "bcmp"}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a package may import on one system."""

    same: frozenset[str]
    """Functions with the same name and signature."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Functions with the same signature and another name."""
    written: frozenset[str] = frozenset()
    """Functions that visget writes, in terms of others."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Variables, and what they are called there; an empty text where visget writes code instead."""
    behind: frozenset[str] = frozenset()
    """What the functions that visget writes, and LLVM by itself, call."""
    built_ins: frozenset[str] = frozenset()
    """The built-ins (`__vis_*`) that there are."""

    @property
    def available(self) -> frozenset[str]:
        """Everything that a package may import."""
        return self.same | self.renamed.keys() | self.written | self.data.keys()

    @property
    def native(self) -> frozenset[str]:
        """Everything that compiled code may refer to."""
        return self.same | frozenset(self.renamed.values()) | self.behind | frozenset(filter(None, self.data.values()))


_VA = frozenset(f"__vis_va_{name}" for name in ("start", "end", "copy", "arg_gp", "arg_fp", "arg_pair"))

# Bionic of Android 9 (API level 28). It is a Linux, with the kernel's constants; left out are names whose structures
# or constants bionic has otherwise (localeconv, sysconf, termios, signals, getaddrinfo, regex, glob, locales),
# and threads.
_ANDROID = Names(
    same=(_ISO - _WRITTEN - _words("exp10 exp10f localeconv __errno_location"))
    | _words(
        """
        pipe pipe2 unlink rmdir chdir access close dup dup2 dup3 fsync fdatasync fchdir isatty usleep sleep
        lseek read write
        pread pwrite link symlink readlink unlinkat truncate ftruncate getcwd getpid getppid getuid geteuid
        getgid getegid
        gettid sync creat chmod mkdir mkfifo fchmod umask mkdirat futimens utimensat
        opendir readdir closedir dirfd fdopendir rewinddir readv writev mmap munmap mprotect msync madvise mlock munlock
        clock_gettime clock_getres nanosleep gettimeofday gmtime_r localtime_r asctime_r ctime_r tzset timegm poll
        getrandom getentropy fileno fdopen fseeko ftello getline getdelim flockfile funlockfile asprintf vasprintf
        dprintf vdprintf strcasecmp strncasecmp strcasestr strtok_r strsep strchrnul memmem
        setenv unsetenv posix_memalign mkstemp mkdtemp realpath dlopen dlsym dlclose dlerror _setjmp longjmp
        """
    ),
    renamed={"__errno_location": "__errno"},
    written=_WRITTEN,
    data={"stdin": "stdin", "stdout": "stdout", "stderr": "stderr"},
    behind=_words("__assert2 memcmp __cxa_atexit __cxa_finalize stat lstat fstat fstatat open openat fcntl strerror_r "
                  "basename memset memcpy memmove sincos sincosf"),
    built_ins=_VA
    | _words("__vis_va_arg_i128 __vis_va_arg_f128 __vis_stat __vis_lstat __vis_fstat __vis_fstatat __vis_open "
             "__vis_openat __vis_fcntl __vis_atexit __vis_cxa_atexit __vis_strerror_r __vis_basename"),
)  # fmt: skip

# macOS 11. Of what has constants only such functions are here whose constants agree; open's flags and the numbers of
# errors are translated.
_MACOS = Names(
    same=(
        _ISO
        - _CLASSES
        - _words("__assert_fail mempcpy memrchr exp10 exp10f localeconv __errno_location strerror setbuf")
    )
    | _words(
        """
        close unlink rmdir access dup dup2 fsync isatty lseek read write pread pwrite ftruncate truncate
        link symlink readlink
        getcwd getpid mkdir chmod fileno fdopen fseeko ftello getline getdelim flockfile funlockfile asprintf vasprintf
        dprintf vdprintf strcasecmp strncasecmp strcasestr strtok_r strsep memmem bzero index rindex ffs
        setenv unsetenv posix_memalign mkstemp mkdtemp nanosleep gmtime_r localtime_r asctime_r ctime_r
        """
    ),
    renamed={"exp10": "__exp10", "exp10f": "__exp10f", "__errno_location": "__error"},
    written=_CLASSES | {"__assert_fail", "strerror"},
    data={"stdin": "__stdinp", "stdout": "__stdoutp", "stderr": "__stderrp"},
    behind=_words(
        "__assert_rtn strerror open memset_pattern16 __sincos_stret __sincosf_stret bzero memset memcpy memmove"
    ),
    built_ins=_VA | {"__vis_open"},
)

# The universal C run-time of Windows 10. Its `long` has 32 bits, so that what has a long in its prototype is missing
# (printf and scanf are, because of %ld) or has another name.
WINDOWS_LIBRARIES: Mapping[str, frozenset[str]] = {
    "heap": _words("malloc calloc realloc free"),
    "private": _words("memcpy memmove memcmp memchr strchr strrchr strstr"),
    "string": _words(
        "memset strcat strcmp strcoll strcpy strcspn strlen strncat strncmp strncpy strnlen strpbrk strspn "
        "strtok strxfrm "
        "isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit "
        "tolower toupper "
        "_strdup _memccpy _stricmp _strnicmp"
    ),
    "convert": _words("atof atoi atoll strtod strtof strtoll strtoull"),
    "utility": _words("abs llabs bsearch qsort div"),
    "environment": _words("getenv"),
    "runtime": _words("abort exit _Exit _errno strerror"),
    "stdio": _words(
        "__acrt_iob_func clearerr fclose feof ferror fflush fgetc fgets fopen fputc fputs fread freopen fwrite getc "
        "getchar putc putchar puts rewind ungetc _fseeki64 _ftelli64"
    ),
    "filesystem": _words("remove rename"),
    "math": _words(
        "acos acosf acosh acoshf asin asinf asinh asinhf atan atan2 atan2f atanf atanh atanhf cbrt cbrtf ceil ceilf "
        "copysign copysignf cos cosf cosh coshf erf erfc erfcf erff exp exp2 exp2f expf expm1 expm1f fabs "
        "fdim fdimf floor "
        "floorf fma fmaf fmax fmaxf fmin fminf fmod fmodf frexp hypot ldexp llrint llrintf llround llroundf log log10 "
        "log10f log1p log1pf log2 log2f logb logbf logf modf modff nan nanf nearbyint nearbyintf nextafter nextafterf "
        "pow powf remainder remainderf remquo remquof rint rintf round roundf scalbn scalbnf sin sinf sinh sinhf sqrt "
        "sqrtf tan tanf tanh tanhf tgamma tgammaf trunc truncf"
    ),
}
"""The functions by the API set of the C run-time that they are imported from."""

_UCRT = frozenset(name for names in WINDOWS_LIBRARIES.values() for name in names)
_WINDOWS_RENAMED = {
    "strtol": "strtoll", "strtoul": "strtoull", "strtoimax": "strtoll", "strtoumax": "strtoull", "atol": "atoll",
    "labs": "llabs", "imaxabs": "llabs", "lround": "llround", "lroundf": "llroundf", "lrint": "llrint",
    "lrintf": "llrintf", "fseek": "_fseeki64", "ftell": "_ftelli64", "__errno_location": "_errno",
    "strdup": "_strdup", "memccpy": "_memccpy", "strcasecmp": "_stricmp", "strncasecmp": "_strnicmp",
}  # fmt: skip
_WINDOWS = Names(
    same=frozenset(name for name in _UCRT if not name.startswith("_") or name == "_Exit")
    - _words("strerror sin cos sinf cosf"),
    renamed=_WINDOWS_RENAMED,
    # Where LLVM knows what sin and cos do, it calls both at once by a name that Windows does not have.
    written=_CLASSES | _words("__assert_fail bcmp strerror sin cos sinf cosf"),
    data={"stdin": "", "stdout": "", "stderr": ""},
    behind=_words("__acrt_iob_func abort memcmp strerror fputs sin cos sinf cosf ___chkstk_ms"),
    built_ins=_VA,
)

NAMES: Mapping[str, Names] = {ANDROID: _ANDROID, MACOS: _MACOS, WINDOWS: _WINDOWS}
"""What there is on each system that has a part of the platform interface only."""


def system_of(triple: str) -> str:
    """Return the system of LLVM's triple: "linux", "android", "macos" or "windows"."""
    _, _, system, environment = triple.split("-")
    if environment.startswith("android"):
        return ANDROID
    return {"linux": LINUX, "windows": WINDOWS}.get(system, MACOS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """How files are called and what they begin with on one system."""

    suffix: str
    """What the name of a shared library ends with."""
    magic: bytes
    """What an object file begins with."""
    archive: bool
    """Whether artifacts have a static library."""


_ELF = Conventions(suffix=".so", magic=b"\x7fELF", archive=True)
CONVENTIONS: Mapping[str, Conventions] = {
    LINUX: _ELF,
    ANDROID: _ELF,
    MACOS: Conventions(suffix=".dylib", magic=b"\xcf\xfa\xed\xfe", archive=False),
    WINDOWS: Conventions(suffix=".dll", magic=b"\x64\x86", archive=False),
}
"""The conventions of each system."""
