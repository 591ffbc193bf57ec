"""Small packages in VIS-1 that depend on each other: `middle` needs `base`, and `top` needs both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packaging.version import Version

from visget.cache.entry import NativeEntry
from visget.cache.store import Store
from visget.digest import digest_bytes
from visget.format.container import write_container
from visget.format.headers import encode_headers
from visget.format.keys import SecretKey
from visget.format.manifest import Manifest, Provenance, Use
from visget.format.module import DATALAYOUT, TRIPLE, bitcode_of, parse_text
from visget.format.package import Package, VerifiedPackage, open_package, verify_package
from visget.format.prototypes import BASE_TYPES, Api, Function, Parameter
from visget.format.signing import sign_package
from visget.format.vectorjson import encode_vectors, vectors_from_toml
from visget.installer.install import obtain_native, plan_package
from visget.installer.plan import Dependency
from visget.names import PackageName

KEY = SecretKey(bytes(range(32)))
INT = BASE_TYPES["int"]


def function(name: str, *parameters: str) -> Function:
    """`int NAME(int ...)`."""
    listed = ", ".join(f"int {one}" for one in parameters) or "void"
    return Function(
        name=name, prototype=f"int {name}({listed})", doc="", result_c="int", result=INT,
        parameters=tuple(Parameter(name=one, c="int", type=INT) for one in parameters), line=None, header=None,
    )  # fmt: skip


def package(
    name: str,
    version: str = "1.0",
    *,
    body: str,
    functions: dict[str, tuple[str, ...]],
    needs: tuple[str, ...] = (),
    uses: dict[str, dict[str, str]] | None = None,
    steps: list[dict[str, Any]] | None = None,
    **changes: Any,
) -> Package:
    """A package of functions of ints whose module is `body`."""
    text = (
        f'source_filename = "vis"\ntarget datalayout = "{DATALAYOUT}"\ntarget triple = "{TRIPLE}"\n{body}\n'
        'attributes #0 = { nounwind "vis" }\n!llvm.module.flags = !{!0}\n!0 = !{i32 8, !"PIC Level", i32 2}\n'
    )
    used = tuple(
        Use(package=PackageName(one), symbols=tuple(sorted(symbols.items())))
        for one, symbols in sorted((uses or {}).items())
    )
    described = Manifest(
        **{
            "name": PackageName(name),
            "version": Version(version),
            "summary": f"The package {name}",
            "license": "MIT",
            "exports": tuple(sorted(functions)),
            "dependencies": needs,
            "uses": used,
            "provenance": Provenance(compiler="clang", flags=(), source_digest=digest_bytes(b"source"), source=None),
            **changes,
        }
    )
    api = Api(functions=tuple(function(one, *parameters) for one, parameters in functions.items()))
    header = "".join(f"{one.prototype};\n" for one in api.functions)
    sections = {
        "bitcode": bitcode_of(parse_text(text)),
        "api": api.encode(),
        "headers": encode_headers({f"{name}.h": header}),
    }
    if steps:
        sections["vectors"] = encode_vectors(vectors_from_toml([{"name": "answers", "steps": steps}]))
    return open_package(write_container(described, sections))


def base(factor: int = 2, version: str = "1.0", **changes: Any) -> Package:
    """`base_scale(x)` is x * factor; `base_count()` counts its calls; `base_same(x)` is x, in each version."""
    body = f"""
@count = internal global i32 0
define signext i32 @base_scale(i32 signext %x) #0 {{
  %r = mul i32 %x, {factor}
  ret i32 %r
}}
define signext i32 @base_count() #0 {{
  %c = load i32, ptr @count
  %n = add i32 %c, 1
  store i32 %n, ptr @count
  ret i32 %n
}}
"""
    functions: dict[str, tuple[str, ...]] = {"base_count": (), "base_scale": ("x",)}
    return package("base", version, **{"body": body, "functions": functions, "library": "b", **changes})


def middle(version: str = "1.0", needs: tuple[str, ...] = ("base<2,>=1",), **changes: Any) -> Package:
    """`middle_scale(x)` is base_scale(x) + 1; `middle_count()` is base_count()."""
    body = """
declare signext i32 @base_scale(i32 signext) #0
declare signext i32 @base_count() #0
define signext i32 @middle_scale(i32 signext %x) #0 {
  %a = call signext i32 @base_scale(i32 signext %x)
  %r = add i32 %a, 1
  ret i32 %r
}
define signext i32 @middle_count() #0 {
  %r = call signext i32 @base_count()
  ret i32 %r
}
"""
    steps = [{"call": "middle_scale", "args": [{"int": 20}], "returns": {"int": 41}}]
    uses = {"base": {"base_count": "i32 ()", "base_scale": "i32 (i32)"}}
    functions: dict[str, tuple[str, ...]] = {"middle_count": (), "middle_scale": ("x",)}
    return package(
        "middle", version,
        **{"body": body, "functions": functions, "needs": needs, "uses": uses, "steps": steps, **changes},
    )  # fmt: skip


def top(version: str = "1.0", needs: tuple[str, ...] = ("base", "middle"), **changes: Any) -> Package:
    """`top_sum(x)` is base_scale(x) + middle_scale(x)."""
    body = """
declare signext i32 @base_scale(i32 signext) #0
declare signext i32 @middle_scale(i32 signext) #0
define signext i32 @top_sum(i32 signext %x) #0 {
  %a = call signext i32 @base_scale(i32 signext %x)
  %b = call signext i32 @middle_scale(i32 signext %x)
  %r = add i32 %a, %b
  ret i32 %r
}
"""
    steps = [{"call": "top_sum", "args": [{"int": 10}], "returns": {"int": 41}}]
    uses = {"base": {"base_scale": "i32 (i32)"}, "middle": {"middle_scale": "i32 (i32)"}}
    functions: dict[str, tuple[str, ...]] = {"top_sum": ("x",)}
    return package(
        "top", version,
        **{"body": body, "functions": functions, "needs": needs, "uses": uses, "steps": steps, **changes},
    )  # fmt: skip


def verified(item: Package) -> VerifiedPackage:
    """The package, signed."""
    return verify_package(item, sign_package(item, KEY), [KEY.public])


class Workshop:
    """Installs packages straight into a store, without registries."""

    def __init__(self, root: Path, target: Any, linker: Any) -> None:
        root.mkdir(mode=0o700, exist_ok=True)
        self.store = Store.open(root / "store")
        self.target = target
        self.linker = linker

    def dependency(self, item: Package, *needs: Package) -> Dependency:
        """What another package takes of `item`, which is linked with `needs` and installed."""
        self.install(item, *needs)
        key = self.plan(item, *needs).digest
        return Dependency(verified=verified(item), key=key)

    def plan(self, item: Package, *needs: Package) -> Any:
        """The plan for `item` with `needs`, which have no needs themselves."""
        return plan_package(verified(item), self.target, self.store, linker=self.linker,
                            dependencies=[self.dependency(one) for one in needs])  # fmt: skip

    def install(self, item: Package, *needs: Package) -> NativeEntry:
        """The artifact of `item`, linked with `needs`, which have no needs themselves."""
        return self.link(item, *(self.dependency(one) for one in needs))

    def link(self, item: Package, *needs: Dependency) -> NativeEntry:
        """The artifact of `item`, linked with `needs`."""
        return obtain_native(verified(item), self.target, self.store, linker=self.linker, dependencies=needs).entry

    def merge(self, item: Package, *needs: Package) -> NativeEntry:
        """The artifact of `item` with the code of `needs` in it."""
        merged = [Dependency(verified=verified(one), key=None) for one in needs]
        return obtain_native(
            verified(item), self.target, self.store, linker=self.linker, dependencies=merged, linking="static"
        ).entry
