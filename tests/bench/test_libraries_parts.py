"""The parts of the measurement of the real libraries that need no library."""

from __future__ import annotations

import ctypes
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ziglang")

from bench import documents
from bench.buildsystems import wrapper_script
from bench.case import Case, amount, same
from bench.library_cases import CASES
from bench.library_run import Record, all_names, is_done
from bench.plain import Sink, callback, driver
from bench.rivals import stamp
from bench.speed import VISGET, measure_case
from bench.testresults import counted, from_page
from visget.errors import BuildError


def test_every_recipe_has_cases() -> None:
    recipes = Path(__file__).resolve().parents[2] / "examples" / "recipes"
    names = {path.parent.name for path in recipes.glob("*/visget.toml")}
    # A recipe that somebody has begun is not there yet.
    assert set(all_names()) == names & set(CASES)
    assert len(all_names()) >= 16


@pytest.mark.parametrize("name", sorted(CASES))
def test_cases_have_titles_of_their_own(name: str) -> None:
    titles = [case.title for case in CASES[name](quick=True)]
    assert len(titles) == len(set(titles)) >= 1


@pytest.mark.parametrize("kind", ["json", "xml", "yaml", "markdown", "prose"])
def test_documents_are_the_same_each_time(kind: str) -> None:
    make = getattr(documents, f"{kind}_text")
    first = make(5000)
    make.cache_clear()
    assert make(5000) == first
    assert 5000 <= len(first) < 8000
    first.decode()


def test_documents_are_well_formed() -> None:
    import xml.etree.ElementTree as ElementTree

    assert len(json.loads(documents.json_text(5000))) > 5
    assert len(ElementTree.fromstring(documents.xml_text(5000))) > 5  # noqa: S314 - it is our own


def test_the_picture_is_no_noise_and_no_flat_colour() -> None:
    pixels = documents.picture(64)
    assert pixels.shape == (64, 64, 3)
    assert pixels.std() > 20


def test_answers_of_other_lengths_differ() -> None:
    assert not same(np.zeros(3, np.uint8), np.zeros(4, np.uint8), 0.0)
    assert not same(np.zeros(3), np.zeros(4), 0.1)
    assert same(1.0, 1.0 + 1e-9, 1e-6)
    assert not same(1.0, 1.1, 1e-6)


def test_amounts() -> None:
    assert [amount(2 << 20), amount(96 << 10)] == ["2 MiB", "96 KiB"]


def test_the_sink_keeps_what_fits() -> None:
    driver().sink_markdown.argtypes = [ctypes.c_char_p, ctypes.c_uint, ctypes.c_void_p]
    sink = Sink(5)
    for text in (b"abc", b"def", b"gh"):
        driver().sink_markdown(text, len(text), sink.state.ctypes.data)
    assert sink.written().tobytes() == b"abcgh"
    assert sink.noted()[0] == 3
    sink.clear()
    assert sink.written().size == 0
    assert callback("steady_numbers").value


def test_wrappers_put_their_options_last_and_quote(tmp_path: Path) -> None:
    script = tmp_path / "cc"
    script.write_text(wrapper_script(["printf", "%s,"], ["a b"], ["-DX=\"y z\"", "-O3"]))
    script.chmod(0o755)
    done = subprocess.run([script, "-O2", "x $y.c"], capture_output=True, text=True, check=True)
    assert done.stdout == 'a b,-O2,x $y.c,-DX="y z",-O3,'


def test_a_build_that_cannot_do_a_case_is_left_out() -> None:
    def bind(library):  # type: ignore[no-untyped-def]
        if library == 3:
            raise AttributeError("no such function")
        return lambda: library

    case = Case(title="t", bind=bind, answer=lambda value: value % 10)
    libraries = {VISGET: 11, "same": 21, "other": 12, "none": 3}
    found = measure_case(case, libraries, 1, least=0.0, tolerant=True)  # type: ignore[arg-type]
    assert found["differ"] == ["other"]
    assert set(found["times"]) == {VISGET, "same", "other"}  # type: ignore[call-overload]
    assert found["failed"] == {"none": "AttributeError: no such function"}
    with pytest.raises(AttributeError):
        measure_case(case, libraries, 1, least=0.0)  # type: ignore[arg-type]


def test_a_record_says_what_was_being_done_and_what_failed(tmp_path: Path) -> None:
    path = tmp_path / "r" / "zlib.json"
    record = Record(path, "zlib", quick=True)
    assert record.stage("package", lambda: {"bytes": 1})

    def fail() -> None:
        assert json.loads(path.read_text())["doing"] == "speed"
        raise BuildError("clang refused it")

    assert not record.stage("speed", fail)
    values = json.loads(path.read_text())
    assert values["package"] == {"bytes": 1}
    assert values["errors"] == {"speed": "clang refused it"}
    assert not values["complete"]
    record.finish()
    assert not is_done(path, "zlib", quick=True)  # what failed is tried again


def test_a_result_holds_for_the_recipe_that_it_was_made_of(tmp_path: Path) -> None:
    path = tmp_path / "zlib.json"
    assert not is_done(path, "zlib", quick=False)
    record = Record(path, "zlib", quick=False)
    record.finish()
    assert is_done(path, "zlib", quick=False)
    assert not is_done(path, "zlib", quick=True)
    assert not is_done(path, "lz4", quick=False)
    assert stamp("zlib") != stamp("zlib", "other compiler")


def test_test_results_are_counted() -> None:
    found = {"zlib": {"x86-64": {"a": "passed", "b": "skipped"}, "aarch64": {"a": "failed", "b": "passed"},
                      "riscv64": {"a": "skipped"}}}  # fmt: skip
    assert counted(found) == {"zlib": {"x86-64": "1", "aarch64": "**1 of 2 failed**", "riscv64": "skipped"}}


def test_test_results_are_read_from_the_page() -> None:
    page = """# Title
| library | version | builds | x86-64 | aarch64 | riscv64 | remarks |
|---|---|---|---|---|---|---|
| [zlib](../examples/recipes/zlib/visget.toml) | 1.2 | yes | passed 20 | **1 of 9 failed** | – | none |

| library | switch | why |
|---|---|---|
| zlib | `A` | b |
"""
    assert from_page(page) == {"zlib": {"x86-64": "20", "aarch64": "**1 of 9 failed**", "riscv64": "–"}}
    assert from_page("nothing") == {}
