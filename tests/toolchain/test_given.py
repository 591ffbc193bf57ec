"""`visget build --from compile_commands.json` and `--from-bitcode x.bc --api x.h`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from buildkit import frontend, write
from systemkit import CHECK, SOURCES

from visget.errors import BuildError, RefusedError, UsageError
from visget.format.lines import LineTable
from visget.format.module import parse_bitcode, text_of
from visget.toolchain.builder import BuildResult, build_package
from visget.toolchain.compiledb import read_database
from visget.toolchain.inputs import Given
from visget.toolchain.project import read_project

HEAD = '[package]\nname = "tiny"\nversion = "1.0"\nsummary = "A sample"\nlicense = "MIT"\n'


@pytest.fixture(autouse=True)
def _wrappers() -> None:
    if not (Path(sys.executable).parent / "visget-cc").exists():
        pytest.skip("visget-cc is not installed here")


def project(root: Path, extra: str = "", files: dict[str, str] | None = None) -> Path:
    write(root, {**SOURCES, "check.c": CHECK, "out/config.h": "#define TINY_FACTOR 3\n", **(files or {})})
    (root / "visget.toml").write_text(f'{HEAD}{extra}\n[exports]\nheaders = ["tiny.h"]\n')
    return root


def database(root: Path, entries: list[dict[str, object]]) -> Path:
    path = root / "compile_commands.json"
    path.write_text(json.dumps(entries))
    return path


def entry(root: Path, name: str, output: str, *flags: str) -> dict[str, object]:
    return {
        "directory": str(root / "out"), "file": str(root / name), "output": output,
        "arguments": ["/usr/bin/cc", "-O3", "-march=native", "-g", f"-I{root}/include", "-I../src", "-I.", *flags,
                      "-o", output, "-c", f"../{name}"],
    }  # fmt: skip


def given_build(root: Path, given: Given, **arguments: object) -> BuildResult:
    parsed = read_project(root, given=True, headers=bool(given.headers))
    return build_package(parsed, cache=root.parent / "cache", given=given, **arguments)  # type: ignore[arg-type]


def entries_of(root: Path) -> list[dict[str, object]]:
    return [
        entry(root, "src/add.c", "lib.dir/add.c.o"),
        entry(root, "src/deep/add.c", "lib.dir/deep/add.c.o"),
        entry(root, "check.c", "check.dir/check.c.o"),
    ]


def test_a_compilation_database(tmp_path: Path) -> None:
    root = project(tmp_path / "tiny", '[build]\nlibrary = ["lib.dir/*.o"]\n')
    listed = entries_of(root)
    path = database(root, [*listed, listed[0]])  # an entry that is there twice is one
    result = given_build(root, Given(database=path), jobs=2)
    assert result.package.manifest.exports == ("tiny_add", "tiny_where")
    assert result.package.manifest.provenance.flags[0] == "system=compile_commands.json"
    lines = LineTable.parse(result.package.section("lines") or b"")
    assert lines.files == ("src/add.c", "src/deep/add.c")
    names = [name for name, _ in result.sources_used]
    assert names == ["include/tiny.h", "out/config.h", "src/add.c", "src/deep/add.c", "src/own.h"]


def test_commands_as_one_text(tmp_path: Path) -> None:
    root = project(tmp_path / "ti ny", '[build]\nlibrary = ["add.c"]\n')
    command = f"ccache gcc -DX='\"a b\"' '-I{root}/include' -I../src -I. -c ../src/add.c -o a.o"
    listed: list[dict[str, object]] = [
        {"directory": str(root / "out"), "file": f"../src/{name}", "command": command.replace("add.c", name)}
        for name in ("add.c", "deep/add.c")
    ]
    result = given_build(root, Given(database=database(root, listed)))
    assert result.package.manifest.exports == ("tiny_add", "tiny_where")


def test_one_source_with_two_outputs_is_compiled_twice(tmp_path: Path) -> None:
    code = "int FUNCTION(int a) { return a * FACTOR; }\n"
    root = project(tmp_path / "tiny", files={"include/tiny.h": "int f(int a);\nint g(int a);\n", "t.c": code})
    listed = [entry(root, "t.c", f"{name}.o", f"-DFUNCTION={name}", "-DFACTOR=2") for name in "fg"]
    result = given_build(root, Given(database=database(root, listed)))
    assert result.package.manifest.exports == ("f", "g")


def test_sources_that_do_not_compile(tmp_path: Path) -> None:
    root = project(tmp_path / "tiny", files={"src/add.c": "int f( {\n"})
    with pytest.raises(BuildError) as caught:
        given_build(root, Given(database=database(root, entries_of(root)[:1])))
    assert "src/add.c:1:8: error:" in str(caught.value.details["stderr"])


@pytest.mark.parametrize(("text", "message"), [
    ("{}", "not a list of commands"),
    ("[]", "not a list of commands"),
    ("[1]", "entry 1 of the compilation database has another form"),
    ('[{"directory": ".", "file": "x.c"}]', "entry 1"),
    ('[{"directory": ".", "file": "x.c", "command": "cc \\"x"}]', "entry 1"),
    ('[{"directory": 1, "file": "x.c", "arguments": ["cc"]}]', "entry 1"),
    ('[{"directory": "\\ud800", "file": "x.c", "arguments": ["cc"]}]', "entry 1"),
    ('[{"directory": ".", "file": "x\\u0000.c", "arguments": ["cc"]}]', "entry 1"),
    ('[{"directory": ".", "file": "x.c", "command": "cc -DX=\\udfff"}]', "entry 1"),
    ("nonsense", "is not JSON"),
    ("[" * 100000, "is not JSON"),
])  # fmt: skip
def test_a_database_of_another_form(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_database(tmp_path / "c.json")
    assert message in caught.value.message and caught.value.where == str(tmp_path / "c.json")


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the compilation database: No such file"):
        read_database(tmp_path / "c.json")


def test_a_library_that_no_entry_makes(tmp_path: Path) -> None:
    root = project(tmp_path / "tiny", '[build]\nlibrary = ["lib.dir/ad.c.o"]\n')
    with pytest.raises(UsageError) as caught:
        given_build(root, Given(database=database(root, entries_of(root))))
    assert "'lib.dir/ad.c.o' matches no output" in caught.value.message
    assert caught.value.hint == "did you mean 'lib.dir/add.c.o'?"


def test_sources_outside_of_the_project(tmp_path: Path) -> None:
    root = project(tmp_path / "tiny")
    (tmp_path / "other.c").write_text("int x;\n")
    with pytest.raises(UsageError, match=r"other\.c is outside of the project"):
        given_build(root, Given(database=database(root, [entry(root, "../other.c", "o.o")])))


def test_a_build_directory_that_is_gone(tmp_path: Path) -> None:
    root = project(tmp_path / "tiny")
    listed = entries_of(root)[:1]
    listed[0]["directory"] = str(root / "gone")
    with pytest.raises(UsageError) as caught:
        given_build(root, Given(database=database(root, listed)))
    assert "a directory that is not there" in caught.value.message
    assert "run its build system" in (caught.value.hint or "")


# ---- bitcode of any front end ------------------------------------------------------------------------------


def bitcode(tmp_path: Path, code: str, *flags: str, name: str = "x") -> Path:
    (tmp_path / f"{name}.c").write_text(code)
    command = [*frontend().command, "-c", "-emit-llvm", "-O1", *flags, f"{name}.c", "-o", f"{name}.bc"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return tmp_path / f"{name}.bc"


def header(tmp_path: Path, text: str) -> Path:
    (tmp_path / "tiny.h").write_text(text)
    return tmp_path / "tiny.h"


def test_native_bitcode_is_judged_by_its_content(tmp_path: Path) -> None:
    code = (
        "extern int abs(int);\nint half(int a) { return a / 2; }\n"
        "unsigned wide(unsigned a, int (*f)(int)) { return f((int)a) + abs((int)a); }\n"
    )
    given = Given(
        bitcode=(bitcode(tmp_path, code, "--target=x86_64-linux-gnu", "-fno-builtin"),),
        headers=(header(tmp_path, "int half(int a);\nunsigned wide(unsigned a, int (*f)(int));\n"),),
    )
    (tmp_path / "visget.toml").write_text(HEAD)
    result = given_build(tmp_path, given)
    manifest = result.package.manifest
    assert (manifest.exports, manifest.imports) == (("half", "wide"), ("abs",))
    assert manifest.provenance.compiler.startswith("clang version 22.") and manifest.provenance.flags == ()
    text = text_of(parse_bitcode(result.package.bitcode()))
    assert 'target triple = "riscv64-unknown-linux-musl"' in text and "x86" not in text
    assert re.search(r"define [^\n]*signext [^\n]*i32 @half\(i32 noundef signext", text)
    assert "declare signext i32 @abs(i32 noundef signext" in text
    assert "call signext i32 %1(i32 noundef signext" in text
    assert [name for name, _ in result.sources_used] == ["tiny.h", "x.bc"]
    again = given_build(tmp_path, given)
    assert again.data == result.data


def test_several_modules_are_merged(tmp_path: Path) -> None:
    one = bitcode(tmp_path, "int two(int a);\nint one(int a) { return two(a) + 1; }\n", name="one")
    two = bitcode(tmp_path, "int two(int a) { return a * 2; }\n", name="two")
    (tmp_path / "visget.toml").write_text(HEAD)
    result = given_build(tmp_path, Given(bitcode=(two, one), headers=(header(tmp_path, "int one(int a);\n"),)))
    assert result.package.manifest.exports == ("one",)
    assert result.package.manifest.imports == ()


@pytest.mark.parametrize(("code", "prototype", "rule"), [
    ("long double f(long double a) { return a + 1; }\n", "long double f(long double a);\n", "VIS-"),
    ("struct s { long a, b, c; };\nlong f(struct s b) { return b.c; }\n",
     "struct s { long a, b, c; };\nlong f(struct s b);\n", "VIS-402"),
    ("typedef __builtin_va_list va_list;\nint vprintf(const char *f, va_list ap);\n"
     "static int g(const char *s, ...)\n{ va_list a; __builtin_va_start(a, s); return vprintf(s, a); }\n"
     "int f(const char *s) { return g(s, 1); }\n", "int f(const char *s);\n", "VIS-"),
    ('int f(int a) { __asm__("cpuid"); return a; }\n', "int f(int a);\n", "VIS-"),
])  # fmt: skip
def test_what_a_native_front_end_decided_for_its_machine_is_found(
    tmp_path: Path, code: str, prototype: str, rule: str
) -> None:
    path = bitcode(tmp_path, code, "--target=x86_64-linux-gnu")
    (tmp_path / "visget.toml").write_text(HEAD)
    with pytest.raises(RefusedError) as caught:
        given_build(tmp_path, Given(bitcode=(path,), headers=(header(tmp_path, prototype),)))
    found = caught.value.details["findings"]
    assert isinstance(found, list)
    assert any(one.rule.startswith(rule) and one.severity == "error" for one in found), found


@pytest.mark.parametrize(("data", "message"), [
    (b"", "is not bitcode that visget can read"),
    (b"\x7fELF" + bytes(100), "is not bitcode that visget can read"),
    (b"BC\xc0\xde" + bytes(3), "is not bitcode that visget can read"),
])  # fmt: skip
def test_what_is_no_bitcode(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.bc").write_bytes(data)
    (tmp_path / "visget.toml").write_text(HEAD)
    with pytest.raises(BuildError) as caught:
        given_build(tmp_path, Given(bitcode=(tmp_path / "x.bc",), headers=(header(tmp_path, "int f(void);\n"),)))
    assert message in caught.value.message


def test_the_header_has_to_fit_the_code(tmp_path: Path) -> None:
    path = bitcode(tmp_path, "int f(int a) { return a; }\n")
    (tmp_path / "visget.toml").write_text(HEAD)
    with pytest.raises(RefusedError) as caught:
        given_build(tmp_path, Given(bitcode=(path,), headers=(header(tmp_path, "double f(int a);\n"),)))
    assert any(one.rule == "API-002" for one in caught.value.details["findings"])  # type: ignore[attr-defined]


@pytest.mark.parametrize(("names", "message"), [
    (("gone.h",), "there is no such header"),
    (("a/x.h", "b/x.h"), "two public headers are called x.h"),
])  # fmt: skip
def test_headers_of_the_command_line(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    write(tmp_path, {"a/x.h": "int f(int);\n", "b/x.h": "int g(int);\n"})
    path = bitcode(tmp_path, "int f(int a) { return a; }\n")
    (tmp_path / "visget.toml").write_text(HEAD)
    with pytest.raises(UsageError, match=message):
        given_build(tmp_path, Given(bitcode=(path,), headers=tuple(tmp_path / name for name in names)))


def test_zig(tmp_path: Path) -> None:
    (tmp_path / "z.zig").write_text(
        "export fn squares(p: [*]const f64, n: usize) f64 {\n    var s: f64 = 0;\n"
        "    for (p[0..n]) |v| s += v * v;\n    return s;\n}\n"
        "export fn add(a: i32, b: u8) i32 {\n    return a +% b;\n}\n"
    )
    zig = frontend().command[0]
    command = [zig, "build-obj", "z.zig", "-O", "ReleaseFast", "-fPIC", "-fno-emit-bin", "-femit-llvm-bc=z.bc",
               "-target", "x86_64-linux-gnu", "--global-cache-dir", "c", "--cache-dir", "c"]  # fmt: skip
    subprocess.run(command, cwd=tmp_path, check=True)
    text = "double squares(const double *p, unsigned long n);\nint add(int a, unsigned char b);\n"
    (tmp_path / "visget.toml").write_text(HEAD)
    result = given_build(tmp_path, Given(bitcode=(tmp_path / "z.bc",), headers=(header(tmp_path, text),)))
    assert (result.package.manifest.exports, result.package.manifest.imports) == (("add", "squares"), ())


def test_rust(tmp_path: Path) -> None:
    rustc = shutil.which("rustc")
    if rustc is None:
        pytest.skip("rustc is not installed here")
    (tmp_path / "r.rs").write_text(
        '#![no_std]\n#![crate_type = "lib"]\n#[panic_handler]\n'
        "fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }\n"
        '#[no_mangle]\npub extern "C" fn add(a: i32, b: u8) -> i32 { a.wrapping_add(b as i32) }\n'
    )
    ran = subprocess.run(
        [rustc, "--emit=llvm-bc", "-C", "panic=abort", "-C", "opt-level=1", "r.rs", "-o", "r.bc"], cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = subprocess.run([rustc, "-vV"], capture_output=True, text=True, check=False).stdout
    if ran.returncode != 0 or "LLVM version: 22." not in told:
        pytest.skip("this rustc is of another LLVM")
    (tmp_path / "visget.toml").write_text(HEAD)
    text = "int add(int a, unsigned char b);\n"
    result = given_build(tmp_path, Given(bitcode=(tmp_path / "r.bc",), headers=(header(tmp_path, text),)))
    assert result.package.manifest.exports == ("add",)
    assert result.package.manifest.provenance.compiler.startswith("rustc version 1.")
