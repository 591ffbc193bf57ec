"""Pure readers of what Linux says about a processor: /proc/cpuinfo and the cache files below /sys.

Invariant: no input/output here; each function takes text, and answers with what the text says, or with nothing
where it says nothing. The feature names are LLVM's. The lists are complete for the features that compilers
generate code for, so that a feature of the list that the kernel does not report can be switched *off* by name:
virtual machines and kernels mask features of processors whose names imply them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Kernel flag -> LLVM feature, x86. A flag with several names in LLVM's history has the current one.
_X86 = {
    "adx": "adx", "aes": "aes", "amx_bf16": "amx-bf16", "amx_complex": "amx-complex", "amx_fp16": "amx-fp16",
    "amx_int8": "amx-int8", "amx_tile": "amx-tile", "avx": "avx", "avx2": "avx2", "avx512_bf16": "avx512bf16",
    "avx512_bitalg": "avx512bitalg", "avx512_fp16": "avx512fp16", "avx512_vbmi2": "avx512vbmi2",
    "avx512_vnni": "avx512vnni", "avx512_vp2intersect": "avx512vp2intersect",
    "avx512_vpopcntdq": "avx512vpopcntdq", "avx512bw": "avx512bw", "avx512cd": "avx512cd",
    "avx512dq": "avx512dq", "avx512f": "avx512f", "avx512ifma": "avx512ifma", "avx512vbmi": "avx512vbmi",
    "avx512vl": "avx512vl", "avx_ifma": "avxifma", "avx_ne_convert": "avxneconvert", "avx_vnni": "avxvnni",
    "avx_vnni_int16": "avxvnniint16", "avx_vnni_int8": "avxvnniint8", "bmi1": "bmi", "bmi2": "bmi2",
    "cldemote": "cldemote", "clflushopt": "clflushopt", "clwb": "clwb", "clzero": "clzero", "cx16": "cx16",
    "f16c": "f16c", "fma": "fma", "fma4": "fma4", "fsgsbase": "fsgsbase", "gfni": "gfni", "lahf_lm": "sahf",
    "abm": "lzcnt", "movbe": "movbe", "movdir64b": "movdir64b", "movdiri": "movdiri", "pclmulqdq": "pclmul",
    "pku": "pku", "popcnt": "popcnt", "3dnowprefetch": "prfchw", "rdpid": "rdpid", "rdrand": "rdrnd",
    "rdseed": "rdseed", "rtm": "rtm", "serialize": "serialize", "sha512": "sha512", "sha_ni": "sha",
    "sm3": "sm3", "sm4": "sm4", "pni": "sse3", "sse4_1": "sse4.1", "sse4_2": "sse4.2", "sse4a": "sse4a",
    "ssse3": "ssse3", "tbm": "tbm", "vaes": "vaes", "vpclmulqdq": "vpclmulqdq", "waitpkg": "waitpkg",
    "wbnoinvd": "wbnoinvd", "xop": "xop", "xsave": "xsave", "xsavec": "xsavec", "xsaveopt": "xsaveopt",
    "xsaves": "xsaves",
}  # fmt: skip
# LLVM feature -> the kernel flags that must all be there, AArch64 (Documentation/arch/arm64/elf_hwcaps.rst).
_AARCH64 = {
    "aes": ("aes", "pmull"), "altnzcv": ("flagm2",), "bf16": ("bf16",), "bti": ("bti",), "ccdp": ("dcpodp",),
    "ccpp": ("dcpop",), "complxnum": ("fcma",), "crc": ("crc32",), "cssc": ("cssc",), "dit": ("dit",),
    "dotprod": ("asimddp",), "f32mm": ("svef32mm",), "f64mm": ("svef64mm",), "flagm": ("flagm",),
    "fp16fml": ("asimdfhm",), "fptoint": ("frint",), "fullfp16": ("fphp", "asimdhp"), "hbc": ("hbc",),
    "i8mm": ("i8mm",), "jsconv": ("jscvt",), "lse": ("atomics",), "lse128": ("lse128",), "lse2": ("uscat",),
    "mops": ("mops",), "mte": ("mte",), "pauth": ("paca", "pacg"), "rand": ("rng",), "rcpc": ("lrcpc",),
    "rcpc-immo": ("ilrcpc",), "rcpc3": ("lrcpc3",), "rdm": ("asimdrdm",), "sb": ("sb",),
    "sha2": ("sha1", "sha2"), "sha3": ("sha3", "sha512"), "sm4": ("sm3", "sm4"), "sme": ("sme",),
    "sme2": ("sme2",), "ssbs": ("ssbs",), "sve": ("sve",), "sve2": ("sve2",), "sve2p1": ("sve2p1",),
    "sve-aes": ("sveaes", "svepmull"), "sve-bitperm": ("svebitperm",), "sve-sha3": ("svesha3",),
    "sve-sm4": ("svesm4",), "wfxt": ("wfxt",),
}  # fmt: skip
# Extensions that LLVM uses without being asked by an intrinsic, RISC-V. Others are left to the author of a target.
_RISCV = (
    "v", "za64rs", "zawrs", "zba", "zbb", "zbc", "zbkb", "zbkc", "zbkx", "zbs", "zcb", "zfa", "zfh", "zfhmin",
    "zicbom", "zicbop", "zicboz", "zicond", "zihintntl", "zihintpause", "zvbb", "zvbc", "zvfh", "zvfhmin", "zvkb",
    "zvkg", "zvkned", "zvknhb", "zvksed", "zvksh", "zvl128b", "zvl256b",
)  # fmt: skip
# (implementer, part) -> LLVM processor, AArch64: the parts that are common in servers and boards.
_ARM_PARTS = {
    ("0x41", "0xd03"): "cortex-a53", ("0x41", "0xd04"): "cortex-a35", ("0x41", "0xd05"): "cortex-a55",
    ("0x41", "0xd07"): "cortex-a57", ("0x41", "0xd08"): "cortex-a72", ("0x41", "0xd09"): "cortex-a73",
    ("0x41", "0xd0a"): "cortex-a75", ("0x41", "0xd0b"): "cortex-a76", ("0x41", "0xd0c"): "neoverse-n1",
    ("0x41", "0xd0d"): "cortex-a77", ("0x41", "0xd40"): "neoverse-v1", ("0x41", "0xd41"): "cortex-a78",
    ("0x41", "0xd44"): "cortex-x1", ("0x41", "0xd49"): "neoverse-n2", ("0x41", "0xd4f"): "neoverse-v2",
    ("0x46", "0x001"): "a64fx", ("0x48", "0xd01"): "tsv110", ("0xc0", "0xac3"): "ampere1",
    ("0xc0", "0xac4"): "ampere1a",
}  # fmt: skip
_RISCV_UARCH = {
    "sifive,u74-mc": "sifive-u74", "sifive,u74": "sifive-u74", "sifive,p550": "sifive-p550",
    "sifive,bullet0": "sifive-u74", "spacemit,x60": "spacemit-x60",
}  # fmt: skip
_SIZE = re.compile(r"(\d+)([KMG]?)\Z")
_UNIT = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuInfo:
    """What the kernel says about the processor; empty where it says nothing."""

    vendor: str
    """The maker's name or, on Arm, its number."""
    model: str
    """A name for people."""
    cpu: str
    """LLVM's name of the processor where a table knows it, else an empty text. x86 leaves it to LLVM."""
    features: tuple[str, ...]
    """``+name`` and ``-name`` for every feature of the family's list; empty when the kernel lists none."""
    hypervisor: bool
    """Whether the kernel says that it runs in a virtual machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """One level of the cache hierarchy, as the first processor sees it."""

    level: int
    kind: str
    """``data``, ``instruction`` or ``unified``."""
    size: int
    """Bytes."""
    line: int
    """Bytes in one line; 0 when unknown."""

    def as_dict(self) -> dict[str, object]:
        """Return the cache as a JSON object."""
        return {"level": self.level, "kind": self.kind, "size": self.size, "line": self.line}


def parse_cpuinfo(arch: str, text: str) -> CpuInfo:
    """Read the text of /proc/cpuinfo of a machine of family `arch`.

    A machine may have several kinds of processors (Arm big.LITTLE): a feature counts as present only when every
    listed processor has it, and the name is given only when all have the same.
    """
    blocks = [fields for block in re.split(r"\n\s*\n", text) if (fields := _fields(block))]
    if arch == "x86_64":
        return _parse_x86(blocks)
    if arch == "aarch64":
        return _parse_aarch64(blocks)
    if arch == "riscv64":
        return _parse_riscv(blocks)
    return CpuInfo(vendor="", model="", cpu="", features=(), hypervisor=False)


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def _first(blocks: list[dict[str, str]], *keys: str) -> str:
    for key in keys:
        for block in blocks:
            if block.get(key):
                return block[key]
    return ""


def _common(blocks: list[dict[str, str]], key: str) -> set[str]:
    listed = [set(block[key].split()) for block in blocks if key in block]
    return set.intersection(*listed) if listed else set()


def _signed(present: set[str], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{'+' if name in present else '-'}{name}" for name in sorted(names))


def _parse_x86(blocks: list[dict[str, str]]) -> CpuInfo:
    flags = _common(blocks, "flags")
    present = {feature for flag, feature in _X86.items() if flag in flags}
    return CpuInfo(
        vendor=_first(blocks, "vendor_id"),
        model=_first(blocks, "model name"),
        cpu="",
        features=_signed(present, tuple(_X86.values())) if flags else (),
        hypervisor="hypervisor" in flags,
    )


def _parse_aarch64(blocks: list[dict[str, str]]) -> CpuInfo:
    flags = _common(blocks, "Features")
    present = {name for name, needed in _AARCH64.items() if flags.issuperset(needed)}
    parts = {(b["CPU implementer"].lower(), b["CPU part"].lower()) for b in blocks if b.keys() >= _ARM_KEYS}
    cpus = {_ARM_PARTS.get(part, "") for part in parts}
    return CpuInfo(
        vendor=_first(blocks, "CPU implementer"),
        model=_first(blocks, "Model", "model name", "Hardware"),
        cpu=cpus.pop() if len(cpus) == 1 else "",
        features=_signed(present, tuple(_AARCH64)) if flags else (),
        hypervisor=False,
    )


_ARM_KEYS = frozenset(["CPU implementer", "CPU part"])


def _parse_riscv(blocks: list[dict[str, str]]) -> CpuInfo:
    # "isa" is what every hart has; "hart isa" is this hart's own, and may be more.
    listed = [parse_riscv_isa(block["isa"]) for block in blocks if "isa" in block]
    extensions = set.intersection(*listed) if listed else set()
    uarches = {block["uarch"] for block in blocks if "uarch" in block}
    return CpuInfo(
        vendor=_first(blocks, "mvendorid"),
        model=_first(blocks, "uarch", "model name"),
        cpu=_RISCV_UARCH.get(uarches.pop(), "") if len(uarches) == 1 else "",
        features=_signed(extensions, _RISCV) if extensions else (),
        hypervisor=False,
    )


def parse_riscv_isa(text: str) -> set[str]:
    """Return the extensions in an ISA string such as ``rv64imafdcv_zicbom_zba``; empty when it is none."""
    single, *several = text.strip().lower().split("_")
    match = re.match(r"rv(?:32|64)([a-z]*)\Z", single)
    if match is None:
        return set()
    letters = match[1]
    # Old kernels write the multi-letter names right behind the single letters: rv64imafdczba has none of them,
    # so only "g" needs expansion, and letters stop at the first of a multi-letter group.
    plain = re.split(r"[zsx]", letters, maxsplit=1)[0]
    found = set(plain) | set(several)
    if "g" in found:
        found |= set("imafd") | {"zicsr", "zifencei"}
    return found


def parse_cache(level: str, kind: str, size: str, line: str = "") -> Cache | None:
    """Return the cache that the files of one /sys/devices/system/cpu/cpu0/cache/index* directory describe."""
    match = _SIZE.match(size.strip())
    if match is None or not level.strip().isdigit():
        return None
    return Cache(
        level=int(level),
        kind=kind.strip().lower(),
        size=int(match[1]) * _UNIT[match[2]],
        line=int(line) if line.strip().isdigit() else 0,
    )
