"""Pointer arguments: what is passed without a copy, and what is refused with a reason."""

import array
import ctypes
import gc
import mmap
import sys
import weakref
from pathlib import Path

import pytest
from runtimekit import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LLONG,
    LONG,
    SIZE,
    UCHAR,
    UINT,
    VOID,
    callback,
    field,
    fn,
    install,
    needs_cc,
    struct,
    to,
)  # fmt: skip

from visget.format.prototypes import BASE_TYPES, Api, Array, Float, Opaque, Record

pytestmark = needs_cc
numpy = pytest.importorskip("numpy")

SOURCE = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
double sum(const double *x, size_t n) { double s = 0; for (size_t i = 0; i < n; i++) s += x[i]; return s; }
float sumf(const float *x, size_t n) { float s = 0; for (size_t i = 0; i < n; i++) s += x[i]; return s; }
void scale(double *x, size_t n, double f) { for (size_t i = 0; i < n; i++) x[i] *= f; }
long sum_ints(const int *x, size_t n) { long s = 0; for (size_t i = 0; i < n; i++) s += x[i]; return s; }
long sum_longs(const long *x, size_t n) { long s = 0; for (size_t i = 0; i < n; i++) s += x[i]; return s; }
long sum_uints(const unsigned *x, size_t n) { long s = 0; for (size_t i = 0; i < n; i++) s += x[i]; return s; }
long sum_bytes(const unsigned char *x, size_t n) { long s = 0; for (size_t i = 0; i < n; i++) s += x[i]; return s; }
long sum_void(const void *x, size_t n) { return sum_bytes(x, n); }
size_t length(const char *x) { size_t n = 0; while (x[n]) n++; return n; }
void fill(unsigned char *x, size_t n, int v) { for (size_t i = 0; i < n; i++) x[i] = v; }
void fill_void(void *x, size_t n, int v) { fill(x, n, v); }
int any(const _Bool *x, size_t n) { for (size_t i = 0; i < n; i++) if (x[i]) return 1; return 0; }
unsigned first_half(const void *x) { return *(const uint16_t *)x; }
int during(const void *x, int (*look)(void)) { return look(); }
uintptr_t address(const void *x) { return (uintptr_t)x; }
uintptr_t address_of_doubles(const double *x) { return (uintptr_t)x; }
void set(int *out, int v) { *out = v; }
void set_pointer(void **out, void *v) { *out = v; }
struct box *new_box(int v);
void set_row(const double **out, const double *row) { *out = row; }
void set_box(struct box **out, int v) { *out = new_box(v); }
void set_text(const char **out) { *out = "text"; }
double trace(const double (*x)[3]) { return x[0][0] + x[1][1] + x[2][2]; }
struct complex { float re, im; };
void conjugate(struct complex *z, size_t n) { for (size_t i = 0; i < n; i++) z[i].im = -z[i].im; }
struct point { int x, y; };
int manhattan(const struct point *p, size_t n)
{ int s = 0; for (size_t i = 0; i < n; i++) s += abs(p[i].x) + abs(p[i].y); return s; }
struct box { int secret; };
struct box *new_box(int v) { struct box *b = malloc(sizeof *b); b->secret = v; return b; }
int open_box(const struct box *b) { return b ? b->secret : -1; }
void free_box(struct box *b) { free(b); }
int long_doubles(long double *x) { return x != 0; }
struct crate *no_crate(void) { return 0; }
int open_crate(struct crate *c) { return c != 0; }
"""
API = Api(
    functions=(
        fn("sum", DOUBLE, ("x", to(DOUBLE, const=True)), ("n", SIZE)),
        fn("sumf", FLOAT, ("x", to(FLOAT, const=True)), ("n", SIZE)),
        fn("scale", VOID, ("x", to(DOUBLE)), ("n", SIZE), ("f", DOUBLE)),
        fn("sum_ints", LONG, ("x", to(INT, const=True)), ("n", SIZE)),
        fn("sum_longs", LONG, ("x", to(LLONG, const=True)), ("n", SIZE)),
        fn("sum_uints", LONG, ("x", to(UINT, const=True)), ("n", SIZE)),
        fn("sum_bytes", LONG, ("x", to(UCHAR, const=True)), ("n", SIZE)),
        fn("sum_void", LONG, ("x", to(VOID, const=True)), ("n", SIZE)),
        fn("length", SIZE, ("x", to(CHAR, const=True))),
        fn("fill", VOID, ("x", to(UCHAR)), ("n", SIZE), ("v", INT)),
        fn("fill_void", VOID, ("x", to(VOID)), ("n", SIZE), ("v", INT)),
        fn("any", INT, ("x", to(BOOL, const=True)), ("n", SIZE)),
        fn("first_half", UINT, ("x", to(Float("_Float16", 2), const=True))),
        fn("during", INT, ("x", to(VOID, const=True)), ("look", callback(INT))),
        fn("address", SIZE, ("x", to(VOID, const=True))),
        fn("address_of_doubles", SIZE, ("x", to(DOUBLE, const=True))),
        fn("set", VOID, ("out", to(INT)), ("v", INT)),
        fn("set_pointer", VOID, ("out", to(to(VOID))), ("v", to(VOID))),
        fn("set_row", VOID, ("out", to(to(DOUBLE, const=True))), ("row", to(DOUBLE, const=True))),
        fn("set_box", VOID, ("out", to(to(struct("box")))), ("v", INT)),
        fn("set_text", VOID, ("out", to(to(CHAR, const=True)))),
        fn("trace", DOUBLE, ("x", to(Array(DOUBLE, 3), const=True))),
        fn("conjugate", VOID, ("z", to(struct("complex"))), ("n", SIZE)),
        fn("manhattan", INT, ("p", to(struct("point"), const=True)), ("n", SIZE)),
        fn("new_box", to(struct("box")), ("v", INT)),
        fn("open_box", INT, ("b", to(struct("box"), const=True))),
        fn("free_box", VOID, ("b", to(struct("box")))),
        fn("no_crate", to(struct("crate"))),
        fn("open_crate", INT, ("c", to(struct("crate")))),
        fn("long_doubles", INT, ("x", to(Opaque("long double")))),
    ),
    records=(
        Record(name="struct box", kind="struct", size=0, align=1, fields=(), complete=False),
        Record(name="struct complex", kind="struct", size=8, align=4,
               fields=(field("re", 0, FLOAT), field("im", 4, FLOAT))),
        Record(name="struct crate", kind="struct", size=0, align=1, fields=(), complete=False),
        Record(name="struct point", kind="struct", size=8, align=4, fields=(field("x", 0, INT), field("y", 4, INT))),
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def lib(tmp_path_factory):
    return install(tmp_path_factory.mktemp("arrays"), SOURCE, API)


@pytest.fixture
def doubles():
    return numpy.arange(6.0)


def test_nothing_is_copied(lib, doubles):
    assert lib.address_of_doubles(doubles) == doubles.ctypes.data
    assert lib.address_of_doubles(doubles[2:]) == doubles.ctypes.data + 16
    assert lib.address(doubles) == doubles.ctypes.data
    lib.scale(doubles, 3, 10.0)
    assert doubles.tolist() == [0, 10, 20, 3, 4, 5]
    frozen = doubles.copy()
    frozen.flags.writeable = False
    for _ in range(2):
        assert lib.address_of_doubles(frozen) == frozen.ctypes.data
    data = b"abcdef"
    assert lib.address(memoryview(data)[2:]) == lib.address(data) + 2


def test_every_kind_of_buffer(lib, doubles):
    for good in (doubles, memoryview(doubles), array.array("d", doubles), (ctypes.c_double * 6)(*doubles),
                 doubles.reshape(2, 3), memoryview(doubles.tobytes()).cast("d"), doubles.astype("=f8")):  # fmt: skip
        assert lib.sum(good, 6) == 15
        assert lib.sum(good, 6) == 15  # the second time takes the quick way
    assert lib.sum(numpy.float64(4), 1) == 4
    assert lib.sum(numpy.array(4.0), 1) == 4
    assert lib.sum(None, 0) == 0
    assert lib.sum(numpy.empty(0), 0) == 0
    assert lib.sum(ctypes.c_double(3), 1) == 3
    assert lib.sum(ctypes.byref(ctypes.c_double(3)), 1) == 3
    assert lib.sum(ctypes.pointer(ctypes.c_double(3)), 1) == 3
    assert lib.sumf(numpy.ones(3, "f4"), 3) == 3


@pytest.mark.parametrize("kind", ["b", "B", "c"])
def test_bytes_for_const_byte_pointers(lib, kind):
    assert lib.sum_bytes(b"abc", 3) == sum(b"abc")
    assert lib.sum_void(b"abc", 3) == sum(b"abc")
    assert lib.length(b"abc") == 3
    view = memoryview(bytearray(b"abc\0")).cast(kind)
    for function in (lib.sum_bytes, lib.sum_void):
        assert function(view, 3) == sum(b"abc")
        assert function(bytearray(b"abc"), 3) == sum(b"abc")
        assert function(numpy.frombuffer(b"abc", "i1"), 3) == sum(b"abc")
    assert lib.length(view) == 3
    assert lib.length(ctypes.create_string_buffer(b"abcd")) == 4
    assert lib.length(ctypes.c_char_p(b"abcde")) == 5
    with mmap.mmap(-1, 4096) as mapped:
        mapped[:3] = b"abc"
        assert lib.sum_bytes(mapped, 4096) == sum(b"abc")


def test_writable_bytes(lib):
    for buffer in (bytearray(3), numpy.zeros(3, "u1"), numpy.zeros(3, "i1"), array.array("b", [0, 0, 0]),
                   (ctypes.c_char * 3)(), (ctypes.c_ubyte * 3)()):  # fmt: skip
        for function in (lib.fill, lib.fill_void):
            function(buffer, 3, 65)
            assert bytes(buffer) == b"AAA"
            function(buffer, 2, 66)
            assert bytes(buffer) == b"BBA"
    many = numpy.zeros(2)
    lib.fill_void(many, 16, 255)
    assert numpy.isnan(many).all()


def test_integers_of_the_right_size_and_sign(lib):
    assert lib.sum_ints(numpy.array([1, -2], "i4"), 2) == -1
    assert lib.sum_uints(numpy.array([1, 2**32 - 1], "u4"), 2) == 2**32
    # long and long long are the same to C.
    for good in (numpy.array([1, 2], numpy.int64), numpy.array([1, 2], numpy.longlong), array.array("q", [1, 2]),
                 array.array("l", [1, 2]), (ctypes.c_longlong * 2)(1, 2), (ctypes.c_long * 2)(1, 2)):  # fmt: skip
        assert lib.sum_longs(good, 2) == 3
    assert lib.sum_longs(ctypes.byref(ctypes.c_longlong(4)), 1) == 4
    assert lib.sum_longs(ctypes.pointer(ctypes.c_long(4)), 1) == 4
    assert lib.any(numpy.array([False, True]), 2) == 1
    assert lib.first_half(numpy.array([1.0], "f2")) == 0x3C00


def refused(function, *arguments):
    with pytest.raises(TypeError) as caught:
        function(*arguments)
    # The quick way must not let pass on a second try what was refused on the first.
    with pytest.raises(TypeError) as again:
        function(*arguments)
    assert str(again.value) == str(caught.value)
    return str(caught.value)


def test_the_wrong_type(lib, doubles):
    start = "sum() argument 1 (x): expected const double *"
    assert refused(lib.sum, doubles.astype("f4"), 1) == (
        f"{start}: a buffer of float64, got a numpy.ndarray of float32 with shape (6,); convert it: "
        ".astype(numpy.float64)"
    )
    assert refused(lib.sum, array.array("f", [1]), 1) == (
        f"{start}: a buffer of float64, got an array.array of float32 with shape (1,)"
    )
    assert "big-endian elements (format '>d')" in refused(lib.sum, doubles.astype(">f8"), 1)
    assert "of int64" in refused(lib.sum, numpy.arange(3), 3)
    assert "of complex128" in refused(lib.sum, doubles.astype("c16"), 3)
    assert "got bytes of uint8 with shape (8,)" in refused(lib.sum, bytes(8), 1)
    assert "got a list; make it an array: numpy.asarray(..., dtype=numpy.float64)" in refused(lib.sum, [1.0], 1)
    assert "got a float" in refused(lib.sum, 1.0, 1)
    assert "expected int *, got an int" in refused(lib.set, 1, 1)
    assert "convert it: .astype(numpy.int32)" in refused(lib.sum_ints, numpy.ones(2, "u4"), 2)
    assert "convert it: .astype(numpy.uint32)" in refused(lib.sum_uints, numpy.ones(2, "i4"), 2)
    assert "to pass its bytes: .view(numpy.uint8)" in refused(lib.sum_bytes, doubles, 2)
    assert "numpy.bool_" in refused(lib.any, numpy.ones(2, "u1"), 2)
    assert "elements of format" in refused(lib.sum, numpy.zeros(2, [("a", "f8")]), 2)
    assert "which is no buffer" in refused(lib.sum, numpy.array(["2020-01-01"], "M8[D]"), 1)
    assert "elements of format 'O'" in refused(lib.sum, numpy.array([None]), 1)
    # float16, float32 and bfloat-like things are not each other.
    assert "of float64" in refused(lib.first_half, doubles)


def test_text_is_not_bytes(lib):
    for function in (lib.length, lambda x: lib.sum_void(x, 1), lambda x: lib.fill(x, 1, 1)):
        assert "got a str; C strings are bytes: pass text.encode()" in refused(function, "abc")


def test_an_integer_is_not_an_address(lib, doubles):
    assert "got an int; an address is passed as ctypes.c_void_p(...)" in refused(lib.sum_void, doubles.ctypes.data, 1)
    assert lib.sum_void(ctypes.c_void_p(lib.address(b"abc")), 3) == sum(b"abc")
    message = refused(lib.sum, ctypes.c_void_p(doubles.ctypes.data), 1)
    assert "say what it points to: ctypes.cast(address, ctypes.POINTER(c_double))" in message
    assert lib.sum(ctypes.cast(doubles.ctypes.data, ctypes.POINTER(ctypes.c_double)), 6) == 15


def test_gaps_between_elements(lib, doubles):
    for bad in (doubles[::2], doubles[::-1], doubles.reshape(2, 3).T, memoryview(doubles)[::2]):
        assert "is not C-contiguous; pass numpy.ascontiguousarray(...) of it" in refused(lib.sum, bad, 3)
        assert "is not C-contiguous" in refused(lib.sum_void, bad, 3)
    assert "is not C-contiguous" in refused(lib.scale, doubles[::2], 3, 1.0)
    assert doubles.tolist() == [0, 1, 2, 3, 4, 5]


def test_read_only_memory(lib, doubles):
    doubles.flags.writeable = False
    assert lib.sum(doubles, 6) == 15
    message = refused(lib.scale, doubles, 6, 2.0)
    assert message == (
        "scale() argument 1 (x): a numpy.ndarray of float64 with shape (6,) is read-only, and double * may be written "
        "to; pass a copy of it, or set .flags.writeable"
    )
    assert "is read-only" in refused(lib.scale, memoryview(bytes(48)).cast("d"), 6, 2.0)
    for function in (lib.fill, lib.fill_void):
        assert "bytes cannot be changed, and " in refused(function, b"abc", 3, 0)
        assert "pass a bytearray" in refused(function, memoryview(b"abc"), 3, 0)
    assert "cannot be changed" in refused(lib.fill_void, ctypes.c_char_p(b"abc"), 3, 0)
    assert doubles.tolist() == [0, 1, 2, 3, 4, 5]


def test_unaligned_memory(lib):
    raw = numpy.zeros(49, "u1")
    odd = raw[1:].view("f8")
    assert "is not aligned to 8 bytes; pass a copy of it" in refused(lib.sum, odd, 6)
    assert lib.sum(odd.copy(), 6) == 0
    # A good array first, so that the type is known.
    assert lib.sum(numpy.zeros(6), 6) == 0
    assert "is not aligned" in refused(lib.sum, odd, 6)
    assert lib.sum_void(odd, 48) == 0


def test_ctypes_objects_of_the_wrong_type(lib):
    assert "got an array of c_float" in refused(lib.sum, (ctypes.c_float * 2)(), 2)
    assert "got a pointer to c_float" in refused(lib.sum, ctypes.byref(ctypes.c_float()), 1)
    assert "got a pointer to c_float" in refused(lib.sum, ctypes.pointer(ctypes.c_float()), 1)
    assert "got a c_int" in refused(lib.sum, ctypes.c_int(), 1)
    assert "got an array of c_uint" in refused(lib.sum_ints, (ctypes.c_uint * 2)(), 2)
    assert "got an array of c_bool" in refused(lib.sum_bytes, (ctypes.c_bool * 2)(), 2)
    assert lib.sum_void((ctypes.c_short * 2)(1, 2), 4) == 3
    assert lib.sum_void(ctypes.byref(ctypes.c_int(5)), 4) == 5
    assert lib.sum_void(ctypes.pointer(ctypes.c_int(6)), 4) == 6
    assert lib.sum_void(ctypes.c_int(7), 4) == 7


def test_output_parameters(lib):
    for out in (ctypes.c_int(), numpy.zeros((), "i4"), numpy.zeros(1, "i4")):
        lib.set(out, 9)
        assert (out.value if isinstance(out, ctypes.c_int) else out.item()) == 9
    out = ctypes.c_int()
    lib.set(ctypes.byref(out), -3)
    assert out.value == -3
    pointer = ctypes.c_void_p()
    lib.set_pointer(ctypes.byref(pointer), ctypes.c_void_p(0x1234))
    assert pointer.value == 0x1234
    text = ctypes.c_char_p()
    lib.set_text(ctypes.byref(text))
    assert text.value == b"text"
    texts = (ctypes.c_char_p * 1)()
    lib.set_text(texts)
    assert texts[0] == b"text"
    assert "got a pointer to c_int" in refused(lib.set_text, ctypes.byref(ctypes.c_int()))
    assert "expected void **, got a numpy.ndarray" in refused(lib.set_pointer, numpy.zeros(1, "u8"), None)


def test_the_place_of_a_pointer(lib):
    """Where C wants T **, a pointer to T is passed like any object: by its address."""
    row = (ctypes.c_double * 2)(1.5, 2.5)
    for out in (ctypes.POINTER(ctypes.c_double)(), ctypes.POINTER(ctypes.c_double)()):
        lib.set_row(out, row)
        assert out[:2] == [1.5, 2.5]
    lib.set_row(ctypes.byref(out), None)
    assert not out
    for wrap in (lambda x: x, ctypes.byref, ctypes.pointer):
        box = ctypes.POINTER(lib.box)()
        lib.set_box(wrap(box), 8)
        assert lib.open_box(box) == 8
        lib.free_box(box)
    boxes = (ctypes.POINTER(lib.box) * 2)()
    lib.set_box(boxes, 9)
    assert (lib.open_box(boxes[0]), bool(boxes[1])) == (9, False)
    lib.free_box(boxes[0])
    place = ctypes.c_void_p()
    lib.set_pointer(place, ctypes.c_void_p(0x1234))
    assert place.value == 0x1234
    assert "got a pointer to c_float" in refused(lib.set_row, ctypes.POINTER(ctypes.c_float)(), None)
    assert "got a pointer to c_double" in refused(lib.set_box, ctypes.pointer(ctypes.c_double()), 1)
    # A pointer to a struct is still that where C wants one.
    assert lib.open_box(ctypes.POINTER(lib.box)()) == -1


def test_matrices_with_rows_of_known_length(lib):
    assert lib.trace(numpy.eye(3)) == 3
    rows = ((ctypes.c_double * 3) * 3)()
    rows[1][1] = 5
    assert lib.trace(rows) == 5


def test_structs(lib):
    point = lib.point(3, -4)
    assert lib.manhattan(point, 1) == 7
    assert lib.manhattan(ctypes.byref(point), 1) == 7
    assert lib.manhattan(ctypes.pointer(point), 1) == 7
    points = (lib.point * 2)((1, 2), (3, 4))
    assert lib.manhattan(points, 2) == 10
    memory = numpy.array([[1, 2], [3, -4]], "i4")
    message = refused(lib.manhattan, memory, 2)
    assert "expected const struct point *, got a numpy.ndarray of int32" in message
    assert "(type * count).from_buffer(...)" in message
    assert lib.manhattan((lib.point * 2).from_buffer(memory), 2) == 10
    assert "pass an instance, a ctypes array or pointer of point, or None" in refused(lib.manhattan, (1, 2), 1)
    assert "expected const struct point *, got a complex" in refused(lib.manhattan, lib.complex(), 1)
    assert lib.sum_void(lib.point(1, 2), 8) == 3


def test_complex_numbers(lib):
    numbers = numpy.array([1 + 2j, 3 - 4j], "c8")
    lib.conjugate(numbers, 2)
    assert numbers.tolist() == [1 - 2j, 3 + 4j]
    one = lib.complex(1, 2)
    lib.conjugate(one, 1)
    assert (one.re, one.im) == (1, -2)
    assert "a buffer of complex64, got a numpy.ndarray of complex128" in refused(lib.conjugate, numpy.ones(1, "c16"), 1)
    assert "a buffer of complex64" in refused(lib.conjugate, numpy.ones(2, "f4"), 1)


def test_handles_cannot_be_mixed_up(lib):
    box = lib.new_box(42)
    assert lib.open_box(box) == 42
    assert lib.open_box(None) == -1
    assert "open_crate() argument 1 (c): expected struct crate *, got a pointer to box" in refused(lib.open_crate, box)
    assert not lib.no_crate()
    assert lib.open_crate(lib.no_crate()) == 0
    for wrong in (b"box", 5, numpy.zeros(8), lib.point(), ctypes.c_void_p(8)):
        assert "expected const struct box *" in refused(lib.open_box, wrong)
    lib.free_box(box)


def test_the_buffer_lives_until_the_call_returns(lib):
    class Watched(numpy.ndarray):
        pass

    held = numpy.zeros(4).view(Watched)
    gone = weakref.ref(held)
    count = sys.getrefcount(held)
    lib.sum(held, 4)
    assert sys.getrefcount(held) == count
    del held
    gc.collect()
    assert gone() is None
    # Nobody else holds this one.
    assert lib.sum(numpy.ones(100_000), 100_000) == 100_000
    shrinking = bytearray(16)
    lib.fill(shrinking, 16, 1)
    shrinking.extend(b"x")  # the hold ended with the call


def test_the_buffer_cannot_be_taken_away_during_the_call(lib):
    growing = bytearray(16)
    with pytest.raises(BufferError):
        lib.during(growing, lambda: growing.extend(b"x") or 0)
    growing.extend(b"x")
    with Path("/dev/zero").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ)
    with pytest.raises(BufferError):
        lib.during(mapped, lambda: mapped.close() or 0)
    mapped.close()


def test_strange_objects(lib):
    class Lying:
        dtype = numpy.dtype("f8")

    class Unhashable:
        dtype = bytearray()

    lib.sum(numpy.zeros(1), 1)
    assert "which is no buffer" in refused(lib.sum, Lying(), 1)
    assert "which is no buffer" in refused(lib.sum, Unhashable(), 1)


def test_types_that_python_lacks_are_untyped_memory(lib):
    assert lib.long_doubles.__annotations__["x"].text == "long double *"
    assert BASE_TYPES["double"] == DOUBLE
