"""Command lines of C compilers, as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visget.errors import UsageError
from visget.toolchain.driver_args import Command, expanded, parse


def command(text: str, *, cxx: bool = False) -> Command:
    return parse(text.split(), cxx=cxx)


def inputs(text: str, *, cxx: bool = False) -> list[tuple[str, str]]:
    return [tuple(one) for one in command(text, cxx=cxx).inputs]


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("-c x.c", "compile"), ("x.c", "link"), ("-S x.c", "ir"), ("-E x.c", "preprocess"), ("-M x.c", "preprocess"),
        ("-c -E x.c", "preprocess"), ("-S -c x.c", "ir"), ("-fsyntax-only x.c", "check"), ("--version", "query"),
        ("-dumpmachine", "query"), ("-print-search-dirs", "query"), ("-MD -c x.c", "compile"),
        ("-MM x.c", "preprocess"),
    ],
)  # fmt: skip
def test_what_is_asked_for(text, mode):
    assert command(text).mode == mode


@pytest.mark.parametrize("text", ["-o out -c x.c", "-oout -c x.c", "-c x.c -o out"])
def test_the_output_in_every_form(text):
    assert command(text).output == "out"


def test_languages_go_by_the_ending():
    text = "a.c b.cc c.cpp d.C e.s f.S g.o h.a i.so.1 k.i l.ii m"
    assert [language for _, language in inputs(text)] == [
        "c", "c++", "c++", "c++", "assembly", "assembly", "object", "object", "object", "c", "c++", "object",
    ]  # fmt: skip


def test_languages_go_by_x_until_none():
    assert inputs("-x c++ a.c -xc b.cc - -x none c.c") == [
        ("a.c", "c++"), ("b.cc", "c"), ("-", "c"), ("c.c", "c"),
    ]  # fmt: skip


def test_the_cxx_driver_takes_c_for_cxx():
    assert inputs("a.c b.o", cxx=True) == [("a.c", "c++"), ("b.o", "object")]
    assert inputs("-x c a.c", cxx=True) == [("a.c", "c")]


def test_flags_with_values_do_not_become_inputs():
    made = command("-c x.c -I inc -D A=1 -U B -include y.h -MF x.d -MT x.o -isystem dep -iquote q -idirafter z")
    assert [one.path for one in made.inputs] == ["x.c"]
    kept = "-I inc -D A=1 -U B -include y.h -MF x.d -MT x.o -isystem dep -iquote q -idirafter z"
    assert " ".join(made.flags) == kept


def test_a_flag_without_its_value():
    with pytest.raises(UsageError, match="argument to '-o' is missing"):
        command("x.c -o")


def test_order_of_inputs_libraries_and_flags_is_kept():
    made = command("a.o -Wl,--whole-archive b.a -Wl,--no-whole-archive -L lib -lx c.o -l y -pthread -O2")
    assert [(item.kind, item.text) for item in made.items] == [
        ("input", "a.o"), ("flag", "-Wl,--whole-archive"), ("input", "b.a"), ("flag", "-Wl,--no-whole-archive"),
        ("flag", "-Llib"), ("library", "x"), ("input", "c.o"), ("library", "y"), ("flag", "-pthread"),
    ]  # fmt: skip
    assert made.dropped == ("-O2",)
    assert made.has("--whole-archive")
    assert not made.has("-shared")


def test_machine_flags_are_refused_in_clangs_words():
    with pytest.raises(UsageError, match=r"unsupported option '-msse2' for target"):
        command("-msse2 -c x.c")


def test_machine_flags_that_are_dropped_are_noted_once():
    made = command("-march=native -march=native -mtune=x -c x.c")
    assert len(made.notes) == 2
    assert "-march=native" in made.notes[0]
    assert not [flag for flag in made.flags if flag.startswith("-m")]


def test_headers_of_this_machine_are_dropped_or_refused_by_name(tmp_path, monkeypatch):
    made = command("-I/usr/include -isystem /usr/local/include -c x.c")
    assert made.flags == ()
    assert ["/usr/include" in note or "/usr/local/include" in note for note in made.notes] == [True, True]
    for text in ("-I/usr/include/libxml2", "-isystem /usr/include/libxml2", "-I /usr/include/../include/libxml2"):
        with pytest.raises(UsageError, match="libxml2") as caught:
            command(f"{text} -c x.c")
        assert "[dependencies]" in str(caught.value.hint)
    monkeypatch.chdir("/usr")
    with pytest.raises(UsageError, match="libxml2"):
        command("-Iinclude/libxml2 -c x.c")


def test_libraries_of_this_machine_are_no_place_to_look():
    made = command("-L/usr/lib/x86_64-linux-gnu -L. x.o")
    assert made.directories == (".",)
    assert "-L/usr/lib/x86_64-linux-gnu" in made.notes[0]


def test_the_target_of_programs():
    assert command("--vis-target=aarch64-linux-musl x.o").target == "aarch64-linux-musl"


def test_response_files(tmp_path):
    (tmp_path / "inner").write_text("-DTWO='two words' -I\"a b\"")
    (tmp_path / "outer").write_text(f"-DONE\n  @{tmp_path}/inner x\\ y.c\t''\n")
    assert list(expanded(["-c", f"@{tmp_path}/outer", "@missing", "@"])) == [
        "-c", "-DONE", "-DTWO=two words", "-Ia b", "x y.c", "", "@missing", "@",
    ]  # fmt: skip


def test_response_files_that_name_themselves(tmp_path):
    (tmp_path / "r").write_text(f"@{tmp_path}/r")
    with pytest.raises(UsageError, match="nested"):
        list(expanded([f"@{tmp_path}/r"]))


WORDS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["-c", "-o", "-x", "-I", "-L", "-l", "-Wl,", "-W", "-f", "-m", "-D", "-M", "-", "--", "-E", "-u"]),
    st.text(max_size=6).map("-".__add__),
    st.text(max_size=6).map("-f".__add__),
)


@given(st.lists(WORDS, max_size=8), st.booleans())
def test_any_words_give_a_command_or_a_usage_error(words, cxx):
    words = [word for word in words if not word.startswith("@")]
    try:
        made = parse(words, cxx=cxx)
    except UsageError:
        return
    assert isinstance(made, Command)
