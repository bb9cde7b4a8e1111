"""The names of the system columns of a dataset.

Source: Open Data Fabric, "SetVocab".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.model import SetVocab


class Vocabulary(Value):
    """Names of the system columns."""

    offset: str = "offset"
    operation_type: str = "op"
    system_time: str = "system_time"
    event_time: str = "event_time"


def vocabulary_of(vocab: SetVocab | None) -> Vocabulary:
    """The names in force when `vocab` is the latest event of its kind."""
    default = Vocabulary()
    if vocab is None:
        return default
    return Vocabulary(
        offset=vocab.offset_column or default.offset,
        operation_type=vocab.operation_type_column or default.operation_type,
        system_time=vocab.system_time_column or default.system_time,
        event_time=vocab.event_time_column or default.event_time,
    )
