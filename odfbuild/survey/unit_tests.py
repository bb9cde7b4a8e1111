"""The unit tests of a project, compared with its definitions; no engine is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from odfbuild.errors import OdfbuildError, Path, RecordsError
from odfbuild.odf.model import SetTransform, TransformInput
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.project.model import Definition
from odfbuild.project.unit_tests import Given, Records, UnitTest, read_unit_tests
from odfbuild.survey.definitions import Definitions
from odfbuild.wording import did_you_mean, named

Columns = Sequence[str] | None
"""Names of columns; `None` where they are not known."""


def unit_tests_of(
    found: Definitions, files: Sequence[str] | None = None
) -> tuple[list[UnitTest], list[OdfbuildError]]:
    """All unit tests in order of their files, and all that is wrong with them.

    Or those of some `files`, by their absolute paths.
    """
    tests, wrong = read_unit_tests(found.project.config, files)
    if not tests:
        return tests, wrong
    known = found.columns()
    definitions = {each.folded: each for each in found.project.definitions}
    faulty = {name.lower() for name in found.wrong}
    for test in tests:
        definition = definitions.get(test.dataset.lower())
        if definition is None and (test.dataset.lower() in faulty or not found.all_are_known):
            continue  # what is wrong with the definition is told elsewhere
        if definition is None:
            wrong.append(_no_dataset(test, [each.name for each in found.project.definitions]))
        elif (transform := transform_of(definition)) is None:
            wrong.append(_no_query(test))
        else:
            wrong += _wrong(test, definition, transform, known)
    return tests, wrong


def transform_of(definition: Definition) -> SetTransform | None:
    """What a definition derives its dataset with; `None` for a root."""
    events = reversed(definition.snapshot.metadata)
    return next((each for each in events if isinstance(each, SetTransform)), None)


def input_of(transform: SetTransform, name: str) -> TransformInput | None:
    """The input that a test calls `name`: by its alias in the query, or by its dataset."""
    folded = name.lower()
    for each in transform.inputs:
        if folded in (alias_of(each).lower(), str(each.dataset_ref).lower()):
            return each
    return None


def alias_of(each: TransformInput) -> str:
    """What queries call an input."""
    return each.alias or str(each.dataset_ref)


def wrong_columns(
    test: UnitTest, step: int, path: Path, records: Records, columns: Columns
) -> Iterator[RecordsError]:
    """Columns that records at `path` of a step name, and that there are not."""
    if columns is None:
        return
    known = {each.lower() for each in columns}
    for number, row in enumerate(records.plain):
        for name in row:
            if name.lower() in known:
                continue
            known.add(name.lower())  # said once
            inside = ("csv",) if records.csv is not None else ("rows", number, name)
            of = f"the input '{path[-1]}'" if path[0] == "given" else "the result"
            yield RecordsError(
                f"{of} has no column '{name}'",
                code="E1245",
                location=test.place_of_step(step, *path, *inside),
                help=did_you_mean(name, columns, f"its columns are {named(columns)}"),
                dataset=test.dataset,
            )


def _wrong(
    test: UnitTest, definition: Definition, transform: SetTransform, known: KnownColumns
) -> Iterator[RecordsError]:
    for number, step in enumerate(test.steps):
        seen: set[str] = set()
        for name, given in step.given.items():
            declared = input_of(transform, name)
            if declared is None or alias_of(declared) in seen:
                yield _no_input(test, number, name, transform, again=declared is not None)
                continue
            seen.add(alias_of(declared))
            yield from _wrong_watermark(test, number, name, given)
            columns = _givable(known, str(declared.dataset_ref))
            yield from wrong_columns(test, number, ("given", name), given, columns)
        if step.expect is not None:
            result = known.names(definition.name)
            op = known.vocabulary(definition.name).operation_type
            expected = None if result is None else (*result, op)
            yield from wrong_columns(test, number, ("expect",), step.expect, expected)


def _givable(known: KnownColumns, dataset: str) -> Columns:
    columns = known.relation(dataset)
    if columns is None:
        return None
    return givable([each.name for each in columns], known.vocabulary(dataset))


def givable(columns: Sequence[str], vocabulary: Vocabulary) -> list[str]:
    """The columns of an input that a test may give: offsets follow from the order of records."""
    return [each for each in columns if each != vocabulary.offset]


def _wrong_watermark(
    test: UnitTest, number: int, name: str, given: Given
) -> Iterator[RecordsError]:
    try:
        Timestamp.parse(given.watermark or "2000-01-01T00:00:00Z")
    except ValueError:
        yield RecordsError(
            f"'{given.watermark}' is not a time",
            code="E1244",
            location=test.place_of_step(number, "given", name, "watermark", value=True),
            help="write it like 2013-01-02T00:00:00Z",
            dataset=test.dataset,
        )


def _no_dataset(test: UnitTest, names: Sequence[str]) -> RecordsError:
    return RecordsError(
        f"no dataset '{test.dataset}' is defined",
        code="E1240",
        location=test.source.locate(test.document, ("content", "dataset"), value=True),
        help=did_you_mean(test.dataset, names, "`odfbuild ls` lists the datasets"),
    )


def _no_query(test: UnitTest) -> RecordsError:
    return RecordsError(
        f"'{test.dataset}' is a root dataset and has no query over other datasets",
        code="E1240",
        location=test.source.locate(test.document, ("content", "dataset"), value=True),
        help="unit tests are about derivatives; `checks` in odfbuild.yaml are about any records",
        dataset=test.dataset,
    )


def _no_input(
    test: UnitTest, number: int, name: str, transform: SetTransform, *, again: bool
) -> RecordsError:
    known = [alias_of(each) for each in transform.inputs]
    known += [str(each.dataset_ref) for each in transform.inputs]
    return RecordsError(
        f"the input '{name}' is given twice" if again else f"the query has no input '{name}'",
        code="E1241",
        location=test.place_of_step(number, "given", name),
        help="give all its records under one name"
        if again
        else did_you_mean(name, known, f"its inputs are {named(list(dict.fromkeys(known)))}"),
        dataset=test.dataset,
    )
