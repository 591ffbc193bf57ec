"""The command line with packages that need each other: install, list, tree, why, uninstall, load."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from depkit import KEY, base, middle, package, top
from e2ekit import User

from visget.format.owner import first_record
from visget.format.signing import sign_package
from visget.registry.directory import init_registry
from visget.registry.directory import publish as put
from visget.registry.yank import set_standing


def sell(registry, *packages, key=KEY):
    for item in packages:
        put(registry, item, sign_package(item, key), claim=first_record(item.manifest.name, key).encode())


@pytest.fixture
def registry(tmp_path):
    root = init_registry(tmp_path / "registry")
    sell(root, base(), base(factor=2, version="1.1"), base(factor=5, version="2.0"), middle(), top())
    return root


@pytest.fixture
def user(tmp_path, registry):
    return User(tmp_path / "user", VISGET_REGISTRY=str(registry))


def listed(user):
    found = user.json("list")["installed"]
    return [(item["name"], item["version"], item["automatic"], item["requires"]) for item in found]


def ask(user, what):
    return user.python(f"import visget; print({what})").stdout.strip()


def test_what_it_needs_is_installed_before_it(user):
    found = user.json("install", "top")["installed"]
    installed = [(item["name"], item["version"]) for item in found[0]["dependencies"]]
    assert installed == [("base", "1.1"), ("middle", "1.0")]
    assert found[0]["linked_with"] == {"base": "1.1", "middle": "1.0"}
    assert listed(user) == [
        ("base", "1.1", True, {}), ("middle", "1.0", True, {"base": "1.1"}),
        ("top", "1.0", False, {"base": "1.1", "middle": "1.0"}),
    ]  # fmt: skip
    assert ask(user, "visget.load('top').top_sum(10)") == "41"
    assert ask(user, "visget.load('middle').middle_scale(20), visget.load('base').base_scale(4)") == "41 8"
    assert user.visget("tree").splitlines() == [
        "top 1.0", "├── base 1.1", "└── middle 1.0", "    └── base 1.1"
    ]  # fmt: skip
    assert user.visget("why", "base").splitlines() == [
        "base 1.1 <- middle 1.0 <- top 1.0", "base 1.1 <- top 1.0"
    ]  # fmt: skip
    assert user.json("why", "top") == {"name": "top", "versions": {"1.0": [["top 1.0"]]}}
    user.visget("why", "bas", code=8)
    again = user.json("install", "top")["installed"][0]
    assert again["reused"]
    assert all(item["reused"] for item in again["dependencies"])


def test_what_others_need_is_not_uninstalled(user):
    user.visget("install", "middle")
    done = user.finished("uninstall", "base", code=2)
    assert "base 1.1 is needed by middle 1.0" in done.stderr
    assert "--force" in done.stderr
    removed = user.json("uninstall", "middle")
    assert removed == {
        "removed": [{"name": "middle", "version": "1.0"}], "unneeded": [{"name": "base", "version": "1.1"}]
    }  # fmt: skip
    user.visget("uninstall", "base")
    assert listed(user) == []


def test_by_force_it_goes_and_its_artifact_stays_with_who_needs_it(user):
    user.visget("install", "middle")
    user.visget("uninstall", "base", "--force")
    assert user.visget("tree").splitlines() == ["middle 1.0", "└── base 1.1 (not installed any more)"]
    user.visget("cache", "gc", "--all")
    assert ask(user, "visget.load('middle').middle_scale(20)") == "41"
    shutil.rmtree(user.entry("middle"))
    done = user.python("import visget; visget.load('middle')", code=1)
    assert "base 1.1, which it is linked with, is not installed any more" in done.stderr
    user.visget("install", "middle")
    assert ask(user, "visget.load('middle').middle_scale(20)") == "41"


def test_garbage_collection_keeps_what_is_needed(user):
    user.visget("install", "top")
    before = {path.name for path in (user.root / "home" / "native" / "v1").iterdir()}
    user.visget("cache", "gc", "--all")
    assert {path.name for path in (user.root / "home" / "native" / "v1").iterdir()} == before
    assert ask(user, "visget.load('top').top_sum(10)") == "41"


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_a_needed_library_that_is_damaged_is_compiled_again_before_it_is_loaded(user, how):
    user.visget("install", "top")
    library = user.entry("base") / "lib" / "libbase.so"
    if how == "gone":
        shutil.rmtree(library.parent.parent)
    else:
        library.chmod(0o644)
        data = bytearray(library.read_bytes())
        data[-1] ^= 1
        library.write_bytes(data)
    done = user.python("import visget; print(visget.load('top').top_sum(10))")
    assert done.stdout == "41\n"
    assert user.finished("cache", "verify").returncode == 0


def test_versions_live_side_by_side(user, registry):
    user.visget("install", "middle", "base==1.0")
    assert ("middle", "1.0", False, {"base": "1.0"}) in listed(user)
    sell(registry, middle("2.0", needs=("base<3,>=2",), steps=None))
    user.visget("install", "middle")
    assert listed(user) == [
        ("base", "1.0", False, {}), ("base", "2.0", True, {}), ("middle", "1.0", False, {"base": "1.0"}),
        ("middle", "2.0", False, {"base": "2.0"}),
    ]  # fmt: skip
    both = "[visget.load('middle', v).middle_scale(20) for v in ('1.0', '2.0')]"
    assert ask(user, both) == "[41, 101]"
    assert ask(user, "visget.load('base').version") == "1.0"  # what was asked for stays selected
    user.visget("rollback", "middle")
    assert ask(user, "visget.load('middle').middle_scale(20)") == "41"


def test_an_installed_version_that_fits_is_taken_unless_newer_ones_are_wanted(user):
    user.visget("install", "base==1.0")
    assert user.json("install", "middle")["installed"][0]["linked_with"] == {"base": "1.0"}
    assert user.json("install", "middle", "--upgrade")["installed"][0]["linked_with"] == {"base": "1.1"}
    assert ("base", "1.0", False, {}) in listed(user)


def test_merged(user):
    plan = user.json("install", "top", "--link", "static", "--dry-run")["plans"][0]
    assert (plan["linking"], plan["dependencies"]) == (
        "static", [{"name": "base", "version": "1.1", "key": None}, {"name": "middle", "version": "1.0", "key": None}]
    )  # fmt: skip
    found = user.json("install", "top", "--link", "static")["installed"][0]
    assert (found["dependencies"], found["linked_with"]) == ([], {"base": "1.1", "middle": "1.0"})
    assert listed(user) == [("top", "1.0", False, {"base": "1.1", "middle": "1.0"})]
    assert user.visget("tree").splitlines() == [
        "top 1.0", "├── base 1.1 (merged into it)", "└── middle 1.0 (merged into it)"
    ]  # fmt: skip
    assert ask(user, "visget.load('top').top_sum(10)") == "41"
    shutil.rmtree(user.entry("top"))
    user.python("import visget; visget.load('top')", code=1)


def test_a_plan_knows_the_keys_of_what_is_not_installed(user):
    plan = user.json("install", "middle", "--dry-run")["plans"][0]
    user.visget("install", "middle")
    assert plan["key"] == user.entry("middle").name
    assert plan["dependencies"][0]["key"] == user.entry("base").name


def test_a_conflict_is_explained(user, registry):
    sell(registry, package("odd", body=BODY, functions={"odd": ()}, needs=("base>=2", "middle")))
    done = user.finished("install", "odd", code=8)
    assert "no version of base is what everybody needs" in done.stderr
    assert "odd 1.0 needs base>=2" in done.stderr
    assert "middle 1.0 needs base<2,>=1" in done.stderr
    found = json.loads(user.visget("install", "odd", "--json", code=8))
    assert found["details"]["versions"] == ["1.0", "1.1", "2.0"]
    assert listed(user) == []


BODY = "define signext i32 @odd() #0 {\n  ret i32 1\n}\n"


def test_circles_and_what_is_not_there(user, registry):
    sell(
        registry,
        package("one", body=BODY.replace("odd", "one"), functions={"one": ()}, needs=("two",)),
        package("two", body=BODY.replace("odd", "two"), functions={"two": ()}, needs=("one",)),
        package("lost", body=BODY.replace("odd", "lost"), functions={"lost": ()}, needs=("gone>=3",)),
    )
    assert "in a circle: one 1.0 -> two 1.0 -> one 1.0" in user.finished("install", "one", code=8).stderr
    assert "lost 1.0 needs gone>=3, and there is no package gone" in user.finished("install", "lost", code=8).stderr


def test_a_withdrawn_dependency_is_passed_over(user, registry):
    item = base(version="1.1").manifest
    set_standing(registry, item.name, item.version, "wrong results")
    assert user.json("install", "middle")["installed"][0]["linked_with"] == {"base": "1.0"}


def test_an_upgrade_that_breaks_the_interface_names_both_and_the_function(user, registry):
    broken = "define i64 @base_scale(i64 %x) #0 {\n  ret i64 %x\n}\n" + BODY.replace("odd", "base_count")
    sell(registry, package("base", "1.9", body=broken, functions={"base_count": (), "base_scale": ("x",)}))
    for words in ([], ["--link", "static"]):
        done = user.finished("install", "middle", *words, code=5)
        assert "middle 1.0 cannot be linked with base 1.9: base_scale is i64 (i64) there" in done.stderr
        assert "was built for i32 (i32)" in done.stderr
    user.visget("install", "middle", "base<1.9")
    assert ("middle", "1.0", False, {"base": "1.1"}) in listed(user)


def test_two_that_export_one_function_are_named(user, registry):
    body = "define signext i32 @base_scale(i32 signext %x) #0 {\n  ret i32 7\n}\n" + BODY
    sell(registry, package("twin", body=body, functions={"base_scale": ("x",), "odd": ()}, needs=("base",)))
    done = user.finished("install", "twin")
    assert "base and twin both export base_scale" in done.stderr
    assert ask(user, "visget.load('twin').base_scale(1), visget.load('base').base_scale(1)") == "7 5"


def test_a_c_program_gets_flags_for_the_chain(user, tmp_path):
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("there is no C compiler")
    user.visget("install", "top")
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "top.h"\n#include "base.h"\n#include "middle.h"\n'
        'int main(void) { printf("%d\\n", top_sum(10)); return 0; }\n'
    )
    for words in ([], ["--static"]):
        flags = user.visget("pkg-config", "--cflags", *(words or ["--libs"]), "top").split()
        program = tmp_path / "main"
        subprocess.run([cc, tmp_path / "main.c", "-o", program, *flags], check=True)
        assert subprocess.check_output([program]) == b"41\n", words



def test_what_dependencies_need_themselves_reaches_c_programs_too(user, registry, tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    body = (
        "declare signext i32 @middle_scale(i32 signext) #0\ndefine signext i32 @roof(i32 signext %x) #0 {\n"
        "  %r = call signext i32 @middle_scale(i32 signext %x)\n  ret i32 %r\n}\n"
    )
    uses = {"middle": {"middle_scale": "i32 (i32)"}}
    sell(registry, package("roof", body=body, functions={"roof": ("x",)}, needs=("middle", "odd"), uses=uses))
    sell(registry, package("odd", body=BODY, functions={"odd": ()}))
    user.visget("install", "roof")
    user.visget("cache", "gc", "--all")
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "roof.h"\n#include "middle.h"\n#include "base.h"\n#include "odd.h"\n'
        'int main(void) { printf("%d\\n", roof(20)); return 0; }\n'
    )
    for words in (["--libs"], ["--static"]):
        flags = user.visget("pkg-config", "--cflags", *words, "roof").split()
        subprocess.run(["cc", tmp_path / "main.c", "-o", tmp_path / "main", *flags], check=True)
        assert subprocess.check_output([tmp_path / "main"]) == b"41\n", words
    user.visget("uninstall", "odd", "--force")
    user.visget("cache", "gc", "--all")
    assert ask(user, "visget.load('roof').roof(20)") == "41"
    assert "libodd" not in ask(user, "(visget.load('roof'), open('/proc/self/maps').read())[1]")


@pytest.mark.cross
def test_everything_is_compiled_for_the_target(user):
    found = user.json("install", "top", "--target", "aarch64-linux-musl")["installed"][0]
    assert [item["target"].partition(":")[0] for item in found["dependencies"]] == ["aarch64-linux-musl"] * 2
    flags = user.visget("pkg-config", "--libs", "top", "--target", "aarch64-linux-musl")
    assert found["directory"] in flags
    user.visget("install", "top")
    assert ask(user, "visget.load('top').top_sum(10)") == "41"


def test_cmake_finds_the_libraries(user, tmp_path):
    cmake = shutil.which("cmake") or shutil.which("cmake", path=str(Path(sys.executable).parent))
    if cmake is None or shutil.which("cc") is None or not (shutil.which("make") or shutil.which("ninja")):
        pytest.skip("cmake, make or a C compiler is not installed")
    user.visget("install", "top")
    directory = user.visget("path", "top", "--directory").strip()
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(use C)\nfind_package(top 1.0 CONFIG REQUIRED)\n"
        "add_executable(shared main.c)\ntarget_link_libraries(shared top::top)\n"
    )
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "top.h"\n#include "base.h"\n'
        'int main(void) { printf("%d\\n", top_sum(10)); return 0; }\n'
    )
    words = ["-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={directory}"]
    for line in ([cmake, *words], [cmake, "--build", tmp_path / "b"]):
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert subprocess.check_output([tmp_path / "b" / "shared"]) == b"41\n"
    wrong = (tmp_path / "CMakeLists.txt").read_text().replace("top 1.0", "top 2.0")
    (tmp_path / "CMakeLists.txt").write_text(wrong)
    assert subprocess.run([cmake, *words], capture_output=True, check=False).returncode != 0
