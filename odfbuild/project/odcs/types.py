"""Types of columns as contracts name them. Pure.

Source: Open Data Contract Standard 3.1.0, "Schema", `logicalType`.
"""

from __future__ import annotations

from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.ddl import DdlError, read_ddl

_LOGICAL = {
    "bool": "boolean",
    "date32": "date",
    "date64": "date",
    "timestamp": "timestamp",
    "struct": "object",
    "map": "object",
    "fixed_size_list": "array",
    **dict.fromkeys(arrow.TIMES, "time"),
    **dict.fromkeys(arrow.INTEGERS, "integer"),
    **dict.fromkeys((*arrow.FLOATS, *arrow.DECIMALS), "number"),
    **dict.fromkeys(arrow.LISTS, "array"),
}


def logical_type(kind: arrow.Type) -> str:
    """The type in the words of contracts; what they have no word for is a `string`."""
    return _LOGICAL.get(kind.name, "string")


def physical_type(text: str) -> arrow.Type | None:
    """The type that a contract names as Spark does; `None`: it is a type of something else."""
    try:
        (found,) = read_ddl([f"column {text}"]).fields
    except (DdlError, ValueError):
        return None
    return found.type
