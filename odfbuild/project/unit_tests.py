"""Unit tests of queries: `*.test.yaml` files beside the definitions, and what they may hold.

A test gives records of the inputs of a dataset and the records that its query makes of them. What
is said here needs no engine and no chain: `survey.unit_tests` compares tests with definitions.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

from odfbuild.declared_settings import Misfit, document_schema, read, setting
from odfbuild.errors import Location, OdfbuildError, Path, ProjectError, RecordsError
from odfbuild.project.load import unit_test_files
from odfbuild.project.misfits import misfits
from odfbuild.project.model import Config
from odfbuild.project.settings.by_name import Name
from odfbuild.project.source import Source, read_sources
from odfbuild.project.yaml.source import read_documents
from odfbuild.values import Value

Row = Mapping[str, Any]


class Records(Value):
    """Records of an input or a result."""

    rows: tuple[Row, ...] | None = setting(None, "Records by name of column")
    csv: str | None = setting(None, "Records as CSV with a header; an empty field is null")

    @property
    def plain(self) -> tuple[Row, ...]:
        """The records; values of CSV are text."""
        if self.csv is None:
            return self.rows or ()
        return tuple(
            {name: value or None for name, value in row.items() if name is not None}
            for row in csv.DictReader(self.csv.strip().splitlines())
        )


class Given(Records):
    """Records that an input gains in a step, and its watermark after them."""

    watermark: str | None = setting(
        None, "Watermark of the input after these records (default: its latest event time)"
    )


Inputs = Mapping[str, Given]
_GIVEN = "New records by input: its alias in the query, or the name of the dataset"
_EXPECT = "Records that the step adds; only the columns that are named here are compared"


class Step(Value):
    """One run of the query: what the inputs gained since the step before, and what it adds."""

    given: Inputs = setting({}, _GIVEN)
    expect: Records | None = setting(None, _EXPECT)


class Declared(Step, kw_only=True):
    """A test of one step, or of several after each other."""

    name: Name = setting(about="What the test shows, as a sentence")
    description: str | None = setting(None)
    steps: tuple[Step, ...] = setting((), "Several runs after each other, in place of one")


class Content(Value):
    """The tests of one dataset."""

    dataset: Name = setting()
    tests: tuple[Declared, ...] = setting()


class UnitTestsFile(Value):
    """A document of a file of tests."""

    kind: Literal["UnitTests"] = setting()
    version: Literal[1] = setting()
    content: Content = setting()


class UnitTest(Value):
    """A test, and where it is declared: `path` leads to it in a document of `source`."""

    dataset: str
    name: str
    steps: tuple[Step, ...]
    source: Source
    document: int
    path: Path
    in_steps: bool

    def place(self, *path: str | int, value: bool = False) -> Location:
        """Where a value of the test stands; without `path` its name."""
        return self.source.locate(self.document, (*self.path, *(path or ("name",))), value=value)

    def place_of_step(self, number: int, *path: str | int, value: bool = False) -> Location:
        """Where a value of a step stands, whose number counts from 0."""
        steps = ("steps", number) if self.in_steps else ()
        return self.place(*steps, *path, value=value)


def unit_tests_schema() -> dict[str, Any]:
    """The JSON Schema of a file of tests."""
    return document_schema("odfbuild unit tests", UnitTestsFile)


def read_unit_tests(
    config: Config, files: Iterable[str] | None = None
) -> tuple[list[UnitTest], list[OdfbuildError]]:
    """The tests of a project, or of some `files`, in their order, and what is wrong with files."""
    tests: list[UnitTest] = []
    wrong: list[OdfbuildError] = []

    def refuse(path: str, error: OdfbuildError) -> None:
        wrong.append(error.or_at(Location(os.path.relpath(path, config.root))))

    if files is None:
        files = unit_test_files(config.datasets, config.boundary.check_open, refuse)
    for path in files:
        try:
            sources = read_sources(config, os.path.relpath(path, config.root))
        except OdfbuildError as error:
            wrong += error.apart()
            continue
        for source in sources:
            found, errors = _tests_in(source)
            tests += found
            wrong += errors
    wrong += _twins(tests)
    return tests, wrong


def _tests_in(source: Source) -> tuple[list[UnitTest], list[OdfbuildError]]:
    tests: list[UnitTest] = []
    wrong: list[OdfbuildError] = []
    try:
        documents = read_documents(source.text, source.file)
    except ProjectError as error:
        return [], [source.translated(error)]
    for number, data in enumerate(documents):
        if data is None:
            continue
        try:
            content = read(UnitTestsFile, data).content
        except Misfit:
            place = partial(source.locate, number)
            help = "docs/unit-tests.md shows the form of a file of tests"
            wrong += misfits(UnitTestsFile, data, place, help)
            continue
        for index, declared in enumerate(content.tests):
            test = UnitTest(
                content.dataset,
                declared.name,
                declared.steps or (Step(declared.given, declared.expect),),
                source,
                number,
                ("content", "tests", index),
                bool(declared.steps),
            )
            tests.append(test)
            wrong += _contradictions(test, declared)
    return tests, wrong


def _contradictions(test: UnitTest, declared: Declared) -> Iterator[RecordsError]:
    """What is wrong with a test that has the right form."""
    if declared.steps and (declared.given or declared.expect is not None):
        yield RecordsError(
            "a test has either `steps`, or `given` and `expect`",
            code="E1242",
            location=test.place("steps"),
            help="move `given` and `expect` into the first of `steps`",
        )
    for number, step in enumerate(test.steps):
        if step.expect is None and not (test.in_steps and number < len(test.steps) - 1):
            yield RecordsError(
                "nothing is expected",
                code="E1242",
                location=test.place_of_step(number) if test.in_steps else test.place(),
                help="add `expect: {rows: [...]}`; `rows: []` expects that no record is added",
            )
        parts: list[tuple[Path, Records]] = [(("given", k), v) for k, v in step.given.items()]
        parts += [(("expect",), step.expect)] if step.expect is not None else []
        for path, records in parts:
            both = records.rows is not None and records.csv is not None
            neither = records.rows is None and records.csv is None
            only_time = isinstance(records, Given) and records.watermark is not None
            if both or (neither and not only_time):
                yield RecordsError(
                    "records are given twice, as `rows` and as `csv`"
                    if both
                    else "no records are given",
                    code="E1242",
                    location=test.place_of_step(number, *path),
                    help="write either `rows:` or `csv:`; `rows: []` means no records",
                )


def _twins(tests: Iterable[UnitTest]) -> Iterator[RecordsError]:
    first: dict[tuple[str, str], UnitTest] = {}
    for test in tests:
        other = first.setdefault((test.dataset.lower(), test.name), test)
        if other is not test:
            yield RecordsError(
                f"'{test.dataset}' has two tests called '{test.name}'",
                code="E1243",
                location=test.place(value=True),
                notes=(f"the first one is at {other.place(value=True)}",),
                help="give one of them another name",
            )
