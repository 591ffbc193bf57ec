"""Functions: signatures, help, scalars, keywords, and errors that name the argument."""

import ctypes
import inspect
import pydoc
from concurrent.futures import ThreadPoolExecutor

import pytest
from runtimekit import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LLONG,
    LONG,
    SCHAR,
    SHORT,
    SIZE,
    UCHAR,
    UINT,
    USHORT,
    VOID,
    callback,
    fn,
    install,
    needs_cc,
    struct,
    to,
)  # fmt: skip

from visget.errors import UnsupportedError
from visget.format.prototypes import BASE_TYPES, Api, Enum, EnumRef, Opaque, Record
from visget.runtime.arrays import Address

pytestmark = needs_cc

SOURCE = r"""
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>
#define SAME(name, type) type name(type x) { return x; }
SAME(same_char, char) SAME(same_schar, signed char) SAME(same_uchar, unsigned char) SAME(same_short, short)
SAME(same_ushort, unsigned short) SAME(same_int, int) SAME(same_uint, unsigned) SAME(same_long, long)
SAME(same_ulong, unsigned long) SAME(same_llong, long long) SAME(same_float, float) SAME(same_double, double)
SAME(same_bool, _Bool)
/* Nine arguments: the last ones are passed on the stack. */
long weigh(signed char a, unsigned char b, short c, unsigned short d, int e, unsigned f, long g, unsigned h, long i)
{ return a + 2L*b + 3L*c + 4L*d + 5L*e + 6L*f + 7L*g + 8L*h + 9L*i; }
int none(void) { return 7; }
int one(int a) { return a; }
int sub(int a, int b) { return a - b; }
int three(int a, int b, int c) { return a + 10*b + 100*c; }
int four(int a, int b, int c, int d) { return three(a, b, c) + 1000*d; }
int five(int a, int b, int c, int d, int e) { return four(a, b, c, d) + 10000*e; }
int six(int a, int b, int c, int d, int e, int f) { return five(a, b, c, d, e) + 100000*f; }
int seven(int a, int b, int c, int d, int e, int f, int g) { return six(a, b, c, d, e, f) + 1000000*g; }
int eight(int a, int b, int c, int d, int e, int f, int g, int h) { return seven(a, b, c, d, e, f, g) + 10000000*h; }
static int counter;
void bump(void) { counter++; }
int bumps(void) { return counter; }
int keywords(int from, int class, int unnamed) { return from + 10*class + 100*unnamed; }
const char *word(int null) { return null ? 0 : "gr\xfc\xdf"; }
char *copy(const char *s) { char *c = malloc(strlen(s) + 1); strcpy(c, s); return c; }
void *block(size_t n) { return n ? calloc(n, 1) : 0; }
void release(void *p) { free(p); }
enum colour { RED = 1, GREEN = 2, BLUE = 4 };
enum colour next_colour(enum colour c) { return c * 2; }
long sort_and_sum(int *v, size_t n, int (*order)(const void *, const void *))
{ long s = 0; qsort(v, n, sizeof *v, order); for (size_t i = 0; i < n; i++) s = 10*s + v[i]; return s; }
int apply(int (*f)(int), int x) { return f ? f(x) : -1; }
int twice(int x) { return 2 * x; }
typedef int (*unary)(int);
unary pick(void) { return twice; }
long double wide(long double x) { return x; }
"""

COLOUR = Enum(name="enum colour", type=UINT, values=(("RED", 1), ("GREEN", 2), ("BLUE", 4)), doc="Colours.")
DIGITS = [(letter, INT) for letter in "abcdefgh"]
INTEGERS = {
    "same_char": (CHAR, -128, 127),
    "same_schar": (SCHAR, -128, 127),
    "same_uchar": (UCHAR, 0, 255),
    "same_short": (SHORT, -(2**15), 2**15 - 1),
    "same_ushort": (USHORT, 0, 2**16 - 1),
    "same_int": (INT, -(2**31), 2**31 - 1),
    "same_uint": (UINT, 0, 2**32 - 1),
    "same_long": (LONG, -(2**63), 2**63 - 1),
    "same_ulong": (SIZE, 0, 2**64 - 1),
    "same_llong": (LLONG, -(2**63), 2**63 - 1),
}
COMPARE = callback(INT, to(VOID, const=True), to(VOID, const=True))
API = Api(
    functions=(
        *(fn(name, made[0], ("x", made[0])) for name, made in INTEGERS.items()),
        fn("same_float", FLOAT, ("x", FLOAT)),
        fn("same_double", DOUBLE, ("x", DOUBLE)),
        fn("same_bool", BOOL, ("x", BOOL)),
        fn("weigh", LONG, ("a", SCHAR), ("b", UCHAR), ("c", SHORT), ("d", USHORT), ("e", INT), ("f", UINT),
           ("g", LONG), ("h", UINT), ("i", LONG), doc="Weigh.\n\na: the first"),
        fn("none", INT),
        fn("one", INT, *DIGITS[:1]),
        fn("sub", INT, *DIGITS[:2], doc="Subtracts b from a.\n\nNever fails."),
        *(fn(name, INT, *DIGITS[:n]) for n, name in enumerate(("three", "four", "five", "six", "seven", "eight"), 3)),
        fn("bump", VOID),
        fn("bumps", INT),
        fn("keywords", INT, ("from", INT), ("class", INT), ("", INT)),
        fn("word", to(CHAR, const=True), ("null", INT)),
        fn("copy", to(CHAR), ("s", to(CHAR, const=True))),
        fn("block", to(VOID), ("n", SIZE)),
        fn("release", VOID, ("p", to(VOID))),
        fn("next_colour", EnumRef("enum colour"), ("c", EnumRef("enum colour"))),
        fn("sort_and_sum", LONG, ("v", to(INT)), ("n", SIZE), ("order", COMPARE)),
        fn("apply", INT, ("f", callback(INT, INT)), ("x", INT)),
        fn("twice", INT, ("x", INT)),
        fn("pick", callback(INT, INT)),
        fn("wide", Opaque("long double"), ("x", Opaque("long double")), doc="Wide."),
        fn("printf_like", INT, ("format", to(CHAR, const=True)), variadic=True),
        fn("absent", INT),
    ),
    enums=(COLOUR,),
    records=(Record(name="struct unused", kind="struct", size=0, align=1, fields=(), complete=False),),
)  # fmt: skip


@pytest.fixture(scope="module")
def lib(tmp_path_factory):
    return install(tmp_path_factory.mktemp("functions"), SOURCE, API)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_arrive_whole_or_not_at_all(lib, name):
    _, low, high = INTEGERS[name]
    same = getattr(lib, name)
    for value in (low, low + 1, 0, 1, high - 1, high, low, high):
        assert same(value) == value
    for value in (low - 1, high + 1, 2**64, -(2**64), 10**30):
        with pytest.raises(OverflowError, match=rf"^{name}\(\) argument 1 \(x\): {value} does not fit into"):
            same(value)


def test_what_counts_as_an_integer(lib):
    numpy = pytest.importorskip("numpy")
    for same in (lib.same_int, lib.same_long):
        assert same(True) == 1
        assert same(numpy.int8(-3)) == -3
        assert same(numpy.uint64(3)) == 3
        assert same(ctypes.c_long(5)) == 5
        assert same(lib.BLUE) == 4
        for wrong in (1.0, "7", b"7", None, [1], 1j, numpy.float64(1)):
            with pytest.raises(TypeError, match=r"argument 1 \(x\): expected an integer, got"):
                same(wrong)
    lib.same_long(1)
    # 1.0 == 1 and hashes alike; a table of seen values must not let it through.
    with pytest.raises(TypeError, match="use int"):
        lib.same_long(1.0)


def test_many_different_64_bit_values(lib):
    assert all(lib.same_ulong(n * 2**40 + n) == n * 2**40 + n for n in range(3000))


def test_floats(lib):
    numpy = pytest.importorskip("numpy")
    assert lib.same_double(1) == 1.0
    assert lib.same_double(0.1) == 0.1
    assert lib.same_float(0.1) == numpy.float32(0.1)
    assert lib.same_float(numpy.float16(1.5)) == 1.5
    assert lib.same_bool(True) is True
    assert lib.same_bool(0) is False
    for wrong in ("1", None, 1j, b"1"):
        with pytest.raises(TypeError, match=r"same_double\(\) argument 1 \(x\): expected a number, got"):
            lib.same_double(wrong)


def test_small_integers_on_the_stack_and_in_registers(lib):
    values = [-128, 255, -32768, 65535, -(2**31), 2**32 - 1, -5, 2**32 - 1, 2**40]
    assert lib.weigh(*values) == sum(n * value for n, value in enumerate(values, 1))


def test_every_number_of_parameters_by_position_and_by_name(lib):
    assert lib.none() == 7
    assert lib.one(4) == 4
    assert lib.sub(5, 3) == 2
    assert lib.sub(b=3, a=5) == 2
    for n, name in enumerate(("three", "four", "five", "six", "seven", "eight"), 3):
        digits = list(range(1, n + 1))
        expected = int("".join(map(str, reversed(digits))))
        names = dict(zip("abcdefgh", digits, strict=False))
        assert getattr(lib, name)(*digits) == expected
        assert getattr(lib, name)(**names) == expected
        assert getattr(lib, name)(1, **dict(list(names.items())[:0:-1])) == expected
        with pytest.raises(TypeError, match=rf"^{name}\(\) argument {n} \({'abcdefgh'[n - 1]}\): "):
            getattr(lib, name)(*digits[:-1], "x")
    names = dict(zip("abcdefghi", range(1, 10), strict=True))
    assert lib.weigh(**names) == lib.weigh(1, 2, 3, 4, 5, 6, 7, 8, i=9) == sum(n * n for n in range(1, 10))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda lib: lib.sub(1), r"^sub\(\) missing 1 required positional argument: 'b'"),
        (lambda lib: lib.sub(), r"^sub\(\) missing 2 required positional arguments: 'a' and 'b'"),
        (lambda lib: lib.sub(1, 2, 3), r"^sub\(\) takes 2 positional arguments but 3 were given"),
        (lambda lib: lib.sub(1, c=2), r"^sub\(\) got an unexpected keyword argument 'c'"),
        (lambda lib: lib.sub(1, a=2), r"^sub\(\) got multiple values for argument 'a'"),
        (lambda lib: lib.none(1), r"^none\(\) takes 0 positional arguments but 1 was given"),
        (lambda lib: lib.weigh(1, 2, 3), r"^weigh\(\) missing a required argument: 'd'"),
        (lambda lib: lib.weigh(*range(10)), r"^weigh\(\) too many positional arguments"),
        (lambda lib: lib.weigh(*range(8), z=1), r"^weigh\(\)"),
    ],
)
def test_wrong_numbers_of_arguments(lib, call, message):
    with pytest.raises(TypeError, match=message):
        call(lib)


def test_names_that_python_does_not_allow(lib):
    assert str(inspect.signature(lib.keywords)) == "(from_: int, class_: int, argument3: int) -> int"
    assert lib.keywords(from_=1, class_=2, argument3=3) == 321


def test_help_shows_the_prototype_and_the_comment(lib):
    assert inspect.signature(lib.sub).parameters["b"].annotation is int
    text = pydoc.render_doc(lib.sub, renderer=pydoc.plaintext)
    assert text.splitlines()[0].startswith("Python Library Documentation: function sub")
    lines = [line.strip() for line in text.splitlines()]
    expected = ["sub(a: int, b: int) -> int", "int sub(int a, int b)", "", "Subtracts b from a.", "", "Never fails."]
    assert lines[2:8] == expected
    signatures = {
        "sort_and_sum": "(v: int *, n: int, order: int (*)(const void *, const void *)) -> int",
        "word": "(null: int) -> bytes | None",
        "copy": "(s: const char *) -> char *",
        "block": "(n: int) -> visget.runtime.arrays.Address",
        "next_colour": "(c: visget.lib.demo.colour) -> visget.lib.demo.colour",
        "bump": "() -> None",
        "same_bool": "(x: bool) -> bool",
    }
    for name, expected in signatures.items():
        assert str(inspect.signature(getattr(lib, name))) == expected
    assert str(inspect.signature(lib.weigh)).startswith("(a: int, b: int, c: int,")
    assert lib.weigh.__doc__ == (
        "long weigh(signed char a, unsigned char b, short c, unsigned short d, int e, unsigned int f, long g, "
        "unsigned int h, long i)\n\nWeigh.\n\na: the first"
    )
    assert (lib.sub.__name__, lib.sub.__qualname__, lib.none.__doc__) == ("sub", "sub", "int none(void)")


def test_void_and_state(lib):
    before = lib.bumps()
    assert lib.bump() is None
    assert lib.bumps() == before + 1


def test_returned_pointers(lib):
    assert lib.word(0) == b"gr\xfc\xdf"
    assert lib.word(1) is None
    text = lib.copy(b"abc")
    assert ctypes.string_at(text) == b"abc"
    assert text[1] == b"b"
    lib.release(text)
    block = lib.block(4)
    assert isinstance(block, Address)
    assert bool(block)
    assert ctypes.cast(block, ctypes.POINTER(ctypes.c_ubyte))[3] == 0
    assert block == ctypes.c_void_p(block.value)
    lib.release(block)
    null = lib.block(0)
    assert not null
    assert repr(null) == "Address(0x0)"
    lib.release(null)
    lib.release(None)


def test_enums(lib):
    assert lib.next_colour(lib.RED) is lib.GREEN
    assert lib.next_colour(2) is lib.colour.BLUE
    assert lib.next_colour(lib.BLUE) == 8  # no member: the integer itself
    assert lib.colour.__doc__ == "Colours."
    assert lib["enum colour"] is lib.colour
    with pytest.raises(OverflowError, match=r"argument 1 \(c\): -1 does not fit into enum colour"):
        lib.next_colour(-1)


def test_callbacks(lib):
    data = (ctypes.c_int * 4)(3, 1, 4, 2)

    def descending(a, b):
        ints = ctypes.POINTER(ctypes.c_int)
        return ctypes.cast(b, ints)[0] - ctypes.cast(a, ints)[0]

    assert lib.sort_and_sum(data, 4, descending) == 4321
    assert lib.apply(lambda x: x + 1, 5) == 6
    assert lib.apply(None, 5) == -1
    with pytest.raises(TypeError, match=r"^apply\(\) argument 1 \(f\): expected int \(\*\)\(int\): a callable or None"):
        lib.apply(3, 5)


def test_c_functions_as_callbacks(lib):
    assert lib.apply(lib.twice, 21) == 42  # C calls C, not through Python
    picked = lib.pick()
    assert picked(4) == 8
    assert lib.apply(picked, 4) == 8
    assert lib.apply(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(abs), -4) == 4
    with pytest.raises(TypeError, match="a C function of another type"):
        lib.apply(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_double)(abs), -4)
    with pytest.raises(TypeError, match="a C function of another type"):
        lib.apply(lib.sub, -4)


def test_the_same_callable_is_wrapped_once(lib):
    kept = lib._members()._types.pending

    def increment(x):
        return x + 1

    class Unhashable:
        __hash__ = None

        def __call__(self, x):
            return x - 1

    unhashable = Unhashable()
    before = len(kept)
    for _ in range(10):
        assert lib.apply(increment, 1) == 2
        assert lib.apply(unhashable, 1) == 0
    assert len(kept) == before + 2


def test_an_exception_in_a_callback_is_raised_by_the_call(lib):
    calls = []

    def broken(a, b):
        calls.append(a)
        raise ValueError("broken")

    with pytest.raises(ValueError, match=r"^broken$"):
        lib.sort_and_sum((ctypes.c_int * 4)(3, 1, 4, 2), 4, broken)
    assert len(calls) == 1
    # A call within a callback: its exception is the inner call's.
    def outer(x):
        with pytest.raises(ZeroDivisionError):
            lib.apply(lambda y: 1 // 0, 1)
        return x + 1

    assert lib.apply(outer, 1) == 2
    with pytest.raises(SystemExit):
        lib.apply(lambda x: exit(), 1)
    # A refused argument after the callback leaves nothing behind.
    with pytest.raises(TypeError, match="argument 2"):
        lib.apply(outer, "x")
    assert lib.apply(outer, 1) == 2


def test_an_exception_outside_of_any_call_is_logged_and_c_gets_zero(lib, caplog):
    def broken(x):
        raise ValueError(x)

    with pytest.raises(ValueError, match="1"):
        lib.apply(broken, 1)
    kept = lib._members()._types.pending.thunk(lib._members()._types.storage(callback(INT, INT)), broken)
    assert kept(5) == 0  # as if C had kept the pointer
    assert "broken" in caplog.text
    assert "ValueError: 5" in caplog.text


@pytest.mark.parametrize(("name", "reason"), [("wide", "no type for long double|cannot pass long double"),
                                              ("printf_like", "variable number")])  # fmt: skip
def test_what_python_cannot_call_still_has_its_documentation(lib, name, reason):
    function = getattr(lib, name)
    assert function.__doc__.startswith(("long double wide(long double x)", "int printf_like("))
    assert inspect.signature(function).parameters
    with pytest.raises(UnsupportedError, match=reason):
        function(1)


def test_functions_are_made_once_even_by_many_threads(tmp_path):
    lib = install(tmp_path, SOURCE, API, name="again")
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: (lib.sub, lib.colour, lib.unused, lib.sort_and_sum), range(64)))
    assert len({tuple(map(id, row)) for row in made}) == 1


def test_records_by_value_are_refused_when_incomplete(tmp_path):
    api = Api(
        functions=(fn("f", INT, ("s", struct("hidden"))), fn("g", BASE_TYPES["int"])),
        records=(Record(name="struct hidden", kind="struct", size=0, align=1, fields=(), complete=False),),
    )
    lib = install(tmp_path, "int f(int x) { return x; } int g(void) { return 1; }", api)
    assert lib.g() == 1
    with pytest.raises(UnsupportedError, match="struct hidden"):
        lib.f(1)
