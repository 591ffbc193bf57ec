"""Which members of archives take part in a link."""

from __future__ import annotations

from visget.toolchain.driver_resolve import Entry, Unit, resolve
from visget.toolchain.irsymbols import Symbol


def unit(name: str, defines: str = "", needs: str = "", weak: str = "", hides: str = "") -> Unit:
    def symbol(name: str, *, defined: bool = True, weak: bool = False, visible: bool = True) -> Symbol:
        return Symbol(name, defined, weak, common=False, visible=visible, executable=True, tls=False,
                      visibility="default")  # fmt: skip

    return Unit(
        name,
        b"",
        (
            *(symbol(one) for one in defines.split()),
            *(symbol(one, defined=False) for one in needs.split()),
            *(symbol(one, defined=False, weak=True) for one in weak.split()),
            *(symbol(one, visible=False) for one in hides.split()),
        ),
    )


def chosen(*entries: Entry, roots: tuple[str, ...] = ()) -> list[str]:
    return [one.origin for one in resolve(entries, roots=roots).units()]


def test_members_take_part_only_when_they_are_needed():
    archive = Entry(units=(unit("a", "fa", "fb"), unit("b", "fb"), unit("c", "fc")), lazy=True)
    assert chosen(Entry(units=(unit("main", "main", "fa"),)), archive) == ["main", "a", "b"]


def test_an_archive_may_stand_before_what_needs_it():
    archive = Entry(units=(unit("a", "fa"),), lazy=True)
    assert chosen(archive, Entry(units=(unit("main", "main", "fa"),))) == ["a", "main"]


def test_archives_that_need_each_other():
    one = Entry(units=(unit("a", "fa", "fb"), unit("c", "fc")), lazy=True)
    two = Entry(units=(unit("b", "fb", "fc"),), lazy=True)
    assert chosen(Entry(units=(unit("main", "main", "fa"),)), one, two) == ["main", "a", "c", "b"]


def test_the_first_of_two_that_define_a_name():
    one, two = Entry(units=(unit("a", "f"),), lazy=True), Entry(units=(unit("b", "f"),), lazy=True)
    assert chosen(Entry(units=(unit("main", "", "f"),)), one, two) == ["main", "a"]


def test_objects_win_over_members():
    archive = Entry(units=(unit("a", "f"),), lazy=True)
    assert chosen(Entry(units=(unit("main", "", "f"),)), archive, Entry(units=(unit("own", "f"),))) == ["main", "own"]


def test_weak_needs_fetch_nothing_and_are_no_error():
    archive = Entry(units=(unit("a", "f"),), lazy=True)
    made = resolve([Entry(units=(unit("main", "main", weak="f"),)), archive])
    assert [one.origin for one in made.units()] == ["main"]
    assert made.undefined == {}


def test_local_names_serve_nobody():
    made = resolve([Entry(units=(unit("main", "main", "f"), unit("other", hides="f")))])
    assert made.undefined == {"f": "main"}


def test_roots_and_native_code():
    archive = Entry(units=(unit("a", "f"),), lazy=True)
    assert chosen(archive, roots=("f",)) == ["a"]
    made = resolve([Entry(units=(unit("main", "main", "g h"),)), Entry(provides=frozenset(["g"]))])
    assert made.undefined == {"h": "main"}


def test_the_undefined_name_the_first_who_needs_it():
    made = resolve([Entry(units=(unit("x", "", "f"), unit("y", "", "f g")))])
    assert made.undefined == {"f": "x", "g": "y"}
