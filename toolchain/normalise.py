"""Making compiled text neutral: what only the neutral target or one translation unit meant is taken out.

Invariant: after neutral_text() no function is tied to a processor, and nothing tells which file it came from but the
debug records, which visget.format.lines turns into the line table. The list of what goes and what stays is in
docs/spec/front-end.md, section 6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set

NAME = r'(?:"[^"\n]*"|[-\w.$]+)'
"""A symbol's name in LLVM IR text, without its sigil."""

_PINNING = re.compile(
    r'\s*"(?:target-cpu|target-features|tune-cpu|frame-pointer|stack-protector-buffer-size|no-trapping-math'
    r'|min-legal-vector-width|probe-stack|prefer-vector-width)"="[^"]*"'
)
_GROUP = re.compile(r"^attributes (#\d+) = \{(.*)\}$", re.M)
_NEUTRAL_FLAG = re.compile(
    r'^(!\d+) = (?:distinct )?!\{i32 \d+, !"(?:target-abi|riscv-isa|SmallDataLimit)", .*\}$', re.M
)
_FLAG_LIST = re.compile(r"^!llvm\.module\.flags = !\{(.*)\}$", re.M)
_SOURCE = re.compile(r"^source_filename = .*$", re.M)
_COMDAT_LINE = re.compile(rf"^\${NAME} = comdat .*\n", re.M)
_COMDAT_USE = re.compile(rf'("[^"\n]*")|,? comdat(?:\(\${NAME}\))?(?=[ ,\n]|$)')
# clang's place for what runs once, such as the initialisers of C++ variables; no linker needs it.
_STARTUP = re.compile(r'^(define .*) section "\.text\.startup"', re.M)
_ENTITY = re.compile(rf"^(?:define .*|@{NAME} = .*)$", re.M)

_LINKAGE = (
    r"private|internal|available_externally|linkonce_odr|linkonce|weak_odr|weak|common|appending|extern_weak|external"
)
_HEAD = (
    rf"(?:(?P<linkage>{_LINKAGE}) )?(?:dso_local |dso_preemptable )?(?:default |hidden |protected )?"
    r"(?:dllimport |dllexport )?"
)
_DEFINE = re.compile(rf'^define {_HEAD}(?P<rest>(?:"[^"\n]*"|[^"\n@])*@(?P<name>{NAME})\(.*)$', re.M)
_GLOBAL = re.compile(rf"^@(?P<name>{NAME}) = {_HEAD}(?P<rest>.*)$", re.M)

_ALIAS = re.compile(rf"^@(?P<name>{NAME}) = [^\n\"]*\balias [^\n]*, ptr @(?P<target>{NAME})\n", re.MULTILINE)
# Names in quotation marks that do not follow an @ are texts.
_REFERENCE = re.compile(rf'((?<!@)"[^"\n]*")|@({NAME})')

_LOCAL_ALIAS = re.compile(
    rf"^@({NAME}) = (?:internal|private) (?:unnamed_addr |local_unnamed_addr )?alias [^@\n]*, ptr @({NAME})$\n", re.M
)

_LOCAL = frozenset(["private", "internal"])
_MERGEABLE = frozenset(["available_externally", "linkonce", "linkonce_odr", "weak", "weak_odr", "common", "appending"])
_DECLARED = frozenset(["external", "extern_weak"])
_NOT_STRONG = _LOCAL | _MERGEABLE | _DECLARED


def neutral_text(text: str) -> str:
    """Return the IR text of one unit without its ties to the neutral processor and to its own file."""
    text = _GROUP.sub(_neutral_group, text)
    dropped = set(_NEUTRAL_FLAG.findall(text))
    text = _FLAG_LIST.sub(
        lambda m: f"!llvm.module.flags = !{{{', '.join(f for f in m[1].split(', ') if f not in dropped)}}}", text
    )
    text = _SOURCE.sub('source_filename = "vis"', text)
    # One module is linked alone: there is no second copy that a group of sections could be folded with.
    text = _COMDAT_LINE.sub("", text)
    text = _STARTUP.sub(r"\1", text)
    return _ENTITY.sub(lambda m: _COMDAT_USE.sub(lambda use: use[1] or "", m[0]), text)


def _neutral_group(match: re.Match[str]) -> str:
    # An empty attribute group would not parse.
    attributes = _PINNING.sub("", match[2]).strip() or '"vis"'
    return f"attributes {match[1]} = {{ {attributes} }}"


def strong_definitions(text: str) -> list[str]:
    """Return the names that `text` defines and that no other unit may define."""
    found = [*_DEFINE.finditer(text), *_GLOBAL.finditer(text)]
    return [plain(match["name"]) for match in found if match["linkage"] not in _NOT_STRONG]


def resolved_aliases(text: str, exports: Iterable[str]) -> str:
    """Return `text` in which an exported function that was only an alias bears its exported name itself.

    An alias may be visible only when what it stands for is exported too (VIS-203): otherwise the function takes the
    name of its first exported alias.
    """
    kept = frozenset(exports)
    renamed: dict[str, str] = {}
    for match in _ALIAS.finditer(text):
        name, target = plain(match["name"]), plain(match["target"])
        if name in kept and target not in kept and target not in renamed:
            renamed[target] = match["name"]
    if not renamed:
        return text
    gone = set(renamed.values())
    text = _ALIAS.sub(lambda match: "" if match["name"] in gone else match[0], text)
    return _REFERENCE.sub(
        lambda match: match[0] if match[1] else f"@{renamed.get(plain(match[2]), match[2])}", text
    )


def internal_text(text: str, exports: Iterable[str]) -> str:
    """Return `text` with every definition local to the module, except those of `exports`."""
    kept: Set[str] = frozenset(exports)

    def define(match: re.Match[str]) -> str:
        if plain(match["name"]) in kept:
            return f"define {match['rest']}"
        return match[0] if match["linkage"] in _LOCAL else f"define internal {match['rest']}"

    def variable(match: re.Match[str]) -> str:
        name, linkage = match["name"], match["linkage"]
        if plain(name).startswith("llvm.") or linkage in _LOCAL or linkage in _DECLARED:
            return match[0]
        return f"@{name} = {'' if plain(name) in kept else 'internal '}{match['rest']}"

    return _without_aliases(_GLOBAL.sub(variable, _DEFINE.sub(define, text)))


def _without_aliases(text: str) -> str:
    """Return `text` with the definition itself in the place of each internal alias, as C++ has many."""
    targets = {match[1]: match[2] for match in _LOCAL_ALIAS.finditer(text)}
    if not targets:
        return text

    def resolve(match: re.Match[str]) -> str:
        name = match[2]
        while name in targets:
            name = targets[name]
        return match[1] or f"@{name}"

    return _REFERENCE.sub(resolve, _LOCAL_ALIAS.sub("", text))


def plain(name: str) -> str:
    """Return a symbol's name without the quotation marks that LLVM puts around unusual ones."""
    return name[1:-1] if name.startswith('"') else name
