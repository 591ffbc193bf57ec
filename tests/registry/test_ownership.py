import dataclasses
import itertools
import json

import pytest
from ownerkit import NAME, OPERATOR, THIEF, A, B, C, Chain, ids, publics
from packagekit import package

from visget.errors import FormatError, RegistryError, TrustError
from visget.format.owner import first_record
from visget.format.owner_chain import Role, next_record
from visget.format.package import verify_package
from visget.format.signing import sign_package
from visget.format.strictjson import dumps
from visget.registry.ownership import Change, owner_of, propose

OLD, NEW = package(version="1.0"), package(version="1.1")
OPERATORS = Role(keys=(OPERATOR.public,), threshold=1)


def change(chain, signers=(A,), envelopes=None, disowned=(), **wish):
    made = envelopes if envelopes is not None else [sign_package(item, *signers) for item in (OLD, NEW)]
    return propose(chain.newest, next_record(chain.newest, **wish), made, disowned)


def test_a_rotation_signs_what_was_published_anew():
    chain = Chain(A)
    proposed = change(chain, add=publics(B), remove=publics(A))
    assert len(proposed.packages) == 2
    gap = proposed.missing(chain.newest)
    assert (gap.old, gap.new, gap.packages, ids(gap.waiting)) == (1, 1, 2, ids(publics(A, B)))
    once = proposed.signed_with(chain.newest, A)
    gap = once.missing(chain.newest)
    assert (gap.old, gap.new, gap.packages, gap.waiting) == (0, 1, 2, (B.public,))
    with pytest.raises(TrustError):
        once.check(chain.newest)
    # It travels as a file, to somebody who has only the other key.
    done = Change.parse(once.encode()).signed_with(chain.newest, B)
    assert done.missing(chain.newest).nothing
    after = done.check(chain.newest)
    assert (after.seq, after.keys) == (2, (B.public,))
    for item in (OLD, NEW):
        assert verify_package(item, done.files()[item.digest], after.keys).signers == (B.public.id,)


def test_who_joins_has_nothing_to_sign():
    chain = Chain(A)
    proposed = change(chain, add=publics(B)).signed_with(chain.newest, A)
    assert proposed.packages == ()
    assert proposed.missing(chain.newest).nothing
    assert ids(proposed.check(chain.newest).keys) == ids(publics(A, B))


def test_a_higher_threshold_needs_all_of_them_on_everything():
    chain = Chain(A).change(A, add=publics(B))
    proposed = change(chain, threshold=2).signed_with(chain.newest, A)
    assert len(proposed.packages) == 2
    assert (proposed.missing(chain.newest).new, proposed.missing(chain.newest).packages) == (1, 2)
    done = proposed.signed_with(chain.newest, B)
    after = done.check(chain.newest)
    assert verify_package(OLD, done.files()[OLD.digest], after.keys, threshold=2)


def test_what_a_thief_published_is_disowned():
    chain = Chain(A).change(A, add=publics(B))
    proposed = change(chain, remove=publics(A), disowned=("1.1",)).signed_with(chain.newest, B)
    assert list(proposed.files()) == [OLD.digest]
    proposed.check(chain.newest)


def test_what_nobody_could_verify_stays_as_it_is():
    chain = Chain(A)
    proposed = change(chain, signers=(THIEF,), add=publics(B), remove=publics(A))
    assert proposed.packages == ()


@pytest.mark.parametrize("signer", [THIEF, C])
def test_row_10_a_change_cannot_smuggle_a_package_past_its_owner(signer):
    chain = Chain(A)
    honest = change(chain, add=publics(B), remove=publics(A))
    evil = package(version="6.6.6", filling=b"evil")
    forged = sign_package(evil, signer)
    smuggled = propose(Chain(signer).newest, honest.record.record, [forged]).packages
    assert len(smuggled) == 1
    bad = dataclasses.replace(honest, packages=(*honest.packages, *smuggled))
    with pytest.raises(TrustError, match=r"6\.6\.6, which its present owner has not signed"):
        bad.signed_with(chain.newest, B)
    with pytest.raises(TrustError):
        bad.check(chain.newest)
    foreign = propose(chain.newest, honest.record.record, [sign_package(package("zlib"), A)]).packages
    with pytest.raises(TrustError, match="another package"):
        dataclasses.replace(honest, packages=foreign).signed_with(chain.newest, B)


def test_row_10_strangers_and_stale_changes_are_refused():
    chain = Chain(A)
    proposed = change(chain, add=publics(B))
    with pytest.raises(TrustError, match="neither owns"):
        proposed.signed_with(chain.newest, THIEF)
    with pytest.raises(TrustError, match="neither owns"):
        proposed.signed_with(chain.newest, OPERATOR, operators=OPERATORS)  # not a recovery
    moved = chain.copy().change(A, add=publics(C))
    for call in (lambda: proposed.signed_with(moved.newest, A), lambda: proposed.check(moved.newest)):
        with pytest.raises(TrustError):
            call()


def test_row_10_operators_recover_a_name_and_its_packages():
    chain = Chain(A)
    wish = {"add": publics(C), "revoke": [(A.public, "lost")], "recovery": True}
    proposed = change(chain, **wish).signed_with(chain.newest, C, OPERATOR, operators=OPERATORS)
    assert proposed.missing(chain.newest, OPERATORS).nothing
    assert proposed.missing(chain.newest).old == 1
    with pytest.raises(TrustError):
        proposed.check(chain.newest)
    after = proposed.check(chain.newest, OPERATORS)
    assert after.recovered
    assert verify_package(OLD, proposed.files()[OLD.digest], after.keys)


def test_signatures_that_count_no_more_do_not_pile_up():
    chain, keys = Chain(A), [A, B] * 12
    files = [sign_package(OLD, A)]
    for old, new in itertools.pairwise(keys):
        proposed = change(chain, envelopes=files, add=publics(new), remove=publics(old))
        done = proposed.signed_with(chain.newest, old, new)
        chain.items.append(done.record)
        files = list(done.files().values())
    assert len(json.loads(files[0])["signatures"]) == 1
    assert chain.follow().seq == 24


def test_the_file_is_strict():
    good = json.loads(change(Chain(A), add=publics(B), remove=publics(A)).encode())
    for bad in (good | {"format": "x"}, good | {"more": 1}, good | {"packages": {}}, good | {"record": {}}):
        with pytest.raises(FormatError):
            Change.parse(dumps(bad))
    with pytest.raises(FormatError, match="second time"):
        twice = json.loads(change(Chain(A), add=publics(B)).signed_with(Chain(A).newest, A).encode())
        twice["record"]["signatures"] *= 2
        Change.parse(dumps(twice))


def test_a_free_name_needs_a_claim():
    with pytest.raises(RegistryError, match="belongs to nobody"):
        owner_of(NAME, [])
    first = first_record(NAME, A).encode()
    state, claim = owner_of(NAME, [], first)
    assert (state.keys, claim) == ((A.public,), first)
    state, claim = owner_of(NAME, Chain(B).files, first)
    assert (state.keys, claim) == ((B.public,), None)
    for wrong in (Chain(A, name="zlib").files[0], Chain(A).change(A, add=publics(B)).files[1]):
        with pytest.raises(TrustError):
            owner_of(NAME, [], wrong)
