"""Carry out a promotion: compute in the branch what waits, then move the heads.

First what has to be replayed is computed on top of the heads, in the branch: nobody else sees it.
Then all heads move, inputs first, each by compare-and-swap, between the manifest and its removal
(see `moving_heads`). At last the references of the branch go. Whoever is killed in between runs the
same command again: what was computed stays in the branch, and heads that moved stay where they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.apply.options import ApplyOptions, Listener
from odfbuild.engine.contract import StepProgress
from odfbuild.errors import OdfbuildError, StaleHeadError
from odfbuild.odf.multihash import Multihash
from odfbuild.plan.model import Action, DatasetPlan, Plan, replays
from odfbuild.project.model import Config
from odfbuild.store.claims import held_elsewhere
from odfbuild.store.files import sync, write_file
from odfbuild.store.garbage import renew
from odfbuild.store.moving_heads import MANIFEST, Manifest, read_manifest
from odfbuild.survey.outcome import ApplyOutcome, DatasetOutcome, Status
from odfbuild.survey.promotion import in_branch

if TYPE_CHECKING:
    from odfbuild.survey.approved import Approved
    from odfbuild.survey.survey import Survey


def promote(found: Approved | Survey, options: ApplyOptions) -> ApplyOutcome:
    """Do what the plan of a promotion says: all of it, or, up to the first head, nothing.

    Never raises for a dataset's failure; raises what is refused.
    """
    began = time.monotonic()
    run = _Promotion(found, options)
    outcomes = run.outcomes()
    return ApplyOutcome(
        datasets=tuple(outcomes[name] for name in run.items if name in outcomes),
        interrupted=options.cancel.is_set(),
        seconds=time.monotonic() - began,
    )


class _Promotion:
    """One promotion and what its parts share."""

    def __init__(self, found: Approved | Survey, options: ApplyOptions) -> None:
        branch = found.plan.promotes
        if branch is None:
            raise AssertionError("the plan of a promotion names a branch")
        self.branch = branch
        self.plan = found.plan
        self.project = found.project
        self.config: Config = found.project.config
        self.main = found.workspace
        self.ours = in_branch(self.config, branch)
        self.options = options
        self.items = {
            each.name: each for each in found.plan.datasets if each.promoted or each.refusal
        }

    def outcomes(self) -> dict[str, DatasetOutcome]:
        """What became of each dataset."""
        refused = {n: each.refusal for n, each in self.items.items() if each.refusal is not None}
        if refused:
            return self._failed(refused, "another dataset of the promotion is refused")
        lost = self._moved_since(self.items)
        if lost:
            return self._failed(lost, "another dataset of the promotion moved")
        waiting = {n: each for n, each in self.items.items() if _computes(each)}
        listener = _Heard(self.options.listener)
        if not waiting:
            listener.begin_all(len(self.items))
            return self._heard(self._switch({}))
        from odfbuild.apply.run import apply_plan

        config = replace(self.config, given=replace(self.config.given, branch=self.branch))
        computed = apply_plan(
            Plan(
                project=self.plan.project,
                env=self.plan.env,
                datasets=tuple(self._in_branch(each) for each in waiting.values()),
            ),
            replace(self.project, config=config),
            self.ours,
            replace(self.options, listener=listener, fail_fast=True),
        )
        done = {each.name: each for each in computed.datasets}
        if any(each.status not in (Status.COMMITTED, Status.NOOP) for each in done.values()):
            ended = {n: each for n, each in done.items() if each.status not in _FINE}
            rest = self._skipped("no head moved: another dataset did not complete", but=ended)
            return self._heard(ended | rest)
        return self._heard(self._switch(done))

    def _in_branch(self, item: DatasetPlan) -> DatasetPlan:
        """What an apply in the branch has to do."""
        if item.promoted is None:
            raise AssertionError("only what is promoted is computed")
        actions = tuple(each for each in item.actions if each is not Action.PROMOTE)
        return replace(item, expected_head=item.promoted.branch, actions=actions)

    # --- Moving heads ---

    def _switch(self, computed: Mapping[str, DatasetOutcome]) -> dict[str, DatasetOutcome]:
        """Move all heads, with what was `computed` before."""
        with self.main.claim(self.items, self.options.waiting) as claim:
            if claim.held:
                lost = {name: held_elsewhere(name, who) for name, who in claim.held.items()}
                return self._failed(lost, "another dataset of the promotion is locked")
            moved = self._moved_since(self.items, computed)
            if moved:
                return self._failed(moved, "another dataset of the promotion moved")
            targets = {name: self._branch_head(name) for name in self.items}
            file = self.main.state / MANIFEST
            write_file(file, self._manifest(targets).to_text().encode())
            done: dict[str, DatasetOutcome] = {}
            for name, item in self.items.items():
                started = time.monotonic()
                try:
                    self._move(item, targets[name])
                except StaleHeadError as error:  # of a writer who claims nothing
                    done[name] = DatasetOutcome(
                        name=name, status=Status.LOST, because=error.message, error=error
                    )
                    _remove(file)
                    return done | self._skipped("its promotion was cut off", but=done)
                done[name] = self._promoted(item, computed.get(name), time.monotonic() - started)
            _remove(file)
            for name, target in targets.items():
                self.ours.dataset(name).delete_branch(self.branch, target)
            return done

    def _manifest(self, targets: Mapping[str, Multihash]) -> Manifest:
        """The heads before and after, also those that moved before this was killed once."""
        before = {
            name: str(item.expected_head) if item.expected_head else None
            for name, item in self.items.items()
        }
        earlier = read_manifest(self.main.state)
        if earlier is not None and earlier.branch == self.branch:
            before |= {n: head for n, head in earlier.before.items() if n in self.items}
        after = {name: str(head) for name, head in targets.items()}
        return Manifest(branch=self.branch, before=before, after=after)

    def _move(self, item: DatasetPlan, target: Multihash) -> None:
        if Action.PROMOTE not in item.actions or item.expected_head == target:
            return
        store = self.main.dataset(item.name)
        if item.expected_head is not None:
            renew(store, item.expected_head)
        store.swap_head(item.expected_head, target)

    def _promoted(
        self, item: DatasetPlan, computed: DatasetOutcome | None, seconds: float
    ) -> DatasetOutcome:
        if item.promoted is None:
            raise AssertionError("only what is promoted moves")
        made = computed or DatasetOutcome(name=item.name, status=Status.NOOP)
        if Action.PROMOTE not in item.actions:
            return replace(made, because="the head has all of it")
        blocks = item.promoted.blocks + made.blocks
        return replace(
            made,
            status=Status.COMMITTED if blocks else Status.NOOP,
            because=f"promoted from {self.branch}",
            blocks=blocks,
            records=item.promoted.records + made.records,
            seconds=made.seconds + seconds,
        )

    # --- Looking ---

    def _branch_head(self, name: str) -> Multihash:
        found = self.ours.dataset(name).branch_head(self.branch)
        if found is None:
            raise AssertionError("it was there a moment ago, and is claimed")
        return found

    def _moved_since(
        self, items: Mapping[str, DatasetPlan], computed: Mapping[str, DatasetOutcome] | None = None
    ) -> dict[str, OdfbuildError]:
        """What moved since the plan was made, on the head or in the branch."""
        found: dict[str, OdfbuildError] = {}
        for name, item in items.items():
            store = self.main.dataset(name)
            there = store.main_head()
            ours = store.branch_head(self.branch)
            planned = item.promoted.branch if item.promoted else None
            if there != item.expected_head and Action.PROMOTE in item.actions:
                found[name] = _stale(name, "", item.expected_head, there)
            elif ours is None or (ours != planned and name not in (computed or {})):
                found[name] = _stale(name, f" in the branch '{self.branch}'", planned, ours)
        return found

    # --- Telling ---

    def _failed(
        self, errors: Mapping[str, OdfbuildError], because: str
    ) -> dict[str, DatasetOutcome]:
        ended = {
            name: DatasetOutcome(
                name=name,
                status=Status.LOST if isinstance(error, StaleHeadError) else Status.FAILED,
                because=error.message,
                error=error,
            )
            for name, error in errors.items()
        }
        return ended | self._skipped(because, but=ended)

    def _skipped(
        self, because: str, but: Mapping[str, DatasetOutcome]
    ) -> dict[str, DatasetOutcome]:
        return {
            name: DatasetOutcome(name=name, status=Status.SKIPPED, because=because)
            for name in self.items
            if name not in but
        }

    def _heard(self, outcomes: dict[str, DatasetOutcome]) -> dict[str, DatasetOutcome]:
        for name in self.items:
            if name in outcomes:
                self.options.listener.finished(outcomes[name])
        return outcomes


_FINE = (Status.COMMITTED, Status.NOOP)


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)
    sync(file.parent)


def _computes(item: DatasetPlan) -> bool:
    """Whether the branch of a dataset moves before the head does."""
    return replays(item) or bool(set(item.actions) - {Action.PROMOTE})


def _stale(
    name: str, where: str, planned: Multihash | None, actual: Multihash | None
) -> StaleHeadError:
    def short(block: Multihash | None) -> str:
        return "nothing" if block is None else block.short

    return StaleHeadError(
        f"'{name}' moved{where} since the promotion was planned: "
        f"{short(planned)} → {short(actual)}",
        code="E0701",
        dataset=name,
        notes=("no head was moved",),
        help="run `odfbuild promote` again: it looks at the present heads",
    )


class _Heard:
    """Passes on what happens in the branch; that a dataset is finished is told once heads moved."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def begin_all(self, total: int) -> None:
        """Begin without an engine."""
        self._listener.begin(total, lambda _: None)

    def begin(self, total: int, step_progress: Callable[[str], StepProgress | None]) -> None:
        """See `Listener`."""
        self._listener.begin(total, step_progress)

    def started(self, name: str) -> None:
        """See `Listener`."""
        self._listener.started(name)

    def progressed(self, name: str, blocks: int, records: int) -> None:
        """See `Listener`."""
        self._listener.progressed(name, blocks, records)

    def finished(self, outcome: DatasetOutcome) -> None:
        """See `Listener`."""
