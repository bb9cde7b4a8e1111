"""What people are told of a run, or of ages: what has just become wrong, and what is right again.

Who was told of a failure is not told again while it lasts. Pure: what is open comes in, and what is
open then goes out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from odfbuild.inspect.ages import DatasetAge
from odfbuild.project.settings.by_name import matching
from odfbuild.project.settings.notifying import Event, Notify
from odfbuild.survey.outcome import ApplyOutcome, Status
from odfbuild.values import Value

Key = tuple[str, str]
"""The event and the dataset of a problem that lasts."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something that happened to a dataset, in one sentence; `code` is that of its error."""

    event: Event
    dataset: str
    message: str
    code: str | None = None

    @property
    def key(self) -> Key:
        """What it is called while it lasts."""
        return self.event, self.dataset


class Seen(Value):
    """All problems of a run, and keys of those that are over if there were any."""

    problems: tuple[Problem, ...]
    over: frozenset[Key]


class Alert(Value):
    """What to tell of a project: `problems` that are new, and datasets that have recovered."""

    project: str
    problems: tuple[Problem, ...]
    recovered: tuple[Key, ...]


_DONE = (Status.COMMITTED, Status.NOOP)
_LASTING = ("failure", "stale")


def of_run(outcome: ApplyOutcome) -> Seen:
    """What failed in a run or was tolerated, and what went well; a table counts as its dataset."""
    problems: list[Problem] = []
    over: set[Key] = set()
    for each in outcome.datasets:
        if each.status is Status.FAILED:
            message = each.error.message if each.error else each.because
            code = each.error.code if each.error else None
            problems.append(Problem("failure", each.name, message, code))
        elif each.status in _DONE:
            over.add(("failure", each.name))
        late = sum(each.late.values())
        if late:
            problems.append(Problem("late", each.name, f"{late:,} records came behind a window"))
        drift = (*each.drift.new, *each.drift.missing, *each.drift.retyped)
        if drift:
            message = f"columns of the source are not as expected: {', '.join(drift)}"
            problems.append(Problem("drift", each.name, message))
    for table in outcome.tables:
        if table.error is not None and table.status is Status.FAILED:
            message = f"table {table.name}: {table.error.message}"
            problems.append(Problem("failure", table.dataset, message, table.error.code))
    for transfer in outcome.published:
        if transfer.error is not None:
            message = f"it was not published: {transfer.error.message}"
            problems.append(Problem("failure", transfer.name, message, transfer.error.code))
    failed = {each.key for each in problems}
    return Seen(tuple(problems), frozenset(over - failed))


def of_ages(ages: Iterable[DatasetAge]) -> Seen:
    """Which datasets are too old, or damaged, and which are not."""
    problems: list[Problem] = []
    over: set[Key] = set()
    for each in ages:
        if each.error is not None:
            problems.append(Problem("stale", each.name, each.error.message, each.error.code))
        elif each.status == "stale":
            since = f"its watermark is {each.watermark}" if each.watermark else "it has no records"
            problems.append(Problem("stale", each.name, f"it is older than {each.limit}: {since}"))
        elif each.status == "fresh":
            over.add(("stale", each.name))
    return Seen(tuple(problems), frozenset(over))


def alert_for(
    entry: Notify, project: str, seen: Seen, told: Collection[Key]
) -> tuple[Alert | None, frozenset[Key]]:
    """What an entry is told, that was `told` of some; and what is open then.

    `None`: there is nothing to tell.
    """
    mine = [each for each in seen.problems if matching(entry, each.dataset) is not None]
    new = [each for each in mine if each.event in entry.on and each.key not in told]
    over = sorted(set(told) & seen.over)
    open_now = (frozenset(told) - seen.over) | _lasting(new)
    recovered = over if "recovery" in entry.on else []
    if not new and not recovered:
        return None, open_now
    return Alert(project, tuple(new), tuple(recovered)), open_now


def _lasting(problems: Sequence[Problem]) -> frozenset[Key]:
    return frozenset(each.key for each in problems if each.event in _LASTING)
