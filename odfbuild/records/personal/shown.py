"""What readers see of personal columns: values, pseudonyms or nothing, by the rights of a machine.

DuckDB hides values by an expression, so that reading without rights takes no longer, and decrypts
by a function of this process: keys are in no query, and plain values in no file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.records.personal.values import (
    PREFIX,
    PSEUDONYM,
    PSEUDONYM_DIGITS,
    Convert,
    hiding,
    opening,
)
from odfbuild.store.personal import Audience, Personal, PersonalColumns

if TYPE_CHECKING:
    import duckdb

    from odfbuild.odf.identity import DatasetId
    from odfbuild.store.dataset import DatasetStore

_functions = count()


@dataclass(frozen=True)
class Shown:
    """What an audience sees of the columns in `scope`."""

    personal: Personal
    scope: PersonalColumns
    plain: bool

    @cached_property
    def convert(self) -> Convert:
        """Makes what is shown of what is committed."""
        if self.plain:
            return opening(self.personal, self.scope)
        return hiding(self.personal.hiding, self.scope)

    def needed(self, names: list[str]) -> list[str]:
        """The columns to read in order to show those: subjects, too, where values are decrypted."""
        subjects = self.scope.subjects
        more = [subjects[name] for name in names if self.plain and name in subjects]
        return list(dict.fromkeys((*names, *more)))

    def of(self, batch: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
        """What is shown of these columns of records, which `batch` has."""
        scope = self.scope.within(names)
        return (batch if scope is None else self.convert(batch)).select(names)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """What is shown may be NULL."""
        fields = [f.with_nullable(True) if f.name in self.scope.subjects else f for f in schema]
        return pa.schema(fields, schema.metadata)

    def expression(self, connection: duckdb.DuckDBPyConnection, column: str) -> str:
        """What is shown of a column, as SQL of DuckDB for a relation with the committed ones."""
        name = _quote(column)
        if column not in self.scope.subjects:
            return name
        if self.plain:
            subject = _quote(self.scope.subjects[column])
            return f"{self._function(connection, column)}({subject}::VARCHAR, {name}) AS {name}"
        if self.personal.hiding == "empty":
            return f"NULL::VARCHAR AS {name}"
        return (
            f"CASE WHEN starts_with({name}, '{PREFIX}') THEN '{PSEUDONYM}' ||"
            f" left(sha256({name}), {PSEUDONYM_DIGITS}) END AS {name}"
        )

    def _function(self, connection: duckdb.DuckDBPyConnection, column: str) -> str:
        from duckdb.func import ARROW, SPECIAL

        subject = self.scope.subjects[column]
        convert = opening(self.personal, self.scope)

        def plain(subjects: pa.Array, values: pa.Array) -> pa.Array:
            found = pa.table({subject: subjects, column: values}).combine_chunks().to_batches()
            return pa.concat_arrays([convert(each).column(column) for each in found] or [_NOTHING])

        name = f"odfbuild_plain_{next(_functions)}"
        connection.create_function(
            name,
            plain,
            ["VARCHAR", "VARCHAR"],
            "VARCHAR",
            type=ARROW,
            null_handling=SPECIAL,
        )
        return name


_NOTHING = pa.nulls(0, pa.string())


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def shown_of(store: DatasetStore, dataset_id: DatasetId, audience: Audience) -> Shown | None:
    """What an audience sees of the dataset in `store`; `None`: it has no personal columns."""
    personal = store.personal
    scope = personal.of(store.name, dataset_id) if personal is not None else None
    if personal is None or scope is None:
        return None
    return Shown(personal, scope, personal.shows(audience))


def told_as_hidden(personal: Personal | None, datasets: Iterable[str]) -> str:
    """A line for people about values that they do not see; empty where they see all."""
    if personal is None or personal.shows("people"):
        return ""
    names = sorted(name for name in datasets if personal.has(name))
    if not names:
        return ""
    how = "are not shown" if personal.hiding == "empty" else "are shown as pseudonyms"
    why = "this machine may not show them"
    if personal.keys is None:
        why = "this machine has no keys of subjects"
    return f"Personal columns of {', '.join(names)} {how}: {why}."
