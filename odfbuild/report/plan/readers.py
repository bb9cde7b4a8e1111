"""Downstream datasets that a change affects, and their columns."""

from __future__ import annotations

from functools import cached_property

from odfbuild.plan.columns.impact import LISTED, describe
from odfbuild.plan.model import ColumnCause, DatasetPlan, Plan
from odfbuild.wording import count


class Readers:
    """The readers of what changes in a plan. Finding them costs what is affected."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @cached_property
    def _affected(self) -> list[DatasetPlan]:
        return [d for d in self._plan.datasets if d.columns is not None and d.columns.causes]

    @cached_property
    def _of(self) -> dict[str, list[int]]:
        """Positions of the readers of a dataset."""
        found: dict[str, list[int]] = {}
        for position, dataset in enumerate(self._affected):
            for name in dict.fromkeys(cause.input for cause in _causes(dataset)):
                found.setdefault(name, []).append(position)
        return found

    def of(self, dataset: DatasetPlan) -> list[str]:
        """Lines about all whom a change of `dataset` reaches; none when it did not change."""
        if not dataset.changes:
            return []
        reached = {dataset.name}
        waiting = set(self._of.get(dataset.name, ()))
        lines: list[str] = []
        more = 0
        # Datasets of a plan stand inputs first, so the nearest position is complete.
        while waiting:
            position = min(waiting)
            waiting.remove(position)
            reader = self._affected[position]
            waiting |= {each for each in self._of.get(reader.name, ()) if each > position}
            if len(lines) < LISTED:
                causes = [cause for cause in _causes(reader) if cause.input in reached]
                lines.append(f"affects {reader.name}: {describe(causes)}")
            else:
                more += 1
            reached.add(reader.name)
        if more:
            lines.append(f"affects {count(more, 'more dataset')}")
        return lines


def _causes(dataset: DatasetPlan) -> tuple[ColumnCause, ...]:
    return dataset.columns.causes if dataset.columns is not None else ()
