"""From a verified package to a native artifact in the store.

Invariant: an artifact is published only after its code has passed both gates and, where this machine can run it,
reproduced the answers that the package promises; until then it lies in the store's workspace, and a failure or a
kill leaves nothing behind. The stages are those of plan.py, in that order; the files are
docs/spec/native-artifact.md.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from visget.cache.entry import NativeEntry
from visget.cache.store import Store
from visget.digest import Digest
from visget.errors import RefusedError
from visget.failpoint import failpoint
from visget.files import translated
from visget.format.package import VerifiedPackage
from visget.format.vectorfit import misfits
from visget.installer.answers import check_answers
from visget.installer.archive import write_archive
from visget.installer.binding import bound_name, soname_of, tag_of
from visget.installer.compile import PIPELINE, TooSlowError, compile_package, compiler_identity
from visget.installer.detect import host_target
from visget.installer.documents import documents
from visget.installer.elf import check_needs_no_linker
from visget.installer.gate import Promise, gate_library, gate_object
from visget.installer.gate_systems import gate_import_library
from visget.installer.limits import DEFAULT_LIMITS, Limits, answer_limits
from visget.installer.link import Linked, libc_identity, link_library
from visget.installer.linkers import Linker
from visget.installer.others import Others, same_file
from visget.installer.plan import Dependency, Plan, Tools, digest_of, plan
from visget.installer.receipt import LinkedWith, Linking, Receipt
from visget.installer.sandbox import Level, weakest
from visget.installer.system_check import check_system
from visget.installer.system_headers import headers_agree
from visget.installer.systems import CONVENTIONS, WINDOWS
from visget.installer.target import Target
from visget.progress import SILENT, Progress


def plan_package(
    verified: VerifiedPackage,
    target: Target,
    store: Store,
    *,
    linker: Linker | None,
    limits: Limits = DEFAULT_LIMITS,
    dependencies: Sequence[Dependency] = (),
    linking: Linking = "shared",
) -> Plan:
    """Return what install_package() with the same arguments would do."""
    plans = _plans(verified, target, linker, limits, dependencies, linking)
    for made in plans:
        if store.native(made.digest, check="quick") is not None:
            return replace(made, cached=True)
    return plans[0]


def _plans(
    verified: VerifiedPackage, target: Target, linker: Linker | None, limits: Limits,
    dependencies: Sequence[Dependency], linking: Linking,
) -> tuple[Plan, Plan]:  # fmt: skip
    """Return the plan, and the one for when its compilation takes too long.

    What is hurried has a key of its own, which names the limit: it serves as long as the limit is the same, and a
    user who allows more time gets the whole optimisation.
    """
    tools = Tools(compiler=compiler_identity(), pipeline=PIPELINE, linker=linker, libc=libc_identity(target))
    made = [
        plan(
            verified, target, host=host_target(), tools=tools, dependencies=dependencies, linking=linking,
            hurried=hurried,
        )
        for hurried in (None, limits.seconds)
    ]  # fmt: skip
    return made[0], made[1]


class Obtained(NamedTuple):
    """A native artifact, and where it comes from."""

    entry: NativeEntry
    """The artifact."""
    compiled: bool
    """Whether this call compiled it; else it was there, or somebody else made it in the meantime."""


def install_package(
    verified: VerifiedPackage,
    target: Target,
    store: Store,
    *,
    linker: Linker | None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress = SILENT,
) -> NativeEntry:
    """Return the native artifact of `verified` for `target`; see obtain_native()."""
    return obtain_native(verified, target, store, linker=linker, limits=limits, progress=progress).entry


def obtain_native(
    verified: VerifiedPackage,
    target: Target,
    store: Store,
    *,
    linker: Linker | None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress = SILENT,
    dependencies: Sequence[Dependency] = (),
    linking: Linking = "shared",
) -> Obtained:
    """Return the native artifact of `verified` for `target`, made now unless the store has it.

    Args:
        verified: the package.
        target: what it is compiled for.
        store: where the artifact goes, and where those of its dependencies are.
        linker: what links it.
        limits: what the workers may use.
        progress: told what is being done.
        dependencies: what it depends on, each package after its own dependencies: all that there is when they are
            merged, else what the package itself names.
        linking: whether the dependencies stay libraries of their own.

    Raises:
        RefusedError: the package breaks the rules of VIS-1, or its code does not pass a gate.
        CompileError: it cannot be compiled or linked, or does not give its own expected answers.
        UnsupportedError: it needs something that this version or machine lacks.
        ResourceError: disk, memory or time ran out.
    """
    full, hurried = _plans(verified, target, linker, limits, dependencies, linking)
    for made in (full, hurried):
        if (entry := store.native(made.digest)) is not None:
            return Obtained(entry, compiled=False)
    compiled = False

    def make(made: Plan) -> NativeEntry:
        others = Others(made, verified, store)

        def build(directory: Path) -> None:
            nonlocal compiled
            if made is full and (meanwhile := store.native(hurried.digest)) is not None:
                raise _OtherwiseError(meanwhile)
            compiled = True
            try:
                _Build(verified, made, directory, limits, progress, others).run()
            except TooSlowError as error:
                if made is hurried:
                    raise error.final() from None
                progress.note(f"{made.label}: {error.message}; trying again with less optimisation")
                # While the lock of `full` is held, so that who waits for it need not wait for the limit again.
                raise _OtherwiseError(make(hurried)) from None

        # The store calls `build` only when the artifact is neither there nor made by another process meanwhile.
        return store.build_native(made.digest, build, needs=others.needs)

    try:
        return Obtained(make(full), compiled=compiled)
    except _OtherwiseError as otherwise:
        return Obtained(otherwise.entry, compiled=compiled)


class _OtherwiseError(Exception):
    """There is another artifact instead of the one that was to be built."""

    def __init__(self, entry: NativeEntry) -> None:
        super().__init__()
        self.entry = entry


class _Build:
    """One artifact while it is being made."""

    def __init__(
        self, verified: VerifiedPackage, made: Plan, directory: Path, limits: Limits, progress: Progress,
        others: Others,
    ) -> None:  # fmt: skip
        self._verified = verified
        self._package = verified.package
        self._manifest = verified.package.manifest
        self._plan = made
        self._directory = directory
        self._limits = limits
        self._progress = progress
        self._others = others
        self._conventions = CONVENTIONS[made.target.system]
        self._soname = soname_of(self._manifest.name, made.digest, self._conventions.suffix)
        self._milliseconds: dict[str, int] = {}
        self._sandboxes: list[Level] = []

    def run(self) -> None:
        """Do every stage and fill the directory."""
        name, target = self._manifest.name, self._plan.target
        if self._limits.sandbox == "off":
            self._progress.note(
                f"{self._plan.label}: the sandbox is off; the compiler could read and write whatever you can"
            )
        self._check_vectors()
        self._check_system()
        with self._stage("compile", "compiling"):
            binding = self._others.binding(self._verified, tag_of(self._plan.digest))
            compiled = compile_package(
                self._verified, target, self._limits, self._progress, binding=binding, merged=self._others.to_merge(),
                level=self._plan.level,
            )  # fmt: skip
            failpoint("install.compiled")
        self._sandboxes.append(compiled.sandbox)
        for stage, seconds in compiled.seconds.items():
            self._milliseconds[f"compile.{stage}"] = round(seconds * 1000)
        promise = Promise(
            label=self._plan.label,
            target=target,
            exports=frozenset(self._manifest.exports),
            imports=frozenset(self._manifest.imports).union(
                *(one.verified.package.manifest.imports for one in self._others.merged)
            ),
            constructors=self._manifest.constructors or any(
                one.verified.package.manifest.constructors for one in self._others.merged
            ),
            bound=frozenset(bound_name(export, binding.tag) for export in self._manifest.exports),
            taken=frozenset() if self._others.merged else binding.taken_names,
            libraries=frozenset(self._others.libraries),
            run_path=self._others.run_path,
        )
        with self._stage("gate", "checking the code"):
            needed = gate_object(compiled.object, promise)
        files: dict[str, bytes] = {}
        if self._conventions.archive:
            files[f"lib/lib{name}.a"] = write_archive(
                f"{name}.o", compiled.object, sorted(promise.exports | promise.bound)
            )
        linked = self._link(compiled.object, promise, needed)
        if linked is None:
            self._check_needs_no_linker(compiled.object)
            native = f"lib/lib{name}.o"
            files[native] = compiled.object
        else:
            native = f"lib/lib{name}{self._conventions.suffix}"
            files[native] = linked.library
            if linked.import_library is not None:
                files[f"lib/lib{name}.dll.a"] = linked.import_library
        sizes = {path: len(content) for path, content in files.items()}
        files |= documents(
            self._package, shared=linked is not None, soname=self._soname, types=compiled.types,
            beside=self._others.beside(), system=target.system,
        )  # fmt: skip
        with translated("write the library", self._directory):
            for path, content in files.items():
                place = self._directory / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            self._add_names(shared=linked is not None)
        failpoint("install.written")
        checked = self._check_answers(self._directory / native)
        failpoint("install.checked")
        receipt = Receipt(
            name=name,
            version=str(self._manifest.version),
            package=self._package.digest,
            bitcode=_required(self._plan, digest_of(self._package, "bitcode")),
            signers=tuple(self._verified.signers),
            key=self._plan.digest,
            target=target,
            compiler=compiled.compiler,
            level=compiled.level,
            pipeline=self._plan.tools.pipeline,
            linker=self._plan.tools.linker.identity if self._plan.tools.linker else None,
            libc=linked.libc if linked else "none",
            fp_contract=self._manifest.fp_contract,
            artifact="library" if linked else "object",
            answers="passed" if checked else ("none" if digest_of(self._package, "vectors") is None else "not-run"),
            vectors=checked,
            reason=self._plan.answers_reason,
            sandbox=str(weakest(self._sandboxes)),
            milliseconds=self._milliseconds,
            sizes=sizes,
            linking=self._plan.linking,
            dependencies=tuple(
                LinkedWith(name=one.name, version=one.version, package=one.verified.package.digest, key=one.key)
                for one in self._plan.dependencies
            ),
        )
        with translated("write the receipt", self._directory):
            (self._directory / "receipt.json").write_bytes(receipt.encode())

    def _add_names(self, *, shared: bool) -> None:
        """Give the library its other names: the one that it calls itself, and the usual one after ``-l``."""
        name = self._manifest.name
        usual = [] if self._manifest.link_name == name else [f"lib{self._manifest.link_name}"]
        names = [(f"lib{name}.a", [f"{one}.a" for one in usual])] if self._conventions.archive else []
        suffix = self._conventions.suffix
        if shared and suffix == ".dll":
            # Who is linked with a DLL finds it by the name in the import library.
            names.append((f"lib{name}{suffix}", [self._soname]))
            names.append((f"lib{name}.dll.a", [f"{one}.dll.a" for one in usual]))
        elif shared:
            names.append((f"lib{name}{suffix}", [self._soname, *(f"{one}{suffix}" for one in usual)]))
        for first, others in names:
            for other in others:
                same_file(self._directory / "lib" / first, self._directory / "lib" / other)

    def _check_system(self) -> None:
        """Refuse a package that the target's system cannot have, before anything is compiled."""
        target, linker = self._plan.target, self._plan.tools.linker
        check_system(self._package, [one.verified.package for one in self._others.merged], target)
        if target.system == WINDOWS and linker is not None:
            scratch = self._directory / ".headers"
            with translated("prepare the look at the headers", scratch):
                scratch.mkdir()
            headers_agree(self._package, linker, target, scratch, self._limits.sandbox)
            shutil.rmtree(scratch)

    def _check_vectors(self) -> None:
        """Refuse test vectors that do not fit the functions, before anything is compiled.

        Raises:
            RefusedError: there is such a vector.
        """
        vectors = self._package.vectors()
        for misfit in misfits(vectors, self._package.api()) if vectors else ():
            raise RefusedError(
                f"{self._plan.label}: its {misfit.where}: {misfit.message}",
                where=self._plan.label,
                hint="only its author can mend it; `visget build` refuses such a vector",
                details={"vector": misfit.vector, "step": misfit.step},
            )

    def _link(self, content: bytes, promise: Promise, needed: frozenset[str]) -> Linked | None:
        linker = self._plan.tools.linker
        if linker is None:
            return None
        soname = self._soname
        scratch = self._directory / ".link"
        with self._stage("link", "linking"):
            with translated("prepare the linking", scratch):
                scratch.mkdir()
            linked = link_library(
                linker, content, target=promise.target, soname=soname, exports=promise.exports | promise.bound,
                needed=needed, scratch=scratch, sandbox=self._limits.sandbox, libraries=self._others.libraries,
                run_path=promise.run_path,
            )  # fmt: skip
            self._sandboxes.append(linked.sandbox)
            shutil.rmtree(scratch)
        with self._stage("gate-library", "checking the library"):
            gate_library(linked.library, promise, soname=soname)
            if linked.import_library is not None:
                gate_import_library(linked.import_library, promise, soname=soname)
        return linked

    def _check_needs_no_linker(self, content: bytes) -> None:
        """Refuse what only a linked library makes work; code for elsewhere is never loaded here."""
        if self._plan.target.runs_on(host_target()):
            check_needs_no_linker(content, self._plan.label)

    def _check_answers(self, native: Path) -> int:
        """Return how many vectors the fresh code has reproduced."""
        vectors = self._package.vectors() if self._plan.run_answers else None
        if vectors is None:
            return 0
        with self._stage("answers", "checking answers"):
            limits = answer_limits(self._limits)
            # Until the artifact has its place in the store, what it needs is found beside it only.
            visitors = [same_file(path, native.with_name(path.name)) for path in self._others.files()]
            report = check_answers(
                native, self._package.api(), vectors, label=self._plan.label, limits=limits, progress=self._progress,
                companions=visitors,
            )  # fmt: skip
            with translated("check the answers", native):
                for path in visitors:
                    path.unlink()
        self._sandboxes.append(report.sandbox)
        return report.vectors

    @contextmanager
    def _stage(self, name: str, phase: str) -> Iterator[None]:
        self._progress.step(phase, self._plan.label)
        started = time.perf_counter()
        yield
        self._milliseconds[name] = round((time.perf_counter() - started) * 1000)


def _required(made: Plan, value: Digest | None) -> Digest:
    if value is None:
        raise RefusedError(f"{made.label} holds no module", where=made.label)
    return value
