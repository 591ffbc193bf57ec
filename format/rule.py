"""What a VIS rule is, and what it looks at.

Invariant: a rule is a pure function from a Scope to its hits; it neither sorts nor looks up source lines, which
visget.format.verifier does for all of them. The rules are described in docs/spec/vis-1.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from visget.format.findings import Severity
from visget.format.irtext import NAME, Function, Module, symbols
from visget.format.irtypes import Types
from visget.format.prototypes import Api

# Anchored at the line: a pattern that could start at many places of a long line would take quadratic time.
_CALL = re.compile(rf"^  (?:%[^ ]+ = )?(?:(?:tail|musttail|notail) )?(?:call|invoke) [^\n]*?@({NAME})\(", re.M)
INDIRECT_CALL = re.compile(rf"^  (?:%[^ ]+ = )?(?:(?:tail|musttail|notail) )?call [^\n@%]*%{NAME}(\([^\n]*)", re.M)
"""A call through a pointer; the group is its arguments and what follows."""

_GROUP = re.compile(r"(?<= )#\d+")
NOTHING_USED: Mapping[str, str] = MappingProxyType({})
"""What a module without dependencies takes from them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One place that breaks a rule."""

    message: str
    function: Function | None = None
    ordinal: int | None = None
    remedy: str | None = None
    """Given where this place needs other advice than the rule's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a named function. `text` is the masked instruction."""

    function: Function
    ordinal: int
    callee: str
    text: str


class Scope:
    """One module under examination, with what several rules want to know about it."""

    def __init__(
        self,
        module: Module,
        *,
        exports: frozenset[str],
        imports: frozenset[str] | None = None,
        api: Api | None = None,
        fp_contract: str | None = None,
        uses: Mapping[str, str] = NOTHING_USED,
        program: bool = False,
    ) -> None:
        self.module = module
        self.exports = exports
        self.imports = imports
        self.api = api
        self.fp_contract = fp_contract
        self.uses = uses
        """What the manifest says is taken from dependencies: the LLVM type of each function."""
        self.program = program
        """Whether the module is a program, which may use more of the platform interface than a package."""
        self.types = Types(module.types)

    def find(self, pattern: re.Pattern[str]) -> Iterator[tuple[Function, int, re.Match[str]]]:
        """Yield each match of `pattern` in an instruction: the function, the ordinal, the match."""
        for function in self.module.functions:
            for match in pattern.finditer(function.body):
                yield function, function.ordinal(match.start()), match

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Every direct call."""
        name = self.module.name
        return tuple(
            Call(function=function, ordinal=ordinal, callee=name(match[1]), text=function.instruction(ordinal))
            for function, ordinal, match in self.find(_CALL)
        )

    @cached_property
    def first_use(self) -> dict[str, tuple[Function | None, int | None]]:
        """Where each symbol is first mentioned; (None, None) where only the value of a global mentions it."""
        uses: dict[str, tuple[Function | None, int | None]] = {}
        pattern = re.compile(rf"@({NAME})")
        for function in self.module.functions:
            for match in pattern.finditer(function.body):
                name = self.module.name(match[1])
                if name not in uses:
                    uses[name] = function, function.ordinal(match.start())
        values = [item.value for item in self.module.globals]
        values += [function.suffix for function in self.module.functions]
        for value in values:
            for token in symbols(value):
                uses.setdefault(self.module.name(token), (None, None))
        return uses

    @cached_property
    def group_users(self) -> dict[str, tuple[Function, int | None]]:
        """The first function or call that has each attribute group (`#0`)."""
        users: dict[str, tuple[Function, int | None]] = {}
        for function in self.module.functions:
            for group in _GROUP.findall(function.suffix):
                users.setdefault(group, (function, None))
        for function, ordinal, match in self.find(_GROUP):
            users.setdefault(match[0], (function, ordinal))
        return users

    @cached_property
    def exported(self) -> tuple[Function, ...]:
        """The defined functions among the exports; what else is visible breaks a rule of its own."""
        return tuple(function for function in self.module.definitions() if function.name in self.exports)

    @cached_property
    def imported(self) -> tuple[Function, ...]:
        """The declared functions in use that are neither LLVM's nor VIS built-ins."""
        return tuple(
            function
            for function in self.module.functions
            if function.declared
            and not function.name.startswith(("llvm.", "__vis_"))
            and function.name in self.first_use
        )

    @cached_property
    def built_ins(self) -> tuple[Function, ...]:
        """The declared VIS built-ins in use."""
        return tuple(
            function
            for function in self.module.functions
            if function.declared and function.name.startswith("__vis_") and function.name in self.first_use
        )

    @cached_property
    def intrinsics(self) -> tuple[str, ...]:
        """The names of the LLVM intrinsics in use."""
        return tuple(
            function.name
            for function in self.module.functions
            if function.declared and function.name.startswith("llvm.") and function.name in self.first_use
        )

    def at_use(self, name: str, message: str, *, remedy: str | None = None) -> Hit:
        """Return a hit at the first place that mentions the symbol `name`."""
        function, ordinal = self.first_use.get(name, (None, None))
        return Hit(message=message, function=function, ordinal=ordinal, remedy=remedy)


Check = Callable[[Scope], Iterator[Hit]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the table."""

    id: str
    """``VIS-`` and three digits; an id is never given to another rule."""
    title: str
    severity: Severity
    check: Check
    reason: str
    """Why the rule exists; the message of a finding says what was found."""
    remedy: str

    @property
    def anchor(self) -> str:
        """Where the rule is described."""
        return f"docs/spec/vis-1.md#{self.id.lower()}"


def word(pattern: str) -> re.Pattern[str]:
    """Return a pattern for a word of the IR language, which no name, label or metadata can match."""
    return re.compile(rf"(?<![%@!\w.$\"-])(?:{pattern})(?![\w.$\"-])")
