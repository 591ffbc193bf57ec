"""From a library's own build system to calls of it: the commands, as authors and users type them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from e2ekit import User
from systemkit import SOURCES, tiny

BESIDE = Path(sys.executable).parent


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    if not (BESIDE / "visget-cc").exists() or not Path("/usr/bin/make").exists():
        pytest.skip("visget-cc or make is not installed here")
    user = User(tmp_path_factory.mktemp("systems"))
    user.visget("registry", "init", user.root / "registry")
    user.visget("key", "new", "--no-passphrase")
    return user


def installed(user: User, root: Path, *words: str) -> dict[str, object]:
    built = user.json("build", root, *words)
    user.visget("check", str(built["file"]))
    user.visget("publish", str(built["file"]))
    user.visget("install", str(built["package"]))
    return built


def test_a_makefile_from_source_to_call(user: User) -> None:
    root = tiny(user.root / "tiny", "make")
    built = installed(user, root, "--test")
    assert built["exports"] == ["tiny_add", "tiny_where"]
    library = user.load("tiny")
    assert library.tiny_add(2, 3) == 9
    assert library.tiny_where() == b"src/deep/add.c"


def test_bitcode_of_another_front_end_from_file_to_call(user: User) -> None:
    root = user.root / "foreign"
    root.mkdir()
    (root / "visget.toml").write_text(
        '[package]\nname = "foreign"\nversion = "1.0"\nsummary = "From Zig"\nlicense = "MIT"\n'
    )
    (root / "z.zig").write_text(
        "export fn squares(p: [*]const f64, n: usize) f64 {\n    var s: f64 = 0;\n"
        "    for (p[0..n]) |v| s += v * v;\n    return s;\n}\n"
        "export fn wrap(a: i32, b: u8) i32 {\n    return a +% b;\n}\n"
    )
    (root / "z.h").write_text("double squares(const double *p, unsigned long n);\nint wrap(int a, unsigned char b);\n")
    from buildkit import frontend

    zig = frontend().command[0]
    subprocess.run(
        [zig, "build-obj", "z.zig", "-O", "ReleaseFast", "-fPIC", "-fno-emit-bin", "-femit-llvm-bc=z.bc", "-target",
         "x86_64-linux-gnu", "--global-cache-dir", "c", "--cache-dir", "c"], cwd=root, check=True,
    )  # fmt: skip
    installed(user, root, "--from-bitcode", str(root / "z.bc"), "--api", str(root / "z.h"))
    library = user.load("foreign")
    import ctypes

    assert library.squares((ctypes.c_double * 3)(1, 2, 3), 3) == 14
    assert library.wrap(2**31 - 1, 1) == -(2**31)


def test_a_compilation_database_from_file_to_call(user: User) -> None:
    root = user.root / "listed"
    for name, text in {**SOURCES, "out/config.h": "#define TINY_FACTOR 5\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "visget.toml").write_text(
        '[package]\nname = "listed"\nversion = "1.0"\nsummary = "Listed"\nlicense = "MIT"\n'
        '[exports]\nheaders = ["tiny.h"]\n'
    )
    (root / "out" / "compile_commands.json").write_text(json.dumps([
        {"directory": str(root / "out"), "file": f"../src/{name}",
         "command": f"gcc -march=native -I../include -I../src -I. -c ../src/{name} -o {name}.o"}
        for name in ("add.c", "deep/add.c")
    ]))  # fmt: skip
    installed(user, root, "--from", str(root / "out"))
    assert user.load("listed").tiny_add(2, 3) == 13


def test_a_failed_build_shows_its_last_lines_and_its_log(user: User) -> None:
    root = tiny(user.root / "broken", "make", files={"src/add.c": "int f( {\n"})
    done = user.finished("build", root, code=1)
    assert "src/add.c:1:8: error:" in done.stderr
    assert "make ended with status 2 while making" in done.stderr
    log = user.root / "cache" / "logs" / "tiny-1.0.log"
    assert str(log) in done.stderr.replace("\n", "") and log.is_file()
    told = user.json("build", root, code=1)
    assert told["details"]["log"] == str(log)


@pytest.mark.parametrize(("words", "said"), [
    (("--from", "a.json", "--from-bitcode", "x.bc"), "give either --from or --from-bitcode"),
    (("--api", "x.h"), "--api goes with --from or --from-bitcode"),
    (("--from", "a.json", "--test"), "--choose-cleanup and --test do not go with --from"),
    (("--from", "a.json"), "cannot read the compilation database"),
    (("--from-bitcode", "x.bc", "--api", "include/tiny.h"), "cannot read the bitcode"),
])  # fmt: skip
def test_options_that_do_not_go_together(user: User, words: tuple[str, ...], said: str) -> None:
    root = tiny(user.root / "options", "make")
    assert said in user.finished("build", *words, cwd=root, code=2).stderr


def test_there_are_no_tests_where_visget_compiles(user: User) -> None:
    root = user.root / "plain"
    root.mkdir(exist_ok=True)
    (root / "a.h").write_text("int a(void);\n")
    (root / "a.c").write_text("int a(void) { return 1; }\n")
    (root / "visget.toml").write_text(
        '[package]\nname = "plain"\nversion = "1.0"\nsummary = "Plain"\nlicense = "MIT"\n'
        '[build]\nsources = ["a.c"]\n[exports]\nheaders = ["a.h"]\n'
    )
    done = user.finished("build", root, "--test", code=2)
    assert "there are no tests to run" in done.stderr and "visget.toml:6" in done.stderr


def test_keep_says_where(user: User) -> None:
    root = tiny(user.root / "kept", "make")
    done = user.finished("build", root, "--keep")
    assert "the build is kept in" in done.stderr
