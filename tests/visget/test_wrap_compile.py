"""``visget-cc`` as build systems call it to compile: every form of the command line, and what it refuses."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from wrapkit import Bench

from visget.format.module import parse_bitcode, text_of
from visget.toolchain.irsymbols import is_bitcode, read_symbols
from visget.toolchain.normalise import neutral_text

HELLO = '#include <stdio.h>\n#include "own.h"\nint main(void) { printf("%d\\n", OWN); return 0; }\n'


@pytest.fixture
def bench(tmp_path) -> Bench:
    made = Bench(tmp_path)
    made.write({"x.c": HELLO, "own.h": "#define OWN 42\n", "sub/y.c": "int y(void) { return 1; }\n"})
    return made


def text(path: Path) -> str:
    return text_of(parse_bitcode(path.read_bytes()))


def test_c_without_o_writes_x_o_here(bench):
    """autoconf learns from this file how objects end."""
    bench.good("-c", "x.c", "sub/y.c")
    assert is_bitcode((bench.root / "x.o").read_bytes())
    assert is_bitcode((bench.root / "y.o").read_bytes())


@pytest.mark.parametrize("output", [["-o", "z.obj"], ["-oz.obj"]])
def test_every_form_of_o(bench, output):
    bench.good("-c", "x.c", *output)
    assert is_bitcode((bench.root / "z.obj").read_bytes())


def test_several_sources_with_one_output(bench):
    assert "cannot specify -o" in bench.cc("-c", "x.c", "sub/y.c", "-o", "z.o").err


def test_standard_input(bench):
    bench.good("-c", "-x", "c", "-", "-o", "in.o", stdin="int f(void) { return 0; }")
    assert [symbol.name for symbol in read_symbols((bench.root / "in.o").read_bytes())] == ["f"]
    assert "42" in bench.good("-E", "-", stdin='#include "own.h"\nOWN\n').out
    assert "42" in bench.good("-E", "-P", "-x", "c", "-", stdin='#include "own.h"\nOWN\n').out


def test_response_files(bench):
    bench.write({"args": "-c x.c -o 'with space.o'"})
    bench.good("@args")
    assert (bench.root / "with space.o").is_file()


def test_S_gives_ir_text(bench):
    bench.good("-S", "x.c")
    assert "define" in (bench.root / "x.s").read_text()
    bench.good("-S", "x.c", "-o", "x.ll")
    assert 'target triple = "riscv64' in (bench.root / "x.ll").read_text()


def test_dependency_files_are_as_from_any_compiler(bench):
    bench.good("-MD", "-MP", "-MF", "x.d", "-MT", "target", "-c", "x.c")
    rule = (bench.root / "x.d").read_text()
    assert rule.startswith("target:")
    assert "own.h" in rule
    bench.good("-MMD", "-c", "sub/y.c")
    assert "sub/y.c" in (bench.root / "y.d").read_text()
    assert "own.h" in bench.good("-MM", "x.c").out
    assert bench.good("-M", "x.c").out.startswith("x.o:")


def test_the_neutral_flags_of_the_front_end(bench):
    """Whatever -O says: no optnone, no loop that may not be unrolled, no CPU; the same as `visget build`."""
    for level in ("-O0", "-O1", "-O3", "-Os"):
        bench.good(level, "-g3", "-march=native", "-fomit-frame-pointer", "-c", "sub/y.c")
        ir = text(bench.root / "y.o")
        assert "optnone" not in ir
        assert "optsize" not in ir
        assert "noinline" not in ir
        assert "x86" not in ir
        assert "DICompileUnit" in ir
        assert "DILocalVariable" not in ir
    assert "dropped" in bench.cc("-march=native", "-c", "x.c").err or bench.log.glob("note-*")


def test_a_note_appears_once_in_a_build(bench):
    first = bench.good("-march=native", "-c", "x.c")
    second = bench.good("-march=native", "-c", "x.c")
    assert first.err.count("-march=native is dropped") == 1
    assert second.err == ""
    bench.environment.pop("VISGET_WRAP_LOG")
    assert "is dropped" in bench.good("-march=native", "-c", "x.c").err


@pytest.mark.parametrize("flag", ["-msse2", "-mavx2", "-m32", "-fopenmp", "-fsanitize=address", "--coverage"])
def test_flags_of_one_cpu_fail_so_that_probes_see_a_no(bench, flag):
    ran = bench.cc(flag, "-c", "x.c")
    assert ran.status == 1
    assert f"unsupported option '{flag}' for target" in ran.err
    assert not (bench.root / "x.o").exists()


@pytest.mark.parametrize("flag", ["-m64", "-static", "-pthread", "-flto", "-fPIC", "-pipe", "-Wa,--noexecstack"])
def test_flags_without_meaning_are_accepted(bench, flag):
    assert bench.good(flag, "-c", "x.c").err == ""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("int f(void) { return g(); }", "implicit"),
        ("f(void) { return 0; }", "implicit int|type specifier missing"),
        ("int f(void *p) { return p; }", "pointer to integer"),
        ("int g(); int f(void) { return g(1, 2.0f); }", "without a prototype"),
        ("__attribute__((target_clones(\"avx2\",\"default\"))) int f(void) { return 0; }", "target_clones|avx2"),
    ],
)
@pytest.mark.parametrize("flags", [[], ["-w"], ["-Wno-everything"], ["-Wno-error"], ["-std=c89", "-fpermissive"]])
def test_errors_that_nobody_can_switch_off(bench, code, said, flags):
    bench.write({"bad.c": code})
    ran = bench.cc(*flags, "-c", "bad.c")
    assert ran.status != 0
    assert re.search(said, ran.err)
    assert "error: " in ran.err
    assert not (bench.root / "bad.o").exists()


def test_old_definitions_are_fine_and_silent(bench):
    bench.write({"old.c": "int f(a) int a; { return a; }\nchar g();\nint main() { return f(1) + g(); }\n"})
    assert bench.good("-Wall", "-Werror", "-c", "old.c").err == ""


def test_assembly_is_refused_with_file_and_line(bench):
    bench.write({"asm.c": "/* asm */\nint f(int a) {\n  __asm__ volatile(\"nop\");\n  return a;\n}\n"})
    ran = bench.cc("-c", "asm.c")
    assert ran.status == 1
    assert "asm.c:3: error: inline assembly 'nop'" in ran.err
    assert "hint:" in ran.err
    assert not (bench.root / "asm.o").exists()


def test_assembly_in_a_header_names_the_header(bench):
    bench.write({"h/deep.h": "static inline void f(void) {\n\n\n __asm__(\"mfence\"); }\n",
                 "z.c": '#include "h/deep.h"\nvoid g(void) { f(); }\n'})  # fmt: skip
    assert "h/deep.h:4: error: inline assembly 'mfence'" in bench.cc("-c", "z.c").err


@pytest.mark.parametrize(
    "code",
    [
        'void f(void) { __asm__ volatile("" ::: "memory"); }',
        'int g(void) __asm__("h"); int f(void) { return g(); }',
        'int f(int x) { __asm__ volatile("" : "+g"(x) : "i"(1) : "memory"); return x; }',
        "/* asm volatile */ int asm_count; const char *s = \"asm\";",
    ],
)
def test_assembly_that_means_nothing_passes(bench, code):
    bench.write({"fine.c": code + "\n"})
    bench.good("-c", "fine.c")


def test_the_cpus_own_constraints_and_built_ins_give_the_hint_too(bench):
    bench.write(
        {
            "libsodium-1.0.20/a.c": 'int f(void) { int a; __asm__("cpuid" : "=a"(a)); return a; }\n',
            "b.c": "#include <immintrin.h>\n",
            "c.c": "int f(void) { return __builtin_ia32_rdtsc(); }\n",
        }
    )
    assert "libsodium does without it: configure: --disable-asm" in bench.cc("-c", "libsodium-1.0.20/a.c").err
    assert "hint:" in bench.cc("-c", "b.c").err
    assert "hint:" in bench.cc("-c", "c.c").err


def test_assembly_sources_are_refused_by_name(bench):
    bench.write({"s.S": "nop\n", "mpn.s": "nop\n"})
    for name in ("s.S", "mpn.s"):
        ran = bench.cc("-c", name)
        assert ran.status == 1
        assert f"{name} is assembly" in ran.err
    assert bench.cc("-E", "s.S").out.splitlines()[-1] == "nop"


def test_assembly_for_other_processors_alone_is_an_empty_object(bench):
    """As in zstd: the file is in everybody's list of sources, and all of it stands in #if defined(__x86_64__)."""
    code = '#include "own.h"\n#ifdef __ELF__\n.section .note.GNU-stack,"",%progbits\n#endif\n'
    bench.write({"e.S": f"/* only\n   for x86 */\n{code}#ifdef __x86_64__\nmov %rax, %rbx\n#endif\n"})
    bench.good("-MD", "-MF", "e.d", "-c", "e.S")
    assert is_bitcode((bench.root / "e.o").read_bytes())
    assert read_symbols((bench.root / "e.o").read_bytes()) == ()
    assert "own.h" in (bench.root / "e.d").read_text()
    bench.write({"f.S": code + ".globl f\nf: .byte OWN\n"})
    assert "f.S is assembly" in bench.cc("-c", "f.S").err


def test_file_scope_assembly_is_refused(bench):
    bench.write({"top.c": '__asm__(".symver f,f@V1");\nint f(void) { return 0; }\n'})
    assert ".symver" in bench.cc("-c", "top.c").err


def test_headers_of_this_machine_cannot_come_in(bench):
    bench.write({"leak.c": "#include <zlib.h>\n", "path.c": '#include "/usr/include/stdlib.h"\n'})
    assert "zlib.h' file not found" in bench.cc("-I/usr/include", "-c", "leak.c").err
    assert "file not found" in bench.cc("-c", "leak.c", CPATH="/usr/include", C_INCLUDE_PATH="/usr/include").err
    if Path("/usr/include/stdlib.h").exists():
        assert "/usr/include/stdlib.h is a header of this machine" in bench.cc("-c", "path.c").err
        assert "is a header of this machine" in bench.cc("-E", "path.c").err
    ran = bench.cc("-I/usr/include/libxml2", "-c", "x.c")
    assert ran.status == 1
    assert "libxml2" in ran.err
    assert "[dependencies]" in ran.err


def test_nothing_of_the_place_of_the_build_is_in_the_neutral_form_of_an_object(bench, tmp_path_factory):
    made = []
    for place in (bench, Bench(tmp_path_factory.mktemp("elsewhere"))):
        place.write({"src/f.c": "const char *where(void) { return __FILE__ __DATE__; }\n"})
        place.good("-c", str(place.root / "src/f.c"), "-o", "f.o", VISGET_WRAP_ROOT=str(place.root))
        made.append(neutral_text(text(place.root / "f.o")))
        assert str(place.root) not in made[-1]
    assert made[0] == made[1]
    assert "src/f.cJan  1 1980" in made[0]


def test_flags_from_outside_come_last(bench):
    bench.write({"m.c": "int f(void) { return X; }\n"})
    bench.good("-DX=1", "-c", "m.c", VISGET_WRAP_FLAGS="-UX\n-DX=22")
    assert "ret i32 22" in text(bench.root / "m.o")


def test_each_call_writes_a_line(bench):
    bench.good("-O2", "-c", "x.c", "-o", "x.o")
    bench.cc("-msse2", "-c", "x.c")
    bench.good("-E", "x.c")
    bench.good("--version")
    kinds = [call["kind"] for call in bench.calls()]
    assert kinds == ["object", "refused", "preprocess", "query"]
    first = bench.calls()[0]
    assert first["tool"] == "cc"
    assert first["inputs"] == ["x.c"]
    assert first["output"] == "x.o"
    assert first["cwd"] == str(bench.root)
    assert first["dropped"] == ["-O2"]
    assert first["headers"] == ["./own.h"]
    assert first["status"] == 0


def test_a_log_that_cannot_be_written_fails_nothing(bench):
    shutil.rmtree(bench.log)
    bench.good("-march=native", "-c", "x.c")


def test_devices_survive_an_error(bench):
    """Configure scripts compile to /dev/null, as root sometimes."""
    bench.write({"asm.c": 'void f(void) { __asm__ volatile("nop"); }\n'})
    assert bench.cc("-c", "asm.c", "-o", "/dev/null").status == 1
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("-dumpmachine", r"\w+-unknown-linux-(gnu|musl)$"),
        ("-dumpversion", r"\d+\.\d+\.\d+$"),
        ("--version", r"clang version \d+"),
        ("-print-prog-name=ld", r"ld$"),
        ("-print-search-dirs", r"programs: "),
    ],
)
def test_questions_are_answered(bench, question, answer):
    assert re.search(answer, bench.good(question).out, re.MULTILINE)


def test_the_machine_that_is_told_is_the_one_that_programs_are_for(bench):
    assert bench.good("-dumpmachine", "--vis-target=aarch64-linux-musl").out == "aarch64-unknown-linux-musl\n"
    assert bench.good("-dumpmachine", VISGET_CC_TARGET="riscv64-linux-gnu").out == "riscv64-unknown-linux-gnu\n"
    assert "riscv64" not in bench.good("--version").out


def test_questions_that_make_no_sense_fail(bench):
    assert bench.cc().status == 1
    assert bench.cc("-qversion").status == 1
    assert bench.cc("-c").status == 1
    assert "no input files" in bench.cc("-c").err
    assert bench.cc("missing.c", "-c").status != 0


def test_scratch_directories_are_gone(bench):
    (bench.root / "tmp").mkdir()
    bench.good("-c", "x.c", TMPDIR=str(bench.root / "tmp"))
    bench.cc("-c", "missing.c", TMPDIR=str(bench.root / "tmp"))
    bench.good("x.c", TMPDIR=str(bench.root / "tmp"))
    assert list((bench.root / "tmp").iterdir()) == []
