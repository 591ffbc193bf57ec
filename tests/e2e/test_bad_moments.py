"""Bad moments: kills, races, full and read-only disks, and a store that somebody has tampered with.

Invariant under test: whatever happens, an artifact is complete or absent, the next run heals, and nothing outside
the store is touched. The store's own tests kill it at every call; here whole commands die, workers included.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from badkit import Outcome, Place, flipped, left_alive, overwrite, publish_tiny, snapshot, write_project
from packagekit import claim
from registrykit import stored
from workerkit import KEY, TEXT, sample

from visget import api
from visget.config import read_settings
from visget.errors import (
    EXIT_FAILED,
    EXIT_NOT_FOUND,
    EXIT_REFUSED,
    EXIT_TRUST,
    EXIT_UNSUPPORTED,
    CacheError,
)
from visget.format.module import bitcode_of, parse_text
from visget.format.signing import sign_package
from visget.registry.directory import init_registry
from visget.registry.directory import publish as put

ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    """tiny 1.0 in a registry, and tiny 2.0 built; the tests only read."""
    place = publish_tiny(tmp_path_factory.mktemp("moments"))
    project = write_project(place.root / "second", version="2.0")
    assert place.run("build", project).code == 0
    return place


@pytest.fixture
def user(tmp_path, published) -> Place:
    """A new user who knows the registry."""
    return Place(root=tmp_path, variables={"VISGET_REGISTRY": str(published.registry)})


@pytest.fixture(scope="module")
def template(published) -> Path:
    """A store in which tiny is installed."""
    outcome = published.run("install", "tiny")
    assert outcome.code == 0, outcome
    return published.home


@pytest.fixture
def installed(user, template) -> Place:
    """A user who has installed tiny."""
    shutil.copytree(template, user.home)
    return user


def healthy(place: Place) -> None:
    """The store is whole, nothing was left in it, and tiny works."""
    assert place.run("cache", "verify", "--json").json["damaged"] == []
    assert list((place.home / "tmp").iterdir()) == []
    assert leftovers(place) == []
    assert works(place)


def leftovers(place: Place) -> list[str]:
    """What a killed process began to write."""
    return [str(path) for path in place.home.rglob("*.tmp")]


def works(place: Place) -> bool:
    """Call the installed function in a process of its own."""
    code = "import visget; print(visget.load('tiny').tiny_add(2, 40))"
    done = subprocess.run([sys.executable, "-c", code], env=place.environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout == "42\n"


# ---- several at once -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [8, pytest.param(24, marks=pytest.mark.long)])
def test_installs_at_the_same_moment_compile_once(count, user):
    children = [user.spawn("install", "tiny") for _ in range(count)]
    outcomes = []
    for child in children:
        out, err = child.communicate(timeout=120)
        outcomes.append(Outcome(code=child.returncode, out=out, err=err))
    assert [outcome.code for outcome in outcomes] == [0] * count, outcomes
    compiled = [outcome for outcome in outcomes if "compiling tiny 1.0" in outcome.text]
    assert len(compiled) == 1
    assert len(user.natives()) == 1
    assert list((user.home / "quarantine").iterdir()) == []
    assert len(user.run("list", "--json").json["installed"]) == 1
    healthy(user)


def test_two_versions_at_the_same_moment(user, tmp_path, published):
    shutil.copytree(published.registry, user.registry)
    shutil.copytree(published.config, user.root / "keys")
    both = user.with_env(VISGET_REGISTRY=str(user.registry), VISGET_CONFIG_DIR=str(user.root / "keys"))
    vis = published.root / "second" / "dist" / "tiny-2.0.vis"
    assert both.run("publish", vis, "--key", published.config / "keys" / "default.key").code == 0
    children = [both.spawn("install", f"tiny=={version}") for version in ("1.0", "2.0", "1.0", "2.0")]
    for child in children:
        assert child.wait(timeout=120) == 0
        child.communicate()
    assert [item["version"] for item in both.run("list", "--json").json["installed"]] == ["1.0", "2.0"]
    healthy(both)


# ---- kill -9 -------------------------------------------------------------------------------------------------


def killed(place: Place, seconds: float, *words: object) -> bool:
    """Kill the command after that time; say whether it was still running. Its workers must go with it."""
    child = place.spawn(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        child.wait(timeout=seconds)
        running = False
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        running = True
    child.wait(timeout=60)
    assert left_alive(child.pid) == []
    return running


def measured(place: Place, *words: object) -> float:
    begun = time.monotonic()
    assert place.process(*words).code == 0
    return time.monotonic() - begun


@pytest.mark.parametrize("moments", [12, pytest.param(120, marks=pytest.mark.long)])
def test_kill_during_install(moments, user, published, tmp_path):
    lasts = measured(user, "install", "tiny")
    hit = 0
    for number in range(moments):
        place = Place(root=tmp_path / str(number), variables=user.variables)
        place.root.mkdir()
        # From the moment Python has started to a little after the usual end.
        hit += killed(place, lasts * (0.15 + 0.95 * number / moments), "install", "tiny")
        if place.home.exists():
            report = place.run("cache", "verify", "--json")
            assert report.code == 0, report
            listed = place.run("list", "--json").json["installed"]
            assert [item["version"] for item in listed] in ([], ["1.0"])
        assert place.run("install", "tiny").code == 0
        assert list((place.home / "quarantine").iterdir()) == []
        assert len(place.natives()) == 1
        assert list((place.home / "tmp").iterdir()) == []
        assert leftovers(place) == []
        shutil.rmtree(place.root)
    assert hit >= moments // 2, "hardly any installation was hit"
    healthy(user)


@pytest.mark.parametrize("moments", [6, pytest.param(100, marks=pytest.mark.long)])
def test_kill_during_publish(moments, user, published, tmp_path):
    vis = published.root / "second" / "dist" / "tiny-2.0.vis"

    def publisher(name: str) -> Place:
        # What was signed last is remembered with the keys: each copy of the registry needs its own.
        place = Place(root=tmp_path / name)
        shutil.copytree(published.registry, place.registry)
        shutil.copytree(published.config, place.config)
        return place

    lasts = measured(publisher("first"), "publish", vis)
    hit = 0
    for number in range(moments):
        place = publisher(str(number))
        hit += killed(place, lasts * (0.3 + 0.75 * number / moments), "publish", vis)
        found = place.run("info", "tiny==1.0", "--json").json
        assert found["versions"] in (["1.0"], ["2.0", "1.0"])
        assert place.run("info", "tiny", "--json").json["version"] == found["versions"][0]
        assert [item["name"] for item in place.run("search", "--json").json["packages"]] == ["tiny"]
        assert place.run("publish", vis).code == 0
        assert place.run("info", "tiny", "--json").json["version"] == "2.0"
        assert (len(stored(place.registry, "vis")), len(stored(place.registry, "dsse"))) == (2, 2)
        assert not [path for path in place.registry.rglob("*") if path.suffix == ".tmp" or path.parent.name == ".new"]
        shutil.rmtree(place.root)
    # Most of the time goes into starting; every named moment is tests/negative/test_row_14_kill.py.
    assert hit


def test_kill_during_build(user, tmp_path):
    project = write_project(tmp_path / "project")
    lasts = measured(user, "build", project, "--output", tmp_path / "out")
    for number in range(4):
        output = tmp_path / f"out{number}"
        killed(user, lasts * (0.3 + 0.8 * number / 4), "build", project, "--output", output)
        for file in output.glob("*.vis"):
            assert user.run("check", file).code == 0


# ---- disks ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def mounted(directory: Path, options: str) -> Iterator[Callable[..., None]]:
    """Mount a tmpfs on `directory`, and give a function that mounts it again with other options."""
    if not ROOT:
        pytest.skip("mounting a file system needs root")
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "visget-test", str(directory)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        yield lambda change: subprocess.run(["mount", "-o", f"remount,{change}", str(directory)], check=True)
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


@pytest.mark.parametrize("kibibytes", [0, 8, 20, 36, 52, 70])
def test_a_full_disk(kibibytes, user, tmp_path):
    """The disk fills up at different stages; after some space was freed, the same command works."""
    with mounted(tmp_path / "disk", "size=1m,mode=700"):
        place = user.with_env(VISGET_HOME=str(tmp_path / "disk" / "home"))
        assert place.run("list").code == 0
        filler = tmp_path / "disk" / "filler"
        free = shutil.disk_usage(tmp_path / "disk").free - kibibytes * 1024
        filler.write_bytes(bytes(free))
        outcome = place.process("install", "tiny")
        if outcome.code:
            # Also when ld.lld, which writes through a mapping, is ended by SIGBUS.
            assert outcome.code == EXIT_UNSUPPORTED, outcome
            assert "no space left" in outcome.text
            assert "hint: free some space" in outcome.err
        if outcome.code:
            assert place.run("list", "--json").json == {"installed": []}
        home = tmp_path / "disk" / "home"
        assert list((home / "tmp").iterdir()) == []
        filler.unlink()
        assert place.run("cache", "verify").code == 0
        assert place.run("install", "tiny").code == 0
        assert works(place)
    if kibibytes < 12:
        assert outcome.code == EXIT_UNSUPPORTED


@pytest.mark.parametrize("blocks", [0, 1, 2, 3])
def test_a_limit_on_the_size_of_files(blocks, user):
    """Needs no root: every file may have so many KiB, so that something cannot be written."""
    command = f"ulimit -f {blocks}; exec {sys.executable} -m visget install tiny"
    assert user.run("list").code == 0
    done = subprocess.run(["bash", "-c", command], env=user.environ, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert done.returncode == EXIT_UNSUPPORTED, done
    assert "error: " in done.stderr
    assert user.run("list", "--json").json == {"installed": []}
    assert user.run("cache", "verify").code == 0
    assert user.run("install", "tiny").code == 0
    healthy(user)


@pytest.mark.parametrize("descriptors", [6, 8, 11, 16])
def test_too_few_descriptors(descriptors, user):
    command = f"ulimit -n {descriptors}; exec {sys.executable} -m visget install tiny"
    assert user.run("list").code == 0
    done = subprocess.run(["bash", "-c", command], env=user.environ, capture_output=True, text=True, timeout=60)
    if done.returncode:
        assert "Traceback" not in done.stderr, done.stderr
        assert "error: " in done.stderr
        assert user.run("list", "--json").json == {"installed": []}
    assert user.run("install", "tiny").code == 0
    healthy(user)


def test_a_read_only_disk(user, tmp_path):
    with mounted(tmp_path / "disk", "size=4m,mode=700") as remount:
        place = user.with_env(VISGET_HOME=str(tmp_path / "disk" / "home"))
        assert place.run("install", "tiny").code == 0
        before = snapshot(tmp_path / "disk")
        remount("ro")
        # What is installed can be used; nothing can be installed.
        assert works(place)
        for words in (("path", "tiny"), ("list",), ("pkg-config", "tiny")):
            assert place.run(*words).code == 0, words
        for words in (("install", "tiny", "--target", "baseline"), ("uninstall", "tiny"), ("use", "tiny==1.0")):
            outcome = place.run(*words)
            assert outcome.code == EXIT_UNSUPPORTED, (words, outcome)
            assert "Read-only file system" in outcome.text
            assert "VISGET_HOME" in outcome.err
        fresh = user.with_env(VISGET_HOME=str(tmp_path / "disk" / "other"))
        outcome = fresh.run("install", "tiny")
        assert outcome.code == EXIT_UNSUPPORTED
        assert "Read-only file system" in outcome.text
        assert snapshot(tmp_path / "disk") == before


def test_a_registry_on_a_read_only_disk(user, tmp_path, published):
    with mounted(tmp_path / "disk", "size=4m,mode=700") as remount:
        shutil.copytree(published.registry, tmp_path / "disk" / "registry")
        place = user.with_env(VISGET_REGISTRY=str(tmp_path / "disk" / "registry"))
        remount("ro")
        assert place.run("install", "tiny").code == 0, "reading needs no permission to write"
        key = published.config / "keys" / "default.key"
        outcome = place.run("publish", published.root / "second" / "dist" / "tiny-2.0.vis", "--key", key)
        assert outcome.code == 4
        assert "Read-only file system" in outcome.text
        assert "permission to write" in outcome.err


@pytest.mark.parametrize("room", ["", "packages", "packages/v1", "native/v1", "env", "locks", "tmp", "trust"])
def test_row_13_a_file_in_place_of_a_directory(room, user):
    assert user.run("list").code == 0
    path = user.home / room
    shutil.rmtree(path)
    path.write_text("in the way")
    outcome = user.run("install", "tiny")
    assert outcome.code == EXIT_TRUST
    assert str(path) in outcome.text
    assert "not a directory" in outcome.err
    assert "hint: " in outcome.err
    assert path.read_text() == "in the way"


# ---- a store that others can write ---------------------------------------------------------------------------


@pytest.mark.parametrize("room", ["", "native", "native/v1", "packages/v1", "env/v1", "trust", "tmp", "locks"])
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_row_13_a_store_that_others_can_write(room, mode, installed):
    (installed.home / room).chmod(mode)
    for words in (("install", "tiny"), ("path", "tiny"), ("list",)):
        outcome = installed.run(*words)
        assert outcome.code == EXIT_TRUST, words
        assert f"(mode {mode:04o})" in outcome.text
        assert "chmod go-w" in outcome.err
    (installed.home / room).chmod(0o700)
    assert works(installed)


@pytest.mark.skipif(not ROOT, reason="giving a directory away needs root")
def test_row_13_a_store_that_belongs_to_somebody_else(installed):
    os.chown(installed.home, 12345, 12345)
    try:
        outcome = installed.run("path", "tiny")
        assert outcome.code == EXIT_TRUST
        assert "belongs to user id 12345" in outcome.text
    finally:
        os.chown(installed.home, 0, 0)


# ---- things planted in the store -----------------------------------------------------------------------------

ROOMS = ["packages", "packages/v1", "native", "native/v1", "env", "env/v1", "locks", "tmp", "quarantine", "trust"]


@pytest.mark.parametrize("room", ROOMS)
def test_row_13_a_link_in_place_of_a_directory(room, user, tmp_path):
    assert user.run("list").code == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("mine")
    before = snapshot(elsewhere)
    shutil.rmtree(user.home / room)
    (user.home / room).symlink_to(elsewhere)
    outcome = user.run("install", "tiny")
    assert outcome.code == EXIT_TRUST
    assert "is a symbolic link" in outcome.text
    assert str(user.home / room) in outcome.err
    assert snapshot(elsewhere) == before


def _link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def _hard_link(path: Path, target: Path) -> None:
    path.hardlink_to(target if target.is_file() else target / "precious")


def _fifo(path: Path, target: Path) -> None:
    os.mkfifo(path)


def _dangling(path: Path, target: Path) -> None:
    path.symlink_to(target / "not-there")


@pytest.mark.parametrize("plant", [_link, _hard_link, _fifo, _dangling])
@pytest.mark.parametrize("what", ["package", "envelope", "native", "current", "pins", "lock", "native lock", "in tmp"])
def test_row_13_something_planted_where_a_file_belongs(what, plant, installed, tmp_path):
    """It is refused, or taken out of the way; it is never followed, and a fifo hangs nobody."""
    home = installed.home
    (key,) = installed.natives()
    places = {
        "package": next(home.glob("packages/v1/*/*.vis")),
        "envelope": next(home.glob("packages/v1/*/*.dsse")),
        "native": home / "native" / "v1" / key,
        "current": home / "env" / "v1" / "default" / "current.json",
        "pins": home / "trust" / "pins.json",
        "lock": home / "locks" / "store",
        "native lock": home / "locks" / f"native-{key}",
        "in tmp": home / "tmp" / "0123456789abcdef",
    }
    path = places[what]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("mine")
    before = snapshot(elsewhere)
    target = elsewhere if what in ("native", "in tmp") else elsewhere / "precious"
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    plant(path, target)
    outcome = installed.process("install", "tiny", "--target", "baseline" if what == "lock" else "host")
    assert outcome.code in (0, EXIT_TRUST), outcome
    assert outcome.text
    assert snapshot(elsewhere) == before
    if outcome.code == EXIT_TRUST:
        assert str(path) in outcome.err
        path.unlink()
        assert installed.run("install", "tiny").code == 0
    elif what not in ("lock", "native lock", "pins"):
        # Those three are not needed when nothing changes; whoever needs them next refuses or replaces them.
        assert not path.is_symlink()
        assert not path.is_fifo()
    assert works(installed)
    assert snapshot(elsewhere) == before


# ---- damage heals --------------------------------------------------------------------------------------------

FILES = ["receipt.json", "api.json", "entry.json", "lib/libtiny.so", "lib/libtiny.a", "include/tiny.h",
         "lib/pkgconfig/tiny.pc"]  # fmt: skip
DAMAGE: dict[str, Callable[[Path], object]] = {
    "flipped": lambda path: overwrite(path, flipped(path.read_bytes(), path.stat().st_size // 2)),
    "cut": lambda path: overwrite(path, path.read_bytes()[: path.stat().st_size // 2]),
    "zeroed": lambda path: overwrite(path, bytes(path.stat().st_size)),
    "gone": Path.unlink,
}


@pytest.mark.parametrize("file", FILES)
def test_damage_to_an_artifact_heals(file, installed):
    (key,) = installed.natives()
    entry = installed.home / "native" / "v1" / key
    good = snapshot(entry)
    for number, damage in enumerate(DAMAGE.values(), 1):
        damage(entry / file)
        if file == "lib/libtiny.so":
            assert works(installed), "load makes it again"
        else:
            assert installed.run("pkg-config", "tiny").code == 0
        again = snapshot(entry)
        assert set(again) == set(good)
        assert {path: facts for path, facts in again.items() if path not in ("receipt.json", "entry.json")} == {
            path: facts for path, facts in good.items() if path not in ("receipt.json", "entry.json")
        }
        assert len(list((installed.home / "quarantine").iterdir())) == number
    healthy(installed)


def test_a_stranger_in_an_artifact(installed):
    (key,) = installed.natives()
    (installed.home / "native" / "v1" / key / "lib" / "evil.so").write_bytes(b"\x7fELF")
    assert works(installed)
    assert not (installed.home / "native" / "v1" / key / "lib" / "evil.so").exists()


def test_verify_reports_damage_and_then_all_is_well(installed):
    (key,) = installed.natives()
    DAMAGE["flipped"](installed.home / "native" / "v1" / key / "lib" / "libtiny.so")
    outcome = installed.run("cache", "verify")
    assert outcome.code == EXIT_FAILED
    assert "lib/libtiny.so was changed" in outcome.out
    assert key in outcome.out
    assert installed.run("cache", "verify").code == 0
    healthy(installed)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("suffix", [".vis", ".dsse"])
def test_a_damaged_package_in_the_store_is_fetched_again(suffix, damage, installed):
    (path,) = installed.home.glob(f"packages/v1/*/*{suffix}")
    good = path.read_bytes()
    DAMAGE[damage](path)
    assert works(installed), "what is compiled does not need it"
    assert installed.run("install", "tiny").code == 0
    assert path.read_bytes() == good
    healthy(installed)


def test_everything_damaged_and_no_registry(user, published):
    """The precise error: what is broken, and the command that mends it once the registry is back."""
    shutil.copytree(published.registry, user.registry)
    place = user.with_env(VISGET_REGISTRY=str(user.registry))
    assert place.run("install", "tiny").code == 0
    (key,) = place.natives()
    (path,) = place.home.glob("packages/v1/*/*.vis")

    def damage() -> None:
        DAMAGE["flipped"](place.home / "native" / "v1" / key / "lib" / "libtiny.so")
        DAMAGE["zeroed"](path)

    damage()
    assert works(place), "it is fetched again from where it came from"
    damage()
    user.registry.rename(user.root / "away")
    with pytest.raises(CacheError, match=r"tiny 1\.0 is damaged in the store.*cannot be fetched") as caught:
        api.load("tiny", settings=read_settings(place.environ))
    assert caught.value.hint is not None
    outcome = place.run("path", "tiny")
    assert outcome.code == EXIT_UNSUPPORTED
    assert "there is no registry here" in outcome.text
    (user.root / "away").rename(user.registry)
    assert place.run("install", "tiny==1.0").code == 0
    healthy(place)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("document", ["env/v1/default/current.json", "trust/pins.json"])
def test_a_damaged_document_is_mended_from_its_copy(document, damage, installed):
    DAMAGE[damage](installed.home / document)
    assert [item["name"] for item in installed.run("list", "--json").json["installed"]] == ["tiny"]
    assert "first use" not in installed.run("install", "tiny").err, "the pin was not forgotten"
    assert works(installed)


def test_pins_that_are_lost_stop_everything(installed):
    for path in [installed.home / "trust" / "pins.json", *(installed.home / "trust" / "pins.d").iterdir()]:
        DAMAGE["zeroed"](path)
    outcome = installed.run("install", "tiny")
    assert outcome.code == EXIT_TRUST
    assert "the list of trusted keys is damaged" in outcome.text
    assert works(installed), "what is installed keeps working"


def test_a_loaded_library_survives_repair_upgrade_and_gc(installed):
    code = (
        "import sys, visget; lib = visget.load('tiny'); lib.tiny_add; print('ready', flush=True);"
        " sys.stdin.readline(); print(lib.tiny_add(2, 40))"
    )
    child = subprocess.Popen([sys.executable, "-c", code], env=installed.environ, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    (key,) = installed.natives()
    (installed.home / "native" / "v1" / key / "extra").write_text("")
    assert installed.run("cache", "verify").code == EXIT_FAILED
    assert installed.run("install", "tiny").code == 0
    assert installed.run("uninstall", "tiny").code == 0
    assert installed.run("cache", "gc", "--all").code == 0
    assert installed.natives() == []
    out, _ = child.communicate("go\n", timeout=60)
    assert out == "42\n"
    assert child.returncode == 0
    assert installed.run("path", "tiny").code == EXIT_NOT_FOUND


# ---- packages that no honest author builds -------------------------------------------------------------------


def text(*, add: str = "", replace: tuple[str, str] = ("\0", "\0")) -> str:
    assert replace[0] == "\0" or replace[0] in TEXT
    return TEXT.replace(*replace) + add


HOSTILE: dict[str, Callable[[], object]] = {
    "no bitcode at all": lambda: sample(bitcode=b"not bitcode!"),
    "text instead of bitcode": lambda: sample(bitcode=TEXT.encode().ljust(4000)),
    "empty": lambda: sample(bitcode=b"BC\xc0\xde"),
    "cut": lambda: sample(bitcode=bitcode_of(parse_text(TEXT))[:-400]),
    "trailing bytes": lambda: sample(bitcode=bitcode_of(parse_text(TEXT)) + bytes(8)),
    "wrapped": lambda: sample(bitcode=b"\xde\xc0\x17\x0b" + bytes(16) + bitcode_of(parse_text(TEXT))),
    "inline assembly": lambda: sample(text(replace=("%r =", 'call void asm sideeffect "int3", ""()\n  %r ='))),
    "assembly of a file": lambda: sample(
        text(replace=("declare double @pow", 'module asm ".globl canary"\n\ndeclare double @pow'))
    ),
    "undeclared import": lambda: sample(text(add="declare i32 @system(ptr)\ndefine i32 @x(ptr %p) {\n"
                                             "  %r = call i32 @system(ptr %p)\n  ret i32 %r\n}\n")),
    "exports malloc": lambda: sample(
        text(add="define ptr @malloc(i64 %n) {\n  ret ptr null\n}\n"),
        exports=("malloc", "sample_add", "sample_power"),
    ),
    "exports _init": lambda: sample(
        text(add="define void @_init() {\n  ret void\n}\n"), exports=("_init", "sample_add", "sample_power")
    ),
    "ifunc": lambda: sample(text(add="define ptr @r() {\n  ret ptr null\n}\n@f = ifunc i32 (), ptr @r\n")),
    "constructor in a section": lambda: sample(
        text(add='@p = global ptr @sample_add, section ".init_array"\n')
    ),
    "missing export": lambda: sample(exports=("sample_add", "sample_nothing", "sample_power")),
    "another triple": lambda: sample(text(replace=("riscv64-unknown-linux-musl", "x86_64-pc-linux-gnu"))),
    "target features": lambda: sample(text(replace=("nounwind", 'nounwind "target-features"="+v"'))),
    "linker options": lambda: sample(text(
        add='!llvm.linker.options = !{!9}\n!9 = !{!"--dynamic-linker=/tmp/evil"}\n'
    )),
    "enormous type": lambda: sample(text(add="@big = global [4611686018427387904 x i8] zeroinitializer\n")),
    "huge integer": lambda: sample(text(add="define void @h(ptr %p) {\n  %a = load i131072, ptr %p\n"
                                        "  %b = mul i131072 %a, %a\n  store i131072 %b, ptr %p\n  ret void\n}\n")),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_package_with_a_good_signature(kind, user, tmp_path):
    """The author's own tools refuse these; he publishes them by hand. Nothing of them is compiled or run."""
    package = HOSTILE[kind]().package
    directory = init_registry(tmp_path / "hostile")
    put(directory, package, sign_package(package, KEY), claim=claim(package, KEY))
    place = user.with_env(VISGET_REGISTRY=str(directory))
    begun = time.monotonic()
    outcome = place.run("install", "sample")
    assert outcome.code in (EXIT_REFUSED, EXIT_FAILED), outcome
    assert outcome.code == EXIT_REFUSED or "LLVM" in outcome.text, outcome
    assert time.monotonic() - begun < 20
    assert re.search(r"^error: .*sample 1\.2\.3", outcome.text, re.M)
    assert place.natives() == []
    assert list((place.home / "tmp").iterdir()) == []
    assert place.run("list", "--json").json == {"installed": []}
