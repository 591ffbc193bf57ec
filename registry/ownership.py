"""A change of owner under way: the next owner record, and the published versions that must be signed anew with it.

Packages count only with the signatures of the present owner, so a record that takes keys away would orphan what
those keys alone signed. A Change therefore carries both, and whoever signs one signs the other. It travels as a file
from keyholder to keyholder until enough have signed. Invariant: signed_with() signs nothing about a package that the
present owner did not sign before. The format is docs/spec/owner-chain.md, section "Changes". A pure module.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from visget.digest import Digest
from visget.errors import RegistryError, TrustError
from visget.format.dsse import Envelope
from visget.format.keys import PublicKey, SecretKey
from visget.format.owner import RECORD_LIMIT, OwnerRecord, SignedRecord, sign_record
from visget.format.owner_chain import OwnerState, Role, check_next, follow
from visget.format.signing import PAYLOAD_TYPE, SIGNATURE_LIMIT, Statement, parse_envelope
from visget.format.strictjson import Reader, dumps, loads
from visget.names import PackageName

CHANGE_FORMAT = "visget-owner-change-1"
_CHANGE_LIMIT = 16 << 20
_PACKAGES_LIMIT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """What a change still needs."""

    old: int
    """Signatures of the present owner's keys; of a recovery, of the operators'."""
    new: int
    """Signatures of the keys that will own the name."""
    packages: int
    """Published versions that would not be signed well enough by the new owner."""
    waiting: tuple[PublicKey, ...]
    """Keys whose signature could help and is not there yet."""

    @property
    def nothing(self) -> bool:
        """Whether the change can be put into a registry."""
        return not (self.old or self.new or self.packages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The next owner record of a name, and the statements to be signed anew, with the signatures so far."""

    record: SignedRecord
    """The record."""
    packages: tuple[Envelope, ...]
    """The signature files of the versions that the new keys have to vouch for."""

    @property
    def name(self) -> PackageName:
        """The package."""
        return self.record.record.name

    def encode(self) -> bytes:
        """Return the file in which the change travels."""
        return dumps(
            {
                "format": CHANGE_FORMAT,
                "record": self.record.envelope.as_object(),
                "packages": [item.as_object() for item in self.packages],
            }
        )

    @classmethod
    def parse(cls, data: bytes) -> Change:
        """Parse such a file.

        Raises:
            FormatError: it is malformed.
            TrustError: the record in it breaks a rule.
        """
        reader = Reader(loads(data, what="the change of owner", limit=_CHANGE_LIMIT), "change")
        reader.choice("format", (CHANGE_FORMAT,))
        record = SignedRecord.read(reader.object("record"))
        packages = tuple(
            Envelope.read(item, kind=PAYLOAD_TYPE, most=2 * SIGNATURE_LIMIT) for item in reader.objects("packages")
        )
        reader.done()
        if len(packages) > _PACKAGES_LIMIT:
            raise reader.fail("packages", f"has more than {_PACKAGES_LIMIT} elements")
        return cls(record=record, packages=packages)

    def statements(self, state: OwnerState) -> tuple[Statement, ...]:
        """Return what the packages in it are, each signed by the present owner.

        Raises:
            TrustError: one is about another name, or the present owner did not sign it.
        """
        found = []
        for item in self.packages:
            statement = Statement.parse(item.payload)
            if statement.name != state.name:
                raise TrustError(
                    f"the change asks for a signature on {statement.name} {statement.version}, another package",
                    where=state.name, hint="do not sign it; ask whoever sent it",
                )  # fmt: skip
            if len(item.signers(state.keys)) < state.threshold:
                raise TrustError(
                    f"the change asks for a signature on {statement.name} {statement.version}, which its present owner "
                    "has not signed",
                    where=state.name, hint="do not sign it; ask whoever sent it",
                )  # fmt: skip
            found.append(statement)
        return tuple(found)

    def signed_with(self, state: OwnerState, *keys: SecretKey, operators: Role | None = None) -> Change:
        """Return the change with the signatures of `keys`.

        Args:
            state: who owns the name now, by the signer's own knowledge.
            keys: the signing keys.
            operators: the registry's offline keys, which may sign a recovery.

        Raises:
            TrustError: a key belongs to neither the present nor the next owner, the record does not follow the
                present one, or a package in it is not the present owner's.
        """
        record = self.record.record
        if record.seq != state.seq + 1 or record.prev != state.digest or record.name != state.name:
            raise TrustError(
                f"the change follows owner record {record.seq - 1} of {record.name}, but the newest is {state.seq}",
                where=record.name, hint="make the change anew",
            )  # fmt: skip
        self.statements(state)
        helpers = operators.keys if operators is not None and record.recovery else ()
        for key in keys:
            if key.public not in (*state.keys, *record.keys, *helpers):
                raise TrustError(
                    f"{key.public.id} neither owns {record.name} nor is going to", where=record.name,
                    hint="choose the right key with --key",
                )  # fmt: skip
        owners = [key for key in keys if key.public in record.keys]
        return Change(
            record=self.record.signed_with(*keys),
            packages=tuple(item.signed_with(*owners) for item in self.packages),
        )

    def missing(self, state: OwnerState, operators: Role | None = None) -> Missing:
        """Tell what the change still needs to follow `state`; a recovery needs `operators` in place of the owner."""
        record = self.record.record
        before = Role(keys=state.keys, threshold=state.threshold)
        if record.recovery and operators is not None and len(self.record.signers(state.keys)) < state.threshold:
            before = operators
        old, new = self.record.signers(before.keys), self.record.signers(record.keys)
        short = [item for item in self.packages if len(item.signers(record.keys)) < record.threshold]
        pending = [key for key in before.keys if key not in old] if len(old) < before.threshold else []
        if len(new) < record.threshold or short:
            pending += [key for key in record.keys if key not in new and key not in pending]
        return Missing(
            old=max(0, before.threshold - len(old)), new=max(0, record.threshold - len(new)), packages=len(short),
            waiting=tuple(pending),
        )  # fmt: skip

    def check(self, state: OwnerState, operators: Role | None = None) -> OwnerState:
        """Return the state after the change; for those who keep a registry.

        Args:
            state: who owns the name now.
            operators: the registry's offline keys; None means that only the owner may change anything.

        Raises:
            TrustError: it is not signed well enough.
        """
        self.statements(state)
        after = check_next(state, self.record, operators)
        if (gap := self.missing(state)).packages:
            raise TrustError(
                f"{gap.packages} published version(s) of {state.name} would not be signed by the new owner",
                where=state.name, hint="let the new keys sign the change too: visget owner sign FILE --key NAME",
            )  # fmt: skip
        return after

    def files(self) -> dict[Digest, bytes]:
        """Return the new signature files by the digest of the package that each is about."""
        keys = self.record.record.keys
        # What counts no more goes, or a name that changes hands often would collect signatures without end.
        return {Statement.parse(item.payload).digest: item.only(keys).encode() for item in self.packages}


def propose(
    state: OwnerState, record: OwnerRecord, envelopes: Iterable[bytes], disowned: Collection[str] = ()
) -> Change:
    """Return the unsigned change to `record`.

    Args:
        state: who owns the name now.
        record: the next record.
        envelopes: the signature files of all published versions.
        disowned: versions that the new owner does not vouch for: a thief may have published them.

    Versions that enough of the new keys have signed already stay as they are, and so do those that not even the
    present owner has signed.

    Raises:
        FormatError, TrustError: a signature file is not one.
    """
    packages = []
    for data in envelopes:
        item = parse_envelope(data)
        statement = Statement.parse(item.payload)
        known = len(item.signers(state.keys)) >= state.threshold and statement.version not in disowned
        if known and len(item.signers(record.keys)) < record.threshold:
            packages.append(item.only((*state.keys, *record.keys)))
    return Change(record=sign_record(record), packages=tuple(packages))


def owner_of(name: PackageName, chain: Sequence[bytes], first: bytes | None = None) -> tuple[OwnerState, bytes | None]:
    """Return who owns `name` in a registry, for those who keep it, and the record that claims it when it is free.

    Args:
        name: the package.
        chain: the records that the registry has.
        first: the record with which a publisher would claim the name.

    Raises:
        TrustError: the chain breaks the rule, or the claim is none.
        RegistryError: the name is free and nobody claims it.
    """
    if chain:
        return follow(chain, name), None
    if first is None:
        raise RegistryError(
            f"the name {name} belongs to nobody yet, and the publisher does not claim it",
            hint="publish with `visget publish`, which makes the first owner record",
        )
    if len(first) > RECORD_LIMIT:
        raise TrustError(f"the first owner record of {name} is too large", where=name)
    return follow([first], name), first
