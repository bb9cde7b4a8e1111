"""Encrypt and decrypt the values of personal columns, in batches of Arrow.

A value is `enc1:` and, in base64url (RFC 4648, without padding), what AES-SIV (RFC 5297) makes of
its UTF-8 by the 64-byte key of its subject; identity of the dataset and name of the column are
associated data. The same value of the same subject is the same text, so that merges and the
detection of changes work on it. NULL stays NULL.
"""

from __future__ import annotations

import hashlib
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Collection, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from odfbuild.errors import PersonalDataError
from odfbuild.odf.operation import CORRECT_FROM, RETRACT
from odfbuild.store.personal import Hiding, Personal, PersonalColumns
from odfbuild.wording import count

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    from odfbuild.store.subject_keys import SubjectKeys

PREFIX = "enc1:"
"""What an encrypted value begins with; a plain one that does is encrypted like any other."""
PSEUDONYM = "p-"
PSEUDONYM_DIGITS = 16
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = str.maketrans("-_", "+/")
_MOST = 200_000
"""Subjects whose ciphers, and last values, are kept."""

Convert = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Makes records of records with the same columns."""


class Ciphers:
    """Ciphers of subjects, whose keys are asked for once. May be used from several threads."""

    def __init__(self, keys: SubjectKeys) -> None:
        self._keys = keys
        self._known: dict[str, AESSIV | None] = {}
        self._lock = Lock()

    def of(self, subjects: Collection[str], *, make: bool) -> Mapping[str, AESSIV | None]:
        """The ciphers of subjects: `None` for one that is erased, or unless `make` never had a key.

        With `make`, new subjects get a key, which is stored before this returns.
        """
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        with self._lock:
            known = self._known
            missing = [each for each in subjects if each not in known]
            if missing:
                found = (self._keys.ensure if make else self._keys.keys)(missing)
                new = {each: AESSIV(found[each]) if each in found else None for each in missing}
                if len(known) + len(new) > _MOST:
                    known = self._known = {each: known.get(each) for each in subjects}
                known.update(new)
            return known


def sealing(personal: Personal, scope: PersonalColumns, operation: str | None = None) -> Convert:
    """Encrypts the personal columns of records.

    A value of an erased subject becomes NULL; but a record that takes another one back, by the
    column `operation`, keeps what that one has (see `opening`). `PersonalDataError` E1604 without
    keys; when records come, E1603 for columns of other types, E1605 for values without a subject.
    """
    ciphers = Ciphers(personal.required_keys(scope.dataset))
    contexts = {column: scope.context(column) for column in scope.subjects}
    last: dict[str, dict[str, tuple[str, str]]] = {column: {} for column in scope.subjects}

    def seal(column: str, subject: str, cipher: AESSIV | None, value: str) -> str | None:
        if cipher is None:
            return None
        known = last[column]
        before = known.get(subject)
        if before is not None and before[0] == value:
            return before[1]
        made = cipher.encrypt(value.encode(), contexts[column])
        text = PREFIX + _encoded(made)
        if len(known) >= _MOST:
            known.clear()
        known[subject] = value, text
        return text

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        made = _converted(batch, scope, ciphers, seal, make=True)
        if operation is None or operation not in batch.schema.names:
            return made
        return _as_committed(made, batch, scope, operation)

    return convert


def _as_committed(
    made: pa.RecordBatch, before: pa.RecordBatch, scope: PersonalColumns, operation: str
) -> pa.RecordBatch:
    """Encrypted records, in which those that take others back have values that nobody can read."""
    # Made here: an array imports pandas, which other readers do without.
    take_back = pa.array([RETRACT, CORRECT_FROM], pa.int32())
    taken = pc.is_in(before.column(operation), value_set=take_back)
    for name in scope.subjects:
        at = before.schema.get_field_index(name)
        if at < 0:
            continue
        value = _text(before.column(at))
        kept = pc.and_(taken, pc.and_(made.column(at).is_null(), value.is_valid()))
        made = _replaced(made, at, pc.if_else(kept, value, made.column(at)))
    return made


def opening(personal: Personal, scope: PersonalColumns, *, keep: bool = False) -> Convert:
    """Decrypts the personal columns of records; without a key of its subject a value is NULL.

    With `keep` it stays encrypted, so that the record can be taken back as it was committed.
    Values that were committed before the column was declared stay as they are.
    `PersonalDataError` E1604 without keys; when records come, E1606 for a value that does not
    belong to the key of its subject, its dataset and its column.
    """
    from cryptography.exceptions import InvalidTag

    ciphers = Ciphers(personal.required_keys(scope.dataset))
    contexts = {column: scope.context(column) for column in scope.subjects}

    def open_(column: str, subject: str, cipher: AESSIV | None, value: str) -> str | None:
        if not value.startswith(PREFIX):
            return value
        if cipher is None:
            return value if keep else None
        try:
            return cipher.decrypt(_decoded(value[len(PREFIX) :]), contexts[column]).decode()
        except (InvalidTag, ValueError):
            raise PersonalDataError(
                f"a value of '{column}' in '{scope.dataset}' does not belong to the key of its "
                f"subject",
                code="E1606",
                dataset=scope.dataset,
                notes=(
                    "its bytes, its column, its dataset or its subject were changed, or the keys "
                    "of this machine are those of another store",
                ),
                help="check `personal.keys` of the machine's configuration, then "
                f"`odfbuild verify {scope.dataset} --integrity`",
            ) from None

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        return _converted(batch, scope, ciphers, open_, make=False)

    return convert


def _encoded(data: bytes) -> str:
    """Base64url without padding; faster than the standard library's, which calls more."""
    return b2a_base64(data, newline=False).translate(_TO_URL, b"=").decode()


def _decoded(text: str) -> bytes:
    """What `_encoded` encoded; `ValueError` for any other text, so that a value has one form."""
    data = a2b_base64(text.translate(_FROM_URL) + "=" * (-len(text) % 4), strict_mode=True)
    if _encoded(data) != text:
        raise ValueError("not the one form of these bytes")
    return data


def hiding(how: Hiding, scope: PersonalColumns) -> Convert:
    """Puts pseudonyms, or NULL, in place of the values of personal columns.

    A pseudonym follows from the encrypted value alone; a value that was committed before the
    column was declared is NULL.
    """

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        for column in scope.subjects:
            at = batch.schema.get_field_index(column)
            if at < 0:
                continue
            values = pa.nulls(batch.num_rows, pa.string())
            if how == "pseudonym":
                coded = pc.dictionary_encode(_text(batch.column(at)))
                made = [pseudonym(each) for each in coded.dictionary.to_pylist()]
                values = pa.array(made, pa.string()).take(coded.indices)
            batch = _replaced(batch, at, values)
        return batch

    return convert


def pseudonym(value: str | None) -> str | None:
    """What stands for an encrypted value; `None` for any other."""
    if value is None or not value.startswith(PREFIX):
        return None
    return PSEUDONYM + hashlib.sha256(value.encode()).hexdigest()[:PSEUDONYM_DIGITS]


def check_types(scope: PersonalColumns, schema: pa.Schema) -> None:
    """`PersonalDataError` E1602 and E1603 for columns that cannot be personal, or name a subject.

    Personal columns that the dataset does not have do not count.
    """
    for column, subject in scope.subjects.items():
        if column not in schema.names:
            continue
        if subject not in schema.names:
            raise PersonalDataError(
                f"'{scope.dataset}' has no column '{subject}', which names the subject of "
                f"'{column}'",
                code="E1602",
                dataset=scope.dataset,
                notes=(f"its columns are: {', '.join(schema.names)}",),
                help="add the column to the query or source, or correct `subject` of `personal` "
                "in odfbuild.yaml",
            )
        if not _is_text(schema.field(column).type):
            raise _wrong_type(scope, column, schema.field(column).type, "personal")
        kind = schema.field(subject).type
        if not (_is_text(kind) or pa.types.is_integer(kind)):
            raise _wrong_type(scope, subject, kind, "the subject of a personal one")


def _wrong_type(
    scope: PersonalColumns, column: str, kind: pa.DataType, role: str
) -> PersonalDataError:
    return PersonalDataError(
        f"column '{column}' of '{scope.dataset}' is of type {kind} and cannot be {role}",
        code="E1603",
        dataset=scope.dataset,
        notes=("a personal column is text; a subject is text or a whole number",),
        help=f"cast it in `preprocess` or in the query: CAST({column} AS STRING)",
    )


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or (types.is_dictionary(kind) and _is_text(kind.value_type))
    )


def _text(values: pa.Array) -> pa.Array:
    return values if values.type == pa.string() else values.cast(pa.string())


def _replaced(batch: pa.RecordBatch, at: int, values: pa.Array) -> pa.RecordBatch:
    field = batch.schema.field(at)
    columns = list(batch.columns)
    columns[at] = values
    schema = batch.schema.set(at, field.with_type(pa.string()).with_nullable(True))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _converted(
    batch: pa.RecordBatch,
    scope: PersonalColumns,
    ciphers: Ciphers,
    convert: Callable[[str, str, Any, str], str | None],
    *,
    make: bool,
) -> pa.RecordBatch:
    """The same records with what `convert` makes of each pair of subject and value, once."""
    import numpy as np  # readers of plain columns do without

    check_types(scope, batch.schema)
    found: dict[str, pa.Array] = {}
    for column, subject in scope.subjects.items():
        if column not in batch.schema.names:
            continue
        values = _text(batch.column(column))
        there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        if not len(there):
            continue
        position = pa.array(there)
        subjects = _text(batch.column(subject)).take(position)
        if subjects.null_count:
            raise PersonalDataError(
                f"{count(subjects.null_count, 'record')} of '{scope.dataset}' have a value in "
                f"'{column}' and no subject in '{subject}'",
                code="E1605",
                dataset=scope.dataset,
                notes=("a value is encrypted by the key of its subject",),
                help="leave such values out in `preprocess` or in the query: "
                f"IF({subject} IS NULL, NULL, {column})",
            )
        who, what = subjects.dictionary_encode(), values.take(position).dictionary_encode()
        names, texts = who.dictionary.to_pylist(), what.dictionary.to_pylist()
        # Sorted by subject: a cipher is used for all of its values at once, which is faster.
        pairs = who.indices.to_numpy().astype(np.int64) * len(texts) + what.indices.to_numpy()
        each, number = np.unique(pairs, return_inverse=True)
        of = ciphers.of(names, make=make)
        both = zip((each // len(texts)).tolist(), (each % len(texts)).tolist(), strict=True)
        made = [convert(column, names[s], of[names[s]], texts[v]) for s, v in both]
        index = np.zeros(batch.num_rows, np.int64)
        index[there] = number
        missing = np.ones(batch.num_rows, bool)
        missing[there] = False
        found[column] = pa.array(made, pa.string()).take(pa.array(index, mask=missing))
    for column, values in found.items():
        batch = _replaced(batch, batch.schema.get_field_index(column), values)
    return batch
