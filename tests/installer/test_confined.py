"""A program that visget did not write is kept in its directory; this process stays free."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from confinedkit import NO_LANDLOCK, linux, run_python

from visget.errors import CompileError, ResourceError, UnsupportedError
from visget.installer import confined, landlock
from visget.installer.confined import run_confined
from visget.installer.landlock import EXECUTE, READ, READ_FILE, WRITE_FILE, Grant
from visget.installer.link import link_library
from visget.installer.linkers import Linker
from visget.installer.target import baseline

SYSTEM = [Grant(path, READ | EXECUTE) for path in ("/usr", "/bin", "/lib", "/lib64")]
SYSTEM.append(Grant("/dev/null", READ_FILE | WRITE_FILE))
needs_landlock = pytest.mark.skipif(landlock.abi() == 0, reason="this kernel has no Landlock")
pytestmark = linux


def shell(script: str, directory: Path, **changes: object) -> confined.Finished:
    values = {"directory": directory, "environment": {"PATH": os.defpath}, "grants": SYSTEM, "seconds": 20.0} | changes
    return run_confined(["/bin/sh", "-c", script], **values)  # type: ignore[arg-type]


@needs_landlock
def test_it_writes_only_in_its_directory(tmp_path: Path) -> None:
    place, secret = tmp_path / "place", tmp_path / "secret"
    place.mkdir()
    secret.write_text("secret")
    done = shell(
        f"echo x > inside && mkdir d && mv inside d/moved && echo made\n"
        f"cat {secret}; echo x > {tmp_path}/outside; rm -f {secret}; cat /etc/passwd; ls {tmp_path}; "
        f"ls /proc/self /root /home",
        place,
    )
    assert done.output.startswith(b"made\n")
    assert b"secret\n" not in done.output.splitlines()
    assert b"root:" not in done.output
    assert done.output.count(b"ermission denied") >= 6
    assert secret.read_text() == "secret"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["place", "secret"]
    assert done.sandbox.complete


def test_it_has_no_network_and_reaches_no_other_process(tmp_path: Path) -> None:
    script = (
        "import os, socket, sys\n"
        "def no(f):\n"
        "    try: f()\n"
        "    except PermissionError: return 'denied'\n"
        "    return 'worked'\n"
        "print(no(socket.socket), no(lambda: socket.socket(socket.AF_UNIX)), no(lambda: os.kill(os.getppid(), 0)), "
        f"no(lambda: os.kill({os.getpid()}, 0)), open('/proc/self/status').read().count('NoNewPrivs:\\t1'))\n"
    )
    grants = [Grant("/", READ | EXECUTE)]
    done = run_confined(
        [sys.executable, "-I", "-S", "-c", script], directory=tmp_path, environment={}, grants=grants, seconds=20
    )
    assert done.output.split() == [b"denied"] * 4 + [b"1"], done.output


def test_this_process_stays_free(tmp_path: Path) -> None:
    assert gc.isenabled()
    before = threading.active_count()
    assert shell("true", tmp_path).status == 0
    (tmp_path / "file").write_text("x")
    socket.socket().close()
    subprocess.run(["/bin/true"], check=True, cwd="/")
    assert threading.active_count() == before
    assert gc.isenabled()
    status = Path("/proc/self/status").read_text()
    assert "Seccomp:\t0" in status or "NoNewPrivs:\t0" in status


def test_from_many_threads_at_once(tmp_path: Path) -> None:
    results: list[int] = []

    def one(number: int) -> None:
        place = tmp_path / str(number)
        place.mkdir()
        results.append(shell(f"exit {number}", place).status)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(8))


def test_the_collector_that_was_off_stays_off(tmp_path: Path) -> None:
    gc.disable()
    try:
        shell("true", tmp_path)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_has_limits(tmp_path: Path) -> None:
    done = shell("sleep 0.3; ulimit -c; ulimit -n; ulimit -t; ulimit -f", tmp_path, seconds=7.0)
    assert done.output.split() == [b"0", b"1024", b"8", b"2097152"]


@pytest.mark.parametrize("script", ["sleep 60", "sleep 60 & exit 0", "exec > /dev/null 2>&1; sleep 60"])
def test_what_does_not_end_is_ended_with_all_its_children(tmp_path: Path, script: str) -> None:
    begin = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        shell(f"echo $$ > group; {script}", tmp_path, seconds=0.5)
    assert time.monotonic() - begin < 10
    with pytest.raises(ProcessLookupError):
        for _ in range(200):
            os.killpg(int((tmp_path / "group").read_text()), 0)
            time.sleep(0.02)


def test_a_flood_of_output_is_cut(tmp_path: Path) -> None:
    done = shell("head -c 3000000 /dev/zero; echo end", tmp_path, grants=[*SYSTEM, Grant("/dev/zero", READ)])
    assert len(done.output) == confined._OUTPUT


def test_a_program_that_is_out_of_reach_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "elsewhere" / "program"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    (tmp_path / "place").mkdir()
    if landlock.abi():
        with pytest.raises(PermissionError):
            run_confined([str(program)], directory=tmp_path / "place", environment={}, grants=SYSTEM, seconds=5)
    reachable = [*SYSTEM, Grant(str(program.parent), READ | EXECUTE)]
    done = run_confined([str(program)], directory=tmp_path / "place", environment={}, grants=reachable, seconds=5)
    assert done.status == 0


def fake_linker(tmp_path: Path, script: str) -> tuple[Linker, Path]:
    program = tmp_path / "bin" / "ld"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Linker(kind="gnu", command=(str(program),), version="GNU ld 2"), scratch


def link(linker: Linker, scratch: Path) -> bytes:
    target = baseline("x86_64", "musl")
    return link_library(
        linker, b"object", target=target, soname="libx.so", exports=[], needed=[], scratch=scratch
    ).library  # fmt: skip


def test_a_linker_that_was_taken_over_cannot_make_visget_read_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    linker, scratch = fake_linker(tmp_path, f"ln -s {secret} libx.so")
    with pytest.raises((ResourceError, CompileError, OSError)) as caught:
        link(linker, scratch)
    assert "secret\n" not in str(caught.value)


@needs_landlock
def test_a_linker_that_was_taken_over_cannot_reach_the_user(tmp_path: Path) -> None:
    linker, scratch = fake_linker(
        tmp_path, f"cat {tmp_path}/secret > libx.so || echo -n safe > libx.so; echo x > {tmp_path}/planted; exit 0"
    )
    (tmp_path / "secret").write_text("secret")
    assert link(linker, scratch) == b"safe"
    assert not (tmp_path / "planted").exists()


def test_degraded_and_required() -> None:
    code = """
        from pathlib import Path
        from visget.errors import UnsupportedError
        from visget.installer.confined import run_confined
        result = []
        with tempfile.TemporaryDirectory() as directory:
            for mode in ("auto", "require", "off"):
                try:
                    done = run_confined(["/bin/sh", "-c", "exit 3"], directory=Path(directory), environment={},
                                        grants=[], seconds=20, mode=mode)
                    result.append([done.status, str(done.sandbox)])
                except UnsupportedError as error:
                    result.append("refused")
    """
    assert run_python(code, NO_LANDLOCK) == [[3, "seccomp"], "refused", [3, "limits only"]]


def test_unsupported_is_raised_in_the_callers_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(confined.seccomp, "install", refuse)
    with pytest.raises(UnsupportedError, match="refuses to confine"):
        shell("true", tmp_path)
