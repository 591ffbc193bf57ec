"""What each flag of a C compiler's command line means to the compiler wrappers.

Invariant: a flag that is passed on cannot tie an object to one kind of CPU, switch off an error of VIS-1, or let a
header of this machine in; one that is dropped changes nothing about what the code means; every other is refused with
the words that clang uses for a flag that the target does not have, so that a library's own probe sees a "no".
The table for people is docs/guides/building.md, "Flags". Words and prefixes instead of patterns: this module is
loaded for every file that is compiled, and compiling the patterns would take longer than all the rest.
"""

from __future__ import annotations

from typing import NamedTuple

SEPARATE = frozenset([
    "-o", "-x", "-I", "-D", "-U", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-MF", "-MT", "-MQ",
    "-L", "-l", "-T", "-Xlinker", "-u", "-z", "-e", "-h", "-rpath", "-soname", "-Xclang", "-Xassembler",
    "-Xpreprocessor", "-target", "-mllvm", "-isysroot", "--sysroot", "-include-pch", "--param", "-aux-info", "-arch",
    "-iprefix", "-iwithprefix", "-iwithprefixbefore", "-imultilib", "-wrapper", "-specs", "-B", "-A", "-dumpbase",
    "-dumpdir", "-Tbss", "-Tdata", "-Ttext",
])  # fmt: skip
"""The flags whose value may be the next word."""

HEADER_DIRECTORY = ("-isystem", "-iquote", "-idirafter", "-I")
"""The flags that name a directory of headers."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# For the linker.
_LINK = _words(
    "-shared --shared -r -static --static -static-pie -static-libgcc -static-libstdc++ -pie -no-pie -nopie -rdynamic"
    " -s -nostdlib -nostartfiles -nodefaultlibs -nolibc -symbolic -nostdlib++ -N -n -t -Xlinker -export-dynamic"
    " --whole-archive --no-whole-archive -Tbss -Tdata -Ttext"
)
_LINK_PREFIXES = ("-Wl,", "-fuse-ld=", "-z", "-T", "-e", "-u", "-h", "-rpath", "-soname")

# For clang, as they are.
_PASSED = _words(
    "-w -ansi -pedantic -pedantic-errors -trigraphs -nostdinc -nostdinc++ -pthread -undef -include -imacros"
    " -include-pch -M -MD -MMD -MM -MP -MG -MV -H -C -CC -P -dM -dD -dI -dN -dU -v -fsyntax-only -fdirectives-only"
    " -Qunused-arguments -Xpreprocessor -W"
)
_PASSED_PREFIXES = ("-D", "-U", "-std=", "--std=", "-MF", "-MT", "-MQ", "-Wp,-D", "-Wp,-U", "-Wp,-M", "-Wp,D", "-Wp,U")
# After -f or -fno-.
_PASSED_F = _words(
    "wrapv wrapv-pointer strict-aliasing strict-overflow builtin common delete-null-pointer-checks char8_t"
    " sized-deallocation aligned-allocation aligned-new threadsafe-statics ms-extensions gnu89-inline permissive"
    " strict-enums strict-return operator-names coroutines relaxed-template-template-args merge-all-constants"
    " exceptions cxx-exceptions rtti asynchronous-unwind-tables unwind-tables c++-static-destructors cx-limited-range"
    " color-diagnostics caret-diagnostics show-column elide-constructors hosted freestanding asm gnu-keywords"
    " dollars-in-identifiers spell-checking semantic-interposition visibility-inlines-hidden visibility-ms-compat"
    " keep-inline-functions implicit-templates blocks jump-tables access-control zero-initialized-in-bss trapv"
    " extended-identifiers macro-backtrace force-emit-vtables delayed-template-parsing modules implicit-modules"
    " implicit-module-maps"
)
_PASSED_F_PREFIXES = (
    "builtin-", "diagnostics-", "visibility=", "bracket-depth=", "constexpr-steps=", "constexpr-depth=",
    "template-depth", "constexpr-loop-limit=", "message-length=", "error-limit=", "macro-backtrace-limit=",
    "template-backtrace-limit=", "macro-prefix-map=", "file-prefix-map=", "debug-prefix-map=",
    "lax-vector-conversions=", "strict-flex-arrays=", "fp-contract=", "input-charset=", "exec-charset=",
    "module-file=", "module-name=", "modules-", "trivial-auto-var-init=",
)  # fmt: skip

# Without meaning for neutral code.
_DROPPED = _words(
    "-emit-llvm -pipe -m64 -p -time -Q -D_FORTIFY_SOURCE -U_FORTIFY_SOURCE -Wno-deprecated-non-prototype -Wa"
    " -fsigned-char"
)
_DROPPED_PREFIXES = (
    "-O", "-g", "-mcmodel=", "-mtls-dialect=", "-Wa,", "-D_FORTIFY_SOURCE=", "-Wp,-D_FORTIFY_SOURCE",
    "-Wp,-U_FORTIFY_SOURCE", "-save-temps", "--param=",
)  # fmt: skip
_DROPPED_F = _words(
    "PIC pic PIE pie plt ident lto fat-lto-objects use-linker-plugin whole-program whole-program-vtables"
    " split-lto-unit omit-frame-pointer omit-leaf-frame-pointer stack-protector stack-clash-protection stack-check"
    " cf-protection function-sections data-sections unique-section-names optimize-sibling-calls vectorize"
    " slp-vectorize inline inline-functions inline-small-functions inline-functions-called-once unroll-loops"
    " unroll-all-loops peel-loops unswitch-loops prefetch-loop-arrays rename-registers expensive-optimizations"
    " caller-saves partial-inlining crossjumping thread-jumps modulo-sched branch-count-reg web tracer"
    " toplevel-reorder math-errno trapping-math save-optimization-record strict-volatile-bitfields dwarf2-cfi-asm"
    " debug-types-section keep-static-consts merge-constants discard-value-names integrated-as hardened"
    " allow-store-data-races conserve-stack strict-float-cast-overflow record-gcc-switches record-command-line"
    " debug-macro use-init-array"
)
_DROPPED_F_PREFIXES = (
    "lto=", "stack-protector-", "cf-protection=", "tree-", "ipa-", "gcse", "reorder-", "align-", "schedule-insns",
    "cse-", "devirtualize", "if-conversion", "stack-limit", "var-tracking", "working-directory", "eliminate-",
    "graphite", "loop-", "zero-call-used-regs=", "dwarf-", "inline-limit=", "tls-model=", "time-", "debug-",
    "random-seed=", "max-errors=", "excess-precision=", "file-compilation-dir=", "compare-debug", "linker-output=",
)  # fmt: skip
# Only their negation: there is nothing to switch off.
_DROPPED_NO = (
    "sanitize", "profile", "openmp", "fast-math", "unsafe-math-optimizations", "finite-math-only", "rounding-math",
    "associative-math", "reciprocal-math", "coverage", "instrument", "emulated-tls",
)  # fmt: skip
# The positive ones that only say what is so anyway.
_DROPPED_YES = _words("signed-zeros honor-nans honor-infinities")

_FAST = (
    "fast-math", "unsafe-math-optimizations", "finite-math-only", "associative-math", "reciprocal-math",
    "approx-func", "single-precision-constant", "fp-model=", "cx-fortran-rules", "rounding-math",
)  # fmt: skip
_FAST_NO = ("signed-zeros", "honor-")
_CPU_CHOICE = ("-march=", "-mtune=", "-mcpu=")
_LIBRARIES = ("openmp", "opencl", "openacc", "cuda", "sycl", "offload", "open-simd")
_CHECKS = (
    "sanitize", "profile", "coverage", "instrument", "xray", "patchable", "test-coverage", "cs-profile", "split-stack",
    "stack-usage", "callgraph-info", "emulated-tls",
)  # fmt: skip
_LAYOUT = ("short-", "pack-struct", "unsigned-char")
_HEADERS = ("-target", "--target", "-B", "-specs", "--specs", "-wrapper", "--sysroot", "-isysroot", "--gcc-toolchain",
            "--prefix", "-imultilib")  # fmt: skip
_INSIDE = ("-Xclang", "-mllvm", "-Xassembler", "-fplugin", "-load")


class Verdict(NamedTuple):
    """What becomes of a flag."""

    kind: str
    """``pass`` (to clang), ``link`` (to the linker), ``drop``, ``note`` (dropped, and said so) or ``refuse``."""
    why: str = ""
    """The reason of a note or refusal."""


_PASS, _DROP, _TO_LINKER = Verdict("pass"), Verdict("drop"), Verdict("link")


def judge(flag: str) -> Verdict:
    """Decide about `flag`, which is no input and none of the flags that visget.toolchain.driver_args knows itself."""
    if flag.startswith(_INSIDE):
        return Verdict("refuse", "it reaches into the compiler")
    if flag in _DROPPED or flag.startswith(_DROPPED_PREFIXES):
        return _DROP
    if flag.startswith(_CPU_CHOICE):
        return Verdict("note", "every package is compiled for the CPU that it is installed on")
    if flag.startswith(_HEADERS):
        return Verdict("refuse", "the target and its headers are visget's")
    if flag in _LINK or flag.startswith("-fuse-ld="):
        return _TO_LINKER
    if flag.startswith("-f"):
        return _judge_f(flag[2:]) if flag not in _PASSED else _PASS
    if flag.startswith("-m") or flag == "-arch":
        why = "it asks for the instructions or conventions of one kind of CPU, and objects here suit every CPU"
        return Verdict("refuse", why)
    if flag in ("--coverage", "-pg"):
        return Verdict("refuse", "it adds counters that need this machine's run-time library")
    if flag in _PASSED or flag.startswith(_PASSED_PREFIXES) or _is_warning(flag):
        return _PASS
    if flag.startswith(_LINK_PREFIXES):
        return _TO_LINKER
    return Verdict("refuse", "it is not known")


def _is_warning(flag: str) -> bool:
    """Tell a warning from what -Wa, -Wl and -Wp hand to other programs."""
    return flag.startswith("-W") and (flag[2:3] not in ("l", "a", "p") or flag[3:4] not in ("", ","))


def _judge_f(name: str) -> Verdict:
    """Decide about ``-f`` and `name`."""
    positive = not name.startswith("no-")
    bare = name if positive else name[3:]
    if bare in _DROPPED_F or bare.startswith(_DROPPED_F_PREFIXES):
        return _DROP
    if not positive and bare.startswith(_DROPPED_NO):
        return _DROP
    if positive and bare in _DROPPED_YES:
        return _DROP
    if (positive and bare.startswith(_FAST)) or (not positive and bare.startswith(_FAST_NO)):
        return Verdict("note", 'say it for the whole package: [build] floating-point = "fast"')
    if bare in _PASSED_F or bare.startswith(_PASSED_F_PREFIXES):
        return _PASS
    if bare.startswith(_LIBRARIES):
        return Verdict("refuse", "VIS-1 has no run-time library for it")
    if bare.startswith(_CHECKS):
        return Verdict("refuse", "it adds checks or counters that need this machine's run-time library")
    if bare.startswith(_LAYOUT) or name == "no-signed-char":
        return Verdict("refuse", "it changes what types mean")
    return Verdict("refuse", "it is not known")


_HEADER_ROOTS = ("/usr/include", "/usr/local/include", "/opt/local/include", "/opt/homebrew/include", "/include")
_LIBRARY_ROOTS = tuple(
    f"{prefix}/{name}"
    for prefix in ("", "/usr", "/usr/local")
    for name in ("lib", "lib32", "lib64", "libx32", "libexec")
)


def is_system_header_directory(path: str) -> bool:
    """Tell whether `path` (absolute, normalised) is a directory of this machine's headers, or below one."""
    return f"{path}/".startswith(tuple(f"{root}/" for root in _HEADER_ROOTS))


def is_general(path: str) -> bool:
    """Tell whether a directory of this machine's headers belongs to no library in particular, such as /usr/include."""
    for root in _HEADER_ROOTS:
        if f"{path}/".startswith(f"{root}/"):
            below = path[len(root) + 1 :]
            multiarch = "/" not in below and ("-linux-gnu" in below or "-linux-musl" in below)
            return multiarch or below in ("", "bits", "sys", "c++") or below.startswith("c++/")
    return False


def is_system_library_directory(path: str) -> bool:
    """Tell whether `path` (absolute, normalised) is a directory of this machine's libraries, or below one."""
    return f"{path}/".startswith(tuple(f"{root}/" for root in _LIBRARY_ROOTS))
