"""libsodium: test/default, each program with the output that it must have."""

from __future__ import annotations

from upstreamkit import FAILED, NATIVE, OURS, PASSED, Suite, Workbench

FLAGS = [
    "-DCONFIGURED=1", "-DNATIVE_LITTLE_ENDIAN=1", "-DHAVE_STDINT_H=1", "-DHAVE_INTTYPES_H=1", "-DHAVE_SYS_MMAN_H=1",
    "-DHAVE_MMAP=1", "-DHAVE_MPROTECT=1", "-DHAVE_MLOCK=1", "-DHAVE_MADVISE=1", "-DHAVE_POSIX_MEMALIGN=1",
    "-DHAVE_GETPID=1", "-DHAVE_SYS_RANDOM_H=1", "-DHAVE_GETRANDOM=1", "-DHAVE_RAISE=1", "-DHAVE_SYSCONF=1",
    "-DHAVE_EXPLICIT_BZERO=1", "-DHAVE_NANOSLEEP=1", "-DHAVE_PTHREAD=1", "-DHAVE_TI_MODE=1", "-D_GNU_SOURCE=1",
]  # fmt: skip
TESTS = "test/default"


def make(workbench: Workbench) -> Suite:
    version = (workbench.shelf.install("libsodium") / "include" / "sodium" / "version.h").read_text()
    inside = "src/libsodium/include"
    return workbench.suite(
        "libsodium", sources=["src/libsodium/**/*.c"], flags=[*FLAGS, f"-I{inside}/sodium"],
        include=[inside, "test/quirks"], files={f"{inside}/sodium/version.h": version},
    )  # fmt: skip


def test_default(suite: Suite) -> None:
    names = sorted(path.stem for path in (suite.tree / TESTS).glob("*.c"))
    found: dict[str, dict[str, str]] = {NATIVE: {}, OURS: {}}
    for name in names:
        defines = [f'-DTEST_SRCDIR="{suite.tree / TESTS}"', "-w", "-O1", *suite.sides[NATIVE].flags]
        objects = suite.objects(name, [f"{TESTS}/{name}.c"], [*defines, *FLAGS])
        for side in (NATIVE, OURS):
            program = suite.program(side, name, [], extra=objects, libraries=("-lpthread",))
            done = suite.ran(side, program, cwd=suite.work / side)
            found[side][name] = PASSED if done.returncode == 0 else FAILED
            if done.returncode:
                print(side, name, done.returncode, done.stdout[-500:], done.stderr[-1000:])
    suite.report("test/default", found, expected=77)
    suite.not_run("AES-256-GCM in aead_aes256gcm*.c", "needs instructions of one processor; the tests pass without")
