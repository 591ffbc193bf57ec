"""Which system calls each child may make. The reasons are docs/spec/worker.md, section "System calls".

Invariant: a worker's filter is a list of what is allowed; what only a broken or hostile program would ask for ends
the process (SIGSYS, so there is no second try), and what honest code asks for now and then, and copes without,
fails with an error. The linker is a program that visget does not know from the inside, so its filter is a list of
what is refused; its files are guarded by Landlock.
"""

from __future__ import annotations

import errno
import mmap
import os

from visget.installer.seccomp import ALLOW, KILL, Action, Filter, Rule, Where, rule

_WRITE, _EXECUTE = mmap.PROT_WRITE, mmap.PROT_EXEC
# Absent is also every call that is newer than the tables: C libraries try those, and fall back as on an older kernel.
_DENIED, _FORBIDDEN, _ABSENT = Action.fail(errno.EACCES), Action.fail(errno.EPERM), Action.fail(errno.ENOSYS)

# Memory without code, the own threads and signals, the clocks, and the three pipes.
_CALCULATING = rule(
    ALLOW,
    "read write writev close fstat lseek brk munmap mremap madvise futex rt_sigaction rt_sigprocmask rt_sigreturn "
    "sigaltstack getpid gettid clock_gettime clock_getres gettimeofday time getrusage times getrandom sched_yield "
    "sched_getaffinity sysinfo uname getcpu restart_syscall exit exit_group",
)
_DATA_MEMORY = rule(ALLOW, "mmap mprotect", Where(2, _EXECUTE, 0))
# The C library, Python (for a traceback) and LLVM try to look at files and terminals, and go on when they cannot.
_LOOKING = (
    rule(
        _DENIED,
        "open openat openat2 stat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat getcwd "
        "getdents64",
    ),
    rule(Action.fail(errno.ENOTTY), "ioctl"),
    rule(_FORBIDDEN, "prctl fcntl getrlimit prlimit64"),
)
# A library may offer functions that change files; they get the answer of a system where nothing may be written.
_CHANGING = rule(
    _DENIED,
    "unlink unlinkat rename renameat renameat2 mkdir mkdirat rmdir link linkat symlink symlinkat chmod fchmodat",
)
# What a library's own threads need, waiting included, and the numbers of the user, which a library may ask for.
_WAITING = rule(
    ALLOW,
    "nanosleep clock_nanosleep poll ppoll set_robust_list rseq getuid geteuid getgid getegid getppid",
)
_CLONE_THREAD = 0x00010F00  # CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_SIGHAND, CLONE_THREAD: a thread, not a process
_CLONE_NEW = 0x7E020000  # CLONE_NEW*: a user namespace is a way to much of the kernel
_WRITING_FLAGS = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC


def _own_signals(process: int) -> Rule:
    """Return the rule for abort(), which signals a thread of the own process; no other can be reached."""
    return rule(ALLOW, "tgkill", Where(0, 0xFFFFFFFF, process))


def compiling(process: int) -> Filter:
    """Return the filter of the compile worker `process`, for the time after its last import."""
    return Filter(rules=(_CALCULATING, _DATA_MEMORY, _own_signals(process), *_LOOKING), default=KILL, unknown=_ABSENT)


def loading(process: int, *, in_memory: bool) -> Filter:
    """Return the filter of the answer worker `process` while it loads the library and its constructors run.

    Args:
        process: its id.
        in_memory: whether LLVM links an object file, which writes code first and makes it executable then; the
            system's loader maps code from the file. Nothing is ever writable and executable at once.
    """
    both = _WRITE | _EXECUTE
    mapping = (
        rule(KILL, "mmap mprotect", Where(2, both, both)),
        rule(ALLOW, "mmap"),
        rule(ALLOW, "mprotect", None if in_memory else Where(2, _EXECUTE, 0)),
        *((rule(ALLOW, "riscv_flush_icache"),) if in_memory else ()),
    )
    reading = (
        rule(ALLOW, "open", Where(1, _WRITING_FLAGS, 0)),
        rule(ALLOW, "openat", Where(2, _WRITING_FLAGS, 0)),
        rule(ALLOW, "newfstatat stat lstat pread64"),
    )
    # seccomp: for the stricter filter afterwards.
    return Filter(
        rules=(
            _CALCULATING, *mapping, *reading, rule(ALLOW, "seccomp"), _own_signals(process), *_LOOKING, _CHANGING,
            # What is not allowed here cannot be allowed afterwards.
            _WAITING, *_threads(),
        ),
        default=KILL,
        unknown=_ABSENT,
    )  # fmt: skip


def calling(process: int) -> Filter:
    """Return the filter of the answer worker `process` while it calls functions, which may use threads."""
    return Filter(
        rules=(
            _CALCULATING, _DATA_MEMORY, _own_signals(process), *_LOOKING, _CHANGING, _WAITING,
            *_threads(),
        ),
        default=KILL,
        unknown=_ABSENT,
    )  # fmt: skip


def _threads() -> tuple[Rule, ...]:
    """Return the rules that let a library start threads, and no process."""
    return (
        *_no_namespaces(KILL),
        rule(ALLOW, "clone", Where(0, _CLONE_THREAD, _CLONE_THREAD)),
        # Its flags lie in memory, where no filter can see them; C libraries then use clone.
        rule(_ABSENT, "clone3"),
    )


def _no_namespaces(action: Action) -> tuple[Rule, ...]:
    """Return the rules that answer a clone with new namespaces by `action`."""
    bits = (1 << place for place in range(32))
    return tuple(rule(action, "clone", Where(0, bit, bit)) for bit in bits if bit & _CLONE_NEW)


def linking() -> Filter:
    """Return the filter of the linker and of the programs that it starts."""
    return Filter(
        rules=(
            *_no_namespaces(_FORBIDDEN),
            # Its flags lie in memory, where no filter can see them; C libraries then use clone.
            rule(_ABSENT, "clone3 io_uring_setup io_uring_enter io_uring_register"),
            # Typing into the terminal of the user: TIOCSTI, TIOCLINUX.
            rule(_FORBIDDEN, "ioctl", Where(1, 0xFFFFFFFF, 0x5412)),
            rule(_FORBIDDEN, "ioctl", Where(1, 0xFFFFFFFF, 0x541C)),
            rule(
                _FORBIDDEN,
                "socket socketpair connect bind listen accept sendto "
                "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp "
                "pidfd_open pidfd_getfd pidfd_send_signal kill tkill rt_sigqueueinfo rt_tgsigqueueinfo "
                "mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr "
                "unshare setns bpf perf_event_open userfaultfd keyctl add_key request_key "
                "init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct "
                "quotactl quotactl_fd settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname "
                "iopl ioperm modify_ldt personality syslog name_to_handle_at open_by_handle_at fanotify_init "
                "fanotify_mark lookup_dcookie vhangup uselib mknod mknodat memfd_secret shmget shmat",
            ),
        ),
        default=ALLOW,
        unknown=_ABSENT,
    )
