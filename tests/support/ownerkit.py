"""Owner chains for tests: short ways to make records, right ones and wrong ones."""

from collections.abc import Sequence

from packagekit import key

from visget.format.keys import PublicKey, SecretKey
from visget.format.owner import OwnerRecord, SignedRecord, first_record, sign_record
from visget.format.owner_chain import OwnerPin, OwnerState, follow, next_record
from visget.names import parse_name

NAME = parse_name("xxhash")
A, B, C, THIEF, OPERATOR = (key(name) for name in ("owner-a", "owner-b", "owner-c", "thief", "operator"))


def ids(keys: Sequence[PublicKey]) -> list[str]:
    return sorted(item.id for item in keys)


def publics(*keys: SecretKey) -> list[PublicKey]:
    return [item.public for item in keys]


class Chain:
    """The records of one name as an honest or a dishonest registry has them."""

    def __init__(self, *keys: SecretKey, name: str = NAME, threshold: int = 1) -> None:
        self.name = parse_name(name)
        self.items: list[SignedRecord] = [first_record(self.name, *keys, threshold=threshold)]

    @property
    def files(self) -> list[bytes]:
        return [item.encode() for item in self.items]

    @property
    def newest(self) -> OwnerState:
        last = self.items[-1]
        return OwnerState(record=last.record, digest=last.digest)

    @property
    def pin(self) -> OwnerPin:
        return self.newest.pin

    def change(self, *signers: SecretKey, **changes: object) -> "Chain":
        """Append the record that makes `changes`, signed by `signers`, and return the chain."""
        self.items.append(sign_record(next_record(self.newest, **changes), *signers))
        return self

    def push(self, record: OwnerRecord, *signers: SecretKey) -> "Chain":
        self.items.append(sign_record(record, *signers))
        return self

    def copy(self, length: int | None = None) -> "Chain":
        other = object.__new__(Chain)
        other.name, other.items = self.name, self.items[:length]
        return other

    def follow(self, **options: object) -> OwnerState:
        return follow(self.files, self.name, **options)
