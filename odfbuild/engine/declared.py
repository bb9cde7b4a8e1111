"""The schema of a result whose columns a read step declares."""

from __future__ import annotations

import pyarrow as pa

from odfbuild.odf.schema.evolution import described_as
from odfbuild.odf.schema.pyarrow_form import from_pyarrow, to_pyarrow
from odfbuild.odf.vocabulary import Vocabulary


def as_declared(schema: pa.Schema, declared: pa.Schema, vocab: Vocabulary) -> pa.Schema:
    """The schema of a result, with what columns declare beside the type that engines know."""
    system = (vocab.event_time, vocab.operation_type)
    fields = []
    for field in schema:
        if field.name in declared.names and field.name not in system:
            wanted = declared.field(field.name)
            kept = pa.types.is_unsigned_integer(wanted.type) or pa.types.is_time(wanted.type)
            kind = wanted.type if kept else field.type
            fields.append(pa.field(field.name, kind, wanted.nullable))
        else:
            fields.append(field)
    return to_pyarrow(described_as(from_pyarrow(pa.schema(fields)), from_pyarrow(declared)))
