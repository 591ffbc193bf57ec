"""Whole packages through the real compile worker: good ones, ones that break rules, and ones made to hurt."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from neutral import neutral_ir
from workerkit import TEXT, sample

from visget.errors import CompileError, FormatError, RefusedError, ResourceError, UnsupportedError
from visget.format.module import bitcode_of, parse_text
from visget.format.prototypes import Api
from visget.installer import child
from visget.installer.child import run_child
from visget.installer.compile import TooSlowError, check_package, compile_package, compiler_identity
from visget.installer.limits import Limits
from visget.installer.target import baseline, make_target

TARGETS = {arch: baseline(arch, "gnu") for arch in ("x86_64", "aarch64", "riscv64")}
HERE = TARGETS["x86_64"]
QUICK = Limits(seconds=20.0)


@pytest.mark.parametrize("arch", TARGETS)
def test_a_good_package_is_compiled(arch: str, tmp_path: Path) -> None:
    steps: list[tuple[str, str, int, int | None]] = []

    class Watch:
        def step(self, phase: str, detail: str = "", done: int = 0, total: int | None = None) -> None:
            steps.append((phase, detail, done, total))

        def note(self, text: str) -> None:
            raise AssertionError(text)

    made = compile_package(sample(), TARGETS[arch], QUICK, Watch())
    assert made.level == 3
    assert made.compiler == compiler_identity()
    assert set(made.seconds) == {"check", "legalise", "optimise", "emit"}
    assert not made.findings
    assert [step[2] for step in steps] == [0, 1, 2, 3, 4]
    native = tmp_path / "x.o"
    native.write_bytes(made.object)
    listing = subprocess.run(["readelf", "-hWs", str(native)], capture_output=True, text=True, check=True).stdout
    assert {"x86_64": "X86-64", "aarch64": "AArch64", "riscv64": "RISC-V"}[arch] in listing
    assert re.search(r"GLOBAL DEFAULT +\d+ sample_add", listing)


def test_a_good_package_has_no_findings() -> None:
    assert check_package(sample().package) == []


ASM = TEXT.replace("  %sum = add i32 %a, %b", '  call void asm sideeffect "syscall", ""()\n  %sum = add i32 %a, %b')


def test_a_package_that_breaks_a_rule_is_refused_with_every_finding() -> None:
    bad = sample(
        text=ASM.replace("call double @pow", "call fast double @pow").replace('"vis" }', '"vis" "target-cpu"="x" }')
    )
    findings = check_package(bad.package)
    assert len({finding.rule for finding in findings if finding.severity == "error"}) >= 2
    with pytest.raises(RefusedError) as caught:
        compile_package(bad, HERE, QUICK)
    told = caught.value.details["findings"]
    assert isinstance(told, list)
    assert len(told) == len(findings)
    assert "sample 1.2.3 breaks" in caught.value.message
    assert "visget check" in (caught.value.hint or "")


def test_an_import_that_the_manifest_hides_is_refused() -> None:
    with pytest.raises(RefusedError):
        compile_package(sample(imports=()), HERE, QUICK)


def test_an_export_that_the_module_lacks_is_refused() -> None:
    with pytest.raises(RefusedError):
        compile_package(sample(exports=("sample_add", "sample_missing", "sample_power")), HERE, QUICK)


@pytest.mark.parametrize(
    "bitcode",
    [b"BC", b"BC\xc0\xde", b"define i32 @f() { ret i32 0 }", b"\xde\xc0\x17\x0b" + b"\0" * 60],
    ids=["short", "magic", "text", "wrapper"],
)
def test_what_is_no_bitcode_never_reaches_llvm(bitcode: bytes) -> None:
    with pytest.raises(FormatError, match=r"sample 1\.2\.3"):
        check_package(sample(bitcode=bitcode).package)


def test_trailing_bytes_are_refused() -> None:
    good = bitcode_of(parse_text(TEXT))
    for tail in (b"\0\0\0\0", b"EVIL" * 4, good):
        with pytest.raises(FormatError):
            compile_package(sample(bitcode=good + tail), HERE, QUICK)


def _mutants(count: int) -> list[bytes]:
    dice = random.Random(7)
    good = bitcode_of(parse_text(TEXT))
    made = []
    for _ in range(count):
        data = bytearray(good)
        for _ in range(dice.choice((1, 1, 2, 8))):
            data[dice.randrange(8, len(data))] = dice.randrange(256)
        made.append(bytes(data))
    return made


def _survives(bitcode: bytes) -> str:
    """Compile it; return what happened. Anything but an object or an error of ours is a failure."""
    try:
        return "compiled" if compile_package(sample(bitcode=bitcode), HERE, QUICK).object else ""
    except (FormatError, RefusedError, CompileError, ResourceError, UnsupportedError) as error:
        assert error.hint or isinstance(error, FormatError | UnsupportedError)
        assert "sample 1.2.3" in error.message
        return type(error).__name__


def test_damaged_bitcode_never_harms_this_process() -> None:
    seen = {_survives(bitcode) for bitcode in _mutants(40)}
    assert "FormatError" in seen


@pytest.mark.long
def test_much_damaged_bitcode_never_harms_this_process() -> None:
    seen = [_survives(bitcode) for bitcode in _mutants(400)]
    # LLVM's parser does abort on some of them: those must have been CompileErrors.
    assert {"FormatError", "CompileError"} <= set(seen)


def test_an_abort_inside_llvm_is_an_error_about_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Valid modules can abort the code generator; the rules would stop this one, so they are skipped here."""
    text = "define void @f() {\n  ret void\n}\n!llvm.linker.options = !{!0}\n!0 = !{i32 1}\n"
    skip = "import visget.installer.worker as w; w.check_module = lambda *a, **k: []; "
    monkeypatch.setattr(
        child, "_BOOT", child._BOOT.replace("importlib.import_module(sys", skip + "importlib.import_module(sys")
    )
    with pytest.raises(CompileError) as caught:
        compile_package(sample(text, exports=("f",), imports=()), HERE, QUICK)
    assert re.search(
        r"while generating machine code, the compile worker for sample 1\.2\.3 failed: it was ended by SIG",
        caught.value.message,
    )
    assert caught.value.details["stage"] == "emit"


def _bomb(lines: int) -> str:
    body = [
        f"  %v{n} = call double @pow(double %v{n - 1}, double {n}.5)\n  %w{n} = fadd double %w{n - 1}, %v{n}"
        for n in range(1, lines)
    ]
    return TEXT.replace(
        "  %r = call double @pow(double %x, double %y)\n  ret double %r",
        "  %v0 = fadd double %x, %y\n  %w0 = fadd double %x, 1.0\n" + "\n".join(body) + f"\n  ret double %w{lines - 1}",
    )


def test_a_compilation_without_end_is_ended() -> None:
    with pytest.raises(TooSlowError, match=r"took longer than 1 s|processor time") as caught:
        compile_package(sample(text=_bomb(30_000)), HERE, Limits(seconds=1.0))
    assert "VISGET_COMPILE_SECONDS" in (caught.value.hint or "")
    assert type(caught.value.final()) is ResourceError


def test_memory_is_limited() -> None:
    with pytest.raises(ResourceError, match="memory") as caught:
        compile_package(sample(), HERE, Limits(memory=160 << 20))
    assert "VISGET_COMPILE_MEMORY_MB" in (caught.value.hint or "")


def test_the_tuned_code_differs_and_repeats() -> None:
    tuned = make_target("x86_64", "gnu", "x86-64-v3")
    first = compile_package(sample(), tuned, QUICK).object
    assert compile_package(sample(), tuned, QUICK).object == first


def test_the_worker_gives_up_its_rights_before_it_parses(tmp_path: Path) -> None:
    """Asked from inside: what is left after confine()."""
    script = tmp_path / "probe.py"
    script.write_text(
        "import os, resource, sys\nfrom visget.installer.limits import confine, Limits\n"
        "confine(Limits(memory=1 << 30, seconds=7, open_files=32).as_dict())\n"
        "r = resource.getrlimit\n"
        "print(r(resource.RLIMIT_AS)[1], r(resource.RLIMIT_CPU), r(resource.RLIMIT_FSIZE)[1], "
        "r(resource.RLIMIT_CORE)[1], r(resource.RLIMIT_NOFILE)[1])\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('NoNewPrivs')))\n"
        "sys.stdout.flush()\n"
        "try:\n    f = open(sys.argv[1], 'w'); f.write('x'); f.close(); print('written')\nexcept OSError as "
        "error: print('refused')\n"
        "try:\n    bytearray(2 << 30); print('allocated')\nexcept MemoryError: print('no memory')\n"
    )
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "out")], stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout.splitlines() == [f"{1 << 30} (7, 8) 0 0 32", "1", "refused", "no memory"]


def test_an_unknown_profile_or_request_is_an_error_not_a_crash() -> None:
    package = sample().package
    reply = run_child("visget.installer.worker", {"op": "dance"}, (package.bitcode(), b"", b""), QUICK)
    assert reply.head["status"] == "error"
    assert reply.head["error"] == "UsageError"
    reply = run_child("visget.installer.worker", {"op": "check"}, (b"one",), QUICK)
    assert reply.head["error"] == "internal"
    assert "worker.py" in str(reply.head["at"])


def test_remarks_of_the_optimiser_stay_inside(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM warns on standard error about loops that it was asked to vectorise and could not."""
    source = (
        "int f(int *p, int n) {\n#pragma clang loop vectorize(enable)\n"
        "for (int i = 1; i < n; i++) p[i] = p[p[i - 1] & 7] + p[i - 1] / 3; return p[0]; }\n"
    )
    text = neutral_ir(source, tmp_path)
    assert "llvm.loop.vectorize.enable" in text
    made = compile_package(sample(text, exports=("f",), imports=(), api=Api()), HERE, QUICK)
    assert made.object
    assert capfd.readouterr() == ("", "")
