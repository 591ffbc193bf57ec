"""A registry directory in the hands of somebody who has all its keys: online, targets and root.

What the attacker publishes is properly signed registry metadata, so that nothing but the owner chain stands in the
way. Row 40 and the lockfile's part of row 24 are here too.
"""

from pathlib import Path

import pytest
from ownerkit import NAME, THIEF, A, B, C, Chain, publics
from ownershop import seize, sell, settings_in, shop
from packagekit import package
from registrykit import edit_index

from visget.cache.store import Store
from visget.errors import NotFoundError, RegistryError, TrustError, UsageError
from visget.format.keyfile import read_key
from visget.format.signing import sign_package
from visget.names import Requirement
from visget.obtain import obtain
from visget.registries import reading
from visget.registry.directory import publish
from visget.registry.operator import sibling
from visget.registry.owner_files import change_owner
from visget.registry.ownership import propose
from visget.registry.tuf_names import metadata_path
from visget.trusting import accept, pin, pins_of

OLD, NEW = package(version="1.0"), package(version="1.1")
EVIL = package(version="6.6.6", filling=b"evil")
CHANGED = package(version="1.0", filling=b"changed")


class User:
    def __init__(self, directory: Path, root: Path, **options) -> None:
        self.settings = settings_in(directory, registry=str(root), **options)
        self.store = Store.open(self.settings.home)

    def install(self, text=NAME, **options):
        return obtain(Requirement.parse(text), settings=self.settings, **options)

    @property
    def pins(self):
        return pins_of(self.settings).all()

    def refuses(self, rule=None, text=NAME, **options) -> TrustError:
        """Nothing is accepted, stored or remembered."""
        before = self.pins
        with pytest.raises(TrustError) as caught:
            self.install(text, **options)
        assert self.pins == before
        for item in (EVIL, CHANGED):
            assert self.store.package(item.digest) is None
        if rule is not None:
            assert caught.value.details["rule"] == rule, caught.value.message
        return caught.value


@pytest.fixture
def root(tmp_path):
    root = shop(tmp_path / "registry")
    sell(root, OLD, A)
    sell(root, NEW, A)
    return root


@pytest.fixture
def victim(tmp_path, root):
    """Somebody who has installed the package before."""
    user = User(tmp_path / "victim", root)
    found = user.install()
    assert (found.first_use, str(found.verified.package.manifest.version)) == (True, "1.1")
    assert user.install().first_use is False
    return user


def honest(*keys):
    return [(OLD, sign_package(OLD, *keys)), (NEW, sign_package(NEW, *keys))]


def operators(root):
    return read_key(sibling(root) / "targets.key")


# ---- what a registry with all its keys cannot do -------------------------------------------------------------


@pytest.mark.parametrize("item", [EVIL, CHANGED], ids=["added", "changed"])
@pytest.mark.parametrize("signer", ["nobody", "thief", "operators"])
def test_row_10_it_cannot_add_or_change_a_version(root, victim, item, signer):
    keys = {"nobody": [], "thief": [THIEF], "operators": [operators(root)]}[signer]
    seize(root, Chain(A).files, [(item, sign_package(item, *keys)), honest(A)[1]])
    victim.refuses(text=f"{NAME}=={item.manifest.version}")


def test_row_10_it_cannot_pass_one_version_off_as_another(root, victim):
    seize(root, Chain(A).files, [(EVIL, sign_package(OLD, A))])
    assert "not about this package" in victim.refuses().message


@pytest.mark.parametrize("attack", ["anew", "append", "recovery", "rollback", "none"])
def test_row_10_it_cannot_change_keys(root, victim, attack):
    chain = Chain(A)
    boss = operators(root)
    evil = [(EVIL, sign_package(EVIL, THIEF))]
    if attack == "anew":
        seize(root, Chain(THIEF).files, evil)
        assert "visget trust forget" in victim.refuses("fork").hint
    elif attack == "append":
        seize(root, chain.change(THIEF, boss, add=publics(THIEF)).files, evil)
        victim.refuses("unsigned by old")
    elif attack == "recovery":
        chain.change(THIEF, boss, add=publics(THIEF), remove=publics(A), recovery=True)
        seize(root, chain.files, evil)
        error = victim.refuses("recovery")
        assert f"visget trust accept {NAME} {THIEF.public.id}" in error.hint
    elif attack == "rollback":
        seize(root, chain.change(A, add=publics(B)).files, honest(A))
        victim.install()
        seize(root, Chain(A).files, honest(A))
        victim.refuses("rollback")
    else:
        seize(root, [], evil)
        victim.refuses("none")


def test_row_10_a_revoked_key_publishes_in_vain(root, victim):
    chain = Chain(A).change(A, add=publics(B)).change(B, revoke=[(A.public, "stolen")])
    seize(root, chain.files, honest(B))
    assert victim.install().verified.signers == (B.public.id,)
    seize(root, chain.files, [(EVIL, sign_package(EVIL, A)), *honest(B)])
    victim.refuses(text=f"{NAME}==6.6.6")


def test_row_08_a_threshold_of_two(root, victim):
    chain = Chain(A).change(A, B, add=publics(B), threshold=2)
    seize(root, chain.files, honest(A, B))
    assert victim.install().threshold == 2
    for keys in ((A,), (B,), (A, THIEF), ()):
        seize(root, chain.files, [(EVIL, sign_package(EVIL, *keys)), *honest(A, B)])
        victim.refuses(text=f"{NAME}==6.6.6")


# ---- what it can do ------------------------------------------------------------------------------------------


def test_row_10_it_can_hide_versions_and_stop(root, victim):
    seize(root, Chain(A).files, honest(A)[:1])
    assert str(victim.install().verified.package.manifest.version) == "1.0"
    edit_index(root, NAME, lambda index: index.update(versions=[]))
    with pytest.raises(NotFoundError, match="no published version"):
        victim.install()
    (root / metadata_path("timestamp", None)).unlink()
    with pytest.raises((RegistryError, TrustError)):
        victim.install()


def test_row_10_it_can_tell_new_users_anything(root, tmp_path):
    seize(root, Chain(THIEF).files, [(EVIL, sign_package(EVIL, THIEF))])
    assert User(tmp_path / "new", root).install().verified.signers == (THIEF.public.id,)


# ---- what the user can do ------------------------------------------------------------------------------------


def test_row_10_a_recovery_is_accepted_by_the_user_only(root, victim):
    chain = Chain(A).change(C, operators(root), add=publics(C), revoke=[(A.public, "lost")], recovery=True)
    seize(root, chain.files, honest(C))
    victim.refuses("recovery")
    with reading(victim.settings, None) as source:
        for wrong in (THIEF, A):
            with pytest.raises(TrustError):
                accept(source, NAME, wrong.public, settings=victim.settings)
        before, after = accept(source, NAME, C.public, settings=victim.settings)
    assert (before.keys, after.keys, after.how) == ((A.public,), (C.public,), "accepted")
    assert victim.install().verified.signers == (C.public.id,)
    with reading(victim.settings, None) as source, pytest.raises(UsageError, match="no recovery"):
        accept(source, NAME, C.public, settings=victim.settings)


def test_row_40_the_policy_pinned_refuses_a_first_use(root, tmp_path):
    user = User(tmp_path / "strict", root, trust_policy="pinned")
    error = user.refuses("unpinned")
    assert f"visget trust pin {NAME} KEY-ID" in error.hint
    with reading(user.settings, None) as source:
        pin(source, NAME, A.public, settings=user.settings)
    assert user.install().first_use is False
    (names,) = user.pins.values()
    assert (names[NAME].record.seq, names[NAME].how) == (1, "named")
    seize(root, Chain(THIEF).files, [(EVIL, sign_package(EVIL, THIEF))])
    user.refuses("fork")


def test_row_40_a_key_named_before_the_first_installation(root, tmp_path):
    strict = User(tmp_path / "strict", root, trust_policy="pinned")
    assert strict.install(trust=A.public.id).first_use is False
    other = User(tmp_path / "other", root)
    other.refuses("anchor", trust=B.public.id)
    seize(root, Chain(THIEF).files, [(EVIL, sign_package(EVIL, THIEF))])
    for user in (strict, other):
        user.refuses(trust=A.public.id)


def test_row_40_an_owner_change_with_and_without_a_lockfile(root, tmp_path, victim):
    """A lockfile names the owner's key: on a machine that remembers nothing it does what the pin does elsewhere."""
    fresh = User(tmp_path / "ci", root)
    chain = Chain(A).change(A, C, add=publics(C), remove=publics(A))
    seize(root, chain.files, honest(C))
    for user, options in ((victim, {}), (fresh, {"trust": A.public.id})):
        found = user.install(**options)
        assert (found.verified.signers, found.first_use) == ((C.public.id,), False)
    seize(root, Chain(THIEF).files, [(EVIL, sign_package(EVIL, THIEF))])
    another = User(tmp_path / "ci2", root)
    victim.refuses("rollback")
    fresh.refuses("rollback", trust=A.public.id)
    seize(root, Chain(THIEF).change(THIEF, threshold=1).files, [(EVIL, sign_package(EVIL, THIEF))])
    victim.refuses("fork")
    fresh.refuses("fork", trust=A.public.id)
    another.refuses("anchor", trust=A.public.id)
    another.refuses("anchor", trust=C.public.id)


# ---- the honest side -----------------------------------------------------------------------------------------


def test_a_change_of_owner_reaches_everybody(root, victim, tmp_path):
    chain = Chain(A)
    record = Chain(A).change(A, B, add=publics(B), remove=publics(A)).items[1].record
    change = propose(chain.newest, record, [data for _, data in honest(A)]).signed_with(chain.newest, A, B)
    assert change_owner(root, change).keys == (B.public,)
    assert change_owner(root, change).keys == (B.public,)  # the answer was lost, and it is sent again
    assert victim.install().verified.signers == (B.public.id,)
    assert User(tmp_path / "new", root).install(f"{NAME}==1.0").verified.signers == (B.public.id,)
    with pytest.raises(TrustError, match="belongs to another key"):
        sell(root, package(version="1.2"), A)
    sell(root, package(version="1.2"), B)


def test_row_10_the_registry_itself_refuses_what_clients_would(root):
    chain = Chain(A)
    for signers in ((B,), (A,), (THIEF, B)):
        item = Chain(A).change(*signers, add=publics(B), remove=publics(A)).items[1]
        change = propose(chain.newest, item.record, [])
        change = type(change)(record=item, packages=())
        with pytest.raises(TrustError):
            change_owner(root, change)
    with pytest.raises(RegistryError, match="belongs to nobody"):
        publish(root, package("zlib"), sign_package(package("zlib"), A))
    for wrong in (Chain(THIEF, name="zlib").files[0], Chain(A).files[0]):
        with pytest.raises(TrustError):
            publish(root, package("zlib"), sign_package(package("zlib"), A), claim=wrong)
