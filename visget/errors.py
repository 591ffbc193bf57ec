"""Every error that visget raises on purpose, grouped by who has to act.

Invariant: an error that reaches a person says what happened, to which thing, why, and what to do next;
each family has one documented exit code (docs/reference/exit-codes.md). Mistakes of a programmer who calls
the API wrongly stay ValueError and TypeError.
"""

from __future__ import annotations

from collections.abc import Mapping

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_TRUST = 3
EXIT_REGISTRY = 4
EXIT_REFUSED = 5
EXIT_UNSUPPORTED = 6
EXIT_LOCK = 7
EXIT_NOT_FOUND = 8
EXIT_INTERRUPTED = 130


class VisgetError(Exception):
    """The root of all errors of visget.

    Args:
        message: one sentence: what happened, to which thing, and why.
        hint: what the reader can do next; shown on a line of its own.
        where: the file, package, function or line at fault, when there is one.
        details: facts for machines (``--json``), such as expected and actual digests.
    """

    exit_code = EXIT_FAILED

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        where: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where
        self.details = dict(details or {})

    def as_dict(self) -> dict[str, object]:
        """Return the error as the JSON object that ``--json`` prints."""
        return {
            "error": type(self).__name__,
            "message": self.message,
            "where": self.where,
            "hint": self.hint,
            "details": self.details,
            "exit_code": self.exit_code,
        }


class UsageError(VisgetError):
    """The command, its options, a setting or visget.toml is wrong; the user edits it."""

    exit_code = EXIT_USAGE


class BuildError(VisgetError):
    """The author's sources could not be turned into a module; the author edits them."""


class FormatError(VisgetError):
    """Bytes are not what their format says: a malformed container, manifest or index."""

    exit_code = EXIT_REFUSED


class RefusedError(VisgetError):
    """A well-formed package leaves VIS-1 or fails a gate; only its author can mend it."""

    exit_code = EXIT_REFUSED


class TrustError(VisgetError):
    """A signature, digest, role or freshness check failed; never retried, never downgraded."""

    exit_code = EXIT_TRUST


class UnsupportedError(VisgetError):
    """Nothing is broken, but this machine, target or version of visget cannot do it."""

    exit_code = EXIT_UNSUPPORTED


class ResourceError(VisgetError):
    """The machine ran out of something: disk, memory, time, descriptors, permission."""

    exit_code = EXIT_UNSUPPORTED


class CompileError(VisgetError):
    """A verified package could not be compiled, linked, or did not give its own expected answers."""


class LoadError(VisgetError):
    """An installed library could not be loaded into this process."""


class CacheError(VisgetError):
    """The store cannot be written or locked; a failed read is a miss and never raises this."""

    exit_code = EXIT_UNSUPPORTED


class RegistryError(VisgetError):
    """A registry answered with something that is not a registry's answer."""

    exit_code = EXIT_REGISTRY


class NetworkError(RegistryError):
    """The registry could not be reached in time; trying again may help."""


class NotFoundError(VisgetError):
    """No package, version, function or installed library has that name."""

    exit_code = EXIT_NOT_FOUND
