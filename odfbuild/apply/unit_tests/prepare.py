"""The records of a unit test in the types of their datasets, or all that does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from odfbuild.apply.queries import Checked
from odfbuild.apply.unit_tests.typed import Unfit, optional_schema, typed
from odfbuild.engine.contract import InputSlices
from odfbuild.errors import Path, RecordsError
from odfbuild.odf.records import OPERATIONS
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.project.model import Definition
from odfbuild.project.unit_tests import Given, Records, Step, UnitTest
from odfbuild.survey.unit_tests import alias_of, givable, input_of, transform_of, wrong_columns
from odfbuild.values import Value

A_TIME = Timestamp.parse("2000-01-01T00:00:00Z")
"""System time of all records, and event time of given records that have none."""


class Prepared(Value):
    """A step: new records and watermarks by the alias of the input, and what is expected.

    `expected` has the columns that are compared.
    """

    tables: Mapping[str, pa.Table]
    schemas: Mapping[str, pa.Schema]
    watermarks: Mapping[str, Timestamp]
    expected: pa.Table | None


def prepared(
    test: UnitTest, definition: Definition, checked: Checked
) -> tuple[list[Prepared], list[RecordsError]]:
    """The steps of a test, and all that is wrong with their records."""
    inputs, result = checked.inputs.get(definition.name), checked.results.get(definition.name)
    if inputs is None or result is None:
        return [], [_unknown(test)]
    wrong: list[RecordsError] = []
    steps = [
        _step(test, number, step, definition, inputs, result, wrong)
        for number, step in enumerate(test.steps)
    ]
    return steps, wrong


def _step(
    test: UnitTest,
    number: int,
    step: Step,
    definition: Definition,
    inputs: Sequence[InputSlices],
    result: InputSlices,
    wrong: list[RecordsError],
) -> Prepared:
    transform = transform_of(definition)
    assert transform is not None, "a test of a root is refused"
    tables, watermarks = {}, {}
    by_alias = {each.alias: each for each in inputs}
    for name, given in step.given.items():
        declared = input_of(transform, name)
        assert declared is not None, "an unknown input is refused"
        each = by_alias[alias_of(declared)]
        columns = givable(each.schema.names, each.vocab)
        problems = list(wrong_columns(test, number, ("given", name), given, columns))
        if problems:
            wrong += problems
            continue
        table, unfit = typed(
            given.plain, _nullable(each), each.vocab.operation_type, _absent(each.vocab)
        )
        wrong += _told(test, number, ("given", name), given, unfit)
        tables[each.alias] = table
        watermark = _watermark(given, table, each.vocab)
        if watermark is not None:
            watermarks[each.alias] = watermark
    expected = None
    if step.expect is not None:
        expected, problems = _expected(test, number, step.expect, result)
        wrong += problems
    schemas = {each.alias: _nullable(each) for each in inputs}
    return Prepared(tables, schemas, watermarks, expected)


def _nullable(each: InputSlices) -> pa.Schema:
    vocab = each.vocab
    system = (vocab.offset, vocab.operation_type, vocab.system_time, vocab.event_time)
    return optional_schema(each.schema, but=system)


def _absent(vocab: Vocabulary) -> dict[str, str | int]:
    """What system columns hold that a record does not give."""
    return {
        vocab.offset: 0,  # numbered when the records of all steps are known
        vocab.operation_type: OPERATIONS[0],
        vocab.system_time: str(A_TIME),
        vocab.event_time: str(A_TIME),
    }


def _watermark(given: Given, table: pa.Table, vocab: Vocabulary) -> Timestamp | None:
    """What roots promise by default: their latest event time."""
    if given.watermark is not None:
        return Timestamp.parse(given.watermark)
    times = table.column(vocab.event_time).cast(pa.timestamp("ms", "UTC"))
    latest = pc.max(times)
    return Timestamp.from_millis(latest.value) if latest.is_valid else None


def _expected(
    test: UnitTest, number: int, expect: Records, result: InputSlices
) -> tuple[pa.Table | None, list[RecordsError]]:
    vocab, rows = result.vocab, expect.plain
    known = [each for each in result.schema.names if each not in (vocab.offset, vocab.system_time)]
    problems = list(wrong_columns(test, number, ("expect",), expect, known))
    if problems:
        return None, problems
    named = {name.lower() for row in rows for name in row}
    # Without a record, all of what comes unexpected is shown.
    compared = [each for each in known if not rows or each.lower() in named]
    if vocab.operation_type not in compared:
        compared.insert(0, vocab.operation_type)
    schema = pa.schema([result.schema.field(name) for name in compared])
    absent = {vocab.operation_type: OPERATIONS[0]}
    table, unfit = typed(rows, optional_schema(schema), vocab.operation_type, absent)
    return table, list(_told(test, number, ("expect",), expect, unfit))


def _told(
    test: UnitTest, number: int, path: Path, records: Records, unfit: Sequence[Unfit]
) -> Iterator[RecordsError]:
    for each in unfit:
        inside = ("csv",) if records.csv is not None else ("rows", each.row, each.column)
        of = f"record {each.row + 1}, column" if records.csv is not None else "column"
        yield RecordsError(
            f"{of} '{each.column}': {each.why}",
            code="E1246",
            location=test.place_of_step(number, *path, *inside, value=records.csv is None),
            help="write a value of the type of the column; `odfbuild validate` checks names only",
            dataset=test.dataset,
        )


def _unknown(test: UnitTest) -> RecordsError:
    return RecordsError(
        f"the columns of the inputs of '{test.dataset}' are not known",
        code="E1247",
        location=test.place(),
        notes=("a source without a schema has columns when its data was read",),
        help="apply the datasets upstream once, or declare `read.schema` of their sources",
        dataset=test.dataset,
    )
