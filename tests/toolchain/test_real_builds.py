"""Real libraries, unmodified, by their own build systems, with their own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from systemkit import build_tiny

from visget.errors import NetworkError, NotFoundError, UnsupportedError
from visget.toolchain.builder import BuildResult

pytestmark = [pytest.mark.network, pytest.mark.long]

ZLIB = (
    'debian = "zlib=1:1.2.13.dfsg-1"\n'
    'sha256 = "3fa1e6b2fc525062aa88207dda52fed8e045373c809d362fe8a2bfbf7cf515a8"\n'
)  # fmt: skip
CJSON = (
    'debian = "cjson=1.7.15-1+deb12u4"\n'
    'sha256 = "764c2de141d680f4fb4cada30c526dacaa30ead061b9b9c34f2b81e2df0f8439"\n'
)
EXPAT = (
    'debian = "expat=2.5.0-1+deb12u2"\n'
    'sha256 = "6fc87dbd01f49999ed368cfb37c08d35e41348dda2281d60642f3aa14cb77e32"\nsubdir = "expat"\n'
)
PCRE2 = 'debian = "pcre2=10.42-1"\nsha256 = "726dafe7a8d07332d4df61edf23f384ddb158b2b263846273d1103b6b9a7c176"\n'
LIBYAML = 'debian = "libyaml=0.2.5-1"\nsha256 = "1edbf86e5cd76937ff62892ba6c2537456d645d834d4cd4a82430b8be7051bf4"\n'


def build(tmp_path: Path, name: str, source: str, build: str, headers: str) -> BuildResult:
    root = tmp_path / name
    root.mkdir()
    (root / "visget.toml").write_text(
        f'[package]\nname = "{name}"\nversion = "1.0"\nsummary = "A sample"\nlicense = "MIT"\n'
        f"[source]\n{source}\n[build]\n{build}\n[exports]\nheaders = {headers}\n"
    )
    try:
        return build_tiny(root, test=True)
    except (NetworkError, NotFoundError, UnsupportedError) as error:
        pytest.skip(f"cannot be built here: {error}")


def left_out(result: BuildResult) -> set[str | None]:
    return {one.function for one in result.findings if one.message.startswith("left out of the exports")}


def test_zlib_by_configure(tmp_path: Path) -> None:
    settings = (
        'system = "autotools"\nconfigure = ["--static"]\ntargets = ["libz.a", "example", "minigzip"]\n'
        'library = "libz.a"\ntests = ["make", "test"]'
    )
    result = build(tmp_path, "zlib", ZLIB, settings, '["zlib.h", "zconf.h"]')
    assert {"deflate", "inflate", "crc32", "gzopen", "gzread"} <= set(result.package.manifest.exports)
    assert left_out(result) == {"gzprintf", "gzvprintf"}
    assert {one.rule for one in result.findings} <= {"VIS-401", "VIS-408"}


def test_zlib_by_cmake(tmp_path: Path) -> None:
    # Debian's copy lacks the resource file for Windows, whose name CMake wants to see.
    source = ZLIB + 'copy = { "win32/zlib1.rc" = "README" }\n'
    result = build(tmp_path, "zlib", source, 'system = "cmake"\nlibrary = "libz.a"', '["zlib.h", "zconf.h"]')
    assert {"deflate", "inflate", "crc32", "gzopen", "gzread"} <= set(result.package.manifest.exports)
    assert any(name == "visget-build/zconf.h" for name, _ in result.sources_used)


def test_cjson_by_cmake(tmp_path: Path) -> None:
    settings = (
        'system = "cmake"\nconfigure = ["-DENABLE_CJSON_UTILS=ON"]\nlibrary = ["libcjson.a", "libcjson_utils.a"]'
    )
    result = build(tmp_path, "cjson", CJSON, settings, '["cJSON.h", "cJSON_Utils.h"]')
    assert {"cJSON_Parse", "cJSON_Print", "cJSONUtils_GeneratePatches"} <= set(result.package.manifest.exports)


def test_expat_by_cmake(tmp_path: Path) -> None:
    settings = 'system = "cmake"\nconfigure = ["-DEXPAT_BUILD_DOCS=OFF"]\ninclude = ["lib"]\nlibrary = "libexpat.a"'
    result = build(tmp_path, "expat", EXPAT, settings, '["expat.h", "expat_external.h"]')
    assert {"XML_ParserCreate", "XML_Parse"} <= set(result.package.manifest.exports)


def test_pcre2_by_autotools_with_its_own_tests(tmp_path: Path) -> None:
    settings = (
        'system = "autotools"\ninclude = ["src"]\nlibrary = "libpcre2-8.a"\n'
        'configure = ["--enable-rebuild-chartables", "--disable-shared"]\ndefines = { PCRE2_CODE_UNIT_WIDTH = 8 }'
    )
    result = build(tmp_path, "pcre2", PCRE2, settings, '["pcre2.h"]')
    assert {"pcre2_compile_8", "pcre2_match_8"} <= set(result.package.manifest.exports)


def test_libyaml_as_a_shared_library_that_is_installed(tmp_path: Path) -> None:
    settings = 'system = "cmake"\nconfigure = ["-DBUILD_SHARED_LIBS=ON"]\ninstall = true\nlibrary = "libyaml.so"'
    result = build(tmp_path, "libyaml", LIBYAML, settings, '["yaml.h"]')
    assert "yaml_parser_parse" in result.package.manifest.exports
    assert any(name == "visget-stage/usr/include/yaml.h" for name, _ in result.sources_used)
