"""The key of this store, and the seal that it puts under the list of an artifact's files.

Native code in the store is as good as the process that put it there. Invariant: an artifact counts only when its
seal was made with the key of this very store; what was copied here from elsewhere, such as a cache that a CI service
restored, is compiled again from its signed package. The rules are docs/spec/store.md, section "Seals".
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from visget.cache.content import DamagedError, guard_lock, move_aside, plain_file, replace_file
from visget.digest import digest_bytes
from visget.files import locked

PLACE = Path("trust", "store.key")
_MAGIC = b"visget-store-key-1"
_SIZE = 32
_LIMIT = 1 << 10


def read_key(root: Path) -> bytes | None:
    """Return the key of the store at `root`, or None when it has none yet.

    Raises:
        DamagedError: it is not a whole key, or somebody else could have read it.
        OSError: it could not be read for a reason outside it.
    """
    path = root / PLACE
    if not os.path.lexists(path):
        return None
    with plain_file(path) as descriptor:
        facts = os.fstat(descriptor)
        if facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & 0o077:
            raise DamagedError("others could have read it")
        data = os.read(descriptor, _LIMIT)
    magic, _, rest = data.partition(b" ")
    digits, _, check = rest.partition(b" ")
    # The check tells a key from what a power cut or a bad disk makes of one: zeros would be a key, too.
    if magic != _MAGIC or check != _check(digits) + b"\n":
        raise DamagedError("it is not a key")
    return bytes.fromhex(digits.decode("ascii"))


def ensure_key(root: Path) -> bytes:
    """Return the key of the store at `root`, after making one if there is none or only a damaged one.

    Raises:
        CacheError: another process has been making one for a minute.
        OSError: it cannot be read or written.
    """
    lock = root / "locks" / "store-key"
    guard_lock(lock)
    with locked(lock, timeout=60.0):
        try:
            found = read_key(root)
        except DamagedError as error:
            move_aside(root, root / PLACE)
            _log(f"the key of the store is damaged: {error}; there is a new one, so all code is compiled again")
            found = None
        return _new_key(root) if found is None else found


def _new_key(root: Path) -> bytes:
    key = os.urandom(_SIZE)
    digits = key.hex().encode()
    replace_file(root, root / PLACE, b" ".join([_MAGIC, digits, _check(digits)]) + b"\n", 0o600)
    return key


def seal_of(key: bytes, text: bytes) -> str:
    """Return the seal that `key` puts under `text`: HMAC-SHA256, as hexadecimal digits."""
    import hmac

    return hmac.digest(key, text, "sha256").hex()


def same_seal(one: str, other: str) -> bool:
    """Compare two seals without telling by the time it takes how much of them is equal."""
    import hmac

    return hmac.compare_digest(one.encode(), other.encode())


def _log(text: str) -> None:
    import logging  # costs 5 ms; damage is rare

    logging.getLogger("visget.cache").warning("%s", text)


def _check(digits: bytes) -> bytes:
    return digest_bytes(_MAGIC + digits)[:16].encode()
