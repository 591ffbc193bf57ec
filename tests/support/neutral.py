"""C to neutral LLVM IR for tests of the installer: the smallest thing that does it, apart from visget's own front end.

The installer must cope with modules whoever made them, so its tests do not go through visget.toolchain.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PREFIX = Path(__file__).resolve().parents[2] / "toolchain" / "include" / "vis_prefix.h"
_DROPPED = re.compile(
    r'\s*"(?:target-cpu|target-features|tune-cpu|frame-pointer|stack-protector-buffer-size|no-trapping-math)"="[^"]*"'
)
_TARGETS = {
    "x86_64": ("x86_64-unknown-linux-gnu", "x86-64", ""),
    "aarch64": ("aarch64-unknown-linux-musl", "generic", ""),
    "riscv64": ("riscv64-unknown-linux-musl", "generic-rv64", "+m,+a,+f,+d,+c"),
}


def zig() -> Path:
    """Return the zig program of the ziglang package, or skip."""
    ziglang = pytest.importorskip("ziglang")
    return Path(ziglang.__file__).parent / "zig"


def neutral_ir(source: str, directory: Path, *flags: str, name: str = "unit") -> str:
    """Compile the C text `source` to neutral IR."""
    program = zig()
    library = program.parent / "lib"
    path = directory / f"{name}.c"
    path.write_text(source)
    includes = ["include", "libc/include/riscv64-linux-musl", "libc/include/generic-musl",
                "libc/include/riscv-linux-any", "libc/include/any-linux-any"]  # fmt: skip
    command = [
        str(program), "clang", "--target=riscv64-unknown-linux-musl", "-march=rv64gc", "-mabi=lp64d", "-nostdinc",
        *(word for item in includes for word in ("-isystem", str(library / item))),
        "-O2", "-Xclang", "-disable-llvm-passes", "-fsigned-char", "-fPIC", "-fno-stack-protector",
        "-fno-sanitize=all", "-fno-math-errno", "-ffp-contract=off", "-fno-ident", "-fdiscard-value-names", "-w",
        "-U__riscv", "-U__riscv_xlen", "-U__riscv_flen", "-include", str(PREFIX), *flags,
        "-S", "-emit-llvm", str(path), "-o", "-",
    ]  # fmt: skip
    # clang writes a path that shares a beginning with its directory as the rest of it: fix the directory.
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=directory)
    assert done.returncode == 0, done.stderr
    return _neutralise(done.stdout)


def _neutralise(text: str) -> str:
    text = _DROPPED.sub("", text)
    text = re.sub(r"= \{\s*\}$", '= { "vis" }', text, flags=re.M)
    gone = set(re.findall(r'^(!\d+) = !\{i32 \d+, !"(?:target-abi|riscv-isa|SmallDataLimit)"', text, re.M))

    def keep(found: re.Match[str]) -> str:
        return "!llvm.module.flags = !{" + ", ".join(x for x in found[1].split(", ") if x not in gone) + "}"

    text = re.sub(r"^!llvm\.module\.flags = !\{(.*)\}", keep, text, flags=re.M)
    return re.sub(r"^source_filename = .*$", 'source_filename = "vis"', text, flags=re.M)


def exports_of(text: str) -> list[str]:
    """Return what the module defines for others."""
    functions = re.findall(r"^define (?!internal|linkonce|private)[^\n]*?@([\w.]+)\(", text, re.M)
    data = re.findall(
        r"^@([\w.]+) = (?!internal|private|appending|external|linkonce)[^\n]*(?:global|constant) ", text, re.M
    )
    return [*functions, *data]


def native_object(
    text: str, arch: str, *, cpu: str | None = None, features: str | None = None, level: int = 3
) -> bytes:
    """Compile neutral IR for `arch` in this process."""
    from visget.installer.codegen import Machine, generate

    triple, generic, generic_features = _TARGETS[arch]
    machine = Machine(
        triple=triple, cpu=cpu or generic, features=generic_features if features is None else features, level=level
    )
    return generate(text, machine, exports=exports_of(text), announce=lambda stage: None).object


def host_processor() -> tuple[str, str]:
    """Return LLVM's name and features of this machine's processor."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def run_with(driver: str, native: bytes, arch: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Link the object with the C program `driver` and run it; skip where that is impossible."""
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / "library.o"
    library.write_bytes(native)
    main = directory / "main.c"
    main.write_text(driver)
    program = directory / "program"
    if arch == "x86_64":
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler for the driver program")
        link = [compiler, "-O1", "-w", str(main), str(library), "-o", str(program), "-lm"]
        run = [str(program)]
    else:
        emulator = shutil.which(f"qemu-{arch}") or shutil.which(f"qemu-{arch}-static")
        if emulator is None:
            pytest.skip(f"no qemu-{arch} (Debian: qemu-user)")
        link = [str(zig()), "cc", "-target", f"{arch}-linux-musl", "-O1", "-g0", "-w", str(main), str(library),
                "-o", str(program), "-static", "-lm", "-lunwind"]  # fmt: skip
        run = [emulator, str(program)]
    done = subprocess.run(link, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return subprocess.run(run, capture_output=True, text=True, check=False, timeout=120)
