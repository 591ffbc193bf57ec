"""The platform interface, level 2: what only a program may use, because it changes or replaces the process.

Invariant: as visget.format.imports, whose table it is a part of; a package that imports one of these names is
refused.
The spec is docs/spec/platform.md.
"""

from __future__ import annotations

# fmt: off
PROGRAM: tuple[tuple[str, str], ...] = (
    # <signal.h>
    ("i32 (ptr)", "sigsuspend sigisemptyset"),
    ("void (ptr, ptr)", "psiginfo"),
    ("void (i32, ptr)", "psignal"),
    ("i32 (i32, i32)", "killpg siginterrupt"),
    ("i32 (ptr, ptr)", "sigaltstack"),
    ("i32 (i32)", "sighold sigignore sigpause sigrelse"),
    ("ptr (i32, ptr)", "sigset bsd_signal signal"),
    ("i32 (i32, i32, i64)", "sigqueue"),
    ("i32 (ptr, ptr, ptr)", "sigorset sigandset"),
    # <err.h>
    ("void (ptr, ...)", "warn warnx"),
    ("void (ptr, ptr)", "vwarn vwarnx"),
    ("void (i32, ptr, ...)", "err errx"),
    ("void (i32, ptr, ptr)", "verr verrx"),
    # <getopt.h>
    ("i32 (i32, ptr, ptr)", "getopt"),
    ("i32 (i32, ptr, ptr, ptr, ptr)", "getopt_long getopt_long_only"),
    # <stdlib.h>
    ("void (i32)", "quick_exit"),
    ("i32 ()", "clearenv"),
    # <spawn.h>
    ("i32 (ptr, ptr, ptr, ptr, ptr, ptr)", "posix_spawn posix_spawnp"),
    (
        "i32 (ptr)",
        "posix_spawnattr_init posix_spawnattr_destroy posix_spawn_file_actions_init "
        "posix_spawn_file_actions_destroy",
    ),
    ("i32 (ptr, i16)", "posix_spawnattr_setflags"),
    (
        "i32 (ptr, ptr)",
        "posix_spawnattr_getflags posix_spawnattr_getpgroup posix_spawnattr_setsigmask posix_spawnattr_getsigmask "
        "posix_spawnattr_setsigdefault posix_spawnattr_getsigdefault posix_spawnattr_setschedparam "
        "posix_spawnattr_getschedparam posix_spawnattr_getschedpolicy posix_spawn_file_actions_addchdir_np",
    ),
    (
        "i32 (ptr, i32)",
        "posix_spawnattr_setpgroup posix_spawnattr_setschedpolicy posix_spawn_file_actions_addclose "
        "posix_spawn_file_actions_addfchdir_np",
    ),
    ("i32 (ptr, i32, ptr, i32, i32)", "posix_spawn_file_actions_addopen"),
    ("i32 (ptr, i32, i32)", "posix_spawn_file_actions_adddup2"),
    # <pty.h>
    ("i32 (ptr, ptr, ptr, ptr, ptr)", "openpty"),
    ("i32 (ptr, ptr, ptr, ptr)", "forkpty"),
    # <unistd.h>
    ("i32 (i32)", "alarm setuid seteuid setgid setegid nice"),
    ("i32 ()", "pause fork vfork setsid setpgrp"),
    ("i32 (ptr, ptr)", "execv execvp"),
    ("i32 (ptr, ptr, ptr)", "execve execvpe"),
    ("i32 (ptr, ptr, ...)", "execle execl execlp"),
    ("i32 (i32, ptr, ptr)", "fexecve"),
    ("i32 (i32, i32)", "setpgid tcsetpgrp setreuid setregid ualarm daemon"),
    ("i32 (i32, i32, i32)", "setresuid setresgid"),
    ("i32 (ptr)", "chroot"),
    ("ptr (ptr)", "getpass"),
    # <sys/time.h>
    ("i32 (i32, ptr)", "getitimer"),
    ("i32 (i32, ptr, ptr)", "setitimer"),
    # <sys/resource.h>
    ("i32 (i32, ptr)", "setrlimit"),
    ("i32 (i32, i32, i32)", "setpriority"),
    # <sys/wait.h>
    ("i32 (ptr)", "wait"),
    ("i32 (i32, ptr, i32)", "waitpid"),
    ("i32 (i32, i32, ptr, i32)", "waitid"),
    ("i32 (ptr, i32, ptr)", "wait3"),
    ("i32 (i32, ptr, i32, ptr)", "wait4"),
    # <grp.h>
    ("ptr ()", "getgrent"),
    ("void ()", "endgrent setgrent"),
    ("i32 (i64, ptr)", "setgroups"),
    ("i32 (ptr, i32)", "initgroups"),
    # <pwd.h>
    ("void ()", "setpwent endpwent"),
    ("ptr ()", "getpwent"),
    # <wordexp.h>
    ("i32 (ptr, ptr, i32)", "wordexp"),
    ("void (ptr)", "wordfree"),
)
# fmt: on
