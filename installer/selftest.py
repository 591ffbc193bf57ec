"""One function through the whole installation, to see whether this machine can install packages at all.

Invariant: nothing is left behind; the package, its key and its store live in a temporary directory.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from visget.cache.store import Store
from visget.digest import digest_bytes
from visget.format.container import write_container
from visget.format.keys import SecretKey
from visget.format.manifest import Manifest, Provenance
from visget.format.module import DATALAYOUT, TRIPLE, bitcode_of, parse_text
from visget.format.package import VerifiedPackage, open_package, verify_package
from visget.format.prototypes import Api, Function, Integer, Parameter
from visget.format.signing import sign_package
from visget.format.vectorjson import encode_vectors, vectors_from_toml
from visget.installer.detect import host_target
from visget.installer.install import install_package
from visget.installer.linkers import find_linker
from visget.names import parse_name, parse_version

_TEXT = f"""
source_filename = "vis"
target datalayout = "{DATALAYOUT}"
target triple = "{TRIPLE}"

define signext i32 @visget_selftest_add(i32 signext %a, i32 signext %b) {{
  %sum = add i32 %a, %b
  ret i32 %sum
}}

!llvm.module.flags = !{{!0}}
!0 = !{{i32 8, !"PIC Level", i32 2}}
"""


def compile_one_function(*, linker: str | None = None) -> float:
    """Compile, link, gate, load and call a function of two integers; return the milliseconds it took.

    Args:
        linker: which linker to use, as in the settings.

    Raises:
        VisgetError: a stage failed; the message says which.
    """
    begun = time.perf_counter()
    target = host_target()
    with tempfile.TemporaryDirectory(prefix="visget-") as directory:
        root = Path(directory)
        root.chmod(0o700)
        install_package(_package(), target, Store.open(root / "store"), linker=find_linker(linker, target))
    return (time.perf_counter() - begun) * 1e3


def _package() -> VerifiedPackage:
    number = Integer(name="int", size=4, signed=True)
    api = Api(
        functions=(
            Function(
                name="visget_selftest_add", prototype="int visget_selftest_add(int a, int b)", doc="", result_c="int",
                result=number, variadic=False, line=None, header=None,
                parameters=(Parameter(name="a", c="int", type=number), Parameter(name="b", c="int", type=number)),
            ),
        ),
        records=(), enums=(), constants=(),
    )  # fmt: skip
    vectors = vectors_from_toml(
        [{"name": "sum", "steps": [{"call": "visget_selftest_add", "args": [{"int": 40}, {"int": 2}],
                                   "returns": {"int": 42}}]}]
    )  # fmt: skip
    manifest = Manifest(
        name=parse_name("visget-selftest"), version=parse_version("1"), summary="a sum", license="Apache-2.0",
        exports=("visget_selftest_add",),
        provenance=Provenance(compiler="none", flags=(), source_digest=digest_bytes(_TEXT.encode()), source=None),
    )  # fmt: skip
    sections = {"bitcode": bitcode_of(parse_text(_TEXT)), "api": api.encode(), "vectors": encode_vectors(vectors)}
    package = open_package(write_container(manifest, sections))
    key = SecretKey.generate()
    return verify_package(package, sign_package(package, key), [key.public])
