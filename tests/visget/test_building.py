"""Packages built on packages: what a build sees of its dependencies, and what it records of them."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from e2ekit import User

PAIR = {
    "LICENSE": "MIT\n",
    "pair.h": "#include <stddef.h>\nstruct pair { long low; long high; };\n"
    "long pair_sum(const struct pair *p);\nint pair_cmp(int a, int b);\nstruct pair *pair_new(void);\n"
    "static inline const char *pair_file(void) { return __FILE__; }\n",
    "pair.c": '#include "pair.h"\n#include <stdlib.h>\n'
    "long pair_sum(const struct pair *p) { return p->low + p->high; }\n"
    "int pair_cmp(int a, int b) { return a - b; }\n"
    "struct pair *pair_new(void) { return calloc(1, sizeof(struct pair)); }\n",
}
PAIR_TOML = """\
[package]
name = "pair"
version = "%s"
summary = "Pairs"
license = "MIT"
library = "pairs"
[build]
sources = ["pair.c"]
[exports]
headers = ["pair.h"]
"""
STAT = {
    "LICENSE": "MIT\n",
    "stat.h": "#include <pair.h>\nlong stat_total(const struct pair *p, int n);\nlong stat_one(void);\n"
    "const char *stat_file(void);\n",
    "stat.c": '#include "stat.h"\n#include <stdlib.h>\nconst char *stat_file(void) { return pair_file(); }\n'
    "long stat_total(const struct pair *p, int n) { long s = 0; for (int i = 0; i < n; i++) s += pair_sum(p + i);\n"
    "  return pair_cmp(n, 0) > 0 ? s : -1; }\n"
    "long stat_one(void) { struct pair *p = pair_new(); p->low = 40; p->high = 2; long s = pair_sum(p); free(p);"
    " return s; }\n",
}
STAT_TOML = """\
[package]
name = "stat"
version = "1.0"
summary = "Statistics of pairs"
license = "MIT"
[dependencies]
pair = "%s"
[build]
%s
[exports]
headers = ["stat.h"]
[[vector]]
name = "one"
steps = [{ call = "stat_one", returns = { int = 42 } }]
"""
SOURCES = 'sources = ["stat.c"]'


def project(root, files, toml):
    for name, text in {**files, "visget.toml": toml}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture(scope="module")
def author(tmp_path_factory):
    root = tmp_path_factory.mktemp("author")
    user = User(root, VISGET_REGISTRY=str(root / "registry"))
    user.visget("registry", "init", root / "registry")
    user.visget("key", "new", "--no-passphrase")
    for version in ("1.0", "1.5", "2.0"):
        built = user.json("build", project(root / f"pair-{version}", PAIR, PAIR_TOML % version))
        user.visget("publish", built["file"])
    return user


def file_of(author, version="1.5"):
    return author.root / f"pair-{version}" / "dist" / f"pair-{version}.vis"


def test_a_package_is_built_on_what_a_registry_has(author):
    built = author.json("build", project(author.root / "stat", STAT, STAT_TOML % (">=1,<2", SOURCES)))
    assert built["dependencies"] == ["pair<2,>=1"]
    assert built["uses"] == {
        "pair": {"pair_cmp": "i32 (i32, i32)", "pair_new": "ptr ()", "pair_sum": "i64 (ptr)"}
    }  # fmt: skip
    assert built["imports"] == ["free"]
    author.visget("check", built["file"])
    author.visget("publish", built["file"])
    user = User(author.root / "user", VISGET_REGISTRY=str(author.root / "registry"))
    for words in ([], ["--link", "static"]):
        found = user.json("install", "stat", *words)["installed"][0]
        assert found["linked_with"] == {"pair": "1.5"}
        program = (
            "import visget; lib = visget.load('stat'); pair = lib['pair']\n"
            "pairs = (pair * 3)(*[pair(n, 10 * n) for n in (1, 2, 3)])\n"
            "print(lib.stat_one(), lib.stat_total(pairs, 3))"
        )
        assert user.python(program).stdout == "42 66\n"
    about = user.json("info", "stat")
    assert about["dependencies"] == ["pair<2,>=1"]


def test_the_same_package_with_a_file_or_from_a_registry(author):
    tree = project(author.root / "twice", STAT, STAT_TOML % ("==1.5", SOURCES))
    one = author.json("build", tree)["digest"]
    lonely = User(author.root / "lonely")
    assert lonely.json("build", tree, "--with", file_of(author), "--output", lonely.root)["digest"] == one


def test_what_does_not_fit_is_said(author):
    tree = project(author.root / "wrong", STAT, STAT_TOML % (">=1,<2", SOURCES))
    done = author.finished("build", tree, "--with", file_of(author, "2.0"), code=2)
    assert "--with gives pair 2.0, but pair<2,>=1 is wanted" in done.stderr
    lonely = User(author.root / "alone")
    done = lonely.finished("build", tree, code=2)
    assert "--with NAME-VERSION.vis" in done.stderr
    tree = project(author.root / "never", STAT, STAT_TOML % (">=3", SOURCES))
    done = author.finished("build", tree, code=8)
    assert "you ask for pair>=3, and no version does: pair has 2.0, 1.5, 1.0" in done.stderr
    tree = project(author.root / "none", PAIR, PAIR_TOML % "1.0")
    assert "--with has nothing to provide" in author.finished("build", tree, "--with", file_of(author), code=2).stderr


def test_a_declaration_that_is_not_the_dependencys_is_a_finding(author):
    files = STAT | {
        "stat.h": "struct pair { long low; long high; };\nlong stat_one(void);\n",
        "stat.c": '#include "stat.h"\nint pair_sum(const struct pair *, int);\n'
        "long stat_one(void) { return pair_sum(0, 1); }\n",
    }
    tree = project(author.root / "declared", files, STAT_TOML % ("*", SOURCES))
    done = author.finished("build", tree, code=5)
    assert "VIS-503" in done.stderr
    assert "pair_sum is declared as i32 (ptr, i32), but is i64 (ptr)" in done.stderr


def test_a_dependency_that_is_not_called_is_said(author):
    files = STAT | {"stat.c": '#include "stat.h"\nlong stat_one(void) { return 42; }\n'}
    tree = project(author.root / "idle", files, STAT_TOML % ("*", SOURCES))
    done = author.finished("build", tree, "--json")
    assert "no function of pair is called" in done.stderr
    assert json.loads(done.stdout)["uses"] == {}


@pytest.mark.parametrize(("library", "header", "said"), [
    ("pairs", "other.h", "both are linked with -lpairs"),
    ("others", "pair.h", "both have a header pair.h"),
])  # fmt: skip
def test_two_dependencies_do_not_cover_each_other(author, library, header, said):
    files = {"LICENSE": "MIT\n", header: "int other(void);\n", "o.c": "int other(void) { return 1; }\n"}
    toml = (PAIR_TOML % "1.0").replace("pairs", library).replace('"pair"', '"other"')
    toml = toml.replace("pair.c", "o.c").replace("pair.h", header)
    out = author.root / f"out-{library}"
    author.json("build", project(author.root / f"other-{library}", files, toml), "--output", out)
    both = (STAT_TOML % ("*", SOURCES)).replace("[build]", 'other = "*"\n[build]')
    tree = project(author.root / f"both-{library}", STAT, both)
    done = author.finished("build", tree, "--with", out / "other-1.0.vis", code=8)
    assert "cannot be built with together" in done.stderr and said in done.stderr


@pytest.mark.parametrize("name", ["c", "gcc_s", "-z", "a b"])
def test_a_link_name_is_no_name_of_the_system(author, name):
    tree = project(author.root / "named", PAIR, (PAIR_TOML % "1.0").replace('"pairs"', json.dumps(name)))
    assert "package.library" in author.finished("build", tree, code=2).stderr


CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project(stat C)
include(CheckFunctionExists)
find_library(PAIRS pairs REQUIRED)
find_path(PAIR_H pair.h REQUIRED)
include(CheckCSourceRuns)
set(CMAKE_REQUIRED_LIBRARIES ${PAIRS})
check_c_source_runs("#include <pair.h>\\nint main(void) { struct pair p = {1, 2}; return pair_sum(&p) != 3; }" WORKS)
if(NOT WORKS)
  message(FATAL_ERROR "pairs do not work")
endif()
add_library(stat STATIC stat.c)
target_include_directories(stat PUBLIC ${PAIR_H})
"""
MAKE = """\
CFLAGS += $(shell pkg-config --cflags libpairs)
libstat.a: stat.o check
\t$(AR) rcs $@ stat.o
check: check.c
\t$(CC) $(CFLAGS) -o check check.c $(shell pkg-config --libs pair)
\t./check
"""
CHECK = '#include <pair.h>\nint main(void) { struct pair p = {1, 2}; return pair_sum(&p) != 3; }\n'
SYSTEMS = {
    "cmake": ({"CMakeLists.txt": CMAKE}, 'system = "cmake"\nlibrary = "visget-build/libstat.a"', "cmake"),
    "make": ({"Makefile": MAKE, "check.c": CHECK}, 'system = "make"\ntargets = ["libstat.a"]\nlibrary = "libstat.a"',
             "pkg-config"),
}  # fmt: skip


@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_a_build_system_finds_and_runs_what_it_is_built_on(author, system):
    files, build, program = SYSTEMS[system]
    if shutil.which(program) is None and not (Path(sys.executable).parent / program).exists():
        pytest.skip(f"{program} is not installed")
    tree = project(author.root / system, STAT | files, STAT_TOML % (">=1,<2", build))
    built = author.json("build", tree)
    assert sorted(built["uses"]["pair"]) == ["pair_cmp", "pair_new", "pair_sum"]
    # Another prefix, of another name, leaves no trace.
    lonely = User(author.root / f"lonely-{system}")
    again = lonely.json("build", tree, "--with", file_of(author), "--output", lonely.root)
    assert again["digest"] == built["digest"]


def test_publishing_tries_a_package_on_what_it_needs(author):
    wrong = (STAT_TOML % (">=1,<2", SOURCES)).replace("int = 42", "int = 41")
    wrong = wrong.replace('version = "1.0"', 'version = "1.1"')
    built = author.json("build", project(author.root / "untrue", STAT, wrong))
    done = author.finished("publish", built["file"], code=1)
    assert "returned 42, not 41" in done.stderr
    done = author.finished("publish", built["file"], "--no-check")
    assert "published" in done.stdout


def test_what_cannot_be_timed_is_said(author):
    bench = '[[bench]]\nname = "one"\nsteps = [{ call = "stat_one" }]\n'
    tree = project(author.root / "timed", STAT, STAT_TOML % ("*", SOURCES) + bench)
    assert "cannot be timed yet" in author.finished("build", tree, "--choose-cleanup", code=2).stderr
