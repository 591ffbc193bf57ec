"""Row 19: modules that are small and make LLVM work for ever are refused by the rules, or ended within the limit.

Each runs twice: as it is, and with the rules switched off, so that the limits of the worker are seen to hold alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
from confinedkit import linux
from viscases import FLAGS, HEAD
from workerkit import sample

from visget.errors import CompileError, RefusedError, ResourceError
from visget.format.prototypes import Api
from visget.installer import child
from visget.installer.compile import compile_package
from visget.installer.limits import Limits
from visget.installer.target import baseline

HERE = baseline("x86_64", "gnu")
SECONDS = 2.0
ENOUGH = 20.0
"""For the rules to look at 120 000 instructions, on a slow machine too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bomb:
    name: str
    body: str
    rule: str | None = None
    """The rule that refuses it; None when only the limits stop it, or LLVM copes."""
    slow: bool = False
    """Whether it cannot be compiled within the limit once the rules are off."""


def _loop(order: str) -> str:
    return (
        "define i64 @f(i64 %x, i64 %k) {\n  br label %l\nl:\n  %i = phi i64 [ 0, %0 ], [ %n, %l ]\n"
        "  %v = phi i64 [ %x, %0 ], [ %w, %l ]\n  %w = mul i64 %v, %x\n  %n = add i64 %i, 1\n"
        "  %c = icmp ult i64 %n, 1000000\n  br i1 %c, label %l, label %e, !llvm.loop !1\ne:\n  ret i64 %w\n}\n"
        f"!1 = distinct !{{!1, !2}}\n!2 = !{{{order}}}\n"
    )


def _value(kind: str, *, calculate: bool = True) -> str:
    work = f"  %b = mul {kind} %a, %a\n" if calculate else f"  %b = freeze {kind} %a\n"
    return f"define void @f(ptr %p) {{\n  %a = load {kind}, ptr %p\n{work}  store {kind} %b, ptr %p\n  ret void\n}}\n"


_CHAIN = "".join(f"  %a{i + 1} = mul i64 %a{i}, %a{i}\n  %b{i} = xor i64 %a{i + 1}, {i}\n" for i in range(60_000))
_DEEP = "%t0 = type { i8, i8 }\n" + "".join(f"%t{i + 1} = type {{ %t{i}, %t{i} }}\n" for i in range(28))
_ALLOCA = "define void @f() {{\n  %a = alloca {0}\n  store volatile i8 1, ptr %a\n  ret void\n}}\n"

BOMBS = (
    Bomb(name="i131072", body=_value("i131072"), rule="VIS-307", slow=True),
    Bomb(name="i16384", body=_value("i16384"), rule="VIS-307", slow=True),
    Bomb(name="i131072-in-a-struct", body="%s = type { i131072 }\n" + _value("%s", calculate=False), rule="VIS-307"),
    Bomb(name="vector", body=_value("<65536 x i8>"), rule="VIS-308"),
    Bomb(name="array-value", body=_value("[3000000 x i64]", calculate=False), rule="VIS-309", slow=True),
    Bomb(name="deep-type", body=_DEEP + _value("%t28", calculate=False), rule="VIS-309", slow=True),
    Bomb(name="120k-instructions", body=f"define i64 @f(i64 %a0) {{\n{_CHAIN}  ret i64 %a60000\n}}\n", rule="VIS-311"),
    Bomb(
        name="16-gib-bss", rule="VIS-112",
        body="@g = internal global [17179869184 x i8] zeroinitializer\ndefine ptr @f() {\n  ret ptr @g\n}\n",
    ),
    Bomb(
        name="16-gib-thread-local", rule="VIS-112",
        body="@g = internal thread_local global [17179869184 x i8] zeroinitializer\ndefine ptr @f() {\n"
        "  %p = call ptr @llvm.threadlocal.address.p0(ptr @g)\n  ret ptr %p\n}\n"
        "declare ptr @llvm.threadlocal.address.p0(ptr)\n",
    ),
    Bomb(name="1-tib-alloca", body=_ALLOCA.format("[1099511627776 x i8]"), rule="VIS-310"),
    Bomb(name="1-tib-alloca-by-count", body=_ALLOCA.format("i8, i64 1099511627776"), rule="VIS-310"),
    Bomb(name="negative-alloca", body=_ALLOCA.format("i8, i64 -1"), rule="VIS-310"),
    Bomb(
        name="memset-without-end", rule="VIS-304", slow=True,
        body="define void @f(ptr %p) {\n"
        "  call void @llvm.memset.inline.p0.i64(ptr %p, i8 0, i64 1000000000, i1 false)\n"
        "  ret void\n}\ndeclare void @llvm.memset.inline.p0.i64(ptr, i8, i64 immarg, i1)\n",
    ),
    Bomb(name="full-unrolling", body=_loop('!"llvm.loop.unroll.full"')),
    Bomb(name="unrolling-by-count", body=_loop('!"llvm.loop.unroll.count", i32 1000000')),
    Bomb(name="vectors-without-end", body=_loop('!"llvm.loop.vectorize.width", i32 65536')),
    Bomb(
        name="wide-alignment",
        body="@g = internal global i32 1, align 4294967296\ndefine ptr @f() {\n  ret ptr @g\n}\n",
    ),
)  # fmt: skip


def attempt(bomb: Bomb, seconds: float) -> tuple[str, str]:
    """Compile it; return how it ended, and the message. It never takes longer than the limit allows."""
    begin = time.monotonic()
    package = sample(HEAD + bomb.body + FLAGS, exports=("f",), imports=(), api=Api())
    try:
        compile_package(package, HERE, Limits(seconds=seconds, memory=2 << 30))
    except RefusedError as error:
        return "refused", error.message
    except (CompileError, ResourceError) as error:
        return str(error.details.get("cause")), error.message
    finally:
        # Two tries (O3, then O1), each with the limit, a second until SIGKILL, and the start of the process.
        assert time.monotonic() - begin < 2 * (seconds + 1) + 20
    return "compiled", ""


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
def test_refused_or_ended_within_the_limit(bomb: Bomb) -> None:
    ended, message = attempt(bomb, SECONDS if bomb.rule is None else ENOUGH)
    if bomb.rule is None:
        assert ended in ("compiled", "time", "memory", "signal", "garbage")
    else:
        assert ended == "refused"
        assert bomb.rule in message


@linux
@pytest.mark.parametrize("bomb", [bomb for bomb in BOMBS if bomb.rule], ids=lambda bomb: bomb.name)
def test_without_the_rules_the_limits_hold(bomb: Bomb, monkeypatch: pytest.MonkeyPatch) -> None:
    skip = "import visget.installer.worker as w; w.check_module = lambda *a, **k: []; "
    monkeypatch.setattr(
        child, "_BOOT", child._BOOT.replace("importlib.import_module(sys", skip + "importlib.import_module(sys")
    )
    ended, message = attempt(bomb, SECONDS)
    assert ended in (("time", "memory", "signal") if bomb.slow else ("compiled", "time", "memory", "signal", "garbage"))
    if ended == "time":
        assert "processor time" in message or "took longer" in message
