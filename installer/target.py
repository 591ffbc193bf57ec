"""What native code is made for: a platform, a processor, and the exact set of its features.

A target is written ``host``, ``baseline``, or ``PLATFORM[:CPU[+FEATURE][,-FEATURE]]``, the platform being one like
``aarch64-linux-musl`` or ``aarch64-macos``; a bare x86-64 level
such as ``x86-64-v3`` stands for that processor on the host's platform. Invariant: two targets are equal exactly
when their key() is equal, and native code made for one key never serves another. Features that are switched on
come first and those that are switched off come last, so that "off" wins where LLVM lets one feature imply
another. Described in docs/spec/targets.md.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from visget.errors import UnsupportedError
from visget.installer.systems import system_of

ARCHITECTURES = ("x86_64", "aarch64", "riscv64")
"""The processor families with a back end."""
LIBCS = ("gnu", "musl")
"""The C libraries that a target can name: glibc and musl."""
_TRIPLES = {f"{arch}-linux-{libc}": (arch, libc, f"{arch}-unknown-linux-{libc}")
            for arch in ARCHITECTURES for libc in LIBCS}  # fmt: skip
_TRIPLES |= {
    "aarch64-linux-android": ("aarch64", "android", "aarch64-unknown-linux-android28"),
    "aarch64-macos": ("aarch64", "macos", "aarch64-apple-macosx11.0.0-macho"),
    "x86_64-windows": ("x86_64", "windows", "x86_64-pc-windows-gnu"),
}
PLATFORMS = tuple(_TRIPLES)
"""Every platform that code can be made for."""
_OF_TRIPLE = {triple: (platform, libc) for platform, (_, libc, triple) in _TRIPLES.items()}

# The features that the calling convention of the platform rests on; they are on whatever the processor's name says.
_REQUIRED: dict[str, tuple[str, ...]] = {
    "x86_64": (),
    "aarch64": (),
    "riscv64": ("+m", "+a", "+f", "+d", "+c"),
}
_BASELINE_CPU = {"x86_64": "x86-64", "aarch64": "generic", "riscv64": "generic-rv64"}
_LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
_ALIASES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64", "riscv": "riscv64", "rv64": "riscv64"}
# Words that tell that a well-known platform is meant for which there is no back end yet.
_FOREIGN = re.compile(
    r"windows|win32|mingw|msvc|cygwin|darwin|macos|apple|ios|android|wasm|wasi|emscripten|freebsd|netbsd|openbsd"
    r"|solaris|illumos|haiku|fuchsia|uefi|none-elf|nvptx|cuda|amdgcn|amdgpu|spirv|opencl|uclibc"
    r"|i[3-6]86|x86_32|armv?[5-8]?[a-z]*(?:-|$)|armhf|armel|thumb|powerpc|ppc64|s390x|sparc|mips|loongarch|riscv32"
)
# Features that change how functions call each other: two libraries that differ in one cannot share a process.
_ABI_FEATURES = re.compile(
    r"16bit-mode|32bit-mode|64bit-mode|64bit|32bit|x32|x87|soft-float|use-soft-float|cx8|cmov|fxsr|sse2?|mmx|e|i|rv[we]"
    r"|fp-armv8|neon|reserve-.*|call-saved-.*|strict-align|execute-only|save-restore|all"
)
_FEATURE = re.compile(r"[+-][A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_CPU = re.compile(r"[a-z0-9][A-Za-z0-9._-]{0,63}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One processor on one platform."""

    triple: str
    """LLVM's name of the platform, such as ``x86_64-unknown-linux-gnu``."""
    cpu: str
    """LLVM's name of the processor; it tunes the code, and gives the features that `features` does not name."""
    features: tuple[str, ...] = ()
    """``+name`` and ``-name``, in the order of ordered_features()."""

    @property
    def arch(self) -> str:
        """The processor family: ``x86_64``, ``aarch64`` or ``riscv64``."""
        return self.triple.split("-")[0]

    @property
    def system(self) -> str:
        """The operating system: ``linux``, ``android``, ``macos`` or ``windows``."""
        return system_of(self.triple)

    @property
    def libc(self) -> str:
        """The C library: ``gnu`` or ``musl``; elsewhere the system's name stands for its own."""
        return _OF_TRIPLE[self.triple][1] if self.triple in _OF_TRIPLE else self.triple.split("-")[3]

    @property
    def platform(self) -> str:
        """The short name of the platform, such as ``x86_64-linux-gnu``."""
        return _OF_TRIPLE[self.triple][0] if self.triple in _OF_TRIPLE else self.triple

    @property
    def flattened(self) -> str:
        """The features as LLVM takes them: one text with commas."""
        return ",".join(self.features)

    def key(self) -> str:
        """Return the canonical text that identifies the target; it enters every cache key."""
        return f"{self.triple}:{self.cpu}:{self.flattened}"

    def runs_on(self, host: Target) -> bool:
        """Tell whether code for this target can be loaded into a process on `host`.

        Only what is certain counts: the same platform, each feature asked for is one that the host reports, and
        the processor's name implies no other. A virtual machine may mask features of the very processor that it
        reports, so even the host's own name counts only where what is masked is switched off.
        """
        if self.triple != host.triple:
            return False
        wanted = {feature for feature in self.features if feature.startswith("+")}
        if not wanted <= {*host.features, *_REQUIRED[self.arch]}:
            return False
        level = X86_LEVEL_FEATURES.get(self.cpu) if self.arch == "x86_64" else None
        if level is not None:
            return {f"+{name}" for name in level} <= set(host.features)
        if self.cpu == host.cpu:
            return {feature for feature in host.features if feature.startswith("-")} <= set(self.features)
        return self.cpu == _BASELINE_CPU[self.arch]

    def as_dict(self) -> dict[str, object]:
        """Return the target as a JSON object."""
        return {
            "platform": self.platform,
            "triple": self.triple,
            "cpu": self.cpu,
            "features": list(self.features),
            "key": self.key(),
        }

    def __str__(self) -> str:
        return f"{self.platform}:{self.cpu}"


# The x86-64 psABI, "Micro-Architecture Levels", in LLVM's spelling.
_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
X86_LEVEL_FEATURES: dict[str, tuple[str, ...]] = dict(zip(_LEVELS, ((), _V2, _V3, _V4), strict=True))
"""The features that each x86-64 level adds to the baseline."""


def x86_level(features: Iterable[str]) -> str:
    """Return the highest x86-64 level whose features are all switched on in `features`."""
    present = set(features)
    best = _LEVELS[0]
    for level, names in X86_LEVEL_FEATURES.items():
        if all(f"+{name}" in present for name in names):
            best = level
    return best


def ordered_features(features: Iterable[str]) -> tuple[str, ...]:
    """Return `features` without repetitions: sorted, those switched on first; off wins over on.

    Raises:
        ValueError: an item is not ``+name`` or ``-name``.
    """
    signs: dict[str, str] = {}
    for feature in features:
        if not _FEATURE.match(feature):
            raise ValueError(f"not a feature with its sign: {feature[:80]!r}")
        name, sign = feature[1:], feature[0]
        signs[name] = "-" if "-" in (sign, signs.get(name)) else "+"
    on = sorted(name for name, sign in signs.items() if sign == "+")
    off = sorted(name for name, sign in signs.items() if sign == "-")
    return (*(f"+{name}" for name in on), *(f"-{name}" for name in off))


def make_target(arch: str, libc: str, cpu: str, features: Iterable[str] = ()) -> Target:
    """Return the target of these parts; what the platform's calling convention needs is added."""
    triple = next((one[2] for one in _TRIPLES.values() if one[:2] == (arch, libc)), None)
    if triple is None:
        raise ValueError(f"no back end for {arch!r} with {libc!r}")
    return Target(
        triple=triple,
        cpu=cpu,
        features=ordered_features((*_REQUIRED[arch], *features)),
    )


def baseline(arch: str, libc: str) -> Target:
    """Return the target that every processor of the family can run."""
    return make_target(arch, libc, _BASELINE_CPU[arch])


def known_targets() -> tuple[str, ...]:
    """Return every text that names a target without naming a processor, for lists and completion."""
    return ("host", "baseline", *PLATFORMS, *_LEVELS)


def no_back_end(what: str) -> UnsupportedError:
    """Return the error for a platform that is known but cannot be compiled for."""
    return UnsupportedError(
        f"there is no back end for the target {what!r} yet",
        hint=f"targets with a back end: host, baseline, {', '.join(PLATFORMS)}",
        details={"target": what, "known": ["host", "baseline", *PLATFORMS]},
    )


def parse_target(text: str, host: Target, check: Callable[[Target], Target] | None = None) -> Target:
    """Return the target that `text` names.

    Args:
        text: ``host``, ``baseline``, ``x86-64-v3``, ``aarch64-linux-musl``, ``x86_64-linux-gnu:znver4,-avx512f`` ...
        host: what ``host`` and ``baseline`` refer to.
        check: refuses names of processors and features that LLVM does not know; by default LLVM itself is asked,
            in a child process (installer/probe.py). It is called only where `text` names a processor or a feature.

    Raises:
        UnsupportedError: no such target, or none with a back end.
    """
    shown = text.strip()[:120]
    if shown == "host":
        return host
    if shown == "baseline":
        return baseline(host.arch, host.libc)
    platform, colon, cpu_text = shown.partition(":")
    if not colon and platform.partition("+")[0].partition(",")[0] in _LEVELS:
        platform, colon, cpu_text = f"x86_64-linux-{host.libc}", ":", shown
    arch, libc = _parse_platform(platform, shown)
    if not colon:
        return baseline(arch, libc)
    target = _parse_processor(cpu_text, shown, arch, libc, host)
    if check is None:
        from visget.installer.probe import check_target  # a child process with LLVM: only when it is needed

        check = check_target
    return check(target)


def _parse_platform(platform: str, shown: str) -> tuple[str, str]:
    parts = platform.lower().split("-")
    if len(parts) == 4 and parts[1] in ("unknown", "pc"):
        del parts[1]
    parts[0] = _ALIASES.get(parts[0], parts[0])
    name = "-".join(parts)
    if name in _TRIPLES:
        return _TRIPLES[name][0], _TRIPLES[name][1]
    if _FOREIGN.search(name):
        raise no_back_end(shown)
    known = known_targets()
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    raise UnsupportedError(
        f"there is no target {shown!r}" + (f"; did you mean {near[0]!r}?" if near else ""),
        hint=f"targets with a back end: {', '.join(known)}",
        details={"target": shown, "known": list(known)},
    )


def _parse_processor(cpu_text: str, shown: str, arch: str, libc: str, host: Target) -> Target:
    cpu = re.split(r"[+,]", cpu_text, maxsplit=1)[0]
    rest = cpu_text[len(cpu) :]
    if not _CPU.match(cpu):
        raise UnsupportedError(
            f"target {shown!r} names no processor after the colon",
            hint="write ARCH-linux-LIBC:CPU, then features: x86_64-linux-gnu:x86-64-v3+avxvnni,-avx512f",
        )
    # A plus begins the next feature by itself; a minus may be part of a name, so "-a" needs its comma.
    features = [item for item in re.split(r",|(?=\+)", rest) if item]
    for feature in features:
        if not _FEATURE.match(feature):
            raise UnsupportedError(
                f"target {shown!r}: {feature!r} is not a feature with its sign",
                hint="write +name to switch a feature on and ,-name to switch it off",
            )
        if _ABI_FEATURES.fullmatch(feature[1:]) or f"+{feature[1:]}" in _REQUIRED[arch]:
            raise UnsupportedError(
                f"target {shown!r}: feature {feature[1:]!r} is part of how functions call each other on {arch}, "
                "so it cannot be switched",
                hint="leave it out",
            )
    if cpu == "host":
        if host.arch != arch:
            raise UnsupportedError(
                f"target {shown!r}: this machine's processor is {host.arch}, not {arch}", hint="name a processor"
            )
        kept = [f for f in host.features if f"-{f[1:]}" not in features and f"+{f[1:]}" not in features]
        return make_target(arch, libc, host.cpu, (*kept, *features))
    if cpu == "baseline":
        cpu = _BASELINE_CPU[arch]
    return make_target(arch, libc, cpu, features)
