"""Small projects for tests of the author's side: written to a directory and built by the real compiler."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from visget.format.module import BITCODE_EPOCH
from visget.progress import SILENT
from visget.toolchain.builder import BuildResult, build_package
from visget.toolchain.clang import CompileOptions, Frontend, find_frontend
from visget.toolchain.frontend import Unit, compile_units
from visget.toolchain.headers import Headers, read_headers
from visget.toolchain.project import read_project


@cache
def frontend() -> Frontend:
    return find_frontend(None, epoch=BITCODE_EPOCH)


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def units(root: Path, files: Mapping[str, str], options: CompileOptions | None = None, jobs: int = 2) -> list[Unit]:
    write(root, files)
    sources = [name for name in files if not name.endswith(".h")]
    return compile_units(frontend(), options or CompileOptions(), sources, root=root, jobs=jobs, progress=SILENT)


def headers(root: Path, text: str, name: str = "api.h", **options: object) -> Headers:
    write(root, {name: text})
    return read_headers(frontend(), CompileOptions(**options), root, {name: name})  # type: ignore[arg-type]


def project(root: Path, files: Mapping[str, str], *, build: str = "", exports: str = "", extra: str = "") -> Path:
    """Write a project whose public header is the first .h of `files` and whose sources are all others."""
    write(root, files)
    public = next(name for name in files if name.endswith(".h"))
    sources = [name for name in files if name.endswith((".c", ".cc", ".cpp"))]
    (root / "visget.toml").write_text(
        '[package]\nname = "sample"\nversion = "1.0"\nsummary = "A sample"\nlicense = "MIT"\n'
        f"[build]\nsources = {json.dumps(sources)}\n{build}\n"
        f"[exports]\nheaders = [{json.dumps(public)}]\n{exports}\n{extra}\n"
    )
    return root


def build(root: Path, **arguments: object) -> BuildResult:
    return build_package(read_project(root), cache=root / "cache", **arguments)  # type: ignore[arg-type]
