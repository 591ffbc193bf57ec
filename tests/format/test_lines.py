"""Line tables: taken from debug information, gone from the module, and back from the package."""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm
import pytest
from neutral import neutral_ir
from viscases import F, module_text

from visget.errors import FormatError
from visget.format import strictjson
from visget.format.irtext import scan
from visget.format.lines import FunctionLines, LineTable, Place, extract_lines, relative_path, strip_debug
from visget.format.module import bitcode_of, parse_bitcode, parse_text, text_of
from visget.format.verifier import check_module

SOURCE = """\
#include <stdio.h>
#include <math.h>
static double square(double x) {
  return x * x;
}
int work(const char *name, double *values, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) {
    switch (name[i]) {
      case 'a': sum += square(values[i]); break;
      case 'b': sum += sqrt(values[i]); break;
      case 'c': values[i] = 0; break;
      default: fprintf(stderr, "what is %c? !dbg !1 #dbg_value(\\n", name[i]);
    }
  }
  #pragma clang loop unroll_count(4)
  for (int i = 0; i < count; i++)
    values[i] += sum;
  __asm__ volatile("nop");
  return sum > 1;
}
"""


def light(text: str) -> str:
    """Run the passes of the light clean-up."""
    module = parse_text(text)
    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple("riscv64-unknown-linux-musl").create_target_machine(features="+m,+a,+f,+d,+c")
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    manager = llvm.create_new_module_pass_manager()
    for name in ("sroa", "simplify_cfg", "instruction_combine", "simplify_cfg", "global_dead_code_eliminate"):
        getattr(manager, f"add_{name}_pass")()
    manager.run(module, builder)
    return text_of(module)


def opcodes(text: str) -> dict[str, list[str]]:
    """Return the beginnings of all instructions, by function."""
    return {
        function.name: [function.instruction(n).split("(")[0].split(",")[0] for n in range(len(function.starts))]
        for function in scan(text).definitions()
    }


@pytest.fixture(scope="module", params=["-gline-tables-only", "-g"])
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("absolute_secret_place")
    flags = (request.param, "-fdebug-compilation-dir=.", f"-ffile-prefix-map={directory}=lib")
    return light(neutral_ir(SOURCE, directory, *flags, name="work"))


def test_ordinals_are_those_of_the_stripped_module(compiled: str) -> None:
    table = extract_lines(compiled)
    final = text_of(parse_bitcode(bitcode_of(parse_text(strip_debug(compiled)))))
    assert opcodes(compiled) == opcodes(final)
    assert len(opcodes(final)["work"]) > 20

    lines = SOURCE.splitlines()
    work = next(function for function in scan(final).definitions() if function.name == "work")
    found = {}
    for ordinal in range(len(work.starts)):
        place = table.lookup("work", ordinal)
        assert place is not None
        assert place.file == "lib/work.c"
        found.setdefault(work.instruction(ordinal), lines[place.line - 1])
    expected = {
        "switch i8": "switch (name[i])",
        "@fprintf(": "fprintf",
        "@llvm.sqrt": "sqrt(values",
        "asm sideeffect": "__asm__",
        "ret i32": "return sum > 1",
    }
    for instruction, source in expected.items():
        assert any(instruction in text and source in line for text, line in found.items()), instruction
    assert table.lookup("work") == Place("lib/work.c", 6)
    assert table.lookup("nobody", 0) is None


def test_nothing_of_the_debug_information_is_left(compiled: str) -> None:
    module = parse_text(strip_debug(compiled))
    text, bitcode = text_of(module), bitcode_of(module)
    for trace in ("!DI", "!dbg !", "llvm.dbg", "Dwarf Version", "Debug Info Version", "DICompileUnit"):
        assert trace not in text.replace("!dbg !1 #dbg_value(", "")
    for trace in (b"absolute_secret_place", b"work.c", b"producer", b"clang version"):
        assert trace not in bitcode
    # What looks like debug information inside a string stays, and so does the rest of the loop's metadata.
    assert "what is %c? !dbg !1 #dbg_value(" in text
    assert '!"llvm.loop.unroll.count", i32 4' in text
    assert {finding.rule for finding in check_module(text, exports=["work"])} == {"VIS-301"}


def test_stripping_changes_no_code(compiled: str, tmp_path: Path) -> None:
    without = light(neutral_ir(SOURCE, tmp_path, name="work"))
    assert text_of(parse_text(strip_debug(compiled))) == text_of(parse_text(without))


def test_findings_point_into_the_source(compiled: str) -> None:
    text = text_of(parse_text(strip_debug(compiled)))
    (finding,) = check_module(text, exports=["work"], lines=extract_lines(compiled))
    assert finding.render().startswith("lib/work.c:19: error[VIS-301] in work(): inline assembly")


def test_an_absolute_path_never_survives(tmp_path: Path) -> None:
    text = light(neutral_ir(SOURCE, tmp_path, "-gline-tables-only", name="work"))
    assert str(tmp_path) in text
    table = extract_lines(text)
    assert table.files == ("work.c",)
    assert str(tmp_path).encode() not in table.encode()
    assert str(tmp_path).encode() not in bitcode_of(parse_text(strip_debug(text)))


@pytest.mark.parametrize(
    ("directory", "name", "path"),
    [
        (".", "src/a.c", "src/a.c"),
        ("src", "a.c", "src/a.c"),
        ("/home/me", "src/a.c", "src/a.c"),
        ("/home/me", "/home/me/src/a.c", "a.c"),
        (".", "../x/./a.c", "x/a.c"),
        ("C:\\me", "C:\\me\\a.c", "a.c"),
        (".", "..\\a.c", "a.c"),
        ("C:/me", "a.c", "a.c"),
        (".", "..", ""),
    ],
)
def test_paths(directory: str, name: str, path: str) -> None:
    assert relative_path(directory, name) == path


def test_encoding_is_a_round_trip() -> None:
    table = LineTable(
        functions={
            "f": FunctionLines(
                start=Place("b.c", 10),
                ordinals=(0, 3, 4, 9),
                places=(Place("b.c", 12, 3), None, Place("a.h", 2, 1), Place("b.c", 11)),
            ),
            "g": FunctionLines(start=None, ordinals=(2,), places=(Place("a.h", 7, 2),)),
        }
    )
    data = table.encode()
    assert LineTable.parse(data) == table
    assert LineTable.parse(data).encode() == data
    f = table.functions["f"]
    assert [f.at(n) for n in (0, 2, 3, 4, 8, 9, 99)] == [
        Place("b.c", 12, 3), Place("b.c", 12, 3), Place("b.c", 10), Place("a.h", 2, 1), Place("a.h", 2, 1),
        Place("b.c", 11), Place("b.c", 11),
    ]  # fmt: skip
    assert table.functions["g"].at(0) is None


def test_a_module_without_debug_information_has_no_lines() -> None:
    assert extract_lines(module_text(F)) == LineTable(functions={})
    assert text_of(parse_text(strip_debug(module_text(F)))) == module_text(F)


GOOD = {"format": 1, "files": ["a.c"], "functions": {"f": {"start": [0, 1], "rows": [0, 0, 0, 0]}}}


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"files": ["/etc/passwd"]},
        {"files": ["../a.c"]},
        {"files": [""]},
        {"files": [7]},
        {"functions": []},
        {"functions": {"f": []}},
        {"functions": {"f": {"start": [0], "rows": []}}},
        {"functions": {"f": {"start": [5, 1], "rows": []}}},
        {"functions": {"f": {"start": [0, 1], "rows": [0, 0, 0]}}},
        {"functions": {"f": {"start": [0, 1], "rows": [0, 9, 0, 0]}}},
        {"functions": {"f": {"start": [0, 1], "rows": [0, 0, -5, 0]}}},
        {"functions": {"f": {"start": [0, 1], "rows": [-1, 0, 0, 0]}}},
        {"functions": {"f": {"start": [0, 1], "rows": [0, 0, 0, 0, 0, 0, 0, 0]}}},
        {"functions": {"f": {"start": [0, 1], "rows": [0, 0, True, 0]}}},
        {"extra": 1},
    ],
    ids=str,
)
def test_damaged_tables_are_refused(change: dict[str, object]) -> None:
    LineTable.parse(strictjson.dumps(GOOD))
    with pytest.raises(FormatError, match="line table"):
        LineTable.parse(strictjson.dumps({**GOOD, **change}))
