"""A part of a plan that can be applied alone, and datasets that moved since it was made. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from odfbuild.odf.multihash import Multihash
from odfbuild.plan.model import Action, DatasetPlan, Plan
from odfbuild.values import Value


class Subset(Value, kw_only=True):
    """A part of a plan: `added` are datasets that others need, `left` stay behind, by name."""

    plan: Plan
    added: tuple[str, ...]
    left: tuple[str, ...]


def subset(plan: Plan, chosen: Collection[str], excluded: Collection[str]) -> Subset:
    """What to apply of a plan when `chosen` and not `excluded` datasets are wanted.

    A step that was reviewed reads what the steps before it add, so they come with it; and without
    a step that is excluded, none of those that read its records can be done as reviewed.
    """
    active = {d.name: d for d in plan.datasets if _is_active(d)}
    impossible = {name for name in active if name in excluded}
    for dataset in plan.datasets:
        if dataset.name in active and impossible.intersection(dataset.inputs):
            impossible.add(dataset.name)
    wanted = {name for name in active if name in chosen and name not in impossible}
    taken = set(wanted)
    for dataset in reversed(plan.datasets):
        if dataset.name in taken:
            taken.update(name for name in dataset.inputs if name in active)
    inside = tuple(d for d in plan.datasets if d.name in taken)
    outside = [d for d in plan.datasets if d.name not in taken]
    pins = {**dict(plan.pins), **{d.name: d.expected_head for d in outside}}
    needed = {name for d in inside for name in d.inputs}
    return Subset(
        plan=replace(
            plan,
            datasets=inside,
            complete=plan.complete and set(active) == taken,
            pins=tuple(sorted((n, head) for n, head in pins.items() if n in needed)),
            external=tuple(each for each in plan.external if each.name in needed),
            publications=tuple(each for each in plan.publications if each.dataset in taken),
            tables=tuple(each for each in plan.tables if each.dataset in taken),
            retention=tuple(
                each
                for each in plan.retention
                if each.dataset in chosen and each.dataset not in excluded
            ),
        ),
        added=tuple(d.name for d in inside if d.name not in wanted),
        left=tuple(d.name for d in outside if d.name in active),
    )


def _is_active(dataset: DatasetPlan) -> bool:
    return bool(set(dataset.actions) - {Action.FORGET})


class MovedHead(Value, kw_only=True):
    """A dataset whose head is not the one that the plan was made against; `None`: no chain."""

    name: str
    planned: Multihash | None
    actual: Multihash | None


def moved(plan: Plan, heads: Mapping[str, Multihash]) -> dict[str, tuple[MovedHead, ...]]:
    """For each planned dataset that cannot be done as reviewed, the datasets that moved.

    That is the dataset itself, or an input of it. `heads` are the present ones by lower-case alias.
    """
    pinned = {d.name: d.expected_head for d in plan.datasets} | dict(plan.pins)
    pinned |= {each.name: each.head for each in plan.external}
    found = {}
    for dataset in plan.datasets:
        if not _is_active(dataset):
            continue
        gone = [
            MovedHead(name=name, planned=pinned[name], actual=heads.get(name.lower()))
            for name in (dataset.name, *dataset.inputs)
            if name in pinned and pinned[name] != heads.get(name.lower())
        ]
        if gone:
            found[dataset.name] = tuple(gone)
    return found
