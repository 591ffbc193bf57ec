"""cJSON against Python's json module, on every machine."""

from __future__ import annotations

import json
import math
import random

import pytest
from machines import Machine

RECIPE = "cjson"
DISTRIBUTION = ("libcjson.so.1",)
DOCUMENTS = [
    "null", "true", "-0.5", "1e300", "[]", "{}", '""', '"\\u00e9\\ud83d\\ude00\\n\\"\\\\"', "[[[[[]]]]]",
    '{"a": [1, -2.5, 1e30, true, null], "s": "h\\u00e9", "nested": {"x": {"y": []}}}',
]  # fmt: skip
BROKEN = ["", "{", "[1,]", '{"a" 1}', '"open', "tru", "[1 2]", '"\\ud83d"', "[" * 2000]


def random_document(rng: random.Random, depth: int = 0) -> object:
    kind = rng.randrange(7 if depth < 4 else 5)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.randint(-(2**31) + 1, 2**31 - 1)
    if kind == 2:
        return rng.choice([rng.gauss(0, 1), rng.gauss(0, 1) * 1e200, rng.gauss(0, 1) * 1e-300, 0.1, 1 / 3])
    if kind in (3, 4):
        return "".join(rng.choice('abc "\\/\n\t\u00e9\u4e2d\U0001f600') for _ in range(rng.randrange(12)))
    if kind == 5:
        return [random_document(rng, depth + 1) for _ in range(rng.randrange(5))]
    return {f"k{n}": random_document(rng, depth + 1) for n in range(rng.randrange(5))}


def alike(one: object, two: object) -> bool:
    """Whether documents are equal; upstream prints 15 digits of a number where that is within an epsilon of it."""
    if isinstance(one, float) and isinstance(two, int | float):
        return math.isclose(one, two, rel_tol=2.0**-52)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(alike, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return list(one) == list(two) and all(map(alike, one.values(), two.values()))
    return one == two


def take(machine: Machine, address: int) -> str:
    text = machine.text(address).decode()
    machine.cJSON_free(address)
    return text


@pytest.mark.parametrize("formatted", [False, True])
def test_documents_come_back(machine: Machine, formatted: bool) -> None:
    rng = random.Random(7)
    documents = [*DOCUMENTS, *(json.dumps(random_document(rng), ensure_ascii=n % 2 == 0) for n in range(150))]
    for text in documents:
        parsed = machine.cJSON_Parse(text.encode())
        assert parsed, text
        printed = take(machine, (machine.cJSON_Print if formatted else machine.cJSON_PrintUnformatted)(parsed))
        assert alike(json.loads(text), json.loads(printed))
        copy = machine.cJSON_Duplicate(parsed, 1)
        assert machine.cJSON_Compare(parsed, copy, 1)
        machine.cJSON_Delete(copy)
        machine.cJSON_Delete(parsed)


def test_prints_what_the_distribution_prints(machine: Machine, theirs: Machine) -> None:
    rng = random.Random(8)
    for _ in range(100):
        text = json.dumps(random_document(rng)).encode()
        printed = [take(m, m.cJSON_Print(m.cJSON_Parse(text))) for m in (machine, theirs)]
        assert printed[0] == printed[1]


def test_errors_say_where(machine: Machine) -> None:
    for text in BROKEN:
        assert not machine.cJSON_Parse(text.encode()), text
    broken = machine.buffer(b'{"a": 1, "b": nul}\0')
    assert not machine.cJSON_Parse(broken)
    assert machine.cJSON_GetErrorPtr() - broken.address == 14
    end = machine.buffer(8)
    trailing = machine.buffer(b"[1] tail\0")
    assert not machine.cJSON_ParseWithOpts(trailing, end, 1)
    assert machine.cJSON_ParseWithOpts(trailing, end, 0)
    assert end.u64() - trailing.address == 3


def test_a_tree_made_by_calls(machine: Machine) -> None:
    root = machine.cJSON_CreateObject()
    machine.cJSON_AddNumberToObject(root, b"pi", 3.14159)
    machine.cJSON_AddStringToObject(root, b"name", "\u00e9".encode())
    numbers = machine.buffer(b"".join(n.to_bytes(4, "little", signed=True) for n in (1, -2, 3)))
    machine.cJSON_AddItemToObject(root, b"list", machine.cJSON_CreateIntArray(numbers, 3))
    assert machine.cJSON_GetArraySize(machine.cJSON_GetObjectItemCaseSensitive(root, b"list")) == 3
    assert machine.cJSON_GetNumberValue(machine.cJSON_GetObjectItem(root, b"PI")) == 3.14159
    item = machine.struct("cJSON", machine.cJSON_GetArrayItem(machine.cJSON_GetObjectItem(root, b"list"), 1))
    assert (item["valueint"], item["valuedouble"], item["type"]) == (-2, -2.0, machine.cJSON_Number)
    assert not machine.cJSON_GetObjectItemCaseSensitive(root, b"PI")
    machine.cJSON_DeleteItemFromObject(root, b"pi")
    assert json.loads(take(machine, machine.cJSON_PrintUnformatted(root))) == {"name": "\u00e9", "list": [1, -2, 3]}
    room = bytearray(10)
    assert not machine.cJSON_PrintPreallocated(root, room, 10, 0)
    machine.cJSON_Delete(root)


def test_pointers_patches_and_merges(machine: Machine) -> None:
    old, new = {"a": {"b": [1, 2]}, "c": 1}, {"a": {"b": [1, 2, 3]}, "d": "x"}
    one, two = (machine.cJSON_Parse(json.dumps(value).encode()) for value in (old, new))
    found = machine.cJSONUtils_GetPointer(two, b"/a/b/2")
    assert machine.struct("cJSON", found)["valueint"] == 3
    patches = machine.cJSONUtils_GeneratePatches(one, two)
    assert machine.cJSONUtils_ApplyPatches(one, patches) == 0
    assert machine.cJSON_Compare(one, two, 1)
    bad = machine.cJSON_Parse(b'[{"op": "test", "path": "/d", "value": 5}]')
    assert machine.cJSONUtils_ApplyPatches(one, bad) != 0
    merged = machine.cJSONUtils_MergePatch(two, machine.cJSON_Parse(b'{"a": null, "e": 1}'))
    assert json.loads(take(machine, machine.cJSON_PrintUnformatted(merged))) == {"d": "x", "e": 1}


def test_hooks_are_called(machine: Machine) -> None:
    taken: list[int] = []
    released: list[int] = []

    def take_memory(size: int) -> int:
        taken.append(machine.allocate(size))
        return taken[-1]

    def release(address: int) -> None:
        if address:
            released.append(address)
            machine.free(address)

    machine.cJSON_InitHooks(machine.struct("cJSON_Hooks", malloc_fn=take_memory, free_fn=release))
    machine.cJSON_Delete(machine.cJSON_Parse(b'[1, "two", {"three": 3}]'))
    machine.cJSON_InitHooks(None)
    assert len(taken) > 5
    assert sorted(taken) == sorted(released)


def test_through_the_library_object(workshop) -> None:  # type: ignore[no-untyped-def]
    library = workshop.shelf.load(RECIPE)
    assert library.cJSON_Version() == b"1.7.15"
    parsed = library.cJSON_Parse(b'{"answer": 42}')
    assert library.cJSON_GetObjectItem(parsed, b"answer").contents.valueint == 42
    library.cJSON_Delete(parsed)
