"""Row 35: whatever happens to the store, a program that has loaded a library keeps running.

The same with whole commands (repair, upgrade, gc) is tests/e2e/test_bad_moments.py.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from storeuser import StoreUser, overwrite

from visget import api
from visget.cache.environment import Environment

LINUX = sys.platform == "linux"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    root = tmp_path_factory.mktemp("loaded") / "base"
    StoreUser(root).install()
    return root


@pytest.fixture
def user(base, tmp_path):
    shutil.copytree(base, tmp_path / "user", symlinks=True)
    return StoreUser(tmp_path / "user")


def remove(user):
    Environment(user.store).remove("adder")
    user.store.gc(max_age=0)
    assert user.store.native_keys() == []


def reinstall(user):
    user.store.remove_native(user.store.native_keys()[0])
    user.install()


def replace_by_rename(user):
    library = next(user.store.root.glob("native/v1/*/lib/libadder.so"))
    other = library.with_name("other")
    other.write_bytes(bytes(8192))
    other.replace(library)


def damage(user):
    path = next(user.store.root.glob("native/v1/*/api.json"))
    overwrite(path, b"")
    assert user.store.check().damaged


def remove_everything(user):
    shutil.rmtree(user.store.root)


CHANGES = [remove, reinstall, replace_by_rename, damage, remove_everything]


@pytest.mark.parametrize("used", ["", "lib.adder_add"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_loaded_library_works_on(user, change, used):
    """Also when none of its functions, not even its interface, was looked at before."""
    code = (
        f"import sys, visget; lib = visget.load('adder'); {used}\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(lib.adder_add(40, 2), lib.adder_power(2.0, 3.0), 'adder_add' in dir(lib), lib.receipt['name'])"
    )
    child = subprocess.Popen([sys.executable, "-c", code], env=user.environ, text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert child.stdout.readline() == "ready\n"
    change(user)
    out, err = child.communicate("go\n", timeout=60)
    assert (child.returncode, out) == (0, "42 8.0 True adder\n"), err


def test_no_file_of_an_artifact_is_ever_written_again(user):
    """Its files are read-only, and repairs and upgrades put other files in their place."""
    (path,) = user.store.root.glob("native/v1/*/lib/libadder.so")
    first = path.stat().st_ino
    assert path.stat().st_mode & 0o222 == 0
    user.install()
    assert path.stat().st_ino == first
    with path.open("rb") as held:
        reinstall(user)
        assert path.stat().st_ino != first
        assert held.read(4) == b"\x7fELF"


# ---- through the descriptor ----------------------------------------------------------------------------------


@pytest.mark.skipif(not LINUX, reason="descriptors have names in /proc on Linux")
def test_what_was_checked_is_what_is_mapped(user, monkeypatch, tmp_path):
    """Between the check and the loading, another file takes the path: it is not loaded."""
    from visget.runtime import library, mapping

    original = mapping.map_library
    seen = []

    def swapped(descriptor, path, **how):
        other = path.with_name("other")
        other.write_bytes(b"\x7fELF nonsense")
        other.replace(path)
        seen.append(path)
        return original(descriptor, path, **how)

    monkeypatch.setattr(library, "map_library", swapped)
    assert api.load("adder", settings=user.settings).adder_add(40, 2) == 42
    assert seen


@pytest.mark.skipif(not LINUX, reason="descriptors have names in /proc on Linux")
def test_people_and_profilers_see_the_real_path(user):
    code = (
        "import os, visget; lib = visget.load('adder'); again = visget.load('adder')\n"
        "print(lib.path); print(lib.cdll._name); print(again.cdll._handle == lib.cdll._handle)\n"
        "print([line.split()[-1] for line in open('/proc/self/maps') if 'libadder' in line][0])\n"
        "print(sum('libadder' in os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd')\n"
        "          if os.path.lexists(f'/proc/self/fd/{fd}')))"
    )
    done = user.python(code)
    (path,) = user.store.root.glob("native/v1/*/lib/libadder.so")
    assert done.stdout.splitlines() == [str(path), str(path), "True", str(path), "1"], done.stderr


@pytest.mark.skipif(not LINUX or shutil.which("gdb") is None, reason="needs gdb")
def test_a_debugger_finds_the_library(user):
    code = "import sys, visget; lib = visget.load('adder'); print('ready', flush=True); sys.stdin.readline()"
    child = subprocess.Popen([sys.executable, "-c", code], env=user.environ, text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)  # fmt: skip
    try:
        assert child.stdout.readline() == "ready\n"
        remove(user)  # also when the file is gone by now
        done = subprocess.run(["gdb", "-p", str(child.pid), "-batch", "-ex", "info symbol adder_add"],
                              capture_output=True, text=True, timeout=120)  # fmt: skip
    finally:
        child.communicate("go\n", timeout=60)
    if "Operation not permitted" in done.stderr:
        pytest.skip("this machine does not let processes be traced")
    assert re.search(rf"adder_add(?:\.[0-9a-f]{{20}})? in section \.text of /proc/{child.pid}/fd/", done.stdout), done


@pytest.mark.skipif(not LINUX, reason="descriptors have names in /proc on Linux")
def test_two_libraries_are_never_taken_for_one(tmp_path):
    """glibc gives an older library to whoever asks for its name, and a closed descriptor's number is used again."""
    from runtimekit import CC, compile_c

    if CC is None:
        pytest.skip("needs a C compiler")
    places = [
        compile_c(f"int number(void) {{ return {number}; }}\n", tmp_path / f"l{number}.so", "-shared", "-fPIC")
        for number in range(1, 6)
    ]
    code = (
        "import os, sys; from pathlib import Path; from visget.runtime.mapping import map_library\n"
        "found = []\n"
        "for name in sys.argv[1:]:\n"
        "    fd = os.open(name, os.O_RDONLY)\n"
        "    found.append(map_library(fd, Path(name)))\n"
        "    os.closerange(3, 64)  # what a daemon does\n"
        "print(*(library.number() for library in found))\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    print(map_library(os.open(sys.argv[3], os.O_RDONLY), Path(sys.argv[3])).number())\n"
        "else:\n"
        "    os.waitpid(child, 0)\n"
    )
    done = subprocess.run([sys.executable, "-u", "-c", code, *map(str, places)], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "2", "3", "4", "5", "3"], done.stderr


def test_without_proc_the_path_is_used(user, monkeypatch):
    def gone(path, **options):
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(os, "readlink", gone)
    assert api.load("adder", settings=user.settings).adder_add(40, 2) == 42


def test_a_load_hashes_only_what_it_loads(user, monkeypatch):
    from visget.cache import entry

    original, count = entry._digest, []
    monkeypatch.setattr(entry, "_digest", lambda descriptor: count.append(1) or original(descriptor))
    api.load("adder", settings=user.settings)
    assert len(count) == 1
    assert Path(api.load("adder", settings=user.settings).path).exists()
