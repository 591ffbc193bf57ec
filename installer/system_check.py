"""Whether a package can be made for Android, macOS or Windows at all, from its manifest and its interface.

Invariant: pure; what cannot be shown to be right is refused, with the package, the functions and the target in the
message. Nothing is checked for Linux, which has the whole platform interface. The spec is docs/spec/targets.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from visget.errors import UnsupportedError
from visget.format.abi_classes import reachable
from visget.format.package import Package
from visget.format.prototypes import Api, CType, Float, Function, FunctionType, Integer, Opaque, RecordRef
from visget.installer.systems import LINUX, NAMES, WINDOWS
from visget.installer.target import Target

_WORD = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
# Types of the system's headers whose size differs, spelled so in a prototype.
_SYSTEM_TYPES = frozenset(
    [
        "mode_t",
        "dev_t",
        "nlink_t",
        "ino_t",
        "blksize_t",
        "suseconds_t",
        "clockid_t",
        "clock_t",
        "pthread_t",
        "pthread_mutex_t",
        "pthread_cond_t",
        "jmp_buf",
        "va_list",
        "locale_t",
        "sigset_t",
        "fpos_t",
        "wctype_t",
        "wint_t",
        "mbstate_t",
        "fd_set",
    ]
)
# Structs of the system's headers that are laid out otherwise on macOS or Android; on Windows a compiler
# compares them all.
_SYSTEM_RECORDS = frozenset(
    [
        "stat",
        "timeval",
        "dirent",
        "lconv",
        "addrinfo",
        "sigaction",
        "termios",
        "utsname",
        "statvfs",
        "rusage",
        "passwd",
        "group",
        "hostent",
        "servent",
        "protoent",
        "sockaddr",
        "sockaddr_in",
        "sockaddr_in6",
        "sockaddr_un",
        "sockaddr_storage",
        "msghdr",
        "flock",
        "itimerval",
        "__jmp_buf_tag",
        "timezone",
        "sched_param",
        "epoll_event",
        "sysinfo",
    ]
)
# On Windows besides: what is 64 bits wide elsewhere, or is not there.
_WINDOWS_TYPES = _SYSTEM_TYPES | frozenset(
    [
        "wchar_t",
        "off_t",
        "ssize_t",
        "pid_t",
        "int_fast16_t",
        "uint_fast16_t",
        "int_fast32_t",
        "uint_fast32_t",
        "ulong",
        "u_long",
        "FILE",
    ]
)
_EIGHT = 8


def check_system(package: Package, merged: Sequence[Package], target: Target) -> None:
    """Refuse a package that cannot be made for `target`.

    Args:
        package: the package.
        merged: the packages whose code becomes part of its own.
        target: what it would be compiled for.

    Raises:
        UnsupportedError: it cannot.
    """
    if target.system == LINUX:
        return
    for one in (package, *merged):
        _check_imports(one, target)
    _check_interface(package, target)


def _label(package: Package) -> str:
    return f"{package.manifest.name} {package.manifest.version}"


def _check_imports(package: Package, target: Target) -> None:
    missing = sorted(set(package.manifest.imports) - NAMES[target.system].available)
    if missing:
        listed = ", ".join(missing[:12]) + (f" and {len(missing) - 12} more" if len(missing) > 12 else "")
        raise UnsupportedError(
            f"{_label(package)} cannot be made for {target.platform}: it uses {listed}, which visget does not have "
            "there",
            where=_label(package),
            hint="docs/spec/targets.md lists what each system has; its author can do without these functions",
            details={"package": _label(package), "target": target.platform, "functions": missing},
        )


def _check_interface(package: Package, target: Target) -> None:
    api = package.api()
    exports = frozenset(package.manifest.exports)
    functions = [one for one in api.functions if one.name in exports]
    problems = dict.fromkeys(sorted(exports - {function.name for function in functions}), "its C types are not known")
    headers = _COMMENT.sub(" ", "\n".join(package.headers().values()))
    for function in functions:
        if why := next(_problems(function, api, headers, target), None):
            problems[function.name] = why
    if problems:
        listed = "; ".join(f"{name}: {why}" for name, why in list(problems.items())[:8])
        more = f" (and {len(problems) - 8} more)" if len(problems) > 8 else ""
        raise UnsupportedError(
            f"{_label(package)} cannot be made for {target.platform}: {listed}{more}",
            where=_label(package),
            hint="its author can use types of a fixed size, such as int64_t, or leave these functions out",
            details={"package": _label(package), "target": target.platform, "functions": problems},
        )


def _types(function: Function) -> list[CType]:
    return [function.result, *(parameter.type for parameter in function.parameters)]


def _problems(function: Function, api: Api, headers: str, target: Target) -> Iterator[str]:
    windows = target.system == WINDOWS
    spelled = [function.result_c, *(parameter.c for parameter in function.parameters)]
    odd = _WINDOWS_TYPES if windows else _SYSTEM_TYPES
    for text in spelled:
        if words := sorted(odd & set(_WORD.findall(text))):
            yield f"{words[0]} is another type there"
    for kind, owner in reachable(_types(function), api):
        if isinstance(kind, Opaque):
            yield f"{kind.name} is another type there"
        system = isinstance(kind, RecordRef) and kind.name.split(" ")[-1] in _SYSTEM_RECORDS
        if isinstance(kind, RecordRef) and system and not _defines(headers, kind.name):
            yield f"{kind.name} is the system's, and laid out otherwise there"
        if windows and owner is not None and any(field.bits for field in owner.fields):
            yield f"{owner.name} has bit-fields, which are laid out otherwise there"
        if windows and isinstance(kind, FunctionType):
            yield from (f"a callback: {why}" for why in _by_value([kind.result, *kind.parameters]))
    if windows:
        yield from _by_value(_types(function))


def _defines(headers: str, name: str) -> bool:
    return re.search(rf"{re.escape(name)}\s*\{{", headers) is not None


def _by_value(kinds: Sequence[CType]) -> Iterator[str]:
    for kind in kinds:
        if isinstance(kind, RecordRef):
            yield f"{kind.name} is passed by value, which goes otherwise there"
        elif isinstance(kind, Integer | Float) and kind.size > _EIGHT:
            yield f"{kind.name} is passed otherwise there"
