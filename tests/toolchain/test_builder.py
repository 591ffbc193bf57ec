from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from buildkit import build, project, write

from visget.digest import digest_bytes
from visget.errors import BuildError, RefusedError, UsageError
from visget.format.findings import Finding
from visget.format.lines import LineTable
from visget.format.module import parse_bitcode, text_of
from visget.format.package import open_package

HEADER = "#include <stddef.h>\n/** Sum of squares. */\ndouble squares(const double *v, size_t n);\n#define LIMIT 12\n"
CODE = (
    '#include "api.h"\n#include "src/own.h"\n'
    "double squares(const double *v, size_t n)\n{\n    double s = START;\n"
    "    for (size_t i = 0; i < n; i++)\n        s += v[i] * v[i];\n    return s;\n}\n"
)
FILES = {"api.h": HEADER, "src/own.h": "#define START 0.0\n", "src/a.c": CODE}


def test_a_package_has_everything(tmp_path: Path) -> None:
    root = project(
        tmp_path, {**FILES, "README.md": "# Sample\n", "LICENSE": "Do what you want.\n"}, build='include = ["."]',
        extra='[[vector]]\nname = "none"\nsteps = [{ call = "squares", args = [{ null = true }, { int = 0 }],'
        " returns = { float = 0.0 } }]\n",
    )  # fmt: skip
    toml = (root / "visget.toml").read_text()
    texts = 'readme = "README.md"\nlicense-file = "LICENSE"\n[build]'
    (root / "visget.toml").write_text(toml.replace("[build]", texts))
    result = build(root)
    package = open_package(result.data)
    manifest = package.manifest
    assert (manifest.name, str(manifest.version)) == ("sample", "1.0")
    assert (manifest.exports, manifest.imports) == (("squares",), ())
    assert (manifest.fp_contract, manifest.cleanup, manifest.constructors, manifest.epoch) == ("on", "light", False, 22)
    assert re.fullmatch(r"clang 22\.\d+\.\d+", manifest.provenance.compiler)
    assert "-ffp-contract=on" in manifest.provenance.flags
    assert [entry.kind for entry in manifest.sections] == [
        "bitcode", "api", "headers", "license", "readme", "vectors", "lines",
    ]  # fmt: skip
    assert package.headers() == {"api.h": HEADER}
    assert package.text("readme") == "# Sample\n"
    assert package.text("license") == "Do what you want.\n"
    api = package.api()
    (function,) = api.functions
    assert (function.prototype, function.doc) == ("double squares(const double *v, size_t n)", "Sum of squares.")
    assert [(constant.name, constant.value) for constant in api.constants] == [("LIMIT", 12)]
    lines = package.section("lines")
    assert lines is not None
    place = LineTable.parse(lines).lookup("squares")
    assert place is not None and (place.file, place.line) == ("src/a.c", 3)
    text = text_of(parse_bitcode(package.bitcode()))
    assert 'source_filename = "vis"' in text and "fmuladd" in text
    names = [name for name, _ in result.sources_used]
    assert names == ["api.h", "src/a.c", "src/own.h"]
    listed = "".join(f"{digest_bytes(FILES[name].encode())}  {name}\n" for name in names)
    assert manifest.provenance.source_digest == digest_bytes(listed.encode())
    assert result.findings == [] and result.warnings == ""


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    files = dict(FILES)
    files["src/b.c"] = (
        "#include <assert.h>\n#include <stdio.h>\nconst char *where(void) { return __FILE__ __DATE__ __TIME__; }\n"
        "int checked(int a) { assert(a); return printf(\"%d\", a); }\n"
    )
    files["src/c.cpp"] = "#include <array>\nextern \"C\" int third() { std::array<int, 3> a{1, 2, 3}; return a[2]; }\n"
    files["api.h"] = (
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n" + HEADER
        + "const char *where(void);\nint checked(int);\nint third(void);\n#ifdef __cplusplus\n}\n#endif\n"
    )
    first = build(project(tmp_path / "one", files, build='include = ["."]'), jobs=1)
    deep = tmp_path / "another" / "much deeper" / "place (2)"
    second = build(project(deep, files, build='include = ["."]'), jobs=3)
    assert first.data == second.data
    assert first.package.digest == second.package.digest
    blob = b"".join(
        first.package.section(kind) or b"" for kind in ("bitcode", "api", "lines", "headers")
    ) + first.data[:4096]  # fmt: skip
    for forbidden in (str(tmp_path).encode(), b"site-packages", b"ziglang", b"/home/", b"/root/"):
        assert forbidden not in blob


def test_other_sources_give_other_bytes(tmp_path: Path) -> None:
    first = build(project(tmp_path / "one", FILES, build='include = ["."]'))
    second = build(project(tmp_path / "two", {**FILES, "src/own.h": "#define START 0.5\n"}, build='include = ["."]'))
    assert first.data != second.data
    assert first.package.manifest.provenance.source_digest != second.package.manifest.provenance.source_digest


def test_errors_of_the_compiler_arrive(tmp_path: Path) -> None:
    root = project(tmp_path, {**FILES, "src/b.c": "int f( {\n"}, build='include = ["."]')
    with pytest.raises(BuildError) as caught:
        build(root)
    assert "src/b.c:1:8: error:" in str(caught.value.details["stderr"])


def findings_of(root: Path) -> list[Finding]:
    with pytest.raises(RefusedError) as caught:
        build(root)
    found = caught.value.details["findings"]
    assert isinstance(found, list)
    return found


def refused(tmp_path: Path, header: str, code: str, name: str = "a.c") -> list[Finding]:
    return [one for one in findings_of(project(tmp_path, {"api.h": header, name: code})) if one.severity == "error"]


@pytest.mark.parametrize(("header", "code", "said"), [
    ("int f(int a);\n", 'int f(int a)\n{\n    __asm__("nop");\n    return a;\n}\n', "inline assembly"),
    ("long double f(long double a);\n", "long double f(long double a)\n{\n\n    return a + 1;\n}\n", "long double"),
    ("int f(int a, ...);\n", "int f(int a, ...)\n{\n\n    return a;\n}\n", "variable"),
    ("struct big { long a, b, c; };\nlong f(struct big b);\n",
     'struct big { long a, b, c; };\nlong f(struct big b)\n{ return b.c; }\n', "24 bytes by value"),
    ("int f(int a);\n", "extern _Thread_local int other;\nint f(int a)\n{\n    return a + other;\n}\n", "thread"),
    ("int f(const char *p);\n",
     "int open(const char *, int, ...);\nint f(const char *p)\n{\n    return open(p, 0);\n}\n", "open"),
])  # fmt: skip
def test_what_leaves_the_profile_is_refused_with_its_place(tmp_path: Path, header: str, code: str, said: str) -> None:
    found = refused(tmp_path, header, code)
    texts = [finding.render() for finding in found]
    assert any(said in text for text in texts), texts


def test_inline_assembly_is_found_at_its_line(tmp_path: Path) -> None:
    code = 'int f(int a)\n{\n    __asm__("nop");\n    return a;\n}\n'
    found = refused(tmp_path, "int f(int a);\n", code, "src/deep/a.c")
    assert [(one.function, one.file, one.line) for one in found] == [("f", "src/deep/a.c", 3)]


def test_all_findings_come_at_once(tmp_path: Path) -> None:
    code = (
        '#include "api.h"\nint f(int_fast32_t *a)\n{\n    __asm__("nop");\n    return *a;\n}\n'
        "long double g(void)\n{\n    return 1;\n}\n"
    )
    found = refused(tmp_path, "#include <stdint.h>\nint f(int_fast32_t *a);\nlong double g(void);\n", code)
    assert {one.function for one in found} == {"f", "g"}
    assert len({one.rule for one in found}) >= 3


def test_a_refused_function_can_be_left_out(tmp_path: Path) -> None:
    files = {
        "api.h": "int f(int a);\nint g(int a, ...);\n",
        "a.c": "int f(int a) { return a; }\nint g(int a, ...) { return a; }\n",
    }
    assert build(project(tmp_path, files, exports='exclude = ["g"]')).package.manifest.exports == ("f",)


def test_private_headers_of_public_headers_are_mentioned(tmp_path: Path) -> None:
    code = '#include "api.h"\nint f(void) { return 1; }\n'
    files = {"api.h": '#include "detail.h"\nint f(void);\n', "detail.h": "\n", "a.c": code}
    result = build(project(tmp_path, files))
    assert [(one.rule, one.severity) for one in result.findings] == [("API-006", "warning")]
    assert "detail.h" in result.findings[0].message


def test_a_header_outside_of_the_tree_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"outside.h": "\n"})
    files = {"api.h": "int f(void);\n", "a.c": f'#include "{tmp_path}/outside.h"\nint f(void) {{ return 1; }}\n'}
    with pytest.raises(BuildError, match="outside of the source tree"):
        build(project(tmp_path / "in", files))


def test_constructors_are_announced(tmp_path: Path) -> None:
    files = {
        "api.h": "int f(void);\n",
        "a.c": "static int ready;\n__attribute__((constructor)) static void up(void) { ready = 1; }\n"
        "int f(void) { return ready; }\n",
    }
    assert build(project(tmp_path, files)).package.manifest.constructors


def test_modes_reach_the_manifest(tmp_path: Path) -> None:
    root = project(tmp_path, FILES, build='include = ["."]\nfloating-point = "strict"\ncleanup = "none"')
    manifest = build(root).package.manifest
    assert (manifest.fp_contract, manifest.cleanup) == ("off", "none")
    assert "-ffp-contract=off" in manifest.provenance.flags


def test_a_missing_header_is_named(tmp_path: Path) -> None:
    root = project(tmp_path, FILES, build='include = ["."]')
    (root / "api.h").unlink()
    with pytest.raises(UsageError, match=r"api\.h"):
        build(root)


def test_clangs_warnings_are_kept(tmp_path: Path) -> None:
    files = {"api.h": "int f(void);\n", "a.c": "int f(void) { int unused = 3; return 1; }\n"}
    assert "unused variable" in build(project(tmp_path, files, build='flags = ["-Wall"]')).warnings


def test_progress_is_told(tmp_path: Path) -> None:
    phases: list[str] = []

    class Listener:
        def step(self, phase: str, detail: str = "", done: int = 0, total: int | None = None) -> None:
            phases.append(phase)

        def note(self, text: str) -> None:
            phases.append(text)

    files = {"api.h": "int f(void);\nint g(void);\n", "a.c": "int f(void) { return 1; }\n"}
    build(project(tmp_path, files), progress=Listener())
    assert list(dict.fromkeys(phases)) == [
        "compiling", "reading headers", "merging", "checking", "packing",
        "declared but not defined, so not exported: g",
    ]  # fmt: skip


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    root = project(tmp_path / "p", FILES, build='include = ["."]')
    before = sorted(path.relative_to(root) for path in root.rglob("*"))
    build(root)
    shutil.rmtree(root / "cache", ignore_errors=True)
    assert sorted(path.relative_to(root) for path in root.rglob("*")) == before


def test_an_author_is_told_once_about_variables_and_missing_functions(tmp_path: Path) -> None:
    header = "extern int v;\nint f(void);\nint g(void);\n"
    root = project(tmp_path, {"api.h": header, "a.c": "int f(void) { return 1; }\n"})
    said: list[str] = []

    class Listener:
        def step(self, *_: object, **__: object) -> None: ...

        def note(self, text: str) -> None:
            said.append(text)

    build(root, progress=Listener())
    assert [text.partition(":")[0] for text in said] == [
        "declared but not defined, so not exported", "variables are not exported",
    ]  # fmt: skip
