"""The VIS rules about types and amounts: what every target can compile in bounded time (VIS-3xx, second part)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from visget.format import intrinsics
from visget.format.irtext import NAME, Function, split_type
from visget.format.rule import Hit, Rule, Scope, word

INTEGER_LIMIT = 128
VECTOR_LIMIT = 2048
VALUE_LIMIT = 64 << 10
ALLOCA_LIMIT = 1 << 20
INSTRUCTION_LIMIT = 50_000

_FOREIGN = word(r"x86_fp80|ppc_fp128|x86_amx|x86_mmx|vscale x|target\([^)]*\)|ptrauth|no_cfi")
_SPACE = word(r"addrspace\((?!0\))[^)]*\)")
_INTEGER = word(r"i(\d{3,})")
_VECTOR = word(r"<(\d+) x ([^<>]+)>")
_ALLOCA = re.compile(r"= alloca (?:inalloca |swifterror )?([^\n]*)")
_WIDE = r"i(?:6[5-9]|[789]\d|1[01]\d|12[0-8])"
_ATOMIC = word(r"(?:load|store) atomic|cmpxchg|atomicrmw")
_ATOMIC_TYPE = re.compile(rf"(?:atomic (?:volatile )?|, )({_WIDE}|fp128)\b")
_ATOMIC_ALIGN = re.compile(r"(?:load|store) atomic (?:volatile )?(\w+)[^\n]*, align (\d+)")
_LONG_DIVISION = word(rf"(?:udiv|sdiv|urem|srem) (?:exact )?(?:<\d+ x )?{_WIDE}")
_LONG_TO_FLOAT = word(rf"(?:sitofp|uitofp) (?:nneg )?(?:<\d+ x )?{_WIDE}")
_FLOAT_TO_LONG = re.compile(rf"= (?:fptosi|fptoui) [^\n]* to (?:<\d+ x )?{_WIDE}\b")
_ARITHMETIC = r"= (?:fadd|fsub|fmul|fdiv|frem|fcmp|fpext|fptrunc|sitofp|uitofp|fptosi|fptoui)\b[^\n]*?(?<![%\w.])"
_SMALL_FLOAT = re.compile(rf"{_ARITHMETIC}(half|bfloat)\b")
_QUAD = re.compile(rf"{_ARITHMETIC}fp128\b")
_HELPER_INTRINSICS = re.compile(
    rf"llvm\.(?:smul\.with\.overflow\.i128|fpto[su]i\.sat\.{_WIDE}\.|.*\.(?:v\d+)?b?f16(?:\.|\Z))"
)
_ANY_QUAD = word("fp128")
_VALUE = r"%(?:\"\d+\"|[-\w.$]+)"
_RETURNED = re.compile(rf"ret ptr @({NAME})")
_QUAD_ACCESS = re.compile(rf"(?:= load (?:volatile )?fp128, ptr|store (?:volatile )?fp128 [^,]+, ptr) ({_VALUE})")
# Of a pointer, or of a place that a pointer was put into.
_DERIVED = re.compile(rf"({_VALUE}) = (?:getelementptr [^\n]*?ptr|load ptr, ptr) ({_VALUE})(?=,|\Z)")
_SPILLED = re.compile(rf"store ptr ({_VALUE}), ptr ({_VALUE})(?=,|\Z)")
_NO_CALL_QUAD = ("fabs", "copysign")


def _headers_and_types(scope: Scope, pattern: re.Pattern[str]) -> Iterator[tuple[str, Function | None, int | None]]:
    """Yield the matches in instructions, signatures, globals and struct types."""
    for function, ordinal, match in scope.find(pattern):
        yield match[0], function, ordinal
    for function in scope.module.functions:
        if function.name.startswith("llvm."):
            continue
        for match in pattern.finditer(function.signature):
            yield match[0], function, None
    texts = [f"{item.prefix} {item.type} {item.value}" for item in scope.module.globals]
    for text in (*texts, *scope.module.types.values()):
        for match in pattern.finditer(text):
            yield match[0], None, None


def _foreign_type(scope: Scope) -> Iterator[Hit]:
    for found, function, ordinal in _headers_and_types(scope, _FOREIGN):
        yield Hit(message=f"{found} exists on one target only", function=function, ordinal=ordinal)


def _address_space(scope: Scope) -> Iterator[Hit]:
    for found, function, ordinal in _headers_and_types(scope, _SPACE):
        yield Hit(message=f"{found} has no meaning on a CPU", function=function, ordinal=ordinal)


def _wide_integer(scope: Scope) -> Iterator[Hit]:
    for found, function, ordinal in _headers_and_types(scope, _INTEGER):
        if int(found[1:]) > INTEGER_LIMIT:
            yield Hit(message=f"an integer of {found[1:]} bits", function=function, ordinal=ordinal)


def _wide_vector(scope: Scope) -> Iterator[Hit]:
    for found, function, ordinal in _headers_and_types(scope, _VECTOR):
        bits = 8 * scope.types.size(found)
        if bits > VECTOR_LIMIT:
            yield Hit(message=f"a vector of {bits} bits ({found})", function=function, ordinal=ordinal)


def _large_value(scope: Scope) -> Iterator[Hit]:
    large = [name for name in scope.module.types if scope.types.size(name) > VALUE_LIMIT]
    names = "|".join(re.escape(name) for name in large)
    pattern = word(r"(?:load|store|phi|select|freeze|ret|insertvalue|extractvalue|call|invoke)\b[^\n]*")
    candidates = re.compile(r"[\[{<]" + (rf"|(?:{names})(?![\w.$-])" if names else ""))
    for function, ordinal, match in scope.find(pattern):
        for found in candidates.finditer(match[0]):
            kind = split_type(match[0][found.start() :])[0]
            # Behind getelementptr or byval a large type is only an address calculation.
            if scope.types.size(kind) > VALUE_LIMIT and not _is_address(match[0], found.start()):
                yield Hit(message=f"a value of type {kind[:60]}", function=function, ordinal=ordinal)
                break


def _is_address(text: str, position: int) -> bool:
    return re.search(r"(?:getelementptr[\w ]*\(|elementtype\(|sret\(|byval\(|\()\Z", text[:position]) is not None


def _large_alloca(scope: Scope) -> Iterator[Hit]:
    for function, ordinal, match in scope.find(_ALLOCA):
        kind, rest = split_type(match[1])
        count = re.match(r", i(\d+) (-?\d+)", rest)
        # LLVM prints the count as signed and means it as unsigned.
        size = scope.types.size(kind) * (int(count[2]) % (1 << int(count[1])) if count else 1)
        if size > ALLOCA_LIMIT:
            yield Hit(message=f"a local variable of {size} bytes", function=function, ordinal=ordinal)


def _large_function(scope: Scope) -> Iterator[Hit]:
    for function in scope.module.definitions():
        if len(function.starts) > INSTRUCTION_LIMIT:
            yield Hit(message=f"the function has {len(function.starts)} instructions", function=function)


def _wide_atomic(scope: Scope) -> Iterator[Hit]:
    for function, ordinal, match in scope.find(_ATOMIC):
        text = function.instruction(ordinal)
        aligned = _ATOMIC_ALIGN.search(text)
        if _ATOMIC_TYPE.search(text):
            yield Hit(message=f"an atomic {match[0]} of 16 bytes", function=function, ordinal=ordinal)
        elif aligned and scope.types.size(aligned[1]) > int(aligned[2]):
            message = f"an atomic {match[0]} of {aligned[1]} with alignment {aligned[2]}"
            yield Hit(message=message, function=function, ordinal=ordinal)


def _helper(scope: Scope) -> Iterator[Hit]:
    kinds = (
        (_LONG_DIVISION, "division of 128-bit integers", "Divide 64-bit halves, or multiply by a reciprocal."),
        (_LONG_TO_FLOAT, "128-bit integer to floating point", "Convert the 64-bit halves and add them."),
        (_FLOAT_TO_LONG, "floating point to 128-bit integer", "Convert to 64 bits."),
        (_SMALL_FLOAT, "arithmetic on 16-bit floating point", "Store it as uint16_t and calculate in float."),
        (_QUAD, "arithmetic on long double (128 bits)", "Use double; many libraries have a define for that."),
    )
    for pattern, what, remedy in kinds:
        for function, ordinal, _ in scope.find(pattern):
            message = f"{what} becomes a call into a compiler's run-time library, which users do not have"
            yield Hit(message=message, function=function, ordinal=ordinal, remedy=remedy)
    for name in scope.intrinsics:
        if _HELPER_INTRINSICS.match(name):
            yield scope.at_use(name, f"{name} becomes a call into a compiler's run-time library")


def _quad_inside(scope: Scope) -> Iterator[Hit]:
    for function in scope.module.definitions():
        match = _ANY_QUAD.search(function.body)
        if match and not _QUAD.search(function.body):
            ordinal = function.ordinal(match.start())
            yield Hit(message="long double (128 bits) is moved around", function=function, ordinal=ordinal)


def _quad_in_reach(scope: Scope) -> Iterator[Hit]:
    """Find long doubles that callers share: exported, pointed to by a result, or behind a pointer that they pass."""
    holders = {item.name for item in scope.module.globals if _ANY_QUAD.search(f"{item.type} {item.value}")}
    for name in sorted(holders & scope.exports):
        yield scope.at_use(name, f"{name[:60]} is exported and holds a long double")
    for function in scope.exported:
        if not holders and not _ANY_QUAD.search(function.body):
            continue
        names = (re.search(_VALUE + r"\Z", parameter.attributes) for parameter in function.parameters)
        foreign = {found[0] if found else f"%{index}" for index, found in enumerate(names)}
        for ordinal in range(len(function.starts)):
            text = function.instruction(ordinal)
            returned = _RETURNED.match(text)
            if returned and scope.module.name(returned[1]) in holders:
                message = "a pointer to a long double is returned"
                yield Hit(message=message, function=function, ordinal=ordinal)
            elif (access := _QUAD_ACCESS.search(text)) and access[1] in foreign:
                message = "a long double is read or written where a caller's pointer leads"
                yield Hit(message=message, function=function, ordinal=ordinal)
            elif (derived := _DERIVED.match(text)) and derived[2] in foreign:
                foreign.add(derived[1])
            elif (spilled := _SPILLED.match(text)) and spilled[1] in foreign:
                foreign.add(spilled[2])


def _quad_math(scope: Scope) -> Iterator[Hit]:
    for name in scope.intrinsics:
        if re.search(r"\.(?:v\d+)?f128", name) and intrinsics.base(name) not in _NO_CALL_QUAD:
            yield scope.at_use(name, f"{name} becomes a call of a long double function of the C library")


RULES = (
    Rule(
        id="VIS-305",
        title="no types of one target",
        severity="error",
        check=_foreign_type,
        reason="x87 numbers, scalable vectors and target types exist on one target only.",
        remedy="Use double, or vectors of fixed length.",
    ),
    Rule(
        id="VIS-306",
        title="one address space",
        severity="error",
        check=_address_space,
        reason="Other address spaces are segments or GPU memory.",
        remedy="Remove __attribute__((address_space(...))).",
    ),
    Rule(
        id="VIS-307",
        title="integers of at most 128 bits",
        severity="error",
        check=_wide_integer,
        reason="Wider integers blow up into huge code while it is compiled.",
        remedy="Use an array of 64-bit words instead of a wide _BitInt.",
    ),
    Rule(
        id="VIS-308",
        title="vectors of at most 2048 bits",
        severity="error",
        check=_wide_vector,
        reason="Wider vectors blow up into huge code while it is compiled.",
        remedy="Use a smaller vector_size and a loop.",
    ),
    Rule(
        id="VIS-309",
        title="values of at most 64 KiB",
        severity="error",
        check=_large_value,
        reason="An array or struct as one value is taken apart element by element while it is compiled.",
        remedy="Pass it by pointer and copy it with memcpy.",
    ),
    Rule(
        id="VIS-310",
        title="local variables of at most 1 MiB",
        severity="error",
        check=_large_alloca,
        reason="It would overflow the stack of a thread on many systems.",
        remedy="Use malloc or static data.",
    ),
    Rule(
        id="VIS-311",
        title=f"at most {INSTRUCTION_LIMIT} instructions in a function",
        severity="error",
        check=_large_function,
        reason="The time of some passes grows faster than the size of a function.",
        remedy="Split the function.",
    ),
    Rule(
        id="VIS-312",
        title="aligned atomics of at most 8 bytes",
        severity="error",
        check=_wide_atomic,
        reason="Wider or unaligned ones become calls of libatomic, or differ between CPUs of one architecture.",
        remedy="Use a lock, or an atomic of 8 bytes.",
    ),
    Rule(
        id="VIS-313",
        title="no operations that need a compiler's run-time library",
        severity="error",
        check=_helper,
        reason="Some targets turn them into calls (__udivti3, __addtf3, __extendhfsf2 ...) of libgcc or compiler-rt, "
        "which is part of neither the package nor the user's system.",
        remedy="Use 64-bit integers, float and double.",
    ),
    Rule(
        id="VIS-314",
        title="long double is not portable",
        severity="warning",
        check=_quad_inside,
        reason="Inside one module it is a 128-bit number, calculated by the package's own run-time functions; nothing "
        "outside of the package can be given one.",
        remedy="Use double.",
    ),
    Rule(
        id="VIS-315",
        title="no long double mathematics",
        severity="error",
        check=_quad_math,
        reason="The C library of x86-64 expects 80-bit numbers in these functions: the result is silently wrong.",
        remedy="Use the double function (sin instead of sinl).",
    ),
    Rule(
        id="VIS-322",
        title="no long double that a caller shares",
        severity="error",
        check=_quad_in_reach,
        reason="It is a 128-bit number; a program on x86-64 reads and writes an 80-bit one there.",
        remedy="Use double.",
    ),
)
