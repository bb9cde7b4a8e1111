"""Add the result of an engine to a transaction."""

from __future__ import annotations

from pathlib import Path

from odfbuild.apply.schema import ensure_schema
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import EngineResult
from odfbuild.engine.personal import scope_of, sealing_of
from odfbuild.engine.slice import StagedSlice, write_slice
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.records.personal.values import check_types


def stage_slice(
    transaction: Transaction,
    result: EngineResult,
    vocab: Vocabulary,
    scratch: Path,
    *,
    may_grow: bool = False,
    counts_until: Timestamp | None = None,
) -> StagedSlice | None:
    """Write the records behind those of the dataset and hand the file to the transaction.

    Adds the schema if there is none yet, and with `may_grow` new columns. See `write_slice` for
    `counts_until`. `None` when the result has no records. Raises `QueryError` when the result does
    not fit the dataset, `CheckError` when its records do not keep to a check.
    """
    if result.schema is None:
        return None
    last = transaction.state.last_offset
    schema = ensure_schema(transaction, result.schema, vocab, may_grow=may_grow)
    store = transaction.workspace.dataset(transaction.alias)
    scope = scope_of(store, transaction.state)
    if scope is not None:
        check_types(scope, schema)
    staged = write_slice(
        result,
        dataset=transaction.alias,
        schema=schema,
        vocab=vocab,
        first_offset=0 if last is None else last + 1,
        system_time=transaction.system_time,
        target=scratch / "slice.parquet",
        counts_until=counts_until,
        sealing=sealing_of(store, transaction.state),
    )
    if staged is not None:
        if transaction.audit is not None:
            waiting = [path for path, _ in transaction.objects]
            identity = transaction.state.dataset_id
            transaction.audit.staged(
                staged.path, schema, vocab, identity, transaction.base, waiting
            )
        transaction.add_data(staged.path, staged.data.physical_hash)
    return staged
