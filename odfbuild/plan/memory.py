"""A cache of the decisions of the last plan, by their input.

A decision follows from the definition, the head of the chain, what its source looked like, and from
the same of all that is upstream. While these are the same it is taken over; so a plan costs what
changed, not what there is. Refusals are not cached. Pure: the entries come and go as bytes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from msgspec import Raw
from msgspec.structs import replace

from odfbuild.ingest.watch import Watch
from odfbuild.odf.chain.projection import QueryEra
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import DatasetKind, MetadataEvent
from odfbuild.odf.multihash import Multihash
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.plan.expected_input import ExpectedInput, Share
from odfbuild.plan.model import Action, DatasetPlan, EventChange, Pending, Reason
from odfbuild.plan.right_queries import RightQueries
from odfbuild.plan.verdict import UP_TO_DATE
from odfbuild.project.model import Definition
from odfbuild.store.disposable import packed, unpacked
from odfbuild.values import Value

Heads = Mapping[str, bytes]
"""Text of the head of every chain, by alias in lower case."""


class _Outlook(Value):
    """An expected input. A cause is a reason of its dataset, by place, or one of its own."""

    certain: bool
    records: int | None
    exact: bool
    share: Share | None
    causes: tuple[int | Reason, ...]
    told: tuple[int, ...]


class _Decision(Value):
    """A plan of a dataset without what its definition says.

    An event that stands in the definition, too, is its place there. The causes of a reason that are
    those of its input are told there: here they would repeat at each step downstream. `told` are
    the places of such reasons.
    """

    kind: DatasetKind
    id: DatasetId | None
    expected_head: Multihash | None
    actions: tuple[Action, ...]
    reasons: tuple[Reason, ...] | None
    told: tuple[int, ...]
    changes: tuple[tuple[MetadataEvent | None, MetadataEvent | int], ...]
    pending: Pending | None
    records_under_old_query: int | None
    records_to_correct: int | None
    eras: tuple[QueryEra, ...]
    outlook: _Outlook | None


class Entry(Value):
    """What a decision was made from, and the decision."""

    key: bytes
    head: bytes | None
    watch: Watch
    inputs: tuple[str, ...]
    input_heads: tuple[bytes | None, ...]
    decision: Raw


class Memory:
    """What was decided last time (`entries`), and what is decided now (`kept`): by folded alias.

    `heads` are those of all chains now. How the source of a dataset looks now is told by `watched`;
    a dataset of which that is not known is decided anew. `lineages` are kept by content beside, and
    so are the queries that are `right`: without these, queries are not looked at.
    """

    def __init__(
        self,
        entries: Mapping[str, Entry],
        heads: Heads,
        lineages: Lineages | None = None,
        right: RightQueries | None = None,
    ) -> None:
        self.lineages = lineages or Lineages()
        self.right = right
        self._entries = entries
        self.heads = heads
        self._standing: dict[str, Entry] = {}
        """Of datasets whose definition and chain are as they were."""
        self._watches: dict[str, Watch | None] = {}
        self._outlooks: dict[str, ExpectedInput | None] = {}
        self.recalled: set[str] = set()
        """Datasets whose last decision was taken over."""
        self.kept: dict[str, Entry] = {}

    def watch(self, definition: Definition) -> Watch | None:
        """How its source looked last time; `None` if its definition or chain changed since."""
        name = definition.folded
        entry = self._entries.get(name)
        if entry is None or entry.key != definition.key or entry.head != self.heads.get(name):
            return None
        self._standing[name] = entry
        return entry.watch

    def watched(self, definition: Definition, watch: Watch | None) -> None:
        """How its source looks now; `None` when that cannot be relied on. Told of all defined."""
        self._watches[definition.folded] = watch

    @property
    def knows_heads(self) -> bool:
        """Whether every chain is as it was when a decision about its dataset was kept."""
        kept = {name: entry.head for name, entry in self._entries.items()}
        return self.heads.items() <= kept.items()

    @property
    def is_changed(self) -> bool:
        """Whether `kept` says something that the entries did not."""
        return self.kept != self._entries

    def recall(self, definition: Definition, inputs: tuple[str, ...]) -> DatasetPlan | None:
        """The decision about a dataset whose inputs were decided already, if it still holds."""
        name = definition.folded
        entry = self._standing.get(name)
        if (
            entry is None
            or entry.watch != self._watches.get(name)
            or entry.inputs != inputs
            or (inputs and not self._upstream_is_the_same(entry, inputs))
        ):
            return None
        self.kept[name] = entry
        self.recalled.add(name)
        return self._loaded(definition, unpacked(_Decision, entry.decision), inputs)

    def outlook(self, name: str) -> ExpectedInput | None:
        """What a dataset that was decided already will bring to its readers."""
        return self._outlooks.get(name.lower())

    def learn(
        self,
        definition: Definition,
        inputs: tuple[str, ...],
        plan: DatasetPlan,
        outlook: ExpectedInput | None,
    ) -> None:
        """Keep a decision that was made just now."""
        name = definition.folded
        self._outlooks[name] = outlook
        watch = self._watches.get(name)
        if definition.key is None or watch is None or plan.refusal is not None:
            return
        if plan.columns is not None:
            # Its readers ask for the columns that it will have, which are not kept.
            return
        if not all(
            each in self.kept or each not in self._watches for each in map(str.lower, inputs)
        ):
            return
        self.kept[name] = Entry(
            key=definition.key,
            head=self.heads.get(name),
            watch=watch,
            inputs=inputs,
            input_heads=self._heads_of(inputs, self._watches),
            decision=Raw(packed(self._plain(definition, plan, outlook))),
        )

    def _upstream_is_the_same(self, entry: Entry, inputs: tuple[str, ...]) -> bool:
        return self.recalled.issuperset(map(str.lower, inputs)) or (
            # What is not defined now must not have been then, and its head says all.
            entry.input_heads == self._heads_of(inputs, self.recalled)
            and all(
                name in self.recalled or (name not in self._entries and name not in self._watches)
                for name in map(str.lower, inputs)
            )
        )

    def _plain(
        self, definition: Definition, plan: DatasetPlan, outlook: ExpectedInput | None
    ) -> _Decision:
        reasons, told = self._without_told(plan.reasons)
        return _Decision(
            kind=plan.kind,
            id=plan.id,
            expected_head=plan.expected_head,
            actions=plan.actions,
            reasons=None if plan.reasons == UP_TO_DATE else reasons,
            told=told,
            changes=_without_defined(plan.changes, definition),
            pending=plan.pending,
            records_under_old_query=plan.records_under_old_query,
            records_to_correct=plan.records_to_correct,
            eras=plan.eras,
            outlook=None if outlook is None else self._plain_outlook(outlook, plan.reasons),
        )

    def _loaded(
        self, definition: Definition, kept: _Decision, inputs: tuple[str, ...]
    ) -> DatasetPlan:
        reasons = UP_TO_DATE if kept.reasons is None else self._with_told(kept.reasons, kept.told)
        if kept.outlook is not None:
            outlook = _loaded_outlook(kept.outlook, reasons)
            self._outlooks[definition.folded] = replace(
                outlook, causes=self._with_told(outlook.causes, kept.outlook.told)
            )
        return DatasetPlan(
            name=definition.name,
            kind=kept.kind,
            id=kept.id,
            expected_head=kept.expected_head,
            actions=kept.actions,
            reasons=reasons,
            changes=_with_defined(kept.changes, definition) if kept.changes else (),
            pending=kept.pending,
            records_under_old_query=kept.records_under_old_query,
            records_to_correct=kept.records_to_correct,
            eras=kept.eras,
            definition=definition,
            inputs=inputs,
            location=definition.location,
        )

    def _without_told(
        self, reasons: tuple[Reason, ...]
    ) -> tuple[tuple[Reason, ...], tuple[int, ...]]:
        """Reasons without the children that their inputs tell, and the places of such reasons."""
        told = tuple([at for at, reason in enumerate(reasons) if self._is_told(reason)])
        if not told:
            return reasons, told
        bare = [replace(r, children=()) if at in told else r for at, r in enumerate(reasons)]
        return tuple(bare), told

    def _is_told(self, reason: Reason) -> bool:
        if not reason.children or reason.input is None:
            return False
        outlook = self.outlook(reason.input)
        return outlook is not None and outlook.causes == reason.children

    def _with_told(self, reasons: tuple[Reason, ...], told: tuple[int, ...]) -> tuple[Reason, ...]:
        if not told:
            return reasons
        found = list(reasons)
        for at in told:
            outlook = self.outlook(found[at].input or "")
            found[at] = replace(found[at], children=outlook.causes if outlook else ())
        return tuple(found)

    def _plain_outlook(self, outlook: ExpectedInput, reasons: tuple[Reason, ...]) -> _Outlook:
        # Nearly always they are the reasons of the dataset itself, or some of them.
        places = {id(reason): place for place, reason in enumerate(reasons)}
        causes, told = self._without_told(outlook.causes)
        at = tuple(
            [places.get(id(one), bare) for one, bare in zip(outlook.causes, causes, strict=True)]
        )
        return _Outlook(
            outlook.certain,
            outlook.records,
            outlook.exact,
            outlook.share,
            at,
            tuple([place for place in told if not isinstance(at[place], int)]),
        )

    def _heads_of(
        self, names: tuple[str, ...], without: Container[str]
    ) -> tuple[bytes | None, ...]:
        return tuple([self.heads.get(n) for n in map(str.lower, names) if n not in without])


def _loaded_outlook(kept: _Outlook, reasons: tuple[Reason, ...]) -> ExpectedInput:
    causes = tuple([reasons[each] if isinstance(each, int) else each for each in kept.causes])
    return ExpectedInput(kept.certain, kept.records, kept.exact, causes, kept.share)


def _without_defined(
    changes: tuple[EventChange, ...], definition: Definition
) -> tuple[tuple[MetadataEvent | None, MetadataEvent | int], ...]:
    events = definition.snapshot.metadata if changes else ()
    return tuple(
        [
            (each.before, events.index(each.after) if each.after in events else each.after)
            for each in changes
        ]
    )


def _with_defined(
    kept: tuple[tuple[MetadataEvent | None, MetadataEvent | int], ...], definition: Definition
) -> tuple[EventChange, ...]:
    events = definition.snapshot.metadata
    return tuple(
        [
            EventChange(before=before, after=events[after] if isinstance(after, int) else after)
            for before, after in kept
        ]
    )
