"""`visget build`: from a project to the bytes of its package.

Invariant: the bytes depend on the sources, visget.toml, and the versions of visget and of the compiler; not on the
time, the directory, the environment or the number of jobs. A package that breaks a VIS rule is never made.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from visget.digest import Digest, digest_bytes
from visget.download import NetworkOptions
from visget.errors import RefusedError, UsageError
from visget.format.container import write_container
from visget.format.findings import Finding, errors, in_order
from visget.format.headers import encode_headers
from visget.format.manifest import EPOCH, FpContract, Manifest, Provenance
from visget.format.package import Package, check_contents, open_package
from visget.format.plaintext import clean_line
from visget.format.prototypes import Api
from visget.format.vectorfit import misfits
from visget.format.verifier import ModuleFacts, check_module, module_facts
from visget.progress import SILENT, Progress
from visget.toolchain.baked import baked_in
from visget.toolchain.clang import find_frontend
from visget.toolchain.cxx import with_cxx_runtime
from visget.toolchain.cxxthrow import escaping_exceptions, of_the_author
from visget.toolchain.exported import Exported
from visget.toolchain.headers import Headers, read_headers
from visget.toolchain.inputs import Given, Inputs, with_prefix
from visget.toolchain.interface import choose_interface
from visget.toolchain.layouts import compare_layouts
from visget.toolchain.merge import Built, finish, merge_units
from visget.toolchain.project import Project
from visget.toolchain.providing import provide
from visget.toolchain.sources import SourceTree, find_text, source_tree
from visget.toolchain.toml_lines import Place
from visget.toolchain.uses import ALONE, Needs, Surroundings, needs_of, requirement_texts

_FP_CONTRACT: Mapping[str, FpContract] = {"strict": "off", "contract": "on", "fast": "fast"}
_SHOWN_HEADERS = 5
_COMMON = 4
"""How long a machine's name may be to be a word by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """A package that was built."""

    data: bytes
    """The bytes of the .vis file."""
    package: Package
    """The same, opened."""
    findings: list[Finding]
    """What the rules have to say that does not forbid the package."""
    warnings: str
    """What clang said about sources that it accepted."""
    notes: tuple[str, ...]
    """What the author should know, such as functions that are declared but not defined."""
    sources_used: tuple[tuple[str, Digest], ...]
    """Every file that was read by the compiler from the source tree, with its digest, sorted by name."""


def build_package(
    project: Project,
    *,
    root: Path | None = None,
    cc: str | None = None,
    jobs: int = 1,
    cache: Path,
    network: NetworkOptions | None = None,
    progress: Progress = SILENT,
    colour: bool = False,
    given: Given | None = None,
    surroundings: Surroundings = ALONE,
    test: bool = False,
    keep: bool = False,
) -> BuildResult:
    """Build the package of `project`.

    Args:
        project: what visget.toml says.
        root: the directory of local sources; None means that of visget.toml.
        cc: another clang than ziglang's.
        jobs: how many compilers may run at once.
        cache: where fetched sources are kept.
        network: how to reach the network for fetched sources.
        progress: told what is being done.
        colour: whether clang may use colours in its messages.
        given: what is taken instead of what [build] says.
        surroundings: the dependencies.
        test: whether the library's own tests are run, where its own build system builds it.
        keep: whether the directory of its build stays.

    Raises:
        BuildError: clang refused a source or a public header, the library's build failed or holds machine code, or
            the units do not make one module.
        RefusedError: a VIS or API rule is broken; details has "findings" with all of them.
        UsageError: visget.toml names something that is not there.
        UnsupportedError: there is no suitable compiler.
        ResourceError: there is no room for what is fetched, or for the C++ run-time library.
    """
    frontend = find_frontend(cc, epoch=EPOCH)
    with ExitStack() as stack:
        tree = stack.enter_context(source_tree(project, cache=cache, network=network, progress=progress))
        base = (root if root is not None and project.source is None else tree.root).resolve()
        inputs = stack.enter_context(
            provide(
                project, frontend, base, given=given, cc=cc, jobs=jobs, cache=cache, prefix=surroundings.prefix,
                progress=progress, colour=colour, test=test, keep=keep,
            )
        )  # fmt: skip
        progress.step("reading headers", ", ".join(inputs.public))
        options = with_prefix(inputs.options, surroundings.prefix)
        headers = read_headers(frontend, options, inputs.root, inputs.public)
        used = inputs.used
        texts = _texts(project, base)
        progress.step("merging", f"{len(inputs.units)} unit{'' if len(inputs.units) == 1 else 's'}")
        merged = merge_units(inputs.units)
        exported = choose_interface(project, headers, merged)
        _check_vectors(project, exported.api)
        foreign = compare_layouts(
            frontend, options, inputs.root, headers, exported.api, list(inputs.public.values())
        )
    merged = with_cxx_runtime(
        merged, frontend=frontend, cache=cache, exports=exported.symbols, jobs=jobs, progress=progress
    )
    built = finish(
        merged, exports=exported.symbols, cleanup=project.build.cleanup, frontend=frontend
    )  # fmt: skip
    progress.step("checking", "the VIS rules")
    facts = module_facts(built.text)
    needs = needs_of(facts.imports, surroundings.provided, project=str(project.path))
    findings = in_order(
        [
            *inputs.findings,
            *exported.findings,
            *foreign,
            *_private_includes(headers, inputs.public, used),
            *baked_in(built.text, paths=inputs.hidden, machine=_machine(inputs), lines=built.lines),
            *escaping_exceptions(built.text, exports=exported.symbols, lines=built.lines),
            *of_the_author(
                check_module(
                    built.text, exports=exported.symbols, imports=needs.imports, lines=built.lines,
                    uses=needs.used, api=exported.api, fp_contract=_FP_CONTRACT[project.build.floating_point],
                ),
                built.lines,
            ),
        ]
    )
    if wrong := errors(findings):
        count = f"{len(wrong)} findings keep" if len(wrong) > 1 else "1 finding keeps"
        raise RefusedError(
            f"{count} {project.package.name} outside VIS-1",
            where=str(project.path),
            hint="each finding names the place and the remedy",
            details={"findings": findings},
        )
    manifest = _manifest(project, inputs, tree, used, exported, facts, needs)
    progress.step("packing", f"{project.package.name} {project.package.version}")
    package = open_package(write_container(manifest, _sections(project, built, exported, headers, texts)))
    check_contents(package)
    notes = (*inputs.notes, *exported.notes, *(f"no function of {name} is called" for name in needs.idle))
    for note in notes:
        progress.note(note)
    return BuildResult(
        data=package.data,
        package=package,
        findings=findings,
        warnings="".join(unit.warnings for unit in inputs.units),
        notes=notes,
        sources_used=used,
    )


def _machine(inputs: Inputs) -> str:
    """Return the name of this machine, for a search in the module; empty where it is too common to mean anything."""
    name = platform.node().partition(".")[0]
    return name if inputs.hidden and len(name) > _COMMON and name != "localhost" else ""


def _check_vectors(project: Project, api: Api) -> None:
    """Refuse vectors and benches that do not fit the functions."""
    for key, vectors in (("vector", project.vectors), ("bench", project.benches)):
        names = [vector.name for vector in vectors.vectors]
        for misfit in misfits(vectors, api):
            place = (key, names.index(misfit.vector), "steps", misfit.step - 1)
            raise UsageError(
                f"{key} {misfit.vector!r}, step {misfit.step}: {misfit.message}",
                hint=misfit.hint,
                where=project.where(*place),
                details={"key": f"{key} {misfit.vector!r}, step {misfit.step}"},
            )


def source_digest(used: Sequence[tuple[str, Digest]]) -> Digest:
    """Return the digest of a list of source files (docs/spec/manifest.md, section 7)."""
    return digest_bytes("".join(f"{digest}  {name}\n" for name, digest in used).encode())


def _texts(project: Project, root: Path) -> dict[str, bytes]:
    """Return the sections "license" and "readme"."""
    sections: dict[str, bytes] = {}
    licenses = [
        (name, _text(project, root, name, ("package", "license-file", index)))
        for index, name in enumerate(project.package.license_files)
    ]
    if len(licenses) == 1:
        sections["license"] = licenses[0][1].encode()
    elif licenses:
        sections["license"] = "\n".join(f"===== {name} =====\n\n{text}" for name, text in licenses).encode()
    if project.package.readme is not None:
        sections["readme"] = _text(project, root, project.package.readme, ("package", "readme")).encode()
    return sections


def _text(project: Project, root: Path, name: str, key: Place) -> str:
    return find_text(project, root, name, key).read_text(encoding="utf-8", errors="replace")


def _private_includes(
    headers: Headers, public: dict[str, str], used: Iterable[tuple[str, Digest]]
) -> list[Finding]:
    """Warn of project headers that a public header includes, but that the package would not carry."""
    known = {name for name, _ in used}
    private = [name for name in headers.included if name in known and name not in public.values()]
    shown = ", ".join(private[:_SHOWN_HEADERS])
    if not private:
        return []
    return [
        Finding(
            rule="API-006",
            severity="warning",
            file=next(iter(public.values())),
            message=f"the public headers include {shown}, which the package does not carry",
            remedy="add it to [exports] headers, so that C programs can include them",
        )
    ]


def _manifest(
    project: Project,
    inputs: Inputs,
    tree: SourceTree,
    used: Sequence[tuple[str, Digest]],
    exported: Exported,
    facts: ModuleFacts,
    needs: Needs,
) -> Manifest:
    package = project.package
    return Manifest(
        name=package.name,
        version=package.version,
        summary=clean_line(package.summary),
        license=package.license,
        homepage=package.homepage,
        exports=exported.symbols,
        imports=needs.imports,
        dependencies=requirement_texts(project.dependencies),
        uses=needs.uses,
        library=package.library,
        fp_contract=_FP_CONTRACT[project.build.floating_point],
        constructors=facts.constructors,
        platform=facts.platform,
        cleanup=project.build.cleanup,
        provenance=Provenance(
            compiler=inputs.producer,
            flags=inputs.flags,
            source_digest=tree.digest or source_digest(used),
            source=tree.label,
        ),
    )


def _sections(
    project: Project, built: Built, exported: Exported, headers: Headers, texts: dict[str, bytes]
) -> dict[str, bytes]:
    sections = {
        "bitcode": built.bitcode,
        "api": exported.api.encode(),
        "headers": encode_headers(headers.files),
        "lines": built.lines.encode(),
        **texts,
    }
    if project.vectors.vectors:
        sections["vectors"] = project.vectors.encode()
    return sections
