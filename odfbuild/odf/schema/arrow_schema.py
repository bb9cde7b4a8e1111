"""Schemas of chains as PyArrow holds them, for those who read or write records.

What needs no PyArrow is in `arrow_form` and `arrow_raw`.
"""

from __future__ import annotations

import pyarrow as pa

from odfbuild.odf.model import DataSchema, ReadStep, SetDataSchema
from odfbuild.odf.schema.arrow_encoding import InvalidAttributeError, encoding_of
from odfbuild.odf.schema.arrow_form import Layouts, arrow_form, odf_form, read_schema
from odfbuild.odf.schema.arrow_raw import UnsupportedSchemaError, read_raw, write_raw
from odfbuild.odf.schema.ddl import parse_ddl
from odfbuild.odf.schema.pyarrow_form import from_pyarrow, to_pyarrow

__all__ = [
    "InvalidAttributeError",
    "Layouts",
    "UnsupportedSchemaError",
    "declared_columns",
    "encoding_of",
    "from_odf",
    "from_raw",
    "schema_of",
    "to_odf",
    "to_raw",
]


def schema_of(event: SetDataSchema) -> pa.Schema:
    """The schema that an event sets (`read_schema`)."""
    return to_pyarrow(read_schema(event))


def from_odf(schema: DataSchema, layouts: Layouts | None = None) -> pa.Schema:
    """The Arrow form of an ODF schema (`arrow_form`)."""
    return to_pyarrow(arrow_form(schema, layouts or Layouts()))


def declared_columns(read: ReadStep) -> pa.Schema | None:
    """The columns that a read step declares; `None` when only the data can tell."""
    if read.schema is not None:
        return from_odf(read.schema)
    return parse_ddl(read.ddl_schema) if read.ddl_schema else None


def to_odf(schema: pa.Schema) -> DataSchema:
    """The ODF form (`odf_form`)."""
    return odf_form(from_pyarrow(schema))


def from_raw(raw: bytes) -> pa.Schema:
    """The schema in bytes (`read_raw`)."""
    return to_pyarrow(read_raw(raw))


def to_raw(schema: pa.Schema) -> bytes:
    """The bytes of a schema (`write_raw`)."""
    return write_raw(from_pyarrow(schema))
