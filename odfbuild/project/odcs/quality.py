"""Checks as the rules of contracts, and back. Pure.

What the library of the standard has is written so; other checks are `custom` rules of the engine
`odfbuild`, whose implementation is what odfbuild.yaml says. Source: Open Data Contract Standard
3.1.0, "Data Quality".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from odfbuild.declared_settings import Misfit, read
from odfbuild.project.settings.checks import Declared
from odfbuild.records.checks import (
    AcceptedValues,
    Asked,
    Check,
    KAnonymous,
    NotNull,
    Relationship,
    RowCount,
    Sql,
    Unique,
)

Rule = dict[str, Any]

_ENGINE = "odfbuild"


def rules_of(asked: Iterable[Asked]) -> tuple[dict[str, list[Rule]], list[Rule]]:
    """The rules of single columns by name, and those of the whole dataset."""
    columns: dict[str, list[Rule]] = {}
    whole: list[Rule] = []
    for each in asked:
        severity = {"severity": "warning" if each.warn else "error"}
        match each.check:
            case NotNull(column):
                columns.setdefault(column, []).append(_metric("nullValues") | severity)
            case AcceptedValues(column, values):
                rule = _metric("invalidValues", {"validValues": list(values)})
                columns.setdefault(column, []).append(rule | severity)
            case Unique((column,)):
                columns.setdefault(column, []).append(_metric("duplicateValues") | severity)
            case Unique(names):
                rule = _metric("duplicateValues", {"properties": list(names)})
                whole.append(rule | severity)
            case other:
                whole.append(_custom(other) | severity)
    return columns, whole


def _metric(name: str, arguments: Mapping[str, Any] | None = None) -> Rule:
    given = {"arguments": dict(arguments)} if arguments else {}
    return {"type": "library", "metric": name, **given, "mustBe": 0}


def _custom(check: Check) -> Rule:
    return {"type": "custom", "engine": _ENGINE, "implementation": _setting(check)}


def _setting(check: Check) -> dict[str, Any]:
    """A check as an entry of `checks` in odfbuild.yaml says it."""
    match check:
        case Relationship(column, to, field):
            return {"relationships": {column: {"to": to, "field": field}}}
        case RowCount(least, most):
            bounds = {"min": least, "max": most}
            return {"rowCount": {k: v for k, v in bounds.items() if v is not None}}
        case KAnonymous(columns, k):
            return {"kAnonymous": {"columns": list(columns), "k": k}}
        case Sql(name, query):
            return {"sql": {name: query}}
    raise AssertionError(f"the library has a rule for {check}")


def checks_of_rule(rule: Mapping[str, Any], column: str | None) -> Iterator[Check]:
    """The checks that a rule of a column, or of the whole dataset, asks for.

    None for a rule that odfbuild cannot check: text, queries of others, and limits above nought.
    """
    metric, zero = rule.get("metric"), rule.get("mustBe") == 0 and rule.get("mustBe") is not False
    arguments = rule.get("arguments")
    if not isinstance(arguments, Mapping):
        arguments = {}
    if rule.get("type") == "custom" and rule.get("engine") == _ENGINE:
        yield from _declared(rule.get("implementation"))
    elif metric == "nullValues" and zero and column is not None:
        yield NotNull(column)
    elif metric == "invalidValues" and zero and column is not None:
        values = arguments.get("validValues")
        if isinstance(values, list):
            yield AcceptedValues(column, tuple(values))
    elif metric == "duplicateValues" and zero:
        names = arguments.get("properties")
        if column is not None:
            yield Unique((column,))
        elif isinstance(names, list) and all(isinstance(each, str) for each in names):
            yield Unique(tuple(names))


def _declared(implementation: Any) -> Iterator[Check]:
    try:
        declared = read(Declared, {"match": ["*"], **implementation})
    except (Misfit, TypeError):
        return
    yield from (check for check, _ in declared.checks)


def is_kept(promised: Check, asked: Iterable[Asked]) -> bool:
    """Whether the checks of a dataset stop all that the promised one would."""
    return any(not each.warn and _covers(each.check, promised) for each in asked)


def _covers(check: Check, promised: Check) -> bool:
    match check, promised:
        case AcceptedValues(column, values), AcceptedValues(other, allowed):
            return column == other and all(each in allowed for each in values)
        case Unique(columns), Unique(others):
            return set(columns) <= set(others) and bool(columns)
        case KAnonymous(columns, k), KAnonymous(others, least):
            return set(columns) >= set(others) and k >= least
    return check == promised
