"""What unit tests of queries showed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from odfbuild.errors import Location
from odfbuild.report.errors import error_to_data
from odfbuild.report.forms.markdown import code, escaped
from odfbuild.report.forms.table import render_table
from odfbuild.report.forms.words import paint
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.apply.unit_tests.difference import Difference
    from odfbuild.apply.unit_tests.run import Outcome

SHOWN = 20
"""Records of a difference that text and Markdown show."""
NO_TESTS = (
    "No unit tests found; files `NAME.test.yaml` beside the definitions declare them "
    "(docs/unit-tests.md)."
)
_SIGNS = {"-": "red", "+": "green", "~": "yellow"}
_LEGEND = "`-` is missing, `+` was not expected, `~` is changed: expected → actual"


def render_unit_tests(outcomes: Sequence[Outcome], *, color: bool = False) -> str:
    """Each test that failed with its place and the difference as a table, then the counts."""
    if not outcomes:
        return NO_TESTS
    lines = []
    for each in outcomes:
        if each.passed:
            continue
        lines.append(f"  {paint('!', 'magenta', on=color)} {each.test.dataset}: {each.test.name}")
        lines.append(f"      {paint('-->', 'blue', on=color)} {each.place}{_step(each)}")
        if each.error is not None:
            lines += [f"      error[{part.code}]: {part.message}" for part in each.error.apart()]
        if each.difference:
            signs, rows = zip(*islice(_rows(each.difference), SHOWN), strict=True)
            header = ("", *_columns(each.difference))
            table = render_table(
                header, [(sign, *row) for sign, row in zip(signs, rows, strict=True)]
            )
            head, *body = table.splitlines()
            lines.append(f"        {head}".rstrip())
            lines += [
                f"        {paint(line, _SIGNS[sign], on=color)}"
                for sign, line in zip(signs, body, strict=True)
            ]
            lines += [
                f"        … and {hidden} more" for hidden in [_hidden(each.difference)] if hidden
            ]
        lines.append("")
    if any(each.difference for each in outcomes):
        lines += [f"  {_LEGEND.replace('`', '')}", ""]
    return "\n".join([*lines, _closing(outcomes)])


def unit_tests_to_data(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """All tests as plain values, with all records of the differences."""
    failed = _failed(outcomes)
    return {
        "tests": [_to_data(each) for each in outcomes],
        "passed": len(outcomes) - failed,
        "failed": failed,
    }


def unit_tests_markdown(outcomes: Sequence[Outcome]) -> str:
    """The counts, and for each test that failed the difference as a table."""
    if not outcomes:
        return NO_TESTS
    parts = [f"**{_closing(outcomes)}**"]
    for each in outcomes:
        if each.passed:
            continue
        name = f"{code(each.test.dataset)}: {escaped(each.test.name)}"
        parts.append(f"#### {name}\n\n{escaped(f'{each.place}{_step(each)}')}")
        if each.error is not None:
            parts += [f"{part.code}: {escaped(part.message)}" for part in each.error.apart()]
        if each.difference:
            lines = [
                _row("", *map(escaped, _columns(each.difference))),
                "|" + " --- |" * (len(_columns(each.difference)) + 1),
            ]
            lines += [
                _row(code(sign), *map(escaped, row))
                for sign, row in islice(_rows(each.difference), SHOWN)
            ]
            hidden = _hidden(each.difference)
            parts.append("\n".join(lines) + (f"\n\n… and {hidden} more" if hidden else ""))
    if any(each.difference for each in outcomes):
        parts.append(_LEGEND)
    return "\n\n".join(parts)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _failed(outcomes: Sequence[Outcome]) -> int:
    return sum(not each.passed for each in outcomes)


def _closing(outcomes: Sequence[Outcome]) -> str:
    failed = _failed(outcomes)
    datasets = count(len({each.test.dataset for each in outcomes}), "dataset")
    of = f"{count(len(outcomes), 'test')} of {datasets}"
    return f"Unit tests: {of}, {len(outcomes) - failed} passed, {failed} failed."


def _step(each: Outcome) -> str:
    steps = len(each.test.steps)
    return f" (step {each.step + 1} of {steps})" if steps > 1 else ""


def _columns(found: Difference) -> tuple[str, ...]:
    """What is shown: operations only where there is anything but appended records."""
    records = [*found.missing, *found.unexpected, *(one for pair in found.changed for one in pair)]
    return tuple(
        name for name in found.columns if name != found.op or any(r[name] != "+A" for r in records)
    )


def _rows(found: Difference) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Signs, and cells as text."""
    columns = _columns(found)
    for expected, actual in found.changed:
        differing = found.cells(expected, actual)
        yield (
            "~",
            tuple(
                f"{_text(expected[name])} → {_text(actual[name])}"
                if name in differing
                else _text(actual[name])
                for name in columns
            ),
        )
    for sign, records in (("-", found.missing), ("+", found.unexpected)):
        for record in records:
            yield sign, tuple(_text(record[name]) for name in columns)


def _hidden(found: Difference) -> int:
    return max(0, len(found.missing) + len(found.unexpected) + len(found.changed) - SHOWN)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _to_data(each: Outcome) -> dict[str, Any]:
    place: Location = each.place
    return {
        "dataset": each.test.dataset,
        "name": each.test.name,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "instance": place.instance,
        "passed": each.passed,
        "step": each.step + 1,
        "steps": len(each.test.steps),
        "modes": [choice.mode.value for choice in each.choices],
        "difference": _difference_to_data(each.difference) if each.difference else None,
        "errors": error_to_data(each.error) if each.error else [],
    }


def _difference_to_data(found: Difference) -> Mapping[str, Any]:
    return {
        "columns": list(found.columns),
        "missing": list(found.missing),
        "unexpected": list(found.unexpected),
        "changed": [
            {
                "expected": expected,
                "actual": actual,
                "columns": list(found.cells(expected, actual)),
            }
            for expected, actual in found.changed
        ],
    }
