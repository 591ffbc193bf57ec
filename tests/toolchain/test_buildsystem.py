"""`[build] system`: the library's own build system, with visget's compiler, gives a package like any other."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from buildkit import build as build_sources
from systemkit import FILES, MAKEFILE, build_tiny, tiny

from visget.digest import digest_bytes
from visget.errors import BuildError, RefusedError, UnsupportedError, UsageError
from visget.format.lines import LineTable
from visget.format.module import parse_bitcode, text_of
from visget.progress import Silent
from visget.toolchain.buildtools import Programs, Workplace, check_marker, plan_steps
from visget.toolchain.project import read_project

BESIDE = Path(sys.executable).parent
PATH = f"{BESIDE}:/usr/local/bin:/usr/bin:/bin"


def needs(system: str) -> None:
    programs = Programs(PATH)
    wanted = {"cmake": ("cmake", "make"), "meson": ("meson", "ninja")}.get(system, ("make",))
    missing = [name for name in (*wanted, "visget-cc") if programs.find(name) is None]
    if missing:
        pytest.skip(f"not installed here: {', '.join(missing)}")


@pytest.fixture(params=sorted(FILES))
def system(request: pytest.FixtureRequest) -> str:
    needs(request.param)
    return str(request.param)


def test_each_system_gives_the_package(tmp_path: Path, system: str) -> None:
    result = build_tiny(tiny(tmp_path / "tiny", system), test=True)
    manifest = result.package.manifest
    assert manifest.exports == ("tiny_add", "tiny_where") and manifest.imports == ()
    assert manifest.provenance.flags[0] == f"system={system}"
    assert result.findings == []
    lines = LineTable.parse(result.package.section("lines") or b"")
    assert lines.files == ("src/add.c", "src/deep/add.c")
    place = lines.lookup("tiny_add")
    assert place is not None and (place.file, place.line) == ("src/add.c", 3)
    config = "visget-build/config.h" if system in ("cmake", "meson") else "config.h"
    names = [name for name, _ in result.sources_used]
    assert sorted(names) == sorted(["include/tiny.h", "src/add.c", "src/deep/add.c", "src/own.h", config])
    assert result.package.headers()["tiny.h"].startswith("/** Adds. */")
    assert result.package.api().functions[0].doc == "Adds."


def test_two_places_give_the_same_bytes(tmp_path: Path, system: str) -> None:
    first = build_tiny(tiny(tmp_path / "one", system), jobs=1)
    second = build_tiny(tiny(tmp_path / "far" / "away (2)" / "another", system), jobs=2)
    assert first.data == second.data
    blob = b"".join(first.package.section(kind) or b"" for kind in ("bitcode", "lines", "api")) + first.data[:4096]
    for forbidden in (str(tmp_path).encode(), b"/builds/", b"visget-src"):
        assert forbidden not in blob


def test_the_sources_are_not_written_to(tmp_path: Path, system: str) -> None:
    root = tiny(tmp_path / "tiny", system)

    def listed() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in root.rglob("*")}

    before = listed()
    build_tiny(root)
    assert listed() == before
    assert list((tmp_path / "tiny-cache" / "builds").iterdir()) == []


def test_installed_headers_and_library_are_found(tmp_path: Path, system: str) -> None:
    root = tiny(tmp_path / "tiny", system, build="install = true", library="visget-stage/usr/lib/libtiny.a")
    result = build_tiny(root)
    assert "visget-stage/usr/include/tiny.h" in [name for name, _ in result.sources_used]
    assert result.package.manifest.exports == ("tiny_add", "tiny_where")


def test_the_settings_of_the_package_reach_every_compilation(tmp_path: Path) -> None:
    needs("make")
    source = (
        '#include "tiny.h"\n#include "own.h"\nint tiny_add(int a, int b)\n'
        "{\n    return (int)(EXTRA * 0.5f * a + b) + tiny_own(a);\n}\n"
    )
    root = tiny(
        tmp_path / "tiny", "make", build='defines = ["EXTRA=2.5f"]\nfloating-point = "strict"\nfloat-cast = "native"',
        files={"src/add.c": source},
    )  # fmt: skip
    strict = build_tiny(root)
    text = text_of(parse_bitcode(strict.package.bitcode()))
    assert "fmuladd" not in text and "fptosi.sat" not in text and strict.package.manifest.fp_contract == "off"
    (root / "visget.toml").write_text(
        (root / "visget.toml").read_text().replace('"strict"', '"contract"').replace('"native"', '"saturate"')
    )
    text = text_of(parse_bitcode(build_tiny(root).package.bitcode()))
    assert "fmuladd" in text and "fptosi.sat" in text


def test_a_shared_library_will_do(tmp_path: Path) -> None:
    needs("make")
    rules = MAKEFILE.replace("all: libtiny.a", "all: libtiny.so.1.2") + (
        "libtiny.so.1.2: add.o deep/add.o\n\t$(CC) -shared -Wl,-soname,libtiny.so.1 -o $@ add.o deep/add.o\n"
        "\tln -sf libtiny.so.1.2 libtiny.so\n"
    )
    root = tiny(tmp_path / "tiny", "make", files={"Makefile": rules}, library="libtiny.so")
    result = build_tiny(root)
    assert result.package.manifest.exports == ("tiny_add", "tiny_where")
    names = [name for name, _ in result.sources_used]
    assert {"src/add.c", "src/deep/add.c", "src/own.h", "config.h"} <= set(names)


def test_objects_and_patterns_will_do(tmp_path: Path) -> None:
    needs("make")
    root = tiny(tmp_path / "tiny", "make")
    toml = (root / "visget.toml").read_text().replace('library = "libtiny.a"', 'library = ["add.o", "de*/*.o"]')
    (root / "visget.toml").write_text(toml)
    assert build_tiny(root).package.manifest.exports == ("tiny_add", "tiny_where")


def test_exactly_the_members_of_the_library(tmp_path: Path) -> None:
    needs("make")
    rules = MAKEFILE.replace("all: libtiny.a", "all: libtiny.a other.o") + (
        "other.o: other.c\n\t$(CC) -c other.c\n"
    )
    other = "int tiny_other(void) { return 1; }\nint tiny_add(int a, int b) { return a + b; }\n"
    header = "int tiny_add(int a, int b);\nconst char *tiny_where(void);\nint tiny_other(void);\n"
    files = {"Makefile": rules, "other.c": other, "include/tiny.h": header}
    result = build_tiny(tiny(tmp_path / "tiny", "make", files=files))
    assert result.package.manifest.exports == ("tiny_add", "tiny_where")
    assert any("tiny_other" in note for note in result.notes)


def test_the_same_object_twice_is_one(tmp_path: Path) -> None:
    needs("make")
    rules = MAKEFILE.replace(
        "\t$(AR) $@ add.o deep/add.o\n",
        "\tcp add.o copy.o\n\tar q $@ add.o copy.o\n\tar q $@ deep/add.o\n",
    )
    root = tiny(tmp_path / "tiny", "make", files={"Makefile": rules})
    assert build_tiny(root).package.manifest.exports == ("tiny_add", "tiny_where")


def test_one_source_compiled_twice_clashes_by_name(tmp_path: Path) -> None:
    needs("make")
    rules = MAKEFILE.replace(
        "\t$(AR) $@ add.o deep/add.o\n",
        "\t$(CC) -DMORE -Iinclude -Isrc -I. -c src/add.c -o twice.o\n\t$(AR) $@ add.o deep/add.o twice.o\n",
    )
    source = "#ifdef MORE\nint more;\n#endif\nint tiny_add(int a, int b)\n{\n    return a + b;\n}\n"
    root = tiny(tmp_path / "tiny", "make", files={"Makefile": rules, "src/add.c": source})
    with pytest.raises(BuildError) as caught:
        build_tiny(root)
    both = "tiny_add is defined in src/add.c (libtiny.a(add.o)) and in src/add.c (libtiny.a(twice.o))"
    assert both in caught.value.message


def failing(root: Path, **arguments: object) -> BuildError:
    with pytest.raises(BuildError) as caught:
        build_tiny(root, **arguments)
    return caught.value


def with_rule(tmp_path: Path, rule: str, files: dict[str, str] | None = None) -> Path:
    """Return a project whose library also has what `rule` makes: more.o."""
    rules = MAKEFILE.replace("libtiny.a: add.o deep/add.o", "libtiny.a: add.o deep/add.o more.o")
    rules = rules.replace("\t$(AR) $@ add.o deep/add.o", "\t$(AR) $@ add.o deep/add.o more.o") + rule
    return tiny(tmp_path / "tiny", "make", files={"Makefile": rules, **(files or {})})


def test_machine_code_in_the_library_names_member_and_making(tmp_path: Path) -> None:
    needs("make")
    if shutil.which("gcc", path="/usr/bin") is None:
        pytest.skip("there is no /usr/bin/gcc here")
    rule = "more.o: more.c\n\t/usr/bin/gcc -c more.c -o more.o\n"
    error = failing(with_rule(tmp_path, rule, {"more.c": "int more;\n"}))
    assert error.message.startswith("libtiny.a(more.o) is machine code for ")
    assert "none of visget's tools made it" in error.message
    assert "called by its path" in (error.hint or "")


def test_machine_code_that_lay_in_the_sources(tmp_path: Path) -> None:
    needs("make")
    root = with_rule(tmp_path, "more.o: more.s\n\tcp blob.bin more.o\n", {"more.s": "nop\n"})
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\x00\x3e\x00" + bytes(44)
    (root / "blob.bin").write_bytes(head)
    error = failing(root)
    assert error.message == "libtiny.a(more.o) is machine code for x86-64: it seems to come from more.s"


def test_something_else_in_the_library(tmp_path: Path) -> None:
    needs("make")
    error = failing(with_rule(tmp_path, "more.o:\n\techo hello > more.o\n"))
    assert "libtiny.a(more.o) is no bitcode" in error.message


def test_a_header_of_this_machine_does_not_pass(tmp_path: Path) -> None:
    needs("make")
    outside = tmp_path / "machine" / "secret.h"
    outside.parent.mkdir()
    outside.write_text("#define MORE 1\n")
    rule = f"more.o: more.c\n\t$(CC) -O2 -Wall -I{outside.parent} -c more.c\n"
    error = failing(with_rule(tmp_path, rule, {"more.c": '#include "secret.h"\nint more = MORE;\n'}))
    assert error.message == f"more.c was compiled with {outside}, which is outside of the sources"
    assert "[dependencies]" in (error.hint or "")
    assert str(error.details["call"]) == f"visget-cc -O2 -Wall -I{outside.parent} -c more.c"


def test_a_library_from_outside_does_not_pass(tmp_path: Path) -> None:
    needs("make")
    outside = tmp_path / "machine"
    outside.mkdir()
    (outside / "x.c").write_text("int more(void) { return 1; }\n")
    subprocess.run([BESIDE / "visget-cc", "-c", "x.c"], cwd=outside, check=True)
    subprocess.run([BESIDE / "visget-ar", "rc", "libx.a", "x.o"], cwd=outside, check=True)
    rules = MAKEFILE.replace("all: libtiny.a", "all: libtiny.so") + (
        f"libtiny.so: add.o deep/add.o\n\t$(CC) -shared -o $@ add.o deep/add.o {outside}/libx.a\n"
    )
    error = failing(tiny(tmp_path / "tiny", "make", files={"Makefile": rules}, library="libtiny.so"))
    assert error.message == f"libtiny.so was linked with {outside}/libx.a, which is outside of the sources"
    assert "[dependencies]" in (error.hint or "")


@pytest.mark.parametrize(("flags", "named"), [
    ("-Wl,--wrap=add", "--wrap=add"),
    ("-Wl,-z,now,--defsym,more=add", "--defsym"),
    ("-Xlinker -init=add", "-init=add"),
])  # fmt: skip
def test_a_link_that_changes_what_is_linked_does_not_pass(tmp_path: Path, flags: str, named: str) -> None:
    needs("make")
    rules = MAKEFILE.replace("all: libtiny.a", "all: libtiny.so") + (
        f"libtiny.so: add.o deep/add.o\n\t$(CC) -shared {flags} -o $@ add.o deep/add.o\n"
    )
    error = failing(tiny(tmp_path / "tiny", "make", files={"Makefile": rules}, library="libtiny.so"))
    assert error.message.startswith(f"libtiny.so was linked with {named}, which changes what is linked")


def test_a_library_of_this_machine_is_refused_by_name(tmp_path: Path) -> None:
    needs("make")
    rules = MAKEFILE.replace("all: libtiny.a", "all: libtiny.so") + (
        "libtiny.so: add.o deep/add.o\n\t$(CC) -shared -o $@ add.o deep/add.o -lstrange -lm\n"
    )
    error = failing(tiny(tmp_path / "tiny", "make", files={"Makefile": rules}, library="libtiny.so"))
    assert "strange" in str(error.details["stderr"]) and "dependenc" in str(error.details["stderr"])


def test_a_system_header_by_its_path_does_not_pass(tmp_path: Path) -> None:
    needs("make")
    if not Path("/usr/include/paths.h").exists():
        pytest.skip("this machine has no /usr/include/paths.h")
    rule = "more.o: more.c\n\t$(CC) -c more.c\n"
    error = failing(with_rule(tmp_path, rule, {"more.c": "#include </usr/include/paths.h>\nint more;\n"}))
    assert "/usr/include/paths.h is a header of this machine" in str(error.details["stderr"])


def test_bitcode_that_was_there_before_is_a_warning(tmp_path: Path) -> None:
    needs("make")
    cc = BESIDE / "visget-cc"
    (tmp_path / "old.c").write_text("int more(void) { return 1; }\n")
    subprocess.run([cc, "-c", "old.c", "-o", "old.bin"], cwd=tmp_path, check=True)
    root = with_rule(tmp_path, "more.o:\n\tcp old.bin more.o\n")
    shutil.copy(tmp_path / "old.bin", root / "old.bin")
    found = build_tiny(root).findings
    assert [one.rule for one in found] == ["BLD-003"]
    assert found[0].message == "libtiny.a(more.o) (old.c) was not compiled in this build, so nobody knows from what"


def test_bitcode_of_another_target_does_not_pass(tmp_path: Path) -> None:
    needs("make")
    from buildkit import frontend

    clang = " ".join(frontend().command)
    rule = f"more.o: more.c\n\t{clang} --target=x86_64-linux-gnu -emit-llvm -c more.c -o more.o\n"
    error = failing(with_rule(tmp_path, rule, {"more.c": "int more;\n"}))
    assert "libtiny.a(more.o) is bitcode for x86_64" in error.message
    assert "$CC" in (error.hint or "")


def test_a_directory_of_the_build_in_the_code_is_refused(tmp_path: Path) -> None:
    needs("make")
    source = 'const char *tiny_more(void)\n{\n    return "data in " WHERE;\n}\n'
    header = "int tiny_add(int a, int b);\nconst char *tiny_where(void);\nconst char *tiny_more(void);\n"
    rule = "more.o: more.c\n\t$(CC) -DWHERE='\"'`pwd`'\"' -c more.c\n"
    root = with_rule(tmp_path, rule, {"more.c": source, "include/tiny.h": header})
    with pytest.raises(RefusedError) as caught:
        build_tiny(root)
    (finding,) = caught.value.details["findings"]  # type: ignore[misc]
    assert (finding.rule, finding.function, finding.file, finding.line) == ("BLD-001", "tiny_more", "more.c", 1)
    assert "/source'" in finding.message and "a directory of this build" in finding.message


def test_what_configure_says_of_the_machine_is_a_warning(tmp_path: Path) -> None:
    needs("make")
    source = 'const char *tiny_more(void)\n{\n    return "built on x86_64-pc-linux-gnu";\n}\n'
    header = "int tiny_add(int a, int b);\nconst char *tiny_where(void);\nconst char *tiny_more(void);\n"
    root = with_rule(tmp_path, "more.o: more.c\n\t$(CC) -c more.c\n", {"more.c": source, "include/tiny.h": header})
    (finding,) = build_tiny(root).findings
    assert (finding.rule, finding.severity, finding.function) == ("BLD-002", "warning", "tiny_more")
    assert "'x86_64-pc-linux-gnu'" in finding.message


def test_a_failing_build_shows_its_end_and_keeps_its_log(tmp_path: Path) -> None:
    needs("make")
    error = failing(tiny(tmp_path / "tiny", "make", files={"src/add.c": "int f( {\n"}))
    assert error.message.startswith("make ended with status 2 while making")
    assert "src/add.c:1:8: error:" in str(error.details["stderr"])
    log = Path(str(error.details["log"]))
    assert error.where == str(log) and log.is_relative_to(tmp_path) and log.name == "tiny-1.0.log"
    assert log.read_text().startswith("+ ") and "error:" in log.read_text()
    assert list((tmp_path / "tiny-cache" / "builds").iterdir()) == []


def test_an_error_far_above_the_end_is_shown(tmp_path: Path) -> None:
    needs("make")
    rules = MAKEFILE.replace("all: libtiny.a", "all: noise libtiny.a\nnoise:") + (
        "\tsleep 0; for i in 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n o p q r s t; do echo error.c $$i; done\n"
    )
    rules = rules.replace("noise:", "noise: early\n\tseq 100; false\nearly:\n\t-$(CC) -c bad.c\nunused:")
    root = tiny(tmp_path / "tiny", "make", files={"Makefile": rules, "bad.c": "int f( {\n"})
    lines = str(failing(root).details["stderr"]).splitlines()
    assert "bad.c:1:8: error:" in lines[0] and "..." in lines
    assert lines[-2] == "100" and "error.c 1" not in lines


def test_a_header_in_another_directory_is_pointed_to(tmp_path: Path) -> None:
    needs("make")
    root = tiny(tmp_path / "tiny", "make", files={"public/deep/more.h": "int more(void);\n"})
    (root / "visget.toml").write_text((root / "visget.toml").read_text().replace('["tiny.h"]', '["deep/more.h"]'))
    with pytest.raises(UsageError) as caught:
        build_tiny(root)
    assert caught.value.hint == 'it is in public: write include = ["public"]'


def test_failing_tests_are_an_error(tmp_path: Path) -> None:
    needs("make")
    root = tiny(tmp_path / "tiny", "make", files={"check.c": "int main(void) { return 3; }\n"})
    assert build_tiny(root).package.manifest.exports
    assert failing(root, test=True).message.startswith("make ended with status 2 while testing")


def test_a_command_for_the_tests(tmp_path: Path) -> None:
    needs("make")
    root = tiny(tmp_path / "tiny", "make", build='tests = ["sh", "-c", "test -f libtiny.a && exit 7"]')
    assert failing(root, test=True).message.startswith("sh ended with status 7 while testing")


@pytest.mark.parametrize(("library", "message", "hint"), [
    ("libtinny.a", "the build made no 'libtinny.a'", "did you mean 'libtiny.a'?"),
    ("lib/completely-else.a", "the build made no", "it made: libtiny.a"),
])  # fmt: skip
def test_a_library_that_was_not_made(tmp_path: Path, library: str, message: str, hint: str) -> None:
    needs("make")
    with pytest.raises(UsageError) as caught:
        build_tiny(tiny(tmp_path / "tiny", "make", library=library))
    assert message in caught.value.message and hint in (caught.value.hint or "")
    assert (caught.value.where or "").endswith("visget.toml:8")


@pytest.mark.parametrize(("library", "old", "new", "message"), [
    ("libtiny.a", "\tranlib $@", "\thead -c 700 $@ > x; mv x $@", "libtiny.a is cut short in its member add.o"),
    ("libtiny.a", "\t$(AR) $@ add.o deep/add.o", "\tar rc $@", "libtiny.a is empty"),
    ("libtiny.a", "\t$(AR) $@ add.o deep/add.o", "\thead -c 500 add.o > cut.o; ar rc $@ cut.o deep/add.o",
     "libtiny.a(cut.o) is not bitcode that visget can read: bitcode is cut short"),
    ("libtiny.la", "all: libtiny.a", "all: libtiny.a\n\techo '# a libtool library file' > libtiny.la",
     "libtiny.la is neither an archive nor a shared library nor bitcode"),
    ("libtiny.so", "all: libtiny.a", "all:\n\tcp /bin/true libtiny.so", "libtiny.so is machine code for "),
    ("libtiny.a", "all: libtiny.a", "all:\n\tln -s /bin/true libtiny.a", "build.library: libtiny.a is a link to /"),
])  # fmt: skip
def test_odd_libraries(tmp_path: Path, library: str, old: str, new: str, message: str) -> None:
    needs("make")
    root = tiny(tmp_path / "tiny", "make", library=library, files={"Makefile": MAKEFILE.replace(old, new)})
    with pytest.raises((BuildError, UsageError)) as caught:
        build_tiny(root)
    assert caught.value.message.startswith(message)
    assert str(tmp_path) not in caught.value.message


@pytest.mark.parametrize(("library", "old", "new"), [
    ("libtiny.a", "\t$(AR) $@ add.o deep/add.o", "\tar rcT $@ add.o deep/add.o"),
    ("all.o", "all: libtiny.a", "all: add.o deep/add.o\n\t$(CC) -r -nostdlib -o all.o add.o deep/add.o"),
    ("libtiny.a", "\techo '#define TINY_FACTOR 3' > config.h",
     "\t$(CC) -o gen gen.c && ./gen > config.h"),
])  # fmt: skip
def test_unusual_but_fine(tmp_path: Path, library: str, old: str, new: str) -> None:
    needs("make")
    generator = '#include <stdio.h>\nint main(void) { return printf("#define TINY_FACTOR %d\\n", 3) < 0; }\n'
    files = {"Makefile": MAKEFILE.replace(old, new), "gen.c": generator}
    result = build_tiny(tiny(tmp_path / "tiny", "make", library=library, files=files))
    assert result.package.manifest.exports == ("tiny_add", "tiny_where") and result.findings == []
    assert {"src/add.c", "src/deep/add.c", "config.h"} <= {name for name, _ in result.sources_used}


def test_what_a_build_leaves_running_is_ended(tmp_path: Path) -> None:
    needs("make")
    rules = MAKEFILE.replace("all: libtiny.a", f"all: libtiny.a\n\tsleep 300 & echo $$! > {tmp_path}/left")
    build_tiny(tiny(tmp_path / "tiny", "make", files={"Makefile": rules}))
    assert not _lives(int((tmp_path / "left").read_text()))


def test_what_a_build_prints_cannot_drive_a_terminal(tmp_path: Path) -> None:
    needs("make")
    rules = "all:\n\tprintf '\\033]0;evil\\007\\033[31mred\\n'; false\n"
    said = str(failing(tiny(tmp_path / "tiny", "make", files={"Makefile": rules})).details["stderr"])
    assert "red" in said and "\x1b" not in said and "\x07" not in said


def test_several_libraries_of_one_name(tmp_path: Path) -> None:
    needs("make")
    rules = MAKEFILE + (
        "other: libtiny.a\n\tmkdir -p sub same\n\tar rc sub/libtiny.a add.o\n\tcp libtiny.a same/libtiny.a\n"
    )
    root = tiny(tmp_path / "tiny", "make", build='targets = ["other"]', files={"Makefile": rules})
    assert build_tiny(root).package.manifest.exports  # the one in the build directory itself
    toml = (root / "visget.toml").read_text()
    (root / "visget.toml").write_text(toml.replace('["other"]', '["other", "gone"]'))
    (root / "Makefile").write_text(rules + "gone: other\n\tmkdir third\n\tmv libtiny.a third\n")
    with pytest.raises(UsageError) as caught:
        build_tiny(root)
    assert "several files 'libtiny.a': same/libtiny.a, sub/libtiny.a" in caught.value.message


@pytest.mark.parametrize(("system", "hint"), [
    ("cmake", 'there is Makefile: system = "make"'),
    ("autotools", 'there is Makefile: system = "make"'),
])  # fmt: skip
def test_another_build_system_than_the_library_has(tmp_path: Path, system: str, hint: str) -> None:
    needs("make")
    root = tiny(tmp_path / "tiny", "make")
    (root / "visget.toml").write_text((root / "visget.toml").read_text().replace('"make"', f'"{system}"'))
    with pytest.raises(UsageError) as caught:
        build_tiny(root)
    assert caught.value.hint == hint


def test_a_tree_from_before_autoconf(tmp_path: Path) -> None:
    needs("make")
    root = tiny(tmp_path / "tiny", "autotools", files={"configure.ac": "AC_INIT\n"})
    (root / "configure").unlink()
    if Programs(PATH).find("autoreconf") is None:
        with pytest.raises(UsageError) as caught:
            build_tiny(root)
        assert "there is configure.ac only" in (caught.value.hint or "")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in ("autoreconf", "make"):
        (bin_ / name).write_text("#!/bin/sh\n")
        (bin_ / name).chmod(0o755)
    place = Workplace(root=root, scratch=tmp_path, directory=root)
    programs = Programs(str(bin_))
    project = read_project(root)
    check_marker(project, place, programs)
    steps = plan_steps(project.build, place, programs, jobs=3)
    assert [step.phase for step in steps] == ["preparing", "configuring", "making"]
    assert steps[0].command == (str(bin_ / "autoreconf"), "--force", "--install")
    assert steps[2].command == (str(bin_ / "make"), "-j3")


def test_the_build_files_are_somewhere_else(tmp_path: Path) -> None:
    needs("cmake")
    root = tiny(tmp_path / "tiny", "cmake")
    shutil.move(root / "CMakeLists.txt", root / "src" / "CMakeLists.txt")
    with pytest.raises(UsageError) as caught:
        build_tiny(root)
    assert caught.value.hint == 'it is in src: name one with directory = "..."'


def test_a_program_that_is_not_installed() -> None:
    with pytest.raises(UnsupportedError) as caught:
        Programs("/nowhere").need("cmake")
    assert "cmake, which is not installed" in caught.value.message
    assert "pip install cmake" in (caught.value.hint or "")


def test_nothing_of_the_users_environment_gets_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("make")
    monkeypatch.setenv("CFLAGS", "-DEVIL")
    monkeypatch.setenv("http_proxy", "http://proxy.example:1")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    rules = MAKEFILE.replace("all: libtiny.a", "all: libtiny.a\n\tenv | sort > environment\n\tumask >> environment")
    root = tiny(tmp_path / "tiny", "make", files={"Makefile": rules})
    build_tiny(root, keep=True)
    (kept,) = (tmp_path / "tiny-cache" / "builds").iterdir()
    seen = (kept / "source" / "environment").read_text()
    assert "EVIL" not in seen and "proxy" not in seen and "\nLC_ALL=C\n" in seen and f"HOME={tmp_path}\n" not in seen
    assert "\nSOURCE_DATE_EPOCH=315532800\n" in seen and seen.rstrip().endswith("0022")


def test_every_build_is_told_the_same_about_its_machine(tmp_path: Path) -> None:
    needs("make")
    rules = MAKEFILE.replace(
        "all: libtiny.a",
        "all: libtiny.a\n\t(uname; uname -a; uname -m; uname -s -r; uname -n; arch; hostname; uname -sm) > machine",
    )
    root = tiny(tmp_path / "tiny", "make", files={"Makefile": rules})
    build_tiny(root, keep=True)
    (kept,) = (tmp_path / "tiny-cache" / "builds").iterdir()
    assert (kept / "source" / "machine").read_text().splitlines() == [
        "Linux", "Linux visget 6.1.0 #1 riscv64 GNU/Linux", "riscv64", "Linux 6.1.0", "visget", "riscv64", "visget",
        "Linux riscv64",
    ]  # fmt: skip


def test_a_library_does_not_see_the_processor_of_its_author(tmp_path: Path) -> None:
    needs("cmake")
    text = FILES["cmake"]["CMakeLists.txt"] + (
        'if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86|amd64|AMD64|arm|aarch64")\n'
        '  message(FATAL_ERROR "assembly for ${CMAKE_SYSTEM_PROCESSOR}")\nendif()\n'
        'if(CMAKE_CROSSCOMPILING)\n  message(FATAL_ERROR "cross")\nendif()\n'
    )
    assert build_tiny(tiny(tmp_path / "tiny", "cmake", files={"CMakeLists.txt": text})).package.manifest.exports


def test_a_configure_from_before_the_neutral_processor_is_told_the_real_one(tmp_path: Path) -> None:
    needs("autotools")
    configure = FILES["autotools"]["configure"].replace("set -e\n", "set -e\nuname -m > machine\n")
    root = tiny(tmp_path / "tiny", "autotools", files={"configure": configure, "aux/config.guess": "#!/bin/sh\n"})
    build_tiny(root, keep=True)
    (kept,) = (tmp_path / "tiny-cache" / "builds").iterdir()
    assert (kept / "source" / "machine").read_text().strip() == os.uname().machine


def test_keep_keeps_the_directory_and_says_where(tmp_path: Path) -> None:
    needs("make")
    notes: list[str] = []

    class Told(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    build_tiny(tiny(tmp_path / "tiny", "make"), keep=True, progress=Told())
    (kept,) = (tmp_path / "tiny-cache" / "builds").iterdir()
    assert f"the build is kept in {kept}" in notes
    assert (kept / "source" / "libtiny.a").is_file()


def test_phases_and_progress_are_told(tmp_path: Path, system: str) -> None:
    steps: list[str] = []

    class Told(Silent):
        def step(self, phase: str, detail: str = "", done: int = 0, total: int | None = None) -> None:
            steps.append(phase)

    build_tiny(tiny(tmp_path / "tiny", system, build="install = true"), test=True, progress=Told())
    phases = list(dict.fromkeys(steps))
    configured = ["configuring"] if system != "make" else []
    assert phases[: len(configured) + 3] == [*configured, "making", "installing", "testing"]


def test_a_clock_that_is_ahead_does_not_run_autoconf_again(tmp_path: Path) -> None:
    needs("autotools")
    rules = MAKEFILE + "Makefile.in: Makefile.am\n\tfalse\nlibtiny.a: Makefile.in\n"
    root = tiny(tmp_path / "tiny", "autotools", files={"Makefile.am": "", "Makefile.in": rules})
    later = time.time() + 1000
    os.utime(root / "Makefile.am", (later, later))
    assert build_tiny(root).package.manifest.exports == ("tiny_add", "tiny_where")


def test_a_configure_that_lost_its_mode_still_runs(tmp_path: Path) -> None:
    needs("autotools")
    root = tiny(tmp_path / "tiny", "autotools")
    assert not os.access(root / "configure", os.X_OK)
    build_tiny(root)


def test_ctrl_c_ends_the_whole_build(tmp_path: Path) -> None:
    needs("make")
    rules = f"all:\n\t@echo $$$$ > {tmp_path}/pid; sleep 300\n"
    root = tiny(tmp_path / "tiny", "make", files={"Makefile": rules})
    code = "import sys\nfrom pathlib import Path\nfrom systemkit import build_tiny\nbuild_tiny(Path(sys.argv[1]))\n"
    support = str(Path(__file__).resolve().parents[1] / "support")
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(root)], env={**os.environ, "PYTHONPATH": support},
        stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    child = int((tmp_path / "pid").read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) != 0
    deadline = time.monotonic() + 10
    while _lives(child):
        assert time.monotonic() < deadline, "a process of the build is still there"
        time.sleep(0.05)
    assert list((tmp_path / "tiny-cache" / "builds").iterdir()) == []


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()


def test_common_weak_and_thread_local_symbols_merge(tmp_path: Path) -> None:
    needs("make")
    one = (
        "int shared_counter;\n__attribute__((weak)) int tiny_hook(void) { return 1; }\n"
        "int tiny_own(int a);\nint tiny_add(int a, int b) { shared_counter++; return tiny_own(a) + b + tiny_hook(); }\n"
    )
    two = (
        "int shared_counter;\nint tiny_hook(void) { return 2; }\nstatic _Thread_local int calls;\n"
        "int tiny_own(int a) { return a + shared_counter + calls++; }\n"
        'const char *tiny_where(void) { return "x"; }\n'
    )
    rules = MAKEFILE.replace("CFLAGS = -O2", "CFLAGS = -fcommon -O2")
    root = tiny(tmp_path / "tiny", "make", files={"Makefile": rules, "src/add.c": one, "src/deep/add.c": two})
    text = text_of(parse_bitcode(build_tiny(root).package.bitcode()))
    assert text.count("@shared_counter = ") == 1
    assert "ret i32 2" in text and "ret i32 1" not in text
    assert "thread_local" in text


def test_a_build_and_sources_give_the_same_module(tmp_path: Path) -> None:
    needs("make")
    deep = (
        '#include "../own.h"\nint tiny_own(int a)\n{\n    return a;\n}\n'
        'const char *tiny_where(void)\n{\n    return "";\n}\n'
    )
    root = tiny(tmp_path / "tiny", "make", files={"src/deep/add.c": deep})
    built = build_tiny(root)
    shutil.copytree(root, tmp_path / "plain")
    toml = (root / "visget.toml").read_text()
    toml = toml.replace('system = "make"\nlibrary = "libtiny.a"', 'sources = ["src/**/*.c"]')
    (tmp_path / "plain" / "visget.toml").write_text(toml.replace('["include"]', '["include", "src"]'))
    plain = build_sources(tmp_path / "plain")
    assert digest_bytes(built.package.bitcode()) == digest_bytes(plain.package.bitcode())
    assert built.package.section("lines") == plain.package.section("lines")


def test_cxx_templates_and_inline_functions_of_two_units_merge(tmp_path: Path) -> None:
    needs("make")
    shared = (
        "template <class T> struct Box { T value; T twice() { return value + value; } static T count; };\n"
        "template <class T> T Box<T>::count = 0;\n"
        "struct Base { virtual ~Base() {} virtual int id() { return 1; } };\n"
        "inline int shared_inline(int a) { static int calls = 0; return a + calls++; }\n"
    )
    one = '#include "box.hpp"\nextern "C" int tiny_add(int a, int b)\n' + (
        "{\n    Box<int> box{a};\n    Box<int>::count++;\n    Base base;\n"
        "    return box.twice() + b + base.id() + shared_inline(0);\n}\n"
    )
    two = '#include "../box.hpp"\nextern "C" const char *tiny_where()\n' + (
        '{\n    Box<int> box{3};\n    Base base;\n'
        '    return box.twice() + Box<int>::count + base.id() + shared_inline(1) ? "a" : "b";\n}\n'
    )
    header = (
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\nint tiny_add(int a, int b);\nconst char *tiny_where(void);\n"
        "#ifdef __cplusplus\n}\n#endif\n"
    )
    rules = MAKEFILE.replace("CC = gcc", "CC = g++").replace("src/add.c", "src/add.cc").replace(
        "src/deep/add.c ", "src/deep/add.cc "
    )
    rules = rules.replace("-O2", "-O2 -fno-exceptions -fno-rtti")
    files = {
        "Makefile": rules, "src/add.cc": one, "src/deep/add.cc": two, "src/box.hpp": shared, "include/tiny.h": header,
    }  # fmt: skip
    result = build_tiny(tiny(tmp_path / "tiny", "make", files=files))
    text = text_of(parse_bitcode(result.package.bitcode()))
    assert result.package.manifest.exports == ("tiny_add", "tiny_where")
    assert text.count("@_ZN3BoxIiE5countE = ") == 1 and text.count("calls = ") == 1
    assert "linkonce" not in text and "comdat" not in text
    assert "-fno-exceptions" not in result.package.manifest.provenance.flags
