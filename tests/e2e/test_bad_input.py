"""Bad input, end to end: a clear message, the documented exit code, and nothing changed.

Each refusal is provoked through the real command line, and `refuses()` compares store, registry and configuration
before and after. What the parts do with bad bytes by themselves is tested in their own rooms.
"""

from __future__ import annotations

import re
import shutil

import pytest
from badkit import (
    HEADER,
    SOURCE,
    TOML,
    Outcome,
    Place,
    edit_index,
    flipped,
    key_file,
    plant,
    publish_tiny,
    write_project,
)
from packagekit import key as fixed_key
from registrykit import sign_target, stored

from visget.errors import (
    EXIT_FAILED,
    EXIT_NOT_FOUND,
    EXIT_REFUSED,
    EXIT_REGISTRY,
    EXIT_TRUST,
    EXIT_UNSUPPORTED,
    EXIT_USAGE,
)
from visget.format.module import parse_bitcode, text_of
from visget.format.package import open_package
from visget.format.signing import sign_package


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    """tiny 1.0 in a registry and nothing installed; the tests only read."""
    return publish_tiny(tmp_path_factory.mktemp("bad"))


@pytest.fixture
def place(tmp_path, published) -> Place:
    """A new user with a registry of his own to spoil, which holds tiny 1.0."""
    shutil.copytree(published.registry, tmp_path / "registry")
    shutil.copytree(published.config, tmp_path / "config")
    return Place(root=tmp_path)


@pytest.fixture(scope="module")
def second(published, tmp_path_factory) -> Place:
    """Another registry of the same author, with tiny 1.0 and 2.0."""
    root = tmp_path_factory.mktemp("second")
    shutil.copytree(published.registry, root / "registry")
    shutil.copytree(published.config, root / "config")
    two = Place(root=root)
    project = write_project(root / "project", version="2.0")
    assert two.run("build", project).code == 0
    assert two.run("publish", project / "dist" / "tiny-2.0.vis").code == 0
    return two


def refuses(place: Place, *words: object, code: int, says: tuple[str, ...], hint: bool = True) -> Outcome:
    """Run a command that must fail, and check message, exit code, and that nothing was changed."""
    place.run("list")  # so that the store is there before and after
    before = place.state()
    outcome = place.run(*words)
    assert outcome.code == code, outcome
    assert outcome.out == ""
    assert re.search(r"^error: \S", outcome.text, re.M)
    for text in says:
        assert text in outcome.err, f"{text!r} is not said in:\n{outcome.err}"
    assert not hint or re.search(r"^(hint: |  [A-Z])", outcome.err, re.M), f"no next step in:\n{outcome.err}"
    assert place.state() == before
    return outcome


# ---- visget.toml -------------------------------------------------------------------------------------------

GOOD = TOML.format(version="1.0")
SHA = "0" * 64


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def build_key(line: str) -> str:
    return changed('sources = ["*.c"]', f'sources = ["*.c"]\n{line}')


def source_table(*lines: str) -> str:
    return changed("[build]", "\n".join(["[source]", *lines, "", "[build]"]))


# name: the file, its line at fault (None: only the file can be named), what the message must name
BROKEN: dict[str, tuple[str | bytes, int | None, str]] = {
    "no quotes": (changed('"tiny"', "tiny"), 2, "not valid TOML"),
    "an open string": (changed('"Adds numbers"', '"Adds numbers'), 4, "not valid TOML"),
    "a key twice": (changed('license = "MIT"', 'license = "MIT"\nlicense = "MIT"'), 6, "not valid TOML"),
    "not UTF-8": (GOOD.encode().replace(b"Adds", b"\xff"), 4, "not UTF-8"),
    "a NUL": (GOOD.encode() + b"\0", 16, "not valid TOML"),
    "nested deeply": (GOOD + "\nx = " + "[" * 5000 + "]" * 5000, None, "nests"),
    "huge": (GOOD + "# " + "x" * (5 << 20), None, "larger than"),
    "empty": ("", 1, ":1: the key 'package' is missing"),
    "a byte order mark": ("\ufeff" + GOOD, 1, "begins with a byte order mark"),
    "a number of 6000 digits": (build_key("jobs = " + "9" * 6000), 9, "an integer of more than 4300 digits"),
    "another of 6000 digits": (GOOD + "[x]\n\na = -" + "1_0" * 3000, 18, "an integer of more than 4300 digits"),
    "misspelt key": (changed("license", "licence"), 5, "package.licence: unknown key; did you mean 'license'"),
    "misspelt table": (changed("[exports]", "[export]"), 10, "did you mean 'exports'?"),
    "no name": (changed('name = "tiny"\n', ""), 1, "'name' is missing"),
    "bad name": (changed('"tiny"', '"Tiny_Lib"'), 2, "package.name: 'Tiny_Lib'"),
    "bad version": (changed('"1.0"', '"one"'), 3, "package.version: 'one'"),
    "version as a number": (changed('"1.0"', "1.0"), 3, "package.version: expected a string"),
    "long summary": (changed("Adds numbers", "x" * 300), 4, "package.summary"),
    "control character": (changed("Adds numbers", "\\u001b[31m"), 4, "package.summary"),
    "no licence": (changed('"MIT"', '"My Own"'), 5, "package.license: 'My Own'"),
    "homepage": (changed('"MIT"', '"MIT"\nhomepage = "javascript:x"'), 6, "package.homepage"),
    "no sources": (changed('sources = ["*.c"]\n', ""), 7, "'sources' is missing"),
    "sources is a string": (changed('["*.c"]', '"*.c"'), 8, "build.sources: expected an array"),
    "a number among the sources": (changed('["*.c"]', '["*.c", 3]'), 8, "build.sources[1]"),
    "sources outside": (changed('["*.c"]', '["../*.c"]'), 8, "build.sources[0]: '../*.c'"),
    "absolute sources": (changed('["*.c"]', '["/etc/*.c"]'), 8, "build.sources[0]: '/etc/*.c'"),
    "-march": (build_key('flags = ["-Wall",\n  "-march=native"]'), 10, "build.flags[1]: -march=native"),
    "-fplugin": (build_key('flags = ["-fplugin=x.so"]'), 9, "build.flags[0]: '-fplugin=x.so'"),
    "standard": (build_key('standard = "gnu18"'), 9, "build.standard: 'gnu18'"),
    "floating-point": (build_key('floating-point = "fst"'), 9, "build.floating-point"),
    "a macro's name": (build_key('defines = { "A B" = 1 }'), 9, "'A B'"),
    "a macro's value": (build_key("defines = { A = 1.5 }"), 9, "build.defines.A"),
    "no headers": (changed('["tiny.h"]', "[]"), 11, "exports.headers: names no header"),
    "header pattern": (changed('"tiny.h"', '"*.h"'), 11, "exports.headers[0]: '*.h' is a pattern"),
    "functions": (changed('["tiny.h"]', '["tiny.h"]\nfunctions = ["f()"]'), 12, "exports.functions[0]: 'f()'"),
    "vector's key": (changed("returns", "return"), 15, "unknown key 'return'"),
    "vector's name": (changed('name = "sum"\n', ""), 13, "'name'"),
    "vector twice": (GOOD + "\n" + GOOD[GOOD.index("[[vector]]") :], 17, "'sum' a second time"),
    "vector's argument": (changed("{ int = 2 }", '{ int = "2" }'), 15, "args[0].int"),
    "vector's huge number": (changed("{ int = 2 }", "{ int = 99999999999999999999 }"), 15, "more than 64 bits"),
    "two sources": (source_table('pypi = "a==1"', 'url = "http://x/"', f'sha256 = "{SHA}"'), 9, "source.url"),
    "source without digest": (source_table('pypi = "a==1"'), 7, "'sha256' is missing"),
    "source with a bad digest": (source_table('pypi = "a==1"', 'sha256 = "zz"'), 9, "source.sha256"),
    "source with a range": (source_table('pypi = "a>=1"', f'sha256 = "{SHA}"'), 8, "source.pypi"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_visget_toml(kind, place, tmp_path):
    text, line, names = BROKEN[kind]
    project = write_project(tmp_path / "project")
    file = project / "visget.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    where = f"{file}:{line}" if line else str(file)
    hint = kind not in ("long summary", "control character", "homepage", "sources outside", "absolute sources",
                        "vector's key", "vector's name", "vector twice", "vector's argument", "vector's huge number",
                        "huge", "not UTF-8", "nested deeply", "a number of 6000 digits",
                        "another of 6000 digits")  # fmt: skip
    outcome = refuses(place, "build", project, code=EXIT_USAGE, says=(f"error: {where}", names), hint=hint)
    assert not (project / "dist").exists()
    assert len(outcome.err) < 1200


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (changed('["*.c"]', '[\n  "*.c",\n  "tyni.c",\n]'), 10,
         ("build.sources[1]: the pattern 'tyni.c' matches no file", "did you mean 'tiny.c'?")),
        (changed('["*.c"]', '["lib/*.c"]'), 8, ("build.sources[0]", "'lib/*.c'")),
        (build_key('exclude = ["test_*.c"]'), 9, ("build.exclude[0]", "'test_*.c'")),
        (build_key('exclude = ["*.c"]'), 9, ("build.exclude: leaves no source file",)),
        (build_key('include = [".", "inc"]'), 9, ("build.include[1]: there is no 'inc'",)),
        (build_key('include = ["tiny.c"]'), 9, ("build.include[0]", "not a directory")),
        (changed('"tiny.h"', '"tiny.h",\n  "tyni.h"'), 12, ("exports.headers[1]", "'tyni.h'")),
        (changed('"MIT"', '"MIT"\nreadme = "READ.md"'), 6, ("package.readme", "'READ.md'")),
        (changed('"MIT"', '"MIT"\nlicense-file = "COPYING"'), 6, ("package.license-file", "'COPYING'")),
        (changed('"MIT"', '"MIT"\nlicense-file = [\n"tiny.h",\n"COPYING"]'), 8, ("package.license-file[1]",)),
        (changed('["tiny.h"]', '["tiny.h"]\nfunctions = ["tiny_*", "foo_*"]'), 12,
         ("exports.functions[1]", "'foo_*'", "tiny_add")),
        (changed('["tiny.h"]', '["tiny.h"]\nexclude = ["foo_*"]'), 12, ("exports.exclude[0]", "'foo_*'", "tiny_add")),
    ],
    ids=["source", "pattern", "exclude", "nothing left", "include", "include a file", "header", "readme", "licence",
         "second licence", "function", "excluded function"],
)  # fmt: skip
def test_a_file_or_function_that_is_not_there(text, line, says, place, tmp_path):
    project = write_project(tmp_path / "project", toml=text)
    where = f"error: {project / 'visget.toml'}:{line}: "
    refuses(place, "build", project, code=EXIT_USAGE, says=(where, *says))
    assert not (project / "dist").exists()


def test_a_function_that_is_declared_only(place, tmp_path):
    project = write_project(tmp_path / "project", toml=changed('["tiny.h"]', '["tiny.h"]\nfunctions = ["tiny_sub"]'))
    (project / "tiny.h").write_text("int tiny_add(int a, int b);\nint tiny_sub(int a, int b);\n")
    where = f"{project / 'visget.toml'}:12: exports.functions[0]: "
    refuses(place, "build", project, code=EXIT_USAGE, says=(where, "tiny_sub is declared but not defined"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (changed('call = "tiny_add"', 'call = "tiny_sub"'), ("vector 'sum', step 1", "'tiny_sub'")),
        (changed("{ int = 2 }, ", ""), ("vector 'sum', step 1", "tiny_add", "int tiny_add(int a, int b)")),
        (changed("{ int = 2 }", "{ float = 2.5 }"), ("vector 'sum', step 1: argument 1 (a)", "a float cannot be")),
        (changed("{ int = 2 }", '{ text = "2" }'), ("vector 'sum', step 1: argument 1 (a)", "int is not a pointer")),
        (changed("{ int = 40 }", "{ int = 4294967296 }"), ("vector 'sum', step 1: argument 2 (b)", "32 bits of int")),
        (changed("returns = { int = 42 }", 'returns = { text = "x" }'), ("vector 'sum', step 1: the result",)),
    ],
    ids=["function", "count", "float", "text", "range", "result"],
)
def test_a_vector_that_does_not_fit_the_functions(text, says, place, tmp_path):
    project = write_project(tmp_path / "project", toml=text)
    outcome = place.run("build", project)
    assert outcome.code == EXIT_USAGE
    assert f"error: {project / 'visget.toml'}:15: " in outcome.err
    for part in says:
        assert part in outcome.text
    assert outcome.err.count("vector 'sum', step 1") == 1, "said once is enough"
    assert not (project / "dist").exists()


def test_no_project(place, tmp_path):
    (tmp_path / "bare").mkdir()
    refuses(place, "build", tmp_path / "bare", code=EXIT_USAGE, says=("there is no visget.toml here", "visget init"))
    outcome = place.run("build", tmp_path / "nothing")
    assert f"error: {tmp_path / 'nothing'}: there is no such project" in outcome.err
    refuses(place, "build", tmp_path / "nothing", code=EXIT_USAGE, says=(str(tmp_path / "nothing"), "visget init"))
    (tmp_path / "empty").mkdir()
    refuses(place, "build", tmp_path / "empty", code=EXIT_USAGE, says=("there is no visget.toml", "visget init"))


# ---- errors of the compiler ----------------------------------------------------------------------------------


def test_an_error_in_c_is_shown_as_clang_shows_it(place, tmp_path):
    source = '#include "tiny.h"\nint tiny_add(int a, int b)\n{\n    return a + ;\n}\n'
    project = write_project(tmp_path / "project", tiny_c=source)
    outcome = refuses(place, "build", project, code=EXIT_FAILED, hint=False, says=(
        "tiny.c:4:16: error: expected expression", "    4 |     return a + ;", "^", "error: tiny.c: ",
    ))  # fmt: skip
    assert str(project) not in outcome.err.partition("error: tiny.c: ")[0], "paths are those of the project"
    assert not (project / "dist").exists()


def test_both_bad_files_are_reported(place, tmp_path):
    files = {"a_c": "int f(void) { return x; }\n", "b_c": "int g(void) { retrun 1; }\n"}
    project = write_project(tmp_path / "project", **files)
    refuses(place, "build", project, "-j", "1", code=EXIT_FAILED, hint=False, says=(
        "a.c:1:22: error: use of undeclared identifier 'x'", "b.c:1:15: error: ", "2 files",
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"tiny_c": '#include "nothing.h"\n'}, ("tiny.c:1:10: fatal error: 'nothing.h' file not found",)),
        ({"tiny_h": "int tiny_add(int a, int b)\n"}, ("tiny.h:1:27: error: expected ';'",)),
        ({"tiny_c": "int tiny_add(int a, int b) { return strlen(\"\") + a; }\n"}, ("undeclared library function",)),
        ({"other_c": "int tiny_add(int a, int b) { return a - b; }\n"}, ("defined in other.c and in tiny.c",)),
    ],
    ids=["header", "semicolon", "undeclared", "twice"],
)
def test_sources_that_do_not_fit_together(files, says, place, tmp_path):
    project = write_project(tmp_path / "project", **files)
    refuses(place, "build", project, code=EXIT_FAILED, says=says, hint=False)


def test_a_header_that_lies_about_a_type(place, tmp_path):
    files = {"tiny_h": "long tiny_add(int a, int b);\n", "tiny_c": "int tiny_add(int a, int b) { return a + b; }\n"}
    project = write_project(tmp_path / "project", **files)
    refuses(place, "build", project, code=EXIT_REFUSED, says=("tiny.h:1: error[", "tiny_add()"))


def test_a_compiler_of_another_kind(place, tmp_path):
    project = write_project(tmp_path / "project")
    refuses(place, "build", project, "--cc", "/bin/true", code=EXIT_UNSUPPORTED, says=("/bin/true", "clang"))
    refuses(place, "build", project, "--cc", "/nonexistent/clang", code=EXIT_UNSUPPORTED, says=("/nonexistent/clang",))


# ---- outside VIS-1 -------------------------------------------------------------------------------------------

INCLUDE = '#include "tiny.h"\n'
ADD = "int tiny_add(int a, int b) { return a + b; }\n"


def more(declaration: str, definition: str) -> dict[str, str]:
    """A project with one more exported function, defined in line 3."""
    return {"tiny_h": HEADER + declaration, "tiny_c": INCLUDE + ADD + definition}


def inside(statement: str, before: str = "") -> dict[str, str]:
    """A project whose function has `statement` in line 4."""
    return {"tiny_c": f"{INCLUDE}{before}\nint tiny_add(int a, int b) {{\n{statement}\nreturn a + b; }}\n"}


# name: the files, the rule, the line, the function, further words of the message
OUTSIDE: dict[str, tuple[dict[str, str], str, int | None, str | None, tuple[str, ...]]] = {
    "inline assembly": (inside('__asm__("nop");'), "VIS-301", 4, "tiny_add", ("inline assembly",)),
    "assembly of a file": (inside(";", '__asm__(".globl x");'), "VIS-107", None, None, ("assembly",)),
    "long double to printf": (inside('printf("%Lf", (long double)a);', "#include <stdio.h>"), "VIS-506", 4,
                              "tiny_add", ("long double is passed to printf", "%f")),
    "thread-local of another": (inside("a += other;", "extern _Thread_local int other;"), "VIS-206", 4, "tiny_add",
                                ("other", "thread-local")),
    "setjmp by address": (inside("int (*volatile p)(struct __vis_jmp_buf *) = _setjmp; a += p != 0;",
                                 "#include <setjmp.h>"),
                          "VIS-323", 4, "tiny_add", ("other than by calling it", "<setjmp.h>")),
    "open by hand": (inside('a = open("x", b);', "int open(const char *, int, ...);"), "VIS-502", 4, "tiny_add",
                     ("open", "<fcntl.h>")),
    "stat by hand": (inside('a = stat("x", &b);', "int stat(const char *, void *);"), "VIS-502", 4, "tiny_add",
                     ("struct stat", "<sys/stat.h>")),
    "signal": (inside("signal(2, 0);", "#include <signal.h>"), "VIS-512", 4, "tiny_add", ("signal",)),
    "fork": (inside("a = fork();", "#include <unistd.h>"), "VIS-512", 4, "tiny_add", ("fork",)),
    "thread-local model": (inside("x += a; b = x;", "static _Thread_local int x "
                                  "__attribute__((tls_model(\"initial-exec\")));"), "VIS-212", 4, "tiny_add",
                           ("initialexec",)),
    "environ": (inside("a += environ != 0;", "extern char **environ;"), "VIS-512", 4, "tiny_add", ("environ",)),
    "nobody's function": (inside("a += other(b);", "int other(int);"), "VIS-501", 4, "tiny_add", ("other",)),
    "weak hook": (inside("if (hook) a = hook(b);", "__attribute__((weak)) int hook(int);"), "VIS-204", 4, "tiny_add",
                  ("extern_weak",)),
    "malloc": (more("void *malloc(unsigned long);\n", "void *malloc(unsigned long n) { return 0; }\n"), "VIS-210", 3,
               "malloc", ("malloc",)),
    "start-up section": (inside(";", 'static void f(void) {} __attribute__((used, section(".init_array"))) '
                                "static void (*p)(void) = f;"), "VIS-109", None, None, (".init_array",)),
    "newline in a name": (inside("a += odd();", 'int odd(void) __asm__("o\\ndd"); int odd(void) { return 1; }'),
                          "VIS-201", None, None, ("\\0A",)),
    "16-byte atomic": (inside("x = a;", "static _Atomic __int128 x;"), "VIS-502", 4, "tiny_add", ("libatomic",)),
    "naked": ({"tiny_c": INCLUDE + '__attribute__((naked)) int tiny_add(int a, int b) { __asm__("ret"); }\n'},
              "VIS-114", 2, "tiny_add", ("naked",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", OUTSIDE)
def test_a_construct_outside_vis_1(kind, place, tmp_path):
    files, rule, line, function, words = OUTSIDE[kind]
    project = write_project(tmp_path / "project", **files)
    outcome = refuses(place, "build", project, code=EXIT_REFUSED, says=("outside VIS-1", *words))
    start = f"tiny.c:{line}: " if line else ""
    end = f" in {function}(): " if function else ""
    assert f"{start}error[{rule}]{end}" in outcome.err
    # Every finding has its remedy on the next line.
    lines = outcome.err.splitlines()
    for number, text in enumerate(lines):
        if re.search(r"error\[[A-Z]+-\d+\]", text):
            assert re.match(r"  \S", lines[number + 1]), text
    assert not (project / "dist").exists()
    as_json = place.run("build", project, "--json").json
    assert as_json["exit_code"] == EXIT_REFUSED
    found = [item for item in as_json["details"]["findings"] if item["rule"] == rule]
    assert found
    assert found[0]["remedy"]


# name: the files, the rule, further words of the message
NOT_CALLED_ALIKE: dict[str, tuple[dict[str, str], str, tuple[str, ...]]] = {
    "long double result": (more("long double tiny_x(void);\n", "long double tiny_x(void) { return 2; }\n"),
                           "VIS-402", ("long double",)),
    "__int128": (more("__int128 tiny_x(__int128 a);\n", "__int128 tiny_x(__int128 a) { return a; }\n"),
                 "VIS-402", ("__int128",)),
    "half": (more("_Float16 tiny_x(_Float16 a);\n", "_Float16 tiny_x(_Float16 a) { return a; }\n"),
             "VIS-402", ("_Float16",)),
    "vector type": (more("typedef float v4 __attribute__((vector_size(16)));\nv4 tiny_x(v4 a);\n",
                         "v4 tiny_x(v4 a) { return a; }\n"), "VIS-402", ()),
    "struct by value": (more("struct s { float x, y; int z; };\nstruct s tiny_x(struct s a);\n",
                             "struct s tiny_x(struct s a) { return a; }\n"), "VIS-402", ("struct",)),
    "large struct by value": (more("struct s { double x[4]; };\nvoid tiny_x(struct s a);\n",
                                   "void tiny_x(struct s a) { }\n"), "VIS-402", ("32 bytes",)),
    "exported varargs": (more("int tiny_x(int n, ...);\n", "int tiny_x(int n, ...) { return n; }\n"),
                         "VIS-401", ("variable number",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", NOT_CALLED_ALIKE)
def test_an_export_that_cannot_be_called_alike_everywhere_is_left_out_loudly(kind, place, tmp_path):
    files, rule, words = NOT_CALLED_ALIKE[kind]
    project = write_project(tmp_path / "project", **files)
    outcome = place.run("build", project)
    assert outcome.code == 0, outcome
    (line,) = [line for line in outcome.err.splitlines() if "left out of the exports" in line]
    assert f": warning[{rule}] in tiny_x(): " in line
    assert line.startswith("tiny.h:")
    assert all(word in line for word in words), line
    assert '[exports] exclude = ["tiny_x"]' in outcome.err
    package = open_package((project / "dist" / "tiny-1.0.vis").read_bytes())
    assert package.manifest.exports == ("tiny_add",)
    assert "@tiny_x" not in text_of(parse_bitcode(package.bitcode()))


@pytest.mark.parametrize("exports", ['functions = ["tiny_add", "tiny_x"]', 'exclude = ["tiny_add"]'],
                         ids=["named", "nothing left"])  # fmt: skip
@pytest.mark.parametrize("kind", NOT_CALLED_ALIKE)
def test_an_export_that_cannot_be_left_out_is_an_error(kind, exports, place, tmp_path):
    files, rule, words = NOT_CALLED_ALIKE[kind]
    toml = changed("[exports]\n", f"[exports]\n{exports}\n")
    if "exclude" in exports:
        toml = toml[: toml.index("[[vector]]")]  # it calls tiny_add
    project = write_project(tmp_path / "project", toml=toml, **files)
    says = (f"tiny.c:3: error[{rule}] in tiny_x(): ", "outside VIS-1", *words)
    outcome = refuses(place, "build", project, code=EXIT_REFUSED, says=says)
    assert re.search(rf"error\[{rule}\].*\n  \S", outcome.err), "no remedy"
    assert not (project / "dist").exists()


@pytest.mark.parametrize("header", ["immintrin.h", "emmintrin.h", "x86intrin.h", "arm_neon.h", "arm_sve.h"])
def test_intrinsics_of_one_processor(header, place, tmp_path):
    project = write_project(tmp_path / "project", tiny_c=f"{INCLUDE}#include <{header}>\n{ADD}")
    refuses(place, "build", project, code=EXIT_FAILED, says=("tiny.c:2:", "outside VIS-1", "portable C code"))


def test_builtins_of_one_processor(place, tmp_path):
    project = write_project(tmp_path / "project", **inside("a += __builtin_ia32_rdtsc();"))
    refuses(place, "build", project, code=EXIT_FAILED, says=("tiny.c:4:", "__builtin_ia32_rdtsc"), hint=False)


@pytest.mark.parametrize("attribute", ['target("avx2")', 'target("arch=+v")', 'target("arch=+zbb,+v")'])
def test_a_target_attribute_leaves_no_trace(attribute, place, tmp_path):
    """The code is compiled for the processor where it arrives, whatever processor the author had in mind."""
    project = write_project(tmp_path / "project", tiny_c=f"{INCLUDE}__attribute__(({attribute})) {ADD}")
    assert place.run("build", project).code == 0
    package = open_package((project / "dist" / "tiny-1.0.vis").read_bytes())
    text = text_of(parse_bitcode(package.bitcode()))
    assert "target-features" not in text
    assert "target-cpu" not in text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("    if (a > 9)\n        throw 1;\n    return a + b;", ("tiny.cpp:7:9: error: cannot use 'throw'",)),
        ("    try { return a + b; } catch (...) { return 0; }", ("tiny.cpp:6:", "cannot use 'try'")),
        ("    struct A { virtual ~A() {} } x; return typeid(x).name() != 0;", ("typeid", "-frtti")),
    ],
    ids=["throw", "try", "typeid"],
)
def test_cxx_that_uses_what_its_author_turned_off(body, says, place, tmp_path):
    source = f'#include <typeinfo>\nextern "C" {{\n#include "tiny.h"\n}}\nint tiny_add(int a, int b) {{\n{body}\n}}\n'
    toml = GOOD.replace("*.c", "*.cpp").replace("[exports]", "exceptions = false\nrtti = false\n\n[exports]")
    project = write_project(tmp_path / "project", toml=toml, tiny_cpp=source)
    refuses(place, "build", project, code=EXIT_FAILED, says=says, hint=False)


def test_a_cxx_class_whose_source_is_missing(place, tmp_path):
    shape = "struct Shape { virtual int area() const; };\n"
    body = shape + "int tiny_add(int a, int b) {\n    return Shape().area() + a + b; }\n"
    source = f'extern "C" {{\n{INCLUDE}}}\n{body}'
    project = write_project(tmp_path / "project", toml=GOOD.replace("*.c", "*.cpp"), tiny_cpp=source)
    refuses(place, "build", project, code=EXIT_REFUSED, says=("tiny.cpp:6: error[VIS-504] in tiny_add()", "Shape"))


def test_what_is_allowed_stays_allowed(place, tmp_path):
    """The table refuses open(), not files; and a thread-local variable of one's own is only slow."""
    body = 'FILE *f = fopen("x", "r"); if (f) fclose(f); a += ++own;'
    files = inside(body, "#include <stdio.h>\nstatic _Thread_local int own;")
    outcome = place.run("build", write_project(tmp_path / "project", **files))
    assert outcome.code == 0, outcome
    assert "tiny.c:5: warning[VIS-207]" in outcome.err


# ---- signatures (flipped and cut bytes: rows 1 and 2 in tests/negative) --------------------------------------


def test_a_damaged_signature_file(place):
    data = place.blob(".dsse").read_bytes()
    for bad in (b"", b"{}", data[:-1], flipped(data, 100), b"\xff" * 40):
        plant(place.registry, dsse=bad or b" ")
        outcome = place.run("install", "tiny")
        assert outcome.code in (EXIT_TRUST, EXIT_REFUSED), outcome
        assert "error: " in outcome.text
        assert place.store_files() == {}


def test_row_07_a_package_signed_by_an_unknown_key(place):
    """The registry is honest about owner and digest; somebody else signed."""
    package = open_package(place.blob().read_bytes())
    plant(place.registry, dsse=sign_package(package, fixed_key("stranger")))
    stranger = fixed_key("stranger").public.id
    refuses(place, "install", "tiny", code=EXIT_TRUST, says=("not signed by a trusted key", stranger), hint=False)


def test_row_07_a_right_key_id_with_a_wrong_signature(place):
    data, envelope = (place.blob(suffix).read_bytes() for suffix in (".vis", ".dsse"))
    forged = sign_package(open_package(data), fixed_key("stranger"))
    owner = re.search(rb"vk1[a-z2-7]+", envelope)
    stranger = re.search(rb"vk1[a-z2-7]+", forged)
    assert owner and stranger
    plant(place.registry, dsse=forged.replace(stranger[0], owner[0]))
    refuses(place, "install", "tiny", code=EXIT_TRUST, says=("not signed by a trusted key",), hint=False)


def test_a_new_owner_of_a_known_name(place):
    """Trust on first use: the registry may not change whose packages are accepted."""
    assert place.run("install", "tiny").code == 0
    stranger = fixed_key("stranger")
    package = open_package(place.blob().read_bytes())
    plant(place.registry, dsse=sign_package(package, stranger))
    edit_index(place.registry, owners=[stranger.public.id])
    says = ("not signed by a trusted key", stranger.public.id)
    refuses(place, "install", "tiny", code=EXIT_TRUST, says=says, hint=False)
    assert place.run("path", "tiny").code == 0, "what is installed keeps working"


def test_a_key_that_the_user_demands(place):
    stranger = fixed_key("stranger").public.id
    refuses(place, "install", "tiny", "--trust", stranger, code=EXIT_TRUST, says=(f"{stranger} never owned tiny",))


def test_the_owners_in_the_index_decide_nothing(place):
    """They are for people; whose signature counts is in the owner records, which the owners sign themselves."""
    owner = place.run("info", "tiny", "--json").json["signers"]
    edit_index(place.registry, owners=[fixed_key("stranger").public.id])
    assert place.run("install", "tiny", "--json").json["installed"][0]["signers"] == owner


def newest(place: Place) -> dict[str, bytes]:
    """The files of the newest version."""
    return {kind: stored(place.registry, kind, "tiny")[-1].read_bytes() for kind in ("vis", "dsse")}


def test_the_signature_of_another_version(place, second):
    plant(place.registry, dsse=newest(second)["dsse"])
    refuses(place, "install", "tiny", code=EXIT_TRUST, hint=False,
            says=("the signature is not about this package", "tiny 2.0", "tiny 1.0"))  # fmt: skip


def test_an_index_that_offers_another_version(place, second):
    """Both files are genuine and fit each other; only the version is not the one that was asked for."""
    plant(place.registry, **newest(second))
    says = ("the signature is not about this package", "it states tiny 2.0", "the file is tiny 1.0")
    refuses(place, "install", "tiny==1.0", code=EXIT_TRUST, says=says, hint=False)


def test_an_index_that_names_another_digest(place):
    edit_index(place.registry, vis="0" * 64)
    says = ("lists tiny 1.0 but does not have its file",)
    refuses(place, "install", "tiny", code=EXIT_REGISTRY, says=says)


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b"[]", b"null", b"{", b"\xef\xbb\xbf{}", b'{"format": 1, "format": 1}', b'{"format": NaN}',
     b'{"format": ' + b"9" * 6000 + b"}", b'{"format": "\\ud800"}', b"[" * 100_000, b"<html>please log in</html>",
     b'{"format": 99}'],
    ids=["empty", "object", "list", "null", "open", "BOM", "twice", "NaN", "6000 digits", "surrogate", "depth", "html",
         "newer"],
)  # fmt: skip
@pytest.mark.parametrize("file", ["visget.json", "tuf/timestamp.json", "tuf/1.root.json", "idx__tiny.json"])
def test_row_36_documents_of_a_registry_that_are_none(file, text, place):
    """Damage from outside is a matter of trust; what the registry itself signed is malformed."""
    if file == "idx__tiny.json":
        sign_target(place.registry, file, text)
    else:
        (place.registry / file).write_bytes(text)
    place.run("list")
    before = place.state()
    outcome = place.run("install", "tiny")
    if file == "visget.json":
        # Not signed, and so of no consequence to readers.
        assert outcome.code == 0, outcome
        return
    malformed = file.startswith("idx") or (file.endswith("timestamp.json") and len(text) > 16384)
    assert outcome.code == (EXIT_REGISTRY if malformed else EXIT_TRUST), outcome
    assert file.rpartition("/")[2] in outcome.text
    assert place.state() == before


def test_a_registry_that_lost_its_files(place):
    for kind in ("vis", "dsse"):
        for path in stored(place.registry, kind):
            path.unlink()
    refuses(place, "install", "tiny", code=EXIT_REGISTRY, says=("does not have its file",))
    for path in (place.registry / "t").glob("*.idx__tiny.json"):
        path.unlink()
    refuses(Place(root=place.root, variables={"VISGET_HOME": str(place.root / "new")}), "install", "tiny",
            code=EXIT_REGISTRY, says=("does not have its file",))  # fmt: skip
    (place.registry / "tuf" / "timestamp.json").unlink()
    refuses(place, "install", "tiny", code=EXIT_REGISTRY, says=("there is no registry here",))


# ---- names, versions, targets --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("nothing",), EXIT_NOT_FOUND, ("'nothing'",)),
        (("tinny",), EXIT_NOT_FOUND, ("'tinny'", "did you mean tiny?")),
        (("tiny==9",), EXIT_NOT_FOUND, ("tiny==9", "1.0")),
        (("tiny>1.0",), EXIT_NOT_FOUND, ("tiny>1.0", "1.0")),
        (("tiny==one",), EXIT_USAGE, ("'tiny==one'", "NAME==1.2")),
        (("Tiny Lib",), EXIT_USAGE, ("'Tiny Lib'",)),
        (("../../etc/passwd",), EXIT_USAGE, ("'../../etc/passwd'",)),
        (("zl\u0131b",), EXIT_USAGE, ("zl\u0131b",)),
        (("tiny", "--target", "sparc64-linux-gnu"), EXIT_UNSUPPORTED, ("no back end", "sparc64-linux-gnu", "host")),
        (("tiny", "--target", "x86_64-pc-windows-msvc"), EXIT_UNSUPPORTED, ("no back end", "windows")),
        (("tiny", "--target", "aarch64-apple-darwin"), EXIT_UNSUPPORTED, ("no back end", "darwin")),
        (("tiny", "--target", "wasm32-unknown-unknown"), EXIT_UNSUPPORTED, ("no back end", "wasm32")),
        (("tiny", "--target", "nonsense"), EXIT_UNSUPPORTED, ("'nonsense'", "x86_64-linux-gnu")),
        (("tiny", "--target", "x86_64-linux-gnu:nosuchcpu"), EXIT_UNSUPPORTED, ("nosuchcpu",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_had(words, code, says, place):
    refuses(place, "install", *words, code=code, says=says)
    outcome = place.run("install", *words, "--dry-run")
    assert outcome.code == code


# ---- no linker -----------------------------------------------------------------------------------------------


def test_without_a_linker(place):
    alone = place.with_env(VISGET_LINKER="none")
    assert alone.run("install", "tiny").code == 0
    refuses(alone, "path", "tiny", code=EXIT_NOT_FOUND, says=("no shared library", "visget[author]"))
    (key,) = alone.natives()
    assert sorted(path.suffix for path in (alone.home / "native" / "v1" / key / "lib").glob("lib*")) == [".a", ".o"]
    # A C program still has the archive.
    flags = alone.run("pkg-config", "--libs", "--static", "tiny")
    assert flags.code == 0
    assert "libtiny.a" in flags.out or "-ltiny" in flags.out


def test_a_linker_that_does_not_exist(place):
    place = place.with_env(VISGET_LINKER="/nonexistent/ld")
    assert place.run("list").code == 0
    outcome = place.run("install", "tiny")
    assert outcome.code in (EXIT_UNSUPPORTED, EXIT_USAGE)
    assert "/nonexistent/ld" in outcome.text
    assert place.natives() == []


def test_a_linker_that_fails(place, tmp_path):
    broken = tmp_path / "ld.lld"
    version = '*ersion*) echo "LLD 22.1.0 (compatible with GNU linkers)";;'
    broken.write_text(f'#!/bin/sh\ncase "$*" in {version} *) echo "ld: no luck" >&2; exit 1;; esac\n')
    broken.chmod(0o755)
    place = place.with_env(VISGET_LINKER=str(broken))
    outcome = place.run("install", "tiny")
    assert outcome.code in (EXIT_FAILED, EXIT_UNSUPPORTED)
    assert "error: " in outcome.text
    assert place.natives() == []
    assert list((place.home / "tmp").iterdir()) == []


# ---- code that does not keep its promises --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toml", "source", "says"),
    [
        (GOOD.replace("int = 42", "int = 43"), SOURCE, ("43", "42", "sum")),
        (GOOD, SOURCE.replace("return a + b;", "return *(volatile int *)0 + a + b;"), ("sum",)),
        (GOOD.replace("{ int = 2 }", "{ float = 2.5 }"), SOURCE, ("sum",)),
    ],
    ids=["wrong", "crash", "type"],
)
def test_wrong_answers_are_not_installed(toml, source, says, place, tmp_path):
    project = write_project(tmp_path / "project", toml=toml.replace('"1.0"', '"1.1"'), tiny_c=source)
    built = place.run("build", project)
    if built.code:
        assert "sum" in built.text
        return
    assert place.run("publish", project / "dist" / "tiny-1.1.vis", "--no-check").code == 0
    outcome = place.run("install", "tiny")
    assert outcome.code == EXIT_FAILED, outcome
    for text in ("tiny 1.1", *says):
        assert text in outcome.text
    assert place.natives() == []
    assert place.run("list", "--json").json == {"installed": []}
    assert list((place.home / "tmp").iterdir()) == []


# ---- publishing ----------------------------------------------------------------------------------------------


def test_publishing_what_may_not_be_published(place, tmp_path, published):
    vis = published.root / "project" / "dist" / "tiny-1.0.vis"
    key_file(tmp_path / "other.key", "other")
    refuses(place, "publish", vis, "--key", tmp_path / "other.key", code=EXIT_TRUST,
            says=("the name tiny belongs to another key", fixed_key("other").public.id))  # fmt: skip
    broken = tmp_path / "broken.vis"
    broken.write_bytes(flipped(vis.read_bytes(), 2000))
    refuses(place, "publish", broken, code=EXIT_REFUSED, says=("error: ",), hint=False)
    project = write_project(tmp_path / "project", tiny_c=SOURCE.replace("a + b", "b + a + 0 * a"))
    (project / "tiny.c").write_text(SOURCE.replace("a + b", "a - -b"))
    assert place.run("build", project).code == 0
    refuses(place, "publish", project / "dist" / "tiny-1.0.vis", code=EXIT_REGISTRY,
            says=("tiny 1.0 is already published with other content", "raise the version"))  # fmt: skip
    alike = write_project(tmp_path / "alike", toml=GOOD.replace('"tiny"', '"t1ny"'))
    assert place.run("build", alike).code == 0
    refuses(place, "publish", alike / "dist" / "t1ny-1.0.vis", code=EXIT_REGISTRY, says=("too similar to 'tiny'",))
    again = place.run("publish", vis)
    assert again.code == 0
    assert "already published" in again.out

