import dataclasses

import pytest
from ownerkit import NAME, OPERATOR, THIEF, A, B, C, Chain, ids, publics

from visget.errors import FormatError, TrustError
from visget.format.owner import OwnerRecord, Revocation, sign_record
from visget.format.owner_chain import OwnerPin, Role, check_next, follow, next_record

OPERATORS = Role(keys=(OPERATOR.public,), threshold=1)


def refused(rule, call):
    with pytest.raises(TrustError) as caught:
        call()
    assert caught.value.details["rule"] == rule, caught.value.message
    assert caught.value.hint
    return caught.value


# ---- what is followed ----------------------------------------------------------------------------------------


def test_a_new_client_follows_the_whole_chain():
    chain = Chain(A).change(A, B, add=publics(B), remove=publics(A)).change(B, C, add=publics(C), threshold=2)
    state = chain.follow()
    assert (state.seq, ids(state.keys), state.threshold, state.recovered) == (3, ids(publics(B, C)), 2, False)
    assert state.pin == chain.pin


@pytest.mark.parametrize("seen", [1, 2, 3])
def test_a_pinned_client_is_led_on(seen):
    chain = Chain(A).change(A, B, add=publics(B), remove=publics(A)).change(B, revoke=[(A.public, "lost")])
    pin = chain.copy(seen).pin
    assert chain.follow(pinned=pin).keys == (B.public,)
    # It needs only what is new, and the pinned record itself.
    assert follow(chain.files[seen - 1 :], NAME, pinned=pin).seq == 3


def test_only_a_client_with_a_pin_may_begin_in_the_middle():
    chain = Chain(A).change(A, add=publics(B))
    refused("sequence", lambda: follow(chain.files[1:], NAME))
    refused("sequence", lambda: follow(chain.files[1:], NAME, pinned=chain.copy(1).pin))


def test_a_key_that_somebody_named_is_an_anchor():
    chain = Chain(A).change(A, B, add=publics(B), remove=publics(A))
    for keys in ([A], [B], [C, B]):
        assert chain.follow(anchors=publics(*keys)).keys == (B.public,)
    error = refused("anchor", lambda: chain.follow(anchors=publics(C)))
    assert C.public.id in error.message


# ---- row 10: what is not -------------------------------------------------------------------------------------


def test_row_10_fork_at_the_pinned_record():
    ours = Chain(A).change(A, add=publics(B))
    other = Chain(A).change(A, add=publics(C))
    error = refused("fork", lambda: other.follow(pinned=ours.pin))
    assert error.details["seq"] == 2
    assert "trust forget" in error.hint
    refused("fork", lambda: Chain(THIEF).follow(pinned=Chain(A).pin))


def test_row_10_fork_behind_or_inside():
    ours = Chain(A).change(A, add=publics(B)).change(A, add=publics(C))
    other = Chain(A).change(A, remove=(), threshold=1).change(A, add=publics(B, C))
    mixed = ours.copy(2)
    mixed.items.append(other.items[2])
    refused("fork", mixed.follow)
    refused("fork", lambda: mixed.follow(pinned=ours.copy(1).pin))


def test_row_10_and_03_an_older_chain_than_the_pin():
    chain = Chain(A).change(A, add=publics(B))
    assert refused("rollback", lambda: chain.copy(1).follow(pinned=chain.pin)).details["seq"] == 1


def test_row_10_a_skipped_record():
    chain = Chain(A).change(A, add=publics(B)).change(A, add=publics(C))
    for pinned in (None, chain.copy(1).pin):
        broken = chain.copy()
        del broken.items[1]
        refused("sequence", lambda broken=broken, pinned=pinned: broken.follow(pinned=pinned))
    jump = Chain(A)
    jump.push(dataclasses.replace(next_record(jump.newest, add=publics(B)), seq=3), A)
    refused("sequence", jump.follow)
    twice = Chain(A)
    twice.items *= 2
    refused("sequence", twice.follow)


@pytest.mark.parametrize("signers", [(B,), (THIEF, B), ()])
def test_row_10_unsigned_by_the_old_owner(signers):
    chain = Chain(A).change(*signers, add=publics(B), remove=publics(A))
    for pinned in (None, chain.copy(1).pin):
        rule = "unsigned by old" if signers else "unsigned by new"
        refused(rule, lambda pinned=pinned: chain.follow(pinned=pinned))


def test_row_10_unsigned_by_the_new_owner():
    chain = Chain(A).change(A, add=publics(B), remove=publics(A))
    for pinned in (None, chain.copy(1).pin):
        refused("unsigned by new", lambda pinned=pinned: chain.follow(pinned=pinned))


def test_row_10_a_first_record_is_signed_by_its_own_threshold():
    chain = Chain(A, B, threshold=2)
    assert chain.follow().threshold == 2
    chain.items[0] = sign_record(chain.items[0].record, A)
    refused("unsigned by new", chain.follow)
    refused("unsigned by new", lambda: chain.follow(anchors=publics(A)))


def test_row_08_a_threshold_counts_keys_and_not_signatures():
    chain = Chain(A, B, threshold=2)
    good = next_record(chain.newest, add=publics(C))
    once = sign_record(good, A)
    signature = once.envelope.signatures[A.public.id]
    for extra in (
        {}, {A.public.id.upper(): signature}, {B.public.id: signature}, {B.public.id: b"\0" * 64},
        {THIEF.public.id: sign_record(good, THIEF).envelope.signatures[THIEF.public.id]},
    ):  # fmt: skip
        forged = chain.copy()
        signatures = {**once.envelope.signatures, **extra}
        envelope = dataclasses.replace(once.envelope, signatures=signatures)
        forged.items = [*chain.items, dataclasses.replace(once, envelope=envelope)]
        refused("unsigned by new", forged.follow)
        refused("unsigned by new", lambda forged=forged: forged.follow(pinned=chain.pin))
    chain.items.append(sign_record(good, A, B))
    assert chain.follow().seq == 2


def test_row_10_a_record_of_another_name():
    chain, other = Chain(A), Chain(A, name="zlib")
    refused("name", lambda: follow(other.files, NAME))
    other.change(A, add=publics(THIEF))
    chain.items.append(other.items[1])
    refused("name", chain.follow)


def test_row_10_a_revoked_key_cannot_come_back():
    chain = Chain(A, B).change(B, revoke=[(A.public, "stolen")])
    with pytest.raises(TrustError, match="both a key and revoked"):
        next_record(chain.newest, add=publics(A))
    forgetful = chain.copy().push(dataclasses.replace(next_record(chain.newest), revoked=()), B)
    refused("revoked", forgetful.follow)
    # The revoked key signs what comes after its revocation: not one of the keys any more, so nothing counts.
    stolen = chain.copy().change(A, THIEF, add=publics(THIEF))
    refused("unsigned by old", stolen.follow)
    stolen = chain.copy().change(A, THIEF, add=publics(THIEF), remove=publics(B))
    refused("unsigned by old", stolen.follow)
    assert chain.follow().revocation(A.public) == Revocation(key=A.public, reason="stolen", refuse_after=1)


def test_row_10_no_records_at_all():
    for pinned in (None, Chain(A).pin):
        refused("none", lambda pinned=pinned: follow([], NAME, pinned=pinned))


def test_row_10_a_pin_that_the_registry_no_longer_has():
    chain = Chain(A).change(A, add=publics(B)).change(A, add=publics(C))
    refused("sequence", lambda: follow(chain.files[1:], NAME, pinned=chain.copy(1).pin))


def test_a_pin_is_the_signed_bytes_and_not_the_file():
    chain = Chain(A)
    pin = chain.pin
    chain.items[0] = chain.items[0].signed_with(THIEF)
    assert chain.follow(pinned=pin).seq == 1
    with pytest.raises(TrustError):
        chain.follow(pinned=OwnerPin(seq=1, sha256="0" * 64))


def test_listing_a_strangers_key_is_not_having_it():
    first = OwnerRecord(name=NAME, seq=1, prev=None, threshold=1,
                        keys=tuple(sorted(publics(A, THIEF), key=lambda key: key.id)))  # fmt: skip
    chain = Chain(THIEF)
    chain.items = [sign_record(first, THIEF)]
    refused("anchor", lambda: chain.follow(anchors=publics(A)))


def test_garbage_is_malformed():
    with pytest.raises(FormatError):
        follow([b"{}"], NAME)


# ---- recovery ------------------------------------------------------------------------------------------------


def recovered(*signers):
    return Chain(A).change(*signers, add=publics(C), revoke=[(A.public, "lost")], recovery=True)


def test_row_10_a_recovery_needs_the_users_word():
    chain = recovered(C, OPERATOR)
    pin = chain.copy(1).pin
    error = refused("recovery", lambda: chain.follow(pinned=pin, operators=OPERATORS))
    assert f"visget trust accept {NAME} {C.public.id}" in error.hint
    refused("recovery", lambda: chain.follow(pinned=pin, operators=OPERATORS, accepted=publics(B)))
    state = chain.follow(pinned=pin, operators=OPERATORS, accepted=publics(C))
    assert (state.seq, state.keys, state.recovered) == (2, (C.public,), True)
    # Accepted once, it is like any other record.
    chain.change(C, add=publics(B))
    assert chain.follow(pinned=state.pin, operators=OPERATORS).seq == 3


def test_row_10_accepting_does_not_replace_the_operators_signature():
    for signers, operators in (
        ((C,), OPERATORS), ((C, THIEF), OPERATORS), ((C, OPERATOR), None),
        ((C, OPERATOR), Role(keys=(OPERATOR.public, B.public), threshold=2)),
    ):  # fmt: skip
        chain = recovered(*signers)
        refused(
            "unsigned by operators",
            lambda chain=chain, operators=operators: chain.follow(
                pinned=chain.copy(1).pin, operators=operators, accepted=publics(C)
            ),
        )
    chain = recovered(OPERATOR)
    refused("unsigned by new", lambda: chain.follow(
        pinned=chain.copy(1).pin, operators=OPERATORS, accepted=publics(C)))  # fmt: skip


def test_row_10_a_second_recovery_needs_a_second_word():
    chain = recovered(C, OPERATOR)
    chain.change(B, OPERATOR, add=publics(B), remove=publics(C), recovery=True)
    pin = chain.copy(1).pin
    refused("recovery", lambda: chain.follow(pinned=pin, operators=OPERATORS, accepted=publics(C)))
    refused("recovery", lambda: chain.follow(pinned=pin, operators=OPERATORS, accepted=publics(B)))


def test_row_10_operators_cannot_make_an_ordinary_record():
    chain = Chain(A).change(C, OPERATOR, add=publics(C), remove=publics(A))
    refused("unsigned by old", lambda: chain.follow(
        pinned=chain.copy(1).pin, operators=OPERATORS, accepted=publics(C)))  # fmt: skip


def test_a_recovery_that_the_owner_signed_too_asks_nobody():
    chain = recovered(A, C)
    assert chain.follow(pinned=chain.copy(1).pin).recovered is False


def test_a_new_client_begins_at_the_newest_recovery():
    chain = recovered(C, OPERATOR).change(C, add=publics(B))
    assert (chain.follow().seq, chain.follow().recovered) == (3, False)
    # A key that was named is a pin as good as any: the operators alone do not get past it.
    refused("recovery", lambda: chain.follow(anchors=publics(A), operators=OPERATORS))


# ---- making records ------------------------------------------------------------------------------------------


def test_next_record():
    state = Chain(A, B, threshold=2).newest
    assert next_record(state, add=publics(C)).threshold == 2
    assert next_record(state, remove=publics(B)).threshold == 1
    assert next_record(state, add=publics(C), threshold=3).threshold == 3
    for wrong in ({"remove": publics(A, B)}, {"threshold": 3}, {"threshold": 0}):
        with pytest.raises(TrustError):
            next_record(state, **wrong)


def test_check_next_is_for_those_who_keep_a_registry():
    chain = Chain(A)
    good = sign_record(next_record(chain.newest, add=publics(B)), A)
    assert check_next(chain.newest, good).digest == good.digest
    for wrong in (
        sign_record(good.record, B),
        chain.items[0],
        sign_record(dataclasses.replace(good.record, prev="0" * 64), A),
        sign_record(dataclasses.replace(good.record, seq=3), A),
        sign_record(dataclasses.replace(good.record, recovery=True, keys=(C.public,)), C, OPERATOR),
        Chain(A, name="zlib").items[0],
    ):
        with pytest.raises(TrustError):
            check_next(chain.newest, wrong)
