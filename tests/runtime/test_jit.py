"""Libraries that were never linked: the object file is loaded by LLVM's own linker."""

import ctypes

import pytest
from runtimekit import DOUBLE, INT, SIZE, VOID, compile_c, fn, needs_cc, to

from visget.errors import LoadError
from visget.format.prototypes import Api
from visget.runtime.library import open_library

pytestmark = needs_cc

SOURCE = r"""
#include <math.h>
#include <stdlib.h>
static int counter = 40;
int next(void) { return ++counter; }
double root(double x) { return sqrt(x) + exp(0.0); }
double sum(const double *x, size_t n) { double s = 0; for (size_t i = 0; i < n; i++) s += x[i]; return s; }
static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
void sort(int *v, size_t n) { qsort(v, n, sizeof *v, ascending); }
"""
API = Api(
    functions=(
        fn("next", INT),
        fn("root", DOUBLE, ("x", DOUBLE)),
        fn("sum", DOUBLE, ("x", to(DOUBLE, const=True)), ("n", SIZE)),
        fn("sort", VOID, ("v", to(INT)), ("n", SIZE)),
        fn("missing", INT),
    )
)


def entry(directory, source=SOURCE):
    (directory / "lib").mkdir(parents=True)
    compile_c(source, directory / "lib" / "libdemo.o", "-c", "-fPIC", "-fno-math-errno")
    (directory / "api.json").write_bytes(API.encode())
    return directory


def test_an_object_file_is_as_good_as_a_library(tmp_path):
    lib = open_library(entry(tmp_path), name="demo", version="1")
    assert lib.path.name == "libdemo.o"
    assert lib.root(9.0) == 4.0
    data = (ctypes.c_int * 4)(3, 1, 4, 2)
    lib.sort(data, 4)
    assert list(data) == [1, 2, 3, 4]
    assert lib.sum((ctypes.c_double * 2)(1, 2), n=2) == 3
    assert lib.next() == 41
    assert lib.cdll.next() == 42
    assert lib.cdll.next is lib.cdll.next
    assert repr(lib.cdll) == "<JitLibrary demo>"
    with pytest.raises(TypeError, match=r"sum\(\) argument 1 \(x\)"):
        lib.sum("x", 1)
    with pytest.raises(LoadError, match="has no function missing"):
        _ = lib.missing
    with pytest.raises(AttributeError, match="no function nothing"):
        _ = lib.cdll.nothing


def test_two_objects_with_the_same_names(tmp_path):
    one = open_library(entry(tmp_path / "1", "int next(void) { return 1; }"), name="demo", version="1")
    two = open_library(entry(tmp_path / "2", "int next(void) { return 2; }"), name="demo", version="2")
    assert (one.next(), two.next()) == (1, 2)


@pytest.mark.parametrize(
    "source",
    [
        "extern int nowhere(void); int next(void) { return nowhere(); }",
        "static int n; __attribute__((constructor)) static void f(void) { n = 1; } int next(void) { return n; }",
        "static _Thread_local int n = 3; int next(void) { return n++; }",
    ],
)
def test_what_cannot_be_linked(tmp_path, source):
    with pytest.raises(LoadError, match=r"LLVM cannot load demo") as caught:
        open_library(entry(tmp_path, source), name="demo", version="1").next()
    assert "linker" in caught.value.hint


def test_a_damaged_object(tmp_path):
    directory = entry(tmp_path)
    (directory / "lib" / "libdemo.o").write_bytes(b"\x7fELF nonsense")
    with pytest.raises(LoadError, match="LLVM cannot load demo"):
        open_library(directory, name="demo", version="1")
