"""What the tests of the store share."""

from pathlib import Path

from visget.cache.store import Store
from visget.digest import digest_bytes

KEY = digest_bytes(b"a key")
LIBRARY = b"\x7fELF" + bytes(range(256)) * 20


def build(work: Path) -> None:
    """Make what an installation makes, in small."""
    (work / "lib").mkdir()
    (work / "lib" / "libx.so").write_bytes(LIBRARY)
    (work / "lib" / "libx.a").write_bytes(b"!<arch>\n")
    (work / "include").mkdir()
    (work / "include" / "x.h").write_text("int x(void);\n")
    (work / "receipt.json").write_text("{}")


def files_below(root: Path) -> list[str]:
    """Return every file below `root` but locks and the store's own key, links included."""
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if (path.is_symlink() or not path.is_dir())
        and path.relative_to(root).parts[0] != "locks"
        and path != root / "trust" / "store.key"
    )


class Clock:
    """A clock that the test sets."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def open_store(root: Path, clock: Clock | None = None) -> Store:
    return Store.open(root) if clock is None else Store.open(root, clock=clock)
