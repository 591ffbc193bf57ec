"""Do the test vectors of a package fit its functions: are there such functions, and do they take such arguments?

Invariant: a step without a misfit can be called; what it answers is another question. An author is told where
visget.toml is wrong, a package with a misfit is refused. The spec is docs/spec/vectors.md, section "Fitting the api".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from visget.format.prototypes import (
    Api,
    Bool,
    CType,
    EnumRef,
    Float,
    Function,
    Integer,
    Pointer,
    Void,
    c_text,
)
from visget.format.vectors import (
    Arg,
    ExpectFloat,
    ExpectInt,
    FloatArg,
    IntArg,
    Step,
    VarArg,
    VectorSet,
)

_SHOWN_FUNCTIONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A step that cannot be called."""

    vector: str
    """The vector's name."""
    step: int
    """The number of its step, from 1."""
    message: str
    """What does not fit."""
    hint: str | None
    """The function's prototype, or the functions that there are."""

    @property
    def where(self) -> str:
        """The step in words."""
        return f"vector {self.vector!r}, step {self.step}"


def misfits(vectors: VectorSet, api: Api) -> Iterator[Misfit]:
    """Yield every step of `vectors` that does not fit the functions of `api`, each once."""
    functions = {function.name: function for function in api.functions}
    for vector in vectors.vectors:
        for number, step in enumerate(vector.steps, 1):
            function = functions.get(step.call)
            if function is None:
                listed = ", ".join(sorted(functions)[:_SHOWN_FUNCTIONS])
                message = f"calls {step.call!r}, which is not among the exported functions"
                hint = f"the functions are {listed}" if functions else None
            else:
                problem = _problem(step, function, api)
                if problem is None:
                    continue
                message, hint = problem, function.prototype
            yield Misfit(vector=vector.name, step=number, message=message, hint=hint)


def _problem(step: Step, function: Function, api: Api) -> str | None:
    given, wanted = len(step.args), len(function.parameters)
    if given < wanted or (given > wanted and not function.variadic):
        return f"gives {step.call} {given} argument{'' if given == 1 else 's'}; it takes {wanted}"
    for number, parameter in enumerate(function.parameters, 1):
        problem = _argument_problem(step.args[number - 1], parameter.type, api)
        if problem is not None:
            name = f" ({parameter.name})" if parameter.name else ""
            return f"argument {number}{name} of {step.call}: {problem}"
    problem = _result_problem(step, function.result, api)
    return None if problem is None else f"the result of {step.call}: {problem}"


def _argument_problem(arg: Arg, declared: CType, api: Api) -> str | None:
    type_ = _plain(declared, api)
    shown = c_text(declared)
    if not _is_callable(type_) or isinstance(type_, Void):
        return f"test vectors cannot pass the type {shown}"
    if isinstance(arg, FloatArg):
        return None if isinstance(type_, Float) else f"a float cannot be passed as {shown}"
    if isinstance(arg, VarArg):
        return f"a saved pointer or integer cannot be passed as {shown}" if isinstance(type_, Float) else None
    if isinstance(arg, IntArg):
        if isinstance(type_, Pointer):
            hint = "save the result of an earlier step and pass that, or pass { null = true }"
            return f"an integer cannot be passed as {shown}; {hint}" if arg.value else None
        # The bits count: -1 may stand for the largest unsigned number, and 0xffffffff for -1.
        if isinstance(type_, Integer) and not -(1 << 8 * type_.size - 1) <= arg.value < 1 << 8 * type_.size:
            return f"{arg.value} does not fit into the {8 * type_.size} bits of {shown}"
        return None
    return None if isinstance(type_, Pointer) else f"{shown} is not a pointer, so no buffer can be passed"


def _result_problem(step: Step, declared: CType, api: Api) -> str | None:
    type_ = _plain(declared, api)
    shown = c_text(declared)
    if not _is_callable(type_):
        return f"test vectors cannot call a function that returns {shown}"
    if isinstance(type_, Void):
        wants = step.returns is not None or step.save is not None or step.nonnull
        return "there is none: the function returns void" if wants else None
    if step.save is not None and isinstance(type_, Float):
        return f"{shown} cannot be saved; only pointers and integers can"
    match step.returns:
        case None | ExpectInt():
            return None
        case ExpectFloat():
            return None if isinstance(type_, Float | Integer) else f"{shown} is no float"
        case _:  # text, and a pointer that is not null
            return None if isinstance(type_, Pointer) else f"{shown} is not a pointer"


def _plain(type_: CType, api: Api) -> CType:
    if isinstance(type_, EnumRef) and (enum := api.enum(type_.name)) is not None:
        return enum.type
    return type_


def _is_callable(type_: CType) -> bool:
    match type_:
        case Void() | Bool() | Pointer():
            return True
        case Integer():
            return type_.size <= 8
        case Float():
            return type_.size in (4, 8)
    return False
