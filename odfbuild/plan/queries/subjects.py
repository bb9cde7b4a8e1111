"""The queries of a definition, with the context for checking their text."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

from odfbuild.errors import IngestError, OdfbuildError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    AddPushSource,
    DatasetSnapshot,
    MetadataEvent,
    SetPollingSource,
    SetTransform,
    TransformSql,
)
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.plan.columns.evolution import result_of_source, source_columns
from odfbuild.plan.places import Path, Place, path_of, placed
from odfbuild.project.model import Definition
from odfbuild.sql.columns.of_query import Columns
from odfbuild.sql.translate.named import Engines, remote_of
from odfbuild.sql.translate.runnable import is_spark
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

Shaping = SetTransform | SetPollingSource | AddPushSource
"""Events that say which columns a dataset has."""


class Subject(Value, kw_only=True):
    """A query or source to check, and what it reads.

    `transform` is `None` where there is nothing to translate or nothing for Spark. `inputs` are the
    columns of its inputs by alias (`None`: not known), `vocab` names the system columns.
    """

    dataset: str
    event: Shaping
    transform: TransformSql | None
    inputs: Mapping[str, Columns | None]
    vocab: Vocabulary


def subjects_of(
    dataset: str,
    events: Iterable[MetadataEvent | None],
    relation: Callable[[str], Columns | None],
    vocab: Vocabulary,
    engines: Engines,
) -> Iterator[Subject]:
    """What there is to check in the events of a dataset; `relation` gives columns by reference.

    Queries for other engines are checked when they are translated, or by the engine itself.
    """
    for event in events:
        inputs: dict[str, Columns | None] = {}
        transform: TransformSql | None
        if isinstance(event, SetTransform):
            transform = event.transform
        elif isinstance(event, SetPollingSource | AddPushSource):
            transform = event.preprocess
        else:
            continue
        if transform is not None and (not is_spark(transform) or remote_of(transform, engines)):
            transform = None
        if isinstance(event, SetTransform) and transform is not None:
            for each in event.inputs:
                inputs[each.alias or str(each.dataset_ref)] = relation(str(each.dataset_ref))
        elif not isinstance(event, SetTransform):
            inputs["input"] = source_columns(event.read)
        yield Subject(dataset=dataset, event=event, transform=transform, inputs=inputs, vocab=vocab)


def texts_in(events: Iterable[MetadataEvent | None]) -> Iterator[str]:
    """The texts of all queries of a dataset."""
    for event in events:
        if isinstance(event, SetTransform):
            transform: TransformSql | None = event.transform
        elif isinstance(event, SetPollingSource | AddPushSource):
            transform = event.preprocess
        else:
            continue
        if transform is not None:
            yield from (step.query for step in transform.queries or ())


def accepted_texts(
    definition: Definition, state: Projection | None, accepted: Container[str]
) -> frozenset[str]:
    """The texts of its queries that an engine accepted: `accepted` ones, and those of its chain."""
    committed: Iterable[MetadataEvent | None] = ()
    if state is not None:
        committed = (state.transform, state.polling_source, *state.push_sources.values())
    known = {*texts_in(committed)}
    texts = texts_in(definition.snapshot.metadata)
    return frozenset(text for text in texts if text in known or text in accepted)


def errors_in(
    snapshot: DatasetSnapshot,
    subjects: Iterable[Subject],
    place: Place,
    accepted: Container[str],
) -> tuple[OdfbuildError, ...]:
    """All that is certainly wrong, with places in the project's files.

    `accepted` are texts of queries that an engine accepted, whether they are understood or not.
    """
    from odfbuild.sql.check.check import errors_of

    found: list[OdfbuildError] = []
    for subject in subjects:
        path = path_of(snapshot, subject.event)
        if subject.transform is not None:
            key = "transform" if isinstance(subject.event, SetTransform) else "preprocess"
            vocab = subject.vocab if key == "transform" else None
            wrong_parts = errors_of(
                subject.transform, subject.inputs, vocab, subject.dataset, accepted=accepted
            )
            for error in wrong_parts:
                found.append(error.at(placed(error.location, (*path, key), place)))
        if not isinstance(subject.event, SetTransform):
            for inside, wrong in unknown_keys(subject.event, subject.dataset, subject.vocab):
                found.append(wrong.at(place.of((*path, *inside))))
    return tuple(found)


# --- Keys of merge strategies ---


def unknown_keys(
    event: SetPollingSource | AddPushSource, dataset: str, vocab: Vocabulary
) -> Iterator[tuple[Path, IngestError]]:
    """An error for each such column, with its path in the event."""
    merge = event.merge
    result = result_of_source(event, meanings=False) if merge.key else None
    if result is None:
        return
    names = [column.name for column in result.columns]
    system = (vocab.offset, vocab.operation_type, vocab.system_time)
    # The event time may come from elsewhere; names of system columns get an underscore.
    known = [*names, vocab.event_time, *(f"_{name}" for name in names if name in system)]
    compared: Sequence[str] = getattr(merge, "compare_columns", None) or ()
    for role, listed in (("primaryKey", merge.key), ("compareColumns", compared)):
        for number, name in enumerate(listed):
            if name not in known:
                error = IngestError(
                    f"`merge.{role}` names the column '{name}', which the source does not have",
                    code="E0430",
                    dataset=dataset,
                    notes=(f"its columns are: {', '.join(names)}",),
                    help=did_you_mean(name, known, f"correct `merge.{role}`"),
                )
                yield ("merge", role, number), error
