"""Row 18: damaged and hostile bitcode is an error about the package; the process that asked lives on.

The mutants go through the whole way: the parent's frames, a worker confined as in an installation, the rules, LLVM.
"""

from __future__ import annotations

import collections
import hashlib
import os
import time
from pathlib import Path

import pytest
from badkit import offspring
from bitcodefuzz import EXPORTS, IMPORTS, RICH, mutant, seed
from confinedkit import linux
from forkserver import forked
from installable import TEXT, fresh_store, verified
from workerkit import API, sample

from visget.errors import CompileError, FormatError, RefusedError, ResourceError, UnsupportedError, VisgetError
from visget.format.module import bitcode_of, parse_text
from visget.format.prototypes import Api
from visget.installer import child
from visget.installer.compile import check_package, compile_package
from visget.installer.detect import host_target
from visget.installer.install import install_package
from visget.installer.limits import Limits
from visget.installer.target import baseline

HERE = baseline("x86_64", "gnu")
QUICK = Limits(seconds=20.0, memory=2 << 30)
CRASHERS = sorted((Path(__file__).parents[1] / "data" / "crashers").glob("*.bc"))
FAMILIES = (CompileError, FormatError, RefusedError, ResourceError, UnsupportedError)


def outcome(bitcode: bytes) -> str:
    """Compile it; return "compiled", or the family and the cause. Anything else than an error of ours is a failure."""
    package = sample(bitcode=bitcode, exports=EXPORTS, imports=IMPORTS, api=Api())
    try:
        compile_package(package, HERE, QUICK)
    except FAMILIES as error:
        assert "sample 1.2.3" in error.message
        assert "\x1b" not in error.message
        assert "bug of visget" not in (error.hint or ""), error.message
        stage, cause = error.details.get("stage", ""), error.details.get("cause", "")
        # A crash of LLVM must not look like an attack: then the filter would be too strict for honest crashes.
        assert cause != "forbidden", (hashlib.sha256(bitcode).hexdigest(), error.message)
        return f"{type(error).__name__} {stage} {cause}".strip()
    return "compiled"


def survey(count: int, base: int = 0) -> collections.Counter[str]:
    seen = collections.Counter(outcome(mutant(base + number)) for number in range(count))
    deadline = time.monotonic() + 5
    while (left := [line for line in offspring(os.getpid()) if "visget.installer" in line]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.05)
    assert not left
    return seen


def test_the_sound_module_compiles() -> None:
    """Otherwise the mutants would prove nothing."""
    package = sample(RICH, exports=EXPORTS, imports=IMPORTS, api=Api())
    assert not [finding.render() for finding in check_package(package.package) if finding.severity == "error"]
    assert outcome(seed()) == "compiled"
    assert mutant(1) == mutant(1) != mutant(2)


@linux
def test_300_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    forked(monkeypatch)
    seen = survey(300)
    assert seen["FormatError"] > 50
    # LLVM's reader does abort on some: the workers died and this process did not.
    assert sum(number for name, number in seen.items() if name.endswith("signal")) > 3, seen


@linux
@pytest.mark.long
def test_20000_mutants(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    forked(monkeypatch)
    seen = survey(20_000, base=1_000_000)
    with capsys.disabled():
        print(dict(seen.most_common()))
    assert seen.total() == 20_000
    assert sum(number for name, number in seen.items() if name.endswith("signal")) > 200


@pytest.mark.parametrize("path", CRASHERS, ids=lambda path: path.stem)
def test_what_crashed_llvm_once(path: Path) -> None:
    """Found by fuzzing, here with the real worker process; the name says where it ended."""
    told = outcome(path.read_bytes())
    expected = {
        "parse": "CompileError parse signal",
        "memory": "ResourceError parse memory",
        "optimise": "CompileError optimise signal",
        "names": "FormatError",
        "rules": "RefusedError",
    }
    assert told == expected[path.stem.partition("-")[0]]


def test_there_are_crashers() -> None:
    assert len(CRASHERS) >= 4


GOOD = bitcode_of(parse_text(TEXT))


@pytest.mark.parametrize(
    "bitcode",
    [
        b"\0", b"BC\xc0\xde", b"define i32 @f() {\n  ret i32 0\n}\n", TEXT.encode(),
        b"\xde\xc0\x17\x0b" + bytes(16) + GOOD, GOOD + b"\0\0\0\0", GOOD + b"EVILDATA", GOOD + GOOD, b"\0\0\0\0" + GOOD,
        GOOD[:-4], GOOD[: len(GOOD) // 2 & ~3], GOOD[:8], GOOD[4:],
    ],
    ids=["nothing", "magic", "assembly", "text", "wrapper", "zeros-behind", "bytes-behind", "twice", "zeros-before",
         "short", "half", "start", "headless"],
)  # fmt: skip
def test_what_is_not_one_module_never_reaches_llvm(bitcode: bytes) -> None:
    with pytest.raises(FormatError, match=r"sample 1\.2\.3"):
        compile_package(sample(bitcode=bitcode), HERE, QUICK)


def test_a_package_without_a_module_is_refused_by_its_container() -> None:
    with pytest.raises(FormatError, match="size is 0"):
        sample(bitcode=b"")


def skip_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the worker go on where the rules of VIS-1 would have stopped it."""
    skip = "import visget.installer.worker as w; w.check_module = lambda *a, **k: []; "
    monkeypatch.setattr(
        child, "_BOOT", child._BOOT.replace("importlib.import_module(sys", skip + "importlib.import_module(sys")
    )


def test_orders_to_the_linker_are_refused_and_would_only_abort_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT + "!llvm.linker.options = !{!9}\n!9 = !{i32 1}\n"
    changes = {"exports": ("adder_add", "adder_power"), "api": API}
    with pytest.raises(RefusedError, match="VIS-106"):
        compile_package(sample(text, **changes), HERE, QUICK)
    skip_the_rules(monkeypatch)
    with pytest.raises(CompileError, match="SIG") as caught:
        compile_package(sample(text, **changes), HERE, QUICK)
    assert caught.value.details["stage"] == "emit"


def test_nothing_is_left_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_the_rules(monkeypatch)
    store = fresh_store(tmp_path)
    before = {path for path in store.root.rglob("*") if path.is_file()}
    bad = verified(text=TEXT + "!llvm.linker.options = !{!9}\n!9 = !{i32 1}\n")
    with pytest.raises(VisgetError):
        install_package(bad, host_target(), store, linker=None, limits=QUICK)
    after = {path for path in store.root.rglob("*") if path.is_file()}
    assert {path.relative_to(store.root).parts[0] for path in after - before} <= {"locks", "trust"}
    assert not list(store.natives())
