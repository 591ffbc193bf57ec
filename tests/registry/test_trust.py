import pytest
from ownerkit import NAME, OPERATOR, THIEF, A, B, C, Chain, publics

from visget.errors import TrustError
from visget.format.owner_chain import Role
from visget.registry.trust import Pin, decide, pin_by_key

OPERATORS = Role(keys=(OPERATOR.public,), threshold=1)


def pin_of(chain, how="first use"):
    return Pin(keys=chain.newest.keys, record=chain.pin, how=how)


def named(*keys):
    return Pin(keys=tuple(publics(*keys)), record=None, how="named")


def decided(chain, **options):
    return decide(NAME, chain.files, **options)


def refused(rule, call):
    with pytest.raises(TrustError) as caught:
        call()
    assert caught.value.details["rule"] == rule, caught.value.message
    return caught.value


def test_row_40_on_first_use_the_registry_is_believed_and_remembered():
    chain = Chain(A)
    found = decided(chain)
    assert (found.keys, found.threshold, found.first_use) == ((A.public,), 1, True)
    assert found.pin == pin_of(chain)


def test_row_40_the_policy_pinned_believes_nobody():
    error = refused("unpinned", lambda: decided(Chain(A), policy="pinned"))
    assert f"visget trust pin {NAME} KEY-ID" in error.hint
    assert decided(Chain(A), policy="pinned", pin=named(A)).first_use is False
    assert decided(Chain(A), policy="pinned", pin=pin_of(Chain(A))).pin == pin_of(Chain(A))
    assert decided(Chain(A), policy="pinned", required=A.public.id).first_use is False


def test_a_pin_moves_on_with_the_chain():
    chain = Chain(A).change(A, B, add=publics(B), remove=publics(A))
    found = decided(chain, pin=pin_of(chain.copy(1)))
    assert (found.keys, found.pin, found.first_use) == ((B.public,), pin_of(chain), False)
    assert decided(chain, pin=pin_of(chain)).pin == pin_of(chain)


def test_row_40_another_owner_stops_with_a_pin_and_with_a_key_from_a_lockfile():
    taken = Chain(THIEF)
    refused("fork", lambda: decided(taken, pin=pin_of(Chain(A))))
    refused("anchor", lambda: decided(taken, pin=named(A)))
    refused("anchor", lambda: decided(taken, required=A.public.id))
    # Naming the thief's key does not take the pin away: that is a step of its own.
    refused("fork", lambda: decided(taken, pin=pin_of(Chain(A)), required=THIEF.public.id))
    refused("anchor", lambda: decided(taken, pin=named(A), required=THIEF.public.id))


def test_row_24_the_key_of_a_lockfile_outlives_a_rotation_but_not_a_stranger():
    chain = Chain(A).change(A, B, add=publics(B), remove=publics(A))
    assert decided(chain, required=A.public.id).keys == (B.public,)
    assert decided(chain, required=A.public.id).pin == pin_of(chain, "named")
    assert decided(chain, required=B.public.id, pin=pin_of(chain.copy(1))).keys == (B.public,)
    refused("anchor", lambda: decided(chain, required=C.public.id))
    refused("anchor", lambda: decided(chain, required=C.public.id, pin=pin_of(chain)))


def test_row_10_a_revoked_key_is_refused_also_when_the_user_names_it():
    chain = Chain(A, B).change(B, revoke=[(A.public, "stolen")])
    error = refused("revoked", lambda: decided(chain, required=A.public.id))
    assert "stolen" in error.message
    assert decided(chain, required=B.public.id).keys == (B.public,)


def test_row_10_a_recovery_waits_for_the_user():
    chain = Chain(A).change(C, OPERATOR, add=publics(C), remove=publics(A), recovery=True)
    for pin in (pin_of(chain.copy(1)), named(A)):
        refused("recovery", lambda pin=pin: decided(chain, pin=pin, operators=OPERATORS))
        found = decided(chain, pin=pin, operators=OPERATORS, accepted=publics(C))
        assert (found.keys, found.pin) == ((C.public,), pin_of(chain, "accepted"))
    refused("recovery", lambda: decided(chain, required=A.public.id, operators=OPERATORS))
    refused("unsigned by operators", lambda: decided(chain, pin=pin_of(chain.copy(1)), accepted=publics(C)))


@pytest.mark.parametrize("text", ["", "vk1", A.public.id[:-1], A.public.id.upper(), A.public.raw.hex()])
def test_what_is_no_key_id_is_refused(text):
    with pytest.raises(TrustError, match="is not the id of a key"):
        decided(Chain(A), required=text)


def test_a_user_pins_by_key():
    assert pin_by_key(NAME, A.public, None) == named(A)
    assert pin_by_key(NAME, B.public, named(A)) == named(B)
    held = pin_of(Chain(A))
    assert pin_by_key(NAME, A.public, held) == Pin(keys=held.keys, record=held.record, how="named")
    error = refused("anchor", lambda: pin_by_key(NAME, B.public, held))
    assert f"visget trust forget {NAME}" in error.hint
