"""Signed packages around any IR text or bitcode, for tests of the compile worker."""

from __future__ import annotations

from typing import Any

from packaging.version import Version

from visget.digest import digest_bytes
from visget.format.container import write_container
from visget.format.keys import SecretKey
from visget.format.manifest import Manifest, Provenance
from visget.format.module import DATALAYOUT, TRIPLE, bitcode_of, parse_text
from visget.format.package import VerifiedPackage, open_package, verify_package
from visget.format.prototypes import BASE_TYPES, Api, Function, Parameter
from visget.format.signing import sign_package
from visget.names import PackageName

TEXT = f"""
source_filename = "vis"
target datalayout = "{DATALAYOUT}"
target triple = "{TRIPLE}"

declare double @pow(double, double) #0

define signext i32 @sample_add(i32 noundef signext %a, i32 noundef signext %b) #0 {{
  %sum = add i32 %a, %b
  ret i32 %sum
}}

define double @sample_power(double noundef %x, double noundef %y) #0 {{
  %r = call double @pow(double %x, double %y)
  ret double %r
}}

attributes #0 = {{ nounwind "vis" }}

!llvm.module.flags = !{{!0}}
!0 = !{{i32 8, !"PIC Level", i32 2}}
"""
KEY = SecretKey.generate()


def _function(name: str, kind: str, *parameters: str) -> Function:
    made = tuple(Parameter(name=parameter, c=kind, type=BASE_TYPES[kind]) for parameter in parameters)
    listed = ", ".join(f"{kind} {parameter}" for parameter in parameters)
    return Function(
        name=name, prototype=f"{kind} {name}({listed})", doc="", result_c=kind, result=BASE_TYPES[kind], parameters=made
    )


API = Api(functions=(_function("sample_add", "int", "a", "b"), _function("sample_power", "double", "x", "y")))


def sample(text: str | None = None, *, bitcode: bytes | None = None, api: Api = API, **changes: Any) -> VerifiedPackage:
    """Return the package `sample` 1.2.3, signed, with another module or other facts in its manifest."""
    if bitcode is None:
        bitcode = bitcode_of(parse_text(TEXT if text is None else text))
    values: dict[str, Any] = {
        "name": PackageName("sample"),
        "version": Version("1.2.3"),
        "summary": "A sample",
        "license": "MIT",
        "exports": ("sample_add", "sample_power"),
        "imports": ("pow",),
        "provenance": Provenance(compiler="clang", flags=(), source_digest=digest_bytes(b"source"), source=None),
    }
    data = write_container(
        Manifest(**(values | changes)), {"bitcode": bitcode, "api": api.encode(), "license": b"MIT\n"}
    )
    package = open_package(data)
    return verify_package(package, sign_package(package, KEY), [KEY.public])
