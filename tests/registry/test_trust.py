import pytest
from packagekit import key

from visget.errors import TrustError
from visget.registry.trust import accepted_keys

A, B, C = (key(name).public for name in "abc")


def test_on_first_use_the_registry_is_believed_and_its_owners_become_the_pin():
    found = accepted_keys("x", [A, B])
    assert (found.keys, found.new_pin, found.first_use) == ((A, B), (A, B), True)


def test_a_pin_decides_from_then_on():
    found = accepted_keys("x", [A], [A])
    assert (found.keys, found.new_pin, found.first_use) == ((A,), None, False)


def test_a_key_that_only_the_registry_added_is_not_accepted():
    assert accepted_keys("x", [A, B], [A]).keys == (A,)


def test_a_pinned_key_that_the_owner_gave_up_is_not_accepted():
    assert accepted_keys("x", [A, C], [A, B]).keys == (A,)


def test_another_owner_stops_and_says_what_to_do():
    with pytest.raises(TrustError, match="the owner of x has changed") as caught:
        accepted_keys("x", [B], [A])
    assert A.id in caught.value.message
    assert f"--trust {B.id}" in caught.value.hint
    assert caught.value.details == {"pinned": [A.id], "owners": [B.id]}


def test_no_owner_stops():
    with pytest.raises(TrustError, match="names no owner"):
        accepted_keys("x", [], [A])


@pytest.mark.parametrize(("owners", "pinned"), [([A], []), ([A], [A]), ([], []), ([A], [C])])
def test_the_key_that_the_user_names_is_the_only_one(owners, pinned):
    found = accepted_keys("x", owners, pinned, B.id)
    assert (found.keys, found.new_pin, found.first_use) == ((B,), (B,), False)


def test_naming_the_pinned_key_changes_nothing():
    assert accepted_keys("x", [A], [B], B.id).new_pin is None


@pytest.mark.parametrize("text", ["", "vk1", A.id[:-1], A.id.upper(), A.raw.hex()])
def test_what_is_no_key_id_is_refused(text):
    with pytest.raises(TrustError, match="is not the id of a key"):
        accepted_keys("x", [A], [], text)
