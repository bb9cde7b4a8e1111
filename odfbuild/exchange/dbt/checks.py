"""Checks and unit tests of odfbuild for tests of dbt. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from odfbuild.exchange.dbt.model import MARKER, GenericTest, Query, Singular, UnitTest
from odfbuild.exchange.dbt.properties import entries, mapping, reference
from odfbuild.exchange.dbt.roots import combination, kind_of
from odfbuild.odf.schema.ddl import quoted_name

_AGGREGATES = re.compile(r"\b(group\s+by|having|count|sum|avg|min|max|over)\b", re.IGNORECASE)


class NoCheck(Exception):
    """Why a test has no equivalent."""


Check = tuple[str, Any]
"""A key of `checks` in odfbuild.yaml, and what to add to it."""


def check_of(
    test: GenericTest,
    columns: Sequence[str],
    find: Mapping[tuple[str, ...], tuple[str, Sequence[str]]],
) -> Check:
    """The check for a generic test; raises `NoCheck`.

    `columns` are those of its dataset, `find` gives datasets with their columns by `ref` and
    `source`.
    """
    if test.arguments.get("where"):
        raise NoCheck("it is limited by `where`: write it as a query under `sql` of `checks`")
    spelled = {each.lower(): each for each in columns}

    def known(column: Any) -> str:
        found = spelled.get(str(column).strip('"`').lower())
        if found is None:
            raise NoCheck(f"there is no column '{column}'")
        return found

    match test.name:
        case "not_null":
            return "notNull", known(test.column)
        case "unique":
            return "unique", [known(test.column)]
        case "dbt_utils.unique_combination_of_columns":
            return "unique", [known(each) for each in combination(test)]
        case "accepted_values":
            values = test.arguments.get("values")
            if not isinstance(values, list) or not values:
                raise NoCheck("it has no `values`")
            if not all(isinstance(each, str | int | float) for each in values):
                raise NoCheck("its `values` are not plain")
            return "acceptedValues", (known(test.column), values)
        case "relationships":
            path = reference(test.arguments.get("to"))
            target = find.get(path) if path else None
            if target is None:
                raise NoCheck(f"{test.arguments.get('to')} was not moved")
            fields = {each.lower(): each for each in target[1]}
            field = fields.get(str(test.arguments.get("field")).lower())
            if field is None:
                raise NoCheck(f"'{target[0]}' has no column '{test.arguments.get('field')}'")
            return "relationships", (known(test.column), {"to": target[0], "field": field})
        case "dbt_utils.expression_is_true" if test.arguments.get("expression"):
            expression = str(test.arguments["expression"]).strip()
            text = f"{known(test.column)} {expression}" if test.column else expression
            return "sql", (text, f"SELECT * FROM slice WHERE NOT ({text})")
        case "dbt_utils.accepted_range" | "dbt_expectations.expect_column_values_to_be_between":
            return _range(test, known(test.column))
    package, _, name = test.name.rpartition(".")
    of = f"of the package {package}" if package else "of the project"
    raise NoCheck(f"`{name}` is a test {of}: write it as a query under `sql` of `checks`")


def _range(test: GenericTest, column: str) -> Check:
    least, most = test.arguments.get("min_value"), test.arguments.get("max_value")
    if not all(isinstance(each, int | float | None) for each in (least, most)):
        raise NoCheck("its bounds are no numbers: write it as a query under `sql` of `checks`")
    is_strict = test.arguments.get("inclusive") is False or test.arguments.get("strictly")
    equal = "" if is_strict else "="
    name = quoted_name(column)
    bounds = [
        f"{name} {sign}{equal} {bound}"
        for sign, bound in ((">", least), ("<", most))
        if bound is not None
    ]
    if not bounds:
        raise NoCheck("it has no bounds")
    text = " AND ".join(bounds)
    return "sql", (text, f"SELECT * FROM slice WHERE NOT ({text})")


def check_of_singular(test: Singular) -> tuple[str, Check]:
    """The id of the table and the check for a test that is a query; raises `NoCheck`."""
    query = test.query
    if query is None:
        raise NoCheck(test.problem.text if test.problem else "it has no text")
    if len(query.inputs) != 1:
        raise NoCheck("it reads several tables, and a check sees the new records of one")
    if _AGGREGATES.search(query.sql):
        raise NoCheck("it computes over all records, and a check sees the new ones")
    text = query.sql.replace(MARKER.format(0), "slice")
    lines = (line.strip() for line in text.strip().rstrip(";").splitlines())
    return query.inputs[0], ("sql", (test.name.replace("_", " "), "\n".join(filter(None, lines))))


def add(entry: dict[str, Any], check: Check) -> None:
    """Add a check to an entry of `checks`."""
    key, value = check
    if key in ("notNull", "unique"):
        found = entry.setdefault(key, [])
        if value not in found:
            found.append(value)
    else:
        entry.setdefault(key, {})[value[0]] = value[1]


def unit_test_of(
    test: UnitTest,
    query: Query,
    names: Mapping[str, str],
    find: Mapping[tuple[str, ...], str],
    fixture: Mapping[str, str],
    types: Mapping[str, Mapping[str, str]],
    dialect: str,
) -> dict[str, Any]:
    """The unit test in odfbuild's terms; raises `NoCheck`.

    `names` are datasets by id, `find` ids by `ref` and `source`, `fixture` texts of CSV files,
    `types` those of columns by id, which dbt casts values to.
    """
    macros = mapping(test.overrides.get("macros"))
    if macros.get("is_incremental"):
        raise NoCheck("it is about the `is_incremental()` block, which odfbuild does not need")
    rest = {name for name in macros if name != "is_incremental"}
    if rest or test.overrides.get("vars") or test.overrides.get("env_vars"):
        raise NoCheck("it overrides macros or variables, which are resolved here")
    given = {}
    for each in test.given:
        path = reference(each.get("input"))
        id_ = find.get(path) if path else None
        if id_ is None or id_ not in query.inputs:
            raise NoCheck(f"{each.get('input')} is no input of the query")
        given[names[id_]] = _cast(_records(each, fixture), types.get(id_, {}), dialect)
    expect = _cast(_records(test.expect, fixture), types.get(test.model, {}), dialect)
    return {"name": test.name.replace("_", " "), "given": given, "expect": expect}


def _records(data: Mapping[str, Any], fixture: Mapping[str, str]) -> dict[str, Any]:
    form = data.get("format") or "dict"
    rows = data.get("rows")
    if form == "sql":
        raise NoCheck("its records are a query: write them as `rows` or `csv`")
    if data.get("fixture"):
        text = fixture.get(str(data["fixture"]))
        if text is None:
            raise NoCheck(f"there is no file {data['fixture']}.csv with its records")
        return {"csv": text.strip() + "\n"}
    if isinstance(rows, str):
        return {"csv": "\n".join(line.strip() for line in rows.strip().splitlines()) + "\n"}
    if not isinstance(rows, list | None) or len(entries(rows)) < len(rows or ()):
        raise NoCheck("its `rows` are no list of records")
    return {"rows": [dict(each) for each in rows or ()]}


def _cast(records: dict[str, Any], types: Mapping[str, str], dialect: str) -> dict[str, Any]:
    """Records whose values are of the types of their columns, as far as these are known."""
    if "rows" not in records:
        return records
    kinds = {name.lower(): kind_of(text, dialect) for name, text in types.items()}
    rows = [
        {name: _value(value, kinds.get(name.lower())) for name, value in row.items()}
        for row in records["rows"]
    ]
    return {"rows": rows}


def _value(value: Any, kind: str | None) -> Any:
    if kind == "text" and isinstance(value, bool):
        return str(value).lower()
    if kind == "text" and isinstance(value, int | float):
        return str(value)
    if kind == "number" and isinstance(value, str):
        try:
            return float(value) if set(value) & set(".eE") else int(value)
        except ValueError:
            return value
    return value
