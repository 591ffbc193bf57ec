"""From a legalised module to native object code: the optimiser and LLVM's code generator.

Invariant: the same module, target and LLVM give the same bytes in every process. Runs inside the worker process
only (visget/installer/worker.py), because LLVM may abort on what it does not like. Which passes run, and why, is
docs/spec/pipeline.md; PIPELINE changes whenever the code that they produce may change.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import llvmlite
import llvmlite.binding as llvm

from visget.errors import CompileError, RefusedError, UnsupportedError
from visget.format.module import ModuleRef, parse_text, text_of
from visget.installer.legalise import PERSONALITY, legalise, name_personality, place_constructors
from visget.installer.support import with_support
from visget.installer.support_systems import adapt
from visget.installer.systems import LINUX, MACOS, WINDOWS, system_of

OPTIMISED = 3
"""The normal optimisation level."""

_ALIAS = re.compile(r"^@([-\w$.]+) = [^\n\"]*\balias ", re.MULTILINE)
_STRUCTORS = ("llvm.global_ctors", "llvm.global_dtors")
_NO_LOOP_BUFFER = {"x86_64": "k8", "aarch64": "generic", "riscv64": "generic-rv64"}
# LLVM avoids 512-bit vectors on Intel's server processors, because the first of them lowered their clock for them.
_TUNING = {"sapphirerapids": "-prefer-256-bit", "emeraldrapids": "-prefer-256-bit"}

Announce = Callable[[str], None]
"""Called with the name of each stage before it begins, so that a crash can be laid at its door."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What LLVM needs to know about a target; see visget.installer.target.Target for the meaning of the fields."""

    triple: str
    cpu: str
    features: str
    level: int = OPTIMISED

    @property
    def arch(self) -> str:
        """The architecture of the triple."""
        return self.triple.partition("-")[0]

    @property
    def libc(self) -> str:
        """The C library of the triple: "gnu" or "musl"; elsewhere the system's name stands for its own."""
        return self.system if self.system != LINUX else "musl" if "musl" in self.triple else "gnu"

    @property
    def system(self) -> str:
        """The operating system of the triple."""
        return system_of(self.triple)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """An object file and the seconds that each stage took."""

    object: bytes
    seconds: dict[str, float]


def compiler_identity() -> str:
    """Name the compiler exactly enough for a cache key."""
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"llvmlite {llvmlite.__version__} / LLVM {version}"


def generate(
    text: str, machine: Machine, *, exports: Iterable[str], announce: Announce, chars: Iterable[str] = ()
) -> Generated:
    """Compile the neutral module `text`.

    Args:
        text: the module, which has passed the rules of VIS-1.
        machine: the target.
        exports: the symbols that stay visible; every other definition becomes internal.
        chars: the exports whose C result is a plain char.
        announce: told about each stage before it begins.

    Raises:
        RefusedError: an export is not defined by the module.
        CompileError: the module cannot be expressed on the target.
        UnsupportedError: the target, or a built-in that the package needs, is unknown.
    """
    exports = frozenset(exports)
    clock = _Clock(announce)
    clock.begin("legalise")
    legalised = legalise(adapt(text, machine.system), machine.arch, machine.system, chars=frozenset(chars))
    module = parse_text(with_support(legalised.text, machine.arch, machine.libc, legalised.builtins))
    target = _target_machine(machine)
    module.triple = machine.triple
    module.data_layout = str(target.target_data)
    # llvmlite lists functions and variables only; the rules of VIS-1 have seen to it that aliases name exports.
    _hide_all_but(module, exports - set(_ALIAS.findall(legalised.text)))
    module.verify()
    clock.begin("optimise")
    if machine.level > 1:
        _simplify(module, machine)
    _optimise(module, target, machine.level)
    clock.begin("emit")
    if machine.system not in (MACOS, WINDOWS) and any(v.name in _STRUCTORS for v in module.global_variables):
        module = parse_text(place_constructors(text_of(module)))
    if any(value.name == PERSONALITY and not value.is_declaration for value in module.functions):
        module = parse_text(name_personality(text_of(module), exports))
    native = target.emit_object(module)
    return Generated(object=bytes(native), seconds=clock.end())


def generate_unit(text: str, machine: Machine) -> bytes:
    """Compile one unit of a program, in which every symbol keeps its linkage.

    Raises:
        CompileError: the module cannot be expressed on the target.
        UnsupportedError: the target, or a built-in that the unit needs, is unknown.
    """
    legalised = legalise(adapt(text, machine.system), machine.arch, machine.system)
    module = parse_text(with_support(legalised.text, machine.arch, machine.libc, legalised.builtins))
    target = _target_machine(machine)
    module.triple = machine.triple
    module.data_layout = str(target.target_data)
    module.verify()
    _optimise(module, target, machine.level)
    if machine.system not in (MACOS, WINDOWS) and any(v.name in _STRUCTORS for v in module.global_variables):
        module = parse_text(place_constructors(text_of(module)))
    return bytes(target.emit_object(module))


class _Clock:
    """Times stages one after another and announces each."""

    def __init__(self, announce: Announce) -> None:
        self._announce = announce
        self._seconds: dict[str, float] = {}
        self._name = ""
        self._start = 0.0

    def begin(self, name: str) -> None:
        self.end()
        self._announce(name)
        self._name, self._start = name, time.perf_counter()

    def end(self) -> dict[str, float]:
        if self._name:
            self._seconds[self._name] = time.perf_counter() - self._start
            self._name = ""
        return self._seconds


@functools.cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _target_machine(machine: Machine) -> llvm.TargetMachine:
    _initialise()
    try:
        target = llvm.Target.from_triple(machine.triple)
    except RuntimeError as error:
        raise UnsupportedError(f"LLVM has no back end for {machine.triple}: {error}") from error
    return _create(target, machine, machine.cpu)


def _create(target: llvm.Target, machine: Machine, cpu: str) -> llvm.TargetMachine:
    features = ",".join(filter(None, [machine.features, _TUNING.get(cpu)]))
    # llvmlite's default code model is for JIT compilers; it puts code and data into "large" sections.
    return target.create_target_machine(
        cpu=cpu, features=features, opt=machine.level, reloc="pic", codemodel="small"
    )


def _hide_all_but(module: ModuleRef, exports: frozenset[str]) -> None:
    missing = set(exports)
    for values in (module.functions, module.global_variables):
        for value in values:
            if value.is_declaration:
                continue
            if value.name in exports:
                missing.discard(value.name)
            elif not value.name.startswith("llvm."):
                value.linkage = llvm.Linkage.internal
    if missing:
        name = min(missing)
        raise RefusedError(
            f"the manifest exports {name}, but the module does not define it",
            where=name,
            hint="the author has to build the package again",
            details={"missing": sorted(missing)},
        )


def _simplify(module: ModuleRef, machine: Machine) -> None:
    """Inline, unroll what is unrolled completely, and simplify, before anything is vectorised.

    In one run LLVM unrolls small loops so late that the vectoriser meets their loads and stores before they have been
    simplified, and gives up. No loop may be unrolled in part here, though: such loops vectorise badly. Whether LLVM
    does so depends on the processor's model, so this uses one that has no loop buffer; the features are the machine's.
    """
    plain = _create(llvm.Target.from_triple(machine.triple), machine, _NO_LOOP_BUFFER[machine.arch])
    _run(module, plain, 1, vectorise=False)


def _optimise(module: ModuleRef, target: llvm.TargetMachine, level: int) -> None:
    _run(module, target, level, vectorise=True)


def _run(module: ModuleRef, target: llvm.TargetMachine, level: int, *, vectorise: bool) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = vectorise
    options.loop_interleaving = vectorise
    options.loop_unrolling = True
    options.slp_vectorization = vectorise  # off by default in llvmlite, on in every compiler
    builder = llvm.create_pass_builder(target, options)
    try:
        builder.getModulePassManager().run(module, builder)
    except RuntimeError as error:  # pragma: no cover - LLVM aborts instead, but the binding may raise
        raise CompileError(f"LLVM's optimiser failed: {error}") from error
