"""What trust costs as a registry grows: requests and bytes of a client, and the time of a publication.

``python -m bench.registry_scale [N ...]`` makes a registry with N packages (1, 1000 and 100000 unless said otherwise)
in a temporary directory and prints one line for each. The packages are an index and an owner record each, as a real
registry has them; one of them is a whole package, which is read and published. Requests are counted where the client
reads, so that no web server's overhead is in them; bytes are bodies.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from packaging.version import Version

from visget.digest import digest_bytes
from visget.format.container import write_container
from visget.format.keys import SecretKey
from visget.format.manifest import Manifest, Provenance
from visget.format.owner import first_record
from visget.format.package import Package, open_package
from visget.format.prototypes import Api
from visget.format.signing import sign_package
from visget.names import parse_name
from visget.registry.client import Registry, open_registry
from visget.registry.directory import init_registry, publish
from visget.registry.editing import editing
from visget.registry.operator import sibling
from visget.registry.protocol import Release, Releases
from visget.registry.transport import DirectoryTransport
from visget.registry.upkeep import refresh

AUTHOR = SecretKey(hashlib.sha256(b"bench").digest())
NAME = parse_name("measured")
_CHUNK = 20_000
_ROUNDS = 5


class Counting:
    """A directory that is read as a web server would be: every file that is asked for counts."""

    def __init__(self, root: Path) -> None:
        self._inner = DirectoryTransport(root)
        self.location = self._inner.location
        self.remote = False
        self.requests = 0
        self.bytes = 0

    def shown(self, path: str) -> str:
        return self._inner.shown(path)

    def read(self, path: str, *, limit: int, what: str) -> bytes | None:
        data = self._inner.read(path, limit=limit, what=what)
        self.requests += 1
        self.bytes += len(data or b"")
        return data

    def fetch(self, path: str, **options: object) -> bytes:
        data = self._inner.fetch(path, **options)  # type: ignore[arg-type]
        self.requests += 1
        self.bytes += len(data)
        return data

    def close(self) -> None:
        pass


def made(name: str, version: str) -> Package:
    """Return a small package whose module is no real one."""
    manifest = Manifest(
        name=parse_name(name), version=Version(version), summary="A library that was made to be counted",
        license="MIT", exports=tuple(f"{name.replace('-', '_')}_f{n}" for n in range(8)),
        provenance=Provenance(compiler="clang 22.1.8", flags=(), source_digest=digest_bytes(b"source")),
    )  # fmt: skip
    api = Api(functions=(), records=(), enums=(), constants=())
    return open_package(write_container(manifest, {"bitcode": b"BC\xc0\xde", "api": api.encode()}))


def fill(root: Path, count: int) -> None:
    """Add `count` packages that consist of an index and an owner record."""
    record = first_record(NAME, AUTHOR).encode()
    for start in range(0, count, _CHUNK):
        with editing(root) as editor:
            for number in range(start, min(count, start + _CHUNK)):
                name = f"package-{number}"
                package = made(name, "1.0")
                release = Release.of(
                    package.manifest, vis=package.digest, size=len(package.data), dsse=package.digest, dsse_size=600
                )
                records = editor.put_records(parse_name(name), [record])
                index = Releases(name=parse_name(name), owners=(AUTHOR.public,), versions=(release,), records=records)
                editor.put_index(index)


def put(root: Path, version: str) -> float:
    package = made(NAME, version)
    envelope, claim = sign_package(package, AUTHOR), first_record(NAME, AUTHOR).encode()
    return timed(lambda: publish(root, package, envelope, claim=claim))


def timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def look(root: Path, trust: Path, work: Callable[[Registry], object]) -> dict[str, float]:
    """Count what a client asks for, and how long that takes."""
    registry = open_registry(str(root), trust=trust)
    counting = Counting(root)
    registry._source = counting  # type: ignore[assignment]
    seconds = timed(lambda: work(registry))
    return {"requests": counting.requests, "bytes": counting.bytes, "ms": round(seconds * 1000, 1)}


def measure(count: int, directory: Path) -> dict[str, object]:
    """Make a registry with `count` packages and measure it."""
    root, trust = directory / "registry", directory / "store" / "trust"
    (directory / "store").mkdir(mode=0o700)
    result: dict[str, object] = {"packages": count}
    result["init_ms"] = round(timed(lambda: init_registry(root)) * 1000, 1)
    result["fill_s"] = round(timed(lambda: fill(root, count - 1)), 1)
    put(root, "1.0")
    result["first_contact"] = look(root, trust, lambda registry: registry.releases(NAME))
    result["unchanged"] = look(root, trust, lambda registry: registry.releases(NAME))
    times = [put(root, f"1.{number}") for number in range(1, _ROUNDS + 1)]
    result["publish_ms"] = round(statistics.median(times) * 1000, 1)
    result["after_a_publication"] = look(root, trust, lambda registry: registry.releases(NAME))
    result["another_package"] = look(root, trust, lambda registry: registry.releases(parse_name("package-0"))
                                     if count > 1 else registry.releases(NAME))  # fmt: skip
    result["search"] = look(root, trust, lambda registry: registry.names())
    result["refresh_all_ms"] = round(timed(lambda: refresh(root, sibling(root), force=True)) * 1000, 1)
    sizes = {path.name.partition(".")[2]: path.stat().st_size for path in sorted((root / "tuf").glob("*.json"))}
    result["snapshot_bytes"] = sizes["snapshot.json"]
    result["largest_bin_bytes"] = max(size for name, size in sizes.items() if name.startswith("bin-"))
    return result


def main() -> None:
    """Measure the sizes given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=[1, 1000, 100_000], metavar="N")
    for count in parser.parse_args().counts:
        directory = Path(tempfile.mkdtemp(prefix="visget-bench-"))
        try:
            print(json.dumps(measure(count, directory)), flush=True)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
