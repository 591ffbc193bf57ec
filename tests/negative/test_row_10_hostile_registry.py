"""A registry that was taken over completely: its index, its online key, and its offline keys too.

It has everything that authors ever published, and every key but the authors'. Whoever has pinned an author must
never accept anything that this author did not make; new users, and everybody's wish to see the newest state, are
beyond help, and that is asserted too. The same attacks against real directories with signed metadata are in
test_row_10_taken_over_directory.py.
"""

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ownerkit import NAME, OPERATOR, THIEF, A, B, C, Chain, publics
from packagekit import package

from visget.errors import TrustError, VisgetError
from visget.format.owner import OwnerRecord, Revocation, SignedRecord, sign_record
from visget.format.owner_chain import Role
from visget.format.package import verify_package
from visget.format.signing import sign_package
from visget.registry.trust import Pin, decide

OPERATORS = Role(keys=(OPERATOR.public,), threshold=1)
HONEST = Chain(A).change(A, add=publics(B)).change(B, revoke=[(A.public, "stolen")])
"""A's name, later B's; A's key was stolen and revoked."""
TRUE = {item.digest for item in HONEST.items}
GOOD = {version: package(version=version) for version in ("1.0", "1.1")}
EVIL = package(version="6.6.6", filling=b"evil")
CHANGED = package(version="1.0", filling=b"changed")


def pin_at(length):
    chain = HONEST.copy(length)
    return Pin(keys=chain.newest.keys, record=chain.pin, how="first use")


def install(chain, item, envelope, pin):
    """What a client does: decide, verify, remember."""
    found = decide(NAME, chain, pin=pin, operators=OPERATORS)
    verified = verify_package(item, envelope, found.keys, threshold=found.threshold)
    return verified, found.pin


def test_the_honest_registry_serves_everybody():
    for length in (1, 2, 3):
        verified, pin = install(HONEST.files, GOOD["1.1"], sign_package(GOOD["1.1"], B), pin_at(length))
        assert verified.signers == (B.public.id,)
        assert pin == pin_at(3)


# ---- packages ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [1, 2, 3])
@pytest.mark.parametrize("item", [EVIL, CHANGED], ids=["added", "changed"])
@pytest.mark.parametrize("signers", [(), (THIEF,), (OPERATOR,), (THIEF, OPERATOR)])
def test_row_10_it_cannot_add_or_change_a_version(seen, item, signers):
    with pytest.raises(TrustError):
        install(HONEST.files, item, sign_package(item, *signers), pin_at(seen))
    # Nor can it put an author's signature about something else beside it.
    with pytest.raises(TrustError):
        install(HONEST.files, item, sign_package(GOOD["1.0"], B), pin_at(seen))


@pytest.mark.parametrize("item", [EVIL, GOOD["1.0"]], ids=["new version", "old version"])
def test_row_10_a_revoked_key_signs_in_vain(item):
    """The thief of A's key has the registry too: whoever has seen the revocation is safe, also for old versions."""
    with pytest.raises(TrustError):
        install(HONEST.files, item, sign_package(item, A), pin_at(3))
    with pytest.raises(TrustError):
        install(HONEST.files, item, sign_package(item, A, THIEF), pin_at(1))


# ---- owners --------------------------------------------------------------------------------------------------


def attacks():
    """Chains that a registry can make without the author's keys, each with the client that it is shown to."""
    new = Chain(THIEF)
    yield "begins the name anew", new, (1, 2, 3)
    yield "appends a record of its own", HONEST.copy().change(THIEF, add=publics(THIEF), remove=publics(B)), (1, 2, 3)
    yield "appends a recovery of its own", HONEST.copy().change(
        THIEF, OPERATOR, add=publics(THIEF), remove=publics(B), recovery=True), (1, 2, 3)  # fmt: skip
    yield "joins the owner", HONEST.copy().change(THIEF, OPERATOR, add=publics(THIEF)), (1, 2, 3)
    yield "joins by a recovery", HONEST.copy().change(THIEF, OPERATOR, add=publics(THIEF), recovery=True), (1, 2, 3)
    lower = Chain(A, B, threshold=2)
    lower.change(A, THIEF, OPERATOR, threshold=1)
    yield "is served another chain of the same author", lower, (1, 2, 3)
    yield "replays the stolen key before its revocation", HONEST.copy(2).change(
        A, THIEF, add=publics(THIEF), remove=publics(B)), (3,)  # fmt: skip
    yield "shows an old state", HONEST.copy(1), (2, 3)
    yield "hides the owner", HONEST.copy(0), (1, 2, 3)
    hidden = HONEST.copy()
    del hidden.items[1]
    yield "leaves a record out", hidden, (1, 2, 3)
    replaced = HONEST.copy(1)
    replaced.items[0] = sign_record(dataclasses.replace(HONEST.items[0].record, threshold=1, keys=(
        *sorted(publics(A, THIEF), key=lambda key: key.id),)), THIEF)  # fmt: skip
    yield "adds its key to the first record", replaced, (1, 2, 3)
    empty = HONEST.copy()
    empty.items[-1] = dataclasses.replace(
        empty.items[-1], envelope=dataclasses.replace(empty.items[-1].envelope, signatures={})
    )
    yield "strips signatures", empty, (1, 2)


@pytest.mark.parametrize(
    ("chain", "seen"),
    [pytest.param(chain, number, id=f"{title}, seen {number}") for title, chain, seen in attacks() for number in seen],
)
def test_row_10_it_cannot_change_keys_for_anybody_who_has_the_name_pinned(chain, seen):
    for signer in (THIEF, OPERATOR):
        with pytest.raises(TrustError):
            install(chain.files, EVIL, sign_package(EVIL, signer), pin_at(seen))
    with pytest.raises(TrustError):
        decide(NAME, chain.files, pin=pin_at(seen), operators=OPERATORS)


MAKERS = (THIEF, OPERATOR, C)
"""Every key that the registry has, and one of another author who helps it."""


@st.composite
def forgeries(draw):
    """Any sequence of records that can be made of what authors signed and what strangers can sign."""
    items = []
    for number in range(1, draw(st.integers(1, 4)) + 1):
        if draw(st.booleans()):
            items.append(draw(st.sampled_from(HONEST.items)))
            continue
        pool = [key.public for key in (*MAKERS, A, B)]
        keys = sorted(draw(st.sets(st.sampled_from(pool), min_size=1, max_size=3)), key=lambda key: key.id)
        prev = items[-1].digest if items and draw(st.integers(0, 3)) else HONEST.items[0].digest
        revoked = [Revocation(key=A.public, reason="x", refuse_after=0)] if draw(st.booleans()) else []
        try:
            record = OwnerRecord(
                name=NAME, seq=number, prev=prev if number > 1 else None, threshold=draw(st.integers(1, len(keys))),
                keys=tuple(keys), recovery=number > 1 and draw(st.booleans()),
                revoked=tuple(revoked) if number > 1 and A.public not in keys else (),
            )  # fmt: skip
        except VisgetError:
            continue
        items.append(sign_record(record, *MAKERS))
    if draw(st.booleans()) and items:
        # Signatures of the author moved from another record.
        stolen = draw(st.sampled_from(HONEST.items)).envelope.signatures
        last = items[-1]
        merged = dataclasses.replace(last.envelope, signatures={**last.envelope.signatures, **stolen})
        items[-1] = SignedRecord(record=last.record, envelope=merged)
    return [item.encode() for item in items]


@settings(max_examples=400, deadline=None)
@given(chain=forgeries(), seen=st.integers(1, 3), signers=st.sets(st.sampled_from(range(3))))
def test_row_10_no_forgery_is_followed(chain, seen, signers):
    pin = pin_at(seen)
    try:
        found = decide(NAME, chain, pin=pin, operators=OPERATORS)
    except VisgetError:
        return
    # What is followed is one of the author's own records, and nothing older than what was seen.
    assert found.state.digest in TRUE
    assert found.state.seq >= seen
    with pytest.raises(TrustError):
        verify_package(EVIL, sign_package(EVIL, *(MAKERS[n] for n in signers)), found.keys, threshold=found.threshold)


# ---- what it can do ------------------------------------------------------------------------------------------


def test_row_10_it_can_withhold_the_newest_record_and_versions():
    """A client that has not seen the revocation cannot know of it. It is in SECURITY.md."""
    verified, _ = install(HONEST.files[:2], EVIL, sign_package(EVIL, A), pin_at(2))
    assert verified.signers == (A.public.id,)
    # Hiding 1.1 is not noticed either: 1.0 is good.
    assert install(HONEST.files, GOOD["1.0"], sign_package(GOOD["1.0"], B), pin_at(3))


def test_row_10_it_can_stop():
    for seen in (1, 2, 3):
        with pytest.raises(TrustError, match="no owner record"):
            decide(NAME, [], pin=pin_at(seen), operators=OPERATORS)


def test_row_10_it_can_tell_new_users_anything_unless_they_know_the_author():
    chain = Chain(THIEF)
    assert install(chain.files, EVIL, sign_package(EVIL, THIEF), None)[0].signers == (THIEF.public.id,)
    with pytest.raises(TrustError):
        decide(NAME, chain.files, policy="pinned")
    for key in (A, B):
        with pytest.raises(TrustError):
            decide(NAME, chain.files, required=key.public.id)
        with pytest.raises(TrustError):
            decide(NAME, chain.files, pin=Pin(keys=(key.public,), record=None, how="named"))


def test_row_10_a_user_who_accepts_is_asked_again_for_the_next_one():
    chain = HONEST.copy().change(C, OPERATOR, add=publics(C), revoke=[(B.public, "lost")], recovery=True)
    found = decide(NAME, chain.files, pin=pin_at(3), operators=OPERATORS, accepted=publics(C))
    for keys in itertools.permutations((THIEF, OPERATOR)):
        more = chain.copy().change(*keys, add=publics(THIEF), remove=publics(C), recovery=True)
        with pytest.raises(TrustError) as caught:
            decide(NAME, more.files, pin=found.pin, operators=OPERATORS)
        assert caught.value.details["rule"] == "recovery"
