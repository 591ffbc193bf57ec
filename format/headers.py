"""The section "headers": the public C headers of a package by the names under which C programs include them.

Invariant: an include name is a relative path of at most four plain components, so writing the headers below a
directory cannot leave it. The spec is docs/spec/api.md, section 6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from visget.errors import FormatError
from visget.format.strictjson import dumps, loads
from visget.names import DEVICE_NAMES

HEADERS_LIMIT = 8 << 20
NAME_LIMIT = 255
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]*){0,3}\Z")


def check_include_name(name: str) -> None:
    """Refuse an include name that is not safe as a path or not portable.

    Raises:
        FormatError: it breaks the rule.
    """
    if len(name) > NAME_LIMIT or not _NAME.match(name):
        raise FormatError(
            f"{name[:80]!r} cannot be the include name of a header",
            hint="use at most four components of letters, digits and _ . + - that begin with a letter, digit or _",
        )
    for part in name.lower().split("/"):
        if part.endswith(".") or part.partition(".")[0] in DEVICE_NAMES:
            raise FormatError(
                f"{name[:80]!r} cannot be the include name of a header: Windows cannot have a file {part!r}",
                hint="give it another name",
            )


def parse_headers(data: bytes | memoryview) -> dict[str, str]:
    """Parse the section "headers".

    Raises:
        FormatError: it breaks a rule of docs/spec/api.md.
    """
    headers = loads(data, what="the section headers", limit=HEADERS_LIMIT)
    folded: dict[str, str] = {}
    for name, text in headers.items():
        check_include_name(name)
        if type(text) is not str:
            raise FormatError(f"the header {name} must be a string")
        # Some file systems do not tell upper case from lower case.
        if (other := folded.setdefault(name.lower(), name)) != name:
            raise FormatError(f"the headers {other} and {name} differ only in case")
    for name in folded:
        above = name
        while "/" in above:
            above = above.rpartition("/")[0]
            if above in folded:
                raise FormatError(f"the header {folded[above]} would have to be a directory for {folded[name]}")
    return headers


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Return the section "headers".

    Raises:
        FormatError: an include name breaks the rule.
    """
    data = dumps(dict(headers))
    parse_headers(data)
    return data
