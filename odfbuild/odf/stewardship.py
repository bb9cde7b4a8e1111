"""What the owner of a dataset says about records that are no longer there.

A `Withdrawal` says that the objects of the oldest blocks are removed, an `Erasure` that the keys of
subjects are destroyed, by which values of them were encrypted. Statements are signed with the
dataset's own key, as `signed_head` does it. They lie beside the chain in `info/statements`, one a
line, which other programs ignore; of a subject they have nothing but its keyed hash. The file is a
set that only grows: two copies of it are merged by taking the lines of both. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.query_proof import Proof, canonical_json, is_signed_by_dataset, sign_as_dataset
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FILE = "statements"
"""The name in `info/`."""

MOST_BYTES = 64 << 20
"""The limit of the file: about a million subjects."""

_VERSION = 1


class Withdrawal(Value, kw_only=True):
    """The objects of the block `through`, which has that number, and of all before it are removed.

    `why` is the rule in words, `records` were in these objects, `by` is who gave consent. Objects
    that newer blocks refer to, and the newest checkpoint, stay.
    """

    KIND: ClassVar = "Withdrawal"

    dataset_id: DatasetId
    time: Timestamp
    by: str
    why: str
    through: Multihash
    number: int
    records: int

    @property
    def data(self) -> dict[str, Any]:
        """What is signed."""
        return {
            **_common(self),
            "why": self.why,
            "through": str(self.through),
            "number": self.number,
            "records": self.records,
        }


class Erasure(Value, kw_only=True):
    """The keys of `subjects` (keyed hashes of 32 bytes, sorted) are destroyed.

    They had so many `records` in the dataset, in blocks with these `numbers` (sorted); `head` was
    the newest block then.
    """

    KIND: ClassVar = "Erasure"

    dataset_id: DatasetId
    time: Timestamp
    by: str
    head: Multihash
    records: int
    subjects: tuple[bytes, ...]
    numbers: tuple[int, ...]

    @property
    def data(self) -> dict[str, Any]:
        """What is signed."""
        return {
            **_common(self),
            "head": str(self.head),
            "records": self.records,
            "subjects": [each.hex() for each in self.subjects],
            "numbers": list(self.numbers),
        }


Statement = Withdrawal | Erasure


def _common(said: Statement) -> dict[str, Any]:
    return {
        "kind": said.KIND,
        "version": _VERSION,
        "datasetId": str(said.dataset_id),
        "time": str(said.time),
        "by": said.by,
    }


class Signed(Value):
    """A statement, and the proof that the dataset's key signed it."""

    statement: Statement
    proof: Proof

    @classmethod
    def sign(cls, statement: Statement, key: Ed25519PrivateKey) -> Self:
        """Sign a statement; `ValueError` when this is not the key of its dataset."""
        return cls(statement, sign_as_dataset(statement, key))

    @property
    def line(self) -> bytes:
        """Its line in the file."""
        document = {"statement": self.statement.data, "proof": self.proof.data}
        return canonical_json(document) + b"\n"

    @property
    def holds(self) -> bool:
        """Whether the dataset's own key signed it; `ModuleNotFoundError` without cryptography."""
        return is_signed_by_dataset(self.statement, self.proof)

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """Read a line, byte by byte as `line` gives it; `ValueError` for anything else.

        The signature is not checked; see `holds`.
        """
        try:
            document = json.loads(line)
            found = cls(_statement(document["statement"]), Proof.parse(document["proof"]))
        except (KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            raise ValueError("it has not the fields of a statement") from None
        # One statement has one spelling: no key twice, nothing added, no other form of a hash.
        if found.line != line:
            raise ValueError("it is not in canonical form")
        return found


def parse_statements(data: bytes) -> tuple[Signed, ...]:
    """The statements of a file, the oldest first; `ValueError` where one cannot be read."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
    found = []
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        try:
            found.append(Signed.parse(line))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return in_order(found)


def in_order(statements: Iterable[Signed]) -> tuple[Signed, ...]:
    """Each statement once, the oldest first; those of one moment by their bytes."""
    each_once = {each.line: each for each in statements}
    return tuple(sorted(each_once.values(), key=lambda each: (each.statement.time, each.line)))


def encode_statements(statements: Iterable[Signed]) -> bytes:
    """The bytes of a file with these statements."""
    return b"".join(each.line for each in in_order(statements))


def _statement(said: Any) -> Statement:
    if said["version"] != _VERSION:
        raise ValueError(f"a statement of version {said['version']!r}, not {_VERSION}")
    common: dict[str, Any] = {
        "dataset_id": DatasetId.parse(said["datasetId"]),
        "time": Timestamp.parse(said["time"]),
        "by": _text(said["by"]),
        "records": _number(said["records"]),
    }
    if said["kind"] == Withdrawal.KIND:
        return Withdrawal(
            **common,
            why=_text(said["why"]),
            through=Multihash.parse(said["through"]),
            number=_number(said["number"]),
        )
    if said["kind"] == Erasure.KIND:
        return Erasure(
            **common,
            head=Multihash.parse(said["head"]),
            subjects=tuple(map(_name, said["subjects"])),
            numbers=tuple(map(_number, said["numbers"])),
        )
    raise ValueError(f"no kind of statement: {said['kind']!r}")


def _name(value: Any) -> bytes:
    found = bytes.fromhex(_text(value))
    if len(found) != 32:
        raise ValueError(f"{value!r} is not a keyed hash")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 1_000:
        raise ValueError(f"{value!r:.50} is not a text")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r:.50} is not a number")
    return value
