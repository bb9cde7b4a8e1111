"""Hypothesis strategies for any object of the protocol, made from the types."""

from enum import Enum
from typing import Any

from hypothesis import strategies as st

from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.introspect import FieldType, Scalar, Table, Union, Vector, fields_of
from odfbuild.odf.model import DataTypeBool, DataTypeOption
from odfbuild.odf.multihash import ARROW0_SHA3_256, SHA3_256, Multihash
from odfbuild.odf.timestamp import Timestamp

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.from_regex(r"[a-zA-Z0-9]{1,4}(-[a-zA-Z0-9]{1,3})?(\.[a-z]{1,3})?", fullmatch=True)
IDS = st.binary(min_size=32, max_size=32).map(DatasetId)
ALIASES = st.builds(DatasetAlias, NAMES, st.none() | NAMES)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "bool": st.booleans(),
    "u64": st.integers(0, 2**64 - 1),
    "u32": st.integers(0, 2**32 - 1),
    "i32": st.integers(-(2**31), 2**31 - 1),
    "i16": st.integers(-(2**15), 2**15 - 1),
    "bytes": st.binary(max_size=8),
    "multihash": st.builds(
        Multihash.of,
        st.sampled_from([SHA3_256, ARROW0_SHA3_256]),
        st.binary(min_size=32, max_size=32),
    ),
    "id": IDS,
    "alias": ALIASES,
    "ref": IDS | ALIASES,
    # Years 1 to 9999, nanoseconds.
    "timestamp": st.integers(-62_135_596_800 * 10**9, 253_402_300_800 * 10**9 - 1).map(Timestamp),
    "open_map": st.dictionaries(TEXT, JSON, max_size=3),
}


def objects(cls: type, depth: int = 0) -> st.SearchStrategy[Any]:
    """Any value of a class."""
    parts = {
        field.name: st.none() | _values(field.type, depth)
        if field.optional
        else _values(field.type, depth)
        for field in fields_of(cls)
    }
    return st.builds(cls, **parts)


def _values(kind: FieldType, depth: int) -> st.SearchStrategy[Any]:
    match kind:
        case Vector(item):
            return st.lists(_values(item, depth), max_size=2).map(tuple)
        case Table(cls):
            return st.deferred(lambda: objects(cls, depth + 1))
        case Union(members) if DataTypeOption in members and depth > 4:
            return st.builds(DataTypeBool)
        case Union(members):
            return st.sampled_from(members).flatmap(lambda cls: objects(cls, depth + 1))
        case Scalar(wire, python):
            return st.sampled_from(python) if issubclass(python, Enum) else SCALARS[wire]
