"""The Python interface: everything that the command line does, without text.

    from odfbuild import Project

    project = Project("flights")
    plan = project.plan(select=["us.bts.flights+"])
    if plan.has_changes:
        outcome = project.apply(plan)

Methods read the project anew each time, as a command does. What a person did wrong is raised as an
`OdfbuildError` with its place and the way out, several at once as `Errors`; a failure of a single
dataset is part of the outcome and not raised.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, BinaryIO

from odfbuild.apply.names import block_in, existing
from odfbuild.apply.survey import Survey, Wishes, choose, read_definitions, survey
from odfbuild.errors import OdfbuildError
from odfbuild.graph.selection import Selection
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.rebuild import Rebuild
from odfbuild.project.config import load_config
from odfbuild.project.given import Given
from odfbuild.store import transfer
from odfbuild.store.transfer import Held
from odfbuild.store.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

    from odfbuild.apply.approved import Approved
    from odfbuild.apply.drift import Drifted
    from odfbuild.apply.outcome import ApplyOutcome, DatasetOutcome
    from odfbuild.apply.run import Listener
    from odfbuild.apply.vintage import Vintage
    from odfbuild.engine.contract import Engine
    from odfbuild.odf.model import DatasetSnapshot, MetadataBlock
    from odfbuild.odf.multihash import Multihash
    from odfbuild.odf.projection import Projection
    from odfbuild.plan.definitions import DefinitionChange
    from odfbuild.plan.explain import Explanation
    from odfbuild.plan.model import Plan
    from odfbuild.project.model import Config
    from odfbuild.verify.check import Verdict

__all__ = ["Project"]


class Project:
    """The project in `folder` or above it, in environment `env`, with these values of variables.

    Raises `ProjectError` E0100 when there is none.
    """

    def __init__(
        self,
        folder: str | Path = ".",
        *,
        env: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = Path(folder)
        self._given = Given(env=env, values=tuple((variables or {}).items()))
        self.root = self.config().root

    def __repr__(self) -> str:
        return f"Project({str(self.root)!r})"

    def config(self) -> Config:
        """What `odfbuild.yaml` says."""
        return load_config(self._folder, self._given)

    def workspace(self) -> Workspace:
        """The chains of the project, for what has no method here."""
        return self.config().workspace()

    # --- Looking ---

    def definitions(self) -> dict[str, DatasetSnapshot]:
        """All definitions by name, templates rendered; raises `Errors` with all that is wrong."""
        found = read_definitions(self._folder, self._given)
        return {each.name: each.snapshot for each in found.project.definitions}

    def datasets(
        self, select: Sequence[str] = (), exclude: Sequence[str] = ()
    ) -> dict[str, Projection]:
        """The committed state of datasets that have a chain: records, watermark, head and more."""
        if not select and not exclude:
            return dict(self.workspace().projections())
        selection = Selection(select=tuple(select), exclude=tuple(exclude))
        names, found = choose(self._folder, selection, self._given)
        return {name: each for name, each in found.projections.items() if name in names}

    def log(self, dataset: str) -> Iterator[tuple[Multihash, MetadataBlock]]:
        """Blocks of a chain with their hashes, newest first."""
        workspace = self.workspace()
        store = workspace.dataset(existing(workspace, dataset))
        head = store.head()
        return iter(()) if head is None else store.walk(head)

    def records(self, dataset: str, last: int | None = None) -> pa.Table | None:
        """The last records of a dataset, or all, in order of offset; `None`: there are none.

        Retractions and corrections are records, too: the column `op` tells them apart.
        """
        from odfbuild.store.committed import Committed

        workspace = self.workspace()
        store = workspace.dataset(existing(workspace, dataset))
        return Committed(store, store.head()).newest(last)

    # --- Planning ---

    def sql(self, query: str, *, history: bool = False, limit: int | None = None) -> pa.Table:
        """Ask committed datasets, which are tables by their names, in Spark SQL.

        They show what they say now; with `history` all records, with the system columns. Raises
        `QueryError`, several as `Errors`.
        """
        from odfbuild.apply.ask import answered, understand
        from odfbuild.report.answer import read_answer

        workspace = self.workspace()
        question = understand(query, workspace.aliases())
        asked = answered(workspace, question, self._start_engine, history=history, limit=limit)
        with asked as found:
            assert found.schema is not None
            return read_answer(found.parts, found.schema)

    def plan(
        self,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        *,
        fetch_uncacheable: bool = False,
        rebuild: Sequence[str] = (),
    ) -> Plan:
        """What `apply` would do. Starts no JVM, uses no network, changes nothing.

        `rebuild` names derivatives to compute again, with their readers when `+` follows.
        """
        return self._survey(select, exclude, fetch_uncacheable, rebuild).plan

    def save_plan(self, plan: Plan, file: str | Path) -> str:
        """Save a plan for `odfbuild apply FILE`; returns its digest."""
        import json

        from odfbuild.project.revision import revision
        from odfbuild.report.plan_json import plan_to_data, stamp

        saved = stamp(plan, git=revision(self.root))
        text = json.dumps(plan_to_data(saved), indent=2, ensure_ascii=False)
        Path(file).write_text(text + "\n", encoding="utf-8")
        return saved.digest

    def load_plan(self, file: str | Path) -> Plan:
        """A saved plan; `PlanError` when it is none or was changed."""
        from odfbuild.apply.approved import load_plan

        return load_plan(Path(file)).plan

    def explain(self, dataset: str) -> Explanation:
        """Why a dataset is stale or not, down to the root causes."""
        from odfbuild.apply.receipts import with_receipts
        from odfbuild.plan.explain import explain

        found = self._survey()
        names = {each.name.lower(): each.name for each in found.plan.datasets}
        name = names.get(dataset.lower()) or existing(found.workspace, dataset)
        explanation = explain(found.plan, name, found.projections)
        return with_receipts(explanation, found.project.config, found.workspace, found.renames)

    def diff(self, old: str | None = None, new: str | None = None) -> tuple[DefinitionChange, ...]:
        """How definitions differ from the chains, or between revisions in Git.

        `new` is the revision to compare `old` with (`None`: the files as they are).
        """
        from odfbuild.apply.compare import compare_revisions, compare_with_chains

        if old is None:
            return compare_with_chains(self._folder, self._given)
        return compare_revisions(self.config(), old, new)

    def drift(self, *, deep: bool = False) -> Drifted:
        """What is not as definitions and runs left it; `deep` hashes all objects."""
        from odfbuild.apply.drift import find_drift

        return find_drift(self._folder, self._given, deep=deep)

    def vintage(self, dataset: str) -> Vintage:
        """What the records of a dataset were made from, at the blocks that were read."""
        from odfbuild.apply.vintage import vintage

        workspace = self.workspace()
        return vintage(workspace, existing(workspace, dataset))

    # --- Doing ---

    def apply(
        self,
        plan: Plan | None = None,
        *,
        jobs: int | None = None,
        fail_fast: bool = False,
        lock_timeout: float = 0.0,
        cancel: Event | None = None,
        listener: Listener | None = None,
    ) -> ApplyOutcome:
        """Do what a plan says, exactly that, or what a plan of now says.

        `jobs` datasets at once (default: cores); none begins once `cancel` is set. `listener` hears
        of datasets as they start and end, from several threads. `lock_timeout` is in seconds.
        A dataset that moved since the plan was made is `LOST`, and nothing is written for it.
        """
        from odfbuild.apply.approved import approve
        from odfbuild.apply.run import ApplyOptions, apply_plan
        from odfbuild.apply.runs import RunLog
        from odfbuild.plan.document import plan_digest
        from odfbuild.report.plan_json import stamp

        found: Survey | Approved = (
            self._survey() if plan is None else approve(stamp(plan), self.config())
        )
        log = RunLog(found.project.config.cache, listener or _Silent())
        digest = plan_digest(found.plan)
        log.ready(found.plan, digest)
        options = ApplyOptions(
            factory=log.telling(self._start_engine),
            listener=log,
            locate=found.locate,
            jobs=jobs or os.cpu_count() or 1,
            cancel=cancel or Event(),
            fail_fast=fail_fast,
            lock_timeout=lock_timeout,
        )
        outcome = apply_plan(found.plan, found.project, found.workspace, options)
        log.ended(found.plan, digest, outcome, found.workspace)
        return outcome

    def push(
        self,
        dataset: str,
        data: str | Path | BinaryIO,
        *,
        source: str | None = None,
        event_time: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> DatasetOutcome:
        """Append data to a dataset by one of its push sources; `data` is a file or a stream.

        Of pushes with the same key only the first counts. `event_time` has a time zone.
        """
        from odfbuild.apply.push import Push, push

        workspace = self.workspace()
        name = existing(workspace, dataset)
        settings = self.config().ingest
        request = Push(
            dataset=name,
            source=source,
            data=Path(data) if isinstance(data, str) else data,
            event_time=None if event_time is None else _timestamp(event_time),
            key=idempotency_key,
            skip_bad_records=settings.skips_bad_records(name),
            on_schema_change=settings.schema_policy(name),
        )
        outcome = push(
            request, workspace, factory=self._start_engine, listener=_Silent(), locate=_as_it_is
        )
        return outcome.datasets[0]

    def set_watermark(self, dataset: str, time: datetime) -> bool:
        """Move the watermark of a root forward to `time` (with a time zone); whether it moved."""
        from odfbuild.apply.watermark import move_watermark

        workspace = self.workspace()
        return move_watermark(workspace, existing(workspace, dataset), _timestamp(time))

    def verify(
        self,
        *datasets: str,
        integrity: bool = False,
        logical: bool = False,
        since: str | None = None,
        sample: int | None = None,
    ) -> Verdict:
        """Check datasets (default: all) for integrity, and derivatives for reproducibility.

        With `integrity` no step is done again and no engine started. `since` is the end of a hash
        of a block, for one dataset; of each dataset at most `sample` steps are done again.
        """
        from odfbuild.verify.check import verify
        from odfbuild.verify.reproduce import Extent

        workspace = self.workspace()
        names = [existing(workspace, each) for each in datasets] or workspace.aliases()
        if since is not None and len(names) != 1:
            raise ValueError("since needs exactly one dataset")
        after = block_in(workspace.dataset(names[0]), since) if since else None
        return verify(
            workspace,
            names,
            logical=logical,
            extent=Extent(since=after, sample=sample),
            factory=None if integrity else self._start_engine,
        )

    def objects(self, *datasets: str) -> tuple[Held, ...]:
        """Which objects of datasets (default: all) are in their folders, which in the storage.

        `PlanError` E0373 when the project has no storage.
        """
        workspace = self.workspace()
        names = [existing(workspace, each) for each in datasets] or workspace.aliases()
        return transfer.survey(workspace, names)

    def push_objects(self, *datasets: str) -> tuple[Held, ...]:
        """Copy objects that only this clone has to the storage; returns them."""
        copied = transfer.pushable(self.objects(*datasets))
        transfer.push(self.workspace(), copied)
        return copied

    def pull_objects(self, *datasets: str) -> tuple[Held, ...]:
        """Copy objects that this clone lacks from the storage; returns them."""
        copied = transfer.pullable(self.objects(*datasets))
        transfer.pull(self.workspace(), copied)
        return copied

    # --- What these stand on ---

    def _start_engine(self) -> Engine:
        from odfbuild.engine.spark.engine import start_engine

        config = self.config()
        return start_engine(config.engine, config.reach)

    def _survey(
        self,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        fetch_uncacheable: bool = False,
        rebuild: Sequence[str] = (),
    ) -> Survey:
        wishes = Wishes(
            selection=Selection(select=tuple(select), exclude=tuple(exclude)),
            fetch_uncacheable=fetch_uncacheable,
            rebuilds=tuple(
                Rebuild(name.removesuffix("+"), readers=name.endswith("+")) for name in rebuild
            ),
        )
        return survey(self._folder, wishes, self._given)


class _Silent:
    """A listener that says nothing."""

    def begin(self, total: int, tasks: Callable[[str], tuple[int, int] | None]) -> None:
        pass

    def started(self, name: str) -> None:
        pass

    def progressed(self, name: str, blocks: int, records: int) -> None:
        pass

    def finished(self, outcome: DatasetOutcome) -> None:
        pass


def _as_it_is(dataset: str, error: OdfbuildError) -> OdfbuildError:
    return error


def _timestamp(time: datetime) -> Timestamp:
    if time.tzinfo is None:
        raise ValueError("the time has no time zone")
    return Timestamp.parse(time.isoformat())
