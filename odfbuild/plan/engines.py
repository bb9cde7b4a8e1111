"""Check whether the queries of a definition can run, by their engine and text.

Queries of other engines are translated where `engines` of odfbuild.yaml says that Spark stands in
for them; otherwise they are refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from odfbuild.errors import Errors, OdfbuildError, QueryError
from odfbuild.odf.model import (
    AddPushSource,
    DatasetSnapshot,
    MetadataEvent,
    SetPollingSource,
    SetTransform,
    TransformSql,
)
from odfbuild.odf.queries import queries_of
from odfbuild.plan.model import DatasetPlan
from odfbuild.plan.places import Path, Place, path_of, placed
from odfbuild.sql.mode import BY_CHECKPOINT
from odfbuild.sql.translate.named import Engines, remote_of
from odfbuild.sql.translate.runnable import FOREIGN, if_runnable, is_spark, runnable


def refused_queries(
    snapshot: DatasetSnapshot, engines: Engines, place: Place
) -> tuple[OdfbuildError, ...]:
    """E0513 for engines that nothing stands in for, E0519 for what cannot be translated."""
    foreign = [
        each
        for each in queries_of(snapshot)
        if not is_spark(each[1]) and remote_of(each[1], engines) is None
    ]
    return tuple(
        error
        for event, transform in foreign
        for error in _refused(
            str(snapshot.name), _path_of_query(snapshot, event), transform, engines, place
        )
    )


def translation_of(dataset: DatasetPlan) -> TransformSql | None:
    """The Spark SQL that runs for the query that a plan commits; `None` where it is that.

    Also where a program that is an engine runs the query as it is.
    """
    if dataset.mode == BY_CHECKPOINT:
        return None
    for change in dataset.changes:
        event = change.after
        ours = event.transform if isinstance(event, SetTransform) else None
        if isinstance(event, SetPollingSource | AddPushSource):
            ours = event.preprocess
        if ours is not None and not is_spark(ours):
            return if_runnable(ours)
    return None


def first_of(errors: tuple[OdfbuildError, ...]) -> OdfbuildError | None:
    """The first error with the others as notes; `None` when there is none."""
    if not errors:
        return None
    first, *others = errors
    places = [f"{each.location}: " if each.location else "" for each in others]
    notes = (f"also {place}{each.message}" for place, each in zip(places, others, strict=True))
    return first.noted(*notes)


def _path_of_query(snapshot: DatasetSnapshot, event: MetadataEvent) -> Path:
    """The path below `content` to the query of an event."""
    key = "transform" if isinstance(event, SetTransform) else "preprocess"
    return (*path_of(snapshot, event), key)


def _refused(
    name: str, path: Path, transform: TransformSql, engines: Engines, place: Place
) -> Iterator[OdfbuildError]:
    engine = transform.engine.lower()
    if engine not in engines:
        mapped = f"`engines: {{{engine}: spark}}` in odfbuild.yaml lets Spark translate it, or "
        yield QueryError(
            f"engine '{transform.engine}' is not available here",
            code="E0513",
            dataset=name,
            location=place.of((*path, "engine")),
            help=f"{mapped if engine in FOREIGN else ''}name a program that is this engine in "
            "`engines` (docs/engines.md), or set `engine: spark` and write the query in Spark SQL",
        )
        return
    try:
        runnable(transform, name)
    except (Errors, QueryError) as error:
        for each in error.apart():
            yield each.at(placed(each.location, path, place))
