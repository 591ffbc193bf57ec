"""The ctypes type of each C integer: of the functions that users call, and of those that test vectors call.

Invariant: imports nothing but ctypes, for it is on the path of every load.
"""

from __future__ import annotations

import ctypes
from typing import Any

INTEGERS: dict[tuple[int, bool], Any] = {
    (1, True): ctypes.c_int8,
    (1, False): ctypes.c_uint8,
    (2, True): ctypes.c_int16,
    (2, False): ctypes.c_uint16,
    (4, True): ctypes.c_int32,
    (4, False): ctypes.c_uint32,
    (8, True): ctypes.c_int64,
    (8, False): ctypes.c_uint64,
}
"""The type of each size in bytes and signedness."""
