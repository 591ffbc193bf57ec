from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from installable import TEXT, fresh_store, verified
from native_code import cross_compile, qemu

from visget.cache.store import Store
from visget.errors import CompileError, RefusedError, ResourceError, UnsupportedError, VisgetError
from visget.installer import install
from visget.installer.compile import TooSlowError
from visget.installer.detect import host_target
from visget.installer.install import install_package, plan_package
from visget.installer.limits import Limits
from visget.installer.link import find_linker
from visget.installer.linkers import Linker
from visget.installer.receipt import Receipt
from visget.installer.target import baseline

HOST = host_target()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fresh_store(tmp_path / "home")


def linker() -> Linker:
    found = find_linker("auto", HOST)
    if found is None:
        pytest.skip("no linker")
    return found


def leftovers(store: Store) -> list[Path]:
    return [*(store.root / "native" / "v1").iterdir(), *(store.root / "tmp").iterdir()]


def test_an_installed_library(store: Store) -> None:
    package = verified()
    entry = install_package(package, HOST, store, linker=linker())
    assert [file.path for file in entry.files] == [
        "LICENSE", "api.json", "exports.json", "include/adder/adder.h", "lib/cmake/adder/adderConfig.cmake",
        "lib/cmake/adder/adderConfigVersion.cmake", f"lib/libadder-{entry.key[:20]}.so", "lib/libadder.a",
        "lib/libadder.so", "lib/pkgconfig/adder.pc", "receipt.json",
    ]  # fmt: skip
    library = ctypes.CDLL(str(entry.path / "lib/libadder.so"))
    library.adder_power.restype = ctypes.c_double
    library.adder_power.argtypes = [ctypes.c_double, ctypes.c_double]
    assert (library.adder_add(40, 2), library.adder_power(2, 10)) == (42, 1024.0)
    receipt = Receipt.parse((entry.path / "receipt.json").read_bytes())
    assert (receipt.name, receipt.version, receipt.answers, receipt.vectors) == ("adder", "1.2.3", "passed", 1)
    assert receipt.package == package.package.digest
    assert receipt.signers == package.signers
    assert receipt.target == HOST
    assert receipt.key == entry.key
    assert receipt.artifact == "library"
    assert {"compile", "compile.optimise", "gate", "link", "gate-library", "answers"} <= set(receipt.milliseconds)
    assert receipt.sizes["lib/libadder.so"] == (entry.path / "lib/libadder.so").stat().st_size
    assert (entry.path / "api.json").read_bytes() == package.package.section("api")


def test_the_second_time_nothing_is_compiled(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    package = verified()
    assert not plan_package(package, HOST, store, linker=linker()).cached
    first = install_package(package, HOST, store, linker=linker())
    assert plan_package(package, HOST, store, linker=linker()).cached

    def refuse(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(install, "compile_package", refuse)
    assert install_package(package, HOST, store, linker=linker()) == first


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the whole optimisation take longer than 20 s; the list says which levels were tried."""
    tried: list[int] = []
    real = install.compile_package

    def compile_slowly(verified: object, target: object, limits: Limits, *more: object, level: int, **named: object):
        tried.append(level)
        if level == 3 and limits.seconds <= 20:
            raise TooSlowError("the compiler took longer than 20 s", hint="raise VISGET_COMPILE_SECONDS")
        return real(verified, target, limits, *more, level=level, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(install, "compile_package", compile_slowly)
    return tried


def test_what_took_too_long_is_kept_under_another_key(store: Store, slow: list[int]) -> None:
    package, short, long = verified(), Limits(seconds=20), Limits(seconds=100)
    notes: list[str] = []

    class Watch:
        def step(self, *args: object) -> None: ...

        def note(self, text: str) -> None:
            notes.append(text)

    whole = plan_package(package, HOST, store, linker=linker(), limits=short)
    assert whole.level == 3
    hurried = install_package(package, HOST, store, linker=linker(), limits=short, progress=Watch())
    assert slow == [3, 1]
    assert len(notes) == 1
    assert "less optimisation" in notes[0]
    assert Receipt.parse((hurried.path / "receipt.json").read_bytes()).level == 1
    assert hurried.key != whole.digest
    # With the same limit nobody waits again.
    planned = plan_package(package, HOST, store, linker=linker(), limits=short)
    assert (planned.digest, planned.cached, planned.level) == (hurried.key, True, 1)
    assert install_package(package, HOST, store, linker=linker(), limits=short) == hurried
    assert slow == [3, 1]
    # Who allows more time gets the whole optimisation, and then everybody does.
    assert not plan_package(package, HOST, store, linker=linker(), limits=long).cached
    entry = install_package(package, HOST, store, linker=linker(), limits=long)
    assert (entry.key, slow) == (whole.digest, [3, 1, 3])
    assert Receipt.parse((entry.path / "receipt.json").read_bytes()).level == 3
    assert install_package(package, HOST, store, linker=linker(), limits=short) == entry
    assert slow == [3, 1, 3]


def test_who_waited_for_another_does_not_wait_for_the_limit_again(store: Store, slow: list[int]) -> None:
    package, short = verified(), Limits(seconds=20)
    found: list[object] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(install_package(package, HOST, store, linker=linker(), limits=short))
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len({entry.key for entry in found}) == 1  # type: ignore[attr-defined]
    assert slow == [3, 1]


def test_when_less_optimisation_takes_too_long_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*args: object, **named: object) -> None:
        raise TooSlowError("the compiler took longer than 20 s", hint="raise VISGET_COMPILE_SECONDS")

    monkeypatch.setattr(install, "compile_package", give_up)
    with pytest.raises(ResourceError, match="longer than 20 s") as caught:
        install_package(verified(), HOST, store, linker=linker())
    assert type(caught.value) is ResourceError
    assert leftovers(store) == []


def test_a_damaged_artifact_is_made_again(store: Store) -> None:
    package = verified()
    entry = install_package(package, HOST, store, linker=linker())
    library = entry.path / "lib/libadder.so"
    entry.path.chmod(0o755)
    library.parent.chmod(0o755)
    library.chmod(0o644)
    data = bytearray(library.read_bytes())
    data[-1] ^= 1
    library.write_bytes(bytes(data))
    again = install_package(package, HOST, store, linker=linker())
    assert again.key == entry.key
    data[-1] ^= 1
    assert (again.path / "lib/libadder.so").read_bytes() == bytes(data)


def test_code_is_the_same_each_time(tmp_path: Path) -> None:
    one = install_package(verified(), HOST, fresh_store(tmp_path / "a"), linker=linker())
    two = install_package(verified(), HOST, fresh_store(tmp_path / "b"), linker=linker())
    assert one.key == two.key
    different = {
        a.path for a, b in zip(one.files, two.files, strict=True) if a.sha256 != b.sha256
    }
    assert different <= {"receipt.json"}, "only times may differ"


def test_without_a_linker_the_object_is_kept(store: Store) -> None:
    entry = install_package(verified(), HOST, store, linker=None)
    paths = [file.path for file in entry.files]
    assert "lib/libadder.o" in paths
    assert "lib/libadder.so" not in paths
    receipt = Receipt.parse((entry.path / "receipt.json").read_bytes())
    assert (receipt.artifact, receipt.linker, receipt.answers) == ("object", None, "passed")


@pytest.mark.parametrize(
    ("lines", "what", "changes"),
    [
        ("@slot = internal thread_local global i32 0", "thread-local", {}),
        (
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } "
            "{ i32 65535, ptr @start, ptr null }]\n"
            "@seen = internal global i32 0\n"
            "define internal void @start() #0 {\n  store volatile i32 1, ptr @seen\n  ret void\n}",
            "constructors",
            {"constructors": True},
        ),
    ],
)
def test_what_only_a_linker_makes_work_is_refused_without_one(store: Store, lines, what, changes) -> None:
    text = TEXT.replace("%sum = add i32 %a, %b", "%sum = add i32 %a, %b\n  %t = load volatile i32, ptr @slot", 1)
    text = text if "@slot" in lines else TEXT
    text = text.replace("define signext i32 @adder_add", f"{lines}\n\ndefine signext i32 @adder_add", 1)
    package = verified(text=text, answer=None, **changes)
    with pytest.raises(UnsupportedError, match=what):
        install_package(package, HOST, store, linker=None)
    assert not leftovers(store)
    install_package(package, HOST, store, linker=linker())


def test_wrong_answers_are_not_installed(store: Store) -> None:
    with pytest.raises(CompileError, match="42"):
        install_package(verified(answer=43), HOST, store, linker=linker())
    assert not leftovers(store)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"call": "adder_sub"}, "'adder_sub', which is not among the exported functions"),
        ({"call": "adder_add", "args": [{"int": 1}]}, "1 argument; it takes 2"),
        ({"call": "adder_add", "args": [{"int": 1}, {"float": 2.5}]}, "a float cannot be passed as int"),
        ({"call": "adder_add", "args": [{"int": 1}, {"int": 2**40}]}, "does not fit into the 32 bits"),
        ({"call": "adder_add", "args": [{"int": 1}, {"text": "x"}]}, "int is not a pointer"),
    ],
)
def test_a_vector_that_does_not_fit_is_refused_before_anything_is_compiled(
    store: Store, monkeypatch: pytest.MonkeyPatch, step, says
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr(install, "compile_package", refuse)
    with pytest.raises(RefusedError, match=re.escape(says)) as caught:
        install_package(verified(steps=[step]), HOST, store, linker=linker())
    assert "adder 1.2.3: its vector" in caught.value.message
    assert not leftovers(store)


def test_a_package_without_vectors(store: Store) -> None:
    entry = install_package(verified(answer=None), HOST, store, linker=linker())
    receipt = Receipt.parse((entry.path / "receipt.json").read_bytes())
    assert (receipt.answers, receipt.vectors, receipt.reason) == ("none", 0, "the package has no test vectors")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"text": TEXT.replace("define double", "define internal double")}, "adder_power"),
        ({"imports": ()}, "pow"),
        ({"text": TEXT.replace("@pow(", "@system("), "imports": ("system",)}, "system"),
    ],
)
def test_packages_that_break_their_promise(store: Store, changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(RefusedError, match=complaint):
        install_package(verified(**changes), HOST, store, linker=linker())
    assert not leftovers(store)


def test_a_linker_that_fails_leaves_nothing(store: Store, tmp_path: Path) -> None:
    fake = tmp_path / "ld"
    fake.write_text("#!/bin/sh\necho 'internal error: out of ideas' >&2\nexit 1\n", encoding="ascii")
    fake.chmod(0o755)
    broken = Linker(kind="gnu", command=(str(fake),), version="GNU ld 0")
    with pytest.raises(CompileError, match="out of ideas"):
        install_package(verified(), HOST, store, linker=broken)
    assert not leftovers(store)


def test_a_linker_that_does_something_else_is_caught_by_the_gate(store: Store, tmp_path: Path) -> None:
    other = tmp_path / "ld"
    other.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp input.o "$2"\n', encoding="ascii")
    other.chmod(0o755)
    with pytest.raises(RefusedError, match="not a shared library"):
        install_package(verified(), HOST, store, linker=Linker(kind="gnu", command=(str(other),), version="GNU ld 0"))
    assert not leftovers(store)


def test_two_at_once_compile_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    package, tool, compiled = verified(), linker(), []
    real = install.compile_package

    def count(*arguments: object, **how: object) -> object:
        compiled.append(1)
        return real(*arguments, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(install, "compile_package", count)
    results: list[object] = []

    def work() -> None:
        try:
            results.append(install_package(package, HOST, store, linker=tool).key)
        except VisgetError as error:
            results.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1
    assert isinstance(results[0], str)
    assert len(compiled) == 1


KILLED = """
import sys, time
sys.path[:0] = {paths!r}
from pathlib import Path
from installable import verified
from visget.cache.store import Store
from visget.installer import install
from visget.installer.detect import host_target
from visget.installer.link import find_linker

def stop(*arguments, **more):
    print("now", flush=True)
    time.sleep(60)

install.{stage} = stop
host = host_target()
install.install_package(verified(), host, Store.open(Path({root!r})), linker=find_linker("auto", host))
"""


@pytest.mark.parametrize("stage", ["compile_package", "link_library", "check_answers"])
def test_killed_in_the_middle(store: Store, stage: str) -> None:
    linker()
    code = KILLED.format(paths=[str(Path(__file__).parents[1] / "support")], stage=stage, root=str(store.root))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"now\n"
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert not list((store.root / "native" / "v1").iterdir())
    begun = time.monotonic()
    entry = install_package(verified(), HOST, store, linker=linker())
    assert time.monotonic() - begun < 30, "no stale lock is waited for"
    assert (entry.path / "lib/libadder.so").exists()


def test_a_c_program_links_with_what_is_installed(store: Store, tmp_path: Path) -> None:
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("no C compiler")
    from visget.runtime.pkgconfig import compile_flags, link_flags

    entry = install_package(verified(), HOST, store, linker=linker())
    source = tmp_path / "main.c"
    source.write_text(
        '#include <adder/adder.h>\n#include <stdio.h>\n'
        'int main(void) { printf("%d %g\\n", adder_add(40, 2), adder_power(2, 10)); return 0; }\n',
        encoding="ascii",
    )
    for static in (False, True):
        program = tmp_path / f"main{static}"
        flags = [*compile_flags(entry.path, "adder"), str(source), *link_flags(entry.path, "adder", static=static)]
        subprocess.run([cc, *flags, "-o", program], check=True, cwd=tmp_path)
        assert subprocess.run([program], capture_output=True, check=True).stdout == b"42 1024\n"


@pytest.mark.cross
@pytest.mark.parametrize("arch", ["aarch64", "riscv64"])
def test_installed_for_another_architecture(store: Store, tmp_path: Path, arch: str) -> None:
    emulator = qemu(arch)
    target = baseline(arch, "musl")
    entry = install_package(verified(), target, store, linker=find_linker("auto", target))
    receipt = json.loads((entry.path / "receipt.json").read_bytes())
    assert receipt["answers"] == "not-run"
    assert receipt["target"]["triple"] == f"{arch}-unknown-linux-musl"
    (tmp_path / "main.c").write_text(
        '#include <adder/adder.h>\n#include <stdio.h>\n'
        'int main(void) { printf("%d %d %g\\n", adder_add(40, 2), adder_add(-2147483647, -1), adder_power(2, 10)); }\n',
        encoding="ascii",
    )
    cross_compile(
        target.platform, tmp_path / "main.c", tmp_path / "main", "-static", f"-I{entry.path}/include",
        f"{entry.path}/lib/libadder.a",
    )  # fmt: skip
    done = subprocess.run([*emulator, tmp_path / "main"], capture_output=True, check=True)
    assert done.stdout == b"42 -2147483648 1024\n"
