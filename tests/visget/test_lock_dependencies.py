"""Lock files and bundles of packages that need each other."""

import pytest
from depkit import KEY, base, middle, top
from e2ekit import User

from visget.format.owner import first_record
from visget.format.signing import sign_package
from visget.lockfile import LockError, in_order, needed_by, problems, read_lock
from visget.registry.directory import init_registry
from visget.registry.directory import publish as put


def sell(registry, *packages):
    for item in packages:
        put(registry, item, sign_package(item, KEY), claim=first_record(item.manifest.name, KEY).encode())


@pytest.fixture
def registry(tmp_path):
    root = init_registry(tmp_path / "registry")
    sell(root, base(), middle(), top())
    return root


@pytest.fixture
def user(tmp_path, registry):
    return User(tmp_path / "user", VISGET_REGISTRY=str(registry))


def versions(user):
    return {item.name: str(item.version) for item in read_lock(user.root / "visget.lock").packages}


def test_a_lock_file_holds_everything_that_is_needed(user, registry):
    user.visget("lock", "top")
    lock = read_lock(user.root / "visget.lock")
    assert versions(user) == {"base": "1.0", "middle": "1.0", "top": "1.0"}
    assert [str(one) for one in lock.package("top").dependencies] == ["base", "middle"]
    assert [str(one) for one in lock.package("middle").dependencies] == ["base<2,>=1"]
    assert [item.name for item in in_order(lock)] == ["base", "middle", "top"]
    assert problems(lock) == []
    user.visget("lock", "--check")
    sell(registry, base(factor=2, version="1.1"))
    assert "nothing changed" in user.visget("lock")
    user.visget("lock", "--upgrade")
    assert versions(user) == {"base": "1.1", "middle": "1.0", "top": "1.0"}


def test_sync_installs_exactly_that_in_order(user, registry):
    user.visget("lock", "top")
    sell(registry, base(factor=2, version="1.1"))
    found = user.json("sync", "--locked")["installed"]
    assert [(item["name"], item["version"]) for item in found] == [("base", "1.0"), ("middle", "1.0"), ("top", "1.0")]
    assert user.python("import visget; print(visget.load('top').top_sum(10))").stdout == "41\n"
    assert user.visget("tree").splitlines()[0] == "top 1.0"
    assert user.json("sync", "--frozen", "--offline")["installed"][0]["reused"]


def test_what_nothing_needs_any_more_goes(user):
    user.visget("lock", "top")
    path = user.root / "visget.lock"
    path.write_text(path.read_text().replace('requirements = [\n    "top",\n]', 'requirements = [\n    "middle",\n]'))
    assert "top 1.0 is locked, and nothing wants it" in user.finished("lock", "--check", code=7).stderr
    user.visget("lock")
    assert versions(user) == {"base": "1.0", "middle": "1.0"}


def test_a_requirement_of_ones_own_and_of_a_package_have_to_agree(user, registry):
    sell(registry, base(factor=5, version="2.0"))
    user.visget("lock", "base==1.0", "middle")
    assert versions(user) == {"base": "1.0", "middle": "1.0"}
    done = user.finished("lock", "base>=2", code=8)
    assert "you ask for base>=2" in done.stderr
    assert "middle 1.0 needs base<2,>=1" in done.stderr
    assert versions(user) == {"base": "1.0", "middle": "1.0"}


def test_a_file_that_was_made_to_lack_what_is_needed_is_out_of_date(user):
    user.visget("lock", "middle")
    path = user.root / "visget.lock"
    blocks = path.read_text().split("[[package]]")
    path.write_text("[[package]]".join(block for block in blocks if '"base"' not in block))
    done = user.finished("sync", "--locked", code=7)
    assert "base<2,>=1 is wanted by middle 1.0, and base is not locked" in done.stderr
    user.finished("sync", "--frozen", code=7)
    lock = read_lock(path)
    with pytest.raises(LockError):
        in_order(lock)
    assert [item.name for item in needed_by(lock, ["middle"])] == ["middle"]
    user.visget("sync")
    assert versions(user) == {"base": "1.0", "middle": "1.0"}


def test_a_file_that_hides_what_a_package_needs_is_refused(user):
    user.visget("lock", "middle")
    path = user.root / "visget.lock"
    text = path.read_text()
    path.write_text(text.replace('dependencies = [\n    "base<2,>=1",\n]\n', ""))
    assert "nothing wants it" in user.finished("sync", "--locked", code=7).stderr
    blocks = path.read_text().split("[[package]]")
    path.write_text("[[package]]".join(block for block in blocks if '"base"' not in block))
    assert "middle 1.0 needs base, which the lock file does not say" in user.finished("sync", "--locked", code=7).stderr


def test_a_bundle_holds_everything_that_is_needed(user, tmp_path):
    user.visget("bundle", "top", "-o", tmp_path / "bundle")
    alone = User(tmp_path / "alone")
    alone.visget("install", "top", "--registry", tmp_path / "bundle", "--offline")
    assert alone.python("import visget; print(visget.load('top').top_sum(10))").stdout == "41\n"
    user.visget("lock", "top")
    user.visget("bundle", "--file", user.root / "visget.lock", "middle", "-o", tmp_path / "half")
    other = User(tmp_path / "other")
    words = ["--file", tmp_path / "half" / "visget.lock", "--registry", tmp_path / "half", "--offline"]
    found = other.json("sync", "--frozen", *words)["installed"]
    assert [item["name"] for item in found] == ["base", "middle"]


def test_row_24_a_dependency_from_another_registry_has_to_be_asked_for(user, registry, tmp_path):
    """What a registry lacks is never taken from another one, unless the user says that it is from there."""
    private = init_registry(tmp_path / "private")
    sell(private, middle())
    done = user.finished("install", "middle", "--registry", private, code=8)
    assert "middle 1.0 needs base<2,>=1, and there is no package base in that registry" in done.stderr
    assert "visget lock base --registry WHERE" in done.stderr
    user.visget("lock", "middle", "--registry", private, code=8)
    user.visget("lock", "base", "--registry", registry)
    user.visget("lock", "middle", "--registry", private)
    lock = read_lock(user.root / "visget.lock")
    assert {item.name: lock.registry(item).location for item in lock.packages} == {
        "base": str(registry), "middle": str(private)
    }  # fmt: skip
    user.visget("sync", "--locked")
    assert user.python("import visget; print(visget.load('middle').middle_scale(20))").stdout == "41\n"
