"""Write the golden datasets by the real kartothek 5.3, and what it answers to queries.

Run it by the Python of kartothek (`docs/compatibility.md` has the versions), in an empty folder:

    PYTHONHASHSEED=0 python write_golden.py tests/exchange/tables/kartothek/golden

`expected.json` has for each dataset the records that went in, and for each query the identifiers of
records that SQL and kartothek find, and the partitions that kartothek opened.
"""

import datetime as dt
import json
import operator
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from kartothek.io.eager import (  # noqa: E402
    commit_dataset,
    read_table,
    store_dataframes_as_dataset,
    update_dataset_from_dataframes,
    write_single_partition,
)
from storefact import get_store_from_url  # noqa: E402

OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, wanted: value in wanted,
}
DAY = dt.date(2020, 1, 2)
TIME = dt.datetime(2020, 1, 2, 3, 4, 5, 678900)


def plain(value):
    """A value as JSON has it, with its type where JSON has none."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float) and np.isnan(value):
        return None
    if isinstance(value, dt.datetime):
        return {"time": value.isoformat()}
    if isinstance(value, dt.date):
        return {"date": value.isoformat()}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    return value


def missing(value):
    return value is None or (isinstance(value, float) and np.isnan(value))


def fulfils(record, predicates):
    """Whether a record fulfils predicates as SQL has it; `== None` asks for nulls."""

    def literal(column, op, wanted):
        value = record.get(column)
        if wanted is None:
            return missing(value) == (op == "==")
        return not missing(value) and OPERATORS[op](value, wanted)

    return any(all(literal(*each) for each in conjunction) for conjunction in predicates)


class Watched:
    """A store that notes which data files are opened."""

    def __init__(self, store, opened):
        self._store = store
        self._opened = opened

    def __getattr__(self, name):
        return getattr(self._store, name)

    def _note(self, key):
        if key.endswith(".parquet") and "/indices/" not in key:
            self._opened.append(key)

    def open(self, key):
        self._note(key)
        return self._store.open(key)

    def get(self, key):
        self._note(key)
        return self._store.get(key)


def frame(records, columns=None, types=None):
    made = pd.DataFrame.from_records(records, columns=columns)
    return made.astype(types) if types else made


def part(label, made):
    return {"label": label, "data": [("table", made)]}


def asked(store, uuid, table, records, predicates):
    """What kartothek and SQL find."""
    files = []
    answer = {
        "table": table,
        "predicates": plain(predicates),
        "sql": sorted(each["id"] for each in records if fulfils(each, predicates)),
    }
    wanted = [
        [(c, op, pd.Timestamp(v) if isinstance(v, dt.datetime) else v) for c, op, v in each]
        for each in predicates
    ]
    try:
        found = read_table(uuid, lambda: Watched(store(), files), table=table, predicates=wanted)
        answer["kartothek"] = sorted(int(each) for each in found["id"]) if len(found) else []
    except Exception as error:  # what kartothek cannot do is part of what is expected
        answer["fails"] = type(error).__name__
    answer["opened"] = sorted(set(files))
    return answer


def orders(store):
    """Two commits, a partition key with odd characters, indices of many types."""

    def order(n, country):
        return {
            "id": n,
            "country": country,
            "product": n % 4,
            "small": n % 3,
            "day": DAY + dt.timedelta(days=n % 5),
            "at": TIME + dt.timedelta(hours=n),
            "flag": n % 2 == 0,
            "name": f"n{n % 6}/ü",
            "ratio": n / 4,
            "kind": "xyz"[n % 3],
        }

    types = {"small": "int8", "kind": "category", "product": "int32"}
    indexed = ["product", "small", "day", "at", "flag", "name", "ratio", "kind"]
    first = [order(n, ["de", "a=b%c", "x y", "ü"][n % 4]) for n in range(16)]
    store_dataframes_as_dataset(
        store=store,
        dataset_uuid="orders",
        dfs=[frame(first, types=types)],
        partition_on=["country"],
        secondary_indices=indexed,
        metadata={"owner": "golden", "revision": "1"},
    )
    second = [order(n, ["de", "new"][n % 2]) for n in range(20, 24)]
    update_dataset_from_dataframes(
        [frame(second, types=types)],
        store=store,
        dataset_uuid="orders",
        partition_on=["country"],
        delete_scope=[{"country": "de"}],
        metadata={"revision": "2"},
    )
    records = [each for each in first if each["country"] != "de"] + second
    queries = [
        [[("country", "==", "a=b%c")]],
        [[("country", "in", ["ü", "new"])], [("country", ">", "x")]],
        [[("product", "==", 1)]],
        [[("product", "==", 1), ("country", "!=", "ü")]],
        [[("product", "in", [0, 3])]],
        [[("product", ">", 1), ("product", "<", 3)]],
        [[("small", "==", 2)]],
        [[("day", "==", DAY)]],
        [[("day", ">=", DAY + dt.timedelta(days=3))]],
        [[("at", "==", TIME + dt.timedelta(hours=7))]],
        [[("at", "<", TIME + dt.timedelta(hours=3))]],
        [[("flag", "==", True)], [("product", "==", 2)]],
        [[("name", "==", "n1/ü")]],
        [[("name", ">", "n3"), ("flag", "==", False)]],
        [[("ratio", "==", 0.25)]],
        [[("ratio", "<=", 0.5)], [("country", "==", "new")]],
        [[("kind", "==", "z")]],
        [[("product", "==", 99)]],
        [[("id", "==", 5)]],
        [[("id", ">", 3), ("product", "==", 2)]],
    ]
    return {"table": records}, [("table", each) for each in queries]


def events(store):
    """No partition key; nulls, NaN, bytes, large numbers, a time zone, lists, an empty column."""
    nothing = {
        "s": None, "f": np.nan, "n": None, "b": None, "d": None, "t": pd.NaT, "z": pd.NaT, "u": 0,
        "li": None, "e": None,
    }  # fmt: skip

    def event(number, **values):
        return {"id": number, **nothing, **values}

    zoned = pd.Timestamp(TIME, tz="Europe/Berlin")
    parts = [
        [event(0, s="a", f=1.0, n="p", b=b"\x00\xff", d=DAY, t=TIME, z=zoned, u=2**64 - 1, li=[1])],
        [event(1, s="a"), event(2, s="b", f=2.0, n="q", e="now")],
        [event(3), event(4, f=1.0)],
        [event(5, s="c", d=dt.date(1960, 5, 6), t=dt.datetime(1960, 5, 6, 7), li=[2, 3], u=7)],
    ]

    def made(records):
        found = frame(records)
        found["t"] = pd.to_datetime(found["t"])
        found["z"] = pd.to_datetime(found["z"], utc=True)
        found["u"] = found["u"].astype("uint64")
        return found

    store_dataframes_as_dataset(
        store=store,
        dataset_uuid="events",
        dfs=[
            {"label": f"part{n}", "data": [("table", made(each))]} for n, each in enumerate(parts)
        ],
    )
    records = [each for records in parts for each in records]
    for each in records:
        for column in ("t", "z"):
            each[column] = None if each[column] is pd.NaT else each[column]
        if each["z"] is not None:
            each["z"] = each["z"].tz_convert("UTC").to_pydatetime()
    queries = [
        [[("s", "==", "a")]],
        [[("s", "==", None)]],
        [[("s", "!=", "a")]],
        [[("f", "==", 1.0)]],
        [[("f", "!=", 1.0)]],
        [[("f", "<", 2.0)]],
        [[("s", "==", "a")], [("n", "==", "q")]],
        [[("s", "!=", None), ("f", ">", 0.5)]],
        [[("u", "==", 2**64 - 1)]],
        [[("d", "<", dt.date(1970, 1, 1))]],
        [[("t", "==", TIME)]],
        [[("s", "in", ["a", "c"])]],
        [[("e", "==", "now")]],
    ]
    return {"table": records}, [("table", each) for each in queries]


def nulls(store):
    """Indices on columns with nulls, whole partitions of them too."""
    parts: Any = [
        [{"id": 0, "s": "a", "f": 1.0}, {"id": 1, "s": None, "f": np.nan}],
        [{"id": 2, "s": "b", "f": np.nan}],
        [{"id": 3, "s": "c", "f": 2.0}, {"id": 4, "s": "a", "f": np.nan}],
    ]
    store_dataframes_as_dataset(
        store=store,
        dataset_uuid="nulls",
        dfs=[
            {"label": f"part{n}", "data": [("table", frame(each))]} for n, each in enumerate(parts)
        ],
        secondary_indices=["s", "f"],
    )
    queries = [
        [[("s", "==", "a")]],
        [[("s", "==", None)]],
        [[("f", "==", None)]],
        [[("f", "!=", 1.0)]],
        [[("f", ">", 0.5)]],
        [[("s", "==", "b")], [("f", "==", 2.0)]],
        [[("s", "==", "a"), ("f", "==", 2.0)]],
    ]
    return {"table": [each for records in parts for each in records]}, [
        ("table", q) for q in queries
    ]


def twotables(store):
    """Two tables, metadata as msgpack, partition keys of dates and negative numbers."""
    core = [{"id": n, "day": DAY, "n": -(n % 2), "v": n} for n in range(4)]
    more = [{"id": n, "day": DAY, "n": -(n % 2), "w": f"w{n}"} for n in range(4)]
    store_dataframes_as_dataset(
        store=store,
        dataset_uuid="twotables",
        dfs=[{"data": [("core", frame(core)), ("more", frame(more))]}],
        partition_on=["day", "n"],
        secondary_indices=["w"],
        metadata_storage_format="msgpack",
    )
    queries = [
        ("core", [[("day", "==", DAY)]]),
        ("core", [[("n", "==", -1), ("v", ">", 1)]]),
        ("more", [[("w", "==", "w2")]]),
        ("more", [[("w", "==", "w2"), ("n", "==", -1)]]),
    ]
    return {"core": core, "more": more}, queries


def oddkeys(store):
    """Partition keys that kartothek writes and does not read back as they were."""
    records = [
        {"id": 0, "flag": False, "x": 0.5},
        {"id": 1, "flag": True, "x": 1e300},
        {"id": 2, "flag": True, "x": -1.0},
    ]
    store_dataframes_as_dataset(
        store=store, dataset_uuid="oddkeys", dfs=[frame(records)], partition_on=["flag", "x"]
    )
    queries = [[[("flag", "==", False)]], [[("x", "<", 1.0)]], [[("x", "==", 1e300)]]]
    return {"table": records}, [("table", each) for each in queries]


def unindexed(store):
    """A partition that was committed without being put into the index."""
    old, new = [{"id": 0, "s": "a"}], [{"id": 1, "s": "a"}]
    store_dataframes_as_dataset(
        store=store,
        dataset_uuid="unindexed",
        dfs=[part("old", frame(old))],
        secondary_indices=["s"],
    )
    later = write_single_partition(
        store=store, dataset_uuid="unindexed", data=part("new", frame(new))
    )
    commit_dataset(store=store, dataset_uuid="unindexed", new_partitions=[later])
    return {"table": old + new}, [("table", [[("s", "==", "a")]]), ("table", [[("s", "==", "b")]])]


def slashes(store):
    """A partition key with a slash, which kartothek reads back without what follows it."""
    records = [{"id": 0, "s": "a/b/c"}, {"id": 1, "s": "d/e/f"}]
    store_dataframes_as_dataset(
        store=store, dataset_uuid="slashes", dfs=[frame(records)], partition_on=["s"]
    )
    return {"table": records}, [("table", [[("s", "==", "a/b/c")]])]


def main(folder):
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    store = partial(get_store_from_url, f"hfs://{folder}")
    expected = {}
    makers: Any = (orders, events, nulls, twotables, oddkeys, unindexed, slashes)
    for make in makers:
        tables, queries = make(store)
        uuid = make.__name__
        expected[uuid] = {
            "tables": {
                name: [{key: plain(value) for key, value in each.items()} for each in records]
                for name, records in tables.items()
            },
            "queries": [
                asked(store, uuid, table, tables[table], predicates)
                for table, predicates in queries
            ],
        }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1])
