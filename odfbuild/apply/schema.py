"""Compare the schema of a dataset with the schema of new records."""

from __future__ import annotations

import pyarrow as pa

from odfbuild.apply.transaction import Transaction
from odfbuild.engine.slice import dataset_schema
from odfbuild.errors import QueryError
from odfbuild.odf.digest import LogicalHasher
from odfbuild.odf.model import AddPushSource, DatasetKind, SetDataSchema, SetPollingSource
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.arrow_form import odf_form, read_schema
from odfbuild.odf.schema.arrow_raw import write_raw
from odfbuild.odf.schema.compare import strip_encoding
from odfbuild.odf.schema.evolution import described_as, grow, grown_event, required_as
from odfbuild.odf.schema.pyarrow_form import from_pyarrow, to_pyarrow
from odfbuild.odf.vocabulary import Vocabulary


def ensure_schema(
    transaction: Transaction, result: pa.Schema, vocab: Vocabulary, *, may_grow: bool = False
) -> pa.Schema:
    """The schema in which new records are written.

    The first result sets it, and a changed definition (with `may_grow` also the data) may add
    optional columns: a `SetDataSchema` joins the transaction. Otherwise the result must fit the
    committed schema, or `QueryError` names every difference and column that no dataset can hold.
    Source: specification, "Schema Evolution".
    """
    columns = dataset_schema(result, vocab)
    LogicalHasher(columns)  # columns without a hash are refused before the first record comes
    new = from_pyarrow(columns)
    committed = transaction.state.schema
    if committed is None:
        transaction.add(_first_event(new))
        return columns
    before = read_schema(committed)
    # A source says how columns are described when they are new; afterwards the dataset does.
    growth = grow(before, required_as(described_as(new, before), before))
    if growth.problems:
        raise QueryError(
            f"the result no longer has the schema that '{transaction.alias}' is committed with",
            code="E0521",
            dataset=transaction.alias,
            notes=growth.problems,
            help="cast or rename the columns back, or define a new dataset, "
            f"'{transaction.alias}.v2'{_tolerance(transaction)}",
        )
    if growth.added:
        if not may_grow:
            _ask_for_growth(transaction, growth.added)
        transaction.add(grown_event(committed, growth))
    return to_pyarrow(growth.schema)


def _first_event(schema: arrow.Schema) -> SetDataSchema:
    """In the Arrow form, which all peers read, unless there are attributes: those are ODF's."""
    if schema.metadata or any(_has_attributes(field) for field in schema):
        return SetDataSchema(schema=strip_encoding(odf_form(schema)))
    return SetDataSchema(raw_arrow_schema=write_raw(schema))


def _has_attributes(field: arrow.Field) -> bool:
    inner = field.type.fields if field.type.name in ("list", "struct") else ()
    own = set(field.metadata or ()) - set(arrow.UUID)
    return bool(own) or any(_has_attributes(each) for each in inner)


def _ask_for_growth(transaction: Transaction, added: tuple[str, ...]) -> None:
    """Raise `QueryError` when columns appear that no definition asked for.

    A query that reads all columns of its inputs asks for those that they gain.
    """
    if transaction.kind is DatasetKind.Derivative:
        return
    if any(isinstance(e, SetPollingSource | AddPushSource) for e in transaction.events):
        return
    raise QueryError(
        f"the source of '{transaction.alias}' has columns that it did not have: {', '.join(added)}",
        code="E0522",
        dataset=transaction.alias,
        help="list all its columns in `read.ddlSchema` to take them in, or select the old ones in "
        f"`preprocess`{_tolerance(transaction)}",
    )


def _tolerance(transaction: Transaction) -> str:
    if transaction.kind is DatasetKind.Derivative:
        return ""
    return (
        f"; `ingest.onSchemaChange: {{{transaction.alias}: ignore}}` in odfbuild.yaml goes on with "
        "the columns that are known, `append_new_columns` takes new ones in"
    )
