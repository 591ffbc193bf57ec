"""Packages that are linked with, or merged with, the packages that they depend on."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from depkit import Workshop, base, middle, package, top
from native_code import GENERIC, HOST_ARCH, cross_compile, object_of, qemu

from visget.digest import digest_bytes
from visget.errors import CompileError, RefusedError, UnsupportedError
from visget.installer.binding import Binding, bind, bound_name, check_types, export_types, soname_of
from visget.installer.detect import host_target
from visget.installer.elf import DT_NEEDED, DT_RUNPATH, DT_SONAME, SHT_DYNSYM, read_elf
from visget.installer.gate import Promise, gate_library, gate_object
from visget.installer.link import link_library
from visget.installer.linkers import find_linker
from visget.installer.receipt import LinkedWith, Receipt, read_receipt
from visget.installer.target import baseline
from visget.runtime.library import open_entry

KEY = digest_bytes(b"key")


@pytest.fixture
def shop(tmp_path):
    return linked_by(tmp_path, "auto")


def linked_by(tmp_path, linker):
    target = host_target()
    found = find_linker(linker, target)
    if found is None:
        pytest.skip("there is no linker")
    return Workshop(tmp_path, target, found)


def load(shop, entry, name):
    return open_entry(entry, name=name, version="1.0", find=shop.store.native)


def dynamic(path):
    file = read_elf(path.read_bytes())
    tags = file.dynamic()
    return {
        "needed": [file.dynamic_text(value) for tag, value in tags if tag == DT_NEEDED],
        "soname": [file.dynamic_text(value) for tag, value in tags if tag == DT_SONAME],
        "run path": [file.dynamic_text(value) for tag, value in tags if tag == DT_RUNPATH],
        "defined": sorted(s.name for s in file.symbols(SHT_DYNSYM) if s.defined),
        "undefined": sorted(s.name for s in file.symbols(SHT_DYNSYM) if not s.defined and "." in s.name),
    }


# ---- as libraries of their own --------------------------------------------------------------------------------


@pytest.mark.parametrize("linker", ["lld", "ld", "cc", "zig"])
def test_a_library_needs_the_artifact_that_it_was_linked_with_and_no_other(tmp_path, linker):
    shop = linked_by(tmp_path, linker)
    needed = shop.install(base())
    entry = shop.install(middle(), base())
    tag = needed.key[:20]
    assert dynamic(entry.path / "lib" / "libmiddle.so") == {
        "needed": [f"libbase-{tag}.so"],
        "soname": [f"libmiddle-{entry.key[:20]}.so"],
        "run path": [f"$ORIGIN:$ORIGIN/../../{needed.key}/lib"],
        "defined": sorted(n for f in ("middle_count", "middle_scale") for n in (f, f"{f}.{entry.key[:20]}")),
        "undefined": [f"base_count.{tag}", f"base_scale.{tag}"],
    }
    assert [(need.key, need.path) for need in entry.needs] == [(needed.key, f"lib/libbase-{tag}.so")]
    assert load(shop, entry, "middle").middle_scale(20) == 41


def test_names_of_one_library_are_one_file(shop):
    entry = shop.install(base())
    files = {path.name: path.stat().st_ino for path in (entry.path / "lib").iterdir() if path.is_file()}
    assert files.keys() == {f"libbase-{entry.key[:20]}.so", "libb.a", "libb.so", "libbase.a", "libbase.so"}
    assert files["libb.so"] == files["libbase.so"] == files[f"libbase-{entry.key[:20]}.so"]
    assert files["libb.a"] == files["libbase.a"]


def test_the_key_tells_what_it_was_linked_with(shop):
    plans = [
        shop.plan(middle(), base()),
        shop.plan(middle(), base(factor=3)),
        shop.plan(middle(), base(version="1.1")),
    ]
    assert len({plan.digest for plan in plans}) == 3
    merged = [shop.merge(middle(), base()).key, shop.merge(middle(steps=None), base(factor=4)).key]
    assert len({*merged, plans[0].digest}) == 3
    assert "linked with base 1.0" in plans[0].as_text()
    assert plans[0].as_dict()["dependencies"] == [
        {"name": "base", "version": "1.0", "key": shop.plan(base()).digest}
    ]


def test_two_versions_in_one_process_never_mix(shop):
    """Also when the plain names of one of them are the first that the loader finds for the whole process."""
    old, new = shop.install(middle(), base(factor=2)), shop.install(middle("1.1", steps=None), base(factor=100))
    code = (
        "import ctypes, os, sys\n"
        "first = ctypes.CDLL(sys.argv[1], mode=os.RTLD_GLOBAL)\n"
        "found = [ctypes.CDLL(path) for path in sys.argv[2:]]\n"
        "print([one.middle_scale(20) for one in found], [one.middle_count() for one in found for _ in 'ab'])\n"
    )
    stranger = shop.install(base(factor=7))
    paths = [str(entry.path / "lib" / name) for entry, name in (
        (stranger, "libbase.so"), (old, "libmiddle.so"), (new, "libmiddle.so"))]  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[41, 2001] [1, 2, 1, 2]\n", "")
    libraries = [load(shop, entry, "middle") for entry in (old, new)]
    assert [library.middle_scale(20) for library in libraries] == [41, 2001]


def test_a_library_of_the_system_with_the_same_names_does_not_get_in_between(shop, tmp_path):
    """Such as zlib, which Python itself may have loaded for all."""
    source = tmp_path / "system.c"
    source.write_text("int base_scale(int x) { return -1; }\nint base_count(void) { return -1; }\n")
    if (cc := shutil.which("cc")) is None:
        pytest.skip("there is no C compiler")
    subprocess.run([cc, "-shared", "-fPIC", source, "-o", tmp_path / "libsystem.so"], check=True)
    entry = shop.install(middle(), base())
    code = (
        "import ctypes, os, sys\nctypes.CDLL(sys.argv[1], mode=os.RTLD_GLOBAL)\n"
        "print(ctypes.CDLL(sys.argv[2]).middle_scale(20))\n"
    )
    words = [str(tmp_path / "libsystem.so"), str(entry.path / "lib" / "libmiddle.so")]
    assert subprocess.check_output([sys.executable, "-c", code, *words]) == b"41\n"


def test_what_several_are_linked_with_is_there_once(shop):
    own = base(summary="Loaded by no other test of this process")
    needed, between = shop.dependency(own), shop.dependency(middle(), own)
    entry = shop.link(top(), needed, between)
    assert {need.key for need in entry.needs} == {needed.key, between.key}
    library = load(shop, entry, "top")
    assert library.top_sum(10) == 41
    counts = [load(shop, shop.install(middle(), own), "middle").middle_count() for _ in range(2)]
    counts.append(load(shop, shop.install(own), "base").base_count())
    assert counts == [counts[0], counts[0] + 1, counts[0] + 2]  # one library, whoever calls it


def test_the_receipt_says_what_it_was_linked_with(shop):
    entry = shop.install(middle(), base())
    receipt = read_receipt(entry.path)
    assert receipt.linking == "shared"
    assert receipt.dependencies == (
        LinkedWith(name="base", version="1.0", package=base().digest, key=shop.plan(base()).digest),
    )
    assert Receipt.parse(receipt.encode()) == receipt
    assert ("dependencies", "base 1.0") in receipt.facts()
    assert json.loads((entry.path / "exports.json").read_text()) == {
        "format": "visget-exports-1", "exports": {"middle_count": "i32 ()", "middle_scale": "i32 (i32)"}
    }  # fmt: skip


def test_without_a_linker_there_is_merging_only(shop):
    without = Workshop(shop.store.root.parent, shop.target, None)
    with pytest.raises(UnsupportedError, match=r"is linked with base 1\.0, and there is no linker") as caught:
        without.install(middle(), base())
    assert "--link=static" in caught.value.hint
    assert without.merge(middle(), base()).file("lib/libmiddle.o")


# ---- what does not fit ----------------------------------------------------------------------------------------

CHANGED = """
define i64 @base_scale(i64 %x) #0 {
  ret i64 %x
}
define signext i32 @base_count() #0 {
  ret i32 1
}
"""
GONE = """
define signext i32 @base_count() #0 {
  ret i32 1
}
"""


@pytest.mark.parametrize("merged", [False, True])
def test_a_function_that_changed_its_type_is_named_with_both(shop, merged):
    changed = package("base", "2.0", body=CHANGED, functions={"base_count": (), "base_scale": ("x",)})
    with pytest.raises(RefusedError) as caught:
        (shop.merge if merged else shop.install)(middle(), changed)
    assert (
        "middle 1.0 cannot be linked with base 2.0: base_scale is i64 (i64) there, "
        "and middle 1.0 was built for i32 (i32)" in caught.value.message
    )


@pytest.mark.parametrize("merged", [False, True])
def test_a_function_that_vanished_is_named(shop, merged):
    gone = package("base", "2.0", body=GONE, functions={"base_count": ()})
    with pytest.raises(RefusedError, match="base_scale is not there any more, and middle"):
        (shop.merge if merged else shop.install)(middle(), gone)


def test_all_that_does_not_fit_is_in_the_details():
    uses = [("a", "i32 ()"), ("b", "i32 ()"), ("c", "ptr ()")]
    with pytest.raises(RefusedError, match=r"\(and 1 more\)") as caught:
        check_types("png 1.6", "zlib 2.0", uses, {"b": "i64 ()", "c": "ptr ()"})
    assert caught.value.details == {
        "dependent": "png 1.6", "dependency": "zlib 2.0",
        "symbols": [
            {"symbol": "a", "expected": "i32 ()", "found": None},
            {"symbol": "b", "expected": "i32 ()", "found": "i64 ()"},
        ],
    }  # fmt: skip


def test_what_the_manifest_does_not_use_is_refused(shop):
    with pytest.raises(RefusedError, match="VIS-501"):
        shop.install(middle(uses={"base": {"base_count": "i32 ()"}}), base())
    wrong = {"base": {"base_count": "i32 ()", "base_scale": "i32 (i64)"}}
    body = "define signext i32 @base_scale(i64 %x) #0 {\n  ret i32 1\n}\n"
    agreeing = package("base", body=body + GONE, functions={"base_count": (), "base_scale": ("x",)})
    with pytest.raises(RefusedError, match="VIS-503"):
        shop.install(middle(uses=wrong), agreeing)


# ---- merged ---------------------------------------------------------------------------------------------------


def test_merged_code_is_optimised_as_one_and_needs_nobody(shop):
    entry = shop.merge(top(), base(), middle())
    found = dynamic(entry.path / "lib" / "libtop.so")
    assert (found["needed"], found["run path"], found["undefined"]) == ([], [], [])
    assert found["defined"] == ["top_sum", f"top_sum.{entry.key[:20]}"]
    assert entry.needs == ()
    assert load(shop, entry, "top").top_sum(10) == 41
    # x * 2 + (x * 2 + 1) was calculated by the compiler: two calls would not fit in so few bytes.
    assert (entry.path / "include" / "base.h").exists()
    receipt = read_receipt(entry.path)
    assert (receipt.linking, [item.key for item in receipt.dependencies]) == ("static", [None, None])
    assert ("dependencies", "base 1.0, middle 1.0 (merged into it)") in receipt.facts()


def test_merged_packages_may_export_one_symbol_each_with_the_same_name(shop):
    body = "define signext i32 @helper() #0 {\n  ret i32 %d\n}\n"
    one = package("one", body=body.replace("%d", "1"), functions={"helper": ()})
    other = package("other", body=body.replace("%d", "2"), functions={"helper": ()})
    user = package(
        "user", functions={"user_ask": ()}, needs=("one", "other"), uses={"other": {"helper": "i32 ()"}},
        body="declare signext i32 @helper() #0\n"
        "define signext i32 @user_ask() #0 {\n  %r = call signext i32 @helper()\n  ret i32 %r\n}\n",
    )  # fmt: skip
    assert load(shop, shop.merge(user, one, other), "user").user_ask() == 2
    assert load(shop, shop.install(user, one, other), "user").user_ask() == 2


# ---- gates ----------------------------------------------------------------------------------------------------

USER = "declare i32 @f()\ndefine i32 @g() {\n  %r = call i32 @f()\n  ret i32 %r\n}\n"
TAG = KEY[:20]


def promise(**changes):
    wish = Promise(
        label="user 1.0", target=GENERIC, exports=frozenset(["g"]), imports=frozenset(), constructors=False,
        bound=frozenset([f"g.{TAG}"]), taken=frozenset([f"f.{TAG}"]), libraries=frozenset([f"libdep-{TAG}.so"]),
        run_path="$ORIGIN:$ORIGIN/../../x/lib",
    )  # fmt: skip
    return replace(wish, **changes)


def linked(tmp_path, **how):
    content = object_of(bind(USER, ["g"], Binding(tag=TAG, taken={"f": TAG})))
    settings = {"libraries": {f"libdep-{TAG}.so": [f"f.{TAG}"]}, "run_path": "$ORIGIN:$ORIGIN/../../x/lib", **how}
    linker = find_linker("auto", GENERIC)
    if linker is None:
        pytest.skip("there is no linker")
    return link_library(
        linker, content, target=GENERIC, soname="libuser.so", exports=["g", f"g.{TAG}"], needed=[f"f.{TAG}"],
        scratch=tmp_path, **settings,
    ).library  # fmt: skip


def test_the_gates_accept_exactly_what_was_promised(tmp_path):
    content = object_of(bind(USER, ["g"], Binding(tag=TAG, taken={"f": TAG})))
    assert gate_object(content, promise()) == {f"f.{TAG}"}
    assert gate_library(linked(tmp_path), promise(), soname="libuser.so") == (f"libdep-{TAG}.so",)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"run_path": None}, "a library search path"),
        ({"run_path": "$ORIGIN"}, "its library search path is"),
        ({"libraries": frozenset()}, "which is not part of the C library"),
        ({"libraries": frozenset(["libother.so"])}, "which is not part of the C library"),
        ({"taken": frozenset()}, "is needed but not among the manifest's imports"),
        ({"bound": frozenset()}, "is exported by the code but not by the manifest"),
        ({"bound": frozenset([f"g.{TAG}", f"h.{TAG}"])}, "is exported by the manifest but not by the code"),
    ],
)
def test_the_gate_refuses_anything_else(tmp_path, changes, why):
    with pytest.raises(RefusedError, match=why):
        gate_library(linked(tmp_path), promise(**changes), soname="libuser.so")


def test_a_run_path_is_needed_where_it_was_promised(tmp_path):
    with pytest.raises(RefusedError, match="search path is missing"):
        gate_library(linked(tmp_path, run_path=None), promise(), soname="libuser.so")


def test_a_name_that_nobody_provides_is_an_error_of_the_linker(tmp_path):
    with pytest.raises(CompileError, match=rf"f\.{TAG}"):
        linked(tmp_path, libraries={})


# ---- names ----------------------------------------------------------------------------------------------------


def test_binding_changes_names_and_nothing_in_strings():
    text = '@s = constant [4 x i8] c"@f()"\n' + USER + '@"f" = global i32 0\n'
    found = bind(text, ["g"], Binding(tag="t1", taken={"f": "t2", "fo": "t3"}))
    assert 'c"@f()"' in found
    assert "declare i32 @f.t2()" in found
    assert "call i32 @f.t2()" in found
    assert '@"f" = global' in found
    assert found.endswith("@g.t1 = alias void (), ptr @g\n")
    assert bound_name("f", "t") == "f.t"
    assert soname_of("zlib", KEY) == f"libzlib-{TAG}.so"


def test_types_of_exports_are_read_from_definitions_and_aliases():
    text = (
        "define signext i32 @a(ptr noundef %p, ...) #0 {\n  ret i32 0\n}\ndefine internal void @b() {\n  ret void\n}\n"
        "@c = alias i32 (ptr, ...), ptr @a\n@d = alias i32 (ptr, ...), ptr @c\n"
    )
    assert export_types(text, ["a", "c", "d", "e"]) == dict.fromkeys("acd", "i32 (ptr, ...)")


# ---- other processors -----------------------------------------------------------------------------------------

PROGRAM = '#include <stdio.h>\nint top_sum(int);\nint main(void) { printf("%d\\n", top_sum(10)); return 0; }\n'


@pytest.mark.cross
@pytest.mark.parametrize("arch", [arch for arch in ("x86_64", "aarch64", "riscv64") if arch != HOST_ARCH])
@pytest.mark.parametrize("merged", [False, True])
def test_libraries_find_each_other_on_other_processors(tmp_path, arch, merged):
    target = baseline(arch, "gnu")
    linker = find_linker("auto", target)
    sysroot = f"/usr/{arch}-linux-gnu"
    if linker is None or not Path(sysroot).is_dir():
        pytest.skip(f"there is no linker or no C library for {arch}")
    shop = Workshop(tmp_path, target, linker)
    if merged:
        entry = shop.merge(top(), base(), middle())
    else:
        entry = shop.link(top(), shop.dependency(base()), shop.dependency(middle(), base()))
    (tmp_path / "main.c").write_text(PROGRAM)
    lib = entry.path / "lib"
    cross_compile(
        f"{arch}-linux-gnu.2.36", tmp_path / "main.c", tmp_path / "main", f"-L{lib}", f"-Wl,-rpath,{lib}", "-ltop"
    )
    done = subprocess.run([*qemu(arch), "-L", sysroot, tmp_path / "main"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("41\n", "")


def test_a_c_program_is_linked_with_the_whole_chain(shop, tmp_path):
    if (cc := shutil.which("cc")) is None:
        pytest.skip("there is no C compiler")
    entry = shop.link(top(), shop.dependency(base()), shop.dependency(middle(), base()))
    (tmp_path / "main.c").write_text(PROGRAM)
    lib = entry.path / "lib"
    words = [f"-L{lib}", f"-Wl,-rpath,{lib}", "-ltop"]
    subprocess.run([cc, tmp_path / "main.c", "-o", tmp_path / "main", *words], check=True)
    assert subprocess.check_output([tmp_path / "main"]) == b"41\n"
    if shutil.which("pkg-config"):
        env = {"PKG_CONFIG_PATH": str(lib / "pkgconfig"), "PATH": "/usr/bin:/bin"}
        words = subprocess.check_output(
            ["pkg-config", "--cflags", "--libs", "top"], env=env, text=True
        ).split()
        assert f"-I{shop.install(base()).path / 'include'}" in [
            "-I" + str(os.path.normpath(word[2:])) for word in words if word.startswith("-I")
        ]
