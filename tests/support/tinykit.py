"""A small library of our own in two versions, and a market where it is sold: for the tests of everyday life."""

from __future__ import annotations

import shutil
from pathlib import Path

from e2ekit import User

HEADER = """\
#ifndef TINY_H
#define TINY_H

#include <stddef.h>

/* The version of this interface. */
#define TINY_EDITION @EDITION@
#define TINY_NAME "tiny"

enum tiny_order { TINY_ASCENDING, TINY_DESCENDING = 5 };

/* Two numbers. */
struct tiny_pair {
    double low;  /* the smaller one */
    double high; /* the larger one */
};

/* Returns the edition: 1 or 2. */
int tiny_edition(void);

/* Returns how often it was called. */
int tiny_count(void);

/* Returns 42 when the library's constructor has run. */
int tiny_started(void);

/* Returns a and b in order. */
struct tiny_pair tiny_sorted(double a, double b);

/* Returns the sum of x[i] * y[i], added from the first to the last. */
double tiny_dot(size_t n, const double *x, const double *y);

/* Returns the sum of the n results of each, called with 0, 1, 2... */
long tiny_total(int n, int (*each)(int));

/* Returns x to the power of y, as the C library has it. */
double tiny_power(double x, double y);

/* Returns the name of the file that it was compiled from. */
const char *tiny_file(void);

/* Returns when it was compiled. */
const char *tiny_date(void);

#endif
"""
SOURCES = {
    "edition.c": '#include "tiny.h"\nstatic int count;\nint tiny_edition(void) { return TINY_EDITION; }\n'
    "int tiny_count(void) { return ++count; }\n",
    "state.c": '#include "tiny.h"\nstatic int started = 1;\n'
    "__attribute__((constructor)) static void start(void) { started += 41; }\n"
    "int tiny_started(void) { return started; }\n",
    "inner/maths.c": '#include "tiny.h"\n#include <math.h>\n'
    "struct tiny_pair tiny_sorted(double a, double b) {\n"
    "    struct tiny_pair pair = {a < b ? a : b, a < b ? b : a};\n    return pair;\n}\n"
    "double tiny_dot(size_t n, const double *x, const double *y) {\n    double sum = 0;\n"
    "    for (size_t i = 0; i < n; i++) sum += x[i] * y[i];\n    return sum;\n}\n"
    "double tiny_power(double x, double y) { return pow(x, y); }\n",
    "calls.c": '#include "tiny.h"\nlong tiny_total(int n, int (*each)(int)) {\n    long sum = 0;\n'
    "    for (int i = 0; i < n; i++) sum += each(i);\n    return sum;\n}\n",
    "where.c": '#include "tiny.h"\nconst char *tiny_file(void) { return __FILE__; }\n'
    'const char *tiny_date(void) { return __DATE__ " " __TIME__; }\n',
}
TOML = """\
[package]
name = "tiny"
version = "@EDITION@.0"
summary = "A small library for tests"
license = "MIT"
license-file = "LICENSE"

[build]
sources = ["*.c", "inner/*.c"]
include = ["."]
floating-point = "strict"

[exports]
headers = ["tiny.h"]

[[vector]]
name = "edition"
steps = [{ call = "tiny_edition", returns = { int = @EDITION@ } }]

[[vector]]
name = "power"
steps = [{ call = "tiny_power", args = [{ float = 2 }, { float = 10 }], returns = { float = 1024 } }]
"""


def write_project(directory: Path, edition: int = 1, *, backwards: bool = False) -> Path:
    """Write the sources of one edition; `backwards` creates the files in the other order."""
    files = {"visget.toml": TOML, "LICENSE": "MIT\n", "tiny.h": HEADER, **SOURCES}
    for name in sorted(files, reverse=backwards):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name].replace("@EDITION@", str(edition)))
    return directory


class Market:
    """A registry with both editions of the library."""

    def __init__(self, root: Path) -> None:
        self.author = User(root)
        self.registry = root / "registry"
        self.author.visget("registry", "init", self.registry)
        self.key = self.author.json("key", "new", "--no-passphrase")["id"]
        self.packages = []
        for edition in (1, 2):
            project = write_project(root / f"edition-{edition}", edition)
            self.packages.append(Path(self.author.json("build", project)["file"]))
            self.author.visget("publish", self.packages[-1])

    def newcomer(self, root: Path, **environment: str) -> User:
        """Return a user who knows the registry and has installed nothing."""
        return User(root, **{"VISGET_REGISTRY": str(self.registry), **environment})

    def copy(self, root: Path) -> Path:
        """Return a copy of the registry, to be damaged."""
        return shutil.copytree(self.registry, root)


