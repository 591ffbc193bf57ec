"""The everyday life of somebody who uses visget: versions side by side, damage, other machines, other targets."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from e2ekit import User
from static_server import Fault, StaticServer
from tinykit import Market

import visget.installer.detect
import visget.installer.install
import visget.wiring
from visget import api
from visget.digest import digest_file
from visget.errors import LoadError, NotFoundError
from visget.installer.target import parse_target
from visget.runtime.library import Library

EDITION = "import visget; print(visget.load('tiny').tiny_edition())"


@pytest.fixture
def user(market: Market, tmp_path: Path) -> User:
    return market.newcomer(tmp_path / "user")


@pytest.fixture(scope="module")
def settled(market: Market, tmp_path_factory: pytest.TempPathFactory) -> User:
    """Somebody who has both versions; tests that share this user change nothing."""
    user = market.newcomer(tmp_path_factory.mktemp("settled"))
    user.visget("install", "tiny==1.0", "tiny==2.0")
    return user


def use_everything(lib: Library, edition: int) -> None:
    """Call every function of the library and check what it answers."""
    assert lib.tiny_edition() == lib.TINY_EDITION == edition
    assert lib.tiny_started() == 42
    first = lib.tiny_count()
    assert [lib.tiny_count(), lib.tiny_count()] == [first + 1, first + 2]
    pair = lib.tiny_sorted(3.5, -1.0)
    assert (pair.low, pair.high) == (-1.0, 3.5)
    x, y = np.random.default_rng(1).standard_normal((2, 1001))
    assert lib.tiny_dot(1001, x, y) == sum(a * b for a, b in zip(x, y, strict=True))
    assert lib.tiny_total(10, lambda n: n * n) == sum(n * n for n in range(10))
    assert lib.tiny_power(2.0, -3.0) == 0.125
    assert lib.TINY_NAME == b"tiny"
    assert lib.TINY_DESCENDING == 5


def versions(user: User) -> list[tuple[str, bool]]:
    return [(item["version"], item["selected"]) for item in user.json("list")["installed"]]


def natives(user: User) -> set[str]:
    return {path.name for path in (user.root / "home" / "native" / "v1").iterdir()}


# ---- versions ----------------------------------------------------------------------------------------------


def test_versions_side_by_side_and_back(user: User) -> None:
    assert user.json("list")["installed"] == []
    done = user.finished("install", "tiny==1.0")
    assert "first use of tiny: trusting its signing key" in done.stderr
    use_everything(user.load("tiny"), 1)
    again = user.json("install", "tiny")["installed"][0]
    assert (again["version"], again["first_use"], again["reused"], again["foreign"]) == ("2.0", False, False, False)
    assert versions(user) == [("1.0", False), ("2.0", True)]
    assert user.python(EDITION).stdout == "2\n"

    user.visget("use", "tiny==1.0")
    assert versions(user) == [("1.0", True), ("2.0", False)]
    assert user.python(EDITION).stdout == "1\n"
    user.visget("rollback", "tiny")
    assert user.python(EDITION).stdout == "2\n"
    assert user.json("install", "tiny==1.0")["installed"][0]["reused"] is True
    assert versions(user) == [("1.0", True), ("2.0", False)]

    both = natives(user)
    assert len(both) == 2
    assert user.json("uninstall", "tiny==1.0")["removed"] == [{"name": "tiny", "version": "1.0"}]
    assert versions(user) == [("2.0", True)]
    assert user.json("path", "tiny")["path"].endswith("/lib/libtiny.so")
    assert natives(user) == both, "what is uninstalled stays until it is collected"
    planned = user.json("cache", "gc", "--all", "--dry-run")
    assert natives(user) == both
    freed = user.json("cache", "gc", "--all")
    assert freed["removed"] == planned["removed"]
    assert {item["kind"] for item in freed["removed"]} == {"native", "packages"}
    assert len(natives(user)) == 1
    assert user.python(EDITION).stdout == "2\n"

    user.visget("uninstall", "tiny")
    assert user.json("list")["installed"] == []
    assert user.json("path", "tiny", code=8)["error"] == "NotFoundError"
    user.visget("cache", "gc", "--all")
    assert natives(user) == set()


def test_two_versions_in_one_process(settled: User) -> None:
    """They have the same file name and the same symbols; each keeps its own code and its own variables."""
    new, old, selected = settled.load("tiny"), settled.load("tiny", "1.0"), settled.load("tiny", "2")
    use_everything(new, 2)
    use_everything(old, 1)
    assert selected.version == "2.0"
    before = old.tiny_count()
    for _ in range(5):
        new.tiny_count()
    assert old.tiny_count() == before + 1
    assert old.tiny_pair is not new.tiny_pair


def test_versions_that_are_not_there(settled: User) -> None:
    with pytest.raises(NotFoundError, match=r"tiny 3\.0 is not installed; installed: 1\.0, 2\.0"):
        settled.load("tiny", "3.0")
    with pytest.raises(NotFoundError) as caught:
        settled.load("tiiny")
    assert caught.value.hint == "did you mean 'tiny'?"
    missing = settled.json("install", "tiny==9", code=8)
    assert "2.0" in json.dumps(missing)
    assert settled.json("use", "tiny==9", code=8)["error"] == "NotFoundError"
    assert settled.json("rollback", "nothing", code=8)["error"] == "NotFoundError"
    assert versions(settled) == [("1.0", False), ("2.0", True)]


def test_the_command_finds_what_the_library_has(settled: User) -> None:
    found = settled.json("search", "tiny_power")["packages"]
    assert [(item["name"], item["version"]) for item in found] == [("tiny", "2.0")]
    told = settled.json("info", "tiny==1.0")
    assert (told["name"], told["version"]) == ("tiny", "1.0")
    assert "double tiny_power(double x, double y);" in settled.visget("info", "tiny", "--functions")
    plan = settled.json("install", "tiny==1.0", "--dry-run")["plans"][0]
    assert versions(settled) == [("1.0", False), ("2.0", True)], "a plan selects nothing"
    assert plan


# ---- damage ------------------------------------------------------------------------------------------------


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a flipped bit of the library": lambda entry: flip(entry / "lib/libtiny.so"),
    "a library cut short": lambda entry: os.truncate(entry / "lib/libtiny.so", 1000),
    "no library": lambda entry: (entry / "lib/libtiny.so").unlink(),
    "an empty interface": lambda entry: (entry / "api.json").write_bytes(b""),
    "another interface of the same size": lambda entry: flip(entry / "api.json"),
    "no list of files": lambda entry: (entry / "entry.json").unlink(),
    "a stranger's file": lambda entry: (entry / "lib/libother.so").write_bytes(b"\x7fELF"),
    "a link instead of the library": lambda entry: swap_for_link(entry / "lib/libtiny.so"),
    "nothing at all": shutil.rmtree,
}


def swap_for_link(path: Path) -> None:
    elsewhere = path.parents[5] / "elsewhere.so"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


@pytest.fixture(scope="module")
def accident(market: Market, tmp_path_factory: pytest.TempPathFactory) -> User:
    """Somebody whose library breaks again and again."""
    user = market.newcomer(tmp_path_factory.mktemp("accident"))
    user.visget("install", "tiny")
    return user


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_heals_at_the_next_load(accident: User, kind: str) -> None:
    entry = accident.entry("tiny")
    before = (entry / "lib/libtiny.so").read_bytes()
    for path in (entry, *entry.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    DAMAGE[kind](entry)
    done = accident.python(EDITION)
    assert done.stdout == "2\n"
    assert ("damaged" in done.stderr) == (kind != "nothing at all"), "people are told, once"
    assert (entry / "lib/libtiny.so").read_bytes() == before
    quiet = accident.python(EDITION)
    assert (quiet.stdout, quiet.stderr) == ("2\n", "")
    assert accident.json("cache", "verify")["damaged"] == []


def test_damage_while_the_package_is_gone_too(user: User, market: Market, tmp_path: Path) -> None:
    mine = market.copy(tmp_path / "registry")
    user.visget("install", "tiny", "--registry", mine)
    entry = user.entry("tiny")

    def lose() -> None:
        shutil.rmtree(entry)
        shutil.rmtree(user.root / "home" / "packages")

    lose()
    assert user.python(EDITION).stdout == "2\n", "it is fetched again from where it came from"
    lose()
    mine.rename(tmp_path / "moved")
    told = user.json("path", "tiny", code=6)
    assert told["error"] == "CacheError"
    assert "cannot be fetched" in told["message"]
    (tmp_path / "moved").rename(mine)
    assert user.python(EDITION).stdout == "2\n"


def test_verify_finds_what_nobody_has_loaded_yet(user: User) -> None:
    user.visget("install", "tiny")
    library = user.entry("tiny") / "lib" / "libtiny.so"
    library.chmod(0o644)
    flip(library)
    damaged = user.json("cache", "verify", code=1)["damaged"]
    assert [(item["kind"], item["moved"]) for item in damaged] == [("native", True)]
    assert user.json("install", "tiny")["installed"][0]["reused"] is False
    assert user.json("cache", "verify")["damaged"] == []


def test_reinstall_compiles_again(user: User) -> None:
    user.visget("install", "tiny")
    library = user.entry("tiny") / "lib" / "libtiny.so"
    before, inode = library.read_bytes(), library.stat().st_ino
    assert user.json("install", "tiny")["installed"][0]["reused"] is True
    assert library.stat().st_ino == inode
    assert user.json("install", "tiny", "--reinstall")["installed"][0]["reused"] is False
    assert library.stat().st_ino != inode
    assert library.read_bytes() == before


# ---- other machines and targets ----------------------------------------------------------------------------


def test_another_machine_with_the_same_home_compiles_for_itself(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.visget("install", "tiny==1.0", "tiny==2.0")
    mine = user.entry("tiny", "1.0")
    host = visget.installer.detect.host_target()
    with monkeypatch.context() as there:
        plain = parse_target("baseline", host)
        there.setattr(visget.wiring, "machine_id", lambda: "0123456789abcdef")
        there.setattr(visget.installer.detect, "host_target", lambda: plain)
        there.setattr(visget.installer.install, "host_target", lambda: plain)
        library = user.load("tiny", "1.0")
        theirs = user.entry("tiny", "1.0")
        assert theirs != mine
        assert library.receipt["target"]["cpu"] == plain.cpu
        assert library.receipt["answers"] == "passed"
        use_everything(library, 1)
        compiled = natives(user)
        user.load("tiny", "1.0")
        assert natives(user) == compiled
    assert versions(user) == [("1.0", False), ("2.0", True)], "loading selects nothing"
    assert user.entry("tiny", "1.0") == mine
    [first, second] = user.json("list")["installed"]
    assert set(first["natives"]) == {visget.wiring.machine_id(), "0123456789abcdef"}
    assert set(second["natives"]) == {visget.wiring.machine_id()}
    user.visget("cache", "gc", "--all")
    assert mine.is_dir() and theirs.is_dir(), "both machines still need theirs"


def test_the_baseline_gives_the_same_answers(settled: User) -> None:
    native, plain = settled.load("tiny"), settled.load("tiny", VISGET_TARGET="baseline")
    assert native.path != plain.path
    assert plain.receipt["answers"] == "passed"
    use_everything(plain, 2)
    rng = random.Random(3)
    for _ in range(200):
        size = rng.randrange(200)
        x, y = (np.array([rng.uniform(-1e9, 1e9) for _ in range(size)]) for _ in range(2))
        assert native.tiny_dot(size, x, y) == plain.tiny_dot(size, x, y), "strict floating point has no freedom"


def test_the_target_of_the_environment_reaches_every_command(user: User) -> None:
    plain = {"VISGET_TARGET": "baseline"}
    found = user.json("install", "tiny", **plain)["installed"][0]
    assert found["foreign"] is False, "it is what load will use in this environment"
    directory = found["directory"]
    before = natives(user)
    assert len(before) == 1
    assert user.json("path", "tiny", **plain)["path"] == f"{directory}/lib/libtiny.so"
    assert user.python("import visget; print(visget.path('tiny'))", **plain).stdout == f"{directory}/lib/libtiny.so\n"
    assert f"{directory}/" in user.visget("pkg-config", "--cflags", "--libs", "tiny", **plain)
    assert f"{directory}/" in user.visget("pkg-config", "--libs", "tiny", "--target", "baseline")
    assert user.json("install", "tiny", **plain)["installed"][0]["reused"] is True
    assert natives(user) == before, "nothing was compiled for another target meanwhile"
    assert user.python(EDITION, **plain).stdout == "2\n"

    # Without it, the machine's own artifact is made when it is first needed.
    assert directory not in user.json("path", "tiny")["path"]
    assert len(natives(user)) == 2
    # config.toml says it, too, and the environment wins over it.
    config = user.root / "config"
    config.mkdir()
    (config / "config.toml").write_text('target = "baseline"\n')
    assert user.json("path", "tiny")["path"] == f"{directory}/lib/libtiny.so"
    assert user.python(EDITION).stdout == "2\n"
    assert user.json("path", "tiny", VISGET_TARGET="host")["path"] != f"{directory}/lib/libtiny.so"
    assert len(natives(user)) == 2


def test_the_host_by_name_is_the_host(user: User) -> None:
    """VISGET_TARGET=host asks for what is the default anyway: the same artifact, and no second look at every load."""
    named = {"VISGET_TARGET": "host"}
    found = user.json("install", "tiny", **named)["installed"][0]
    assert found["foreign"] is False
    assert user.json("path", "tiny")["path"] == user.json("path", "tiny", **named)["path"]
    before = user.json("list")
    program = "import sys, visget; visget.load('tiny').tiny_edition(); print('llvmlite' in sys.modules)"
    assert user.python(program, **named).stdout == "False\n", "a load compiles nothing"
    assert user.json("list") == before


def test_a_library_for_another_architecture_is_installed_but_not_loaded(user: User) -> None:
    target = "aarch64-linux-musl"
    found = user.json("install", "tiny", "--target", target)["installed"][0]
    assert found["foreign"] is True
    archive = Path(found["directory"]) / "lib" / "libtiny.a"
    assert archive.read_bytes().startswith(b"!<arch>\n")
    assert json.loads((Path(found["directory"]) / "receipt.json").read_bytes())["answers"] == "not-run"
    flags = user.visget("pkg-config", "--static", "--cflags", "--libs", "tiny", "--target", target)
    assert str(archive) in flags
    with pytest.raises(LoadError):
        user.load("tiny", VISGET_TARGET=target)
    assert user.python(EDITION).stdout == "2\n", "this machine's own artifact is made when it is needed"
    assert user.json("install", "tiny", "--target", "x86_64-windows-msvc", code=6)["error"] == "UnsupportedError"


# ---- registries over HTTP ----------------------------------------------------------------------------------


def test_a_registry_behind_a_static_web_server(market: Market, tmp_path: Path) -> None:
    with StaticServer(market.registry) as server:
        user = web_customer(market, tmp_path, server)
        assert user.json("search", "small")["packages"][0]["name"] == "tiny"
        assert user.json("info", "tiny")["versions"] == ["2.0", "1.0"]
        found = user.json("install", "tiny==1.0")["installed"][0]
        assert (found["version"], found["signers"]) == ("1.0", [market.key])
        use_everything(user.load("tiny"), 1)
        asked = len(server.requests)
        assert user.json("install", "tiny==1.0")["installed"][0]["reused"] is True
        assert all(not path.endswith(".vis") for path, _ in server.requests[asked:]), "it has the package"
    # Without the server everything that is installed goes on working.
    assert user.python(EDITION).stdout == "1\n"
    assert user.json("install", "tiny", "--offline", code=4)["exit_code"] == 4
    user.visget("use", "tiny==1.0")


def test_a_transfer_that_breaks_off_is_resumed(market: Market, tmp_path: Path) -> None:
    blob = f"/t/{digest_file(market.packages[1])}.pkg__tiny__2.0.vis"
    with StaticServer(market.registry) as server:
        server.faults[blob] = Fault("truncate", after=1000, times=1)
        user = web_customer(market, tmp_path, server)
        user.visget("install", "tiny")
        assert [asked for path, asked in server.requests if path == blob] == [None, "bytes=1000-"]
    assert user.python(EDITION).stdout == "2\n"


def test_other_bytes_from_the_server_are_not_installed(market: Market, tmp_path: Path) -> None:
    registry = market.copy(tmp_path / "registry")
    flip(registry / "t" / f"{digest_file(market.packages[1])}.pkg__tiny__2.0.vis")
    with StaticServer(registry) as server:
        user = web_customer(market, tmp_path, server)
        assert user.json("install", "tiny", code=3)["error"] == "TrustError"
        assert user.json("list")["installed"] == []
        user.visget("install", "tiny==1.0")


def web_customer(market: Market, tmp_path: Path, server: StaticServer) -> User:
    """A newcomer who was told the registry's address and the fingerprint of its root."""
    user = market.newcomer(tmp_path / "user", VISGET_REGISTRY="web")
    fingerprint = digest_file(market.registry / "tuf" / "1.root.json")
    user.visget("registry", "add", "web", server.url, "--fingerprint", fingerprint)
    return user


# ---- without a linker --------------------------------------------------------------------------------------


def test_without_a_linker(market: Market, tmp_path: Path) -> None:
    user = market.newcomer(tmp_path / "user", VISGET_LINKER="none")
    user.visget("install", "tiny")
    entry = user.entry("tiny")
    assert sorted(path.name for path in (entry / "lib").iterdir()) == ["cmake", "libtiny.a", "libtiny.o", "pkgconfig"]
    library = user.load("tiny")
    assert library.receipt["artifact"] == "object"
    assert library.receipt["answers"] == "passed"
    use_everything(library, 2)
    other = user.load("tiny")
    assert other.tiny_edition() == 2
    told = user.json("path", "tiny", code=8)
    assert "no linker" in told["message"]
    assert user.python(EDITION).stdout == "2\n"

    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler on this machine: linking the archive was not tried")
    source = tmp_path / "main.c"
    source.write_text("#include <tiny.h>\nint main(void) { return tiny_started() - 42 + tiny_edition() - 2; }\n")
    flags = user.visget("pkg-config", "--static", "--cflags", "--libs", "tiny").split()
    subprocess.run([compiler, str(source), *flags, "-o", str(tmp_path / "main")], check=True)
    assert subprocess.run([str(tmp_path / "main")], check=False).returncode == 0


def test_a_linker_that_turns_up_later_makes_a_library(market: Market, tmp_path: Path) -> None:
    user = market.newcomer(tmp_path / "user")
    user.visget("install", "tiny", VISGET_LINKER="none")
    user.json("path", "tiny", code=8)
    assert user.json("install", "tiny")["installed"][0]["reused"] is False
    assert Path(user.json("path", "tiny")["path"]).is_file()
    assert user.python(EDITION).stdout == "2\n"


# ---- from Python -------------------------------------------------------------------------------------------


def test_the_api_is_what_the_commands_use(market: Market, tmp_path: Path) -> None:
    """The same story in one process, through functions instead of commands."""
    settings = market.newcomer(tmp_path / "user").settings()
    assert api.install("tiny>=1,<2", settings=settings).version == "1.0"
    assert api.install("tiny", settings=settings).version == "2.0"
    assert [item.version for item in api.installed(settings=settings)] == ["1.0", "2.0"]
    assert api.use("tiny<2", settings=settings).version == "1.0"
    assert api.load("tiny", settings=settings).tiny_edition() == 1
    assert api.rollback("tiny", settings=settings).version == "2.0"
    assert api.path("tiny", settings=settings).is_file()
    assert [item.version for item in api.uninstall("tiny", settings=settings)] == ["1.0", "2.0"]
    with pytest.raises(NotFoundError):
        api.load("tiny", settings=settings)
