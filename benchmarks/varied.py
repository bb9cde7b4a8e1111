"""A pipeline of datasets that all differ, for odfbuild, dbt on DuckDB and Spark's pipelines.

    python benchmarks/varied.py --kind odf --n 400 --out FOLDER [--seed 1]
                                [--shapes group window ...] [--merges Snapshot ...]

Half of the datasets are roots with one CSV file of ten rows, the others are derived from one or two
datasets each, in layers. Merge, shape of query, names, number and types of columns are drawn by
seed; the same words always give the same files. Each dataset has an event time, a key, a text with
few values and a whole number, so that each shape finds what it needs.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROWS = 10
LAYERS = 4
MERGES = ("Append", "Ledger", "Snapshot", "UpsertStream", "ChangelogStream")
_TEXT = """account airport amount batch branch carrier channel city claim client cost country course
    depot device driver engine event factory farm field fleet grade group harbour hotel
    invoice item journal lane lease ledger level load machine market meter mill office order
    parcel part patient payment permit plant policy port price product project quota rack rate
    region rent report road route score season sensor ship shop site stock store street
    student supplier survey tariff team ticket tool tower train truck unit vendor visit voyage
    ward yield zone"""
_WORDS = _TEXT.split()
_TYPES: dict[str, tuple[str, str, Callable[[random.Random], str]]] = {
    "int": ("INT", "integer", lambda choice: str(choice.randrange(1000))),
    "bigint": ("BIGINT", "bigint", lambda choice: str(choice.randrange(10**12))),
    "double": ("DOUBLE", "double", lambda choice: str(choice.randrange(10**6) / 8)),
    "text": ("STRING", "varchar", lambda choice: choice.choice(_WORDS)),
    "flag": ("BOOLEAN", "boolean", lambda choice: choice.choice(["true", "false"])),
    "day": ("DATE", "date", lambda choice: f"2026-0{choice.randrange(1, 10)}-17"),
    "money": (
        "DECIMAL(12, 2)",
        "decimal(12, 2)",
        lambda choice: f"{choice.randrange(10**6) / 100:.2f}",
    ),
}
"""Types of odfbuild and of DuckDB, and what makes a value."""


@dataclass(frozen=True)
class Dataset:
    """A root, which has a `merge` and rows, or what a query derives; `more` are (name, type)."""

    name: str
    key: str
    text: str
    number: str
    more: tuple[tuple[str, str], ...] = ()
    merge: str = ""
    rows: tuple[tuple[str, ...], ...] = ()
    shape: str = ""
    inputs: tuple[Dataset, ...] = ()
    query: str = ""

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Names and types of all columns but the event time."""
        return [(self.key, "bigint"), (self.text, "text"), (self.number, "int"), *self.more]


class _Names:
    """Names that hardly ever come twice."""

    def __init__(self, choice: random.Random) -> None:
        self._choice = choice

    def __call__(self, number: int | None = None) -> str:
        words = self._choice.sample(_WORDS, 2)
        return "_".join(words) + (f"_{number}" if number is not None else "")


def make_datasets(
    size: int, seed: int, shapes: Sequence[str] = (), merges: Sequence[str] = ()
) -> list[Dataset]:
    """`size` datasets, inputs before what is derived from them."""
    choice = random.Random(f"{size} {seed}")
    names = _Names(choice)
    made = [
        _root(names(number), merge, choice, names)
        for number, merge in zip(
            range(size // 2), _in_turns(merges or MERGES, choice), strict=False
        )
    ]
    before, kinds = list(made), _in_turns(shapes or tuple(SHAPES), choice)
    derived = size - len(made)
    for layer in range(LAYERS):
        current: list[Dataset] = []
        for _ in range(derived // LAYERS + (layer < derived % LAYERS)):
            first = choice.choice(before)
            second = choice.choice([one for one in choice.sample(made, 2) if one is not first])
            name = names(len(made) + len(current))
            current.append(_derived(name, next(kinds), first, second, choice, names))
        made += current
        before = current or before
    return made


def _in_turns(each: Sequence[str], choice: random.Random) -> Iterator[str]:
    """All of them as often, in any order."""
    while True:
        yield from choice.sample(each, len(each))


def _root(name: str, merge: str, choice: random.Random, names: _Names) -> Dataset:
    more = tuple((names(n), choice.choice([*_TYPES])) for n in range(choice.randrange(8)))
    found = Dataset(name, names(10), names(11), names(12), more, merge)
    keys = choice.sample(range(20), ROWS)
    rows = []
    for key in keys:
        values = [_TYPES[kind][2](choice) for _, kind in found.columns[3:]]
        time = f"2026-01-{choice.randrange(1, 29):02} 0{choice.randrange(10)}:00:00"
        text, number = choice.choice(_WORDS[:5]), choice.randrange(100)
        rows.append((time, str(key), text, str(number), *values))
    return Dataset(name, found.key, found.text, found.number, more, merge, tuple(rows))


def _derived(
    name: str,
    shape: str,
    first: Dataset,
    second: Dataset,
    choice: random.Random,
    names: _Names,
) -> Dataset:
    key, text, number = names(20), names(21), names(22)
    kept = choice.sample(first.more, choice.randrange(len(first.more) + 1))
    made = SHAPES[shape](first, second, (key, text, number), choice.randrange(5, 60), kept)
    inputs = (first, second) if shape in _OF_TWO else (first,)
    more = tuple(kept) if shape in _KEEPS else ()
    return Dataset(name, key, text, number, more, shape=shape, inputs=inputs, query=made)


# --- Queries, in words that Spark and DuckDB both know; `{0}` and `{1}` stand for their inputs ---

Roles = tuple[str, str, str]
Kept = Sequence[tuple[str, str]]


def _all(of: Dataset, to: Roles, kept: Kept, prefix: str = "") -> str:
    pairs = zip((of.key, of.text, of.number), to, strict=True)
    renamed = [f"{prefix}{old} AS {new}" for old, new in pairs]
    return ", ".join([f"{prefix}event_time", *renamed, *(f"{prefix}{name}" for name, _ in kept)])


def _filter(a: Dataset, b: Dataset, to: Roles, least: int, kept: Kept) -> str:
    return f"SELECT {_all(a, to, kept)}\nFROM {{0}}\nWHERE {a.number} >= {least}"


def _joined(a: Dataset, b: Dataset, to: Roles, kept: Kept, how: str) -> str:
    columns = _all(a, to, kept, "a.").replace(f"a.{a.text} AS", f"b.{b.text} AS")
    return f"SELECT {columns}\nFROM {{0}} AS a\n{how} {{1}} AS b ON a.{a.key} = b.{b.key}"


def _inner(a: Dataset, b: Dataset, to: Roles, least: int, kept: Kept) -> str:
    return _joined(a, b, to, kept, "JOIN")


def _left(a: Dataset, b: Dataset, to: Roles, least: int, kept: Kept) -> str:
    return _joined(a, b, to, kept, "LEFT JOIN")


def _group(a: Dataset, b: Dataset, to: Roles, least: int, kept: Kept) -> str:
    return (
        f"SELECT MAX(event_time) AS event_time, MIN({a.key}) AS {to[0]}, {a.text} AS {to[1]},\n"
        f"  CAST(COUNT(*) AS INT) AS {to[2]}\nFROM {{0}}\nGROUP BY {a.text}"
    )


def _distinct(a: Dataset, b: Dataset, to: Roles, least: int, kept: Kept) -> str:
    return (
        f"SELECT DISTINCT date_trunc('DAY', event_time) AS event_time, {a.key} AS {to[0]},\n"
        f"  {a.text} AS {to[1]}, {a.number} % {least} AS {to[2]}\nFROM {{0}}"
    )


def _window(a: Dataset, b: Dataset, to: Roles, least: int, kept: Kept) -> str:
    inner = _all(a, to, kept)
    ties = "".join(f", {name}" for name, _ in kept)
    return (
        f"SELECT *\nFROM (\n  SELECT {inner}, ROW_NUMBER() OVER (\n"
        f"    PARTITION BY {a.text}\n"
        f"    ORDER BY {a.number} DESC, event_time, {a.key}{ties}\n  ) AS place\n"
        f"  FROM {{0}}\n) AS ranked\nWHERE place <= {least % 5 + 1}"
    )


def _union(a: Dataset, b: Dataset, to: Roles, least: int, kept: Kept) -> str:
    parts = [
        f"SELECT {_all(one, to, ())}\nFROM {{{at}}}\nWHERE {one.number} >= {least}"
        for at, one in enumerate((a, b))
    ]
    return "\nUNION ALL\n".join(parts)


def _exists(a: Dataset, b: Dataset, to: Roles, least: int, kept: Kept) -> str:
    return (
        f"SELECT {_all(a, to, kept, 'a.')}\nFROM {{0}} AS a\nWHERE EXISTS (\n"
        f"  SELECT 1 FROM {{1}} AS b WHERE b.{b.key} = a.{a.key} AND b.{b.number} >= {least}\n)"
    )


def _cte(a: Dataset, b: Dataset, to: Roles, least: int, kept: Kept) -> str:
    return (
        f"WITH small AS (\n  SELECT {_all(a, to, kept)}\n  FROM {{0}}\n"
        f"  WHERE {a.number} < {least + 40}\n), named AS (\n"
        f"  SELECT * FROM small WHERE {to[1]} IS NOT NULL\n)\n"
        f"SELECT *, {to[2]} * 2 AS twice\nFROM named"
    )


def _cases(a: Dataset, b: Dataset, to: Roles, least: int, kept: Kept) -> str:
    more = "".join(f",\n  CAST({name} AS {_TYPES['text'][1]}) AS {name}" for name, _ in kept)
    more = more.replace("varchar", "STRING")
    return (
        f"SELECT event_time, {a.key} + {least} AS {to[0]},\n"
        f"  CASE WHEN {a.number} < {least} THEN 'low' WHEN {a.number} < {least + 20} THEN 'middle'"
        f" ELSE upper({a.text}) END AS {to[1]},\n"
        f"  CAST(coalesce({a.number}, 0) AS INT) AS {to[2]}{more}\nFROM {{0}}"
    )


def _chain(a: Dataset, b: Dataset, to: Roles, least: int, kept: Kept) -> str:
    return (
        f"SELECT MAX(event_time) AS event_time, MAX(top) AS {to[0]}, tag AS {to[1]},\n"
        f"  CAST(SUM(n) AS INT) AS {to[2]}\nFROM (\n"
        f"  SELECT MAX(event_time) AS event_time, MAX({a.key}) AS top, {a.text} AS tag,\n"
        f"    {a.number} % {least} AS part, COUNT(*) AS n\n"
        f"  FROM {{0}}\n  GROUP BY {a.text}, {a.number} % {least}\n) AS parts\nGROUP BY tag"
    )


SHAPES: dict[str, Callable[[Dataset, Dataset, Roles, int, Kept], str]] = {
    "filter": _filter,
    "inner": _inner,
    "left": _left,
    "group": _group,
    "distinct": _distinct,
    "window": _window,
    "union": _union,
    "exists": _exists,
    "cte": _cte,
    "cases": _cases,
    "chain": _chain,
}
_OF_TWO = frozenset({"inner", "left", "union", "exists"})
_KEEPS = frozenset({"filter", "inner", "left", "window", "exists", "cte"})


# --- Projects ---


def write_odfbuild(datasets: Sequence[Dataset], root: Path) -> None:
    """An odfbuild project."""
    _write(root / "odfbuild.yaml", "kind: Project\nversion: 1\ncontent:\n  name: varied\n")
    for each in datasets:
        name = _hyphenated(each)
        head = f"kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: {name}\n"
        text = _derivative_text(each) if each.inputs else _root_text(each)
        _write(root / f"datasets/{name}.yaml", head + text)
        if not each.inputs:
            _write(root / f"data/{each.name}.csv", _csv(each))


def _hyphenated(each: Dataset) -> str:
    return each.name.replace("_", "-")


def _root_text(each: Dataset) -> str:
    types = [("event_time", "TIMESTAMP"), *((name, _TYPES[kind][0]) for name, kind in each.columns)]
    if each.merge == "ChangelogStream":
        types.insert(0, ("op", "INT"))
    schema = "".join(f"          - {name} {kind}\n" for name, kind in types)
    key = "" if each.merge == "Append" else f"        primaryKey: [{each.key}]\n"
    return (
        "  kind: Root\n  metadata:\n    - kind: SetPollingSource\n      fetch:\n"
        f"        kind: FilesGlob\n        path: data/{each.name}.csv\n      read:\n"
        f"        kind: Csv\n        header: true\n        schema:\n{schema}"
        f"      merge:\n        kind: {each.merge}\n{key}"
    )


def _derivative_text(each: Dataset) -> str:
    names = [_hyphenated(one) for one in each.inputs]
    inputs = "".join(f"        - datasetRef: {name}\n" for name in names)
    query = each.query.format(*(f"`{name}`" for name in names)).replace("\n", "\n          ")
    return (
        "  kind: Derivative\n  metadata:\n    - kind: SetTransform\n"
        f"      inputs:\n{inputs}      transform:\n        kind: Sql\n        engine: spark\n"
        f"        query: |\n          {query}\n"
    )


def _csv(each: Dataset, operations: bool = True) -> str:
    names = ["event_time", *(name for name, _ in each.columns)]
    has_operation = each.merge == "ChangelogStream" and operations
    lines = [names, *each.rows]
    if has_operation:
        lines = [["op", *names], *(("0", *row) for row in each.rows)]
    return "".join(",".join(line) + "\n" for line in lines)


def write_dbt(datasets: Sequence[Dataset], root: Path) -> None:
    """A dbt project on DuckDB: roots are seeds, all else are tables."""
    _write(
        root / "dbt_project.yml",
        "name: varied\nversion: '1.0'\nconfig-version: 2\nprofile: varied\n"
        "models:\n  varied:\n    +materialized: table\n"
        "flags:\n  send_anonymous_usage_stats: false\n",
    )
    _write(
        root / "profiles.yml",
        "varied:\n  target: dev\n  outputs:\n    dev:\n      type: duckdb\n"
        "      path: varied.duckdb\n      threads: 4\n",
    )
    seeds = ["version: 2", "seeds:"]
    for each in datasets:
        if each.inputs:
            refs = ["{{ ref('" + one.name + "') }}" for one in each.inputs]
            _write(root / f"models/{each.name}.sql", each.query.format(*refs) + "\n")
            continue
        _write(root / f"seeds/{each.name}.csv", _csv(each, operations=False))
        types = [("event_time", "timestamp"), *((n, _TYPES[kind][1]) for n, kind in each.columns)]
        seeds += [f"  - name: {each.name}", "    config:", "      column_types:"]
        seeds += [f"        {name}: {kind}" for name, kind in types]
    _write(root / "seeds/_seeds.yml", "\n".join(seeds) + "\n")


def write_pipelines(datasets: Sequence[Dataset], root: Path) -> None:
    """A project of Spark's own declarative pipelines: materialized views."""
    _write(
        root / "spark-pipeline.yml",
        f"name: varied\nstorage: file://{root}/storage\nlibraries:\n  - glob:\n"
        "      include: transformations/**\n",
    )
    roots = ["from pyspark import pipelines as dp", "from pyspark.sql import SparkSession", ""]
    for each in datasets:
        if each.inputs:
            query = each.query.format(*(one.name for one in each.inputs))
            text = f"CREATE MATERIALIZED VIEW {each.name} AS\n{query};\n"
            _write(root / f"transformations/{each.name}.sql", text)
            continue
        file = root / f"data/{each.name}.csv"
        _write(file, _csv(each, operations=False))
        types = [("event_time", "TIMESTAMP"), *((n, _TYPES[kind][0]) for n, kind in each.columns)]
        schema = ", ".join(f"{name} {kind}" for name, kind in types)
        roots += [
            f"@dp.materialized_view\ndef {each.name}():",
            "    spark = SparkSession.active()",
            f"    return spark.read.csv({str(file)!r}, schema={schema!r}, header=True)\n",
        ]
    _write(root / "transformations/roots.py", "\n".join(roots))


WRITERS = {"odf": write_odfbuild, "dbt": write_dbt, "pipelines": write_pipelines}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> None:
    """Write one project."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", required=True, choices=list(WRITERS))
    parser.add_argument("--n", required=True, type=int)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--merges", nargs="+", choices=MERGES, default=MERGES)
    options = parser.parse_args()
    made = make_datasets(options.n, options.seed, options.shapes, options.merges)
    WRITERS[options.kind](made, options.out.absolute())


if __name__ == "__main__":
    main()
