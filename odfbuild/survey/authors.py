"""Find out whether a run or something else made a chain differ from its definition.

A block is ours when the log of runs has it, or when the definition at the commit that it belongs to
says the same. Anything else was appended by another program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from odfbuild.errors import OdfbuildError, PlanError
from odfbuild.odf.chain.step import Link
from odfbuild.odf.model import MetadataEvent
from odfbuild.plan.changes.definitions import ChangeKind, DefinitionChange, EventDifference, slot_of
from odfbuild.plan.changes.equality import EventMatch, compare
from odfbuild.plan.drift import ChainDrift, DriftCause
from odfbuild.plan.model import DatasetPlan
from odfbuild.project.git.notes import CommitInfo
from odfbuild.project.model import Config
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace
from odfbuild.survey.blame import blame
from odfbuild.survey.compare import compare_revisions
from odfbuild.survey.known_heads import KnownHead
from odfbuild.survey.runs import PastRun, runs_in


class Authors:
    """Tells the drift of definitions apart by whose hand made it; looks things up when asked.

    `known` are the last known heads: who has none has no past to compare with.
    """

    def __init__(
        self, config: Config, workspace: Workspace, known: Mapping[str, KnownHead]
    ) -> None:
        self._config = config
        self._workspace = workspace
        self._known = known
        self._changes: dict[str, Mapping[str, DefinitionChange | None] | None] = {}

    @cached_property
    def _runs(self) -> list[PastRun]:
        return runs_in(self._config.cache, self._config.branch)

    def drifts(self, change: DefinitionChange) -> Iterator[ChainDrift]:
        """The drift of a dataset whose chain and definition differ, one for each event."""
        name = change.before.name if change.before else change.name
        store = self._workspace.dataset(name)
        for each in change.events:
            event = each.before or each.after
            if event is not None:
                link = _newest(store, event)
                yield self._drift(change.name, store, each, event.KIND, link)

    def since_noted(self, dataset: DatasetPlan, known: KnownHead) -> Iterator[ChainDrift]:
        """Of the changes that a plan makes, those that put back what came after the noted head."""
        store = self._workspace.dataset(dataset.name)
        for change in dataset.changes:
            link = _newest(store, change.before or change.after, known)
            if link is not None and not self._is_of_a_run(store, link):
                place = change.location or dataset.location
                yield _elsewhere(dataset.name, link, known.by, place)

    def _drift(
        self,
        name: str,
        store: DatasetStore,
        each: EventDifference,
        kind: str,
        link: Link | None,
    ) -> ChainDrift:
        place = each.location
        if link is None or self._is_of_a_run(store, link):
            return _not_applied(name, kind, link, None, place)
        commit = self._commit_of(store, link)
        if commit is not None:
            said = self._said_at(commit, name, each, link)
            if said is None:
                return _differs(name, kind, link, place)
            if said:
                return _not_applied(name, kind, link, commit, place)
            return _elsewhere(name, link, str(commit), place, commit.hash)
        known = self._known.get(store.name)
        if known is None:
            return _differs(name, kind, link, place)
        return _elsewhere(name, link, known.by, place, known.commit)

    def _is_of_a_run(self, store: DatasetStore, link: Link) -> bool:
        """Whether the log of runs has the block of `link`."""
        number = link[1].sequence_number
        for run in self._runs:
            result = run.datasets.get(store.name)
            if result is None or not result.get("blocks") or not result.get("head_after"):
                continue
            last = self._number(store, result["head_after"])
            if last is not None and last - result["blocks"] < number <= last:
                return True
        return False

    def _number(self, store: DatasetStore, text: str) -> int | None:
        head = store.head()
        for hash, block in store.walk(head) if head is not None else ():
            if str(hash) == text:
                return block.sequence_number
        return None

    def _commit_of(self, store: DatasetStore, link: Link) -> CommitInfo | None:
        try:
            found = blame(self._config, store)
        except PlanError:
            return None  # no Git here
        return next((each.commit for each in found if each.hash == link[0]), None)

    def _said_at(
        self, commit: CommitInfo, name: str, each: EventDifference, link: Link
    ) -> bool | None:
        """Whether the definition at a commit says what the chain says; `None`: nobody can tell."""
        if commit.hash not in self._changes:
            self._changes[commit.hash] = self._changes_since(commit)
        since = self._changes[commit.hash]
        if since is None:
            return None
        if name not in since:
            return False  # the definition was then what it is now
        change = since[name]
        if change is None or change.kind is ChangeKind.ADDED:
            return None
        slot = slot_of(link[1].event)
        event = next(
            (e for e in change.events if slot_of(e.before or e.after) == slot),  # type: ignore[arg-type]
            None,
        )
        if event is None:
            return False
        if event.before is None or each.before is None:
            return event.before is each.before
        return compare(event.before, each.before) is not EventMatch.DIFFERENT

    def _changes_since(self, commit: CommitInfo) -> Mapping[str, DefinitionChange | None] | None:
        """What changed since a commit; `None` for what could not be compared."""
        try:
            found = compare_revisions(self._config, commit.hash, None)
        except OdfbuildError:
            return None
        return {**dict.fromkeys(found.faults), **{each.name: each for each in found.changes}}


def _newest(
    store: DatasetStore, event: MetadataEvent, after: KnownHead | None = None
) -> Link | None:
    """The newest block that says what `event` is about, of those behind the head `after`."""
    head, slot = store.head(), slot_of(event)
    links = store.walk(head, after.head if after else None) if head is not None else ()
    return next((link for link in links if slot_of(link[1].event) == slot), None)


def _differs(name: str, kind: str, link: Link, place: object) -> ChainDrift:
    return ChainDrift(
        dataset=name,
        cause=DriftCause.DIFFERS,
        message=f"{kind} in block #{link[1].sequence_number} {link[0].short} differs from its "
        "definition, and there is no record of which of the two changed",
        help=_help(name),
        block=link[0],
        sequence_number=link[1].sequence_number,
        file=_text(place),
    )


def _not_applied(
    name: str, kind: str, link: Link | None, commit: CommitInfo | None, place: object
) -> ChainDrift:
    since = f" since {commit}" if commit else ""
    return ChainDrift(
        dataset=name,
        cause=DriftCause.NOT_APPLIED,
        message=f"its definition changed{since}, and {kind} was not applied",
        help=f"`odfbuild apply -s {name}` does",
        block=link[0] if link else None,
        sequence_number=link[1].sequence_number if link else None,
        commit=commit.hash if commit else None,
        file=_text(place),
    )


def _elsewhere(
    name: str, link: Link, since: str, place: object, commit: str | None = None
) -> ChainDrift:
    return ChainDrift(
        dataset=name,
        cause=DriftCause.CHANGED_ELSEWHERE,
        message=f"{link[1].event.KIND} in block #{link[1].sequence_number} {link[0].short} was not "
        f"appended from its definition; it came after {since.rstrip(',')}",
        help=_help(name),
        block=link[0],
        sequence_number=link[1].sequence_number,
        commit=commit,
        file=_text(place),
    )


def _help(name: str) -> str:
    return (
        f"`odfbuild apply -s {name}` restores the definition; "
        f"`odfbuild import {name}` prints the definition of the chain"
    )


def _text(place: object) -> str | None:
    return None if place is None else str(place)
