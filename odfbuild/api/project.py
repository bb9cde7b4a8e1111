"""`Project`, with the methods that change a dataset, a file or a repository."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, BinaryIO

from odfbuild.api.branches import Branches
from odfbuild.api.checking import Checking
from odfbuild.api.definitions import Authoring
from odfbuild.api.keys import Keys
from odfbuild.api.logged import Logged, LoggedTransfers
from odfbuild.api.looking import Looking
from odfbuild.api.passports import Passports
from odfbuild.api.sources import Sources
from odfbuild.api.times import Time, age, timestamp
from odfbuild.extras import needs_engine, require_engine
from odfbuild.store.claims import Waiting
from odfbuild.store.lock_holders import LOCK_TIMEOUT
from odfbuild.survey.names import block_in

if TYPE_CHECKING:
    from odfbuild.apply.collect import Collection
    from odfbuild.apply.collect_stored import StoredCollection
    from odfbuild.apply.move_chains import ChainPlace, MovedChains
    from odfbuild.apply.options import Listener
    from odfbuild.apply.reset import Reset
    from odfbuild.exchange.repositories.outcome import Transfer
    from odfbuild.plan.model import Plan
    from odfbuild.project.git.shared import MovedDataset
    from odfbuild.store.transfer import StoredObject
    from odfbuild.survey.approved import Approved
    from odfbuild.survey.outcome import ApplyOutcome, DatasetOutcome, TableOutcome
    from odfbuild.survey.survey import Survey


class Project(Looking, Checking, Authoring, Keys, Branches, Sources, Passports):
    """The project in `folder` or above it, in environment `env`, with these values of variables.

    In a `branch`, all is read as it is there, and applied there; `BranchError` E1102 when there is
    none to read. Raises `ProjectError` E0100 when there is no project. What runs is logged below
    `odfbuild.apply`.

    >>> project = Project()
    >>> sorted(project.definitions())
    ['derived', 'root']
    """

    def save_plan(self, plan: Plan, file: str | Path) -> str:
        """Save a plan for `odfbuild apply FILE`; returns its digest."""
        import json

        from odfbuild.project.git.revision import revision
        from odfbuild.report.plan.json import plan_to_data, stamp

        saved = stamp(plan, git=revision(self.root))
        text = json.dumps(plan_to_data(saved), indent=2, ensure_ascii=False)
        Path(file).write_text(text + "\n", encoding="utf-8")
        return saved.digest

    def apply(
        self,
        plan: Plan | None = None,
        *,
        jobs: int | None = None,
        fail_fast: bool = False,
        lock_timeout: float = LOCK_TIMEOUT,
        cancel: Event | None = None,
        listener: Listener | None = None,
        publish: bool = True,
    ) -> ApplyOutcome:
        """Do what a plan says, exactly that, or what a plan of now says.

        `jobs` datasets at once (default: cores); none begins once `cancel` is set. `listener` hears
        of datasets as they start and end, from several threads; it may use Spark for this project,
        and not for another one (`EnvironmentProblem` E0624). `lock_timeout` is how many
        seconds to wait for datasets that another process works on.
        A dataset that moved since the plan was made is `LOST`, and nothing is written for it. What
        `publish` in odfbuild.yaml says is pushed afterwards, unless `publish` is false.

        >>> outcome = project.apply(project.plan())
        >>> [(each.name, each.status.value, each.records) for each in outcome.datasets]
        [('root', 'committed', 3), ('derived', 'committed', 3)]
        >>> outcome.exit_code
        0
        """
        if plan is None or plan.promotes is None:  # a promotion may need to compute nothing
            require_engine("`apply()`")
        from odfbuild.api.listener import CallbackListener
        from odfbuild.apply.options import ApplyOptions
        from odfbuild.apply.publish import publish as published
        from odfbuild.apply.recorded import apply_recorded
        from odfbuild.engine.release import engine_version
        from odfbuild.report.plan.json import stamp
        from odfbuild.survey.approved import approve
        from odfbuild.survey.survey import PlanRequest

        found: Survey | Approved = (
            self._survey(PlanRequest(of_branch=True))
            if plan is None
            else approve(stamp(plan), self.config())
        )
        options = ApplyOptions(
            factory=partial(self._start_engine, found.plan.waiting_bytes),
            engine_version=engine_version(),
            listener=Logged() if listener is None else CallbackListener(listener),
            locate=found.locate,
            jobs=jobs or os.cpu_count() or 1,
            cancel=cancel or Event(),
            fail_fast=fail_fast,
            waiting=Waiting(seconds=lock_timeout),
        )
        outcome = apply_recorded(found, options)
        if publish:
            outcome = published(found, outcome, LoggedTransfers())
        if found.project.config.notify:
            from odfbuild.api.alerting import tell_of_run
            from odfbuild.api.logged import warn

            warn(tell_of_run(found.project.config, outcome))
        return outcome

    def rebuild_tables(self, *tables: str) -> tuple[TableOutcome, ...]:
        """Write published tables (default: all) anew from their datasets, whoever changed them.

        Readers keep the present state until the new one is complete. `TableError` E1311 for a name
        that no table has.
        """
        from odfbuild.apply.tables import publish_table
        from odfbuild.exchange.tables.planned import no_such_table
        from odfbuild.project.tables import declared_tables

        config, workspace = self.config(), self._on_heads("rebuild_tables")
        found = {each.name.lower(): each for each in declared_tables(config, workspace.aliases())}
        for name in tables:
            if name.lower() not in found:
                raise no_such_table(name, [each.name for each in found.values()])
        wanted = [found[name.lower()] for name in tables] or found.values()
        return tuple(
            publish_table(config, workspace, each, anew="it was asked for") for each in wanted
        )

    def plan_promotion(
        self,
        branch: str,
        *,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        rebuild: Sequence[str] = (),
        forward: Sequence[str] = (),
    ) -> Plan:
        """What a promotion of a branch would do, for `apply`; reads chains only.

        `rebuild` names datasets whose history was rebuilt in the branch, and may replace that of
        the head; `name+` includes all downstream datasets. `forward` names datasets for which
        nothing is done that only `onQueryChange` in odfbuild.yaml asks for.
        """
        from odfbuild.plan.changes.consent import Consent
        from odfbuild.plan.graph.selection import Selection
        from odfbuild.survey.promotion import survey_promotion

        selection = Selection(select=tuple(select), exclude=tuple(exclude))
        consents = [Consent.parse(each) for each in rebuild]
        kept = [Consent.parse(each) for each in forward]
        found, _ = survey_promotion(self.config(), branch, selection, consents, kept)
        return found.plan

    def promote(
        self,
        branch: str,
        *,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        rebuild: Sequence[str] = (),
        forward: Sequence[str] = (),
        jobs: int | None = None,
        lock_timeout: float = LOCK_TIMEOUT,
        listener: Listener | None = None,
        publish: bool = True,
    ) -> ApplyOutcome:
        """Move the heads to what a branch has, as `odfbuild promote` does.

        Arguments as for `plan_promotion` and `apply`. Spark starts only where a head moved since
        the branch left it. `BranchError` or `Errors` when the promotion is refused.
        """
        from odfbuild.errors import together

        plan = self.plan_promotion(
            branch, select=select, exclude=exclude, rebuild=rebuild, forward=forward
        )
        refusals = [each.refusal for each in plan.datasets if each.refusal is not None]
        if refusals:
            raise together(refusals)
        return self.apply(
            plan, jobs=jobs, lock_timeout=lock_timeout, listener=listener, publish=publish
        )

    @needs_engine
    def ingest(
        self,
        dataset: str,
        data: str | Path | BinaryIO,
        *,
        source: str | None = None,
        event_time: Time | None = None,
        idempotency_key: str | None = None,
        lock_timeout: float = LOCK_TIMEOUT,
    ) -> DatasetOutcome:
        """Append data to a dataset by one of its push sources; `data` is a file or a stream.

        Of data with the same key only the first counts. `event_time` is for records without one.
        """
        from odfbuild.apply.ingest_request import IngestRequest, ingest

        workspace, name = self._existing(dataset)
        config = self.config()
        request = IngestRequest(
            dataset=name,
            source=source,
            data=Path(data) if isinstance(data, str) else data,
            event_time=None if event_time is None else timestamp(event_time, "event_time"),
            key=idempotency_key,
        ).under(config)
        outcome = ingest(
            request,
            workspace,
            factory=self._start_engine,
            listener=Logged(),
            locate=lambda _, error: error,
            config=config,
            waiting=Waiting(seconds=lock_timeout),
        )
        return outcome.datasets[0]

    def set_watermark(
        self, dataset: str, time: Time, *, lock_timeout: float = LOCK_TIMEOUT
    ) -> bool:
        """Move the watermark of a root forward to `time`; whether it moved."""
        from odfbuild.apply.watermark import move_watermark

        moment, waiting = timestamp(time, "time"), Waiting(seconds=lock_timeout)
        return move_watermark(*self._existing(dataset), moment, waiting)

    def reset(
        self,
        dataset: str,
        to: str | None = None,
        *,
        readers: bool = False,
        schema: bool = False,
        lock_timeout: float = LOCK_TIMEOUT,
    ) -> tuple[Reset, ...]:
        """Take a dataset back to a block, or to its definition without records; returns what moved.

        `to` is a hash, or the beginning or end of one; with `readers` all that read what goes back
        go back, too; with `schema` and no `to` the schema goes as well. What was committed stays
        on disk until `collect`. `PlanError` E0339 for a protected dataset.
        """
        from odfbuild.apply.reset import carry_out, plan_resets
        from odfbuild.apply.run_log import record_resets

        config, (workspace, name) = self.config(), self._existing(dataset)
        block = block_in(workspace.dataset(name), to, abandoned=True) if to else None
        resets = plan_resets(config, workspace, name, block, readers=readers, schema=schema)
        carry_out(workspace, resets, Waiting(seconds=lock_timeout))
        record_resets(config.cache, resets, workspace)
        return tuple(resets)

    def collect(
        self,
        *datasets: str,
        grace: timedelta | str = timedelta(hours=24),
        dry_run: bool = False,
        lock_timeout: float = LOCK_TIMEOUT,
    ) -> Collection:
        """Remove files that no history refers to and that are older than `grace`, as `gc` does.

        Text of `grace` is a number and a unit: `36h`.

        Without `datasets` also closed branches, once they are older than odfbuild.yaml says. Of
        published tables, what only old states need; `errors` of the result tell what was left.
        """
        from odfbuild.apply.collect import collect_project

        config, workspace = self.config(), self._on_heads("collect")
        names = self._named(workspace, datasets) if datasets else None
        before = clock.time() - age(grace, "grace").total_seconds()
        waiting = Waiting(seconds=lock_timeout)
        return collect_project(
            config, workspace, names, before=before, dry_run=dry_run, waiting=waiting
        )

    def collect_storage(
        self, *, grace: timedelta | str = timedelta(days=14), dry_run: bool = False
    ) -> StoredCollection:
        """Remove objects of the storage that no known block refers to, as `gc --storage` does.

        Known are those of this folder, of branches and tags of Git as they were fetched last, and
        of the storage. Objects that were written within `grace` are kept.
        """
        from odfbuild.apply.collect_stored import collect_stored

        before = clock.time() - age(grace, "grace").total_seconds()
        workspace = self._on_heads("collect_storage")
        return collect_stored(self.config(), workspace, before=before, dry_run=dry_run)

    def pull(
        self,
        *references: str,
        repository: str | None = None,
        name: str | None = None,
        to: str | None = None,
        data: bool = True,
        allow: Sequence[str] = (),
        unsigned: Sequence[str] = (),
        dry_run: bool = False,
        lock_timeout: float = LOCK_TIMEOUT,
    ) -> tuple[Transfer, ...]:
        """Bring datasets of others forward, by default all external ones, as `odfbuild pull` does.

        A reference is a name here, an address, or one such as `acme/prices`; names are looked up in
        `repository` if that is given. `name` is what one dataset is to be called here, `to` its
        last block to take; without `data` only chains come. `allow` names the datasets whose
        history may be replaced, `unsigned` those whose heads need not be signed though they were
        before. What fails with one dataset is part of its `Transfer`. In a branch, that is brought
        from where it was pushed to, and no head moves.
        """
        from odfbuild.apply.transfers import pull_datasets
        from odfbuild.exchange.repositories.fetch_on_demand import workspace_of
        from odfbuild.exchange.repositories.requests import PullRequest
        from odfbuild.project.load import read_project

        project = read_project(self._folder, self._given)
        if self._given.branch is not None and (name is not None or to is not None or unsigned):
            raise ValueError("a branch is pulled as it is, without name, to and unsigned")
        request = PullRequest(
            references=references or None,
            repository=repository,
            name=name,
            to=to,
            data=data,
            allow=allow,
            unsigned=unsigned,
        )
        return pull_datasets(
            project.config,
            project.definitions,
            workspace_of(project.config),
            request,
            dry_run=dry_run,
            waiting=Waiting(seconds=lock_timeout),
            watcher=LoggedTransfers(),
        )

    def push(
        self,
        *datasets: str,
        repository: str | None = None,
        name: str | None = None,
        allow: Sequence[str] = (),
        dry_run: bool = False,
    ) -> tuple[Transfer, ...]:
        """Publish datasets, by default all that were not pulled, as `odfbuild push` does.

        In `repository`, or where `publish` in odfbuild.yaml says; `name` is what one dataset is to
        be called there, `allow` names the datasets whose history there may be replaced. What fails
        with one dataset is part of its `Transfer`. In a branch, that is published beside the heads.
        """
        from odfbuild.apply.transfers import push_datasets
        from odfbuild.exchange.repositories.requests import PushRequest

        if self._given.branch is not None and name is not None:
            raise ValueError("a branch is pushed beside the heads, without name")
        workspace = self.workspace()
        names = self._named(workspace, datasets) if datasets else None
        request = PushRequest(names=names, repository=repository, name=name, allow=allow)
        return push_datasets(
            self.config(), workspace, request, dry_run=dry_run, watcher=LoggedTransfers()
        )

    def push_objects(self, *datasets: str) -> tuple[StoredObject, ...]:
        """Copy objects that only this clone has to the storage; returns them."""
        from odfbuild.store.transfer import push, pushable

        copied = pushable(self.objects(*datasets))
        push(self.workspace(), copied)
        return copied

    def pull_objects(self, *datasets: str) -> tuple[StoredObject, ...]:
        """Copy objects that this clone lacks from the storage; returns them."""
        from odfbuild.store.transfer import pull, pullable

        copied = pullable(self.objects(*datasets))
        pull(self.workspace(), copied)
        return copied

    def move_chains(
        self, to: ChainPlace, *, dry_run: bool = False, lock_timeout: float = LOCK_TIMEOUT
    ) -> MovedChains:
        """Move the blocks of all chains to the `storage`, or back to `git`, as they are.

        Writes `chains` into odfbuild.yaml. With `dry_run` nothing is changed. What an interrupted
        move left is completed. Waits `lock_timeout` seconds for datasets that others work on.
        """
        from odfbuild.apply.move_chains import move_chains

        waiting = Waiting(seconds=lock_timeout)
        return move_chains(self.config(), to, dry_run=dry_run, waiting=waiting)

    def commit_chains(
        self,
        message: str | None = None,
        *,
        push: bool = False,
        remote: str | None = None,
        branch: str | None = None,
    ) -> tuple[MovedDataset, ...]:
        """Commit the chains to Git, and nothing else; with `push` share them. Returns what moved.

        `StaleHeadError` E0701 when others pushed the same datasets first.
        """
        from odfbuild.api.git.publish import publish

        done = publish(
            self.config(),
            self._on_heads("commit_chains"),
            message,
            push=push,
            remote=remote,
            branch=branch,
        )
        return done.datasets
