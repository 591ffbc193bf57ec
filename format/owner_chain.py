"""How owner records follow each other: the rule by which a name changes hands, and who owns it now.

The rule is that of TUF's root: record N+1 is signed by the threshold of record N and by its own. Whoever knows one
record of a name, by its digest or by a key that signed it, can be led to the newest one and nowhere else.

Invariant: nothing here reads or writes, and every departure from the rule is a TrustError whose details say which
record broke it. The spec is docs/spec/owner-chain.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from visget.digest import Digest
from visget.errors import TrustError
from visget.format.keys import PublicKey
from visget.format.owner import SEQ_LIMIT, OwnerRecord, Revocation, SignedRecord
from visget.names import PackageName

NO_CHAIN = (
    "tell the registry's operator: a record can be lost by accident, and withheld on purpose; nothing was accepted"
)
FORK_HINT = (
    "ask the author, not over this registry, which keys are theirs; if the name was really begun anew, "
    "`visget trust forget {name}` and then `visget trust pin {name} KEY-ID`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerPin:
    """A record that was accepted before."""

    seq: int
    """Its number."""
    sha256: Digest
    """The digest of its signed bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Keys of a registry's operators, of which some number must sign together."""

    keys: tuple[PublicKey, ...]
    """The keys."""
    threshold: int
    """How many of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerState:
    """Who owns a name, as the newest record says."""

    record: OwnerRecord
    """The newest record."""
    digest: Digest
    """Its digest."""
    recovered: bool = False
    """Whether a record made by the registry's operators was followed to get here."""

    @property
    def name(self) -> PackageName:
        """The package."""
        return self.record.name

    @property
    def seq(self) -> int:
        """The number of the newest record."""
        return self.record.seq

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        """The keys that may sign."""
        return self.record.keys

    @property
    def threshold(self) -> int:
        """How many of them must."""
        return self.record.threshold

    @property
    def pin(self) -> OwnerPin:
        """What to remember."""
        return OwnerPin(seq=self.record.seq, sha256=self.digest)

    def revocation(self, key: PublicKey) -> Revocation | None:
        """Return why `key` must not count any more, or None."""
        return next((item for item in self.record.revoked if item.key == key), None)


def follow(
    chain: Sequence[bytes],
    name: PackageName,
    *,
    pinned: OwnerPin | None = None,
    anchors: Collection[PublicKey] = (),
    operators: Role | None = None,
    accepted: Collection[PublicKey] = (),
) -> OwnerState:
    """Follow the records of `name` to the newest one.

    Args:
        chain: the files of the records, in order; from record 1, or at least from the pinned one.
        name: the package that they must be about.
        pinned: the record that was accepted before: the chain must contain exactly it.
        anchors: keys that somebody trustworthy named: without a pin, the first record that one of them signed as an
            owner is believed. With neither, the registry's word is taken for the whole chain (first use).
        operators: the registry's offline keys, which may recover a name.
        accepted: keys that the user accepts although only the operators vouch for them.

    Raises:
        FormatError: a record is malformed.
        TrustError: the rule is broken; ``details["rule"]`` says which part, ``details["seq"]`` where.
    """
    records = [SignedRecord.parse(data) for data in chain]
    _check_row(records, name, pinned)
    if pinned is not None:
        start = _pinned(records, name, pinned)
    elif anchors:
        start = _anchored(records, name, anchors)
    else:
        start = _first_use(records)
    at = records[start]
    if pinned is None:
        _check_own(at)
    recovered = False
    for after in records[start + 1 :]:
        recovered |= _step(at.record, after, operators, accepted)
        at = after
    return OwnerState(record=at.record, digest=at.digest, recovered=recovered)


def check_next(state: OwnerState, after: SignedRecord, operators: Role | None = None) -> OwnerState:
    """Return the state after the record `after`; for those who keep a registry.

    Args:
        state: who owns the name now.
        after: the next record.
        operators: the registry's offline keys, which may recover the name; None means that only the owner may
            change anything.

    Raises:
        TrustError: `after` does not follow `state`, or not enough keys signed it.
    """
    _check_row([after], state.name, None, first=state.seq + 1)
    if after.record.prev != state.digest:
        raise _refuse(after, "fork", "it was made after another record than the registry's newest one")
    recovered = _step(state.record, after, operators, after.record.keys)
    return OwnerState(record=after.record, digest=after.digest, recovered=recovered)


def _check_row(
    records: Sequence[SignedRecord], name: PackageName, pinned: OwnerPin | None, first: int | None = None
) -> None:
    """Check what every chain must be, whoever made it: consecutive records of one name."""
    if not records:
        raise TrustError(
            f"the registry has no owner record of {name}, so nothing published under that name can be verified",
            where=name, hint=NO_CHAIN, details={"rule": "none"},
        )  # fmt: skip
    if first is None:
        first = records[0].record.seq if pinned is not None else 1
    for expected, item in enumerate(records, first):
        if item.record.name != name:
            raise _refuse(item, "name", f"it is a record of {item.record.name}, not of {name}", name=name)
        if item.record.seq != expected:
            raise _refuse(item, "sequence", f"record {expected} should be in its place")
    for before, item in itertools.pairwise(records):
        if item.record.prev != before.digest:
            raise _refuse(item, "fork", f"it does not follow record {before.record.seq} that the registry has")


def _pinned(records: Sequence[SignedRecord], name: PackageName, pinned: OwnerPin) -> int:
    newest = records[-1].record.seq
    if newest < pinned.seq:
        raise TrustError(
            f"the registry shows owner record {newest} of {name} as the newest, but record {pinned.seq} was seen here "
            "before: it is out of date, or hides a change of keys",
            where=name, hint=NO_CHAIN, details={"rule": "rollback", "seq": newest, "pinned": pinned.seq},
        )  # fmt: skip
    start = pinned.seq - records[0].record.seq
    if start < 0:
        raise TrustError(
            f"the registry no longer has owner record {pinned.seq} of {name}, by which newer ones are verified",
            where=name, hint=NO_CHAIN, details={"rule": "sequence", "pinned": pinned.seq},
        )  # fmt: skip
    found = records[start]
    if found.digest != pinned.sha256:
        raise TrustError(
            f"the owner of {name} has changed against the rules: the registry has another owner record {pinned.seq} "
            f"than the one accepted here before; it names {_ids(found.record.keys)}",
            where=name, hint=FORK_HINT.format(name=name),
            details={"rule": "fork", "seq": pinned.seq, "expected": pinned.sha256, "actual": found.digest,
                     "keys": [key.id for key in found.record.keys]},
        )  # fmt: skip
    return start


def _anchored(records: Sequence[SignedRecord], name: PackageName, anchors: Collection[PublicKey]) -> int:
    for number, item in enumerate(records):
        # Being listed is not enough: whoever makes a chain can list a stranger's key in it.
        if item.signers(key for key in anchors if key in item.record.keys):
            return number
    newest = records[-1].record
    raise TrustError(
        f"{_ids(anchors)} never owned {name}: the registry names {_ids(newest.keys)}",
        where=name,
        hint="compare the key id with the author's own word, not with this registry",
        details={"rule": "anchor", "wanted": [key.id for key in anchors], "keys": [key.id for key in newest.keys]},
    )


def _first_use(records: Sequence[SignedRecord]) -> int:
    """Return where a client that knows nothing begins: at the newest recovery, else at the beginning.

    What stands before a recovery was given up, and the operators' keys of that day may be gone too. Nothing is lost
    by that: a registry that lies to a new client can show it any chain at all.
    """
    return max((number for number, item in enumerate(records) if item.record.recovery), default=0)


def _check_own(item: SignedRecord) -> None:
    signed = len(item.signers(item.record.keys))
    if signed < item.record.threshold:
        raise _refuse(
            item, "unsigned by new", f"{signed} of its own keys signed it, and {item.record.threshold} must"
        )


def _step(old: OwnerRecord, after: SignedRecord, operators: Role | None, accepted: Collection[PublicKey]) -> bool:
    """Check that `after` may follow `old`, and tell whether only the operators say so."""
    new = after.record
    if lost := sorted({item.key.id for item in old.revoked} - {item.key.id for item in new.revoked}):
        raise _refuse(after, "revoked", f"it forgets that {lost[0]} was revoked")
    _check_own(after)
    signed = len(after.signers(old.keys))
    if signed >= old.threshold:
        return False
    if not new.recovery:
        raise _refuse(
            after, "unsigned by old", f"{signed} of the keys before it ({_ids(old.keys)}) signed it, and "
            f"{old.threshold} must"
        )  # fmt: skip
    if operators is None or len(after.signers(operators.keys)) < operators.threshold:
        raise _refuse(
            after, "unsigned by operators", "it claims to be a recovery, but the registry's offline keys have not "
            "signed it"
        )  # fmt: skip
    if not set(accepted) & set(new.keys):
        raise TrustError(
            f"{new.name} was given to other keys by the registry's operators, not by its owner: now "
            f"{_ids(new.keys)}, before {_ids(old.keys)}",
            where=new.name,
            hint="ask the author, not over this registry, whether the old keys are lost; only if so: "
            f"visget trust accept {new.name} {new.keys[0].id}",
            details={"rule": "recovery", "seq": new.seq, "keys": [key.id for key in new.keys],
                     "before": [key.id for key in old.keys]},
        )  # fmt: skip
    return True


def _refuse(item: SignedRecord, rule: str, why: str, name: str | None = None) -> TrustError:
    about = name or item.record.name
    return TrustError(
        f"owner record {item.record.seq} of {about} is refused: {why}",
        where=about,
        hint=FORK_HINT.format(name=about) if rule in ("fork", "unsigned by old") else NO_CHAIN,
        details={"rule": rule, "seq": item.record.seq, "keys": [key.id for key in item.record.keys]},
    )


def _ids(keys: Iterable[PublicKey]) -> str:
    return ", ".join(sorted(key.id for key in keys))


def next_record(
    state: OwnerState,
    *,
    add: Iterable[PublicKey] = (),
    remove: Iterable[PublicKey] = (),
    revoke: Iterable[tuple[PublicKey, str]] = (),
    threshold: int | None = None,
    recovery: bool = False,
) -> OwnerRecord:
    """Return the unsigned record that changes `state` as said.

    Args:
        state: who owns the name now.
        add: keys that join.
        remove: keys that leave in peace.
        revoke: keys that leave because they are not safe, with the reason in one line.
        threshold: how many must sign from now on; None keeps the number, lowered to what the keys can reach.
        recovery: the record is made by the registry's operators.

    Raises:
        TrustError: the result breaks a rule: no key left, a threshold out of reach, a revoked key that returns.
    """
    doomed = dict(revoke)
    gone = {*remove, *doomed}
    keys = sorted({*(key for key in state.keys if key not in gone), *add}, key=lambda key: key.id)
    fresh = [Revocation(key=key, reason=why, refuse_after=state.seq) for key, why in doomed.items()]
    known = {item.key for item in state.record.revoked}
    revoked = sorted(
        [*state.record.revoked, *(item for item in fresh if item.key not in known)], key=lambda item: item.key.id
    )
    if state.seq >= SEQ_LIMIT:
        raise TrustError(f"the owner chain of {state.name} is full", where=state.name)
    return replace(
        state.record, seq=state.seq + 1, prev=state.digest, keys=tuple(keys), revoked=tuple(revoked),
        threshold=min(state.threshold, len(keys)) if threshold is None else threshold, recovery=recovery,
    )  # fmt: skip
