"""Row 16: many installers, two versions, garbage collection and loading, all at the same moment: one compilation for
each artifact, and no error anywhere.

Racers on the store alone are tests/cache/test_race.py and tests/cache/test_trim.py; publishers are
tests/e2e/test_bad_moments.py. Here whole commands and programs race.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from badkit import Place, publish_tiny, write_project
from storeuser import StoreUser

from visget.cache.environment import Environment


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """tiny 1.0 and 2.0 in a registry."""
    place = publish_tiny(tmp_path_factory.mktemp("races") / "place")
    project = write_project(place.root / "second", version="2.0")
    assert place.run("build", project).code == 0
    assert place.run("publish", project / "dist" / "tiny-2.0.vis").code == 0
    return place


@pytest.fixture
def user(published, tmp_path):
    return Place(root=tmp_path, variables={"VISGET_REGISTRY": str(published.registry)})


@pytest.mark.parametrize("count", [6, pytest.param(24, marks=pytest.mark.long)])
def test_installers_of_two_versions(user, count):
    """A first use by all of them at once, too: each trusts the registry and the owner, and all the same."""
    children = [user.spawn("install", f"tiny=={1 + number % 2}.0") for number in range(count)]
    outcomes = [(child, *child.communicate(timeout=300)) for child in children]
    assert [child.returncode for child, _, _ in outcomes] == [0] * count, outcomes
    said = "".join(out + err for _, out, err in outcomes)
    assert said.count("compiling tiny 1.0") <= 1
    assert said.count("compiling tiny 2.0") <= 1
    assert len(user.natives()) == 2
    assert [item["version"] for item in user.run("list", "--json").json["installed"]] == ["1.0", "2.0"]
    whole(user)


def whole(user):
    assert user.run("cache", "verify", "--json").json["damaged"] == []
    assert list((user.home / "quarantine").iterdir()) == []
    assert list((user.home / "tmp").iterdir()) == []
    assert not list(user.home.rglob("*.tmp"))


LOADER = """
import json, sys, time, visget
from visget.errors import NotFoundError
end, loads = time.time() + float(sys.argv[1]), 0
while time.time() < end:
    try:
        lib = visget.load("tiny")
    except NotFoundError:
        time.sleep(0.01)
        continue
    assert lib.tiny_add(2, 40) == 42 and lib.receipt["name"] == "tiny"
    loads += 1
print(json.dumps(loads))
"""
COMMANDS = """
import json, sys, time
from visget import api
from visget.errors import NotFoundError
from visget.wiring import store_of
from visget.config import read_settings
settings, end, rounds = read_settings(), time.time() + float(sys.argv[1]), 0
while time.time() < end:
    if sys.argv[2] == "gc":
        store_of(settings).gc(max_age=0)
        time.sleep(0.02)
    else:
        api.install(f"tiny=={sys.argv[2]}", settings=settings)
        try:
            api.uninstall(f"tiny=={sys.argv[2]}", settings=settings)
        except NotFoundError:
            pass
    rounds += 1
print(json.dumps(rounds))
"""


@pytest.mark.parametrize("seconds", [5.0, pytest.param(60.0, marks=pytest.mark.long)])
def test_gc_and_installing_and_loading(user, seconds):
    """Two installers install and uninstall, one collects what is not needed at that moment, two load what there is."""
    programs = [(COMMANDS, "1.0"), (COMMANDS, "2.0"), (COMMANDS, "gc"), (LOADER, ""), (LOADER, "")]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(seconds), word], env=user.environ, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for code, word in programs
    ]  # fmt: skip
    done = [(child.communicate(timeout=seconds + 240), child.returncode) for child in children]
    assert [code for _, code in done] == [0] * len(programs), done
    rounds = [json.loads(out) for (out, _), _ in done]
    assert min(rounds[:3]) >= 1, rounds
    assert user.run("install", "tiny").code == 0
    whole(user)


# ---- one home, two machines ----------------------------------------------------------------------------------

MACHINE = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import visget, visget.machine, visget.wiring
from visget.installer import install
identity = sys.argv[2]
visget.wiring.machine_id = lambda: identity
original, compiled = install.obtain_native, []
def counted(*args, **options):
    entry, fresh = original(*args, **options)
    compiled.append(fresh)
    return entry, fresh
install.obtain_native = counted
if sys.argv[3] == "other":
    # Another processor has another action key; as far as this machine can tell, one feature less.
    import dataclasses
    from visget.installer import detect, target
    host = detect.host_target()
    features = tuple("-" + f[1:] if f[1:] == "aes" else f for f in host.features)
    less = dataclasses.replace(host, features=features)
    for module in (detect, install, visget.wiring):
        module.host_target = lambda: less
print("ready", flush=True)
sys.stdin.readline()
for _ in range(3):
    assert visget.load("adder").adder_add(40, 2) == 42
print(len(compiled))
"""


def test_two_machines_that_share_a_home_race(tmp_path):
    """Each finds or compiles its own artifact, of several processes on one machine one compiles, and none is lost."""
    user = StoreUser(tmp_path)
    user.install()
    here = set(Environment(user.store).lookup("adder").natives)
    support = str(Path(sys.modules["storeuser"].__file__).parent)
    children = [
        subprocess.Popen([sys.executable, "-c", MACHINE, support, identity, kind], env=user.environ, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for identity, kind in [("a" * 16, "same"), ("b" * 16, "other")] * 2
    ]  # fmt: skip
    for child in children:
        assert child.stdout.readline() == "ready\n", child.communicate()
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    outcomes = [child.communicate(timeout=240) for child in children]
    assert [child.returncode for child in children] == [0] * 4, outcomes
    natives = Environment(user.store).lookup("adder").natives
    assert set(natives) == {*here, "a" * 16, "b" * 16}
    assert natives["a" * 16] != natives["b" * 16], "another processor, another artifact"
    user.store.gc(max_age=0)
    assert {entry.key for entry in user.store.natives()} == set(natives.values())
    assert user.store.check().damaged == ()
    assert user.quarantine() == []
    assert user.works()
