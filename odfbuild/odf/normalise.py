"""Bring a definition into the form in which it is committed, and check what a chain would refuse.

A single `query` becomes `queries`, the alias of an input defaults to the text of its reference, and
every event must suit the kind of the dataset. All problems of a definition are found at once, each
with its path. Resolves no names. Runs for every definition on every plan, so what is in normal form
already is returned as it is. Source: reference behaviour, "snapshot normalisation".
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DataSchema,
    DatasetKind,
    DatasetSnapshot,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    FetchStepEthereumLogs,
    MetadataEvent,
    ReadStep,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SqlQueryStep,
    Transform,
    TransformInput,
)
from odfbuild.values import Value

Path = tuple[str | int, ...]


class Problem(Value):
    """What is wrong at `path` within the snapshot (YAML names), and the way out.

    `code` is that of the chain's rule that would be broken, if there is one.
    """

    path: Path
    message: str
    help: str
    code: str = "E0108"


class SnapshotErrors(ValueError):
    """Everything that is wrong with one definition."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in self.problems))


def normalise_snapshot(snapshot: DatasetSnapshot) -> DatasetSnapshot:
    """The definition in normal form: the same object when it is in it already.

    Raises `SnapshotErrors` with every `Problem`.
    """
    problems: list[Problem] = []
    events: list[MetadataEvent] = []
    is_normal = True
    for index, event in enumerate(snapshot.metadata):
        path: Path = ("metadata", index)
        if not _suits(snapshot.kind, event, path, problems):
            continue
        normal = _normalise_event(event, path, problems)
        is_normal = is_normal and normal is event
        events.append(normal)
    if problems:
        raise SnapshotErrors(problems)
    return snapshot if is_normal else replace(snapshot, metadata=tuple(events))


_NEVER = {
    Seed: "a Seed is generated when the dataset is created",
    AddData: "records are added by `apply`",
    ExecuteTransform: "transformations are performed by `apply`",
    DisablePollingSource: "a definition says what is, not what ends",
    DisablePushSource: "a definition says what is, not what ends",
}


def _suits(kind: DatasetKind, event: MetadataEvent, path: Path, problems: list[Problem]) -> bool:
    name = event.KIND
    reason = _NEVER.get(type(event))
    if reason is not None:
        problems.append(
            Problem(
                (*path, "kind"), f"{name} cannot be part of a definition", f"remove it: {reason}"
            )
        )
        return False
    if kind is DatasetKind.Root and isinstance(event, SetTransform):
        problems.append(
            Problem(
                (*path, "kind"),
                "a root dataset has no SetTransform",
                "make it a derivative dataset (`kind: Derivative`), or transform records while "
                "they are ingested with `preprocess` of the source",
            )
        )
        return False
    if kind is DatasetKind.Derivative and isinstance(event, SetPollingSource | AddPushSource):
        problems.append(
            Problem(
                (*path, "kind"),
                f"a derivative dataset has no {name}",
                "make it a root dataset (`kind: Root`), or take the records from another dataset "
                "with SetTransform",
            )
        )
        return False
    return True


def _normalise_event(event: MetadataEvent, path: Path, problems: list[Problem]) -> MetadataEvent:
    match event:
        case SetTransform():
            inputs = _normalise_inputs(event.inputs, (*path, "inputs"), problems)
            transform = _normalise_transform(event.transform, (*path, "transform"), problems)
            if inputs is event.inputs and transform is event.transform:
                return event
            return replace(event, inputs=inputs, transform=transform)
        case SetPollingSource() | AddPushSource():
            _check_read(event.read, (*path, "read"), problems)
            fetch = event.fetch if isinstance(event, SetPollingSource) else None
            if isinstance(fetch, FetchStepEthereumLogs) and not (
                fetch.chain_id is not None or fetch.node_url is not None
            ):
                problems.append(
                    Problem(
                        (*path, "fetch"),
                        "an EthereumLogs source needs a node to ask",
                        "give `nodeUrl` or `chainId`",
                        "E0644",
                    )
                )
            if event.preprocess is None:
                return event
            preprocess = _normalise_transform(event.preprocess, (*path, "preprocess"), problems)
            return (
                event if preprocess is event.preprocess else replace(event, preprocess=preprocess)
            )
        case SetDataSchema() if (event.raw_arrow_schema is None) == (event.schema is None):
            problems.append(
                Problem(
                    path,
                    "SetDataSchema needs exactly one of `schema` and `rawArrowSchema`",
                    "give the columns under `schema`",
                )
            )
        case SetDataSchema():
            _check_schema(event.schema, path, problems)
    return event


def _check_read(read: ReadStep, path: Path, problems: list[Problem]) -> None:
    if read.schema is not None and read.ddl_schema is not None:
        problems.append(
            Problem(
                (*path, "ddlSchema"),
                "both `schema` and `ddlSchema` are given",
                "keep one of the two",
                "E0645",
            )
        )
    _check_schema(read.schema, path, problems)


def _check_schema(schema: DataSchema | None, path: Path, problems: list[Problem]) -> None:
    if schema is None:
        return
    from odfbuild.odf.schema.arrow_encoding import unfit_encodings

    help_ = "remove that attribute, or declare the column with a type that has it"
    problems += [
        Problem((*path, "schema", *place), message, help_, "E0532")
        for place, message in unfit_encodings(schema)
    ]


def _normalise_inputs(
    inputs: tuple[TransformInput, ...], path: Path, problems: list[Problem]
) -> tuple[TransformInput, ...]:
    if not inputs:
        problems.append(
            Problem(path, "a transform needs at least one input", "list its inputs", "E0651")
        )
        return inputs
    if len(inputs) > 1 and len({each.dataset_ref for each in inputs}) < len(inputs):
        seen = set()
        for index, each in enumerate(inputs):
            if each.dataset_ref in seen:
                problems.append(
                    Problem(
                        (*path, index, "datasetRef"),
                        f"the input '{each.dataset_ref}' is listed twice",
                        "list it once; a query may use it as often as it likes",
                        "E0654",
                    )
                )
            seen.add(each.dataset_ref)
    if any(each.alias is None for each in inputs):
        inputs = tuple(
            replace(each, alias=str(each.dataset_ref)) if each.alias is None else each
            for each in inputs
        )
    return inputs


def _normalise_transform(transform: Transform, path: Path, problems: list[Problem]) -> Transform:
    if transform.query is not None:
        if transform.queries is not None:
            problems.append(
                Problem(
                    (*path, "query"),
                    "both `query` and `queries` are given",
                    "keep one of the two; the last of `queries`, without alias, is the result",
                    "E0640",
                )
            )
            return transform
        return replace(
            transform, query=None, queries=(SqlQueryStep(alias=None, query=transform.query),)
        )
    if not transform.queries:
        problems.append(
            Problem(
                path if transform.queries is None else (*path, "queries"),
                "a transform needs a query",
                "give it as `query`, as a list of steps in `queries`, or in a file called as the "
                "one of the definition, with `.sql` for `.yaml`",
                "E0641",
            )
        )
        return transform
    _check_steps(transform.queries, (*path, "queries"), problems)
    return transform


def _check_steps(steps: tuple[SqlQueryStep, ...], path: Path, problems: list[Problem]) -> None:
    last = len(steps) - 1
    if steps[last].alias is not None:
        problems.append(
            Problem(
                (*path, last, "alias"),
                f"the last query has an alias, '{steps[last].alias}', but it is the result",
                "remove the alias, or add the query that uses it",
                "E0642",
            )
        )
    for index, step in enumerate(steps[:last]):
        if step.alias is None:
            problems.append(
                Problem(
                    (*path, index),
                    "a query without alias is not used: only the last one is the result",
                    "give it an `alias`, by which later queries refer to it",
                    "E0643",
                )
            )
