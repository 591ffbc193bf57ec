"""Row 33: workers and the linker try what they must not do, as root and as an ordinary user, on lesser kernels too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from confinedkit import AS_NOBODY, NO_LANDLOCK, NO_SECCOMP, NOBODY, linux, root, run_python

from visget.installer import landlock
from visget.installer.limits import Limits
from visget.installer.sandbox_probe import FORBIDDEN, probe_sandbox

pytestmark = linux

# The whole self-test without starting an interpreter, which another user might not be allowed to read.
ATTEMPT = """
from visget.installer.limits import Limits
from visget.installer.sandbox import demanded
from visget.installer.sandbox_probe import FORBIDDEN, Trial, _promised
from visget.installer.sandbox_trials import TRIALS, attempt
trials = [(c, a) for c, actions in FORBIDDEN.items() for a in TRIALS if a in actions and a != "use more time"]
level = demanded("auto")
with tempfile.TemporaryDirectory() as directory:
    os.mkdir(directory + "/scratch")
    for name in ("secret", "library"):
        with open(directory + "/" + name, "w") as file: file.write("x")
    limits = {**Limits(memory=1 << 30).as_dict(), "seconds": 1}
    outcomes = attempt(trials, directory, limits, level.as_dict())
made = [Trial(child=c, action=a, outcome=o, promised=_promised(c, a, level)) for (c, a), o in zip(trials, outcomes)]
result = {
    "uid": os.getuid(), "level": str(level), "count": len(made),
    "broken": [f"{t}: {t.outcome}" for t in made if t.promised and not t.denied],
    "open": [str(t) for t in made if not t.promised and not t.denied],
    "odd": [f"{t}: {t.outcome}" for t in made if not t.denied and t.outcome != "worked"],
}
"""
FILES = ["list a directory", "make a file", "open a file for writing", "read a file", "remove a file"]


def test_everything_forbidden_is_denied() -> None:
    report = probe_sandbox()
    assert report.level.seccomp
    assert not [f"{trial}: {trial.outcome}" for trial in report.broken]
    assert len(report.trials) == sum(map(len, FORBIDDEN.values())) == 52
    by_name = {(trial.child, trial.action): trial.outcome for trial in report.trials}
    for action in ("open an internet socket", "start a program", "fork", "map writable code", "signal its parent"):
        assert by_name["compiler", action] == by_name["library", action] == "SIGSYS"
    assert by_name["compiler", "use more time"] == "SIGXCPU"
    assert by_name["compiler", "read a file"] == "EACCES"
    if landlock.abi():
        assert not report.open


def test_without_the_sandbox_all_of_it_works() -> None:
    """Otherwise the test above would prove nothing. Only the limits remain."""
    report = probe_sandbox(Limits(sandbox="off"))
    assert {trial.outcome for trial in report.open} == {"worked"}
    assert {trial.action for trial in report.trials if trial.denied} == {"use more memory", "use more time"}
    assert len(report.open) == 48


def check(result: dict[str, Any]) -> None:
    assert not result["broken"]
    assert not result["odd"]
    assert result["count"] == 51


@root
def test_the_same_as_an_ordinary_user() -> None:
    result = run_python(ATTEMPT, AS_NOBODY)
    check(result)
    assert result["uid"] == NOBODY
    assert result["level"].startswith("seccomp")
    assert not result["open"] or not landlock.abi()


def test_in_a_container_without_landlock() -> None:
    """seccomp alone still keeps the compiler; what is open then is named."""
    result = run_python(ATTEMPT, NO_LANDLOCK)
    check(result)
    assert result["level"] == "seccomp"
    assert sorted(result["open"]) == ["the linker can " + action for action in FILES] + ["the loader can read a file"]


def test_on_a_kernel_without_seccomp_nothing_is_compiled() -> None:
    code = """
        from visget.errors import UnsupportedError
        from visget.installer.sandbox_probe import probe_sandbox
        from visget.installer.limits import Limits
        result = []
        for mode in ("auto", "require"):
            try:
                probe_sandbox(Limits(sandbox=mode)); result.append("went on")
            except UnsupportedError as error:
                result.append(error.message)
    """
    told = run_python(code, NO_SECCOMP)
    assert all("no seccomp" in message for message in told), told


@pytest.mark.skipif(landlock.abi() < 2, reason="there is no older Landlock to play")
@pytest.mark.parametrize("version", [1, 3, 4])
def test_with_an_older_landlock(version: int) -> None:
    old = f"""
        from visget.installer import landlock
        real = landlock.abi
        landlock.abi = lambda: min({version}, real())
    """
    result = run_python(ATTEMPT, "\n".join(line.strip() for line in old.splitlines()))
    check(result)
    assert result["level"] == f"seccomp, landlock {version}"
    assert not result["open"]


@root
def test_root_is_no_exception() -> None:
    """RLIMIT_NPROC does not stop root, and file permissions do not; the filters do."""
    assert os.getuid() == 0
    result = run_python(ATTEMPT)
    check(result)
    assert result["uid"] == 0


WHOLE = """
from pathlib import Path
from visget.errors import VisgetError
from visget.installer.answers import check_answers
from visget.installer.limits import Limits, answer_limits
from visget.installer.link import link_library
limits = Limits(seconds=60.0, sandbox=mode)
with tempfile.TemporaryDirectory() as directory:
    made = compile_package(package, target, limits)
    scratch = Path(directory, "scratch"); scratch.mkdir()
    linked = link_library(linker, made.object, target=target, soname="libadder.so", scratch=scratch, sandbox=mode,
                          exports=["adder_add", "adder_power"], needed=["pow"])
    Path(directory, "libadder.so").write_bytes(linked.library)
    Path(directory, "adder.o").write_bytes(made.object)
    api, vectors = package.package.api(), package.package.vectors()
    reports = [check_answers(Path(directory, name), api, vectors, limits=answer_limits(limits))
               for name in ("libadder.so", "adder.o")]
result = [os.getuid(), *[str(level) for level in (made.sandbox, linked.sandbox, *[r.sandbox for r in reports])]]
"""


@root
@pytest.mark.parametrize("user", ["", AS_NOBODY], ids=["root", "nobody"])
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_all_children_do_their_work(user: str, mode: str) -> None:
    """By fork, because the interpreter may lie where an ordinary user cannot start it."""
    preparation = f"""
        sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
        import pytest
        from forkserver import forked
        from installable import verified
        from visget.installer import answer_worker, compile, linkers
        from visget.installer.compile import compile_package
        from visget.installer.detect import host_target
        target, package, mode = host_target(), verified(), {mode!r}
        linker = linkers.find_linker("auto", target)
        forked(pytest.MonkeyPatch())
    """
    lines = "\n".join(line.strip() for line in preparation.splitlines())
    uid, *levels = run_python(WHOLE, lines, user)
    assert uid == (NOBODY if user else 0)
    expected = f"seccomp, landlock {landlock.abi()}" if landlock.abi() else "seccomp"
    assert levels == [expected if mode == "auto" else "limits only"] * 4
