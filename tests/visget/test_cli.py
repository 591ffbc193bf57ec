"""The command line as a contract: options that every command has, output for people and machines, exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from badkit import Place, left_alive, offspring, publish_tiny, slow_source, write_project
from packagekit import claim
from packagekit import key as fixed_key
from packagekit import package as fake_package
from registrykit import edit_index, sign_target, stored

from visget.cli import COMMANDS
from visget.cli import visget as top
from visget.errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_NOT_FOUND,
    EXIT_REFUSED,
    EXIT_REGISTRY,
    EXIT_TRUST,
    EXIT_UNSUPPORTED,
    EXIT_USAGE,
)
from visget.format.keyfile import write_key
from visget.format.signing import sign_package
from visget.registry.directory import init_registry
from visget.registry.directory import publish as put

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"
COMMON = ("--json", "--quiet", "--verbose", "--color", "--no-progress", "--help")
ESCAPE = "\x1b"


def all_commands() -> dict[tuple[str, ...], click.Command]:
    """Every command that does something, by its words."""
    context = click.Context(top)
    found: dict[tuple[str, ...], click.Command] = {}
    for name in COMMANDS:
        command = top.get_command(context, name)
        if isinstance(command, click.Group):
            found |= {(name, inner): command.commands[inner] for inner in command.commands}
        elif command is not None:
            found[(name,)] = command
    return found


EVERY = all_commands()
WORDS = [pytest.param(words, id=" ".join(words)) for words in EVERY]


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    """A registry with tiny 1.0 and a user who has installed it; the tests only read."""
    place = publish_tiny(tmp_path_factory.mktemp("cli"))
    outcome = place.run("install", "tiny")
    assert outcome.code == 0, outcome
    return place


@pytest.fixture
def empty(tmp_path, published) -> Place:
    """A user with an empty store who knows the same registry."""
    return Place(root=tmp_path, variables={"VISGET_REGISTRY": str(published.registry)})


# ---- help -------------------------------------------------------------------------------------------------


def test_every_command_of_the_list_exists_and_says_the_same():
    context = click.Context(top)
    for name, (_, _, text) in COMMANDS.items():
        command = top.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert (command.help or "").split("\n\n")[0] == text
        assert len(text) < 64, "one line of a narrow terminal"


@pytest.mark.parametrize("words", WORDS)
def test_help_has_the_common_options_and_an_example(words, published):
    outcome = published.run(*words, "--help")
    assert outcome.code == 0
    assert outcome.err == ""
    assert outcome.out.startswith(f"Usage: visget {' '.join(words)} ")
    for option in COMMON:
        assert option in outcome.out
    example = outcome.out.partition("\n  Example:\n")[2]
    assert "visget " in example
    own, common = (outcome.out.find(f"  {option}") for option in (EVERY[words].params[0].opts[0], "--json"))
    assert own <= common, "a command's own options come first"
    assert f"visget {' '.join(words)}" in example
    assert EVERY[words].help


@pytest.mark.parametrize("words", WORDS)
def test_the_options_of_the_examples_exist(words):
    command = EVERY[words]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    text = (command.epilog or "").replace("$(", " ").replace(")", " ")
    for used in re.findall(rf"visget {' '.join(words)}([^|&;]*?)(?:$|\||&|;)", text, re.M):
        for option in re.findall(r"(?<= )-{1,2}[a-z][a-z-]*", used):
            assert option in known, f"{option} in the example of {' '.join(words)}"


def test_alone_it_prints_help(published):
    alone, asked = published.run(), published.run("--help")
    assert alone == asked
    assert alone.code == 0
    for name, (_, _, text) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(text[:30])}", alone.out, re.M)


def test_a_group_alone_lists_its_commands(published):
    for name in ("cache", "key", "registry"):
        outcome = published.run(name)
        assert outcome.code == EXIT_USAGE
        assert outcome.out == ""
        assert "Commands:" in outcome.err
        assert published.run(name, "-h").code == 0


def test_version(published):
    outcome = published.process("--version")
    assert re.fullmatch(r"visget \d+\.\d+\S*\n", outcome.out)
    assert outcome.code == 0


# ---- what was meant ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("instal", "x"), "there is no command 'instal'", "did you mean 'install'?"),
        (("cache", "sise"), "no such command 'sise'", "did you mean 'size'?"),
        (("list", "--jsn"), "no such option '--jsn'", "did you mean '--json'?"),
        (("frobnicate",), "there is no command 'frobnicate'", "`visget --help` shows what there is"),
        (("install",), "missing argument 'NAME[==VERSION]...'", "`visget install --help` shows what there is"),
        (("list", "x"), "got unexpected extra argument (x)", "`visget list --help` shows what there is"),
        (("list", "--color", "red"), "'red' is not one of 'auto', 'always', 'never'", "`visget list --help`"),
        (("gc",), "there is no command 'gc'", "`visget --help`"),
    ],
)
def test_a_wrong_command_line(words, message, hint, published):
    outcome = published.run(*words)
    assert outcome.code == EXIT_USAGE
    assert outcome.out == ""
    assert message in outcome.err
    assert hint in outcome.err.partition("\nhint: ")[2]
    assert outcome.err.startswith("error: ")
    as_json = published.run(*words, "--json").json
    assert message in as_json["message"]
    assert hint in as_json["hint"]
    assert as_json["exit_code"] == EXIT_USAGE
    assert published.run(*words, "-qq").text == ""


def test_names_that_were_probably_meant(published):
    for words in (("install", "tinny"), ("info", "tinny"), ("path", "tinny"), ("uninstall", "tinny"),
                  ("use", "tinny==1.0"), ("pkg-config", "tinny"), ("install", "tinny", "--dry-run")):  # fmt: skip
        outcome = published.run(*words)
        assert outcome.code == EXIT_NOT_FOUND, words
        assert "'tinny'" in outcome.err
        assert re.search(r"hint: did you mean '?tiny'?\?", outcome.err), outcome.err
    outcome = published.run("install", "tiny", "--target", "aarch64-linux-mussl")
    assert outcome.code == EXIT_UNSUPPORTED
    assert "did you mean 'aarch64-linux-musl'?" in outcome.err
    named = Place(root=published.root / "named")
    assert named.run("registry", "init", named.registry, "--name", "team").code == 0
    outcome = named.run("search", "x", "--registry", "teem")
    assert outcome.code == EXIT_USAGE
    assert "did you mean 'team'?" in outcome.err


def test_settings_that_were_probably_meant(empty):
    empty.config.mkdir()
    (empty.config / "config.toml").write_text('targt = "host"\n')
    outcome = empty.run("list")
    assert outcome.code == EXIT_USAGE
    assert "config.toml: unknown key 'targt'" in outcome.err
    assert "did you mean 'target'?" in outcome.err


@pytest.mark.parametrize(
    ("text", "variables", "says"),
    [
        ('targt = "host"\n', {}, "config.toml: unknown key 'targt'"),
        ("jobs = [\n", {}, "not valid TOML"),
        ("", {"VISGET_JOBS": "many"}, "jobs must be a whole number"),
        ("jobs = 0\n", {"VISGET_SANDBOX": "perhaps"}, "jobs must be a whole number"),
    ],
    ids=["key", "syntax", "environment", "both"],
)
def test_the_doctor_goes_on_when_the_settings_are_wrong(empty, text, variables, says):
    empty.config.mkdir()
    (empty.config / "config.toml").write_text(text)
    place = empty.with_env(**variables)
    assert place.run("list").code == EXIT_USAGE
    outcome = place.run("doctor", "--json")
    first, *others = outcome.json["findings"]
    assert (first["subject"], first["status"]) == ("settings", "problem")
    assert says in first["text"]
    assert first["remedy"]
    assert {"python", "compiler", "store", "self test"} <= {item["subject"] for item in others}
    assert outcome.code == EXIT_FAILED
    (store,) = (item for item in others if item["subject"] == "store")
    assert str(empty.home) in store["text"]


# ---- output for machines -----------------------------------------------------------------------------------

READING = [
    ("list",), ("path", "tiny"), ("path", "tiny", "--directory"), ("pkg-config", "tiny"), ("search",),
    ("search", "tiny_add"), ("search", "nothing-of-that-kind"), ("info", "tiny"), ("target",), ("target", "--list"),
    ("cache", "dir"), ("cache", "size"), ("cache", "verify"), ("cache", "gc", "--dry-run"), ("key", "list"),
    ("registry", "list"), ("completions", "bash"), ("install", "tiny"), ("install", "tiny", "--dry-run"),
    ("use", "tiny==1.0"), ("doctor",),
]  # fmt: skip
FAILING = [
    (("install", "nothing"), EXIT_NOT_FOUND),
    (("install", "tiny==9"), EXIT_NOT_FOUND),
    (("install", "tiny", "--target", "x86_64-windows-msvc"), EXIT_UNSUPPORTED),
    (("install", "tiny", "--registry", "/nonexistent/registry"), EXIT_REGISTRY),
    (("install", "Tiny!"), EXIT_USAGE),
    (("rollback", "tiny"), EXIT_NOT_FOUND),
    (("check", "/dev/null"), EXIT_REFUSED),
    (("check", "/nonexistent.vis"), EXIT_NOT_FOUND),
    (("build", "/nonexistent"), EXIT_USAGE),
    (("publish", "/nonexistent.vis"), EXIT_NOT_FOUND),
    (("install", "tiny", "--trust", "vk1nonsense"), EXIT_TRUST),
    (("install", "--frobnicate"), EXIT_USAGE),
    (("frobnicate",), EXIT_USAGE),
    (("cache",), EXIT_USAGE),
    (("demo", "--keep", "/dev/null"), EXIT_USAGE),
    (("demo", "--keep", "/proc/nothing/here"), EXIT_UNSUPPORTED),
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_json_is_one_object(words, published):
    outcome = published.run(*words, "--json")
    assert outcome.code == 0, outcome
    assert outcome.json
    assert outcome.out.isascii()


@pytest.mark.parametrize(("words", "code"), FAILING, ids=lambda x: " ".join(x) if isinstance(x, tuple) else str(x))
def test_json_of_a_failure(words, code, published):
    outcome = published.run(*words, "--json")
    assert outcome.code == code
    found = outcome.json
    assert found["exit_code"] == code
    assert set(found) == {"error", "message", "where", "hint", "details", "exit_code"}
    assert found["message"]
    assert outcome.err == "", "with --json and no terminal nothing else is said"


@pytest.mark.parametrize(("words", "code"), FAILING, ids=lambda x: " ".join(x) if isinstance(x, tuple) else str(x))
def test_a_failure_for_people(words, code, published):
    outcome = published.run(*words)
    assert outcome.code == code
    assert outcome.out == ""
    if words == ("cache",):
        return
    assert re.search(r"^error: ", outcome.text, re.M)
    message = re.search(r"^error: (.*)$", outcome.err, re.M)[1]
    assert not message.endswith((".", "!"))
    assert len(message) < 400


@pytest.mark.parametrize("words", [*READING, *(words for words, _ in FAILING)], ids=" ".join)
def test_quiet_twice_says_nothing_but_results(words, published):
    outcome = published.run(*words, "-q", "-q")
    assert outcome.err == ""
    assert outcome.out == ""
    assert outcome.code == published.run(*words, "--json").code


def test_quiet_once_keeps_the_result_and_the_error(published, tmp_path):
    project = write_project(tmp_path / "project")
    outcome = published.run("build", project, "-q")
    assert outcome.err == ""
    assert "tiny-1.0.vis" in outcome.out
    assert published.run("install", "nothing", "-q").err.startswith("error: ")


def test_verbose_says_more(published):
    assert "int tiny_add(int a, int b);" in published.run("info", "tiny", "-v").out
    assert "int tiny_add(int a, int b);" not in published.run("info", "tiny").out


# ---- colours -----------------------------------------------------------------------------------------------


def test_colours(published):
    words = ("install", "nothing")
    assert ESCAPE not in published.run(*words).err
    assert ESCAPE in published.run(*words, "--color", "always").err
    assert ESCAPE in published.with_env(FORCE_COLOR="1").run(*words).err
    assert ESCAPE not in published.with_env(FORCE_COLOR="1").run(*words, "--color", "never").err
    assert ESCAPE not in published.with_env(FORCE_COLOR="1", NO_COLOR="1").run(*words).err
    assert ESCAPE in published.with_env(NO_COLOR="1").run(*words, "--color", "always").err
    assert ESCAPE in published.run("list", "--color", "always").out
    assert ESCAPE in published.run("list", "x", "--color=always").err
    assert ESCAPE not in published.with_env(FORCE_COLOR="1").run(*words, "--json").out


def test_colours_on_a_terminal(published):
    """script(1) gives the command a terminal; NO_COLOR and TERM=dumb are obeyed there."""
    if shutil.which("script") is None:
        pytest.skip("no script(1) here, which would give the command a terminal")

    def shown(**variables: str) -> str:
        place = published.with_env(**variables)
        command = f"{sys.executable} -m visget list"
        done = subprocess.run(
            ["script", "-qec", command, "/dev/null"], env=place.environ, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0
        return done.stdout

    assert ESCAPE in shown()
    assert ESCAPE not in shown(NO_COLOR="1")
    assert ESCAPE not in shown(TERM="dumb")


def test_clang_speaks_in_colours_when_people_do(published, tmp_path):
    project = write_project(tmp_path / "project", tiny_c="int tiny_add(int a, int b) { return c; }\n")
    assert ESCAPE in published.run("build", project, "--color", "always").err
    assert ESCAPE not in published.run("build", project).err


# ---- exit codes --------------------------------------------------------------------------------------------


def documented() -> set[int]:
    return {int(code) for code in re.findall(r"^\| (\d+) \|", REFERENCE.read_text(), re.M)}


def test_each_documented_exit_code_can_be_met(empty, published, tmp_path):
    def code(*words: object, place: Place = empty) -> int:
        return place.run(*words).code

    bad_c = write_project(tmp_path / "bad", tiny_c="int tiny_add(int a, int b) { return c; }\n")
    tampered = Place(root=tmp_path / "tampered")
    shutil.copytree(published.registry, tampered.registry)
    blob = tampered.blob()
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-1] + b"\x00")
    met = {
        0: code("install", "tiny"),
        EXIT_FAILED: code("build", bad_c),
        EXIT_USAGE: code("install", "tiny", "--wrong"),
        EXIT_TRUST: code("install", "tiny", place=tampered),
        EXIT_REGISTRY: code("install", "tiny", "--registry", tmp_path / "nowhere"),
        EXIT_REFUSED: code("check", bad_c / "tiny.c"),
        EXIT_UNSUPPORTED: code("install", "tiny", "--target", "wasm32-unknown-unknown"),
        EXIT_NOT_FOUND: code("uninstall", "nothing"),
    }
    assert {wanted: got for wanted, got in met.items() if wanted != got} == {}
    # 7 is reserved; 130 has tests of its own below.
    assert documented() == set(met) | {7, EXIT_INTERRUPTED}


# ---- pipes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("--help",), ("list",), ("list", "--json"), ("info", "tiny"), ("frobnicate",)])
@pytest.mark.parametrize("both", [False, True], ids=["stdout", "both"])
def test_a_closed_pipe_gives_no_traceback(words, both, published):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        child = published.spawn(*words, stdout=writer, stderr=writer if both else subprocess.PIPE)
    finally:
        os.close(writer)
    _, err = child.communicate(timeout=60)
    assert child.returncode in (EXIT_FAILED, EXIT_USAGE)
    if not both:
        assert "Traceback" not in err
        assert "BrokenPipe" not in err
        assert "Exception" not in err


def test_a_pipe_that_ends_early(published):
    command = f"{sys.executable} -m visget target --list | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], env=published.environ, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] in ("0", "1")


# ---- Ctrl-C ------------------------------------------------------------------------------------------------


def interrupt(child: subprocess.Popen[str], phase: str) -> tuple[int, str, str]:
    """Wait until `child` says that it is at `phase`, then press Ctrl-C: the whole foreground group is told."""
    assert child.stderr is not None
    seen = ""
    while phase not in seen:
        line = child.stderr.readline()
        assert line, f"it ended before {phase!r}: {seen}"
        seen += line
    time.sleep(0.15)
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert left_alive(child.pid) == []
    return child.returncode, out, err


@pytest.fixture(scope="module")
def slow(tmp_path_factory) -> Path:
    header, source = slow_source(160)
    return write_project(tmp_path_factory.mktemp("slow") / "project", tiny_h=header, tiny_c=source)


@pytest.fixture(scope="module")
def slow_registry(slow, published) -> Path:
    place = Place(root=published.root, variables={"VISGET_REGISTRY": str(slow.parent / "registry")})
    for words in (("registry", "init", slow.parent / "registry"), ("build", slow, "-o", slow.parent / "out"),
                  ("publish", slow.parent / "out" / "tiny-1.0.vis")):  # fmt: skip
        outcome = place.run(*words)
        assert outcome.code == 0, outcome
    return slow.parent / "registry"


def test_ctrl_c_during_build(slow, empty):
    child = empty.spawn("build", slow)
    code, out, err = interrupt(child, "compiling")
    assert code == EXIT_INTERRUPTED, err
    assert out == ""
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("interrupted; nothing was left half done")
    assert not (slow / "dist").exists()


def test_ctrl_c_during_install_and_again(slow_registry, empty):
    place = empty.with_env(VISGET_REGISTRY=str(slow_registry))
    child = place.spawn("install", "tiny")
    code, out, err = interrupt(child, "compiling")
    assert code == EXIT_INTERRUPTED, err
    assert out == ""
    assert "Traceback" not in err
    assert "interrupted" in err
    assert place.natives() == []
    assert list((place.home / "tmp").iterdir()) == []
    assert place.run("list", "--json").json == {"installed": []}
    assert place.run("cache", "verify").code == 0
    # The same command goes on where it was: what was fetched is not fetched again.
    (blob,) = stored(slow_registry, "vis")
    blob.rename(slow_registry / "away")
    try:
        outcome = place.run("install", "tiny", "--target", "baseline", "-q")
    finally:
        (slow_registry / "away").rename(blob)
    assert outcome.code == 0, outcome


def test_ctrl_c_with_json(slow_registry, empty):
    place = empty.with_env(VISGET_REGISTRY=str(slow_registry))
    child = place.spawn("install", "tiny", "--json", stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not any("visget.installer.worker" in line for line in offspring(child.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == EXIT_INTERRUPTED
    assert json.loads(out)["exit_code"] == EXIT_INTERRUPTED


# ---- completion --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell, published):
    script = published.run("completions", shell).out
    assert f"_VISGET_COMPLETE={shell}_complete" in script
    if (program := shutil.which(shell)) is not None:
        done = subprocess.run([program, "-n"], input=script, text=True, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("line", "word", "wanted", "unwanted"),
    [
        ("visget ", "", {"install", "build", "demo"}, set()),
        ("visget ins", "ins", {"install"}, {"build"}),
        ("visget cache ", "", {"gc", "verify", "dir", "size"}, {"install"}),
        ("visget install --dr", "--dr", {"--dry-run"}, {"--json"}),
        ("visget install --", "--", {"--json", "--target", "--quiet"}, set()),
        ("visget completions ", "", {"bash", "zsh", "fish"}, set()),
        ("visget list --color ", "", {"auto", "always", "never"}, set()),
    ],
)
def test_completion_answers(line, word, wanted, unwanted, published):
    count = len(line.split()) - (0 if line.endswith(" ") else 1)
    for shell in ("bash", "zsh", "fish"):
        place = published.with_env(
            _VISGET_COMPLETE=f"{shell}_complete", COMP_WORDS=line, COMP_CWORD=word if shell == "fish" else str(count)
        )
        outcome = place.run()
        assert outcome.code == 0
        if shell == "zsh":
            found = set(outcome.out.splitlines()[1::3])
        else:
            found = {item.partition(",")[2].partition("\t")[0] for item in outcome.out.splitlines()}
        assert wanted <= found, shell
        assert not (unwanted & found), shell


def test_bash_completes_in_a_real_shell(published):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    script = published.run("completions", "bash").out
    asked = 'COMP_WORDS=(visget ins); COMP_CWORD=1; _visget_completion visget; echo "${COMPREPLY[@]}"'
    binary = Path(sys.executable).parent
    environ = published.environ | {"PATH": f"{binary}:{os.environ['PATH']}"}
    done = subprocess.run([bash, "-c", f"{script}\n{asked}"], env=environ, capture_output=True, text=True, timeout=60)
    if not (binary / "visget").exists():
        pytest.skip("visget is not installed as a command here")
    assert done.stdout.split() == ["install"], done.stderr


# ---- hostile texts -----------------------------------------------------------------------------------------

EVIL = "\x1b]0;owned\x07\x1b[31mred\u202etxt.exe\u2066"


def refused_or_escaped(text: str) -> None:
    for char in ("\x1b", "\x07", "\u202e", "\u2066", "\x9b"):
        assert char not in text


def test_escapes_in_a_summary_are_refused_where_they_come_from(published, tmp_path):
    toml = (write_project(tmp_path / "project") / "visget.toml").read_text()
    project = write_project(tmp_path / "project", toml=toml.replace("Adds numbers", "Adds \\u001b[31m numbers"))
    outcome = published.run("build", project)
    assert outcome.code == EXIT_USAGE
    assert "visget.toml:4" in outcome.err
    refused_or_escaped(outcome.text)


def test_escapes_from_a_hostile_registry_never_reach_the_terminal(tmp_path, empty):
    directory = init_registry(tmp_path / "hostile")
    package = fake_package("evil", "1.0", summary="harmless")
    put(directory, package, sign_package(package, fixed_key()), claim=claim(package, fixed_key()))
    edit_index(directory, "evil", lambda index: index["versions"][0].update(summary=EVIL))
    names = {"format": 1, "bits": 0, "count": 1, EVIL: EVIL, "parts": EVIL}
    sign_target(directory, "names.json", json.dumps(names).encode())
    place = empty.with_env(VISGET_REGISTRY=str(directory))
    for words in (("search",), ("search", "evil"), ("info", "evil"), ("install", "evil"), ("install", "evil==2")):
        outcome = place.run(*words)
        refused_or_escaped(outcome.text)
        assert place.run(*words, "--json").out.isascii()


def test_escapes_on_the_command_line_and_in_names(published, tmp_path):
    for words in (
        ("install", EVIL), ("path", EVIL), ("check", EVIL), ("info", EVIL), ("install", f"tiny=={EVIL}"),
        ("install", "tiny", "--target", EVIL), ("install", "tiny", "--trust", EVIL), ("build", EVIL), (EVIL,),
        ("list", "--" + EVIL), ("list", "--color", EVIL), ("search", "--registry", EVIL),
        ("list", "--home", EVIL + "/x"), ("publish", EVIL, "--key", EVIL), ("use", EVIL), ("key", "new", EVIL),
        ("registry", "init", "--name", EVIL, "x"),
    ):  # fmt: skip
        # A store of that name must not be made where the tests run.
        here = Path.cwd()
        os.chdir(tmp_path)
        try:
            outcome = published.run(*words)
        finally:
            os.chdir(here)
        refused_or_escaped(outcome.text)


def test_a_compiler_that_quotes_a_hostile_source(published, tmp_path):
    source = '#include "tiny.h"\nint tiny_add(int a, int b) { return a + \x1b]0;owned\x07 b; }\n'
    outcome = published.run("build", write_project(tmp_path / "project", tiny_c=source))
    assert outcome.code == EXIT_FAILED
    assert "tiny.c:2:" in outcome.err
    refused_or_escaped(outcome.text)


# ---- small contracts ---------------------------------------------------------------------------------------


def test_key_files_are_never_overwritten_or_shown(empty):
    first = empty.run("key", "new", "--no-passphrase")
    assert first.code == 0
    path = empty.config / "keys" / "default.key"
    secret = json.loads(path.read_text())["secret"]
    assert secret not in first.text
    assert path.stat().st_mode & 0o077 == 0
    again = empty.run("key", "new", "--no-passphrase")
    assert again.code == EXIT_USAGE
    assert json.loads(path.read_text())["secret"] == secret
    for words in (("key", "list"), ("key", "list", "--json"), ("key", "list", "-v")):
        assert secret not in empty.run(*words).text
    path.chmod(0o644)
    assert empty.run("key", "list").code == EXIT_TRUST


def test_a_key_elsewhere_and_a_registry_that_cannot_be_written(published, tmp_path):
    write_key(tmp_path / "my.key", fixed_key("other"))
    vis = published.blob()
    outcome = published.run("publish", vis, "--key", tmp_path / "my.key")
    assert outcome.code == EXIT_TRUST
    assert "the name tiny belongs to another key" in outcome.err
    outcome = published.run("publish", vis, "--key", "nosuch")
    assert outcome.code == EXIT_USAGE
    assert "visget key new nosuch" in outcome.err


def test_no_command_leaves_a_traceback_when_the_system_refuses(published, monkeypatch):
    """A place that forgot to translate an error of the system is caught at the edge."""

    def broken(*args: object) -> None:
        raise PermissionError(13, "Permission denied", "/some/where")

    monkeypatch.setattr("visget.api.installed", lambda **_: broken())
    outcome = published.run("list")
    assert outcome.code == EXIT_UNSUPPORTED
    assert "error: /some/where: the system refused: Permission denied" in outcome.err
    assert published.run("list", "--json").json["exit_code"] == EXIT_UNSUPPORTED
