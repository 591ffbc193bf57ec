import copy
import pickle
import random

import pytest
from formatkit import BITCODE, api, manifest, package, package_bytes
from packaging.version import Version

from visget.errors import FormatError, TrustError, UnsupportedError
from visget.format.headers import encode_headers
from visget.format.keys import SecretKey
from visget.format.package import VerifiedPackage, check_contents, open_package, verify_package
from visget.format.signing import sign_package
from visget.format.vectors import ExpectInt, IntArg, Step, Vector, VectorSet

KEY = SecretKey(b"\1" * 32)
HEADERS = {"adder.h": "int add(int a, int b);\n"}


def vector_set(*args, call="add"):
    step = Step(call=call, args=tuple(IntArg(value=value) for value in args), returns=ExpectInt(value=5))
    return VectorSet(vectors=(Vector(name="adds", steps=(step,)),))


def full():
    return package_bytes(headers=encode_headers(HEADERS), vectors=vector_set(2, 3).encode(), readme="größer".encode())


def test_parts():
    value = open_package(full())
    assert value.bitcode() == BITCODE
    assert value.api() == api()
    assert value.headers() == HEADERS
    assert value.vectors() == vector_set(2, 3)
    assert value.text("license") == "MIT licence text\n"
    assert value.text("readme") == "größer"
    assert value.section("lines") is None
    assert repr(value).startswith("<Package adder 1.2.3 ")
    check_contents(value)


def test_optional_parts_may_be_absent():
    value = package()
    assert value.headers() == {}
    assert value.vectors() is None
    assert value.text("readme") is None
    check_contents(value)


def test_verify():
    value = open_package(full())
    verified = verify_package(value, KEY.sign_statement(value), [KEY.public])
    assert verified.package is value
    assert verified.signers == (KEY.public.id,)


def test_a_signature_of_another_package():
    other = package(manifest(version=Version("1.2.4")))
    with pytest.raises(TrustError, match=r"not about this package: it states adder 1\.2\.4") as caught:
        verify_package(package(), sign_package(other, KEY), [KEY.public])
    assert caught.value.details["expected"] == other.digest


def test_nobody_else_makes_a_verified_package():
    value = package()
    with pytest.raises(TypeError):
        VerifiedPackage(object(), value, ())
    verified = verify_package(value, KEY.sign_statement(value), [KEY.public])
    with pytest.raises(AttributeError):
        verified.package = package(manifest(version=Version("6.6.6")))
    with pytest.raises(AttributeError):
        del verified.package
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            attempt(verified)


def read_all(data, envelope):
    value = open_package(data)
    verify_package(value, envelope, [KEY.public])


def test_every_flipped_byte_is_refused():
    data = full()
    envelope = KEY.sign_statement(open_package(data))
    read_all(data, envelope)
    later = 0
    for place in range(len(data)):
        for bit in (0x01, 0x04, 0x80):
            damaged = bytearray(data)
            damaged[place] ^= bit
            try:
                read_all(bytes(damaged), envelope)
            except (FormatError, TrustError):
                continue
            except UnsupportedError:
                # A digit of a version, or the name of a kind: the damaged file asks for a newer visget.
                later += 1
                continue
            pytest.fail(f"byte {place} xor {bit} was not noticed")
    # Those are: a digit of each of four formats, and the letters of the two critical kinds.
    assert later < 35


def test_every_flipped_byte_is_noticed_even_without_a_signature_in_the_sections():
    data = full()
    start = data.index(b"\x28\xb5\x2f\xfd")
    for place in range(start, len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        with pytest.raises(FormatError):
            open_package(bytes(damaged))


def test_truncation_and_tail():
    data = full()
    envelope = KEY.sign_statement(open_package(data))
    for length in range(len(data)):
        with pytest.raises(FormatError):
            read_all(data[:length], envelope)
    with pytest.raises(FormatError):
        read_all(data + b"\0", envelope)


def test_random_bytes_in_random_places():
    rng = random.Random(1)
    data = full()
    envelope = KEY.sign_statement(open_package(data))
    for _ in range(500):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 20)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if bytes(damaged) == data:
            continue
        with pytest.raises((FormatError, TrustError, UnsupportedError)):
            read_all(bytes(damaged), envelope)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"api": b"{}"}, "api lacks"),
        ({"api": b"\x00"}, "section api is not JSON"),
        ({"headers": b'{"../a.h":""}'}, "include name"),
        ({"license": b"\xff"}, "license is not UTF-8"),
        ({"vectors": b"{}"}, "vectors lacks"),
        ({"vectors": vector_set(2, 3, call="sub").encode()}, "calls 'sub', which is not among"),
        ({"vectors": vector_set(2).encode()}, "1 argument; it takes 2"),
        ({"vectors": vector_set(1, 2, 3).encode()}, "3 arguments; it takes 2"),
    ],
)
def test_contents_that_contradict(changes, match):
    with pytest.raises(FormatError, match=match):
        check_contents(package(**changes))


def test_functions_are_exports():
    with pytest.raises(FormatError, match="'add', which is not among the exports"):
        check_contents(package(manifest(exports=("sub",))))
