"""Recompute committed steps of derivatives in scratch space, and compare the results.

Finds records that do not follow from the inputs, also when whoever changed them recomputed every
hash. Changes nothing. Source: Open Data Fabric, "Dataset Validation".
"""

from __future__ import annotations

import math
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from odfbuild.engine.contract import (
    Engine,
    Told,
    TransformResult,
    TransformTask,
    in_one_job,
)
from odfbuild.engine.in_pieces import WrittenPiece
from odfbuild.engine.personal import sealing_of
from odfbuild.engine.request import as_limited, is_computed, transform_task
from odfbuild.engine.slice import StagedSlice, write_slice
from odfbuild.errors import (
    ChainError,
    Code,
    EngineError,
    EngineProblem,
    Errors,
    IntegrityError,
    OdfbuildError,
)
from odfbuild.fallbacks import fell_back
from odfbuild.inspect.verify.batches import LARGEST_JOB, in_batches
from odfbuild.inspect.verify.excused import (
    Excuse,
    Grounds,
    counted,
    grounds_before,
    grounds_behind,
)
from odfbuild.inspect.verify.executors import Executors
from odfbuild.inspect.verify.finding import Finding, fault
from odfbuild.inspect.verify.history import History
from odfbuild.inspect.verify.replay import (
    Histories,
    Replay,
    from_changes,
    plan_replays,
)
from odfbuild.inspect.verify.step_findings import (
    NO_KEYS,
    OTHER_ENGINE,
    compare,
    engine_of,
    finding_of,
    refused,
    schema_in_force,
)
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import DatasetKind, SetTransform, TransformSql
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.records.first_difference import RecordDifference, first_difference
from odfbuild.sql.translate.named import is_remote_release
from odfbuild.sql.translate.runnable import FOREIGN, SPARK
from odfbuild.store.committed import Committed
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.merged_copies import merged_copies
from odfbuild.store.workspace import Workspace
from odfbuild.wording import count

MANY_STEPS = 10
"""To keep records by key takes about as much as so many steps that look for them in slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The steps to recompute: those after block `since`, at most `sample` of each dataset.

    A sample is random, so that nobody can know which steps will not be looked at. Steps of a
    sample, and with `full` all of them, are computed over all records, not from what they change.
    """

    since: Multihash | None = None
    sample: int | None = None
    full: bool = False


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The result: `steps` were recomputed, of so many `derivatives`.

    `excused` are steps that could not be, or that gave something else, as their owners say.
    """

    findings: tuple[Finding, ...]
    steps: int
    derivatives: int
    excused: tuple[Excuse, ...] = ()


def upstream(workspace: Workspace, names: Iterable[str]) -> list[str]:
    """These datasets and all that they were ever derived from, as far as it is here."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name] = None
            waiting += inputs_ever(workspace, name)
    return list(found)


def direct_inputs(names: Sequence[str], inputs: Mapping[str, Sequence[str]]) -> list[str]:
    """What `names` were derived from and is not one of them; `inputs` is `inputs_ever` of each."""
    found = dict.fromkeys(each for name in names for each in inputs[name])
    return [name for name in found if name not in names]


def inputs_ever(workspace: Workspace, name: str) -> list[str]:
    """What a derivative has, or once had, as input, as far as it is here.

    Nothing for a damaged chain: that is for `verify_integrity` to report.
    """
    try:
        state = workspace.projection(name)
        if state is None or state.kind is not DatasetKind.Derivative:
            return []
        found: dict[str, None] = {}
        for _, block in workspace.dataset(name).walk(state.head):
            if isinstance(block.event, SetTransform):
                for declared in block.event.inputs:
                    ref = declared.dataset_ref
                    alias = workspace.resolve(ref) if isinstance(ref, DatasetId) else None
                    if alias is not None:
                        found[alias] = None
        return list(found)
    except (OdfbuildError, ValueError):
        return []


def verify_reproducibility(
    workspace: Workspace,
    names: Sequence[str],
    get_engine: Callable[[], Engine],
    scratch: Path,
    extent: Extent | None = None,
    by: Callable[[TransformSql], str] | None = None,
    executors: Executors | None = None,
) -> Reproduction:
    """Do the steps of those of `names` that are derivatives again; findings in order of `names`.

    Chains and objects must be whole (`verify_integrity`). `get_engine` is called only when there is
    something to do. `scratch` is an empty folder. Several steps are done at once, and those that
    handle each record alone in one job; one that differs is done again alone and in full, as is the
    last one with each query. Each is done in the version that its chain records, or in the one that
    `by` names. `executors` do what they can.
    """
    histories = Histories(workspace)
    extent = extent or Extent()
    in_full = by is not None or extent.full or extent.sample is not None
    work = _Work()
    for name in names:
        _plan(workspace, name, histories, extent, in_full, work)
    tasks, findings, excused = work.tasks, work.findings, work.excused
    many = Counter(name for name, replay in tasks if replay.from_change)
    if tasks:
        engine = get_engine()
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:

            def one(name: str, replay: Replay, ready: _Ready) -> Finding | None:
                try:
                    if replay.from_change and many[name] >= MANY_STEPS:
                        replay = replace(replay, by_key=scratch / "by-key")
                    if by is not None:
                        replay = _in_version(replay, by(replay.transform.transform))
                    later = _later_versions(histories.of(name), replay)
                    store = workspace.dataset(name)
                    found = _replay(store, replay, engine, scratch, later, ready)
                    in_part = ready is None and replay.from_change
                    if found is not None and (in_part or isinstance(ready, TransformResult)):
                        replay = replace(replay, from_change=False, by_key=None)
                        found = _replay(store, replay, engine, scratch, later)
                    grounds = None if found is None else grounds_behind(store, replay)
                    if grounds is None:
                        return found
                    excused.append((name, grounds))
                    return None
                except Exception as error:
                    return fault(workspace.cache, name, error, replay.block, replay.sequence_number)

            def each(name: str, steps: Iterable[tuple[Replay, _Ready]]) -> list[Finding]:
                results = (one(name, *step) for step in steps)
                return [found for found in results if found is not None]

            def here(name: str, replays: Sequence[Replay]) -> list[Finding]:
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    ready = _together(workspace.dataset(name), replays, engine, Path(folder))
                    return each(name, zip(replays, ready, strict=True))

            def again(name: str, replays: Sequence[Replay]) -> list[Finding]:
                store = workspace.dataset(name)
                ready = _by_executors(executors, store, replays) if executors else None
                if ready is not None:
                    return each(name, zip(replays, ready, strict=True))
                batches = in_batches((name, replay) for replay in replays)
                return [found for batch in batches for found in here(*batch)]

            most_bytes = math.inf if executors else LARGEST_JOB
            batches = in_batches(tasks, most_bytes) if by is None else [(n, [e]) for n, e in tasks]
            results = pool.map(again, *zip(*batches, strict=True))
            findings += _each_version_once([found for each in results for found in each])
    order = {name: number for number, name in enumerate(names)}
    findings.sort(key=lambda f: (order[f.dataset], f.sequence_number or 0))
    return Reproduction(tuple(findings), len(tasks), work.derivatives, counted(excused))


@dataclass(slots=True)
class _Work:
    """What is to be recomputed, and what was found without."""

    tasks: list[tuple[str, Replay]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    excused: list[tuple[str, Grounds]] = field(default_factory=list)
    derivatives: int = 0


def _plan(
    workspace: Workspace, name: str, histories: Histories, extent: Extent, full: bool, work: _Work
) -> None:
    """Add the steps of one dataset."""
    store = workspace.dataset(name)
    try:
        history = histories.of(name)
        planned = plan_replays(name, history, histories.source, _owner(workspace, name))
    except Exception as error:  # whatever is wrong with one, the others are done again
        work.findings.append(fault(workspace.cache, name, error))
        return
    replays: list[Replay] = []
    wrong: list[IntegrityError] = []
    for each in _within(name, history, planned, extent):
        if not isinstance(each, Replay):
            wrong.append(each)
        elif (grounds := grounds_before(store, each)) is not None:
            work.excused.append((name, grounds))
        else:
            replays.append(each)
    work.derivatives += bool(replays)
    work.findings += [fault(workspace.cache, name, each) for each in _each_input_once(wrong)]
    work.findings += _other_engines(name, [each for each in replays if not _runs_here(each)])
    here = [each for each in replays if _runs_here(each)]
    work.tasks += [(name, each) for each in (here if full else from_changes(here))]


def is_of_others(workspace: Workspace, name: str) -> bool:
    """Whether a dataset was pulled from others."""
    return _owner(workspace, name) is not None


def _owner(workspace: Workspace, name: str) -> str | None:
    """The reference of a dataset that belongs to others."""
    elsewhere = workspace.elsewhere
    return elsewhere.owner(workspace.dataset(name)) if elsewhere is not None else None


def _each_input_once(errors: Sequence[IntegrityError]) -> list[IntegrityError]:
    """The errors, of steps that lack the same input the first with their number."""
    lacking: dict[str, list[IntegrityError]] = {}
    for each in errors:
        if each.code == Code.INPUT_MISSING:
            lacking.setdefault(each.message, []).append(each)
    return [
        *(each for each in errors if each.code != Code.INPUT_MISSING),
        *(
            first.noted(f"and {count(len(others), 'later step')}") if others else first
            for first, *others in lacking.values()
        ),
    ]


def _each_version_once(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, of steps that need the same absent engine the first with their number."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for each in findings:
        key = (
            each.dataset,
            each.message if each.code == Code.RECORDED_ENGINE_MISSING else str(each.block),
        )
        found.setdefault(key, []).append(each)
    return [
        replace(first, message=f"{first.message}; and {count(len(others), 'later step')}")
        if others
        else first
        for first, *others in found.values()
    ]


def _in_version(replay: Replay, version: str) -> Replay:
    """The step as another version of its engine does it."""
    event = replay.before.transform
    if event is None or not version:
        return replay
    event = replace(event, transform=replace(event.transform, version=version))
    return replace(replay, before=replace(replay.before, transform=event))


def _later_versions(history: History, replay: Replay) -> tuple[str, ...]:
    """Versions that the chain records for the same queries after a step, the newest first.

    They went on where the step's was, or proved that they give the same (`engine deprecate`).
    """
    made = replay.transform
    later = (
        block.event.transform.version
        for _, block in reversed(history.links)
        if block.sequence_number > replay.sequence_number
        and isinstance(block.event, SetTransform)
        and unversioned(block.event) == unversioned(made)
    )
    return tuple(dict.fromkeys(each for each in later if each and each != made.transform.version))


def unversioned(event: SetTransform) -> SetTransform:
    """A transformation without the version of its engine."""
    return replace(event, transform=replace(event.transform, version=None))


def _runs_here(replay: Replay) -> bool:
    """Whether the engine of a step may be here, or is one whose queries can be translated."""
    transform = replay.transform.transform
    return transform.engine.lower() in (SPARK, *FOREIGN) or is_remote_release(transform.version)


def _other_engines(name: str, replays: Sequence[Replay]) -> list[Finding]:
    """E0824 for steps that only another engine can do, once for each transformation."""
    found: dict[SetTransform, list[Replay]] = {}
    for each in replays:
        found.setdefault(each.transform, []).append(each)
    return [
        replace(
            finding_of(
                name,
                steps[0],
                Code.NOT_RECOMPUTED,
                f"{count(len(steps), 'step')} cannot be recomputed here: the query is of engine "
                f"{engine_of(transform)}",
            ),
            help=OTHER_ENGINE,
        )
        for transform, steps in found.items()
    ]


def _within(
    name: str,
    history: History,
    replays: list[Replay | IntegrityError],
    extent: Extent,
) -> list[Replay | IntegrityError]:
    if extent.since is not None:
        if extent.since not in history:
            raise ChainError(
                f"block {extent.since} is not in the history of '{name}'",
                code="E0610",
                dataset=name,
                help=f"`odfbuild log {name}` lists its blocks",
            )
        after = history.state(extent.since).blocks
        replays = [r for r in replays if not isinstance(r, Replay) or r.sequence_number >= after]
    if extent.sample is not None and len(replays) > extent.sample:
        chosen = sorted(random.SystemRandom().sample(range(len(replays)), extent.sample))
        replays = [replays[number] for number in chosen]
    return replays


_Ready = TransformResult | WrittenPiece | OdfbuildError | None
"""What a step gave already, or why it cannot; `None`: it has to be done."""


def _by_executors(
    executors: Executors, store: DatasetStore, replays: Sequence[Replay]
) -> Sequence[_Ready] | None:
    """What executors say of steps; `None`: these have to be recomputed here."""
    try:
        return executors.recomputed(store, replays, schema_in_force)
    except (EngineProblem, IntegrityError) as error:
        return [error] * len(replays)
    except Exception as error:  # told of the step that it is about
        foreseen = isinstance(error, Errors)
        fell_back(__name__, "steps are recomputed here", error, foreseen=foreseen)
        return None


def _together(
    store: DatasetStore, replays: Sequence[Replay], engine: Engine, base: Path
) -> Sequence[TransformResult | None]:
    """What one job gives for each of several steps; nothing where they are done one by one."""
    alone = [None] * len(replays)
    if len(replays) == 1:
        return alone
    try:
        tasks = [_task(store, each, Path(tempfile.mkdtemp(dir=base))) for each in replays]
    except OdfbuildError as error:  # told of the step that it is about
        if error.code == NO_KEYS:
            return alone
        fell_back(__name__, "steps are computed one by one", error)
        return alone
    return in_one_job(engine, tasks)


def _replay(
    store: DatasetStore,
    replay: Replay,
    engine: Engine,
    base: Path,
    later: Sequence[str] = (),
    ready: _Ready = None,
) -> Finding | None:
    if isinstance(ready, WrittenPiece):
        return compare(store, replay, ready.data, None, lambda _: ready.difference)
    if isinstance(ready, OdfbuildError):
        return refused(store.name, replay, ready)
    scratch = Path(tempfile.mkdtemp(dir=base))
    try:
        staged, told = _run(store, replay, engine, scratch, ready)

        def difference(recorded: Multihash) -> RecordDifference | None:
            assert staged is not None, "it is compared with what there is"
            return first_difference(store.bring("data", recorded), staged.path)

        return compare(store, replay, staged.data if staged else None, told, difference)
    except EngineError as error:
        if error.code == Code.RECORDED_ENGINE_MISSING and later:
            return _replay(store, _in_version(replay, later[0]), engine, base, later[1:])
        return refused(store.name, replay, error)
    except Errors as errors:
        return refused(store.name, replay, errors.errors[0])
    except OdfbuildError as error:
        return refused(store.name, replay, error)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _task(store: DatasetStore, replay: Replay, scratch: Path) -> TransformTask:
    def by_key(of: DatasetStore) -> Path | None:
        # Of slices whose hashes were checked; what apply keeps is not looked at.
        return replay.by_key and replay.by_key / of.name

    history = Committed(store, replay.before.head, by_key(store))
    inputs = [
        replace(each, copies=merged_copies(by_key(each.store), each.store.path / "data"))
        for each in as_limited(store, replay.recorded, replay.inputs)
    ]
    return transform_task(
        store.name,
        replay.before,
        inputs,
        scratch,
        history,
        replay.system_time,
        is_proof=not replay.from_change,
    )


def _run(
    store: DatasetStore,
    replay: Replay,
    engine: Engine,
    scratch: Path,
    ready: TransformResult | None,
) -> tuple[StagedSlice | None, Told | None]:
    """The slice that the step gives now, if it has records, and what its engine says beside.

    `ready` is what the engine gave for it already.
    """
    before = replay.before
    vocab = vocabulary_of(before.vocab)
    if not is_computed(before, replay.inputs):
        return None, None
    result = ready or engine.run(_task(store, replay, scratch))
    if before.schema is None or result.schema is None:
        return None, result.told
    staged = write_slice(
        result,
        dataset=store.name,
        schema=schema_in_force(store.name, replay, result.schema),
        vocab=vocab,
        first_offset=0 if before.last_offset is None else before.last_offset + 1,
        system_time=replay.system_time,
        target=scratch / "slice.parquet",
        sealing=sealing_of(store, before),
    )
    return staged, result.told
