import ctypes
from pathlib import Path

from visget.format.cnumbers import INTEGERS

ROOT = Path(__file__).resolve().parents[2]


def test_each_type_is_what_its_key_says():
    for (size, signed), made in INTEGERS.items():
        assert ctypes.sizeof(made) == size
        assert (made(-1).value < 0) == signed
    assert len(INTEGERS) == 8


def test_nobody_has_a_table_of_his_own():
    rooms = ("cache", "format", "installer", "registry", "runtime", "toolchain", "visget")
    users = {str(path.relative_to(ROOT)) for room in rooms for path in (ROOT / room).glob("*.py")
             if "(2, False): ctypes.c_uint16" in path.read_text(encoding="utf-8")}  # fmt: skip
    assert users == {"format/cnumbers.py"}
