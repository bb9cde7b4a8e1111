"""What is wrong with `personal` of odfbuild.yaml, by definitions and the columns of datasets.

A column of a derivative that is made from a personal one is personal there, too, or the project
says that it may be shown. Where a query is not understood, every column counts. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from odfbuild.errors import InSettings, PersonalDataError
from odfbuild.odf.model import (
    AddPushSource,
    SetPollingSource,
    SetTransform,
)
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.project.model import Definition
from odfbuild.project.settings.by_name import matching
from odfbuild.project.settings.personal import PersonalEntry, disclosed, subjects_of
from odfbuild.sql.lineage import Lineage
from odfbuild.sql.translate.named import Engines, remote_of

ALL = "*"
"""In `disclose`: every column, where a query is not understood."""
_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_TEXT = ("string", "large_string", "string_view")


def idle_columns(
    entries: Sequence[PersonalEntry], datasets: Sequence[str], known: KnownColumns
) -> Iterator[PersonalDataError]:
    """Columns that none of the datasets of their entry has, where all are known."""
    for number, entry in enumerate(entries):
        relations = [known.relation(e) for e in datasets if matching(entry, e) is not None]
        names = {each.name for relation in relations for each in relation or ()}
        if not relations or None in relations:
            continue
        for key, columns in (("columns", entry.columns), ("disclose", entry.disclose)):
            for at, column in enumerate(columns):
                if column not in names and column != ALL:
                    yield PersonalDataError(
                        f"no dataset of this entry has a column '{column}'",
                        code="E1601",
                        location=InSettings.of("personal", number, key, at),
                        notes=(f"their columns are: {', '.join(sorted(names))}",),
                        help="correct the name, or remove it",
                    )


def wrong_columns(
    definition: Definition,
    entries: Sequence[PersonalEntry],
    known: KnownColumns,
    lineages: Lineages,
    engines: Engines,
) -> Iterator[PersonalDataError]:
    """What is wrong with the personal columns of a dataset, and with what it makes of others'."""
    subjects = subjects_of(entries, definition.name)
    yield from _wrong_types(definition.name, subjects, entries, known)
    for event in definition.snapshot.metadata:
        if isinstance(event, SetPollingSource | AddPushSource):
            yield from _wrong_keys(definition.name, subjects, entries, event)
        elif isinstance(event, SetTransform):
            yield from _disclosing(definition.name, subjects, entries, event, known, lineages)
            if remote_of(event.transform, engines) is not None and (
                subjects or _personal_of(entries, event, known)
            ):
                yield PersonalDataError(
                    f"'{definition.name}' has or reads personal columns, and a program beside "
                    f"odfbuild computes it: '{event.transform.engine}'",
                    code="E1608",
                    dataset=definition.name,
                    location=_place(entries, definition.name),
                    notes=("plain values do not leave odfbuild and its Spark",),
                    help="write the query for the engine `spark`",
                )


def _wrong_types(
    dataset: str,
    subjects: dict[str, str],
    entries: Sequence[PersonalEntry],
    known: KnownColumns,
) -> Iterator[PersonalDataError]:
    relation = known.relation(dataset)
    types = {each.name: each.type for each in relation or ()}
    for column, subject in subjects.items() if relation is not None else ():
        if column not in types:
            continue
        if subject not in types:
            yield PersonalDataError(
                f"'{dataset}' has no column '{subject}', which names the subject of '{column}'",
                code="E1602",
                dataset=dataset,
                location=_place(entries, dataset, column),
                notes=(f"its columns are: {', '.join(types)}",),
                help="add the column to the query or source, or correct `subject`",
            )
        for name, right, role in (
            (column, _TEXT, "personal"),
            (subject, (*_TEXT, *_WHOLE), "the subject of a personal one"),
        ):
            kind = types.get(name)
            if kind is not None and str(kind) not in right:
                yield PersonalDataError(
                    f"column '{name}' of '{dataset}' is of type {kind} and cannot be {role}",
                    code="E1603",
                    dataset=dataset,
                    location=_place(entries, dataset, column),
                    notes=("a personal column is text; a subject is text or a whole number",),
                    help=f"cast it in `preprocess` or in the query: CAST({name} AS STRING)",
                )


def _wrong_keys(
    dataset: str,
    subjects: dict[str, str],
    entries: Sequence[PersonalEntry],
    event: SetPollingSource | AddPushSource,
) -> Iterator[PersonalDataError]:
    merge = event.merge
    for column in merge.key:
        if column in subjects:
            yield PersonalDataError(
                f"'{column}' is part of the primary key of '{dataset}' and cannot be personal",
                code="E1611",
                dataset=dataset,
                location=_place(entries, dataset, column),
                notes=("records are found and ordered by their keys",),
                help="use a number or a random text as the key, and keep this column beside it",
            )
    compared: Sequence[str] = getattr(merge, "compare_columns", None) or ()
    for column in compared:
        subject = subjects.get(column)
        if subject is not None and subject not in (*compared, *merge.key):
            yield PersonalDataError(
                f"`compareColumns` of '{dataset}' have '{column}' and not its subject '{subject}'",
                code="E1611",
                dataset=dataset,
                location=_place(entries, dataset, column),
                notes=("the same value of another subject is encrypted by another key",),
                help=f"add '{subject}' to `compareColumns`",
            )


def _personal_of(
    entries: Sequence[PersonalEntry], event: SetTransform, known: KnownColumns
) -> dict[tuple[str, str], str]:
    """The personal columns that a transformation can read: by alias and name in lower case."""
    found = {}
    for each in event.inputs:
        name = known.name_of(str(each.dataset_ref))
        alias = each.alias or str(each.dataset_ref)
        for column in subjects_of(entries, name):
            found[alias.lower(), column.lower()] = f"{name}.{column}"
    return found


def _disclosing(
    dataset: str,
    subjects: dict[str, str],
    entries: Sequence[PersonalEntry],
    event: SetTransform,
    known: KnownColumns,
    lineages: Lineages,
) -> Iterator[PersonalDataError]:
    """Columns that are made from personal ones, and are neither personal nor disclosed."""
    personal = _personal_of(entries, event, known)
    allowed = disclosed(entries, dataset) | {each.lower() for each in subjects}
    if not personal or ALL in allowed:
        return
    relations = {
        each.alias or str(each.dataset_ref): known.relation(str(each.dataset_ref))
        for each in event.inputs
    }
    names = {
        alias: None if columns is None else tuple(each.name for each in columns)
        for alias, columns in relations.items()
    }
    lineage = lineages.of(event.transform, names)
    if lineage is None:
        yield from _not_followed(dataset, allowed, entries, known, personal)
        return
    for column, sources in _made_of(lineage, personal).items():
        if column not in allowed:
            yield PersonalDataError(
                f"column '{column}' of '{dataset}' is made from personal values: "
                f"{', '.join(sources)} → {dataset}.{column}",
                code="E1610",
                dataset=dataset,
                location=_place(entries, dataset),
                notes=("it would be committed as plain text",),
                help=f"in `personal` of odfbuild.yaml, add it to `columns` of '{dataset}' with "
                f"its subject, or to `disclose: [{column}]` if it tells nothing about a person",
            )


def _made_of(lineage: Lineage, personal: dict[tuple[str, str], str]) -> dict[str, tuple[str, ...]]:
    found = {}
    for column, origins in lineage.columns.items():
        sources = {personal.get((alias.lower(), name.lower())) for alias, name, _ in origins}
        if sources - {None}:
            found[column.lower()] = tuple(sorted(each for each in sources if each is not None))
    return found


def _not_followed(
    dataset: str,
    allowed: frozenset[str],
    entries: Sequence[PersonalEntry],
    known: KnownColumns,
    personal: dict[tuple[str, str], str],
) -> Iterator[PersonalDataError]:
    names = known.names(dataset)
    vocab = known.vocabulary(dataset)
    left = [e for e in names or () if e.lower() not in allowed and e != vocab.event_time]
    if names is not None and not left:
        return
    yield PersonalDataError(
        f"nobody can tell which columns of '{dataset}' are made from personal values, so all count",
        code="E1610",
        dataset=dataset,
        location=_place(entries, dataset),
        notes=(
            f"it reads {', '.join(sorted({*personal.values()}))}, and its query cannot be followed",
            f"in question: {', '.join(left) if names is not None else 'all columns'}",
        ),
        help=f"in `personal` of odfbuild.yaml, add them for '{dataset}' to `columns` or to "
        f'`disclose` (`disclose: ["{ALL}"]` for all), or write a simpler query',
    )


def _place(entries: Sequence[PersonalEntry], dataset: str, column: str | None = None) -> InSettings:
    """The last entry about a dataset, and a column of it; all of `personal` where there is none."""
    for number in range(len(entries) - 1, -1, -1):
        about = matching(entries[number], dataset) is not None
        if about and (column is None or column in entries[number].columns):
            return InSettings.of("personal", number)
    return InSettings.of("personal")
