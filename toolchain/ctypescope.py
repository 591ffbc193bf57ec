"""What the names in C types stand for: the typedefs, structs, unions and enums of the headers.

Invariant: each record and enum has exactly one name: its tag, the typedef that names it, or its owner's name and the
field it is written in; every reference this module returns is among records() or enums().
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from visget.format.prototypes import (
    Array,
    CType,
    EnumRef,
    Field,
    FunctionType,
    Integer,
    Opaque,
    Pointer,
    Record,
    RecordRef,
)
from visget.toolchain.astdump import Layout, Node, children, comment, place
from visget.toolchain.declarators import Parsed, parse_type

_UNNAMED = re.compile(r"\((?:unnamed|anonymous)(?: \w+)? at (.+?:\d+:\d+)\)")


@dataclass(slots=True, kw_only=True)
class _Tag:
    """One struct, union or enum while it is collected."""

    kind: str
    name: str
    place: str
    node: Node
    public: bool
    names: frozenset[str] = field(default_factory=frozenset)
    owner: tuple[_Tag, str] | None = None
    """The record and field that an unnamed type is written in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEnum:
    """An enum whose values are still to be asked for."""

    name: str
    spelling: str | None
    """How C names its type; None where it has no name that a program could write."""
    constants: tuple[str, ...]
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLayout:
    """How a record lies in memory, and where it is written."""

    key: str
    """What parse_layouts() calls it."""
    layout: Layout
    file: str
    line: int


class HeaderScope:
    """All names of one reading of the headers."""

    def __init__(self, tree: Sequence[Node], layouts: Mapping[str, Layout], public: Mapping[str, str]) -> None:
        self._layouts = layouts
        self._public = public
        self._tags: dict[str, _Tag] = {}
        self._by_place: dict[str, _Tag] = {}
        self._by_id: dict[str, _Tag] = {}
        self._typedefs: dict[str, Node] = {}
        self._resolved: dict[str, Parsed | None] = {}
        self._records: dict[str, Record] = {}
        for node in tree:
            if node.get("kind") in ("RecordDecl", "EnumDecl"):
                self._collect(node)
            elif node.get("kind") == "TypedefDecl":
                self._collect_typedef(node)

    def _collect(self, node: Node) -> None:
        file, line, column = place(node)
        spot = f"{file}:{line}:{column}"
        kind = "enum" if node["kind"] == "EnumDecl" else str(node.get("tagUsed", "struct"))
        name = f"{kind} {node['name']}" if node.get("name") else ""
        tag = _Tag(
            kind=kind, name=name, place=spot, node=node, public=posixpath.normpath(file) in self._public
        )
        known = self._tags.get(name) if name else None
        if known is None or node.get("completeDefinition") or any(children(node, "EnumConstantDecl")):
            if known is not None:
                tag.public |= known.public
            if name:
                self._tags[name] = tag
            self._by_place[spot] = tag
        self._by_id[str(node.get("id"))] = tag
        for inner in children(node, "RecordDecl", "EnumDecl"):
            self._collect(inner)
        if kind != "enum":
            self._name_members(tag)

    def _name_members(self, owner: _Tag) -> None:
        """Remember where the unnamed types of the fields are written, so that the owner's name can name them."""
        for number, member in enumerate(children(owner.node, "FieldDecl")):
            found = _UNNAMED.search(str(member["type"]["qualType"]))
            tag = self._by_place.get(found[1]) if found else None
            if tag is not None and not tag.name:
                # The owner may itself still wait for its typedef: the name is made when it is asked for.
                tag.owner = (owner, str(member.get("name") or number))

    def _collect_typedef(self, node: Node) -> None:
        name = str(node["name"])
        self._typedefs[name] = node
        tag = self._owned(node)
        if tag is not None and not tag.name:
            tag.name = name
            tag.public |= posixpath.normpath(place(node)[0]) in self._public

    def _owned(self, node: Node) -> _Tag | None:
        """Return the unnamed type that a typedef names directly, not through a pointer."""
        inner = next(iter(node.get("inner", ())), None)
        while inner is not None and inner.get("kind") in ("ElaboratedType", "QualType", "RecordType", "EnumType"):
            if "decl" in inner or "ownedTagDecl" in inner:
                decl = inner.get("decl") or inner["ownedTagDecl"]
                return None if decl.get("name") else self._by_id.get(str(decl.get("id")))
            inner = next(iter(inner.get("inner", ())), None)
        return None

    def _name(self, tag: _Tag) -> str:
        if tag.name:
            return tag.name
        if tag.owner is not None:
            owner, member = tag.owner
            return f"{self._name(owner)}.{member}"
        file, line, _ = place(tag.node)
        return f"{tag.kind} at {posixpath.basename(file)}:{line}"

    def _reference(self, tag: _Tag | None) -> RecordRef | EnumRef | None:
        if tag is None:
            return None
        return EnumRef(self._name(tag)) if tag.kind == "enum" else RecordRef(self._name(tag))

    def tag(self, kind: str, name: str) -> RecordRef | EnumRef | None:
        """Return the struct, union or enum with that tag."""
        return self._reference(self._tags.get(f"{kind} {name}"))

    def unnamed(self, place: str) -> RecordRef | EnumRef | None:
        """Return the unnamed struct, union or enum written at `place`."""
        return self._reference(self._by_place.get(place))

    def typedef(self, name: str) -> Parsed | None:
        """Return what the typedef `name` stands for."""
        if name not in self._resolved:
            node = self._typedefs.get(name)
            if node is None:
                return None
            self._resolved[name] = None
            owned = self._reference(self._owned(node))
            self._resolved[name] = (
                Parsed(owned) if owned is not None else parse_type(str(node["type"]["qualType"]), self)
            )
        return self._resolved[name]

    def records(self) -> dict[str, Record]:
        """Return the records of the public headers and those that they or their functions can reach, by name."""
        if not self._records:
            tags = {self._name(tag): tag for tag in [*self._tags.values(), *self._by_place.values()]}
            self._records = {
                name: self._record(name, tag) for name, tag in tags.items() if tag.kind in ("struct", "union")
            }
        return self._records

    def layouts(self) -> dict[str, PlacedLayout]:
        """Return the layout of each complete record by its name."""
        found: dict[str, PlacedLayout] = {}
        for tag in [*self._tags.values(), *self._by_place.values()]:
            key = tag.place if tag.place in self._layouts else tag.name
            if tag.kind != "enum" and key in self._layouts:
                file, line, _ = place(tag.node)
                found[self._name(tag)] = PlacedLayout(
                    key=key, layout=self._layouts[key], file=posixpath.normpath(file), line=line
                )
        return found

    def typedefs(self) -> dict[str, CType]:
        """Return what each typedef stands for."""
        parsed = ((name, self.typedef(name)) for name in self._typedefs)
        return {name: one.type for name, one in parsed if one is not None}

    def record_names(self, record: str) -> frozenset[str]:
        """Return the typedefs that the fields of `record` go through."""
        for tag in [*self._tags.values(), *self._by_place.values()]:
            if self._name(tag) == record:
                return tag.names
        return frozenset()

    def public_types(self) -> frozenset[str]:
        """Return the names of the records and enums that a public header itself defines or declares."""
        return frozenset(
            self._name(tag) for tag in [*self._tags.values(), *self._by_place.values()] if tag.public
        )

    def _record(self, name: str, tag: _Tag) -> Record:
        kind: Literal["struct", "union"] = "union" if tag.kind == "union" else "struct"
        layout = self._layouts.get(tag.place) or self._layouts.get(tag.name)
        if not tag.node.get("completeDefinition") or layout is None:
            return Record(
                name=name, kind=kind, size=0, align=1, fields=(), complete=False,
                doc=comment(tag.node),
            )  # fmt: skip
        fields: list[Field] = []
        for member, slot in zip(children(tag.node, "FieldDecl"), layout.slots, strict=False):
            parsed = parse_type(str(member["type"]["qualType"]), self)
            tag.names |= parsed.names
            if member.get("isBitfield"):
                if not member.get("name") or not slot.width:
                    continue  # only padding
                unit = 8 * self.size(parsed.type)
                start = slot.bit - slot.bit % unit
                if slot.bit + slot.width > start + unit:  # packed: it straddles two units
                    start = slot.bit - slot.bit % 8
                fields.append(
                    Field(
                        name=str(member["name"]), offset=start // 8, type=parsed.type,
                        bits=(slot.bit - start, slot.width),
                    )
                )  # fmt: skip
            else:
                fields.append(Field(name=str(member.get("name", "")), offset=slot.bit // 8, type=parsed.type))
        return Record(
            name=name, kind=kind, size=layout.size, align=layout.align,
            fields=tuple(fields), doc=comment(tag.node),
        )  # fmt: skip

    def size(self, type_: CType) -> int:
        """Return the size of a scalar type in bytes."""
        if isinstance(type_, Integer):
            return type_.size
        return 4 if isinstance(type_, EnumRef) else 1

    def enums(self) -> list[RawEnum]:
        """Return all enums with a name."""
        found: dict[str, RawEnum] = {}
        for tag in [*self._tags.values(), *self._by_place.values()]:
            constants = tuple(str(child["name"]) for child in children(tag.node, "EnumConstantDecl"))
            if tag.kind != "enum" or not constants or not (tag.name or tag.owner):
                continue
            name = self._name(tag)
            spelling = None if tag.owner else name
            found[name] = RawEnum(name=name, spelling=spelling, constants=constants, doc=comment(tag.node))
        return list(found.values())

    def loose_constants(self) -> list[str]:
        """Return the constants of the public headers' enums that have no name at all."""
        return [
            str(child["name"])
            for tag in self._by_place.values()
            if tag.kind == "enum" and tag.public and not tag.name and tag.owner is None
            for child in children(tag.node, "EnumConstantDecl")
        ]


def references(type_: CType) -> Iterable[str]:
    """Yield the names of the records and enums that `type_` mentions."""
    match type_:
        case Pointer(inner) | Array(inner):
            yield from references(inner)
        case RecordRef(name) | EnumRef(name):
            yield name
        case FunctionType(result, parameters):
            for inner in (result, *parameters):
                yield from references(inner)
        case Opaque():
            return


def reachable(types: Iterable[CType], records: Mapping[str, Record]) -> set[str]:
    """Return the names of all records and enums that can be reached from `types`."""
    seen: set[str] = set()
    pending = [name for type_ in types for name in references(type_)]
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in records:
            pending.extend(inner for one in records[name].fields for inner in references(one.type))
    return seen
