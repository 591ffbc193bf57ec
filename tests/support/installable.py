"""A complete verified package in VIS-1, for tests that install."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packaging.version import Version

from visget.cache.store import Store
from visget.digest import digest_bytes
from visget.format.container import write_container
from visget.format.headers import encode_headers
from visget.format.keys import SecretKey
from visget.format.manifest import Manifest, Provenance
from visget.format.module import DATALAYOUT, TRIPLE, bitcode_of, parse_text
from visget.format.package import VerifiedPackage, open_package, verify_package
from visget.format.prototypes import BASE_TYPES, Api, Function, Parameter
from visget.format.signing import sign_package
from visget.format.vectorjson import encode_vectors, vectors_from_toml
from visget.names import PackageName

TEXT = f"""
source_filename = "vis"
target datalayout = "{DATALAYOUT}"
target triple = "{TRIPLE}"

declare double @pow(double, double) #0

define signext i32 @adder_add(i32 signext %a, i32 signext %b) #0 {{
  %sum = add i32 %a, %b
  ret i32 %sum
}}

define double @adder_power(double %x, double %y) #0 {{
  %r = call double @pow(double %x, double %y)
  ret double %r
}}

attributes #0 = {{ nounwind "vis" }}

!llvm.module.flags = !{{!0}}
!0 = !{{i32 8, !"PIC Level", i32 2}}
"""
HEADER = "int adder_add(int a, int b);\ndouble adder_power(double x, double y);\n"
KEY = SecretKey.generate()


def _function(name: str, type_name: str, *parameters: str) -> Function:
    kind = BASE_TYPES[type_name]
    listed = ", ".join(f"{type_name} {parameter}" for parameter in parameters)
    return Function(
        name=name, prototype=f"{type_name} {name}({listed})", doc="", result_c=type_name, result=kind,
        parameters=tuple(Parameter(name=parameter, c=type_name, type=kind) for parameter in parameters),
        line=None, header="adder.h",
    )  # fmt: skip


API = Api(functions=(_function("adder_add", "int", "a", "b"), _function("adder_power", "double", "x", "y")))


def verified(
    *,
    text: str = TEXT,
    answer: int | None = 42,
    steps: list[dict[str, Any]] | None = None,
    headers: dict[str, str] | None = None,
    **changes: Any,
) -> VerifiedPackage:
    """Return the package `adder`, signed; `answer` is what its vector expects of 40 + 2, None for no vectors.

    `steps` are those of another vector.
    """
    described = Manifest(
        **{
            "name": PackageName("adder"),
            "version": Version("1.2.3"),
            "summary": "Adds, and raises to powers",
            "license": "MIT",
            "exports": ("adder_add", "adder_power"),
            "imports": ("pow",),
            "homepage": "https://example.org/adder",
            "provenance": Provenance(compiler="clang", flags=(), source_digest=digest_bytes(b"source"), source=None),
            **changes,
        }
    )
    sections = {
        "bitcode": bitcode_of(parse_text(text)),
        "api": API.encode(),
        "headers": encode_headers(headers or {"adder/adder.h": HEADER}),
        "license": b"MIT\n",
    }
    if steps is None and answer is not None:
        steps = [{"call": "adder_add", "args": [{"int": 40}, {"int": 2}], "returns": {"int": answer}}]
    if steps is not None:
        sections["vectors"] = encode_vectors(vectors_from_toml([{"name": "sum", "steps": steps}]))
    package = open_package(write_container(described, sections))
    return verify_package(package, sign_package(package, KEY), [KEY.public])


def fresh_store(directory: Path) -> Store:
    """Return an empty store."""
    directory.mkdir(mode=0o700, exist_ok=True)
    directory.chmod(0o700)
    return Store.open(directory / "store")
