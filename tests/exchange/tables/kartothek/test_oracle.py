"""The real kartothek 5.3 reads, queries and updates what odfbuild publishes.

It needs Python 3.8: set `KARTOTHEK_PYTHON` to one that has kartothek (docs/compatibility.md has the
versions), or have `uv` on the path, which then brings both.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odfbuild.records.kartothek.dataset import open_dataset
from odfbuild.store.place import Folder
from tests.exchange.tables.kartothek.tables import (
    EVERY_TYPE,
    INDEXABLE,
    content,
    pin,
    record,
    table_at,
    touched,
)

SCRIPT = Path(__file__).with_name("oracle.py")
PINS = (
    "kartothek==5.3.0",
    "pandas==1.3.5",
    "numpy<1.22",
    "dask[dataframe]==2021.11.2",
    "pytz<2023",
)
DAY = {"date": "1970-01-02"}
AT = {"time": "2024-05-01T12:00:00.003"}
PREDICATES: list[Any] = [
    [[("name", "==", "n3")]],
    [[("name", "in", ["n1", "n5"])], [("part", "==", "a/b")]],
    [[("count", "==", 3)]],
    [[("count", ">", 1), ("count", "<", 3)]],
    [[("big", "==", 2**60 + 3)]],
    [[("small", ">=", 9)]],
    [[("ratio", "==", 0.75)]],
    [[("single", "<=", 1.0)]],
    [[("flag", "==", True), ("year", "==", 2021)]],
    [[("day", "==", DAY)]],
    [[("day", "<", DAY)]],
    [[("at", "==", AT)]],
    [[("at", ">", AT), ("part", "!=", "")]],
    [[("blob", "==", {"bytes": b"D".hex()})]],
    [[("part", ">", "a"), ("year", ">", 0)]],
    [[("year", "==", -1)]],
    [[("offset", "==", 4)]],
    [[("count", "==", 99)]],
]
LAYOUTS = [
    pytest.param((), (), id="plain"),
    pytest.param(("part", "year"), INDEXABLE, id="text and number"),
    pytest.param(("day",), ("name", "at"), id="dates"),
    pytest.param(("at",), ("day", "flag"), id="times"),
    pytest.param(("ratio", "small"), (), id="floats and small numbers"),
]


@cache
def _command() -> tuple[str, ...] | None:
    if python := os.environ.get("KARTOTHEK_PYTHON"):
        return (python,)
    if uv := shutil.which("uv"):
        pins = (part for each in PINS for part in ("--with", each))
        command = (uv, "run", "--no-project", "--python", "3.8", *pins, "python")
        tried = subprocess.run(
            [*command, "-c", "import kartothek"], capture_output=True, check=False
        )
        return command if tried.returncode == 0 else None
    return None


def kartothek(root: Path, *steps: dict[str, Any]) -> list[Any]:
    """What kartothek answers to each step."""
    command = _command()
    if command is None:
        pytest.skip("KARTOTHEK_PYTHON is not set, and no uv brings kartothek")
    done = subprocess.run(
        [*command, str(SCRIPT)],
        input=json.dumps({"root": str(root), "steps": steps}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


def told(value: Any) -> Any:
    """A value as `oracle.py` spells it."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return f"{value:.2f}" if isinstance(value, Decimal) else value


def value(plain: Any) -> Any:
    """A value of `PREDICATES` for odfbuild."""
    if isinstance(plain, list):
        return [value(each) for each in plain]
    if isinstance(plain, tuple):
        return tuple(value(each) for each in plain)
    if isinstance(plain, dict):
        ((kind, text),) = plain.items()
        if kind == "bytes":
            return bytes.fromhex(text)
        return dt.date.fromisoformat(text) if kind == "date" else dt.datetime.fromisoformat(text)
    return plain


def records(keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Records with odd keys and nulls; keys have none."""
    made = [record(n, "many", 2021, bare=n % 4 == 3) for n in range(4, 14)]
    odd = [record(n, part, -1) for n, part in enumerate(["a/b", "", "ü=%&+ x", "Z"])]
    return [
        {**{name: record(each["offset"], "", 0)[name] for name in keys}, **each}
        for each in [*odd, *made]
    ]


def normal(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: int(row["offset"]))


@pytest.mark.parametrize(("keys", "indices"), LAYOUTS)
def test_kartothek_reads_every_type_and_finds_the_same_partitions(
    tmp_path: Path, keys: tuple[str, ...], indices: tuple[str, ...]
) -> None:
    table = table_at(tmp_path, partition_by=keys, indices=indices)
    given = records(keys)
    table.commit(None, pin(1), None, touched(given, keys))
    ask = {"do": "read", "uuid": "shop_orders", "table": "table"}
    asked = [{**ask, "predicates": each, "columns": ["offset"]} for each in PREDICATES]
    whole, *answers = kartothek(tmp_path, ask, *asked)
    wanted = [{name: told(each.get(name)) for name in sorted(EVERY_TYPE.names)} for each in given]
    assert normal([dict(sorted(row.items())) for row in whole["rows"]]) == normal(wanted)
    dataset = open_dataset(Folder(tmp_path), "shop_orders")
    for predicates, answer in zip(value(PREDICATES), answers, strict=True):
        if "'NoneType' and" in answer.get("error", ""):
            continue  # kartothek cannot compare dates with the nulls of a file
        found = dataset.read(columns=["offset"], predicates=predicates).read_all().to_pylist()
        assert "error" not in answer, (predicates, answer)
        assert normal(answer["rows"]) == normal(found), predicates
        planned = sorted(each.file for each in dataset.plan(predicates))
        if len(predicates) == 1:
            assert answer["opened"] == planned
        else:  # kartothek leaves out partitions that have only nulls in either column
            assert {*answer["opened"]} <= {*planned}


def test_kartothek_updates_a_published_table_and_odfbuild_goes_on(tmp_path: Path) -> None:
    schema = EVERY_TYPE.remove(EVERY_TYPE.get_field_index("price"))
    keys, indices = ("part", "year"), INDEXABLE

    def opened() -> Any:
        return table_at(tmp_path, schema=schema, partition_by=keys, indices=indices)

    given = [record(n, "abc"[n % 3], 2020) for n in range(9)]
    opened().commit(None, pin(1), None, touched(given, keys, schema))
    update = {
        "do": "update",
        "uuid": "shop_orders",
        "keys": list(keys),
        "scope": [{"part": "a"}, {"name": "n2"}],
        "offsets": [0, 1],
        "values": {"part": "new/er", "year": 2030},
    }
    ask = {"do": "read", "uuid": "shop_orders", "table": "table"}
    done, after = kartothek(tmp_path, update, ask)
    assert done is None, done
    # the scope removes all of part a, and of part c, in which n2 is
    expected = [1, 4, 7, 0, 1]
    assert sorted(row["offset"] for row in after["rows"]) == sorted(expected)
    table = opened()
    state = table.read_state()
    assert state is not None
    assert state.pin == pin(1)
    assert state.changed_by is not None
    dataset = open_dataset(Folder(tmp_path), "shop_orders")
    assert dataset.metadata.user["updated"] == "yes"
    assert sorted(row["offset"] for row in dataset.read().read_all().to_pylist()) == sorted(
        expected
    )
    assert [each.keys["part"] for each in dataset.plan([[("big", "==", 2**60)]])] == ["new/er"]
    table.commit(state, pin(2), None, touched(given, keys, schema))
    table.commit(
        table.read_state(), pin(3), [("a", 2020)], touched([record(20, "a", 2020)], keys, schema)
    )
    again = opened().read_state()
    assert again is not None
    assert again.changed_by is None
    assert [each["offset"] for each in content(opened())] == [1, 2, 4, 5, 7, 8, 20]
    found, queried = kartothek(tmp_path, ask, {**ask, "predicates": [[("big", "==", 2**60 + 20)]]})
    assert normal(found["rows"])[-1]["offset"] == 20
    assert len(queried["opened"]) == 1


def test_kartothek_reads_tables_that_share_a_dataset(tmp_path: Path) -> None:
    schema = pa.schema({"offset": pa.int64(), "part": pa.string(), "name": pa.string()})
    for number, (name, part) in enumerate([("orders", "a"), ("items", "b"), ("orders", "c")]):
        table = table_at(
            tmp_path,
            name=name,
            group="shop",
            schema=schema,
            partition_by=("part",),
            indices=("name",),
        )
        rows = [{"offset": number, "part": part, "name": f"n{number}"}]
        state = table.read_state()
        table.commit(
            state, pin(number), [(part,)] if state else None, touched(rows, ["part"], schema)
        )
    asked = [{"do": "read", "uuid": "shop", "table": each} for each in ("orders", "items")]
    query = {**asked[0], "predicates": [[("name", "==", "n2")]]}
    orders, items, one = kartothek(tmp_path, *asked, query)
    assert [row["offset"] for row in normal(orders["rows"])] == [0, 2]
    assert [row["offset"] for row in items["rows"]] == [1]
    assert "error" not in one, one
    assert [row["part"] for row in one["rows"]] == ["c"]
