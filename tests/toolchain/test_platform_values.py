"""Every constant and every layout of visget's headers, compared with each C library and processor.

Equal everywhere, or a decision below. docs/spec/platform.md, section 7, names the decisions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping

import pytest
from platformpage import PAGE
from platformvalues import MACHINES, Machine, evaluate, layouts, names

Holds = Callable[[int, int], bool]


def largest(ours: int, theirs: int) -> bool:
    """A size of a buffer, or of what the C library writes."""
    return ours >= theirs


def smallest(ours: int, theirs: int) -> bool:
    """A promise of a minimum."""
    return ours <= theirs


def decided(ours: int, theirs: int) -> bool:
    """Something of the page's table of decisions, or what nothing outside of the module is told."""
    return True


LARGEST = (
    "BUFSIZ MB_LEN_MAX NI_MAXHOST NGROUPS_MAX HOST_NAME_MAX PTHREAD_STACK_MIN MINSIGSTKSZ SIGSTKSZ L_ctermid L_cuserid"
)
SMALLEST = (
    "FOPEN_MAX TMP_MAX LINE_MAX PTHREAD_KEYS_MAX SOMAXCONN RE_DUP_MAX CHARCLASS_NAME_MAX COLL_WEIGHTS_MAX NL_ARGMAX "
    "NL_LANGMAX NL_MSGMAX NL_NMAX NL_SETMAX NL_TEXTMAX AF_MAX PF_MAX"
)
DECIDED = (
    "O_DIRECTORY O_NOFOLLOW O_DIRECT O_TMPFILE O_LARGEFILE O_ACCMODE LC_ALL_MASK math_errhandling DECIMAL_DIG "
    "WCHAR_MIN WCHAR_MAX INT_FAST16_MAX INT_FAST32_MAX _POSIX_CPUTIME _POSIX_THREAD_CPUTIME _POSIX_MONOTONIC_CLOCK "
    "_POSIX_CHOWN_RESTRICTED"
)
CONSTANTS: Mapping[str, Holds] = {
    **dict.fromkeys(LARGEST.split(), largest),
    **dict.fromkeys(SMALLEST.split(), smallest),
    **dict.fromkeys(DECIDED.split(), decided),
}
"""By name; each is named on the page."""

FAMILIES: Mapping[str, Holds] = {
    # Named on the page as families.
    r"FE_\w+|FTW_\w+|LDBL_\w+|B\d+": decided,
    # Of the families on the page: other names of the same.
    r"U?INT_FAST(?:16|32)_M(?:AX|IN)|EXT[AB]|TTYDEF_SPEED": decided,
    "NGROUPS": largest,
    # Numbers that nobody hands to a C library: how many there are of something in <elf.h>, bits of a file size.
    r"R_\w+_NUM|DT_\w*NUM": smallest,
    "FILESIZEBITS": decided,
}

TYPES: Mapping[str, Holds] = {
    # Named on the page.
    r"(?:size|align)of (?:pthread_mutex_t|mtx_t|pthread_attr_t|jmp_buf)|alignof sem_t": largest,
    r"(?:size|align)of pthread_(?:mutex|cond|barrier|rwlock)attr_t": largest,
    r"(?:size|align)of struct (?:rusage|sysinfo|sched_param|cmsghdr)": largest,
    r"width struct (?:msghdr|cmsghdr) (?:msg_iovlen|msg_controllen|cmsg_len)": largest,
    r"\w+ struct stat\b.*|\w+ (?:blksize|nlink)_t": decided,
    r"\w+ (?:fenv|fexcept|regoff|regmatch)_t|offset struct re_pattern_buffer re_nsub": decided,
    r"\w+ u?int_fast(?:16|32)_t|sign of wchar_t": decided,
    # The built-ins for variable arguments.
    "sizeof va_list": decided,
    # The kernel fills as much as it is told that there is room.
    "sizeof struct tcp_info": smallest,
    # Of packets in the sources' own memory; fields and sizes agree.
    r"alignof struct (?:ethhdr|ether_header)|\w+ struct tftphdr(?: th_data)?": decided,
    # Single bits of fd_set, which is used by macros.
    "sign of fd_mask": decided,
}  # fmt: skip


@functools.cache
def values(machine: Machine | None) -> Mapping[str, int]:
    return evaluate(machine, {**{name: name for name in names()}, **layouts()})


def decision(name: str) -> Holds | None:
    patterns = {**TYPES, **FAMILIES}
    return CONSTANTS.get(name) or next((patterns[key] for key in patterns if re.fullmatch(key, name)), None)


def differences(machine: Machine) -> dict[str, tuple[int, int]]:
    theirs = values(machine)
    return {name: (ours, theirs[name]) for name, ours in values(None).items() if theirs.get(name, ours) != ours}


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_constant_and_layout_is_equal_or_decided(machine: Machine) -> None:
    assert len(values(machine)) > 8000
    wrong = {}
    for name, (ours, theirs) in differences(machine).items():
        holds = decision(name)
        if holds is None or not holds(ours, theirs):
            wrong[name] = (ours, theirs)
    assert wrong == {}


def test_the_comparison_sees_differences() -> None:
    """Each decision is needed somewhere: what is listed in vain hides something one day."""
    seen = {name for machine in MACHINES for name in differences(machine)}
    assert {name for name in CONSTANTS if name not in seen} == set()
    for pattern in (*TYPES, *FAMILIES):
        assert any(re.fullmatch(pattern, name) for name in seen), pattern


def test_the_page_names_every_decision() -> None:
    section = PAGE.read_text().split("## 7. ")[1]
    assert [name for name in CONSTANTS if f"`{name}`" not in section] == []
