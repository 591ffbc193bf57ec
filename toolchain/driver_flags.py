"""What each flag of a C compiler's command line means to the compiler wrappers.

Invariant: a flag that is passed on cannot tie an object to one kind of CPU, switch off an error of VIS-1, or let a
header of this machine in; one that is dropped changes nothing about what the code means; every other is refused with
the words that clang uses for a flag that the target does not have, so that a library's own probe sees a "no".
The table for people is docs/guides/building.md, "Flags".
"""

from __future__ import annotations

import re
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

_LINK = re.compile(
    r"-(?:Wl,.+|shared|r|static|static-pie|static-libgcc|static-libstdc\+\+|pie|no-pie|nopie|rdynamic|s"
    r"|nostdlib|nostartfiles|nodefaultlibs|nolibc|symbolic|fuse-ld=.+|[zTeuh].*|rpath.*|soname.*|Tbss|Tdata|Ttext"
    r"|nostdlib\+\+|N|n|t|Xlinker|export-dynamic)|--(?:shared|static|whole-archive|no-whole-archive)"
)
_PASSED = re.compile(
    r"-w|-[DU].+|-std=\S+|--std=\S+|-ansi|-pedantic(?:-errors)?|-trigraphs|-nostdinc(?:\+\+)?|-pthread|-undef"
    r"|-W(?![lap],).*|-Wp,-?[DUM].*|-include|-imacros|-include-pch"
    r"|-f(?:no-)?(?:wrapv|wrapv-pointer|strict-aliasing|strict-overflow|builtin|common|delete-null-pointer-checks|char8_t"
    r"|sized-deallocation|aligned-allocation|aligned-new|threadsafe-statics|ms-extensions|gnu89-inline|permissive"
    r"|strict-enums|strict-return|operator-names|coroutines|relaxed-template-template-args|merge-all-constants"
    r"|exceptions|cxx-exceptions|rtti|asynchronous-unwind-tables|unwind-tables|c\+\+-static-destructors"
    r"|cx-limited-range|diagnostics-\S+|color-diagnostics|caret-diagnostics|show-column|elide-constructors"
    r"|hosted|freestanding|asm|gnu-keywords|dollars-in-identifiers|spell-checking|semantic-interposition"
    r"|visibility-inlines-hidden|visibility-ms-compat|keep-inline-functions|implicit-templates|blocks|jump-tables"
    r"|access-control|zero-initialized-in-bss|trapv|extended-identifiers|macro-backtrace|force-emit-vtables"
    r"|delayed-template-parsing|define-target-os-macros|modules|implicit-modules|implicit-module-maps)"
    r"|-fno-builtin-\w+|-fvisibility=\w+|-f(?:bracket-depth|constexpr-steps|constexpr-depth|template-depth"
    r"|constexpr-loop-limit|message-length|max-errors|error-limit|macro-backtrace-limit|template-backtrace-limit"
    r"|diagnostics-color|ffile-prefix-map|macro-prefix-map|file-prefix-map|debug-prefix-map|lax-vector-conversions"
    r"|strict-flex-arrays|ffp-contract|fp-contract|input-charset|exec-charset|module-file|module-name|modules-\w+"
    r"|trivial-auto-var-init)=.+|-ftrivial-auto-var-init=\S+|-ftemplate-depth-\d+"
    r"|-M(?:D|MD|P|G|V|F.*|T.*|Q.*|M)?|-H|-C|-CC|-P|-dM|-dD|-dI|-dN|-dU|-\#\#\#|-v|-f(?:syntax-only|directives-only)"
    r"|-Qunused-arguments|-Xpreprocessor|-pipe-"
)
_DROPPED = re.compile(
    r"-O(?:[0-3sgz]|fast)?|-g\S*|-pipe|-f(?:no-)?(?:PIC|pic|PIE|pie|plt|ident|lto(?:=.*)?|fat-lto-objects"
    r"|use-linker-plugin|whole-program|whole-program-vtables|split-lto-unit|omit-frame-pointer"
    r"|omit-leaf-frame-pointer|stack-protector(?:-\w+)?|stack-clash-protection|stack-check|cf-protection(?:=.*)?"
    r"|function-sections|data-sections|unique-section-names|optimize-sibling-calls|vectorize|slp-vectorize"
    r"|tree-vectorize|tree-slp-vectorize|tree-\S+|ipa-\S+|inline|inline-functions|inline-small-functions"
    r"|inline-functions-called-once|unroll-loops|unroll-all-loops|peel-loops|unswitch-loops|gcse\S*|reorder-\S+"
    r"|align-\w+(?:=\d*)?|prefetch-loop-arrays|rename-registers|schedule-insns\d?|cse-\S+|expensive-optimizations"
    r"|caller-saves|devirtualize\S*|partial-inlining|crossjumping|thread-jumps|if-conversion\d?|modulo-sched"
    r"|branch-count-reg|web|tracer|toplevel-reorder|emulated-tls|math-errno|trapping-math|rounding-math|save-optimization-record"
    r"|signed-zeros|stack-limit\S*|strict-volatile-bitfields|var-tracking\S*|working-directory|dwarf2-cfi-asm"
    r"|debug-types-section|eliminate-\S+|keep-static-consts|merge-constants|discard-value-names|integrated-as"
    r"|allow-store-data-races|ipa-pta|graphite\S*|loop-\S+|conserve-stack|hardened|zero-call-used-regs=\S+"
    r"|strict-float-cast-overflow|record-gcc-switches|record-command-line|dwarf-\S+|debug-macro)"
    r"|-finline-limit=\d+|-ftls-model=\S+|-falign-\S+|-m64|-mcmodel=\w+|-mtls-dialect=\S+|-Wa,.*|-p|-fno-pie-"
    r"|-fsigned-char|-(?:D|U)_FORTIFY_SOURCE(?:=\d)?|-Wp,-[DU]_FORTIFY_SOURCE(?:=\d)?|-save-temps\S*|-ftime-\S+|-time|-Q"
    r"|-fno-sanitize=\S+|-fno-sanitize-\S+|-fno-profile-\S+|-fno-openmp|--param=\S+|-Wno-deprecated-non-prototype"
    r"|-fdebug-\S+=.*|-frandom-seed=\S+|-fuse-init-array|-fmax-errors=\d+|-fno-fast-math|-fno-unsafe-math-optimizations"
    r"|-fexcess-precision=\w+|-ffile-compilation-dir=.*|-fcompare-debug\S*|-flinker-output=\S+"
)
# Dropped, but the author ought to know.
_NOTED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-m(?:arch|tune|cpu)=.+|-mtune\S*"), "every package is compiled for the CPU that it is installed on"),
    (
        re.compile(
            r"-f(?:fast-math|unsafe-math-optimizations|finite-math-only|associative-math|reciprocal-math"
            r"|no-signed-zeros|no-honor-\S+|approx-func|no-rounding-math|single-precision-constant"
            r"|fp-model=\S+|cx-fortran-rules)"
        ),
        'say it for the whole package: [build] floating-point = "fast"',
    ),
)
_MACHINE = re.compile(r"-m(?!llvm).+|-arch")
_REFUSED: tuple[tuple[re.Pattern[str], str], ...] = (
    (_MACHINE, "it asks for the instructions or conventions of one kind of CPU, and objects here suit every CPU"),
    (re.compile(r"-f(?:openmp\S*|opencl\S*|openacc|cuda\S*|sycl\S*|offload\S*|open-simd)"),
     "VIS-1 has no run-time library for it"),
    (
        re.compile(
            r"-f(?:sanitize\S*|profile\S*|coverage\S*|instrument\S*|xray\S*|patchable\S*|test-coverage|cs-profile\S*"
            r"|split-stack|stack-usage|callgraph-info\S*)|--coverage|-pg"
        ),
        "it adds checks or counters that need this machine's run-time library",
    ),
    (re.compile(r"-f(?:no-)?(?:short-\S+|pack-struct\S*)|-funsigned-char|-fno-signed-char"),
     "it changes what types mean"),
    (re.compile(r"-(?:target|B|specs|wrapper)\b.*|--(?:target|sysroot|gcc-toolchain|prefix)\b.*|-isysroot.*"),
     "the target and its headers are visget's"),
    (re.compile(r"-Xclang|-mllvm|-Xassembler|-fplugin\S*|-load"), "it reaches into the compiler"),
)  # fmt: skip


class Verdict(NamedTuple):
    """What becomes of a flag."""

    kind: str
    """``pass`` (to clang), ``link`` (to the linker), ``drop``, ``note`` (dropped, and said so) or ``refuse``."""
    why: str = ""
    """The reason of a note or refusal."""


def judge(flag: str) -> Verdict:
    """Decide about `flag`, which is no input and none of the flags that visget.toolchain.driver_args knows itself."""
    if _DROPPED.fullmatch(flag):
        return Verdict("drop")
    for pattern, why in _NOTED:
        if pattern.fullmatch(flag):
            return Verdict("note", why)
    if _LINK.fullmatch(flag):
        return Verdict("link")
    for pattern, why in _REFUSED:
        if pattern.fullmatch(flag):
            return Verdict("refuse", why)
    if _PASSED.fullmatch(flag):
        return Verdict("pass")
    return Verdict("refuse", "it is not known")


_SYSTEM_HEADERS = re.compile(r"/(?:usr(?:/local)?|opt/local|opt/homebrew)/include(?P<below>/.*)?|/include(?:/.*)?")
_SYSTEM_LIBRARIES = re.compile(r"(?:/usr(?:/local)?)?/(?:lib|lib32|lib64|libx32|libexec)(?:/.*)?")
_MULTIARCH = re.compile(r"/?(?:[a-z0-9_]+-linux-(?:gnu|musl)\w*|c\+\+(?:/.*)?|bits|sys)?/?")


def is_system_header_directory(path: str) -> bool:
    """Tell whether `path` (absolute, normalised) is a directory of this machine's headers, or below one."""
    return _SYSTEM_HEADERS.fullmatch(path) is not None


def is_general(path: str) -> bool:
    """Tell whether a directory of this machine's headers belongs to no library in particular, such as /usr/include."""
    match = _SYSTEM_HEADERS.fullmatch(path)
    return match is not None and _MULTIARCH.fullmatch(match["below"] or "") is not None


def is_system_library_directory(path: str) -> bool:
    """Tell whether `path` (absolute, normalised) is a directory of this machine's libraries, or below one."""
    return _SYSTEM_LIBRARIES.fullmatch(path) is not None
