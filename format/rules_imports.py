"""The VIS rules about what a module takes from elsewhere (VIS-5xx); the tables are visget.format.imports."""

from __future__ import annotations

import re
from collections.abc import Iterator

from visget.format.imports import BUILT_INS, DATA, IMPORTS, PROCESS_WIDE, PROGRAM_DATA
from visget.format.irtext import NAME, Function, Global, closing, split_list, split_type, symbols
from visget.format.refused_imports import WRONG
from visget.format.rule import INDIRECT_CALL, Call, Hit, Rule, Scope, word

_QUAD = word("fp128")
_MATHEMATICS = re.compile(
    r"(?:llvm\.)?(?:sqrt|pow|exp|exp2|exp10|expm1|log|log2|log10|log1p|acos|asin|acosh|atanh|fmod|remainder|lgamma|tgamma"
    r"|ldexp|sinh|cosh)f?(?:\.f\d+.*)?\Z"
)
_QUAD_FORMAT = re.compile(r"%(?:\d+\$)?[\d']*L[aAeEfFgG]")
_VA_INSTRUCTION = re.compile(r"= va_arg ")
_VA_LOCAL = re.compile(r"(%(?:\"\d+\"|[-\w.$]+)) = alloca [^\n]*struct\.__vis_va_tag")
_VA_ADDRESS = re.compile(r"(%(?:\"\d+\"|[-\w.$]+)) = getelementptr [^\n]*?ptr (%(?:\"\d+\"|[-\w.$]+)),")
_VARIABLE = re.compile(rf"\(([^()\n]*)\.\.\.\) (?:@({NAME})|%{NAME})\(")
_FOREIGN_HEADERS = re.compile(r"__isoc\d\d_|__ctype_(?:b|tolower|toupper)_loc\Z|__[a-z]+_chk\Z|__xpg_|_IO_")
# fmt: off
_WHY_CXX = (
    ("_ZNSt3__1", "is a template or function that libc++ does not have",
     "Instantiate the template in one of the sources (template class ...), or use a type of your own."),
    ("_Znw", "is operator new, which `visget build` adds from libc++", "Build with `visget build`."),
    ("_Zna", "is operator new[], which `visget build` adds from libc++", "Build with `visget build`."),
    ("_Zd", "is operator delete, which `visget build` adds from libc++", "Build with `visget build`."),
    ("_ZTV", "is a table of virtual functions that no source of the package defines",
     "Add the source that defines the class's first virtual function."),
    ("_ZTI", "is type information that no source of the package defines",
     "Add the source that defines the class's first virtual function."),
    ("_ZSt", "is a function of the C++ standard library that libc++ does not have",
     "Use C functions, or define it in one of the sources."),
    ("__cxa_thread_atexit", "destroys thread-local C++ objects, which not every system can",
     "Keep the object behind a pointer, and free it with pthread_key_create."),
    ("__cxa_", "belongs to the C++ run-time library, which `visget build` adds", "Build with `visget build`."),
    ("__gxx_personality", "belongs to C++ exception handling, which `visget build` adds", "Build with `visget build`."),
    ("__dynamic_cast", "belongs to C++ run-time type information, which `visget build` adds",
     "Build with `visget build`."),
    ("_Unwind_", "belongs to exception handling, and is not in the platform interface", "Use C++ exceptions."),
    ("_Z", "is a C++ function that no source of the package defines",
     "Add the source that defines it, or the define that switches its use off."),
)
# fmt: on


def why_not(name: str, *, program: bool = False) -> tuple[str, str, str] | None:
    """Return rule id, reason and remedy for an import that is not allowed; None when it is.

    Args:
        name: the symbol.
        program: whether a program wants it, and not a package.
    """
    if name in IMPORTS or name in DATA:
        if program or not (name in PROGRAM_DATA or (name in IMPORTS and IMPORTS[name].program)):
            return None
        remedy = "Leave it to the program that uses the library: take what it gives as a parameter, or leave it out."
        return "VIS-512", f"{name} is for programs: it changes, replaces or speaks for the whole process", remedy
    if name in WRONG:
        return "VIS-502", f"{name} is not a portable import: {WRONG[name].why}", WRONG[name].instead
    if name.startswith("__builtin_"):
        remedy = "Check the spelling, or use the C function; clang 22 does not know this builtin."
        return "VIS-505", f"{name} is a compiler builtin that the compiler did not know", remedy
    for beginning, why, remedy in _WHY_CXX:
        if name.startswith(beginning):
            return "VIS-504", f"{name[:80]} {why}", remedy
    if _FOREIGN_HEADERS.match(name):
        remedy = "Build with `visget build` (its own headers come first) and without -D_FORTIFY_SOURCE."
        return "VIS-502", f"{name} comes from the headers of one C library", remedy
    if name.startswith(("__atomic_", "__sync_")):
        return "VIS-502", f"{name} belongs to libatomic, which users do not have", WRONG["__atomic_load"].instead
    remedy = "Add the source that defines it, use a function of the table, or switch the feature off by a define."
    return "VIS-501", f"{name[:80]} is neither defined here nor in the table of imports", remedy


def _refused(rule: str, scope: Scope) -> Iterator[Hit]:
    for name in sorted(_imports(scope) - scope.uses.keys()):
        refusal = why_not(name, program=scope.program)
        if refusal and refusal[0] == rule:
            yield scope.at_use(name, refusal[1], remedy=refusal[2])


def _imports(scope: Scope) -> set[str]:
    return {function.name for function in scope.imported} | _data(scope)


def _data(scope: Scope) -> set[str]:
    return {
        item.name
        for item in scope.module.globals
        if item.declared and item.name in scope.first_use and not item.name.startswith("llvm.")
    }


def imports_of(scope: Scope) -> tuple[str, ...]:
    """Return, sorted, the symbols that the module needs from elsewhere (VIS built-ins and LLVM's own left out)."""
    return tuple(sorted(_imports(scope)))


def _unknown(scope: Scope) -> Iterator[Hit]:
    return _refused("VIS-501", scope)


def _wrong(scope: Scope) -> Iterator[Hit]:
    return _refused("VIS-502", scope)


def _cxx(scope: Scope) -> Iterator[Hit]:
    return _refused("VIS-504", scope)


def _builtin(scope: Scope) -> Iterator[Hit]:
    return _refused("VIS-505", scope)


def _program(scope: Scope) -> Iterator[Hit]:
    return _refused("VIS-512", scope)


def _process(scope: Scope) -> Iterator[Hit]:
    if scope.program:
        return
    for name in sorted(_imports(scope) & PROCESS_WIDE):
        yield scope.at_use(name, f"{name} changes something for the whole process, or starts a program")


def _signature(scope: Scope) -> Iterator[Hit]:
    declared = {
        function.name: function
        for function in scope.imported
        if function.name in IMPORTS or function.name in scope.uses
    }
    for name, function in declared.items():
        expected = scope.uses[name] if name in scope.uses else IMPORTS[name].signature
        if function.signature != expected:
            yield scope.at_use(name, f"{name} is declared as {function.signature}, but is {expected}")
    for item in scope.module.globals:
        if item.declared and item.name in DATA and not _is_data(scope, item, DATA[item.name]):
            yield scope.at_use(item.name, f"{item.name} is declared as {item.type}, but is {DATA[item.name]}")
    for name in sorted(_data(scope) & (set(IMPORTS) | scope.uses.keys())):
        yield scope.at_use(name, f"{name} is a function, but is declared as data")
    for name in sorted({function.name for function in scope.imported} & set(DATA)):
        yield scope.at_use(name, f"{name} is data, but is declared as a function")
    declared |= {function.name: function for function in scope.built_ins}
    for call in scope.calls:
        if call.callee in declared and not _called_as_declared(call, declared[call.callee]):
            message = f"{call.callee} is called with other types than its declaration {declared[call.callee].signature}"
            yield Hit(message=message, function=call.function, ordinal=call.ordinal)


def _is_data(scope: Scope, item: Global, kind: str) -> bool:
    """Tell whether `item` is declared as `kind`; an array of bytes stands for any structure of that size."""
    if kind.endswith("x i8]"):
        return scope.types.size(item.type) == scope.types.size(kind)
    return item.type == kind


def _called_as_declared(call: Call, declared: Function) -> bool:
    match = re.search(r"\b(?:call|invoke)\b(.*?)@(?:\"\d+\"|[-\w.$]+)(?=\()", call.text, re.S)
    if match is None:
        return True
    if match[1].rstrip().endswith(")"):
        return match[1].rstrip().endswith(declared.signature)
    end = closing(call.text, match.end())
    arguments = [split_type(part)[0] for part in split_list(call.text[match.end() + 1 : end]) if part]
    return arguments == [parameter.type for parameter in declared.parameters] and not declared.variadic


def _quad(scope: Scope) -> Iterator[Hit]:
    yield from _quad_format(scope)
    imported = {function.name for function in scope.imported}
    for call in scope.calls:
        if call.callee in imported and _QUAD.search(call.text):
            message = f"a long double is passed to {call.callee}"
            yield Hit(message=message, function=call.function, ordinal=call.ordinal)
    for function, ordinal, match in scope.find(_VARIABLE):
        text = function.body[match.end() - 1 : closing(function.body, match.end() - 1)]
        fixed = len(split_list(match[1])) - 1
        # What receives it can hand its va_list to vsnprintf, in ways that nobody can follow.
        if any(_QUAD.search(argument) for argument in split_list(text[1:])[fixed:]):
            message = "a long double is passed as a variable argument"
            if match[2] is None or scope.module.name(match[2]) not in imported:
                yield Hit(message=message, function=function, ordinal=ordinal)


def _quad_format(scope: Scope) -> Iterator[Hit]:
    """Find a long double that scanf is to write: only the format tells of it."""
    texts = {item.name: item.value for item in scope.module.globals if item.kind == "constant"}
    for call in scope.calls:
        if call.callee.endswith("scanf") and call.callee in IMPORTS:
            formats = (scope.module.text(texts.get(scope.module.name(token), "")) for token in symbols(call.text))
            if any(_QUAD_FORMAT.search(text.replace("%%", "")) for text in formats):
                message = f"{call.callee} is told to read a long double"
                yield Hit(message=message, function=call.function, ordinal=call.ordinal)


def _raw_va(scope: Scope) -> Iterator[Hit]:
    for call in scope.calls:
        if call.callee.startswith("llvm.va_"):
            message = f"{call.callee} writes a va_list of the neutral machine"
            yield Hit(message=message, function=call.function, ordinal=call.ordinal)
    for function, ordinal, _ in scope.find(_VA_INSTRUCTION):
        yield Hit(message="the instruction va_arg reads a va_list of one target", function=function, ordinal=ordinal)


def _va_to_pointer(scope: Scope) -> Iterator[Hit]:
    for function in scope.module.definitions():
        lists = set(_VA_LOCAL.findall(function.body))
        if not lists:
            continue
        lists.update(name for name, base in _VA_ADDRESS.findall(function.body) if base in lists)
        for match in INDIRECT_CALL.finditer(function.body):
            arguments = re.findall(r"%(?:\"\d+\"|[-\w.$]+)", match[1])
            if lists.intersection(arguments):
                message = "a va_list is passed to a function pointer"
                yield Hit(message=message, function=function, ordinal=function.ordinal(match.start()))


def _built_ins(scope: Scope) -> Iterator[Hit]:
    for function in scope.built_ins:
        expected = BUILT_INS.get(function.name)
        if expected is None:
            yield scope.at_use(function.name, f"{function.name[:80]} is not a built-in of this version of VIS")
        elif function.signature != expected:
            message = f"{function.name} is declared as {function.signature}, but is {expected}"
            yield scope.at_use(function.name, message)


def _errno(scope: Scope) -> Iterator[Hit]:
    callers: dict[str, set[str]] = {}
    mathematics: dict[str, str] = {}
    for call in scope.calls:
        callers.setdefault(call.callee, set()).add(call.function.name)
        if _MATHEMATICS.match(call.callee):
            mathematics.setdefault(call.function.name, call.callee.removeprefix("llvm."))
    # Whoever calls a function that calculates is told of it too: often errno is looked at one level above.
    pending = list(mathematics)
    while pending:
        name = pending.pop()
        for caller in callers.get(name, ()):
            if caller not in mathematics:
                mathematics[caller] = mathematics[name]
                pending.append(caller)
    reading = {call.function.name: call for call in reversed(scope.calls) if call.callee == "__errno_location"}
    for name, place in reading.items():
        if name in mathematics:
            message = f"errno is read in a function that calls {mathematics[name]}"
            yield Hit(message=message, function=place.function, ordinal=place.ordinal)


def _list(scope: Scope) -> Iterator[Hit]:
    if scope.imports is None:
        return
    needed = _imports(scope)
    for name in sorted(needed - scope.imports - scope.uses.keys()):
        yield scope.at_use(name, f"the module needs {name[:80]}, which its manifest does not name among the imports")
    for name in sorted(scope.imports - needed):
        yield Hit(message=f"the manifest names the import {name[:80]}, which the module does not need")
    for name in sorted(scope.uses.keys() - needed):
        yield Hit(message=f"the manifest uses {name[:80]} of a dependency, which the module does not need")


_NEUTRAL = "Build with `visget build`, whose headers and prefix give the neutral forms."

RULES = (
    Rule(
        id="VIS-501",
        title="imports come from the table",
        severity="error",
        check=_unknown,
        reason="Only functions that mean the same in every C library can be taken from the user's.",
        remedy="Add the source that defines it, use a function of the table, or switch the feature off by a define.",
    ),
    Rule(
        id="VIS-502",
        title="no imports that are known to be wrong",
        severity="error",
        check=_wrong,
        reason="These names compile and link everywhere, and then give wrong answers on some target, or are missing.",
        remedy="See the message of the finding: each name has its own.",
    ),
    Rule(
        id="VIS-503",
        title="imports have the signature of the table",
        severity="error",
        check=_signature,
        reason="A wrong declaration puts arguments into wrong registers on some targets.",
        remedy="Include the header of the function instead of declaring it by hand.",
    ),
    Rule(
        id="VIS-504",
        title="no C++ run-time library",
        severity="error",
        check=_cxx,
        reason="C++ run-time libraries differ (libc++, libstdc++), and users of a C library need not have one: "
        "`visget build` puts what is needed of libc++ into the package.",
        remedy="Add the source that defines it; libc++ does not have it.",
    ),
    Rule(
        id="VIS-505",
        title="no unknown compiler builtins",
        severity="error",
        check=_builtin,
        reason="A builtin that the compiler does not know becomes a call of a function that nobody has.",
        remedy="Use the C function.",
    ),
    Rule(
        id="VIS-506",
        title="no long double to imports or as a variable argument",
        severity="error",
        check=_quad,
        reason='printf("%Lf") and the like read 80 bits on x86-64 where 128 were passed: the output is garbage. A '
        "function of the package that takes variable arguments can hand them on to vprintf.",
        remedy="Convert to double and use %f.",
    ),
    Rule(
        id="VIS-507",
        title="va_list goes through the VIS built-ins",
        severity="error",
        check=_raw_va,
        reason="A va_list has 8, 24 or 32 bytes; the neutral one would overrun the stack.",
        remedy=_NEUTRAL,
    ),
    Rule(
        id="VIS-508",
        title="va_list through a function pointer",
        severity="warning",
        check=_va_to_pointer,
        reason="Between functions of the package it works; a function of the user's program may expect another form "
        "(on RISC-V a va_list is a pointer).",
        remedy="Format with vsnprintf and pass the text, if the function can come from outside.",
    ),
    Rule(
        id="VIS-509",
        title="only the built-ins of this version",
        severity="error",
        check=_built_ins,
        reason="Names that begin with __vis_ are provided by the installer; it knows those of the table.",
        remedy="Do not declare such names by hand; a package that needs newer ones needs a newer visget.",
    ),
    Rule(
        id="VIS-510",
        title="the manifest names all imports",
        severity="error",
        check=_list,
        reason="Users see in the manifest what a package takes from their system; it has to be true.",
        remedy=_NEUTRAL,
    ),
    Rule(
        id="VIS-511",
        title="errno after mathematics",
        severity="warning",
        check=_errno,
        reason="Modules are compiled with -fno-math-errno: sqrt(-1) or an overflow of pow leaves errno alone.",
        remedy="Test the argument or the result (isnan, isinf) instead; ignore this if errno is read for other calls.",
    ),
    Rule(
        id="VIS-512",
        title="no imports that only programs may use",
        severity="error",
        check=_program,
        reason="Making processes, waiting for them, reading the command line and handling signals are the program's "
        "business: two libraries that do it break each other.",
        remedy="Leave it to the program that uses the library.",
    ),
    Rule(
        id="VIS-513",
        title="imports that change the whole process or start programs",
        severity="warning",
        check=_process,
        reason="Environment, locale, directory, file mode mask and signal handlers belong to all libraries of a "
        "process together; a program that is started has the rights of the user.",
        remedy="Let the caller set it, or document it.",
    ),
)
