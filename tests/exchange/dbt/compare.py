"""Compare what dbt built in DuckDB with what odfbuild built of the same project.

    python -m tests.exchange.dbt.compare PROJECT warehouse.duckdb

Every table that `dbt-names.yaml` lists is compared by content: its columns in dbt, all records as
often as they are there, numbers to nine decimals, dates and times as times. Exits with 1 if any
table differs.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import yaml

from odfbuild import Project
from odfbuild.errors import OdfbuildError


def differences(project: Path, warehouse: Path) -> dict[str, str | None]:
    """By id of dbt: what differs, or `None` where all records are the same."""
    project = project.absolute()
    # Views over files name them from the folder that dbt runs in.
    with contextlib.chdir(warehouse.parent):
        return _differences(project, Path(warehouse.name))


def _differences(project: Path, warehouse: Path) -> dict[str, str | None]:
    names = yaml.safe_load((project / "dbt-names.yaml").read_text())
    datasets = Project(project)
    with duckdb.connect(str(warehouse), read_only=True) as built:
        tables = {
            row[1].lower(): f'"{row[0]}"."{row[1]}"'
            for row in built.sql(
                "SELECT table_schema, table_name FROM information_schema.tables"
            ).fetchall()
        }
        return {
            id_: _difference(datasets, built, name, tables.get(id_.split(".")[-1].lower()))
            for id_, name in names.items()
        }


def _difference(datasets: Project, built: Any, name: str, table: str | None) -> str | None:
    if table is None:
        return "dbt made no table of it"
    found = built.sql(f"SELECT * FROM {table}")
    columns = [each.lower() for each in found.columns]
    theirs = Counter(tuple(map(_plain, row)) for row in found.fetchall())
    ours: Counter[tuple[Any, ...]] = Counter()
    try:
        records = datasets[name].to_arrow().to_pylist()
    except OdfbuildError:
        return "odfbuild did not build it"
    for record in records:
        folded = {key.lower(): value for key, value in record.items()}
        if missing := [each for each in columns if each not in folded]:
            return f"it has no column {', '.join(missing)}"
        ours[tuple(_plain(folded[each]) for each in columns)] += 1
    if ours == theirs:
        return None
    only_theirs, only_ours = theirs - ours, ours - theirs
    return (
        f"{only_theirs.total()} of {theirs.total()} records differ, such as "
        f"{next(iter(only_theirs), None)} and {next(iter(only_ours), None)}"
    )


def _plain(value: Any) -> Any:
    """A value as both engines have it, whichever of their types holds it."""
    if isinstance(value, bool):
        return value
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, int | float | Decimal):
        return round(float(value), 9) + 0.0
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    return value


if __name__ == "__main__":
    found = differences(Path(sys.argv[1]), Path(sys.argv[2]))
    for id_, what in found.items():
        print(f"{id_}: {what or 'the same'}")
    sys.exit(any(found.values()))
