"""Append data that somebody hands over to a root dataset, in one transaction.

The push source of the chain says how to read and merge it; definitions are not looked at. The same
rules hold as for `apply`: data first, the head last, and a crash in between leaves nothing visible.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from odfbuild.apply.attempt import Progress, attempt, begin
from odfbuild.apply.audit import Audit, Audits
from odfbuild.apply.ingest import Arrival, keep_side_cars, stage_ingest
from odfbuild.apply.options import Listener
from odfbuild.apply.personal import check_rights, hiding_of
from odfbuild.apply.refuse_external import check_own
from odfbuild.engine.contract import EngineFactory, ReadPolicies, StepProgress
from odfbuild.engine.lazy import LazyEngine
from odfbuild.errors import IngestError, OdfbuildError, PlanError
from odfbuild.ingest.idempotency_keys import block_of_key
from odfbuild.ingest.push_sources import choose_source, key_state
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import AddPushSource, DatasetKind, SourceState
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.model import Config
from odfbuild.project.settings.watermarks import rule_of
from odfbuild.store.claims import NOT_WAITING, Waiting, held_elsewhere
from odfbuild.store.disposable import scratch_folder
from odfbuild.store.workspace import Workspace
from odfbuild.survey.outcome import ApplyOutcome


class IngestRequest(ReadPolicies, kw_only=True):
    """Append `data` to `dataset` by its push source `source` (`None`: the only one).

    `event_time` is that of records without one (`None`: now). `key`: of all requests
    for one source with the same key only the first one counts.
    """

    dataset: str
    source: str | None
    data: Path | BinaryIO
    event_time: Timestamp | None = None
    key: str | None = None

    def under(self, config: Config) -> IngestRequest:
        """The same with what a project says about data that comes."""
        return replace(self, **config.ingest.policies(self.dataset).policies())


def ingest(
    request: IngestRequest,
    workspace: Workspace,
    *,
    factory: EngineFactory,
    listener: Listener,
    locate: Callable[[str, OdfbuildError], OdfbuildError],
    config: Config | None = None,
    waiting: Waiting = NOT_WAITING,
) -> ApplyOutcome:
    """Carry out the request; never raises for its failure. `locate`: see `attempt`.

    Records that do not keep to one of the checks of `config` for the dataset are not committed.
    """
    name = request.dataset
    engine = LazyEngine(factory)

    def work(progress: Progress) -> str:
        # Before reading what may be long: whether it can be taken at all.
        check_own(workspace, name)
        choose_source(name, state_of(workspace, name), request.source)
        if config is not None:
            check_rights(workspace, name, (), config.engine)
        with scratch_folder(workspace.cache, "ingest") as scratch:
            file = _received(request.data, scratch)
            with workspace.claim([name], waiting) as claim:
                if name in claim.held:
                    raise held_elsewhere(name, claim.held[name])
                audit = None
                if config is not None:
                    audits = Audits(config.root, config.checks, workspace, engine.get)
                    audit = audits.of(name, progress.warn)
                return _append(request, workspace, engine, file, scratch, progress, audit, config)

    started = time.monotonic()
    listener.begin(1, lambda each: _step_progress(engine, each))
    listener.started(name)
    try:
        outcome = attempt(
            name,
            work,
            locate=locate,
            cache=workspace.cache,
            committed=partial(listener.progressed, name),
            hide=hiding_of(workspace, name, ()),
        )
    finally:
        engine.stop()
    outcome = replace(outcome, seconds=time.monotonic() - started)
    listener.finished(outcome)
    return ApplyOutcome(datasets=(outcome,))


def _append(
    request: IngestRequest,
    workspace: Workspace,
    engine: LazyEngine,
    file: Path,
    scratch: Path,
    progress: Progress,
    audit: Audit | None,
    config: Config | None,
) -> str:
    base = state_of(workspace, request.dataset)
    source = choose_source(request.dataset, base, request.source)
    state = base.source_state
    if request.key is not None:
        state = key_state(source, request.key)
        number = block_of_key(workspace.committed(request.dataset, base), state)
        if number is not None:
            return f"data with the key '{request.key}' is in block {number} already"
    transaction = begin(workspace, request.dataset, DatasetKind.Root, base, audit=audit)
    arrival = arrival_of(request, source, file, state, _display_name(request.data), config)
    found = stage_ingest(transaction, engine.get, arrival, scratch)
    progress.add(transaction.commit(), found.records)
    progress.skip(found.skipped)
    progress.tolerate(found.drift)
    progress.warn(*found.warnings)
    if found.records:
        keep_side_cars(workspace, request.dataset, source.merge)
    return found.note if found.records else "the data has no new records"


def arrival_of(
    request: IngestRequest,
    source: AddPushSource,
    file: Path,
    state: SourceState | None,
    display_name: str,
    config: Config | None,
) -> Arrival:
    """How `file` enters the dataset of a request, so that its source then stands at `state`."""
    filled = {"blank_event_times": "fill"} if request.event_time else {}
    return Arrival(
        source=source,
        file=file,
        display_name=display_name,
        event_time=request.event_time,
        source_state=state,
        **(request.policies() | filled),
        watermark=rule_of(config.watermarks if config else (), request.dataset),
    )


def state_of(workspace: Workspace, name: str) -> Projection:
    """The newest state of a dataset; `PlanError` E0301 where it has no chain."""
    state = workspace.projection(name)
    if state is None:
        raise PlanError(
            f"'{name}' has no chain yet",
            code="E0301",
            dataset=name,
            help="run `odfbuild apply` to create it",
        )
    return state


def _received(data: Path | BinaryIO, scratch: Path) -> Path:
    """The data as a file with a harmless name, which the engine takes neither as pattern nor gzip.

    A regular file is linked; what can be read only once, such as standard input, is copied.
    """
    target = scratch / "data"
    if not isinstance(data, Path):
        with target.open("wb") as copy:
            shutil.copyfileobj(data, copy, 1 << 20)
        return target
    try:
        if stat.S_ISREG(data.stat().st_mode) and os.access(data, os.R_OK):
            target.symlink_to(data.resolve())
        else:
            with data.open("rb") as pipe, target.open("wb") as copy:
                shutil.copyfileobj(pipe, copy, 1 << 20)
    except OSError as error:
        raise IngestError(
            f"cannot read '{data}': {error.strerror or error}",
            code="E0401",
            help="name a file that can be read, or `-` for standard input",
        ) from None
    return target


def _display_name(data: Path | BinaryIO) -> str:
    return str(data) if isinstance(data, Path) else "standard input"


def _step_progress(engine: LazyEngine, name: str) -> StepProgress | None:
    running = engine.peek()
    return running.progress(name) if running else None
