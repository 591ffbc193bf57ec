"""Line tables: which source line each instruction of a module came from (section "lines" of a package).

Invariant: file names are relative and hold no `..`; an absolute path keeps only its last part. An instruction is
named by its function and its ordinal there (see visget.format.irtext), counted in the module without debug
information: removing debug information never removes an instruction. The spec is docs/spec/vis-1.md, section 7.
"""

from __future__ import annotations

import bisect
import posixpath
import re
from dataclasses import dataclass

from visget.errors import FormatError
from visget.format import strictjson
from visget.format.irtext import Module, mask, scan, unmask

LIMIT = 32 << 20
"""The largest encoded table, in bytes."""

_FORMAT = 1
_DBG = re.compile(r"!dbg !(\d+)")
_LOCATION = re.compile(r"!DILocation\((.*)\)\Z")
_FIELD = re.compile(r'(\w+): (!?\w+|"\d+")')
_DI_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(?:DI|GenericDI)\w*\(.*\)\n?", re.M)
_DEBUG_FLAG = re.compile(r'^!(\d+) = !\{i32 \d+, !("\d+"), i32 \d+\}$', re.M)
_NODE = re.compile(r"^(!\d+ = (?:distinct )?!\{)(.*)(\})$", re.M)
_ATTACHMENT = re.compile(r"(,?) !(?:[A-Za-z_][\w.]*) !(\d+)(?=[ ,\n{])")
_RECORD = re.compile(r"^    #dbg_.*\n", re.M)
_DEBUG_LIST = re.compile(r"^!llvm\.dbg\.cu = .*\n", re.M)
_FLAG_LIST = re.compile(r"^(!llvm\.module\.flags = !\{)(.*)(\})$", re.M)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the source. Lines and columns count from 1; column 0 is not known."""

    file: str
    line: int
    column: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLines:
    """The lines of one function: where it begins, and the place from each listed ordinal on."""

    start: Place | None
    ordinals: tuple[int, ...]
    places: tuple[Place | None, ...]

    def at(self, ordinal: int) -> Place | None:
        """Return the place of one instruction; where the compiler gave it none, the function's beginning."""
        index = bisect.bisect_right(self.ordinals, ordinal) - 1
        place = self.places[index] if index >= 0 else None
        return place or self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTable:
    """The lines of all functions of a module."""

    functions: dict[str, FunctionLines]

    @property
    def files(self) -> tuple[str, ...]:
        """All file names, sorted."""
        names = {place.file for lines in self.functions.values() for place in (lines.start, *lines.places) if place}
        return tuple(sorted(names))

    def lookup(self, function: str, ordinal: int | None = None) -> Place | None:
        """Return where an instruction, or without ordinal a function, came from; None when that is not known."""
        lines = self.functions.get(function)
        if lines is None:
            return None
        return lines.start if ordinal is None else lines.at(ordinal)

    def encode(self) -> bytes:
        """Return the section "lines". Numbers are differences to the row before, which compresses well."""
        files = self.files
        index = {name: position for position, name in enumerate(files)}
        functions: dict[str, object] = {}
        for name, lines in sorted(self.functions.items()):
            rows: list[int] = []
            ordinal, line = 0, lines.start.line if lines.start else 0
            for at, place in zip(lines.ordinals, lines.places, strict=True):
                file = index[place.file] if place else -1
                rows += [at - ordinal, file, place.line - line if place else 0, place.column if place else 0]
                ordinal, line = at, place.line if place else line
            start = [index[lines.start.file], lines.start.line] if lines.start else []
            functions[name] = {"start": start, "rows": rows}
        return strictjson.dumps({"format": _FORMAT, "files": list(files), "functions": functions})

    @staticmethod
    def parse(data: bytes | memoryview) -> LineTable:
        """Return the table in the section `data`.

        Raises:
            FormatError: it is not a line table.
        """
        document = strictjson.loads(data, what="the line table", limit=LIMIT, marks=LIMIT)
        if set(document) != {"format", "files", "functions"} or document["format"] != _FORMAT:
            raise FormatError("the line table has an unknown form")
        files, functions = document["files"], document["functions"]
        if not isinstance(files, list) or not isinstance(functions, dict):
            raise FormatError("the line table has an unknown form")
        for name in files:
            if not isinstance(name, str) or name != relative_path(name) or not name:
                raise FormatError("the line table names a file that is not a plain relative path")
        return LineTable(functions={name: _function(name, value, files) for name, value in functions.items()})


def _function(name: str, value: object, files: list[str]) -> FunctionLines:
    bad = FormatError(f"the line table is damaged at the function {name[:80]!r}")
    if not isinstance(value, dict) or set(value) != {"start", "rows"}:
        raise bad
    start, rows = value["start"], value["rows"]
    if not _is_ints(start) or not _is_ints(rows) or len(start) not in (0, 2) or len(rows) % 4:
        raise bad

    def place(file: int, line: int, column: int) -> Place | None:
        if file == -1:
            return None
        if not 0 <= file < len(files) or not 0 <= line < 1 << 31 or not 0 <= column < 1 << 31:
            raise bad
        return Place(files[file], line, column)

    begin = place(start[0], start[1], 0) if start else None
    ordinals: list[int] = []
    places: list[Place | None] = []
    ordinal, line = 0, begin.line if begin else 0
    for index in range(0, len(rows), 4):
        step, file, up, column = rows[index : index + 4]
        if step < 0 or (step == 0 and index):
            raise bad
        ordinal += step
        line += up
        ordinals.append(ordinal)
        places.append(place(file, line, column))
    return FunctionLines(start=begin, ordinals=tuple(ordinals), places=tuple(places))


def _is_ints(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int for item in value)


def relative_path(directory_or_name: str, name: str = "") -> str:
    """Return a path that tells nothing about the machine: relative, with `/`, without `..`."""
    path = (name or directory_or_name).replace("\\", "/")
    absolute = path.startswith("/") or re.match(r"[A-Za-z]:", path)
    if name and not absolute:
        directory = directory_or_name.replace("\\", "/")
        if not (directory.startswith("/") or re.match(r"[A-Za-z]:", directory)):
            path = posixpath.join(directory, path)
    if absolute:
        return path.rpartition("/")[2]
    parts = [part for part in posixpath.normpath(path).split("/") if part not in ("..", ".", "")]
    return "/".join(parts)


def extract_lines(text: str) -> LineTable:
    """Return the line table of a module whose text still has its debug information.

    Raises:
        FormatError: the text is not a module.
    """
    module = scan(text)
    places = _Places(module)
    functions: dict[str, FunctionLines] = {}
    for function in module.definitions():
        subprogram = _DBG.search(function.suffix)
        start = places.of_subprogram(subprogram[1]) if subprogram else None
        ordinals: list[int] = []
        found: list[Place | None] = []
        # An instruction without a location gets a row too, or it would inherit the row above.
        for ordinal in range(len(function.starts)):
            match = _DBG.search(function.instruction(ordinal))
            place = places.of_location(match[1]) if match else None
            if not found or place != found[-1]:
                ordinals.append(ordinal)
                found.append(place)
        if start or any(found):
            lines = FunctionLines(start=start, ordinals=tuple(ordinals), places=tuple(found))
            functions[function.name] = lines
    return LineTable(functions=functions)


class _Places:
    """Resolves debug metadata, remembering what it has seen."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.seen: dict[str, Place | None] = {}
        self.files: dict[str, str | None] = {}

    def fields(self, node: str) -> dict[str, str]:
        return dict(_FIELD.findall(self.module.metadata.get(node, "")))

    def of_location(self, node: str) -> Place | None:
        if node not in self.seen:
            fields = self.fields(node) if _LOCATION.match(self.module.metadata.get(node, "")) else {}
            file = self.file_of(fields.get("scope", ""))
            line = int(fields.get("line", 0))
            # Line 0 is the compiler's word for "no line".
            self.seen[node] = Place(file, line, int(fields.get("column", 0))) if file and line else None
        return self.seen[node]

    def of_subprogram(self, node: str) -> Place | None:
        fields = self.fields(node)
        file = self.file_of(f"!{node}")
        line = int(fields.get("line", 0))
        return Place(file, line) if file and line else None

    def file_of(self, scope: str) -> str | None:
        node = scope[1:]
        if node in self.files:
            return self.files[node]
        self.files[node] = None
        fields = self.fields(node)
        if "filename" in fields:
            name = relative_path(self._string(fields.get("directory")), self._string(fields["filename"]))
            self.files[node] = name or None
        elif fields.get("file", "") != "" or fields.get("scope", "") != "":
            self.files[node] = self.file_of(fields.get("file") or fields["scope"])
        return self.files[node]

    def _string(self, token: str | None) -> str:
        text = self.module.name(token) if token else ""
        return re.sub(rb"\\([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), text.encode()).decode(errors="replace")


def strip_debug(text: str) -> str:
    """Return the text of a module without its debug information; LLVM's parser then drops what became unused.

    Locations in loop metadata go too: they would keep the whole tree of debug information alive.
    """
    masked, strings = mask(text)
    masked = _RECORD.sub("", masked)
    masked = _DEBUG_LIST.sub("", masked)
    flags = {
        match[1]
        for match in _DEBUG_FLAG.finditer(masked)
        if strings[int(match[2][1:-1])] in ("Debug Info Version", "Dwarf Version")
    }
    gone = {match[1] for match in _DI_NODE.finditer(masked)} | flags
    masked = _DI_NODE.sub("", masked)
    if flags:
        nodes = "|".join(sorted(flags))
        masked = re.sub(rf"^!(?:{nodes}) = .*\n", "", masked, flags=re.M)

    def keep(operands: str) -> str:
        return ", ".join(part for part in operands.split(", ") if part[1:] not in gone)

    masked = _FLAG_LIST.sub(lambda match: match[1] + keep(match[2]) + match[3], masked)
    masked = re.sub(r"^!llvm\.module\.flags = !\{\}\n", "", masked, flags=re.M)
    masked = _NODE.sub(lambda match: match[1] + keep(match[2]) + match[3], masked)
    masked = _ATTACHMENT.sub(lambda match: "" if match[2] in gone else match[0], masked)
    return unmask(masked, strings)
