from visget.machine import machine_id, machine_id_of

ONE = (
    "processor : 0\nvendor_id : GenuineIntel\nmodel : 85\ncpu MHz : 2000.1\nflags : fpu sse2 avx2\n"
    "\nprocessor : 1\nflags : x\n"
)


def test_the_id_ignores_what_changes_from_hour_to_hour():
    assert machine_id_of("x86_64", "linux", ONE, "gnu") == machine_id_of(
        "x86_64", "linux", ONE.replace("2000.1", "3100.7").replace("fpu sse2 avx2", "avx2 fpu sse2"), "gnu"
    )


def test_the_id_tells_processors_and_libraries_apart():
    ids = {
        machine_id_of("x86_64", "linux", ONE, "gnu"),
        machine_id_of("x86_64", "linux", ONE.replace(" avx2", ""), "gnu"),
        machine_id_of("x86_64", "linux", ONE.replace("85", "86"), "gnu"),
        machine_id_of("x86_64", "linux", ONE, "musl"),
        machine_id_of("aarch64", "linux", ONE, "gnu"),
    }
    assert len(ids) == 5


def test_this_machine_has_a_stable_id():
    assert machine_id() == machine_id()
    assert len(machine_id()) == 16
