"""Row 25: symbols and sections that would run code at loading or stand in for others'; and no code of them ran.

Every hostile package is tried three times: as it is (the rules of VIS-1 refuse it), with the rules switched off in
the worker (the gates refuse what came out), and its own code would leave a file behind if it ever ran (the canary).
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from confinedkit import linux
from installable import TEXT, fresh_store, verified
from native_code import GENERIC, object_of
from workerkit import sample

from visget.cache.store import Store
from visget.errors import FormatError, RefusedError, VisgetError
from visget.format.prototypes import Api
from visget.format.reserved import why_reserved
from visget.installer import child
from visget.installer.compile import compile_package
from visget.installer.detect import host_target
from visget.installer.gate import Promise, gate_object
from visget.installer.install import install_package
from visget.installer.limits import Limits
from visget.installer.link import link_library
from visget.installer.linkers import Linker, find_linker
from visget.installer.receipt import Receipt
from visget.installer.target import baseline

HOST = host_target()
HERE = baseline("x86_64", "gnu")
QUICK = Limits(seconds=60.0)
BEFORE_FLAGS = "!llvm.module.flags"


def canary_text(canary: Path) -> str:
    """A function @sing that makes the file `canary`, with functions of the C library that packages may call."""
    path = str(canary)
    return (
        f'@path = internal constant [{len(path) + 1} x i8] c"{path}\\00"\n'
        '@mode = internal constant [2 x i8] c"w\\00"\n'
        "declare ptr @fopen(ptr, ptr) #0\n"
        "define internal void @sing() #0 {\n  %file = call ptr @fopen(ptr @path, ptr @mode)\n  ret void\n}\n"
    )


CONSTRUCTOR = (
    "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
    "[{ i32, ptr, ptr } { i32 65535, ptr @sing, ptr null }]\n"
)
KEPT = '@llvm.used = appending global [1 x ptr] [ptr @slot], section "llvm.metadata"\n'
RESOLVER = "define internal ptr @choose() #0 {\n  call void @sing()\n  ret ptr @adder_add\n}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    name: str
    extra: str
    rule: str | None
    """The rule of VIS-1 that refuses it; None when only the gates know, because the manifest is the liar."""
    gate: str | None
    """What the gate says once the rules are off; None where the compiler has hidden the symbol by then."""


HOSTILE = (
    Hostile(name="constructor", extra=CONSTRUCTOR, rule=None, gate="section .init_array"),
    Hostile(
        name="init-array", extra='@slot = internal constant ptr @sing, section ".init_array"\n' + KEPT,
        rule="VIS-109", gate="section .init_array runs code at loading",
    ),
    Hostile(
        name="preinit-array", extra='@slot = internal constant ptr @sing, section ".preinit_array"\n' + KEPT,
        rule="VIS-109", gate=".preinit_array",
    ),
    Hostile(
        name="ctors", extra='@slot = internal constant ptr @sing, section ".ctors"\n' + KEPT,
        rule="VIS-109", gate=".ctors",
    ),
    Hostile(
        name="init-section", rule="VIS-109", gate="'.init'",
        extra='define internal void @slot() section ".init" {\n  call void @sing()\n  ret void\n}\n' + KEPT,
    ),
    Hostile(
        name="ifunc", extra="@slot = ifunc i32 (i32, i32), ptr @choose\n" + RESOLVER,
        rule="VIS-202", gate="indirect function (ifunc)",
    ),
    Hostile(
        name="alias-malloc", extra="@malloc = alias i32 (i32, i32), ptr @adder_add\n",
        rule="VIS-210", gate="malloc is exported by the code but not by the manifest",
    ),
    Hostile(
        name="assembly", rule="VIS-107", gate="we don't have an asm parser",
        extra='module asm ".section .init_array,\\22aw\\22"\nmodule asm ".quad sing"\n',
    ),
    Hostile(
        name="dependent-library", extra='!llvm.dependent-libraries = !{!9}\n!9 = !{!"evil"}\n',
        rule="VIS-106", gate=".deplibs",
    ),
    Hostile(
        name="comdat", rule="VIS-108", gate="section groups",
        extra="$slot = comdat any\n@slot = linkonce_odr constant ptr @sing, comdat\n" + KEPT,
    ),
    Hostile(
        name="newline", extra='@"\\01x\\0A.globl y" = global i32 1\n', rule="VIS-201", gate=None,
    ),
    Hostile(
        name="raw-name", extra='define i32 @"\\01strlen"() {\n  ret i32 1\n}\n', rule="VIS-201", gate=None,
    ),
)  # fmt: skip


def any_linker() -> Linker:
    found = find_linker("auto", HOST)
    if found is None:
        pytest.skip("no linker")
    return found


def package(canary: Path, extra: str, **changes: object):
    text = TEXT.replace(BEFORE_FLAGS, canary_text(canary) + extra + BEFORE_FLAGS)
    return verified(text=text, imports=("fopen", "pow"), **changes)


def skip_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    skip = "import visget.installer.worker as w; w.check_module = lambda *a, **k: []; "
    monkeypatch.setattr(
        child, "_BOOT", child._BOOT.replace("importlib.import_module(sys", skip + "importlib.import_module(sys")
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fresh_store(tmp_path)


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.name)
def test_refused_and_no_code_ran(hostile: Hostile, store: Store, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    with pytest.raises(RefusedError) as caught:
        install_package(package(canary, hostile.extra), HOST, store, linker=any_linker(), limits=QUICK)
    assert hostile.rule is None or hostile.rule in str(caught.value.details["findings"])
    assert not canary.exists()
    assert not list(store.natives())


@pytest.mark.parametrize("hostile", [h for h in HOSTILE if h.gate], ids=lambda hostile: hostile.name)
def test_the_gate_alone_refuses_it(
    hostile: Hostile, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defence in depth: the rules read text that llvmlite cannot list (aliases, ifuncs); the gates read the object."""
    canary = tmp_path / "canary"
    skip_the_rules(monkeypatch)
    with pytest.raises(VisgetError) as caught:
        install_package(package(canary, hostile.extra), HOST, store, linker=any_linker(), limits=QUICK)
    assert hostile.gate in caught.value.message
    assert not canary.exists()
    assert not list(store.natives())


@linux
def test_the_canary_sings_where_nothing_stops_it(tmp_path: Path) -> None:
    """Otherwise its silence would prove nothing."""
    canary = tmp_path / "canary"
    extra = '@slot = internal constant ptr @sing, section ".init_array"\n' + KEPT
    text = canary_text(canary).replace(" #0", "") + extra + "define i32 @f() {\n  ret i32 1\n}\n"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    linked = link_library(
        any_linker(), object_of(text), target=GENERIC, soname="libx.so", exports=["f"], needed=["fopen"],
        scratch=scratch,
    )  # fmt: skip
    (tmp_path / "libx.so").write_bytes(linked.library)
    code = f"import ctypes; ctypes.CDLL({str(tmp_path / 'libx.so')!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert canary.exists()


@linux
def test_an_announced_constructor_runs_only_in_the_sandbox(store: Store, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    made = package(canary, CONSTRUCTOR, constructors=True)
    entry = install_package(made, HOST, store, linker=any_linker(), limits=QUICK)
    receipt = Receipt.parse((entry.path / "receipt.json").read_bytes())
    assert receipt.answers == "passed", "so it was loaded, and the constructor ran"
    assert receipt.sandbox.startswith("seccomp")
    assert not canary.exists()
    code = f"import ctypes; ctypes.CDLL({str(entry.path / 'lib/libadder.so')!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert canary.exists(), "the user's own process is not confined: that is what signatures are for"


NAMES = ("malloc", "free", "_init", "_fini", "main", "environ", "memcpy", "Py_Initialize", "PyInit_x", "_Py_Dealloc",
         "pthread_create", "__libc_start_main", "__vis_va_start", "sin", "_exit")  # fmt: skip


@pytest.mark.parametrize("name", ["\x01x\n.globl y", "\x01strlen", "a b", "x" * 300, "é"])
def test_a_manifest_cannot_even_name_them(name: str) -> None:
    with pytest.raises(FormatError):
        sample(exports=(name,))


@pytest.mark.parametrize("name", NAMES)
def test_names_that_belong_to_others(name: str) -> None:
    assert why_reserved(name)
    text = TEXT.replace("@adder_add", f"@{name}").replace("i32 signext %a, i32 signext %b", "i32 signext %a")
    text = text.replace("%sum = add i32 %a, %b", "%sum = add i32 %a, 1")
    with pytest.raises(RefusedError) as caught:
        compile_package(
            sample(text, exports=tuple(sorted((name, "adder_power"))), imports=("pow",), api=Api()), HERE, QUICK
        )
    assert "VIS-210" in str(caught.value.details["findings"])


@pytest.mark.parametrize("name", NAMES)
def test_the_gate_knows_them_too(name: str) -> None:
    promise = Promise(
        label="sample 1.0", target=GENERIC, exports=frozenset([name]), imports=frozenset(), constructors=False
    )
    with pytest.raises(RefusedError, match="must not be exported"):
        gate_object(object_of(f"define i32 @{name}() {{\n  ret i32 1\n}}\n"), promise)


@linux
def test_a_second_library_is_not_hijacked(tmp_path: Path) -> None:
    """Even when another library of the process offers the same name to everybody (RTLD_GLOBAL)."""
    libraries = {}
    for name, value in (("first", 666), ("second", 1)):
        text = (
            f"define i32 @helper() noinline optnone {{\n  ret i32 {value}\n}}\n"
            "define i32 @ask() noinline optnone {\n  %r = call i32 @helper()\n  ret i32 %r\n}\n"
        )
        scratch = tmp_path / name
        scratch.mkdir()
        libraries[name] = link_library(
            any_linker(), object_of(text), target=GENERIC, soname=f"lib{name}.so", exports=["ask", "helper"],
            needed=[], scratch=scratch,
        ).library  # fmt: skip
        (tmp_path / f"lib{name}.so").write_bytes(libraries[name])
    code = (
        "import ctypes, json, sys\n"
        "first = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)\nsecond = ctypes.CDLL(sys.argv[2])\n"
        "print(json.dumps([first.ask(), second.ask()]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "libfirst.so"), str(tmp_path / "libsecond.so")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [666, 1]
