"""UUIDs: 16 bytes in data files, text in queries.

Spark knows no such type. Columns of views that hold UUIDs carry a mark, which Spark hands on with a
column that a query passes on as it is; what a query computes of it is text. Source: Open Data
Fabric, "DDL schema"; RFC 9562.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Uuids = frozenset[str]
"""Names of columns that hold UUIDs."""

TEXT = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
"""A regular expression for their text, in RE2 and in Java."""
_LENGTH = 36
_HYPHENS = (8, 13, 18, 23)
_VALUES = np.zeros(256, np.uint8)
for _digit in "0123456789abcdefABCDEF":
    _VALUES[ord(_digit)] = int(_digit, 16)
_DIGITS = np.array([[ord(digit) for digit in f"{byte:02x}"] for byte in range(256)], np.uint8)


class NoUuidError(ValueError):
    """A text that is none; the message is that text."""


def is_uuid(kind: pa.DataType) -> bool:
    """Whether a column of that type holds UUIDs."""
    return isinstance(kind, pa.UuidType)


def uuids_in(schema: pa.Schema | None) -> Uuids:
    """The columns of `schema` that hold UUIDs."""
    return frozenset(field.name for field in schema or () if is_uuid(field.type))


def from_text(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Texts as `target`, UUIDs or 16 bytes; raises `NoUuidError` for any other text."""
    found = pc.match_substring_regex(values, TEXT)
    wrong = values.filter(pc.fill_null(pc.invert(found), False))
    if len(wrong):
        raise NoUuidError(wrong[0].as_py())
    missing = values.is_null().to_numpy(zero_copy_only=False)
    present = values.drop_null().cast(pa.binary()).cast(pa.binary(_LENGTH))
    letters = np.frombuffer(present.buffers()[1] or b"", np.uint8)
    start = present.offset * _LENGTH
    letters = letters[start : start + len(present) * _LENGTH].reshape(-1, _LENGTH)
    digits = _VALUES[np.delete(letters, _HYPHENS, axis=1)]
    packed = np.zeros((len(values), 16), np.uint8)
    packed[~missing] = digits[:, ::2] << 4 | digits[:, 1::2]
    storage = pa.Array.from_buffers(
        pa.binary(16), len(values), [None, pa.py_buffer(packed.tobytes())]
    )
    storage = pc.if_else(pa.array(missing), pa.scalar(None, pa.binary(16)), storage)
    return pa.ExtensionArray.from_storage(target, storage) if is_uuid(target) else storage


def to_text(values: pa.Array) -> pa.Array:
    """UUIDs, or their 16 bytes, as the text that queries see."""
    storage = values.storage if is_uuid(values.type) else values
    size = len(storage)
    packed = np.frombuffer(storage.buffers()[1] or bytes(16 * (storage.offset + size)), np.uint8)
    packed = packed[storage.offset * 16 : (storage.offset + size) * 16].reshape(size, 16)
    letters = np.full((size, _LENGTH), ord("-"), np.uint8)
    letters[:, np.delete(np.arange(_LENGTH), _HYPHENS)] = _DIGITS[packed].reshape(size, 32)
    bounds = np.arange(size + 1, dtype=np.int64) * _LENGTH
    buffers = [None, pa.py_buffer(bounds.tobytes()), pa.py_buffer(letters.tobytes())]
    text = pa.Array.from_buffers(pa.large_string(), size, buffers)
    return pc.if_else(storage.is_null(), pa.scalar(None, pa.large_string()), text)
