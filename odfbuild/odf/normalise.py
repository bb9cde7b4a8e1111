"""Bring a definition into the form in which a chain holds its events.

A single `query` becomes a list of one query, and inputs get the alias under which queries see them.
Also what a definition may not contain. Source: metadata reference, `Transform`, `TransformInput`;
reference behaviour, snapshot normalisation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from odfbuild.odf.model import (
    AddPushSource,
    DatasetKind,
    DatasetSnapshot,
    MetadataEvent,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
    SetPollingSource,
    SetTransform,
    SetVocab,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)

_ANY_KIND = (SetInfo, SetLicense, SetAttachments, SetVocab, SetDataSchema)
_ALLOWED: dict[DatasetKind, tuple[type, ...]] = {
    DatasetKind.Root: (SetPollingSource, AddPushSource, *_ANY_KIND),
    DatasetKind.Derivative: (SetTransform, *_ANY_KIND),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a definition may not contain: the path to it, why, and the way out."""

    path: tuple[str | int, ...]
    message: str
    help: str | None = None


class InvalidSnapshot(ValueError):
    """A definition that cannot become a chain, with all its problems."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in problems))


def normalise_snapshot(snapshot: DatasetSnapshot) -> DatasetSnapshot:
    """`snapshot` in normal form (itself if it is); raises `InvalidSnapshot` with all problems."""
    problems: list[Problem] = []
    events = []
    changed = False
    for index, event in enumerate(snapshot.metadata):
        path = ("metadata", index)
        if not isinstance(event, _ALLOWED[snapshot.kind]):
            problems.append(_misplaced(snapshot.kind, event, path))
        normal = _normalise_event(event, lambda p, at=path: problems.append(_below(at, p)))
        changed = changed or normal is not event
        events.append(normal)
    if problems:
        raise InvalidSnapshot(problems)
    return replace(snapshot, metadata=tuple(events)) if changed else snapshot


def _below(path: tuple[str | int, ...], problem: Problem) -> Problem:
    return replace(problem, path=(*path, *problem.path))


def _misplaced(
    kind: DatasetKind, event: MetadataEvent, path: tuple[str | int, ...]
) -> Problem:
    name = type(event).__name__
    message = f"{name} cannot be part of the definition of a {kind.name.lower()} dataset"
    if isinstance(event, SetTransform):
        help_ = "set `kind: Derivative`, or remove it"
    elif isinstance(event, SetPollingSource | AddPushSource):
        help_ = "set `kind: Root`, or remove it"
    else:
        help_ = "remove it: such events are written when the dataset is built"
    return Problem((*path, "kind"), message, help_)


def _normalise_event(event: MetadataEvent, report: Callable[[Problem], None]) -> MetadataEvent:
    if isinstance(event, SetTransform):
        return _normalise_transform(event, report)
    if isinstance(event, SetPollingSource | AddPushSource):
        if event.read.schema is not None and event.read.ddl_schema is not None:
            report(
                Problem(("read", "ddlSchema"), "both `schema` and `ddlSchema` are given",
                        "keep one of them")
            )
        if event.preprocess is not None:
            normal = _normalise_queries(event.preprocess, ("preprocess",), report)
            if normal is not event.preprocess:
                return replace(event, preprocess=normal)
    return event


def _normalise_transform(event: SetTransform, report: Callable[[Problem], None]) -> SetTransform:
    if not event.inputs:
        report(Problem(("inputs",), "a transformation needs at least one input", "add an input"))
    inputs = tuple(
        i if i.alias is not None else TransformInput(dataset_ref=i.dataset_ref, alias=str(i.dataset_ref))
        for i in event.inputs
    )
    seen: set[str] = set()
    for index, item in enumerate(inputs):
        alias = str(item.alias).lower()
        if alias in seen:
            report(
                Problem(("inputs", index), f"two inputs are called '{item.alias}'",
                        "give one of them another `alias`")
            )
        seen.add(alias)
    transform = _normalise_queries(event.transform, ("transform",), report)
    if inputs == event.inputs and transform is event.transform:
        return event
    return replace(event, inputs=inputs, transform=transform)


def _normalise_queries(
    transform: TransformSql, path: tuple[str | int, ...], report: Callable[[Problem], None]
) -> TransformSql:
    if transform.query is not None and transform.queries is not None:
        report(Problem((*path, "query"), "both `query` and `queries` are given", "keep one of them"))
        return transform
    if transform.query is not None:
        step = SqlQueryStep(query=transform.query)
        return replace(transform, query=None, queries=(step,))
    if not transform.queries:
        report(Problem(path, "there is no query", "add `query:` with the SQL"))
        return transform
    *steps, last = transform.queries
    for index, each in enumerate(steps):
        if each.alias is None:
            report(
                Problem((*path, "queries", index), "only the last query may be without `alias`",
                        "give it an alias, under which later queries see its result")
            )
    if last.alias is not None:
        report(
            Problem((*path, "queries", len(steps), "alias"),
                    "the last query is the result and has no `alias`",
                    "remove the alias, or add a query without one")
        )
    return transform
