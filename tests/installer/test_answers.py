"""A library must give the answers of its test vectors; whatever else it does becomes an error that names the call."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from neutral import native_object, neutral_ir

from visget.errors import CompileError
from visget.format.prototypes import (
    BASE_TYPES,
    Api,
    CType,
    Enum,
    EnumRef,
    Function,
    Integer,
    Opaque,
    Parameter,
    Pointer,
)
from visget.format.vectors import (
    AfterBytes,
    AfterValues,
    Arg,
    ArrayArg,
    BufferArg,
    BytesArg,
    Expect,
    ExpectFloat,
    ExpectInt,
    ExpectNonnull,
    ExpectText,
    FloatArg,
    IntArg,
    NullArg,
    OutArg,
    Pattern,
    Step,
    TextArg,
    VarArg,
    Vector,
    VectorSet,
)
from visget.installer.answers import check_answers, time_bench
from visget.installer.limits import Limits

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <pthread.h>
#include <time.h>
static void *square(void *at) {
    struct timespec moment = {0, 1000000}; nanosleep(&moment, 0);
    *(int *)at *= *(int *)at; return at;
}
int in_threads(int n) {
    pthread_t made[8]; int values[8], sum = 0;
    for (int k = 0; k < 8; k++) {
        values[k] = k + n;
        if (pthread_create(&made[k], 0, square, &values[k])) return -1;
    }
    for (int k = 0; k < 8; k++) { pthread_join(made[k], 0); sum += values[k]; }
    return sum;
}
int add(int a, int b) { return a + b; }
unsigned char low(unsigned char x) { return x + 1; }
long big(long x) { return x * 1000; }
_Bool is_odd(int x) { return x & 1; }
float half(float x) { return x / 2; }
double root(double x) { return sqrt(x); }
unsigned long length(const char *s) { return strlen(s); }
unsigned sum_bytes(const unsigned char *p, unsigned long n) { unsigned s = 0; while (n--) s += *p++; return s; }
void double_all(float *p, unsigned long n) { while (n--) *p++ *= 2; }
void fill(unsigned char *p, unsigned long n) { while (n--) *p++ = 0xab; }
void overrun(unsigned char *p, unsigned long n) { for (unsigned long i = 0; i <= n; i++) p[i] = 1; }
void underrun(unsigned char *p) { p[-3] = 1; }
unsigned touch(const unsigned char *p) { ((unsigned char *)p)[0] ^= 1; return 0; }
const char *greeting(int kind) { return kind == 0 ? "hello" : 0; }
int *make(int v) { int *p = malloc(sizeof *p); *p = v; return p; }
int value(int *p) { return *p; }
void drop(int *p) { free(p); }
int crash(int x) { return *(volatile int *)(long)x; }
void give_up(void) { abort(); }
void loop(void) { for (volatile int i = 0;; i++) ; }
void leave(void) { exit(0); }
int talk(void) { puts("some text on standard output"); fflush(stdout); return 1; }
int choose(int e) { return e + 1; }
int count(int n, ...) { return n; }
char *keep; void remember(char *p) { keep = p; } void late(void) { keep[0]++; }
long double opaque(long double x) { return x; }
"""

INT, LONG, SIZE = BASE_TYPES["int"], BASE_TYPES["long"], BASE_TYPES["unsigned long"]
UCHAR, VOID, BOOL, FLOAT, DOUBLE, CHAR = (
    BASE_TYPES[name] for name in ("unsigned char", "void", "_Bool", "float", "double", "char")
)
UINT = BASE_TYPES["unsigned int"]
BYTES, CBYTES, TEXT = Pointer(UCHAR), Pointer(UCHAR, const=True), Pointer(CHAR, const=True)
INTP = Pointer(INT)


def declare(name: str, result: CType, *parameters: CType, variadic: bool = False) -> Function:
    made = tuple(Parameter(name=f"p{n}", c="T", type=type_) for n, type_ in enumerate(parameters))
    return Function(
        name=name, prototype=f"T {name}(...)", doc="", result_c="T", result=result, parameters=made, variadic=variadic
    )


API = Api(
    functions=(
        declare("add", INT, INT, INT), declare("low", UCHAR, UCHAR), declare("big", LONG, LONG),
        declare("is_odd", BOOL, INT), declare("half", FLOAT, FLOAT), declare("root", DOUBLE, DOUBLE),
        declare("length", SIZE, TEXT), declare("sum_bytes", UINT, CBYTES, SIZE),
        declare("double_all", VOID, Pointer(FLOAT), SIZE), declare("fill", VOID, BYTES, SIZE),
        declare("overrun", VOID, BYTES, SIZE), declare("underrun", VOID, BYTES), declare("touch", UINT, CBYTES),
        declare("greeting", TEXT, INT), declare("make", INTP, INT), declare("value", INT, INTP),
        declare("drop", VOID, INTP), declare("crash", INT, INT), declare("give_up", VOID), declare("loop", VOID),
        declare("leave", VOID), declare("talk", INT), declare("choose", INT, EnumRef("enum e")),
        declare("count", INT, INT, variadic=True), declare("remember", VOID, Pointer(CHAR)), declare("late", VOID),
        declare("in_threads", INT, INT), declare("absent", INT),
        declare("opaque", Opaque("long double"), Opaque("long double")),
    ),
    enums=(Enum(name="enum e", type=Integer("unsigned int", 4, False), values=(("A", 0),)),),
)  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("answers")
    (directory / "x.c").write_text(SOURCE)
    path = directory / "libx.so"
    subprocess.run(
        ["gcc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-w", "-pthread", str(directory / "x.c"), "-o", path, "-lm"],
        check=True,
    )
    return path


def call(name: str, *args: Arg, returns: Expect | None = None, save: str | None = None, nonnull: bool = False) -> Step:
    return Step(call=name, args=args, returns=returns, save=save, nonnull=nonnull)


def vectors(*steps: Step) -> VectorSet:
    return VectorSet(vectors=(Vector(name="probe", steps=steps),))


def i(value: int) -> IntArg:
    return IntArg(value=value)


GOOD = {
    "integers": [
        call("add", i(-5), i(3), returns=ExpectInt(value=-2)), call("low", i(255), returns=ExpectInt(value=0)),
        call("big", i(10**12), returns=ExpectInt(value=10**15)), call("is_odd", i(-3), returns=ExpectInt(value=1)),
        call("choose", i(4), returns=ExpectInt(value=5)),
        call("count", i(2), i(7), FloatArg(text="1.5"), returns=ExpectInt(value=2)),
    ],
    "threads of the library": [call("in_threads", i(1), returns=ExpectInt(value=204))],
    "floats": [
        call("half", FloatArg(text="0.2"), returns=ExpectFloat(text="0.1")),
        call("root", FloatArg(text="-1"), returns=ExpectFloat(text="nan")),
        call("root", FloatArg(text="inf"), returns=ExpectFloat(text="inf")),
        call("root", FloatArg(text="2"), returns=ExpectFloat(text="1.41421356", rel="1e-8")),
        call("root", i(4), returns=ExpectFloat(text="2")),
    ],
    "texts": [
        call("length", TextArg(text="héllo"), returns=ExpectInt(value=6)),
        call("greeting", i(0), returns=ExpectText(text="hello")),
        call("greeting", i(0), returns=ExpectNonnull()), call("greeting", i(1), returns=ExpectInt(value=0)),
    ],
    "buffers": [
        call("sum_bytes", BytesArg(data=b"\1\2\3"), i(3), returns=ExpectInt(value=6)),
        call("sum_bytes", BytesArg(data=b""), i(0), returns=ExpectInt(value=0)),
        call("sum_bytes", NullArg(), i(0), returns=ExpectInt(value=0)),
        call("double_all", ArrayArg(type="f32", values=("1.5", "-2"), after=AfterValues(values=("3", "-4")), id="v"),
             i(2)),
        call("double_all", BufferArg(name="v"), i(2)), call("double_all", BufferArg(name="v"), i(1)),
        call("fill", OutArg(type="u8", length=5, after=AfterBytes(data=b"\xab\xab\xab")), i(3)),
        call("sum_bytes", ArrayArg(type="u8", values=Pattern(kind="ramp", count=300, seed=0)), i(300),
             returns=ExpectInt(value=sum(n % 256 for n in range(300)))),
    ],
    "pointers": [
        call("make", i(77), save="p", nonnull=True), call("value", VarArg(name="p"), returns=ExpectInt(value=77)),
        call("drop", VarArg(name="p")),
        call("add", i(1), i(2), save="three"),
        call("add", VarArg(name="three"), VarArg(name="three"), returns=ExpectInt(value=6)),
    ],
    "standard output is not the reply": [call("talk", returns=ExpectInt(value=1))],
}  # fmt: skip


def test_right_answers(library: Path) -> None:
    everything = VectorSet(vectors=tuple(Vector(name=name, steps=tuple(steps)) for name, steps in GOOD.items()))
    report = check_answers(library, API, everything)
    assert (report.vectors, report.steps) == (len(GOOD), sum(map(len, GOOD.values())))
    assert report.seconds > 0


WRONG = {
    "integer": (call("add", i(1), i(1), returns=ExpectInt(value=3)), "returned 2, not 3"),
    "float": (call("root", FloatArg(text="2"), returns=ExpectFloat(text="1.4", rel="1e-3")), "not 1.4"),
    "nan": (call("root", FloatArg(text="4"), returns=ExpectFloat(text="nan")), "returned 2.0"),
    "text": (call("greeting", i(0), returns=ExpectText(text="hullo")), "hello"),
    "null": (call("greeting", i(1), nonnull=True), "returned null"),
    "null text": (call("greeting", i(1), returns=ExpectText(text="x")), "None"),
    "array": (
        call("double_all", ArrayArg(type="f32", values=("1", "2"), after=AfterValues(values=("2", "5"))), i(2)),
        "element 1 of the buffer is 4.0, not 5.0",
    ),
    "bytes": (call("fill", OutArg(type="u8", length=2, after=AfterBytes(data=b"\xab\xab")), i(1)), "byte 1"),
    "behind": (call("overrun", OutArg(type="u8", length=9), i(9)), "behind the end of a buffer of 9 bytes"),
    "in front": (call("underrun", OutArg(type="u8", length=9)), "in front of a buffer"),
    "constant": (call("touch", BytesArg(data=b"abc")), "may only read"),
    "missing": (call("absent"), "no such function"),
    "opaque": (call("opaque", i(1)), "cannot pass the type long double"),
    "range": (call("low", i(256)), "does not fit into 8 bits"),
    "kind": (call("add", i(1), FloatArg(text="1.5")), "argument 2: a float cannot be passed as int"),
    "pointer": (call("value", i(5)), "cannot be passed as a pointer"),
    "not a pointer": (call("add", i(1), TextArg(text="x")), "is not a pointer"),
    "too few": (call("add", i(1)), "it takes 2"),
    "too many": (call("add", i(1), i(2), i(3)), "it takes 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_names_the_call(library: Path, case: str) -> None:
    step, said = WRONG[case]
    with pytest.raises(CompileError) as caught:
        check_answers(library, API, vectors(call("add", i(1), i(1)), step), label="demo 1.0")
    assert said in caught.value.message
    assert f"test vector 'probe', step 2, {step.call}()" in caught.value.message
    assert caught.value.message.startswith("demo 1.0 gives a wrong answer")
    assert caught.value.details == {"vector": "probe", "step": 2, "function": step.call}


def test_a_late_write_is_seen_at_the_end(library: Path) -> None:
    steps = (call("remember", ArrayArg(type="u8", values=(7,), id="b")), call("late"))
    check_answers(library, API, vectors(*steps))  # inside the buffer: allowed
    constant = (call("remember", BytesArg(data=b"x")), call("late"))
    with pytest.raises(CompileError, match="may only read"):
        check_answers(library, API, vectors(*constant))


@pytest.mark.parametrize(
    ("step", "signal"), [(call("crash", i(16)), "SIGSEGV"), (call("give_up"), "SIGABRT")], ids=["segv", "abort"]
)
def test_a_crash_names_the_call_and_the_signal(library: Path, step: Step, signal: str) -> None:
    with pytest.raises(CompileError) as caught:
        check_answers(library, API, vectors(call("add", i(1), i(1)), step))
    assert f"crashed in test vector 'probe', step 2, {step.call}()" in caught.value.message
    assert signal in caught.value.message
    assert caught.value.details["function"] == step.call


def test_a_hang_is_ended(library: Path) -> None:
    with pytest.raises(CompileError, match=r"took too long in test vector 'probe', step 1, loop\(\)"):
        check_answers(library, API, vectors(call("loop")), limits=Limits(seconds=1.0))


def test_an_early_exit_is_no_answer(library: Path) -> None:
    with pytest.raises(CompileError, match=r"crashed in test vector 'probe', step 1, leave\(\)"):
        check_answers(library, API, vectors(call("leave")))


def test_a_constructor_that_crashes_is_laid_at_the_loading(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(
        "__attribute__((constructor)) void f(void) { __builtin_trap(); }\nint add(int a, int b) { return a + b; }"
    )
    subprocess.run(["gcc", "-shared", "-fPIC", str(tmp_path / "x.c"), "-o", str(tmp_path / "libx.so")], check=True)
    with pytest.raises(CompileError, match="while it was being loaded"):
        check_answers(tmp_path / "libx.so", API, vectors(call("add", i(1), i(1))))


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "libx.so").write_bytes(b"no")
    with pytest.raises(CompileError, match="loader refuses"):
        check_answers(tmp_path / "libx.so", API, vectors(call("add", i(1), i(1))))


def test_an_object_is_linked_in_memory(tmp_path: Path) -> None:
    """Where there is no linker, the object itself must give the answers."""
    source = (
        "#include <string.h>\nint add(int a, int b) { return a + b; }\nunsigned long length(const char *s) { "
        "return strlen(s); }\n"
    )
    (tmp_path / "x.o").write_bytes(native_object(neutral_ir(source, tmp_path), "x86_64"))
    api = Api(functions=tuple(f for f in API.functions if f.name in ("add", "length")))
    good = vectors(
        call("add", i(2), i(3), returns=ExpectInt(value=5)),
        call("length", TextArg(text="abc"), returns=ExpectInt(value=3)),
    )
    assert check_answers(tmp_path / "x.o", api, good).steps == 2
    with pytest.raises(CompileError, match="returned 5, not 6"):
        check_answers(tmp_path / "x.o", api, vectors(call("add", i(2), i(3), returns=ExpectInt(value=6))))


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("#include <stdio.h>\n__attribute__((constructor)) static void f(void) { puts(\"x\"); }\nint add(int "
            "a, int b) { return a + b; }", "constructors"),
        ("static _Thread_local int n; int add(int a, int b) { return a + b + ++n; }", "thread-local"),
    ],
)  # fmt: skip
def test_an_object_that_needs_a_linker_says_so(tmp_path: Path, source: str, what: str) -> None:
    """LLVM's linker in memory would skip the constructors without a word."""
    (tmp_path / "x.o").write_bytes(native_object(neutral_ir(source, tmp_path), "x86_64"))
    api = Api(functions=tuple(f for f in API.functions if f.name == "add"))
    with pytest.raises(CompileError, match=f"has {what}.*only work in a linked library"):
        check_answers(tmp_path / "x.o", api, vectors(call("add", i(2), i(3))))


def test_a_library_without_vectors_is_only_loaded(library: Path) -> None:
    assert check_answers(library, API, VectorSet()).steps == 0


def test_bench_times_the_calls_alone(library: Path) -> None:
    slow = Vector(
        name="slow",
        steps=(
            call("double_all", ArrayArg(type="f32", values=Pattern(kind="ramp", count=200_000, seed=1)), i(200_000)),
        ),
    )
    quick = Vector(
        name="quick",
        steps=(call("make", i(3), save="p"), call("value", VarArg(name="p")), call("drop", VarArg(name="p"))),
    )
    medians = time_bench(library, API, VectorSet(vectors=(slow, quick)), seconds_each=0.05)
    assert set(medians) == {"slow", "quick"}
    assert 0 < medians["quick"] < medians["slow"] < 1


def test_bench_refuses_wrong_answers(library: Path) -> None:
    with pytest.raises(CompileError, match="returned 2, not 3"):
        time_bench(library, API, vectors(call("add", i(1), i(1), returns=ExpectInt(value=3))))
