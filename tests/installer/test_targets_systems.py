"""Libraries for Android, macOS and Windows, read by an independent reader (lief), and what is refused for them."""

import contextlib
import os

import lief
import pytest
from depkit import Workshop, base, middle, package
from native_code import HOST_ARCH, object_of

from visget.errors import RefusedError, UnsupportedError
from visget.installer import pe
from visget.installer.artifact_dir import write_directory
from visget.installer.gate import Promise, gate_library, gate_object
from visget.installer.linkers import find_linker, zig_program
from visget.installer.support_systems import ERRORS, OPEN_FLAGS, adapt
from visget.installer.systems import NAMES
from visget.installer.target import baseline

ANDROID = baseline("aarch64", "android")
MACOS = baseline("aarch64", "macos")
WINDOWS = baseline("x86_64", "windows")
TARGETS = [ANDROID, MACOS, WINDOWS]

pytestmark = pytest.mark.skipif(zig_program() is None, reason="ziglang is not installed")


def shop_for(tmp_path, target):
    return Workshop(tmp_path / "shop", target, find_linker("auto", target))


# Uses errno, a renamed function, variable arguments, a large frame, and assert.
BODY = """
declare ptr @__errno_location() #0
declare i64 @strtol(ptr, ptr, i32 signext) #0
declare void @__assert_fail(ptr, ptr, i32 signext, ptr) #0
declare ptr @memset(ptr, i32 signext, i64) #0
declare signext i32 @memcmp(ptr, ptr, i64) #0
declare double @sin(double) #1
declare double @cos(double) #1
declare void @__vis_va_start(ptr)
declare void @__vis_va_end(ptr)
declare ptr @__vis_va_arg_gp(ptr)
@text = internal constant [5 x i8] c"text\\00"
@stderr = external global ptr
declare signext i32 @fputs(ptr, ptr) #0
define internal i64 @many(i32 signext %n, ...) #2 {
  %list = alloca [4 x i64], align 16
  call void @__vis_va_start(ptr %list)
  %a = call ptr @__vis_va_arg_gp(ptr %list)
  %v = load i64, ptr %a, align 8
  call void @__vis_va_end(ptr %list)
  ret i64 %v
}
define signext i32 @useful_number(i32 signext %x) #0 {
  %room = alloca [20000 x i8], align 16
  %e = call ptr @__errno_location()
  store i32 0, ptr %e, align 4
  %m = call ptr @memset(ptr %room, i32 signext %x, i64 19999)
  %l = call i64 @strtol(ptr %room, ptr null, i32 signext 10)
  %s = load ptr, ptr @stderr, align 8
  %p = call signext i32 @fputs(ptr @text, ptr %s)
  %w = load i32, ptr %e, align 4
  %t = trunc i64 %l to i32
  %u = add i32 %w, %t
  %y = call i64 (i32, ...) @many(i32 signext 1, i64 7)
  %z = trunc i64 %y to i32
  %f = sitofp i32 %x to double
  %g = call double @sin(double %f)
  %h = call double @cos(double %f)
  %i = fadd double %g, %h
  %j = fptosi double %i to i32
  %bad = icmp eq i32 %u, 77
  br i1 %bad, label %no, label %yes
no:
  call void @__assert_fail(ptr @text, ptr @text, i32 signext 1, ptr @text)
  unreachable
yes:
  %k = add i32 %u, %z
  %o = add i32 %k, %j
  ret i32 %o
}
attributes #1 = { nounwind memory(none) "vis" }
attributes #2 = { noinline nounwind "vis" }
"""
IMPORTS = ("__assert_fail", "__errno_location", "cos", "fputs", "memset", "sin", "stderr", "strtol")


def useful(**changes):
    body = BODY.replace("declare signext i32 @memcmp(ptr, ptr, i64) #0\n", "")
    return package("useful", body=body, functions={"useful_number": ("x",)}, **{"imports": IMPORTS, **changes})


def defined(path):
    """The names that a library shows, and those that it takes and from where, as lief reads them."""
    file = lief.parse(str(path))
    if isinstance(file, lief.PE.Binary):
        exports = {entry.name for entry in file.get_export().entries}
        return exports, {(one.name, entry.name) for one in file.imports for entry in one.entries}
    if isinstance(file, lief.MachO.Binary):
        exports = {symbol.name.removeprefix("_") for symbol in file.exported_symbols}
        return exports, {symbol.name.removeprefix("_") for symbol in file.imported_symbols}
    exports = {symbol.name for symbol in file.exported_symbols}
    return exports, {symbol.name for symbol in file.imported_symbols}


def test_android(tmp_path):
    entry = shop_for(tmp_path, ANDROID).install(useful())
    path = entry.path / "lib/libuseful.so"
    file = lief.parse(str(path))
    tag = entry.key[:20]
    assert file.header.machine_type == lief.ELF.ARCH.AARCH64
    assert sorted(file.libraries) == ["libc.so", "libm.so"]
    exports, imports = defined(path)
    assert exports == {"useful_number", f"useful_number.{tag}"}
    assert imports == {"__errno", "__assert2", "memset", "strtol", "sincos", "stderr", "fwrite"}
    loads = [segment for segment in file.segments if segment.type == lief.ELF.Segment.TYPE.LOAD]
    assert all(segment.alignment == 16384 for segment in loads)
    assert not any(file.get_section(".gnu.version_r") is not None for _ in "1" if file.has_section(".gnu.version_r"))


def test_macos(tmp_path):
    entry = shop_for(tmp_path, MACOS).install(useful())
    path = entry.path / "lib/libuseful.dylib"
    file = lief.parse(str(path))
    tag = entry.key[:20]
    assert file.header.cpu_type == lief.MachO.Header.CPU_TYPE.ARM64
    assert file.header.file_type == lief.MachO.Header.FILE_TYPE.DYLIB
    assert [one.name for one in file.libraries if one.command == lief.MachO.LoadCommand.TYPE.ID_DYLIB] == [
        f"@rpath/libuseful-{tag}.dylib"
    ]
    assert [one.name for one in file.libraries if one.command == lief.MachO.LoadCommand.TYPE.LOAD_DYLIB] == [
        "/usr/lib/libSystem.B.dylib"
    ]
    exports, imports = defined(path)
    assert exports - {"_mh_dylib_header", "__dso_handle"} == {"useful_number", f"useful_number.{tag}"}
    assert imports - {"dyld_stub_binder"} == {
        "__error", "__assert_rtn", "memset", "strtol", "__sincos_stret", "__stderrp", "fwrite"
    }  # fmt: skip
    assert file.has_code_signature
    assert not list(entry.path.glob("lib/*.a"))
    assert (entry.path / f"lib/libuseful-{tag}.dylib").read_bytes() == path.read_bytes()


def test_windows(tmp_path):
    entry = shop_for(tmp_path, WINDOWS).install(useful())
    path = entry.path / "lib/libuseful.dll"
    file = lief.parse(str(path))
    tag = entry.key[:20]
    assert file.header.machine == lief.PE.Header.MACHINE_TYPES.AMD64
    assert file.get_export().name == f"libuseful-{tag}.dll"
    exports, imports = defined(path)
    assert exports == {"useful_number", f"useful_number.{tag}"}
    part = "api-ms-win-crt-{}-l1-1-0.dll"
    assert imports == {
        (part.format("runtime"), "_errno"), (part.format("runtime"), "abort"), (part.format("string"), "memset"),
        (part.format("convert"), "strtoll"), (part.format("math"), "sin"), (part.format("math"), "cos"),
        (part.format("stdio"), "__acrt_iob_func"), (part.format("stdio"), "fwrite"),
    }  # fmt: skip
    assert file.optional_header.addressof_entrypoint == 0
    assert not file.has_tls
    members = list(pe.read_import_library((entry.path / "lib/libuseful.dll.a").read_bytes()))
    assert {member.name for member in members} - {""} == exports


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_dependency_lies_beside_it(tmp_path, target):
    shop = shop_for(tmp_path, target)
    first = shop.install(base())
    entry = shop.install(middle(), base())
    made = write_directory(entry, shop.store, tmp_path / "out")
    suffix = {"android": "so", "macos": "dylib", "windows": "dll"}[target.system]
    needed = f"libbase-{first.key[:20]}.{suffix}"
    assert f"lib/{needed}" in made.files
    assert made.packages == ("base 1.0",)
    _, imports = defined(made.path / f"lib/libmiddle.{suffix}")
    taken = {f"base_scale.{first.key[:20]}", f"base_count.{first.key[:20]}"}
    if target.system == "windows":
        taken = {(needed, name) for name in taken}
    assert taken <= imports
    assert taken & {one for one in imports if one in taken} == taken
    if target.system != "windows":
        file = lief.parse(str(made.path / f"lib/libmiddle.{suffix}"))
        assert any(needed in (one if isinstance(one, str) else one.name) for one in file.libraries)
    assert str(tmp_path).encode() not in (made.path / f"lib/libmiddle.{suffix}").read_bytes()


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_equal_input_gives_equal_bytes(tmp_path, target):
    suffix = {"android": "so", "macos": "dylib", "windows": "dll"}[target.system]
    files = [shop_for(tmp_path / name, target).install(base()).path / f"lib/libbase.{suffix}" for name in ("a", "b")
             if (tmp_path / name).mkdir() is None]  # fmt: skip
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("target", "name"),
    [(ANDROID, "pthread_create"), (ANDROID, "localeconv"), (MACOS, "mempcpy"), (MACOS, "pthread_create"),
     (WINDOWS, "printf"), (WINDOWS, "localtime"), (WINDOWS, "read"), (WINDOWS, "clock")],
)  # fmt: skip
def test_what_a_system_does_not_have_is_refused_by_name(tmp_path, target, name):
    with pytest.raises(
        UnsupportedError, match=rf"useful 1\.0 cannot be made for {target.platform}: it uses {name}"
    ) as told:
        shop_for(tmp_path, target).install(useful(imports=tuple(sorted([*IMPORTS, name]))))
    assert told.value.exit_code == 6


def test_thread_local_variables_exceptions_and_start_up_code_are_refused():
    for text, what, systems in [
        ("@x = internal thread_local global i32 0\n", "thread-local variables", NAMES),
        ("define void @f() personality ptr @p {\n  ret void\n}\n", "C\\+\\+ exceptions", NAMES),
        ("@llvm.global_dtors = appending global [0 x { i32, ptr, ptr }] zeroinitializer\n", "destructors",
         ["macos", "windows"]),
        ("@llvm.global_ctors = appending global [0 x { i32, ptr, ptr }] zeroinitializer\n", "constructors",
         ["windows"]),
    ]:  # fmt: skip
        for system in systems:
            with pytest.raises(UnsupportedError, match=what):
                adapt(text, system)
        assert adapt(text, "linux") == text


@pytest.mark.parametrize("system", ["macos", "windows"])
def test_the_address_of_errno_does_not_leave_sight(system):
    head = "declare ptr @__errno_location()\n"
    for body in (
        "  %e = call ptr @__errno_location()\n  call void @g(ptr %e)\n  ret void\n",
        "  %e = call ptr @__errno_location()\n  store ptr %e, ptr @p\n  ret void\n",
        "  store ptr @__errno_location, ptr @p\n  ret void\n",
        "  %e = call ptr @__errno_location()\n  %w = load i64, ptr %e\n  ret void\n",
    ):
        with pytest.raises(UnsupportedError, match="address of errno"):
            adapt(f"{head}define void @f() {{\n{body}}}\n", system)
    with pytest.raises(UnsupportedError, match="address of errno"):
        adapt(f"{head}@p = constant ptr @__errno_location\n", system)
    body = "  %e = call ptr @__errno_location()\n  %w = load i32, ptr %e, align 4\n  ret i32 %w\n"
    plain = f"{head}define i32 @f() {{\n{body}}}\n"
    assert "%w = call i32 @__vis_errno_in(" in adapt(plain, system)


def test_numbers_of_errors_are_translated_both_ways():
    for table in ERRORS.values():
        assert len(set(table.values())) == len(table)
        # What is not in a table stands for itself below 35, on both sides.
        assert not {own for own in table.values() if own < 35} - table.keys()
    assert ERRORS["macos"][11] == 35
    assert all(bin(flag).count("1") == 1 or flag == 0 for flag in OPEN_FLAGS.values())


@pytest.mark.skipif(HOST_ARCH != "x86_64", reason="the code is for x86-64")
def test_the_probe_of_the_stack_changes_no_register(tmp_path):
    import ctypes
    import mmap

    code = pe.read_coff(pe.probe_object()).sections[0].data
    # mov rax, rdi; call it; then tell whether rax still is what it was: sub rax, rdi; ret
    start = bytes.fromhex("4889f8") + b"\xe8" + (4).to_bytes(4, "little") + bytes.fromhex("4829f8c3") + code
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(start)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    probe = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(address)
    assert [probe(size) for size in (0, 8, 4096, 4097, 20000, 300000)] == [0] * 6


def promise(target, **changes):
    return Promise(**{"label": "p 1", "target": target, "exports": frozenset(["f"]), "imports": frozenset(),
                      "constructors": False, **changes})  # fmt: skip


PLAIN = "define i32 @f() {\n  ret i32 1\n}\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (PLAIN + "define i32 @g() {\n  ret i32 1\n}\n", "g is exported by the code but not by the manifest"),
        ("declare i32 @fork()\ndefine i32 @f() {\n  %r = call i32 @fork()\n  ret i32 %r\n}\n", "fork is needed"),
        ("define weak i32 @f() {\n  ret i32 1\n}\n", "is weak"),
        (PLAIN + '@x = global i32 1, section "__DATA,__odd"\n', "section|exported"),
    ],
)
@pytest.mark.parametrize("target", [MACOS, WINDOWS], ids=str)
def test_the_gates_refuse(text, complaint, target):
    if target is WINDOWS:
        text = text.replace("__DATA,__odd", ".odd")
    with pytest.raises(RefusedError, match=complaint):
        gate_object(object_of(text, target), promise(target))


@pytest.mark.parametrize("target", [MACOS, WINDOWS], ids=str)
def test_the_gates_take_what_is_right_and_nothing_of_another_kind(target, tmp_path):
    assert gate_object(object_of(PLAIN, target), promise(target)) == frozenset()
    other = WINDOWS if target is MACOS else MACOS
    for data in (object_of(PLAIN, other), object_of(PLAIN), b"", b"MZ", os.urandom(400)):
        with pytest.raises(RefusedError):
            gate_object(data, promise(target))
        with pytest.raises(RefusedError):
            gate_library(data, promise(target), soname="libp.x")


@pytest.mark.parametrize("target", [MACOS, WINDOWS], ids=str)
def test_damaged_libraries_never_raise_anything_else(tmp_path, target):
    entry = shop_for(tmp_path, target).install(base())
    suffix = {"macos": "dylib", "windows": "dll"}[target.system]
    data = bytearray((entry.path / f"lib/libbase.{suffix}").read_bytes())
    tag = entry.key[:20]
    names = frozenset(["base_scale", "base_count"])
    right = promise(target, exports=names, bound=frozenset(f"{name}.{tag}" for name in names))
    gate_library(bytes(data), right, soname=f"libbase-{tag}.{suffix}")
    with pytest.raises(RefusedError, match="calls itself"):
        gate_library(bytes(data), right, soname="libother.x")
    for place in range(0, 1500, 7):
        changed = bytearray(data)
        changed[place] ^= 0xFF
        with contextlib.suppress(RefusedError):
            gate_library(bytes(changed), right, soname=f"libbase-{tag}.{suffix}")
    for size in range(0, len(data), 997):
        with pytest.raises(RefusedError):
            gate_library(bytes(data[:size]), right, soname=f"libbase-{tag}.{suffix}")
