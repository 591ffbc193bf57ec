"""The receipt of an installed library: what was made from what, for which processor, with which tools.

Invariant: Receipt.parse(receipt.encode()) == receipt, and parse() refuses whatever encode() would not write. Times
are whole milliseconds, because strict JSON has no fractions. The spec is
docs/spec/native-artifact.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from visget.digest import Digest, parse_digest
from visget.errors import FormatError
from visget.files import translated
from visget.format.strictjson import Reader, dumps, loads
from visget.installer.target import Target, ordered_features

RECEIPT_FORMAT = "visget-receipt-1"
RECEIPT_LIMIT = 1 << 20
RECEIPT_FILE = "receipt.json"

Answers = Literal["passed", "none", "not-run"]
Artifact = Literal["library", "object"]
Linking = Literal["shared", "static"]
"""Whether a package's dependencies are libraries of their own, or their code becomes part of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedWith:
    """A package that an artifact was linked with."""

    name: str
    version: str
    package: Digest
    """The digest of the package."""
    key: Digest | None
    """The action key of its artifact; None when it is part of the other one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """How one native artifact came to be."""

    name: str
    version: str
    package: Digest
    """The digest of the package."""
    bitcode: Digest
    """The digest of its module."""
    signers: tuple[str, ...]
    """The keys whose signatures were accepted."""
    key: Digest
    """The action key that names the artifact in the store."""
    target: Target
    compiler: str
    """Which compiler generated the code."""
    level: int
    """The optimisation level that was used."""
    pipeline: str
    """The version of the way from module to object."""
    linker: str | None
    """Which linker linked it; None where there was none."""
    libc: str
    """The C library it was linked against."""
    fp_contract: str
    """The package's floating-point contract."""
    artifact: Artifact
    """Whether there is a shared library, or an object file that LLVM's own loader loads."""
    answers: Answers
    """Whether the package's own test vectors were reproduced."""
    vectors: int
    """How many vectors were run."""
    reason: str
    """Why the vectors were not run; empty when they were."""
    sandbox: str
    """What confined every child process that took part: ``seccomp, landlock 7``, or less."""
    milliseconds: Mapping[str, int]
    """How long each stage took."""
    sizes: Mapping[str, int]
    """Bytes of each file that holds code."""
    linking: Linking = "shared"
    """Whether its dependencies are libraries of their own (shared), or part of this one (static)."""
    dependencies: tuple[LinkedWith, ...] = ()
    """The packages that it was linked with."""

    def encode(self) -> bytes:
        """Return the receipt as strict JSON."""
        target = self.target
        return dumps(
            {
                "format": RECEIPT_FORMAT,
                **{name: getattr(self, name) for name in self.__slots__ if name not in _STRUCTURED},
                "signers": list(self.signers),
                "target": {"triple": target.triple, "cpu": target.cpu, "features": list(target.features)},
                "milliseconds": dict(self.milliseconds),
                "sizes": dict(self.sizes),
                "dependencies": [
                    {"name": item.name, "version": item.version, "package": item.package, "key": item.key}
                    for item in self.dependencies
                ],
            }
        )

    def facts(self) -> list[tuple[str, str]]:
        """Return label and text of each line that people see."""
        answers = {
            "passed": f"test vectors reproduced: {self.vectors}",
            "none": "the package has no test vectors",
            "not-run": f"not checked: {self.reason}",
        }[self.answers]
        return [
            ("target", str(self.target)),
            ("compiler", f"{self.compiler}, optimisation level {self.level}"),
            ("linker", f"{self.linker}, {self.libc}" if self.linker else "none; LLVM loads the object file"),
            *([("dependencies", self._dependencies())] if self.dependencies else []),
            ("sandbox", self.sandbox),
            ("answers", answers),
            ("files", ", ".join(f"{path} {size:,} bytes" for path, size in sorted(self.sizes.items()))),
            ("took", f"{self.total:,} ms"),
        ]

    def _dependencies(self) -> str:
        listed = ", ".join(f"{item.name} {item.version}" for item in self.dependencies)
        return f"{listed} (merged into it)" if self.linking == "static" else listed

    @property
    def total(self) -> int:
        """Milliseconds of all stages; a part of a stage, such as ``compile.emit``, is counted with it."""
        return sum(taken for stage, taken in self.milliseconds.items() if "." not in stage)

    def times(self) -> list[tuple[str, str]]:
        """Return each stage and how long it took, with the parts of a stage in brackets, in their order."""
        listed = []
        for stage, taken in sorted(self.milliseconds.items(), key=lambda item: _place_of(item[0])):
            if "." in stage:
                continue
            parts = [
                f"{name.partition('.')[2]} {part:,}"
                for name, part in sorted(self.milliseconds.items(), key=lambda item: _place_of(item[0]))
                if name.startswith(f"{stage}.")
            ]
            listed.append((stage, f"{taken:,} ms" + (f" ({', '.join(parts)})" if parts else "")))
        return listed

    @classmethod
    def parse(cls, data: bytes) -> Receipt:
        """Parse a receipt.

        Raises:
            FormatError: it breaks a rule of docs/spec/native-artifact.md.
        """
        reader = Reader(loads(data, what="the receipt", limit=RECEIPT_LIMIT), "receipt")
        if reader.line("format") != RECEIPT_FORMAT:
            raise reader.fail("format", f"must be {RECEIPT_FORMAT!r}")
        receipt = cls(
            name=reader.line("name"),
            version=reader.line("version"),
            package=_digest(reader, "package"),
            bitcode=_digest(reader, "bitcode"),
            signers=reader.lines("signers"),
            key=_digest(reader, "key"),
            target=_target(reader.object("target")),
            compiler=reader.line("compiler"),
            level=reader.integer("level", 0, 3),
            pipeline=reader.line("pipeline"),
            linker=reader.nullable_line("linker"),
            libc=reader.line("libc"),
            fp_contract=reader.choice("fp_contract", ("off", "on", "fast")),
            artifact="object" if reader.choice("artifact", ("library", "object")) == "object" else "library",
            answers=_answers(reader),
            vectors=reader.integer("vectors"),
            reason=reader.line("reason"),
            sandbox=reader.line("sandbox"),
            milliseconds=_numbers(reader, "milliseconds"),
            sizes=_numbers(reader, "sizes"),
            linking="static" if reader.choice("linking", ("shared", "static")) == "static" else "shared",
            dependencies=tuple(_linked_with(item) for item in reader.objects("dependencies")),
        )
        reader.done()
        return receipt


def read_receipt(artifact: Path) -> Receipt:
    """Return the receipt in the directory of a native artifact.

    Raises:
        FormatError: it is damaged.
        ResourceError: it cannot be read.
    """
    path = artifact / RECEIPT_FILE
    with translated("read the receipt", path):
        data = path.read_bytes()
    return Receipt.parse(data)


def _place_of(stage: str) -> tuple[int, str]:
    """Order stages as they are done; JSON has kept them in the order of the alphabet."""
    return (_ORDER.index(stage) if stage in _ORDER else len(_ORDER), stage)


_ORDER = (
    "compile", "compile.parse", "compile.check", "compile.legalise", "compile.optimise", "compile.emit", "gate",
    "link", "gate-library", "answers",
)  # fmt: skip
_STRUCTURED = frozenset(["signers", "target", "milliseconds", "sizes", "dependencies"])


def _linked_with(reader: Reader) -> LinkedWith:
    found = LinkedWith(
        name=reader.line("name"), version=reader.line("version"), package=_digest(reader, "package"),
        key=None if reader.any("key") is None else _digest(reader, "key"),
    )  # fmt: skip
    reader.done()
    return found


def _digest(reader: Reader, name: str) -> Digest:
    try:
        return parse_digest(reader.string(name))
    except ValueError as error:
        raise reader.fail(name, str(error)) from None


def _answers(reader: Reader) -> Answers:
    known: dict[str, Answers] = {"passed": "passed", "none": "none", "not-run": "not-run"}
    return known[reader.choice("answers", tuple(known))]


def _target(reader: Reader) -> Target:
    features = reader.lines("features")
    target = Target(triple=reader.line("triple"), cpu=reader.line("cpu"), features=features)
    try:
        right = ordered_features(features) == features
    except ValueError:
        right = False
    if not right or target.triple.count("-") != 3:
        raise FormatError(f"{reader.path} is not a target", where=reader.path)
    reader.done()
    return target


def _numbers(reader: Reader, name: str) -> dict[str, int]:
    inner = reader.object(name)
    names = reader.any(name)
    return {key: inner.integer(key) for key in names}
