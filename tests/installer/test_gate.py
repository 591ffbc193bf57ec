from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from native_code import EXPORTS, GENERIC, IMPORTS, SIMPLE, exported, object_of, promise, zig

from visget.errors import EXIT_REFUSED, RefusedError
from visget.installer import elf
from visget.installer.clibrary import LOADERS, stand_ins
from visget.installer.codegen import Machine, generate
from visget.installer.gate import Promise, gate_library, gate_object
from visget.installer.legalise import name_personality
from visget.installer.link import find_linker, link_library
from visget.installer.symbols import SUPPORT_CALLS
from visget.installer.target import ARCHITECTURES, LIBCS, baseline

llvm.initialize_all_targets()
llvm.initialize_all_asmparsers() if hasattr(llvm, "initialize_all_asmparsers") else llvm.initialize_native_asmparser()
FUNCTION = "define i32 @f() {\n  ret i32 1\n}\n"
ONLY_F = promise(exports=frozenset(["f"]), imports=frozenset())


def violations(content: bytes, wish: Promise) -> list[str]:
    with pytest.raises(RefusedError) as caught:
        gate_object(content, wish)
    assert caught.value.exit_code == EXIT_REFUSED
    assert "sample 1.0" in caught.value.message
    found = caught.value.details["violations"]
    assert isinstance(found, list)
    assert all(text in caught.value.message for text in found)
    return found


@pytest.mark.parametrize("libc", LIBCS)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_good_objects_pass(arch: str, libc: str) -> None:
    target = baseline(arch, libc)
    assert gate_object(object_of(SIMPLE, target), promise(target=target)) == IMPORTS


def test_what_the_compiler_calls_by_itself_is_allowed() -> None:
    text = """
    define void @f(ptr %d, ptr %s, i64 %n) {
      call void @llvm.memcpy.p0.p0.i64(ptr %d, ptr %s, i64 %n, i1 false)
      ret void
    }
    define i128 @g(i128 %a, i128 %b) {
      %q = udiv i128 %a, %b
      ret i128 %q
    }
    declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
    """
    assert gate_object(object_of(text), promise(frozenset(["f", "g"]), frozenset())) == {"memcpy", "__udivti3"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(
            "define ptr @choose() {\n  ret ptr null\n}\n@f = ifunc i32 (), ptr @choose\n",
            "f is an indirect function (ifunc)", id="ifunc",
        ),
        pytest.param(
            "@a = internal constant ptr @f, section \".init_array\"\n@llvm.used = appending global [1 x ptr] [ptr @a], "
            "section \"llvm.metadata\"\n",
            "section .init_array runs code at loading, which its manifest does not announce", id="init_array",
        ),
        pytest.param(
            "@a = internal constant ptr @f, section \".fini_array.00007\"\n@llvm.used = appending global [1 x ptr] "
            "[ptr @a], section \"llvm.metadata\"\n",
            "section .fini_array.00007 runs code at loading, which its manifest does not announce", id="fini_array",
        ),
        pytest.param(
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } "
            "{ i32 65535, ptr @f, ptr null }]\n",
            "section '.ctors' is not one that packages may have", id="ctors",
        ),
        pytest.param(
            "@a = internal constant ptr @f, section \".preinit_array\"\n@llvm.used = appending global [1 x ptr] "
            "[ptr @a], section \"llvm.metadata\"\n",
            "section '.preinit_array' is not one that packages may have", id="preinit_array",
        ),
        pytest.param(
            "!llvm.dependent-libraries = !{!0}\n!0 = !{!\"evil\"}\n",
            "section '.deplibs' is not one that packages may have", id="deplibs",
        ),
        pytest.param(
            'module asm ".section .text.wx,\\22awx\\22"\nmodule asm ".byte 1"\n',
            "section .text.wx is both writable and executable", id="writable-code",
        ),
        pytest.param(
            'module asm ".section .note.GNU-stack,\\22x\\22"\n', "it asks for an executable stack", id="exec-stack",
        ),
        pytest.param(
            'module asm ".section .interp,\\22a\\22"\nmodule asm ".byte 1"\n',
            "section '.interp' is not one that packages may have", id="interp",
        ),
        pytest.param(
            "define i32 @g() {\n  ret i32 1\n}\n", "g is exported by the code but not by the manifest", id="extra",
        ),
        pytest.param("@v = global i32 1\n", "v is exported by the code but not by the manifest", id="extra-variable"),
        pytest.param(
            "@v = hidden global i32 1\n", "v is exported by the code but not by the manifest", id="hidden-extra",
        ),
        pytest.param(
            "@c = common global i32 0\n", "c is exported by the code but not by the manifest", id="common",
        ),
        pytest.param(
            "$d = comdat any\n@d = linkonce_odr constant i32 1, comdat\n@llvm.used = appending global [1 x ptr] "
            "[ptr @d], section \"llvm.metadata\"\n",
            "it has section groups, whose symbols other files could replace", id="comdat",
        ),
        pytest.param(
            'module asm ".data"\nmodule asm ".globl u"\nmodule asm ".type u,@gnu_unique_object"\n'
            'module asm "u: .byte 1"\n',
            "u is a symbol that all libraries of a process share (STB_GNU_UNIQUE)", id="unique",
        ),
        pytest.param(
            "declare void @surprise()\ndefine internal void @h() {\n  call void @surprise()\n  ret void\n}\n"
            "@k = internal global ptr @h\n@llvm.used = appending global [1 x ptr] [ptr @k], "
            "section \"llvm.metadata\"\n",
            "surprise is needed but not among the manifest's imports", id="import",
        ),
        pytest.param(
            "@\"a b\" = global i32 1\n", "'a b' is not a name that a symbol may have", id="name",
        ),
        pytest.param("@big = internal global [300000000 x i8] zeroinitializer\n@llvm.used = appending global [1 x ptr] "
            "[ptr @big], section \"llvm.metadata\"\n",
            "it has 286 MiB of variables; the limit is 256 MiB", id="big",
        ),
    ],
)  # fmt: skip
def test_bad_objects(text: str, complaint: str) -> None:
    content = object_of(text if " @f =" in text or "@f = ifunc" in text else FUNCTION + text)
    assert complaint in violations(content, ONLY_F)


def test_all_violations_are_told_at_once() -> None:
    text = FUNCTION + (
        "define i32 @g() {\n  ret i32 1\n}\n"
        "declare i32 @x()\ndefine i32 @h() {\n  %r = call i32 @x()\n  ret i32 %r\n}\n"
    )
    found = violations(object_of(text), promise(exports=frozenset(["f", "missing"]), imports=frozenset()))
    assert found == [
        "missing is exported by the manifest but not by the code",
        "g is exported by the code but not by the manifest",
        "h is exported by the code but not by the manifest",
        "x is needed but not among the manifest's imports",
    ]


def test_announced_constructors_pass() -> None:
    text = FUNCTION + (
        '@a = internal constant ptr @f, section ".init_array"\n'
        '@llvm.used = appending global [1 x ptr] [ptr @a], section "llvm.metadata"\n'
    )
    gate_object(object_of(text), promise(frozenset(["f"]), frozenset(), constructors=True))


def test_hidden_exports() -> None:
    content = object_of("define hidden i32 @f() {\n  ret i32 1\n}\n")
    assert violations(content, ONLY_F) == ["f is exported by the manifest but hidden in the code"]


def test_thread_local_exports() -> None:
    content = object_of("@f = thread_local global i32 1\n")
    assert "f is a thread-local variable, which cannot be exported" in violations(content, ONLY_F)


def test_names_that_belong_to_the_process() -> None:
    content = object_of("define ptr @malloc(i64 %n) {\n  ret ptr null\n}\n")
    found = violations(content, promise(frozenset(["malloc"]), frozenset()))
    assert len(found) == 1
    assert found[0].startswith("malloc must not be exported: ")


def test_objects_for_another_processor() -> None:
    other = baseline("aarch64" if GENERIC.arch != "aarch64" else "x86_64", "gnu")
    found = violations(object_of(SIMPLE, other), promise())
    assert any("another processor" in text for text in found)


def test_another_calling_convention() -> None:
    riscv = baseline("riscv64", "gnu")
    content = bytearray(object_of(FUNCTION, riscv))
    gate_object(bytes(content), promise(frozenset(["f"]), frozenset(), riscv))
    content[48] = 0x03  # single-float instead of double-float
    found = violations(bytes(content), promise(frozenset(["f"]), frozenset(), riscv))
    assert any("another calling convention" in text for text in found)
    content[48] = 0x04  # without compressed instructions: fits
    gate_object(bytes(content), promise(frozenset(["f"]), frozenset(), riscv))


def test_what_is_no_object() -> None:
    assert violations(b"", ONLY_F) == ["not a 64-bit little-endian ELF file"]
    content = object_of(FUNCTION)
    assert violations(content[:-10], ONLY_F) == ["the section table of the ELF file lies outside it"]
    executable = bytearray(content)
    executable[16] = 2
    assert violations(bytes(executable), ONLY_F) == ["it is not an object file (e_type 2)"]


GOOD = ("-Bsymbolic", "-z", "now", "-z", "relro", "-z", "noexecstack", "--build-id=none", "-soname", "libf.so")


def library(directory: Path, *options: str, text: str = FUNCTION, without: str = "") -> bytes:
    """Link `text` with options that a library should not have been linked with."""
    (directory / "f.o").write_bytes(object_of(text))
    good = [option for option in GOOD if option != without]
    subprocess.run(
        [zig(), "ld.lld", "-shared", *good, *options, "f.o", "-o", "libf.so"],
        cwd=directory, check=True, capture_output=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(directory), "ZIG_GLOBAL_CACHE_DIR": str(directory)},
    )  # fmt: skip
    return (directory / "libf.so").read_bytes()


def library_violations(data: bytes, wish: Promise = ONLY_F, soname: str = "libf.so") -> list[str]:
    with pytest.raises(RefusedError) as caught:
        gate_library(data, wish, soname=soname)
    found = caught.value.details["violations"]
    assert isinstance(found, list)
    return found


def test_a_good_library_passes(tmp_path: Path) -> None:
    assert gate_library(library(tmp_path), ONLY_F, soname="libf.so") == ()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("-rpath", "/tmp", "--disable-new-dtags"), "it has a library search path (DT_RPATH)"),
        (("-rpath", "$ORIGIN", "--enable-new-dtags"), "it has a library search path (DT_RUNPATH)"),
        (("-z", "execstack"), "it asks for an executable stack"),
        (("-z", "norelro"), "its dynamic section stays writable (no RELRO)"),
        (("-init=f",), "it has an initialisation function (DT_INIT)"),
        (("-fini=f",), "it has a termination function (DT_FINI)"),
        (("-F", "libother.so"), "it has a filtered library (DT_FILTER)"),
        (("-f", "libother.so"), "it has an auxiliary library (DT_AUXILIARY)"),
        (("-soname", "libother.so"), "it calls itself libother.so and not libf.so"),
        (("--build-id=sha1",), "section '.note.gnu.build-id' is not one that packages may have"),
    ],
)
def test_bad_libraries(tmp_path: Path, options: tuple[str, ...], complaint: str) -> None:
    assert complaint in library_violations(library(tmp_path, *options))


@pytest.mark.parametrize(
    ("tag", "complaint"),
    [
        (0x6FFFFEFC, "it has an audit library (DT_AUDIT)"),
        (0x6FFFFEFB, "it has an audit library (DT_DEPAUDIT)"),
        (22, "it has relocations in code (DT_TEXTREL)"),
        (32, "it has functions that run before all others (DT_PREINIT_ARRAY)"),
    ],
)
def test_tags_that_lld_never_writes(tmp_path: Path, tag: int, complaint: str) -> None:
    data = library(tmp_path)
    # One of the tags that the gate does not look at becomes the bad one: DT_SYMENT, always 24.
    assert data.count(struct.pack("<QQ", 11, 24)) == 1
    data = data.replace(struct.pack("<QQ", 11, 24), struct.pack("<QQ", tag, 24))
    assert complaint in library_violations(data)


def test_libraries_that_need_strangers(tmp_path: Path) -> None:
    (tmp_path / "e.o").write_bytes(object_of("define i32 @e() {\n  ret i32 1\n}\n"))
    subprocess.run(
        [zig(), "ld.lld", "-shared", "-soname", "libevil.so.1", "e.o", "-o", "libevil.so"],
        cwd=tmp_path, check=True, env={"HOME": str(tmp_path), "ZIG_GLOBAL_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    found = library_violations(library(tmp_path, "--no-as-needed", "libevil.so"))
    assert found == ["it needs 'libevil.so.1', which is not part of the C library"]


def test_relocations_in_code(tmp_path: Path) -> None:
    text = 'module asm ".text"\nmodule asm ".quad f"\n' + FUNCTION
    found = library_violations(library(tmp_path, "-z", "notext", text=text))
    assert any("relocations in code" in complaint for complaint in found)


def test_libraries_with_indirect_functions(tmp_path: Path) -> None:
    text = "define internal ptr @choose() {\n  ret ptr null\n}\n@f = ifunc i32 (), ptr @choose\n"
    assert "f is an indirect function (ifunc)" in library_violations(library(tmp_path, text=text))
    # Hidden and called by itself: only the relocation that asks the loader to run it is left.
    text = (
        "define internal ptr @choose() {\n  ret ptr null\n}\n@i = hidden ifunc i32 (), ptr @choose\n"
        "define i32 @f() {\n  %r = call i32 @i()\n  ret i32 %r\n}\n"
    )
    found = library_violations(library(tmp_path, "-s", text=text))
    assert any("IRELATIVE" in complaint for complaint in found)


def test_libraries_with_other_exports(tmp_path: Path) -> None:
    text = FUNCTION + "define i32 @g() {\n  ret i32 1\n}\n"
    found = library_violations(library(tmp_path, text=text))
    assert found == ["g is exported by the code but not by the manifest"]
    found = library_violations(library(tmp_path), promise(frozenset(["f", "g"]), frozenset()))
    assert found == ["g is exported by the manifest but not by the code"]


def test_libraries_with_unknown_needs(tmp_path: Path) -> None:
    text = "declare i32 @x()\ndefine i32 @f() {\n  %r = call i32 @x()\n  ret i32 %r\n}\n"
    found = library_violations(library(tmp_path, text=text))
    assert found == ["x is needed but not among the manifest's imports"]


def test_libraries_with_unannounced_constructors(tmp_path: Path) -> None:
    text = FUNCTION + (
        '@a = internal constant ptr @f, section ".init_array"\n'
        '@llvm.used = appending global [1 x ptr] [ptr @a], section "llvm.metadata"\n'
    )
    data = library(tmp_path, text=text)
    found = library_violations(data)
    assert "it has constructors or destructors that its manifest does not announce" in found
    gate_library(data, promise(frozenset(["f"]), frozenset(), constructors=True), soname="libf.so")


def test_segments_that_are_writable_and_executable(tmp_path: Path) -> None:
    data = bytearray(library(tmp_path))
    start = int.from_bytes(data[32:40], "little")
    count = int.from_bytes(data[56:58], "little")
    loads = [start + 56 * n for n in range(count) if data[start + 56 * n] == 1 and not data[start + 56 * n + 2]]
    data[loads[0] + 4] |= 3
    assert "it has a segment that is both writable and executable" in library_violations(bytes(data))


def test_libraries_with_an_interpreter(tmp_path: Path) -> None:
    data = bytearray(library(tmp_path))
    start = int.from_bytes(data[32:40], "little")
    data[start : start + 4] = (3).to_bytes(4, "little")
    assert "it names a program interpreter" in library_violations(bytes(data))


def test_what_is_no_library(tmp_path: Path) -> None:
    assert library_violations(b"\x7fELF") == ["not a 64-bit little-endian ELF file"]
    assert "it is not a shared library (e_type 1)" in library_violations(object_of(FUNCTION))
    assert promise().exports == EXPORTS
    assert exported(FUNCTION) == {"f"}


def with_section(data: bytes, field: int, value: int, *, size: int = 4) -> bytes:
    """Return `data` with another value in the header of its section .text."""
    changed = bytearray(data)
    table = int.from_bytes(data[40:48], "little")
    names = table + 64 * int.from_bytes(data[62:64], "little")
    strings = data[int.from_bytes(data[names + 24 : names + 32], "little") :]
    for number in range(int.from_bytes(data[60:62], "little")):
        header = table + 64 * number
        name = int.from_bytes(data[header : header + 4], "little")
        if strings[name : strings.index(b"\0", name)] == b".text":
            changed[header + field : header + field + size] = value.to_bytes(size, "little")
    return bytes(changed)


@pytest.mark.parametrize("kind", [12, 14, 15, 16, 0x6FFF4C01, 0x6FFF4C04, 0x6FFFFFF5, 0x7FFFFFFF])
def test_sections_of_types_that_make_linkers_act(kind: int) -> None:
    """A harmless name proves nothing: the type counts too."""
    found = violations(with_section(object_of(FUNCTION), 4, kind), ONLY_F)
    assert found == [f"section .text has the type {kind:#x}, which packages may not have"]


def test_alignments_that_would_blow_up_the_library() -> None:
    content = object_of(FUNCTION)
    assert violations(with_section(content, 48, 1 << 32, size=8), ONLY_F) == [
        "section .text is aligned to 4294967296 bytes; the limit is 65536"
    ]
    assert gate_object(with_section(content, 48, 1 << 16, size=8), ONLY_F) == frozenset()


@pytest.mark.parametrize("tag", [0x6FFFFEFA, 0x7FFFFFFE, 29 + 4, 0x6FFFFDF8, 0x12345678, -(1 << 63)])
def test_tags_that_no_package_may_have(tmp_path: Path, tag: int) -> None:
    data = library(tmp_path).replace(struct.pack("<QQ", 11, 24), struct.pack("<qQ", tag, 24))
    assert f"its dynamic section has the tag {tag:#x}, which packages may not have" in library_violations(data)


@pytest.mark.parametrize(
    ("tag", "flags"), [(30, 1), (30, 8 | 1), (0x6FFFFFFB, 0x2), (0x6FFFFFFB, 0x20), (0x6FFFFFFB, 0x400 | 1)]
)
def test_requests_to_the_loader(tmp_path: Path, tag: int, flags: int) -> None:
    """Being global, being initialised first, standing in for others (DF_1_INTERPOSE), finding things by $ORIGIN."""
    data = library(tmp_path).replace(struct.pack("<QQ", 11, 24), struct.pack("<QQ", tag, flags))
    unknown = flags & ~(8 if tag == 30 else 1)
    assert f"it asks the loader for something that packages may not have (flags {unknown:#x})" in library_violations(
        data
    )


LANDING = """
declare void @g()
declare void @h()
define internal i32 @__gxx_personality_v0(i32 %a, i32 %b, i64 %c, ptr %d, ptr %e) {
  ret i32 8
}
define i32 @f() uwtable personality ptr @__gxx_personality_v0 {
  invoke void @g() to label %on unwind label %off
on:
  ret i32 1
off:
  %what = landingpad { ptr, i32 } cleanup
  call void @h()
  resume { ptr, i32 } %what
}
"""
WITH_G = promise(frozenset(["f"]), frozenset(["g", "h"]))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_landing_pads_pass_when_their_function_bears_the_package_s_mark(arch: str) -> None:
    """Under its usual name it is in a group that a program's own would be folded with."""
    target = baseline(arch, "gnu")
    machine = Machine(triple=target.triple, cpu=target.cpu, features=target.flattened)
    content = generate(LANDING, machine, exports=["f"], announce=lambda stage: None).object
    assert b"DW.ref.vis_personality_" in content
    needed = gate_object(content, promise(frozenset(["f"]), frozenset(["g", "h"]), target))
    assert needed == {"g", "h", "_Unwind_Resume"}
    assert stand_ins(target, needed, SUPPORT_CALLS)["libgcc_s.so.1"] == ["_Unwind_Resume"]
    usual = violations(object_of(LANDING, target), promise(frozenset(["f"]), frozenset(["g", "h"]), target))
    assert "it has section groups, whose symbols other files could replace" in usual
    assert "DW.ref.__gxx_personality_v0 is exported by the code but not by the manifest" in usual


def test_two_packages_have_two_marks() -> None:
    renamed = [name_personality(LANDING, exports) for exports in (["f"], ["f", "g"], ["f"])]
    assert renamed[0] == renamed[2] != renamed[1]
    assert "__gxx_personality_v0" not in renamed[0]
    assert name_personality('c"@__gxx_personality_v0" @__gxx_personality_v01', []) == (
        'c"@__gxx_personality_v0" @__gxx_personality_v01'
    )


def test_a_mark_that_others_can_see_is_none() -> None:
    """Hidden, or it would be exported."""
    name = "DW.ref.vis_personality_" + "0" * 16
    module = f'module asm ".data"\nmodule asm ".weak {name}"\nmodule asm "{name}: .quad 0"\n'
    assert violations(object_of(FUNCTION + module), ONLY_F) == [
        f"{name} is exported by the code but not by the manifest",
        f"{name!r} is not a name that a symbol may have",
    ]


def test_groups_that_lead_nowhere() -> None:
    content = bytearray(object_of(LANDING))
    file = elf.read_elf(bytes(content))
    table = int.from_bytes(content[40:48], "little")
    group = 1 + next(n for n, section in enumerate(file.sections) if section.type == elf.SHT_GROUP)
    for field, value, complaint in ((44, 1 << 20, "names a symbol that is not there"), (40, 999, "no symbol table")):
        changed = bytearray(content)
        changed[table + 64 * group + field : table + 64 * group + field + 4] = value.to_bytes(4, "little")
        found = violations(bytes(changed), WITH_G)
        assert len(found) == 1 and complaint in found[0]


THREADS = "@v = internal thread_local{model} global [{size} x i8] zeroinitializer\n" + (
    "define ptr @f() {{\n  %p = call ptr @llvm.threadlocal.address.p0(ptr @v)\n  ret ptr %p\n}}\n"
    "declare ptr @llvm.threadlocal.address.p0(ptr)\n"
)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_variables_of_threads_are_found_by_a_call(tmp_path: Path, arch: str) -> None:
    """Libraries that are loaded late have no other place for them."""
    target = baseline(arch, "gnu")
    wish = promise(frozenset(["f"]), frozenset(), target)
    linker = find_linker("zig", target)
    assert linker is not None
    for model, passes in (("", True), ("(localdynamic)", True), ("(initialexec)", False)):
        content = object_of(THREADS.format(model=model, size=100), target)
        needed = gate_object(content, wish)
        made = link_library(
            linker, content, target=target, soname="libf.so", exports=["f"], needed=needed, scratch=tmp_path
        )
        if passes:
            loader = gate_library(made.library, wish, soname="libf.so")
            assert set(loader) <= {LOADERS[arch]}
        else:
            assert library_violations(made.library, wish) == [
                "it wants its thread-local variables where there is room for few libraries (static TLS)"
            ]


def test_variables_of_threads_are_few(tmp_path: Path) -> None:
    target = GENERIC
    linker = find_linker("zig", target)
    assert linker is not None
    content = object_of(THREADS.format(model="", size=3 << 20), target)
    made = link_library(
        linker, content, target=target, soname="libf.so", exports=["f"], needed=["__tls_get_addr"], scratch=tmp_path
    )
    assert library_violations(made.library) == [
        "it has 3072 KiB of variables for each thread; the limit is 1024 KiB"
    ]
