"""Numbers of system calls for each architecture on which visget confines its children.

Invariant: data only; tests/installer/test_seccomp.py compares the numbers with the kernel's headers where they are
installed. A call that an architecture does not have (aarch64 has no ``open``, only ``openat``) is missing from its
table. The tables hold what visget's filters name, not everything that Linux has.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """How a process asks the kernel for something."""

    audit: int
    """The kernel's number for the convention (AUDIT_ARCH_*), which a filter has to compare first."""
    numbers: Mapping[str, int]
    """The number of each call by name."""
    limit: int | None = None
    """Numbers from here on belong to another convention of the same architecture: x32 on x86-64."""


def _table(text: str) -> Mapping[str, int]:
    return {name: int(number) for name, _, number in (entry.partition("=") for entry in text.split())}


_X86_64 = _table("""
    read=0 write=1 open=2 close=3 stat=4 fstat=5 lstat=6 poll=7 lseek=8 mmap=9 mprotect=10 munmap=11 brk=12
    rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 ioctl=16 pread64=17 writev=20 access=21 sched_yield=24
    mremap=25 madvise=28 shmget=29 shmat=30 nanosleep=35 getpid=39 socket=41 connect=42 accept=43 sendto=44 bind=49
    listen=50 socketpair=53 clone=56 fork=57 vfork=58 execve=59 exit=60 kill=62 uname=63 fcntl=72 getcwd=79
    rename=82 mkdir=83 rmdir=84 link=86 unlink=87 symlink=88 readlink=89 chmod=90 gettimeofday=96 getrlimit=97
    getrusage=98 sysinfo=99 times=100 ptrace=101 getuid=102 syslog=103 getgid=104 geteuid=107 getegid=108
    getppid=110 rt_sigqueueinfo=129 sigaltstack=131 mknod=133 uselib=134 personality=135 vhangup=153 modify_ldt=154
    pivot_root=155 prctl=157 adjtimex=159 chroot=161 acct=163 settimeofday=164 mount=165 umount2=166 swapon=167
    swapoff=168 reboot=169 sethostname=170 setdomainname=171 iopl=172 ioperm=173 init_module=175 delete_module=176
    quotactl=179 gettid=186 tkill=200 time=201 futex=202 sched_getaffinity=204 lookup_dcookie=212 getdents64=217
    restart_syscall=219 clock_settime=227 clock_gettime=228 clock_getres=229 clock_nanosleep=230 exit_group=231
    tgkill=234 kexec_load=246 add_key=248 request_key=249 keyctl=250 openat=257 mkdirat=258 mknodat=259
    newfstatat=262 unlinkat=263 renameat=264 linkat=265 symlinkat=266 readlinkat=267 fchmodat=268 faccessat=269
    ppoll=271 unshare=272 set_robust_list=273 rt_tgsigqueueinfo=297 perf_event_open=298 fanotify_init=300
    fanotify_mark=301 prlimit64=302 name_to_handle_at=303 open_by_handle_at=304 clock_adjtime=305 setns=308
    getcpu=309 process_vm_readv=310 process_vm_writev=311 kcmp=312 finit_module=313 renameat2=316 seccomp=317
    getrandom=318 kexec_file_load=320 bpf=321 execveat=322 userfaultfd=323 statx=332 rseq=334 pidfd_send_signal=424
    io_uring_setup=425 io_uring_enter=426 io_uring_register=427 open_tree=428 move_mount=429 fsopen=430
    fsconfig=431 fsmount=432 fspick=433 pidfd_open=434 clone3=435 openat2=437 pidfd_getfd=438 faccessat2=439
    process_madvise=440 mount_setattr=442 quotactl_fd=443 landlock_create_ruleset=444 landlock_add_rule=445
    landlock_restrict_self=446 memfd_secret=447 process_mrelease=448
""")

# aarch64 and riscv64 share the numbers of the kernel's asm-generic/unistd.h.
_GENERIC = _table("""
    getcwd=17 lookup_dcookie=18 fcntl=25 ioctl=29 mknodat=33 mkdirat=34 unlinkat=35 symlinkat=36 linkat=37
    renameat=38 umount2=39 mount=40 pivot_root=41 faccessat=48 chroot=51 fchmodat=53 openat=56 close=57 vhangup=58
    quotactl=60 getdents64=61 lseek=62 read=63 write=64 writev=66 pread64=67 ppoll=73 readlinkat=78 newfstatat=79
    fstat=80 acct=89 personality=92 exit=93 exit_group=94 unshare=97 futex=98 set_robust_list=99 nanosleep=101
    kexec_load=104 init_module=105 delete_module=106 clock_settime=112 clock_gettime=113 clock_getres=114
    clock_nanosleep=115 syslog=116 ptrace=117 sched_getaffinity=123 sched_yield=124 restart_syscall=128 kill=129
    tkill=130 tgkill=131 sigaltstack=132 rt_sigaction=134 rt_sigprocmask=135 rt_sigqueueinfo=138 rt_sigreturn=139
    reboot=142 times=153 uname=160 sethostname=161 setdomainname=162 getrlimit=163 getrusage=165 prctl=167
    getcpu=168 gettimeofday=169 settimeofday=170 adjtimex=171 getpid=172 getppid=173 getuid=174 geteuid=175
    getgid=176 getegid=177 gettid=178 sysinfo=179 shmget=194 shmat=196 socket=198 socketpair=199 bind=200
    listen=201 accept=202 connect=203 sendto=206 brk=214 munmap=215 mremap=216 add_key=217 request_key=218
    keyctl=219 clone=220 execve=221 mmap=222 swapon=224 swapoff=225 mprotect=226 madvise=233 rt_tgsigqueueinfo=240
    perf_event_open=241 prlimit64=261 fanotify_init=262 fanotify_mark=263 name_to_handle_at=264
    open_by_handle_at=265 clock_adjtime=266 setns=268 process_vm_readv=270 process_vm_writev=271 kcmp=272
    finit_module=273 renameat2=276 seccomp=277 getrandom=278 bpf=280 execveat=281 userfaultfd=282 statx=291
    rseq=293 kexec_file_load=294 pidfd_send_signal=424 io_uring_setup=425 io_uring_enter=426 io_uring_register=427
    open_tree=428 move_mount=429 fsopen=430 fsconfig=431 fsmount=432 fspick=433 pidfd_open=434 clone3=435
    openat2=437 pidfd_getfd=438 faccessat2=439 process_madvise=440 mount_setattr=442 quotactl_fd=443
    landlock_create_ruleset=444 landlock_add_rule=445 landlock_restrict_self=446 memfd_secret=447
    process_mrelease=448
""")

NEWEST = 450
"""The newest call that these tables take into account (set_mempolicy_home_node, Linux 5.17); later ones have the same
number everywhere."""

CONVENTIONS: Mapping[str, Convention] = {
    "x86_64": Convention(audit=0xC000003E, numbers=_X86_64, limit=0x40000000),
    "aarch64": Convention(audit=0xC00000B7, numbers=_GENERIC),
    # The instruction cache of RISC-V is flushed by the kernel; code linked in memory needs it.
    "riscv64": Convention(audit=0xC00000F3, numbers={**_GENERIC, "riscv_flush_icache": 259}),
}
"""By the machine's name as uname gives it."""

KNOWN = frozenset(name for convention in CONVENTIONS.values() for name in convention.numbers)
"""Every name that a filter may use."""


def convention() -> Convention | None:
    """Return the convention of this very process; None where it is not in the table."""
    # A 32-bit interpreter on a 64-bit kernel uses other numbers.
    if not sys.platform.startswith("linux") or struct.calcsize("P") != 8:
        return None
    return CONVENTIONS.get(os.uname().machine)
