"""The schema of a dataset against the schema of what is about to be added to it."""

from __future__ import annotations

import pyarrow as pa

from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import Vocabulary
from odfbuild.engine.slice import dataset_schema
from odfbuild.errors import QueryError
from odfbuild.odf.arrow_schema import schema_of, to_raw
from odfbuild.odf.model import SetDataSchema
from odfbuild.odf.schema_compare import incompatibilities


def ensure_schema(transaction: Transaction, result: pa.Schema, vocab: Vocabulary) -> pa.Schema:
    """The schema in which new records are written.

    The first result sets it (a `SetDataSchema` joins the transaction); later ones must fit the
    committed one, otherwise `QueryError` names every difference. Source: specification, "Schema
    Evolution".
    """
    new = dataset_schema(result, vocab)
    committed = transaction.state.schema
    if committed is None:
        transaction.add(SetDataSchema(raw_arrow_schema=to_raw(new)))
        return new
    old = schema_of(committed)
    check_compatible(transaction.alias, old, new)
    return old


def check_compatible(dataset: str, committed: pa.Schema, new: pa.Schema) -> None:
    """Raise `QueryError` unless records with schema `new` can join a dataset with `committed`."""
    differences = incompatibilities(committed, new)
    if differences:
        raise QueryError(
            f"the result no longer has the schema that '{dataset}' is committed with",
            code="E0521",
            dataset=dataset,
            notes=tuple(differences),
            help=f"cast or rename the columns back, or define a new dataset, '{dataset}.v2'",
        )
