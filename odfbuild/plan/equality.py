"""Whether two definition events say the same.

Three answers: the same, the same but for white space and comments in SQL, different. Absent fields
equal the defaults that the protocol gives them. Reads no files, resolves no names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from enum import Enum

from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.model import (
    EventTimeSourceFromPath,
    FetchStepFilesGlob,
    MetadataEvent,
    MqttQos,
    MqttTopicSubscription,
    ReadStepCsv,
    ReadStepJson,
    ReadStepNdJson,
    SetVocab,
    SourceOrdering,
    SqlQueryStep,
    TransformSql,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp

_TEXT_FORMATS: dict[str, object] = {
    "encoding": "utf8",
    "date_format": "rfc3339",
    "timestamp_format": "rfc3339",
}

DEFAULTS: dict[type, dict[str, object]] = {
    SetVocab: {
        "offset_column": "offset",
        "operation_type_column": "op",
        "system_time_column": "system_time",
        "event_time_column": "event_time",
    },
    ReadStepCsv: {
        **_TEXT_FORMATS,
        "separator": ",",
        "quote": '"',
        "escape": "\\",
        "header": False,
        "infer_schema": False,
        "null_value": "",
    },
    ReadStepJson: _TEXT_FORMATS,
    ReadStepNdJson: _TEXT_FORMATS,
    EventTimeSourceFromPath: {"timestamp_format": "%Y-%m-%d"},
    FetchStepFilesGlob: {"order": SourceOrdering.ByName},
    MqttTopicSubscription: {"qos": MqttQos.AtMostOnce},
}
"""What an absent field means (metadata reference; the reference implementation for `order`)."""

_ATOMS = (Multihash, DatasetId, DatasetAlias, Timestamp, Enum, type)


class Likeness(Enum):
    """How much two events have in common."""

    SAME = "same"
    COSMETIC = "cosmetic"
    DIFFERENT = "different"


def compare(before: MetadataEvent, after: MetadataEvent) -> Likeness:
    """How `after` relates to `before`; inputs of transformations must be resolved in both."""
    if before == after or canonical(before) == canonical(after):
        return Likeness.SAME
    if canonical(before, tokens) == canonical(after, tokens):
        return Likeness.COSMETIC
    return Likeness.DIFFERENT


def canonical(value: object, sql: Callable[[str], object] = str) -> object:
    """`value` with defaults filled in and empty lists absent; `sql` is applied to query texts."""
    if isinstance(value, tuple):
        return tuple(canonical(item, sql) for item in value) or None
    if isinstance(value, _ATOMS) or not is_dataclass(value):
        return value
    kind = type(value)
    defaults = DEFAULTS.get(kind, {})
    is_query = kind in (SqlQueryStep, TransformSql)
    result: list[object] = [kind]
    for each in fields(value):
        item = getattr(value, each.name)
        if item is None:
            result.append(defaults.get(each.name))
        elif is_query and each.name == "query":
            result.append(sql(item))
        else:
            result.append(canonical(item, sql))
    return tuple(result)


def tokens(text: str) -> Hashable:
    """The tokens of a query in Spark's dialect, without white space and comments.

    A text that cannot be tokenised equals only itself. Letter case counts: it shows in the names of
    result columns.
    """
    # Importing sqlglot costs 0.1 s, so only for texts that differ.
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import SqlglotError

    try:
        return tuple((token.token_type, token.text) for token in Spark().tokenize(text))
    except SqlglotError:
        return text
