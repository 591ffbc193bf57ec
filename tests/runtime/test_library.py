"""Loading, looking up, and what a library says about itself and about what is wrong with it."""

import copy
import ctypes
import json
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from runtimekit import CHAR, INT, VOID, fn, install, needs_cc, struct, to

from visget.errors import FormatError, LoadError
from visget.format.prototypes import Api, Constant, Enum, EnumRef, Record, Typedef
from visget.runtime import members
from visget.runtime.library import open_library

pytestmark = needs_cc

SOURCE = r"""
static int counter;
__attribute__((constructor)) static void start(void) { counter = 40; }
int next(void) { return ++counter; }
int path(void) { return 5; }
int stat(void) { return 6; }
void greet(char *out) { out[0] = 'h'; out[1] = 0; }
"""
API = Api(
    functions=(fn("next", INT), fn("path", INT), fn("stat", INT), fn("greet", VOID, ("out", to(CHAR))),
               fn("missing", INT)),
    records=(Record(name="struct stat", kind="struct", size=0, align=1, fields=(), complete=False),
             Record(name="struct opaque", kind="struct", size=0, align=1, fields=(), complete=False)),
    enums=(Enum(name="enum mode", type=INT, values=(("MODE_A", 1), ("MODE_B", 2))),),
    constants=(Constant(name="LIMIT", kind="int", value=2**63), Constant(name="PI", kind="float", value="0x1.8p+1"),
               Constant(name="TITLE", kind="str", value="Grüße")),
    typedefs=(Typedef(name="opaque_t", type=struct("opaque")), Typedef(name="mode_t", type=EnumRef("enum mode")),
              # In C, a plain `stat` is then the function, and a plain `mode` the struct.
              Typedef(name="stat", type=struct("opaque")), Typedef(name="mode", type=struct("opaque")),
              Typedef(name="number", type=INT)),
)  # fmt: skip


@pytest.fixture
def entry(tmp_path):
    install(tmp_path, SOURCE, API)
    return tmp_path


@pytest.fixture
def lib(entry):
    return open_library(entry, name="demo", version="1.2")


def test_what_a_library_offers(lib):
    assert sorted(lib) == ["greet", "missing", "next", "path", "stat"]
    assert len(lib) == 5
    assert "next" in lib
    assert "MODE_A" in lib
    assert "nothing" not in lib
    assert (lib.name, lib.version) == ("demo", "1.2")
    assert lib.path.name == "libdemo.so"
    assert repr(lib) == f"<visget library demo 1.2 at {str(lib.path)!r}>"
    assert {"next", "greet", "opaque", "mode", "MODE_B", "LIMIT", "cdll", "receipt"} <= set(dir(lib))
    assert "struct opaque" not in dir(lib)
    assert lib.MODE_B is lib["enum mode"].MODE_B
    assert (2**63, 3.0, "Grüße".encode()) == (lib.LIMIT, lib.PI, lib.TITLE)


def test_constructors_ran_and_attributes_are_made_once(lib):
    # The counter is the process's: loading a file a second time gives the same library.
    first = lib.next()
    assert first > 40
    assert lib.next() == first + 1
    assert lib.next is lib.next is lib["next"]
    assert "next" in lib.__dict__


def test_names_that_are_taken(lib):
    assert isinstance(lib.path, Path)
    assert lib["path"]() == 5
    assert lib.stat() == 6
    assert lib["struct stat"].__name__ == "stat"
    assert lib.opaque is lib["struct opaque"]


def test_typedef_names(lib):
    assert lib.opaque_t is lib.opaque is lib["struct opaque"]
    assert lib.mode_t is lib["enum mode"]
    assert lib.mode is lib.opaque
    assert {"opaque_t", "mode_t"} <= set(dir(lib))
    assert not hasattr(lib, "number"), "a name for int makes no new type"


def test_unknown_names(lib):
    with pytest.raises(AttributeError, match=r"the library demo 1.2 has no 'nxt'; did you mean next\?"):
        _ = lib.nxt
    with pytest.raises(AttributeError, match=r"has no 'zzzzzz'$"):
        _ = lib.zzzzzz
    with pytest.raises(KeyError):
        _ = lib["nxt"]
    assert not hasattr(lib, "__array_interface__")
    assert not hasattr(lib, "_private")


def test_plain_ctypes_is_left_alone(lib):
    lib.greet(bytearray(2))
    assert isinstance(lib.cdll, ctypes.CDLL)
    assert lib.cdll.greet.argtypes is None
    assert lib.cdll.next.restype is ctypes.c_int


def test_it_cannot_be_pickled_or_copied(lib):
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"call visget.load\('demo', '1.2'\) in the process that needs it"):
            attempt(lib)
    with pytest.raises(AttributeError):
        lib.close  # noqa: B018


def test_the_receipt(lib, entry):
    with pytest.raises(LoadError, match="it has no receipt"):
        _ = lib.receipt
    (entry / "receipt.json").write_text(json.dumps({"package": {"name": "demo"}}))
    again = open_library(entry, name="demo", version="1.2")
    (entry / "receipt.json").unlink()
    assert again.receipt == {"package": {"name": "demo"}}


def test_the_interface_is_parsed_when_it_is_needed(entry):
    (entry / "api.json").write_bytes(b"{")
    lib = open_library(entry, name="demo", version="1.2")
    assert lib.cdll.path() == 5
    for use in (lambda: lib.next, lambda: list(lib), lambda: dir(lib), lambda: "x" in lib):
        with pytest.raises(FormatError):
            use()
    (entry / "api.json").write_bytes(API.encode())
    lib = open_library(entry, name="demo", version="1.2")
    (entry / "api.json").unlink()
    assert lib.path.exists()
    assert lib["path"]() == 5
    with pytest.raises(LoadError, match=r"demo is damaged: api.json is missing") as caught:
        open_library(entry, name="demo", version="1.2")
    assert "visget install" in caught.value.hint


def test_damaged_entries(entry, tmp_path_factory):
    with pytest.raises(LoadError, match="is damaged: it has no function missing"):
        _ = open_library(entry, name="demo", version="1.2").missing
    other = tmp_path_factory.mktemp("other")
    (other / "lib").mkdir()
    (other / "api.json").write_bytes(API.encode())
    with pytest.raises(LoadError, match=r"there is neither libdemo\.so nor libdemo\.o$") as caught:
        open_library(other, name="demo", version="1.2")
    assert caught.value.where == str(other / "lib")
    # Not a truncated one: the system's loader maps it and dies. The store checks its files before it hands them out.
    (other / "lib" / "libdemo.so").write_bytes(b"\x7fELF" + bytes(2000))
    with pytest.raises(LoadError, match=r"demo 1.2 cannot be loaded: .*libdemo.so"):
        open_library(other, name="demo", version="1.2")


def test_two_versions_side_by_side(tmp_path):
    one = install(tmp_path / "1", "int next(void) { return 1; }", Api(functions=(fn("next", INT),)))
    two = install(tmp_path / "2", "int next(void) { return 2; }", Api(functions=(fn("next", INT),)))
    assert (one.next(), two.next()) == (1, 2)


@pytest.mark.parametrize(
    ("look", "parsed", "made"),
    [(lambda lib: lib.next, 1, 1), (lambda lib: lib["opaque"], 1, 0), (lambda lib: "next" in lib, 1, 0)],
)
def test_threads_that_look_at_the_same_moment_get_the_same_thing(entry, monkeypatch, look, parsed, made):
    calls = []

    def slowly(function, name):
        def slow(*arguments, **options):
            calls.append(name)
            time.sleep(0.05)  # the other threads arrive meanwhile
            return function(*arguments, **options)

        return slow

    monkeypatch.setattr(Api, "parse", slowly(Api.parse, "parse"))
    monkeypatch.setattr(members, "make_function", slowly(members.make_function, "make"))
    lib = open_library(entry, name="demo", version="1.2")
    barrier = threading.Barrier(4)

    def at_once(_):
        barrier.wait()
        return look(lib)

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(at_once, range(4)))
    assert len(set(map(id, seen))) == 1
    assert (calls.count("parse"), calls.count("make")) == (parsed, made)


def test_loading_and_calling_import_nothing_heavy(entry):
    code = f"""
import sys
from pathlib import Path
from visget.runtime import library, members
from visget.runtime.library import open_library
lib = open_library(Path({str(entry)!r}), name="demo", version="1.2")
out = bytearray(2)
lib.greet(out)
assert out == b"h\\0" and lib.next() == 41 and lib.MODE_A == 1
print(sorted(set(sys.modules) & {{"llvmlite", "numpy", "cryptography", "zstandard", "urllib3", "rich", "elftools",
    "visget.runtime.jit", "visget.registry", "visget.installer", "logging", "inspect_"}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_opaque_handles_have_the_library_as_module(lib):
    assert lib.opaque.__module__ == "visget.lib.demo"
    assert lib.next.__module__ == "visget.lib.demo"
    assert struct("opaque").name == "struct opaque"
