"""Where records come from, as trees for people and as plain values. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.odf.records import records_to_data
from odfbuild.records.ranges import Ranges, size_of
from odfbuild.report.forms.words import short
from odfbuild.report.records.table import render_records
from odfbuild.wording import count

if TYPE_CHECKING:
    import pyarrow as pa

    from odfbuild.inspect.verify.provenance import BlockRecords, ColumnSource, TracedRecords

_INTERVALS = 8
_BLOCKS = 3


def render_provenance(trees: Sequence[TracedRecords]) -> str:
    """A tree for each record: where it lies, its values, and the records that it comes from."""
    return "\n\n".join("\n".join(_tree(each, "", "")) for each in trees)


def provenance_to_data(trees: Sequence[TracedRecords]) -> list[dict[str, Any]]:
    """The same as plain values, with whole hashes and all intervals."""
    return [_data(each) for each in trees]


def _tree(each: TracedRecords, first: str, margin: str) -> Iterator[str]:
    yield f"{first}{each.dataset}  {records_of(each)}"
    inner = margin + ("│  " if each.inputs else "   ")
    yield from (f"{inner}{line}" for line in _details(each))
    for number, origin in enumerate(each.inputs, 1):
        last = number == len(each.inputs)
        yield from _tree(
            origin, f"{margin}{'└─' if last else '├─'} ", margin + ("   " if last else "│  ")
        )


def records_of(each: TracedRecords) -> str:
    """Which records of a dataset they are."""
    size = size_of(each.records)
    if size == 1:
        return f"record {each.records[0][0]}"
    return f"{count(size, 'record')}: {_intervals(each.records)}"


def _intervals(ranges: Ranges) -> str:
    shown = [str(a) if a == b else f"{a} to {b}" for a, b in ranges[:_INTERVALS]]
    more = len(ranges) - len(shown)
    return ", ".join(shown) + (f" and {count(more, 'more interval')}" if more else "")


def notes_of(each: TracedRecords) -> Iterator[str]:
    """What there is to say of records: their blocks, and what cannot be told."""
    if each.whole is not None:
        yield f"all that was read, for no single records can be told: {each.whole}"
    yield from map(_piece, each.pieces[:_BLOCKS])
    if len(each.pieces) > _BLOCKS:
        yield f"… and {count(len(each.pieces) - _BLOCKS, 'more block')}"
    if each.before:
        yield "it takes back a record, which came from what is below"
    if each.untold is not None:
        yield f"what it comes from cannot be told here: {each.untold}"


def sample_of(each: TracedRecords) -> pa.Table | None:
    """The records that are shown, if any."""
    if each.sample is None:
        return None
    hidden = each.vocab.system_time
    return each.sample.select([n for n in each.sample.column_names if n != hidden])


def _details(each: TracedRecords) -> Iterator[str]:
    yield from notes_of(each)
    shown = sample_of(each)
    if shown is not None:
        yield from render_records(shown, each.vocab.operation_type).splitlines()
        more = size_of(each.records) - shown.num_rows
        if more:
            yield f"… and {count(more, 'more record')}"
    rows = column_rows(each)
    width = max((len(column) for column, _ in rows), default=0)
    yield from (f"{column:<{width}}  {sources}" for column, sources in rows)


def column_rows(each: TracedRecords) -> list[tuple[str, str]]:
    """Columns and what they are made of, with a header; nothing where it was not asked for."""
    columns = each.columns
    if columns is None or not (columns.made_of or columns.decided_by):
        return []
    rows = [("COLUMN", "MADE OF")]
    rows += [(name, _sources(each) or "a constant") for name, each in columns.made_of.items()]
    if columns.decided_by:
        rows.append(("(which records)", _sources(columns.decided_by)))
    return rows


def _sources(sources: Sequence[ColumnSource]) -> str:
    return ", ".join(f"{each.dataset}.{each.column} ({each.how})" for each in sources)


def _piece(piece: BlockRecords) -> str:
    parts = [f"block #{piece.sequence_number} {short(piece.block)}, {str(piece.system_time)[:10]}"]
    if piece.query is not None:
        parts.append(f"by the query of block #{piece.query}")
    if piece.source is not None:
        parts.append(f"from {piece.source}")
    if piece.state is not None:
        parts.append(f"read up to {piece.state.value}")
    return ", ".join(parts)


def _sources_data(sources: Sequence[ColumnSource]) -> list[dict[str, str]]:
    return [
        {"dataset": each.dataset, "column": each.column, "how": each.how.value} for each in sources
    ]


def _columns_data(each: TracedRecords) -> dict[str, Any]:
    columns = each.columns
    if columns is None:
        return {}
    return {
        "columns": [
            {"name": name, "from": _sources_data(sources)}
            for name, sources in columns.made_of.items()
        ],
        "decidedBy": _sources_data(columns.decided_by),
    }


def _data(each: TracedRecords) -> dict[str, Any]:
    return {
        "dataset": each.dataset,
        "offsets": [list(interval) for interval in each.records],
        "records": size_of(each.records),
        "whole": each.whole,
        "takesBack": each.before,
        "untold": each.untold,
        "blocks": [_piece_data(piece) for piece in each.pieces],
        "sample": []
        if each.sample is None
        else records_to_data(each.sample, each.vocab.operation_type),
        **_columns_data(each),
        "inputs": [_data(origin) for origin in each.inputs],
    }


def _piece_data(piece: BlockRecords) -> dict[str, Any]:
    state = piece.state
    return {
        "sequenceNumber": piece.sequence_number,
        "blockHash": str(piece.block),
        "systemTime": str(piece.system_time),
        "offsets": [list(interval) for interval in piece.records],
        "queryBlock": piece.query,
        "source": piece.source,
        "sourceState": state
        and {"sourceName": state.source_name, "kind": state.kind, "value": state.value},
    }
