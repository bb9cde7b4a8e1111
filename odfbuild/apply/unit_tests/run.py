"""Run unit tests: each query over given records, as an apply would run it, in scratch space.

The engine gets the same requests as from `apply`, over Parquet files that are made from the tests.
No chain is read or written, except that schemas of inputs that only data can tell come from there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.apply.queries import Checked, KnownQueries, Subject, check_queries
from odfbuild.apply.unit_tests.difference import Difference, difference
from odfbuild.apply.unit_tests.prepare import A_TIME, Prepared, prepared
from odfbuild.engine.contract import Engine, InputSlices, SliceFile, TransformTask
from odfbuild.engine.release import engine_version
from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.errors import Location, OdfbuildError, together
from odfbuild.odf.chain.step import output_watermark
from odfbuild.odf.model import TransformSql
from odfbuild.odf.records import records_to_data
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.overrides import Overrides
from odfbuild.project.unit_tests import UnitTest
from odfbuild.sql.mode import Choice
from odfbuild.store.disposable import scratch_folder
from odfbuild.survey.definitions import Definitions, read_definitions
from odfbuild.survey.locate import locate
from odfbuild.survey.unit_tests import transform_of, unit_tests_of
from odfbuild.values import Value

_AT_ONCE = 4


class Outcome(Value):
    """What a test showed: `difference` of its first step that failed, whose number is `step`.

    Or the `error` that the query ended with. `choices` tell in which mode each step was computed.
    """

    test: UnitTest
    step: int = 0
    difference: Difference | None = None
    error: OdfbuildError | None = None
    choices: tuple[Choice, ...] = ()

    @property
    def place(self) -> Location:
        """Where the test stands, or its step that failed."""
        failed = not self.passed and self.test.in_steps
        return self.test.place_of_step(self.step) if failed else self.test.place(value=True)

    @property
    def passed(self) -> bool:
        """Whether all came as expected."""
        return not self.difference and self.error is None


def unit_test(
    start: Path | None,
    given: Overrides,
    chosen: Container[str] | None,
    get_engine: Callable[[], Engine],
) -> tuple[Outcome, ...]:
    """Run the unit tests of the chosen datasets (`None`: all) of the project around `start`.

    Raises all that is wrong with definitions and with tests.
    """
    found = read_definitions(start, given)
    tests, wrong = unit_tests_of(found)
    if wrong:
        raise together(wrong)
    names = {each.folded: each.name for each in found.project.definitions}
    tests = [each for each in tests if chosen is None or names[each.dataset.lower()] in chosen]
    return _outcomes(found, tests, get_engine)


def _outcomes(
    found: Definitions, tests: Sequence[UnitTest], get_engine: Callable[[], Engine]
) -> tuple[Outcome, ...]:
    if not tests:
        return ()
    definitions = {each.folded: each for each in found.project.definitions}
    subjects = [definitions[test.dataset.lower()] for test in tests]
    checked = _check(found, {each.name for each in subjects}, get_engine)
    ready = []
    wrong: list[OdfbuildError] = []
    for test, definition in zip(tests, subjects, strict=True):
        steps, errors = prepared(test, definition, checked)
        ready.append(steps)
        wrong += errors
    if wrong:
        raise together(wrong)
    with scratch_folder(found.project.config.cache, "unit-tests") as scratch:

        def run(number: int) -> Outcome:
            transform = transform_of(subjects[number])
            assert transform is not None, "a test of a root is refused"
            name, folder = subjects[number].name, Path(tempfile.mkdtemp(dir=scratch))
            query = _Query(name, transform.transform, checked, get_engine(), folder)
            return _run(found, tests[number], query, ready[number])

        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            return tuple(pool.map(run, range(len(tests))))


def _check(found: Definitions, names: set[str], get_engine: Callable[[], Engine]) -> Checked:
    """Check the queries of datasets and of those upstream, as the project defines them now."""
    by_name = {each.name: each for each in found.project.definitions}
    needed, waiting = set(names), list(names)
    while waiting:
        new = [each for each in found.graph.inputs.get(waiting.pop(), ()) if each in by_name]
        waiting += set(new) - needed
        needed |= set(new)
    subjects = [
        Subject(
            name=name,
            events=by_name[name].snapshot.metadata,
            inputs=found.graph.inputs[name],
            # Committed columns may be others, and the test is about the query at hand.
            fresh=transform_of(by_name[name]) is not None,
        )
        for name in found.graph.order
        if name in needed
    ]
    known = KnownQueries(found.workspace.cache, engine_version())
    checked = check_queries(
        subjects, found.projections, get_engine, known, found.project.config.engines
    )
    if checked.errors:
        raise together(
            [
                each
                for name, error in checked.errors.items()
                for each in locate(found.project, name, error).apart()
            ]
        )
    return checked


def _run(found: Definitions, test: UnitTest, query: _Query, steps: Sequence[Prepared]) -> Outcome:
    choices: list[Choice] = []
    for number, step in enumerate(steps):
        try:
            table, choice = query.step(step)
        except OdfbuildError as error:
            told = locate(found.project, query.name, error)
            return Outcome(test, number, error=told, choices=tuple(choices))
        choices.append(choice)
        if step.expected is None:
            continue
        op = query.result.vocab.operation_type
        columns = step.expected.column_names
        actual = records_to_data(table.select(columns), op)
        differing = difference(columns, op, records_to_data(step.expected, op), actual)
        if differing:
            return Outcome(test, number, differing, choices=tuple(choices))
    return Outcome(test, len(steps) - 1, choices=tuple(choices))


class _Query:
    """A query that is run step by step: what its inputs and its result hold so far."""

    def __init__(
        self, name: str, transform: TransformSql, checked: Checked, engine: Engine, folder: Path
    ) -> None:
        self.name, self.transform, self.engine, self.folder = name, transform, engine, folder
        self.inputs, self.result = checked.inputs[name], checked.results[name]
        self._slices: dict[str, list[SliceFile]] = {each.alias: [] for each in self.inputs}
        self._watermarks: dict[str, Timestamp | None] = {each.alias: None for each in self.inputs}
        self._rows: dict[str, int] = {each.alias: 0 for each in self.inputs}
        self._results: list[Path] = []
        self._records = 0
        self._watermark: Timestamp | None = None

    def step(self, given: Prepared) -> tuple[pa.Table, Choice]:
        """The records that the step adds, and how it was computed."""
        scratch = Path(tempfile.mkdtemp(dir=self.folder))
        inputs = tuple(self._gain(each, given, scratch) for each in self.inputs)
        previous = tuple(self._results)
        result = self.engine.run(
            TransformTask(
                dataset=self.name,
                transform=self.transform,
                inputs=inputs,
                vocab=self.result.vocab,
                scratch=scratch,
                watermark_before=self._watermark,
                previous=lambda: previous,
            )
        )
        assert result.schema is not None, "a transformation has columns"
        schema = dataset_schema(result.schema, self.result.vocab)
        staged = write_slice(
            result,
            dataset=self.name,
            schema=schema,
            vocab=self.result.vocab,
            first_offset=self._records,
            system_time=A_TIME,
            target=scratch / "slice.parquet",
        )
        self._watermark = output_watermark(self._watermark, self._watermarks.values())
        if staged is None:
            return schema.empty_table(), result.choice
        self._records += staged.records
        self._results.append(staged.path)
        return pq.read_table(staged.path), result.choice

    def _gain(self, each: InputSlices, given: Prepared, scratch: Path) -> InputSlices:
        """An input with the records that it gains."""
        alias = each.alias
        earlier, before = tuple(self._slices[alias]), self._watermarks[alias]
        table = given.tables.get(alias)
        first = self._rows[alias]
        new: tuple[SliceFile, ...] = ()
        if table is not None and table.num_rows:
            file = scratch / f"input-{self.inputs.index(each)}.parquet"
            offsets = pa.array(
                range(first, first + table.num_rows), each.schema.field(each.vocab.offset).type
            )
            at = table.schema.get_field_index(each.vocab.offset)
            pq.write_table(table.set_column(at, table.schema.field(at), offsets), file)
            new = (SliceFile(file, before),)
            self._slices[alias] += new
            self._rows[alias] += table.num_rows
        told = given.watermarks.get(alias)
        if told is not None:
            self._watermarks[alias] = told if before is None else max(before, told)
        return InputSlices(
            alias=alias,
            schema=given.schemas[alias],
            vocab=each.vocab,
            slices=new,
            first=first if new else None,
            last=self._rows[alias] - 1 if new else None,
            watermark_before=before,
            watermark=self._watermarks[alias],
            earlier=lambda: earlier,
        )
