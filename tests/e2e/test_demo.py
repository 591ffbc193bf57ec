"""`visget demo`: everything right, exit code 0; anything wrong, exit code 1 and the line that says so."""

from __future__ import annotations

import importlib.resources
import json
import shutil
import sys
from pathlib import Path

import pytest
from e2ekit import NUMERICS, User

from visget import demo_checks
from visget.cli import main

FUNCTIONS = ["num_saxpy", "num_dot", "num_dotf", "num_summary", "num_gemm", "num_stencil", "num_fft_run", "num_crc32"]


def test_the_demo_is_right_and_leaves_nothing(tmp_path: Path) -> None:
    user = User(tmp_path / "user")
    (tmp_path / "tmp").mkdir()
    found = user.json("demo", TMPDIR=str(tmp_path / "tmp"))
    assert found["right"] is True
    assert [line["function"].split()[0] for line in found["functions"]] == FUNCTIONS
    for line in found["functions"]:
        assert line["right"] is True
        assert line["tuned_us"] > 0 < line["generic_us"]
        assert line["ratio"] == pytest.approx(line["generic_us"] / line["tuned_us"], rel=0.05)
    assert found["generic"] != found["target"]
    assert found["size"] < 200_000
    assert found["directory"] is None, "it is gone by now"
    assert sum(found["seconds"].values()) < 30
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list(user.root.iterdir()) == [], "neither store nor keys nor settings of the user are touched"


def test_a_kept_demo_can_be_used_on(tmp_path: Path) -> None:
    user = User(tmp_path / "user")
    place = tmp_path / "kept"
    # Settings of the user that would get in the way of the demo do not.
    told = user.visget("demo", "--keep", place, VISGET_TARGET="aarch64-linux-musl", VISGET_REGISTRY="/nowhere")
    assert "every answer is right" in told
    assert f"export VISGET_HOME={place}/store" in told
    assert {path.name for path in place.iterdir()} >= {"config", "dist", "registry", "store"}
    kept = User(tmp_path / "user", VISGET_HOME=f"{place}/store", VISGET_CONFIG_DIR=f"{place}/config")
    assert kept.json("list")["installed"][0]["name"] == "numerics"
    assert len(kept.json("key", "list")["keys"]) == 1
    assert kept.json("install", "numerics")["installed"][0]["reused"] is True
    assert kept.load("numerics").num_crc32(0, b"123456789", 9) == 0xCBF43926
    again = user.json("demo", "--keep", place, code=2)
    assert (again["error"], again["where"]) == ("UsageError", str(place))
    assert kept.json("list")["installed"][0]["name"] == "numerics"


def sabotaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str) -> None:
    """Have the demo build a copy of the example in which `file` has an error."""
    copy = shutil.copytree(NUMERICS, tmp_path / "examples" / "numerics", ignore=shutil.ignore_patterns("dist"))
    text = (copy / file).read_text()
    assert text.count(old) >= 1
    (copy / file).write_text(text.replace(old, new, 1))
    files = importlib.resources.files
    monkeypatch.setattr(
        importlib.resources, "files", lambda name: copy.parent if name == "visget.examples" else files(name)
    )


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> int:
    """Run the command in this process; what it prints is left to capsys."""
    for name in ("HOME", "CONFIG_DIR", "CACHE_DIR"):
        monkeypatch.setenv(f"VISGET_{name}", str(tmp_path / name.lower()))
    for name in ("TARGET", "LINKER", "REGISTRY"):
        monkeypatch.delenv(f"VISGET_{name}", raising=False)
    monkeypatch.setattr(sys, "argv", ["visget", "demo", *words])
    with pytest.raises(SystemExit) as caught:
        main()
    assert isinstance(caught.value.code, int)
    return caught.value.code


def without_vectors(toml: Path) -> None:
    text = toml.read_text()
    toml.write_text(text[: text.index("[[vector]]")])


def test_a_wrong_answer_that_no_vector_catches_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sabotaged(tmp_path, monkeypatch, "saxpy.c", "y[i] +=", "y[i] -=")
    without_vectors(tmp_path / "examples" / "numerics" / "visget.toml")
    assert run(monkeypatch, tmp_path, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["right"] is False
    assert [line["function"].split()[0] for line in found["functions"] if not line["right"]] == ["num_saxpy"]


def test_a_wrong_answer_that_a_vector_catches_is_never_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sabotaged(tmp_path, monkeypatch, "saxpy.c", "y[i] +=", "y[i] -=")
    assert run(monkeypatch, tmp_path, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["error"] == "CompileError"
    assert "saxpy" in json.dumps(found)


def test_a_wrong_reference_is_a_mismatch_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    crc32 = demo_checks.zlib.crc32
    monkeypatch.setattr(demo_checks.zlib, "crc32", lambda *words: crc32(*words) ^ 1)
    assert run(monkeypatch, tmp_path) == 1
    out = capsys.readouterr().out
    assert "WRONG ANSWERS" in out
    [line] = [line for line in out.splitlines() if line.startswith("num_crc32")]
    assert " NO " in line
    assert "every answer is right" not in out
