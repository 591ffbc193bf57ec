"""What a library's attributes stand for, and how each is made: functions, records, enums, their values, constants.

Invariant: an item is made from the package's interface and from nothing else. This module and what it imports cost
more to import than a library costs to load, so visget/runtime/library.py imports it at the first attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from visget.format.prototypes import Api, Constant, Enum, EnumRef, Function, Record, RecordRef
from visget.runtime.functions import make_function
from visget.runtime.types import Types, short_name


class Members:
    """The items of one library by name."""

    def __init__(self, api: Api, module: str, native: Callable[[str], Any]) -> None:
        """Read the names.

        Args:
            api: the interface.
            module: the module that the functions and types say they are from.
            native: gives a new ctypes function for a symbol.
        """
        self.functions = tuple(function.name for function in api.functions)
        """The names of the functions."""
        self.items = _names(api)
        """The item that each name stands for."""
        self._types = Types(api, module)
        self._module = module
        self._native = native

    def make(self, name: str) -> Any:
        """Make the item called `name`, which there is."""
        item, types = self.items[name], self._types
        if isinstance(item, Function):
            return make_function(item, self._native, types, self._module)
        if isinstance(item, Record):
            return types.record(item.name)
        if isinstance(item, Enum):
            return types.enum(item.name)
        if isinstance(item, Constant):
            return _constant(item)
        enum_name, value = item
        return types.enum(enum_name)._value2member_map_.get(value, value)


def _names(api: Api) -> dict[str, Any]:
    """Return the item that each name of the interface stands for; an enum value is (name of the enum, value)."""
    items: dict[str, Any] = {}
    # C keeps functions and struct tags apart; of two with one name the later entry here has it.
    declarations: tuple[Record | Enum, ...] = (*api.records, *api.enums)
    for declared in declarations:
        items[declared.name] = items[short_name(declared.name)] = declared
    # A typedef may have the name of another type's tag: in C, the name alone means the typedef.
    named = {declared.name: declared for declared in declarations}
    for typedef in api.typedefs:
        if isinstance(typedef.type, RecordRef | EnumRef):
            items[typedef.name] = named[typedef.type.name]
    for constant in api.constants:
        items[constant.name] = constant
    for enum in api.enums:
        items.update((name, (enum.name, value)) for name, value in enum.values)
    for function in api.functions:
        items[function.name] = function
    return items


def _constant(constant: Constant) -> int | float | bytes:
    if isinstance(constant.value, int):
        return constant.value
    if constant.kind == "float":
        return float.fromhex(constant.value)
    return constant.value.encode()
