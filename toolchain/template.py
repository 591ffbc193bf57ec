"""What `visget init` writes: a commented visget.toml with a small library that builds and passes its test vector.

Invariant: no existing file is ever changed. The keys are those of docs/reference/visget-toml.md.
"""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Literal

from visget.errors import UsageError
from visget.files import translated, write_new
from visget.names import PackageName
from visget.toolchain.project import PROJECT_FILE

_PROJECT = Template("""\
# What visget builds from this directory: `visget build` writes dist/$name-0.1.0.vis.

[package]
name = "$name"
version = "0.1.0"
summary = "One line that says what $name does"
license = "MIT"                    # an SPDX expression
# homepage = "https://..."
# readme = "README.md"
# license-file = "LICENSE"

# Sources that are fetched instead of lying here; sha256 is that of the sdist, the .dsc file or the archive.
# [source]
# pypi = "name==1.0"               # or debian = "name=1.0-1", or url = "https://.../name-1.0.tar.gz"
# sha256 = "..."
# subdir = "lib"

[build]
sources = ["src/*.$suffix"]
include = ["include"]
standard = "$standard"
# exclude = ["src/test_*.$suffix"]
# defines = { NDEBUG = true, LEVEL = 2 }
# flags = ["-fno-strict-aliasing"]
# floating-point = "contract"      # "strict": the same bits on every machine; "fast": reorder freely
# A library that has a build system is built by it instead:
# system = "cmake"                  # or "autotools", "meson", "make"
# library = "lib$ident.a"

[exports]
headers = ["$ident.h"]              # the functions that they declare are the package's interface
# functions = ["${ident}_*"]
# exclude = ["${ident}_debug_*"]

# Calls with known answers. Every machine that installs the package repeats them before it uses the library.
[[vector]]
name = "dot product"
steps = [
  { call = "${ident}_dot", args = [
      { array = { type = "f64", values = [1, 2, 3] } },
      { array = { type = "f64", values = [4, 5, 6] } },
      { int = 3 },
    ], returns = { float = 32, rel = 1e-12 } },
]

# Calls that are timed by `visget build --choose-cleanup`.
[[bench]]
name = "dot product of a million numbers"
steps = [
  { call = "${ident}_dot", args = [
      { array = { type = "f64", pattern = { kind = "lcg", count = 1000000, seed = 1 } } },
      { array = { type = "f64", pattern = { kind = "lcg", count = 1000000, seed = 2 } } },
      { int = 1000000 },
    ] },
]
""")

_HEADER = Template("""\
#ifndef ${upper}_H
#define ${upper}_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return the sum of a[i] * b[i] for i below count. */
double ${ident}_dot(const double *a, const double *b, size_t count);

#ifdef __cplusplus
}
#endif

#endif
""")

_C_SOURCE = Template("""\
#include "$ident.h"

/* Plain loops are best: the installer turns them into the widest vector instructions of each machine. */
double ${ident}_dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}
""")

_CXX_SOURCE = Template("""\
#include "$ident.h"

namespace {

/* Inside the library C++ is free; what it exports has C linkage and C types. */
template <typename T>
T dot(const T *a, const T *b, size_t count)
{
    T sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

}  // namespace

double ${ident}_dot(const double *a, const double *b, size_t count)
{
    return dot(a, b, count);
}
""")

_IGNORE = "/dist/\n"


def init_project(directory: Path, name: PackageName, language: Literal["c", "c++"] = "c") -> list[Path]:
    """Write a new project called `name` into `directory`, and return the files written.

    Raises:
        UsageError: a file of it exists already; nothing is written then.
        CacheError: the directory cannot be written.
        ResourceError: the disk is full.
    """
    words = {
        "name": name,
        "ident": name.replace("-", "_"),
        "upper": name.replace("-", "_").upper(),
        "suffix": "cpp" if language == "c++" else "c",
        "standard": "gnu++17" if language == "c++" else "gnu17",
    }
    source = _CXX_SOURCE if language == "c++" else _C_SOURCE
    files = {
        directory / PROJECT_FILE: _PROJECT.substitute(words),
        directory / "include" / f"{words['ident']}.h": _HEADER.substitute(words),
        directory / "src" / f"{words['ident']}.{words['suffix']}": source.substitute(words),
    }
    existing = [path for path in files if path.exists() or path.is_symlink()]
    if existing:
        raise UsageError(
            f"{existing[0].name} exists already; nothing was written",
            where=str(existing[0]),
            hint="choose another directory",
            details={"existing": [str(path) for path in existing]},
        )
    if not (directory / ".gitignore").exists():
        files[directory / ".gitignore"] = _IGNORE
    for path, text in files.items():
        with translated("write a new project", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_new(path, text.encode())
    return list(files)
