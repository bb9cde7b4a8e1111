"""A cache of the decisions of the last plan, by their input.

A decision follows from the definition, the head of the chain, what its source looked like, and from
the same of all that is upstream. While these are the same it is taken over, and thawed where it is
looked at; so a plan costs what changed, not what there is. Refusals are not cached. Pure: the
entries come and go as plain values.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Container, Mapping
from functools import cache
from operator import attrgetter
from typing import Any

from odfbuild.odf.changed import changed
from odfbuild.odf.model import MetadataEvent
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.plan.expected_input import ExpectedInput, Share
from odfbuild.plan.mode import mode_of
from odfbuild.plan.model import Action, DatasetPlan, EventChange, Pending, Reason, ReasonCode
from odfbuild.plan.right_queries import RightQueries
from odfbuild.plan.verdict import UP_TO_DATE
from odfbuild.project.model import Definition
from odfbuild.store.frozen import PROTOCOL, Form, equality, names_of, setters

_FORM = Form([*PROTOCOL.classes, ReasonCode, Reason, EventChange, ExpectedInput, Share])
_values_of = attrgetter(*names_of(Share))

_KEY, _HEAD, _WATCH, _INPUTS, _INPUT_HEADS = range(5)
_ACTION_VALUES, _REASONS, _PENDING, _FROZEN_REST, _OUTLOOK = range(5, 10)

# Fields of a plan that are seldom looked at, frozen together.
_REST = ("kind", "id", "expected_head", "records_under_old_query", "records_to_correct", "eras")

_PENDING_FIELDS = names_of(Pending)

LAYOUT = hashlib.sha256(
    _FORM.layout + repr((names_of(DatasetPlan), _PENDING_FIELDS)).encode()
).digest()
"""Changes whenever entries would be understood differently."""

Heads = Mapping[str, bytes]
"""Text of the head of every chain, by alias in lower case."""

Entry = tuple[Any, ...]
"""Key of the definition, head, watch of the source, inputs and their heads; then the decision."""


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
        self._watches: dict[str, Any] = {}
        self._recalled: set[str] = set()
        self._outlooks: dict[str, ExpectedInput | None] = {}
        self.kept: dict[str, Entry] = {}

    def watch(self, definition: Definition) -> Any:
        """How its source looked last time; `None` if its definition or chain changed since."""
        name = definition.folded
        entry = self._entries.get(name)
        if entry is None or entry[_KEY] != definition.key or entry[_HEAD] != self.heads.get(name):
            return None
        self._standing[name] = entry
        return entry[_WATCH]

    def watched(self, definition: Definition, watch: Any) -> None:
        """How its source looks now; `None` when that cannot be relied on. Told of all defined."""
        self._watches[definition.folded] = watch

    @property
    def knows_heads(self) -> bool:
        """Whether every chain is as it was when a decision about its dataset was kept."""
        kept = {name: entry[_HEAD] for name, entry in self._entries.items()}
        return self.heads.items() <= kept.items()

    @property
    def is_changed(self) -> bool:
        """Whether `kept` says something that the entries did not."""
        return len(self.kept) != len(self._entries) or any(
            self._entries.get(name) is not entry for name, entry in self.kept.items()
        )

    def recall(self, definition: Definition, inputs: tuple[str, ...]) -> DatasetPlan | None:
        """The decision about a dataset whose inputs were decided already, if it still holds."""
        name = definition.folded
        entry = self._standing.get(name)
        if (
            entry is None
            or entry[_WATCH] != self._watches.get(name)
            or entry[_INPUTS] != inputs
            or (inputs and not self._upstream_is_the_same(entry, inputs))
        ):
            return None
        self.kept[name] = entry
        self._recalled.add(name)
        return KeptPlan.of(self, definition, entry)

    def outlook(self, name: str) -> ExpectedInput | None:
        """What a dataset that was decided already will bring to its readers."""
        name = name.lower()
        if name not in self._outlooks:
            entry = self.kept.get(name)
            self._outlooks[name] = self._thaw_outlook(entry) if entry is not None else None
        return self._outlooks[name]

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
        pending = plan.pending
        self.kept[name] = (
            definition.key,
            self.heads.get(name),
            watch,
            inputs,
            self._heads_of(inputs, self._watches),
            tuple(action.value for action in plan.actions),
            None if plan.reasons is UP_TO_DATE else self._freeze_reasons(plan.reasons),
            pending and tuple([getattr(pending, name) for name in _PENDING_FIELDS]),
            _freeze_rest(plan),
            outlook and self._freeze_outlook(outlook, plan.reasons),
        )

    def _upstream_is_the_same(self, entry: Entry, inputs: tuple[str, ...]) -> bool:
        return self._recalled.issuperset(map(str.lower, inputs)) or (
            # What is not defined now must not have been then, and its head says all.
            entry[_INPUT_HEADS] == self._heads_of(inputs, self._recalled)
            and all(
                name in self._recalled or (name not in self._entries and name not in self._watches)
                for name in map(str.lower, inputs)
            )
        )

    def _freeze_reasons(self, reasons: tuple[Reason, ...]) -> bytes:
        # The causes of an input are told there: here they would repeat at each step downstream.
        return marshal.dumps(tuple(map(self._plain_reason, reasons)))

    def _plain_reason(self, reason: Reason) -> tuple[Any, bool]:
        if reason.children and reason.input is not None:
            told = self.outlook(reason.input)
            if told is not None and told.causes is reason.children:
                return _FORM.plain(changed(reason, children=())), True
        return _FORM.plain(reason), False

    def thaw_reasons(self, frozen: bytes | None) -> tuple[Reason, ...]:
        """The reasons of a recalled dataset."""
        if frozen is None:
            return UP_TO_DATE
        return tuple([self._reason(*each) for each in marshal.loads(frozen)])

    def _reason(self, plain: Any, told_by_input: bool) -> Reason:
        reason: Reason = _FORM.thaw(plain)
        if not told_by_input:
            return reason
        told = self.outlook(reason.input or "")
        return changed(reason, children=told.causes if told else ())

    def _freeze_outlook(self, outlook: ExpectedInput, reasons: tuple[Reason, ...]) -> Any:
        share = outlook.share
        known = (outlook.certain, outlook.records, outlook.exact, share and _values_of(share))
        places = {id(reason): place for place, reason in enumerate(reasons)}
        causes = tuple([places.get(id(cause)) for cause in outlook.causes])
        # Nearly always they are some of the reasons of the dataset itself.
        return (*known, self._freeze_reasons(outlook.causes) if None in causes else causes)

    def _thaw_outlook(self, entry: Entry) -> ExpectedInput | None:
        if entry[_OUTLOOK] is None:
            return None
        certain, records, exact, kept, causes = entry[_OUTLOOK]
        share = kept and Share(*kept)
        if isinstance(causes, bytes):
            return ExpectedInput(certain, records, exact, self.thaw_reasons(causes), share)
        reasons = self.thaw_reasons(entry[_REASONS])
        causes = tuple([reasons[place] for place in causes])
        return ExpectedInput(certain, records, exact, causes, share)

    def _heads_of(
        self, names: tuple[str, ...], without: Container[str]
    ) -> tuple[bytes | None, ...]:
        return tuple([self.heads.get(n) for n in map(str.lower, names) if n not in without])


def _freeze_rest(plan: DatasetPlan) -> bytes:
    """The seldom fields; an event that stands in the definition too, as its position there."""
    events = plan.snapshot.metadata if plan.snapshot else ()
    positions = {id(event): position for position, event in enumerate(events)}
    changes = [
        (_FORM.plain(each.before), _position_or_plain(positions, each.after))
        for each in plan.changes
    ]
    return marshal.dumps((changes, *[_FORM.plain(getattr(plan, each)) for each in _REST]))


def _position_or_plain(positions: Mapping[int, int], event: MetadataEvent) -> Any:
    position = positions.get(id(event))
    return _FORM.plain(event) if position is None else position


@cache
def _actions(values: tuple[str, ...]) -> tuple[Action, ...]:
    return tuple(map(Action, values))


class KeptPlan(DatasetPlan):
    """A recalled plan of a dataset: equal to the one made, thawed where it is looked at."""

    __slots__ = ("_definition", "_entry", "_memory", "_rest")

    _memory: Memory
    _definition: Definition
    _entry: Entry
    _rest: tuple[Any, ...]

    @classmethod
    def of(cls, memory: Memory, definition: Definition, entry: Entry) -> KeptPlan:
        """From an entry."""
        self = cls.__new__(cls)
        _put_name(self, definition.name)
        _put_actions(self, _actions(entry[_ACTION_VALUES]))
        _put_refusal(self, None)
        _put_memory(self, memory)
        _put_definition(self, definition)
        _put_entry(self, entry)
        return self

    def __getattr__(self, name: str) -> Any:
        # Only called for slots that are not filled yet.
        thaw = _THAWED.get(name)
        if thaw is None:
            raise AttributeError(name)
        value = thaw(self)
        object.__setattr__(self, name, value)
        return value

    __eq__ = equality(DatasetPlan)
    __hash__ = DatasetPlan.__hash__

    def _thaw_pending(self) -> Pending | None:
        plain = self._entry[_PENDING]
        if plain is None:
            return None
        # Of all that run it is looked at: filling slots takes half the time of `__init__`.
        pending = Pending.__new__(Pending)
        for put, value in zip(_put_pending, plain, strict=True):
            put(pending, value)
        return pending

    def _thaw_reasons(self) -> tuple[Reason, ...]:
        return self._memory.thaw_reasons(self._entry[_REASONS])

    def _thaw_changes(self) -> tuple[EventChange, ...]:
        return tuple(
            EventChange(
                before=_FORM.thaw(before),
                after=self._definition.snapshot.metadata[after]
                if isinstance(after, int)
                else _FORM.thaw(after),
            )
            for before, after in self._rest[0]
        )


def _rest_at(position: int) -> Callable[[KeptPlan], Any]:
    return lambda plan: _FORM.thaw(plan._rest[position])


_put_name, _put_actions, _put_refusal = setters(DatasetPlan, "name", "actions", "refusal")
_put_definition, _put_entry, _put_memory, _ = setters(KeptPlan, *KeptPlan.__slots__)
_put_pending = setters(Pending, *_PENDING_FIELDS)

_THAWED: dict[str, Callable[[KeptPlan], Any]] = {
    "snapshot": lambda plan: plan._definition.snapshot,
    "_rest": lambda plan: marshal.loads(plan._entry[_FROZEN_REST]),
    "inputs": lambda plan: plan._entry[_INPUTS],
    "columns": lambda plan: None,
    "location": lambda plan: plan._definition.location,
    # What has no inputs has no transformation, so its definition need not be looked at.
    "mode": lambda plan: mode_of(plan._definition.snapshot, plan.actions) if plan.inputs else None,
    "pending": KeptPlan._thaw_pending,
    "reasons": KeptPlan._thaw_reasons,
    "changes": KeptPlan._thaw_changes,
    # Put in after decisions are recalled, if at all.
    "renamed_from": lambda plan: None,
    **{name: _rest_at(position) for position, name in enumerate(_REST, start=1)},
}
