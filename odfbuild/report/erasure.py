"""What erasing subjects would do, and what was done. Subjects are counted, not named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from odfbuild.odf.stewardship import Signed, Withdrawal
from odfbuild.report.outcome import render_tables, tables_to_data
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.apply.erase import Erased, ErasurePlan
    from odfbuild.inspect.subjects import SubjectRecords


def render_erasure_plan(plan: ErasurePlan) -> str:
    """The datasets with records, the steps that cannot be recomputed, the tables."""
    lines = [f"{count(len(plan.subjects), 'subject')}, {count(plan.with_keys, 'key')} to destroy."]
    for each in plan.found:
        lines.append(f"  {each.dataset}: {_records(each)}")
    for each in plan.of_others:
        lines.append(f"  {each.dataset}: {_records(each)}; it belongs to others, ask its owner")
    if not plan.found and not plan.of_others:
        lines.append("  No dataset has records of them.")
    for name, steps in sorted(plan.steps.items()):
        lines.append(f"  {name}: {count(steps, 'step')} cannot be recomputed any more")
    for table in plan.tables:
        lines.append(f"  table {table}: is written anew")
    return "\n".join(lines)


def _records(found: SubjectRecords) -> str:
    return (
        f"{count(sum(found.records.values()), 'record')} of {count(len(found.records), 'subject')}"
    )


def render_erased(done: Erased, *, color: bool = False) -> str:
    """What was done, and what is left to do."""
    lines = [f"Destroyed {count(done.keys, 'key')}."]
    if done.stated:
        lines.append(f"Signed a statement beside {', '.join(done.stated)}.")
        lines.append("Commit it to Git, and run `odfbuild push` to tell those who pull.")
    told = render_tables(done.tables, color=color)
    return "\n".join([*lines, *([told] if told else [])])


def erasure_plan_to_data(plan: ErasurePlan) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "subjects": len(plan.subjects),
        "keys": plan.with_keys,
        "records": plan.records,
        "datasets": [_found_to_data(each) for each in plan.found],
        "of_others": [_found_to_data(each) for each in plan.of_others],
        "steps": dict(plan.steps),
        "tables": list(plan.tables),
    }


def _found_to_data(found: SubjectRecords) -> dict[str, Any]:
    return {
        "name": found.dataset,
        "subjects": len(found.records),
        "records": sum(found.records.values()),
        "blocks": list(found.numbers),
    }


def erased_to_data(plan: ErasurePlan, done: Erased) -> dict[str, Any]:
    """What was planned and done, as plain values."""
    return {
        **erasure_plan_to_data(plan),
        "destroyed": done.keys,
        "stated": list(done.stated),
        "tables": tables_to_data(done.tables),
    }


def statement_lines(name: str, statements: Iterable[Signed]) -> Iterator[str]:
    """A sentence for each statement about a dataset, the oldest first."""
    for each in statements:
        said = each.statement
        signed = f"statement of {said.time} by {said.by}"
        if isinstance(said, Withdrawal):
            what = f"withdrawn: {count(said.records, 'record')} up to block #{said.number}"
            yield f"'{name}': {what} ({signed}: {said.why})."
        else:
            people = count(len(said.subjects), "person")
            what = f"erased: values of {people} in {count(said.records, 'record')}"
            yield f"'{name}': {what} ({signed})."
