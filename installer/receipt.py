"""The receipt of an installed library: what was made from what, for which processor, with which tools.

Invariant: Receipt.parse(receipt.encode()) == receipt, and parse() refuses whatever encode() would not write. Times
are whole milliseconds, because strict JSON has no fractions. The spec is
docs/spec/native-artifact.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from visget.digest import Digest, parse_digest
from visget.errors import FormatError
from visget.format.strictjson import Reader, dumps, loads
from visget.installer.target import Target, ordered_features

RECEIPT_FORMAT = "visget-receipt-1"
RECEIPT_LIMIT = 1 << 20

Answers = Literal["passed", "none", "not-run"]
Artifact = Literal["library", "object"]


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
            }
        )

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
        )
        reader.done()
        return receipt


_STRUCTURED = frozenset(["signers", "target", "milliseconds", "sizes"])


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
