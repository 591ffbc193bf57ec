"""The tables against the kernel's headers, the assembled programs on all architectures, and a real filter."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest
from bpf import ALLOW, FAIL, KILL, run
from confinedkit import linux, run_python

from visget.installer import policies, seccomp, syscalls
from visget.installer.syscalls import CONVENTIONS, KNOWN, NEWEST, Convention

HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
    "riscv64": ("/usr/include/asm-generic/unistd.h",),
}
X32 = 0x40000000
ME = 4711


def header_numbers(text: str) -> dict[str, int]:
    """The numbers of a header; on 64-bit systems the generic names with 3264 are the 64-bit calls."""
    found: dict[str, int] = {}
    for name, number in re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s+(\d+)", text):
        found.setdefault("newfstatat" if name == "fstatat" else name, int(number))
    return found


@pytest.mark.parametrize("arch", CONVENTIONS)
def test_the_numbers_are_those_of_the_kernel(arch: str) -> None:
    header = next((Path(path) for path in HEADERS[arch] if Path(path).is_file()), None)
    if header is None:
        pytest.skip("no kernel headers (Debian: linux-libc-dev)")
    told = header_numbers(header.read_text())
    # riscv_flush_icache is an architecture's own call, 244 + 15 in asm/unistd.h.
    assert {name: told.get(name) for name in CONVENTIONS[arch].numbers if name != "riscv_flush_icache"} == {
        name: number for name, number in CONVENTIONS[arch].numbers.items() if name != "riscv_flush_icache"
    }


def test_the_tables_are_plausible() -> None:
    assert CONVENTIONS["riscv64"].numbers["riscv_flush_icache"] == 259
    for convention in CONVENTIONS.values():
        numbers = list(convention.numbers.values())
        assert len(set(numbers)) == len(numbers)
        assert max(numbers) <= NEWEST
    assert "openat" in CONVENTIONS["aarch64"].numbers
    assert "open" not in CONVENTIONS["aarch64"].numbers


def test_a_misspelt_call_is_an_error() -> None:
    with pytest.raises(ValueError, match="opennat"):
        seccomp.rule(seccomp.ALLOW, "read opennat")


FILTER = seccomp.Filter(
    rules=(
        seccomp.rule(seccomp.ALLOW, "read openat"),
        seccomp.rule(seccomp.ALLOW, "mmap", seccomp.Where(2, 4, 0)),
        seccomp.rule(seccomp.Action.fail(13), "mmap", seccomp.Where(2, 6, 6)),
        seccomp.rule(seccomp.Action.fail(22), "ioctl"),
    ),
    default=seccomp.KILL,
    unknown=seccomp.Action.fail(38),
)


@pytest.mark.parametrize("arch", CONVENTIONS)
def test_rules_are_tried_in_their_order(arch: str) -> None:
    calling = CONVENTIONS[arch]
    program = seccomp.assemble(FILTER, calling)
    nr = calling.numbers

    def answer(name: str, *arguments: int) -> int:
        return run(program, nr[name], calling.audit, *arguments)

    assert answer("read") == answer("openat") == ALLOW
    assert answer("write") == answer("execve") == KILL
    assert answer("ioctl") == FAIL | 22
    assert answer("mmap", 0, 0, 3) == ALLOW
    assert answer("mmap", 0, 0, 7) == FAIL | 13
    assert answer("mmap", 0, 0, 5) == KILL, "executable, not writable: no rule fits"
    assert answer("mmap", 0, 0, (1 << 32) | 3) == ALLOW
    assert run(program, NEWEST, calling.audit) == KILL
    assert run(program, NEWEST + 1, calling.audit) == FAIL | 38


@pytest.mark.parametrize("arch", CONVENTIONS)
def test_other_conventions_are_killed(arch: str) -> None:
    calling = CONVENTIONS[arch]
    everything = seccomp.assemble(seccomp.Filter(rules=(), default=seccomp.ALLOW), calling)
    assert run(everything, 1, calling.audit) == ALLOW
    for audit in (0x40000003, 0xC000003E, 0xC00000B7, 0xC00000F3, 0, 0xFFFFFFFF):  # i386 and the others
        assert run(everything, 1, audit) == (ALLOW if audit == calling.audit else KILL)


def test_x32_is_killed() -> None:
    calling = CONVENTIONS["x86_64"]
    for filter_ in (policies.linking(), policies.compiling(ME)):
        program = seccomp.assemble(filter_, calling)
        for number in (X32, X32 | 1, X32 | 520, 0xFFFFFFFF):
            assert run(program, number, calling.audit) == KILL


DENIED_TO_ALL = frozenset(
    """
    socket socketpair connect bind listen accept sendto ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd
    pidfd_send_signal kill tkill mount umount2 pivot_root chroot unshare setns bpf perf_event_open userfaultfd
    io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key init_module finit_module reboot
    personality open_by_handle_at shmat mknodat
    """.split()  # noqa: SIM905
)
FILTERS = {
    "compile": policies.compiling(ME),
    "load": policies.loading(ME, in_memory=False),
    "load in memory": policies.loading(ME, in_memory=True),
    "call": policies.calling(ME),
    "link": policies.linking(),
}


@pytest.mark.parametrize("arch", CONVENTIONS)
@pytest.mark.parametrize("name", FILTERS)
def test_what_no_child_may_do(arch: str, name: str) -> None:
    calling = CONVENTIONS[arch]
    program = seccomp.assemble(FILTERS[name], calling)
    allowed = [call for call in DENIED_TO_ALL if call in calling.numbers
               if run(program, calling.numbers[call], calling.audit) == ALLOW]  # fmt: skip
    assert not allowed
    assert DENIED_TO_ALL <= KNOWN


@pytest.mark.parametrize("arch", CONVENTIONS)
@pytest.mark.parametrize("name", ["compile", "load", "load in memory", "call"])
def test_what_no_worker_may_do(arch: str, name: str) -> None:
    calling = CONVENTIONS[arch]
    program = seccomp.assemble(FILTERS[name], calling)

    def answer(call: str, *arguments: int) -> int:
        return run(program, calling.numbers[call], calling.audit, *arguments)

    assert {answer(call) for call in ("execve", "execveat")} == {KILL}
    assert answer("clone3") == (KILL if name == "compile" else FAIL | errno.ENOSYS)
    assert answer("clone", 0x1200011) == answer("clone", 0) == answer("clone", 0x4111) == KILL, "fork, vfork"
    assert answer("clone", 0x3D0F00) == (KILL if name == "compile" else ALLOW), "a thread"
    for space in (0x10000000, 0x20000000, 0x40000000, 0x02000000, 0x04000000, 0x08000000):
        assert answer("clone", 0x3D0F00 | space) == KILL, hex(space)
    assert answer("clock_nanosleep") == (KILL if name == "compile" else ALLOW)
    assert answer("tgkill", ME, 1, 6) == ALLOW
    assert answer("tgkill", ME - 1, 1, 9) == KILL
    assert answer("mmap", 0, 4096, 7) == answer("mprotect", 0, 4096, 7) == KILL
    assert answer("mmap", 0, 4096, 3) == answer("mprotect", 0, 4096, 1) == ALLOW
    assert answer("mmap", 0, 4096, 5) == (ALLOW if name.startswith("load") else KILL)
    assert answer("mprotect", 0, 4096, 5) == (ALLOW if name == "load in memory" else KILL)
    reading = answer("openat", 0xFFFFFF9C, 0, 0o2000000)
    assert reading == (ALLOW if name.startswith("load") else FAIL | errno.EACCES)
    for flags in (1, 2, 0o100, 0o1101, 0o20200002):
        assert answer("openat", 0xFFFFFF9C, 0, flags) == FAIL | errno.EACCES
    assert run(program, NEWEST + 12, calling.audit) == FAIL | errno.ENOSYS, "mseal, which a new loader may try"
    assert answer("openat2") == FAIL | errno.EACCES
    assert answer("unlinkat") == (KILL if name == "compile" else FAIL | errno.EACCES)


def test_the_linker_may_start_programs_but_no_namespaces() -> None:
    for calling in CONVENTIONS.values():
        program = seccomp.assemble(policies.linking(), calling)
        clone = calling.numbers["clone"]
        assert run(program, clone, calling.audit, 0x1200011) == ALLOW  # fork
        assert run(program, clone, calling.audit, 0x3D0F00) == ALLOW  # a thread
        for space in (0x10000000, 0x20000000, 0x40000000, 0x02000000, 0x04000000, 0x08000000, 0x20000):
            assert run(program, clone, calling.audit, space | 17) == FAIL | errno.EPERM, hex(space)
        assert run(program, calling.numbers["clone3"], calling.audit) == FAIL | errno.ENOSYS
        assert run(program, calling.numbers["ioctl"], calling.audit, 0, 0x5412) == FAIL | errno.EPERM
        assert run(program, calling.numbers["ioctl"], calling.audit, 0, 0x5401) == ALLOW
        assert run(program, calling.numbers["execve"], calling.audit) == ALLOW


def test_every_program_is_short_enough_for_the_kernel() -> None:
    for calling in CONVENTIONS.values():
        for filter_ in FILTERS.values():
            assert len(seccomp.assemble(filter_, calling)) // 8 < 4096


@linux
def test_a_real_filter_adds_up_with_the_next() -> None:
    outcome = run_python("""
        from visget.installer import seccomp
        from visget.installer.seccomp import Action, Filter, rule
        seccomp.no_new_privileges()
        before = seccomp.available()
        for name, error in (("getcwd", 5), ("sysinfo", 7)):
            seccomp.install(Filter(rules=(rule(Action.fail(error), name),), default=seccomp.ALLOW), threads=True)
        result = [before]
        try:
            os.getcwd()
        except OSError as raised:
            result.append(raised.errno)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.sysinfo(ctypes.create_string_buffer(1024))
        result.append(ctypes.get_errno())
    """)
    assert outcome == [True, 5, 7]


THREADS = """
    import threading
    from visget.installer import seccomp
    from visget.installer.seccomp import Action, Filter, rule
    ready, go = threading.Event(), threading.Event()
    result = []
    def look():
        try:
            os.getcwd(); result.append("fine")
        except OSError as raised:
            result.append(raised.errno)
    def elsewhere():
        ready.set(); go.wait(); look()
    thread = threading.Thread(target=elsewhere, daemon=True); thread.start(); ready.wait()
    filter_ = Filter(rules=(rule(Action.fail(5), "getcwd"),), default=seccomp.ALLOW)
    def confine(threads):
        seccomp.no_new_privileges(); seccomp.install(filter_, threads=threads)
"""


@linux
def test_a_filter_reaches_all_threads_of_a_process() -> None:
    code = """
    confine(True)
    look(); go.set(); thread.join()
    """
    assert run_python(THREADS + code) == [5, 5]


@linux
def test_a_filter_reaches_one_thread_and_its_processes() -> None:
    code = """
    def alone():
        confine(False)
        look()
        if os.fork() == 0:
            try:
                os.getcwd()
            except OSError:
                os._exit(3)
            os._exit(0)
        result.append(os.waitstatus_to_exitcode(os.wait()[1]))
    one = threading.Thread(target=alone); one.start(); one.join()
    look(); go.set(); thread.join()
    """
    assert run_python(THREADS + code) == [5, 3, "fine", "fine"]


@linux
def test_a_thread_that_cannot_be_confined_is_an_error() -> None:
    code = """
    def own():
        confine(False); ready.set(); go.wait()
    ready.clear()
    other = threading.Thread(target=own, daemon=True); other.start(); ready.wait()
    try:
        confine(True)
    except OSError as raised:
        result.append(raised.errno)
    go.set()
    """
    assert run_python(THREADS + code)[0] == 16


def test_an_architecture_without_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        machine = "s390x"

    monkeypatch.setattr(syscalls.os, "uname", Other)
    assert syscalls.convention() is None
    assert not seccomp.available()
    with pytest.raises(OSError, match="no table"):
        seccomp.install(FILTER, threads=True)


def test_a_32_bit_interpreter_has_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscalls.struct, "calcsize", lambda text: 4)
    assert syscalls.convention() is None


def test_conventions_are_data() -> None:
    assert isinstance(CONVENTIONS["x86_64"], Convention)
