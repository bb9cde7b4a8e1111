"""A cache of the decisions of the last plan, by their input.

A decision follows from the definition, the head of the chain, what its source looked like, and from
the same of all that is upstream. While these are the same it is taken over, and loaded where it is
used; so a plan costs what changed, not what there is. Refusals are not cached. Pure: the
entries come and go as plain values.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Container, Mapping
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from odfbuild.odf.changed import changed
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.plan.expected_input import ExpectedInput, Share
from odfbuild.plan.mode import mode_of
from odfbuild.plan.model import Action, DatasetPlan, EventChange, Pending, Reason, ReasonCode
from odfbuild.plan.right_queries import RightQueries
from odfbuild.plan.verdict import UP_TO_DATE
from odfbuild.project.model import Definition
from odfbuild.store.kept_objects import PROTOCOL, Deferred, Form, names_of, setters

_FORM = Form([*PROTOCOL.classes, ReasonCode, Reason, EventChange, ExpectedInput, Share])
_values_of = attrgetter(*names_of(Share))

# Fields of a plan that are seldom looked at, kept together.
_REST = ("kind", "id", "expected_head", "records_under_old_query", "records_to_correct", "eras")

_values_of_rest = attrgetter(*_REST)
_PENDING_FIELDS = names_of(Pending)

LAYOUT = hashlib.sha256(
    _FORM.layout + repr((names_of(DatasetPlan), _PENDING_FIELDS)).encode()
).digest()
"""Changes whenever entries would be understood differently."""

Heads = Mapping[str, bytes]
"""Text of the head of every chain, by alias in lower case."""

Plain = tuple[Any, ...]
"""The values of an entry, as they are kept."""

_entry = tuple.__new__
"""Makes an entry of its values in a third of the time that `_make` takes."""


class Entry(NamedTuple):
    """What a decision was made from, and the decision."""

    key: bytes
    head: bytes | None
    watch: Any
    inputs: tuple[str, ...]
    input_heads: tuple[bytes | None, ...]
    actions: tuple[str, ...]
    reasons: bytes | None
    pending: Any
    rest: bytes
    outlook: Any


class Memory:
    """What was decided last time (`entries`), and what is decided now (`kept`): by folded alias.

    `heads` are those of all chains now. How the source of a dataset looks now is told by `watched`;
    a dataset of which that is not known is decided anew. `lineages` are kept by content beside, and
    so are the queries that are `right`: without these, queries are not looked at.
    """

    def __init__(
        self,
        entries: Mapping[str, Plain],
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
        self._dumped: dict[int, tuple[Reason, tuple[Any, bool]]] = {}
        """Reasons by `id`: most datasets share some."""
        self.kept: dict[str, Plain] = {}

    def watch(self, definition: Definition) -> Any:
        """How its source looked last time; `None` if its definition or chain changed since."""
        name = definition.folded
        plain = self._entries.get(name)
        if plain is None:
            return None
        entry = _entry(Entry, plain)
        if entry.key != definition.key or entry.head != self.heads.get(name):
            return None
        self._standing[name] = entry
        return entry.watch

    def watched(self, definition: Definition, watch: Any) -> None:
        """How its source looks now; `None` when that cannot be relied on. Told of all defined."""
        self._watches[definition.folded] = watch

    @property
    def knows_heads(self) -> bool:
        """Whether every chain is as it was when a decision about its dataset was kept."""
        kept = {name: _entry(Entry, plain).head for name, plain in self._entries.items()}
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
        self.kept[name] = self._entries[name]
        self._recalled.add(name)
        return KeptPlan.of(self, definition, entry)

    def outlook(self, name: str) -> ExpectedInput | None:
        """What a dataset that was decided already will bring to its readers."""
        name = name.lower()
        if name not in self._outlooks:
            plain = self.kept.get(name)
            self._outlooks[name] = None if plain is None else self._outlook(_entry(Entry, plain))
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
        entry = Entry(
            key=definition.key,
            head=self.heads.get(name),
            watch=watch,
            inputs=inputs,
            input_heads=self._heads_of(inputs, self._watches),
            actions=tuple(action.value for action in plan.actions),
            reasons=None if plan.reasons == UP_TO_DATE else self._dump_reasons(plan.reasons),
            pending=pending and tuple([getattr(pending, name) for name in _PENDING_FIELDS]),
            rest=_dump_rest(plan),
            outlook=outlook and self._dump_outlook(outlook, plan.reasons),
        )
        self.kept[name] = tuple(entry)

    def _upstream_is_the_same(self, entry: Entry, inputs: tuple[str, ...]) -> bool:
        return self._recalled.issuperset(map(str.lower, inputs)) or (
            # What is not defined now must not have been then, and its head says all.
            entry.input_heads == self._heads_of(inputs, self._recalled)
            and all(
                name in self._recalled or (name not in self._entries and name not in self._watches)
                for name in map(str.lower, inputs)
            )
        )

    def _dump_reasons(self, reasons: tuple[Reason, ...]) -> bytes:
        # The causes of an input are told there: here they would repeat at each step downstream.
        return marshal.dumps(tuple(map(self._plain_reason, reasons)))

    def _plain_reason(self, reason: Reason) -> tuple[Any, bool]:
        known = self._dumped.get(id(reason))
        if known is None:
            known = self._dumped[id(reason)] = (reason, self._dump_reason(reason))
        return known[1]

    def _dump_reason(self, reason: Reason) -> tuple[Any, bool]:
        if reason.children and reason.input is not None:
            told = self.outlook(reason.input)
            if told is not None and told.causes == reason.children:
                return _FORM.dump(changed(reason, children=())), True
        return _FORM.dump(reason), False

    def load_reasons(self, dumped: bytes | None) -> tuple[Reason, ...]:
        """The reasons of a recalled dataset."""
        if dumped is None:
            return UP_TO_DATE
        return tuple([self._reason(*each) for each in marshal.loads(dumped)])

    def _reason(self, plain: Any, told_by_input: bool) -> Reason:
        reason: Reason = _FORM.load(plain)
        if not told_by_input:
            return reason
        told = self.outlook(reason.input or "")
        return changed(reason, children=told.causes if told else ())

    def _dump_outlook(self, outlook: ExpectedInput, reasons: tuple[Reason, ...]) -> Any:
        share = outlook.share
        known = (outlook.certain, outlook.records, outlook.exact, share and _values_of(share))
        # Nearly always they are the reasons of the dataset itself, or some of them.
        places = {id(reason): place for place, reason in enumerate(reasons)}
        at = tuple([places.get(id(cause)) for cause in outlook.causes])
        return (*known, self._dump_reasons(outlook.causes) if None in at else at)

    def _outlook(self, entry: Entry) -> ExpectedInput | None:
        if entry.outlook is None:
            return None
        certain, records, exact, kept, causes = entry.outlook
        share = kept and Share(*kept)
        if isinstance(causes, bytes):
            return ExpectedInput(certain, records, exact, self.load_reasons(causes), share)
        reasons = self.load_reasons(entry.reasons)
        causes = tuple([reasons[place] for place in causes])
        return ExpectedInput(certain, records, exact, causes, share)

    def _heads_of(
        self, names: tuple[str, ...], without: Container[str]
    ) -> tuple[bytes | None, ...]:
        return tuple([self.heads.get(n) for n in map(str.lower, names) if n not in without])


def _dump_rest(plan: DatasetPlan) -> bytes:
    """The seldom fields; an event that stands in the definition too, as its position there."""
    rest = _values_of_rest(plan)
    events = plan.snapshot.metadata if plan.snapshot else ()
    # A definition has each kind of event once, but for push sources.
    kinds = [type(event) for event in events]
    changes = []
    for each in plan.changes:
        kind = type(each.after)
        at = kinds.index(kind) if kind in kinds else None
        if at is not None and events[at] != each.after:
            at = events.index(each.after) if each.after in events else None
        changes.append((_FORM.dump(each.before), _FORM.dump(each.after) if at is None else at))
    if plan.id is None and all(type(at) is int for _, at in changes):
        return _rest_of_new(tuple(changes), rest)
    return marshal.dumps((changes, *map(_FORM.dump, rest)))


@lru_cache(64)  # thousands of new datasets have nothing else
def _rest_of_new(changes: tuple[Any, ...], rest: tuple[Any, ...]) -> bytes:
    return marshal.dumps((changes, *map(_FORM.dump, rest)))


@cache
def _actions(values: tuple[str, ...]) -> tuple[Action, ...]:
    return tuple(map(Action, values))


class KeptPlan(Deferred, DatasetPlan):
    """A recalled plan of a dataset: equal to the one made, loaded where it is looked at."""

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
        _put_actions(self, _actions(entry.actions))
        _put_inputs(self, entry.inputs)
        _put_columns(self, None)
        _put_refusal(self, None)
        _put_memory(self, memory)
        _put_definition(self, definition)
        _put_entry(self, entry)
        return self

    def _load_pending(self) -> Pending | None:
        plain = self._entry.pending
        if plain is None:
            return None
        # Of all that run it is looked at: filling slots takes half the time of `__init__`.
        pending = Pending.__new__(Pending)
        for put, value in zip(_put_pending, plain, strict=True):
            put(pending, value)
        return pending

    def _load_changes(self) -> tuple[EventChange, ...]:
        return tuple(
            EventChange(
                before=_FORM.load(before),
                after=self._definition.snapshot.metadata[after]
                if isinstance(after, int)
                else _FORM.load(after),
            )
            for before, after in self._rest[0]
        )


def _rest_at(position: int) -> Callable[[KeptPlan], Any]:
    return lambda plan: _FORM.load(plan._rest[position])


# What each report asks all datasets for.
_put_name, _put_actions, _put_inputs, _put_columns, _put_refusal = setters(
    DatasetPlan, "name", "actions", "inputs", "columns", "refusal"
)
_put_definition, _put_entry, _put_memory, _ = setters(KeptPlan, *KeptPlan.__slots__)
_put_pending = setters(Pending, *_PENDING_FIELDS)

KeptPlan.MAKERS = {
    # What checks refer to is of odfbuild.yaml, and added to each plan.
    "checked_against": lambda _: (),
    "snapshot": lambda plan: plan._definition.snapshot,
    "_rest": lambda plan: marshal.loads(plan._entry.rest),
    "location": lambda plan: plan._definition.location,
    # What has no inputs has no transformation, so its definition need not be looked at.
    "mode": lambda plan: mode_of(plan._definition.snapshot, plan.actions) if plan.inputs else None,
    "pending": KeptPlan._load_pending,
    "reasons": lambda plan: plan._memory.load_reasons(plan._entry.reasons),
    "changes": KeptPlan._load_changes,
    # Put in after decisions are recalled, if at all.
    "renamed_from": lambda plan: None,
    "promoted": lambda plan: None,
    **{name: _rest_at(position) for position, name in enumerate(_REST, start=1)},
}
