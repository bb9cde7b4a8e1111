"""Steps to recompute for a derivative, and when their results count as the same.

Each committed step is recomputed with what was in force at its block: transformation, schema and
vocabulary of the derivative and of its inputs. Sources: Open Data Fabric, "Dataset Validation";
reference behaviour, "verify".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from odfbuild.engine.request import StepInput, is_computed, is_exact, key_of
from odfbuild.errors import Code, IntegrityError
from odfbuild.inspect.verify.history import History
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.step import Link, output_watermark, recorded_step
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import ExecuteTransform, ExecuteTransformInput, SetTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.sql.translate.runnable import ran_on_spark
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Source:
    """An input as it is here: its files and its history."""

    store: DatasetStore
    history: History


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A step to recompute. `before` is the state of the derivative just before `block`.

    `from_change`: what it changes is enough, because a later step with the same query is recomputed
    over all records. `by_key` is a folder for records by key, of this verification alone.
    """

    block: Multihash
    sequence_number: int
    system_time: Timestamp
    recorded: ExecuteTransform
    before: Projection
    transform: SetTransform
    inputs: tuple[StepInput, ...]
    from_change: bool = False
    by_key: Path | None = None


class Histories:
    """Chains of a workspace, each read once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._read: dict[str, History] = {}

    def of(self, name: str) -> History:
        """The chain of a dataset, which has one."""
        if name not in self._read:
            store = self._workspace.dataset(name)
            head = store.head()
            if head is None:
                raise AssertionError("integrity has found this dataset")
            self._read[name] = History(reversed(list(store.walk(head))))
        return self._read[name]

    def source(self, dataset_id: DatasetId) -> Source | None:
        """A dataset as an input; `None` when it has no chain here."""
        alias = self._workspace.resolve(dataset_id)
        if alias is None:
            return None
        return Source(self._workspace.dataset(alias), self.of(alias))


def plan_replays(
    name: str,
    history: History,
    source_of: Callable[[DatasetId], Source | None],
    owner: str | None = None,
) -> list[Replay | IntegrityError]:
    """Every `ExecuteTransform` of a derivative, oldest first; see `plan_replay`."""
    steps = (plan_replay(name, history, link, source_of, owner) for link in history.links)
    return [each for each in steps if each is not None]


def plan_replay(
    name: str,
    history: History,
    link: Link,
    source_of: Callable[[DatasetId], Source | None],
    owner: str | None = None,
) -> Replay | IntegrityError | None:
    """The step of a block; `None` when it is none. `owner`: the reference of a dataset of others.

    An error stands for a step whose inputs are not here as they were read: E0822 when an input has
    no chain here, E0823 when its history does not hold the blocks that the step names.
    """
    hash, block = link
    event = block.event
    if not isinstance(event, ExecuteTransform) or block.prev_block_hash is None:
        return None
    before = history.state(block.prev_block_hash)
    if before.transform is None:
        return None  # breaks a rule of the chain, which is what integrity reports
    aliases = {i.dataset_ref: i.alias for i in before.transform.inputs}
    try:
        inputs = tuple(
            _input(name, aliases.get(each.dataset_id), each, source_of(each.dataset_id), owner)
            for each in event.query_inputs
        )
    except IntegrityError as error:
        return error.noted(f"block {block.sequence_number} {hash}")
    return Replay(
        block=hash,
        sequence_number=block.sequence_number,
        system_time=block.system_time,
        recorded=event,
        before=before,
        transform=before.transform,
        inputs=inputs,
    )


def _pull(input: DatasetId, alias: str | None, owner: str) -> str:
    """The command that brings an input, from the repository of the dataset that reads it."""
    base, _, _ = owner.rpartition("/")
    if "://" in owner:
        return f"odfbuild pull {base}/{alias or 'NAME'}"
    return f"odfbuild pull {base.partition('/')[0]}/{input}"


def _input(
    name: str,
    alias: str | None,
    recorded: ExecuteTransformInput,
    source: Source | None,
    owner: str | None,
) -> StepInput:
    if source is None:
        brings = f"`{_pull(recorded.dataset_id, alias, owner)}`" if owner else "pull it"
        raise IntegrityError(
            f"input {f'{alias!r} ' if alias else ''}{recorded.dataset_id} of '{name}' has no chain "
            "here",
            code=Code.INPUT_MISSING,
            dataset=name,
            help=f"{brings}, or check this dataset with --integrity only",
        )
    interval = source.history.interval(recorded.prev_block_hash, recorded.new_block_hash)
    end = recorded.new_block_hash or recorded.prev_block_hash
    at_end = source.history.state(end) if interval is not None and end is not None else None
    if interval is None or at_end is None or at_end.schema is None:
        raise IntegrityError(
            f"'{name}' read '{source.store.name}' at blocks that are not in its history",
            code="E0823",
            dataset=name,
            notes=(
                f"from {recorded.prev_block_hash or 'the start'} "
                f"to {recorded.new_block_hash or 'the same block'}",
            ),
            help=f"the history of '{source.store.name}' was rewritten: restore the old one, or "
            f"rebuild '{name}' (odfbuild apply --allow rebuild:{name}+); if its definition was "
            f"removed, delete it (--allow delete:{name}+)",
        )
    step = recorded_step(recorded, interval)
    name = alias or source.store.name
    return StepInput(
        name,
        source.store,
        step,
        at_end.schema,
        at_end.vocab,
        key_of(at_end),
        is_exact(at_end),
    )


def from_changes(replays: Sequence[Replay]) -> list[Replay]:
    """Steps of one dataset, oldest first; the last one with each query is recomputed in full.

    Its result minus the records before it has to be its slice, so that what all steps before it
    amount to is compared with the plain query.
    """
    later: SetTransform | None = None
    found = []
    for each in reversed(replays):
        found.append(replace(each, from_change=each.transform == later))
        if is_computed(each.before, each.inputs):
            later = each.transform
    return found[::-1]


def is_reproduced(recorded: ExecuteTransform, replayed: ExecuteTransform) -> bool:
    """Whether two events say the same, but for bytes that may differ.

    The same records may be written as other Parquet bytes, so that physical hash and size do not
    count, and neither does the checkpoint, whose form is the engine's own business.
    """
    return _essence(recorded) == _essence(replayed)


def _essence(event: ExecuteTransform) -> tuple[object, ...]:
    data = event.new_data
    return (
        replace(event, new_data=None, new_checkpoint=None),
        (data.logical_hash, data.offset_interval) if data else None,
    )


def watermarks_in_question(replay: Replay) -> tuple[Timestamp | None, ...]:
    """The watermarks that the step may have ended with, the specification's first.

    Steps of other engines may follow the reference's rule: the minimum over those inputs that set a
    watermark in this very step, and none when there is no such input.
    """
    steps = [each.step for each in replay.inputs]
    expected = output_watermark(replay.before.watermark, [step.watermark for step in steps])
    if ran_on_spark(replay.transform.transform):
        return (expected,)
    latest = [max(w.event_time for w in step.watermarks) for step in steps if step.watermarks]
    return (expected, min(latest, default=None))
