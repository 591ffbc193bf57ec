"""Programs that would be silently wrong are refused where the source says so; programs that are right are linked."""

from __future__ import annotations

import pytest
from wrapkit import Bench

QUAD = """#include <stdio.h>
static void show(long double x) {
    printf("%Lf\\n", x);
}
int main(void) { show(2.5L); return 0; }
"""
ADDRESS = """void *above(void) {
    return __builtin_return_address(1);
}
int main(void) { return above() == 0; }
"""
# Each is natural in a program, whatever a package may do.
FINE = """#include <setjmp.h>
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>
static jmp_buf there;
int visible;
__thread int own;
int opterr_(void) { return own; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv) {
    volatile long double x = argc;
    int numbers[] = {3, 1, 2};
    char big[2000000];
    big[argc] = 1;
    qsort(numbers, 3, sizeof(int), compare);
    if (setjmp(there) == 0) longjmp(there, 1);
    printf("%d %d %d %g\\n", numbers[0], big[1], opterr_(), (double)(x * 2.5L));
    return 0;
}
"""


@pytest.fixture
def bench(tmp_path) -> Bench:
    made = Bench(tmp_path)
    made.write({"quad.c": QUAD, "address.c": ADDRESS, "fine.c": FINE,
                "main.c": "int main(void) { return 0; }\n"})  # fmt: skip
    return made


@pytest.mark.parametrize("target", [[], ["--vis-target=riscv64-linux-musl"]])
def test_what_would_be_wrong_is_refused_with_its_line(bench, target) -> None:
    ran = bench.cc("quad.c", "-o", "quad", *target)
    assert ran.status == 1
    assert "quad.c:3: [VIS-506] in show(): a long double is passed to printf" in ran.err
    assert "hint: Convert to double" in ran.err
    assert not (bench.root / "quad").exists()


def test_it_is_refused_from_objects_and_each_time(bench) -> None:
    bench.good("-c", "address.c")
    for _ in range(2):
        ran = bench.cc("address.o", "-o", "address")
        assert ran.status == 1
        assert "address.c:2: [VIS-317] in above():" in ran.err


def test_a_member_of_an_archive_that_is_not_taken_does_not_matter(bench) -> None:
    bench.write({"unused.c": QUAD.replace("main", "unused")})
    bench.good("-c", "unused.c")
    bench.good("rcs", "libunused.a", "unused.o", tool="ar")
    bench.good("main.c", "libunused.a", "-o", "main")


def test_programs_may_do_what_packages_may_not(bench) -> None:
    bench.good("fine.c", "-o", "fine")
    assert bench.program("fine") == "1 1 0 2.5\n"


def test_what_is_doubtful_is_told_and_linked(bench) -> None:
    bench.write({"errno.c": "#include <errno.h>\n#include <math.h>\nint main(int n, char **v) {\n"
                 "    double x = log(n - 2);\n    return errno == EDOM && x < 0;\n}\n"})  # fmt: skip
    # Objects are kept between calls, and what was told of them is not told again: here each time has its own.
    ran = bench.good("errno.c", "-lm", "-o", "errno", VISGET_CACHE_DIR=str(bench.root / "cache"))
    assert "errno.c:5: [VIS-511] in main(): errno is read in a function that calls log" in ran.err
