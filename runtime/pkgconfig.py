"""Flags for C compilers, read from an installed entry's pkg-config file without needing the program pkg-config.

Invariant: the flags hold absolute paths of the entry as it lies now, and a program linked with them finds the library
when it runs, because the entry's directory is put into its run path.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from visget.errors import LoadError

_VARIABLE = re.compile(r"\$\{([A-Za-z0-9_.]+)\}")


def search_path(entry: Path) -> Path:
    """Return the directory that makes pkg-config find the library: an element of PKG_CONFIG_PATH."""
    return entry.absolute() / "lib" / "pkgconfig"


def compile_flags(entry: Path, name: str) -> list[str]:
    """Return what a C compiler needs to compile against the library `name` installed in `entry`.

    Raises:
        LoadError: the entry has no usable pkg-config file.
    """
    return [word for fields in _all_fields(entry, name) for word in _words(fields, "Cflags")]


def link_flags(entry: Path, name: str, *, static: bool = False) -> list[str]:
    """Return what a C compiler needs to link the library `name` installed in `entry`.

    Args:
        entry: an entry of the native store.
        name: the package's name.
        static: whether to name the archive, which makes the program independent of the store.

    Raises:
        LoadError: the entry has no usable pkg-config file.
    """
    fields = _fields_of(entry, name)
    flags = _words(fields, "Libs")
    if static:
        # With its archive a program needs the store no longer, so neither a search path nor a run path goes into it.
        archive = entry.absolute() / "lib" / f"lib{name}.a"
        kept = [flag for flag in flags if not flag.startswith(("-L", "-Wl,-rpath,"))]
        own = [str(archive) if flag == f"-l{name}" else flag for flag in kept]
        # Linkers read archives once, in their order: what it needs comes after it, and the maths library last.
        needed = [_archive_of(other) for other in _all_fields(entry, name)[1:]]
        return [*own, *needed, *_words(fields, "Libs.private")]
    folders = [flag[2:] for flag in flags if flag.startswith("-L")]
    return flags + [word for folder in folders if (word := f"-Wl,-rpath,{folder}") not in flags]


def _fields_of(entry: Path, name: str) -> dict[str, str]:
    file = search_path(entry) / f"{name}.pc"
    try:
        return read_fields(file.read_text(encoding="utf-8"), file.parent)
    except (OSError, ValueError) as error:
        raise LoadError(
            f"the installed library {name} is damaged: its pkg-config file cannot be used: {error}",
            hint=f"install it again: visget install --reinstall {name}",
            where=str(file),
        ) from error


def _all_fields(entry: Path, name: str) -> list[dict[str, str]]:
    """Return the fields of a library, then of those that it requires, each before those that it requires itself."""
    found: dict[str, dict[str, str]] = {}
    pending = [name]
    while pending:
        one = pending.pop(0)
        # Whoever is required by several comes after the last of them.
        found.pop(one, None)
        found[one] = fields = _fields_of(entry, one)
        pending += [other for other in re.split(r"[\s,]+", fields.get("Requires.private", "")) if other]
    return list(found.values())


def _archive_of(fields: dict[str, str]) -> str:
    """Return the archive of a library, whose fields name its directory and its name."""
    words = _words(fields, "Libs")
    folder = next(Path(word[2:]) for word in words if word.startswith("-L"))
    name = next(word[2:] for word in words if word.startswith("-l"))
    return str(folder / f"lib{name}.a")


def _words(fields: dict[str, str], field: str) -> list[str]:
    return shlex.split(fields.get(field, ""))


def read_fields(text: str, folder: Path) -> dict[str, str]:
    """Return the fields of a pkg-config file (``Libs`` and so on), its variables put in.

    Args:
        text: the file.
        folder: where it lies: the variable ``pcfiledir``.

    Raises:
        ValueError: a line is neither a variable nor a field, or a variable is not defined above its use.
    """
    variables = {"pcfiledir": _quoted(str(folder)), "pc_sysrootdir": "/"}
    fields: dict[str, str] = {}

    def put(match: re.Match[str]) -> str:
        if match[1] not in variables:
            raise ValueError(f"the variable {match[1]} is not defined")
        return variables[match[1]]

    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        match = re.match(r"([A-Za-z0-9_.]+)\s*([=:])", line)
        if match is None:
            raise ValueError(f"line {number} is neither a variable nor a field")
        target = variables if match[2] == "=" else fields
        try:
            value = _VARIABLE.sub(put, line[match.end() :]).strip()
            shlex.split(value)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        target[match[1]] = value
    return fields


def _quoted(path: str) -> str:
    """Return `path` for a place inside a larger word: a backslash before what a shell would take apart."""
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", path)
